"""A LangChain retriever over the demo's passages, by BM25."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bm25s
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from ctxeval.demo.corpus import Passage


class BM25Retriever(BaseRetriever):
    """Retrieves passages by BM25.

    Attributes:
        passages: What is searched.
        k: How many passages it returns.
    """

    passages: Sequence[Passage]
    k: int = 10
    index: Any = None

    def model_post_init(self, context: Any, /) -> None:
        """Build the index."""
        self.index = bm25s.BM25()
        self.index.index(_tokens([one.text for one in self.passages]), show_progress=False)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        places, _ = self.index.retrieve(_tokens([query]), k=self.k, show_progress=False)
        found = [self.passages[int(place)] for place in places[0]]
        return [Document(id=one.id, page_content=one.text) for one in found]


def _tokens(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)
