"""What retrieves, but not for a question of the application, is left out."""

import asyncio

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.evaluation import (
    BatchEvalRunner,
    ContextRelevancyEvaluator,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
    RetrieverEvaluator,
)
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, VectorMemory
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.objects import ObjectIndex
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
)
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
from llamaindex_captures import Model, capturing, engine, ids, stages, synthesizer
from llamaindex_parts import Fixed, Judge, Letters, hits, index, node

from ctxeval.testing import ScriptedLLM
from ctxeval_llamaindex import ContextEvaluator
from ctxeval_llamaindex.suppression import suppress

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

QUESTION = "Who?"


@pytest.fixture(autouse=True)
def defaults(monkeypatch):
    monkeypatch.setattr(Settings, "_llm", Model())
    monkeypatch.setattr(Settings, "_node_parser", TokenTextSplitter())


def add_one(a: int) -> int:
    """Add one."""
    return a + 1


def tool_index():
    return ObjectIndex.from_objects(
        [FunctionTool.from_defaults(add_one)], index_cls=VectorStoreIndex, embed_model=Letters()
    )


def memory():
    made = VectorMemory.from_defaults(
        embed_model=Letters(), retriever_kwargs={"similarity_top_k": 1}
    )
    made.put(ChatMessage(role="user", content="a talk"))
    return made


class TestEvaluators:
    """LlamaIndex's own build an index over the contexts that they judge, and query it."""

    @pytest.mark.parametrize(
        "evaluate",
        [
            lambda: FaithfulnessEvaluator().evaluate(response="r", contexts=["one", "two"]),
            lambda: RelevancyEvaluator().evaluate(query="q", response="r", contexts=["one"]),
            lambda: ContextRelevancyEvaluator().evaluate(query="q", contexts=["one"]),
            lambda: asyncio.run(FaithfulnessEvaluator().aevaluate(response="r", contexts=["one"])),
            lambda: RetrieverEvaluator.from_metric_names(["mrr"], retriever=Fixed("a")).evaluate(
                "q", ["a"]
            ),
        ],
        ids=["faithfulness", "relevancy", "context relevancy", "awaited", "retriever"],
    )
    def test_alone(self, evaluate):
        with capturing() as handler:
            evaluate()
        assert handler.records == []

    def test_beside_an_application(self):
        async def judge_and_ask():
            await asyncio.gather(
                FaithfulnessEvaluator().aevaluate(response="r", contexts=["one"]),
                engine("a").aquery(QUESTION),
            )

        with capturing() as handler:
            asyncio.run(judge_and_ask())
        assert [record.question for record in handler.records] == [QUESTION]

    def test_inside_of_an_application(self):
        """An engine that judges its own answer."""

        class Yes(Model):
            def complete(self, prompt, formatted=False, **kwargs):
                reply = super().complete(prompt)
                return reply.model_copy(update={"text": f"yes, {reply.text}"})

        asked = RetryQueryEngine(engine("a"), RelevancyEvaluator(llm=Yes()))
        with capturing() as handler:
            asked.query(QUESTION)
        (record,) = handler.records
        assert stages(record) == [
            ("retrieve", "Fixed", ["a"]),
            ("prompt", "synthesizer", ["a"], "of 0"),
        ]

    def test_ours(self):
        evaluator = ContextEvaluator("context_relevance", llm=Judge())
        with capturing() as handler:
            evaluator.evaluate(query="q", contexts=["one"])
        assert handler.records == []

    @pytest.mark.parametrize("way", ["query", "aquery"])
    def test_an_engine_that_looks_again_at_what_it_found(self, way):
        """The index that it makes of that has nodes with new ids."""
        judge = ContextEvaluator("context_relevance", llm=Judge(ScriptedLLM()))
        asked = RetrySourceQueryEngine(engine("a", "b"), judge, Model(), max_retries=2)
        with capturing() as handler:
            asked.query("q") if way == "query" else asyncio.run(asked.aquery("q"))
        (record,) = handler.records
        assert stages(record) == [
            ("retrieve", "Fixed", ["a", "b"]),
            ("prompt", "synthesizer", ["a", "b"], "of 0"),
        ]

    def test_a_runner_asks_the_application(self):
        runner = BatchEvalRunner({"faithful": FaithfulnessEvaluator()}, workers=2)
        with capturing() as handler:
            asyncio.run(runner.aevaluate_queries(engine("a"), [QUESTION, "Where?"]))
        assert {record.question for record in handler.records} == {QUESTION, "Where?"}
        assert len(handler.records) == 2

    def test_an_index_of_its_own_beside_an_evaluator(self):
        """What an evaluator of the user's own asks is suppressed by hand."""
        with capturing() as handler:
            with suppress():
                engine("a").query("judging")
            engine("a").query(QUESTION)
        assert [record.question for record in handler.records] == [QUESTION]

    def test_suppressed_inside_of_a_query(self):
        class Judges(Fixed):
            def _retrieve(self, query_bundle):
                with suppress():
                    Fixed("z").retrieve("judging")
                return hits("a")

        with capturing() as handler:
            engine(Judges()).query(QUESTION)
        assert [ids(one) for one in handler.records[0].retrievals] == [["a"], ["a"]]


