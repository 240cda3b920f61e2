"""Cells that other cells build on: a small retriever, a chain, references, a slow judge."""

CHAIN = """
import asyncio, time
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda


class Shop(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(id="faq-7", page_content="We ship within two days."),
            Document(id="faq-2", page_content="You may return goods within 30 days."),
        ]


chain = Shop() | RunnableLambda(lambda documents: documents[0].page_content)
references = [
    {
        "user_input": "Can I send it back?",
        "reference": "Yes. Within 30 days.",
        "reference_context_ids": ["faq-2", "faq-9"],
    }
]
"""

JUDGE = '''
from ctxeval.testing import ScriptedLLM


class Slow(ScriptedLLM):
    """A model that takes a while, not always the same."""

    async def complete(self, *args, **kwargs):
        await asyncio.sleep(0.4 + 0.15 * (len(self.calls) % 6))
        return await super().complete(*args, **kwargs)


goods = "You may return goods within 30 days."
judge = Slow(relevant={goods}, supported={"Within 30 days.": {goods}})
'''

QUERY_ENGINE = """
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever as Base
from llama_index.core.schema import NodeWithScore, TextNode


class Index(Base):
    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(id_="faq-7", text="We ship within two days."), score=0.9),
            NodeWithScore(node=TextNode(id_="faq-2", text="Within 30 days."), score=0.6),
        ]


engine = RetrieverQueryEngine.from_args(Index(), llm=MockLLM())
"""