class TestNoDocuments:
    def test_tools_and_messages(self):
        with capturing() as handler:
            tool_index().as_retriever(similarity_top_k=1).retrieve("a")
            asyncio.run(tool_index().as_retriever(similarity_top_k=1).aretrieve("a"))
            memory().get("a")
        assert handler.records == []

    def test_inside_of_a_query(self):
        tools, recalled = tool_index().as_retriever(similarity_top_k=1), memory()

        class Agentlike(CustomQueryEngine):
            def custom_query(self, query_str):
                tools.retrieve(query_str)
                recalled.get(query_str)
                Fixed("a").retrieve(query_str)
                return "done"

        with capturing() as handler:
            Agentlike().query(QUESTION)
        assert stages(handler.records[0]) == [("retrieve", "Fixed", ["a"])]

    def test_a_retriever_as_a_tool_finds_documents(self):
        with capturing() as handler:
            output = RetrieverTool.from_defaults(Fixed(node("a", file="a.md")))(QUESTION)
        assert "a.md" in output.content
        assert handler.records[0].chunks()[0].text == "text of a"


class TestInclude:
    def test_by_the_retriever(self):
        class Side(Fixed):
            pass

        class Asks(CustomQueryEngine):
            def custom_query(self, query_str):
                Side("s").retrieve(query_str)
                return str(engine("a").query(query_str))

        with capturing(include=lambda one: not isinstance(one, Side)) as handler:
            Asks().query(QUESTION)
            Side("s").retrieve("alone")
        (record,) = handler.records
        assert stages(record) == [
            ("retrieve", "Fixed", ["a"]),
            ("prompt", "synthesizer", ["a"], "of 0"),
        ]

    def test_what_is_inside_of_one_that_does_not_count(self):
        class Outer(Fixed):
            def _retrieve(self, query_bundle):
                return Fixed("a", "b").retrieve(query_bundle)[:1]

        with capturing(include=lambda one: not isinstance(one, Outer)) as handler:
            engine(Outer()).query(QUESTION)
        assert handler.records == []

    def test_tools_too_if_told_so(self):
        with capturing(include=lambda one: True) as handler:
            tool_index().as_retriever(similarity_top_k=1).retrieve("a")
        assert [record.retrievals[0].name for record in handler.records] == ["VectorIndexRetriever"]

    def test_each_handler_has_its_own(self):
        with (
            capturing(include=lambda one: "a" in one.nodes) as with_a,
            capturing(include=lambda one: "b" in one.nodes) as with_b,
        ):
            Fixed("a").retrieve("q")
            Fixed("b").retrieve("r")
        assert [record.question for record in with_a.records] == ["q"]
        assert [record.question for record in with_b.records] == ["r"]

    def test_that_fails_lets_in_and_is_counted(self):
        from ctxeval_llamaindex.handler import CtxEvalEventHandler

        handler = CtxEvalEventHandler(include=lambda one: one.nothing).install()
        try:
            Fixed("a").retrieve("q")
            assert len(handler.records) == 1
            assert handler.errors == {"AttributeError": 1}
        finally:
            handler.close(10)


class TestUnseen:
    """What retrieves without telling LlamaIndex makes no record with nothing in it."""

    def test_queries_without_any_are_counted(self):
        chat = SimpleChatEngine.from_defaults(llm=Model(), memory=ChatMemoryBuffer.from_defaults())
        with capturing() as handler:
            chat.chat("hello")
            list(chat.stream_chat("hello again").response_gen)
            engine("a").query("q")
        assert len(handler.records) == 1
        assert handler.recorder.without_retrieval == 2

    def test_an_engine_that_searches_by_itself(self, caplog):
        store = SimpleVectorStore()
        store.add([node("a").model_copy(update={"embedding": [1.0, 0.0]})])

        class Searches(CustomQueryEngine):
            def custom_query(self, query_str):
                store.query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=1))
                Fixed("a")._retrieve(QueryBundle(query_str))
                return "answer"

        with capturing(references=[{"user_input": QUESTION, "reference_context_ids": ["a"]}]) as h:
            for _ in range(2):
                Searches().query(QUESTION)
        assert h.records == []
        assert caplog.text.count("Searches answered without any retrieval") == 1

    def test_a_retriever_that_overrides_retrieve(self):
        class Overrides(Fixed):
            def retrieve(self, str_or_query_bundle):
                return hits("a")

        with capturing() as handler:
            engine(Overrides()).query(QUESTION)
        assert stages(handler.records[0]) == [
            ("retrieve", "Overrides", ["a"]),
            ("prompt", "synthesizer", ["a"], "of 0"),
        ]

    def test_an_index_queried_by_hand(self):
        """Retrieving and synthesizing are two calls: only the first one is a query."""
        made = index(node("a"))
        with capturing() as handler:
            found = made.as_retriever().retrieve(QUESTION)
            synthesizer().synthesize(QUESTION, found)
        assert stages(handler.records[0]) == [("retrieve", "VectorIndexRetriever", ["a"])]
