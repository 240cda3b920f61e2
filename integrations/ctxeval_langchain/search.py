"""Make direct searches of a vector store visible to callbacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document
from langchain_core.runnables.config import ensure_config
from langchain_core.vectorstores import VectorStore

from ctxeval import InvalidArgumentError

S = TypeVar("S", bound=VectorStore)

_SEARCHES = frozenset(
    (
        "search",
        "similarity_search",
        "similarity_search_with_score",
        "similarity_search_with_relevance_scores",
        "max_marginal_relevance_search",
    )
)
_ASYNC_SEARCHES = frozenset(f"a{name}" for name in _SEARCHES)


def traced_search(store: S) -> S:
    """Wrap a vector store so that callbacks see its direct searches as retriever runs.

    LangChain tells callbacks of retrievers, but not of `store.similarity_search(…)` in a
    function, a tool or a graph's node. Through the wrapper they are told, each search once:
    what `as_retriever()` makes holds the bare store. Give other retrievers the bare store as
    well: LangChain keeps no note of a running retriever, so to other tracers than
    `CtxEvalCallbackHandler` a search in one would look like a search beside it. A document
    that came with a score is shown to callbacks as a copy with `metadata["score"]`; results
    and errors are the store's own.

    Args:
        store: Any vector store. It stays as it is: only calls through the wrapper are seen.

    Returns:
        The wrapper: `search`, `similarity_search`, `similarity_search_with_score`,
        `similarity_search_with_relevance_scores`, `max_marginal_relevance_search` and their
        asynchronous twins are seen, everything else is the store's.

    Raises:
        InvalidArgumentError: It is no vector store.
    """
    if not isinstance(store, VectorStore):
        raise InvalidArgumentError(
            f"store: a {type(store).__name__} is no VectorStore: retrievers are seen anyway"
        )
    return store if issubclass(type(store), _Traced) else cast(S, _Traced(store))


class _Traced:
    """Stands in for a vector store."""

    __slots__ = ("__store",)
    __store: VectorStore

    def __init__(self, store: VectorStore) -> None:
        object.__setattr__(self, "_Traced__store", store)

    @property  # type: ignore[misc]  # read-only: nobody changes what isinstance() finds
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        return type(self.__store)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.__store, name)
        if name in _SEARCHES:
            return _traced(attribute, type(self.__store).__name__)
        if name in _ASYNC_SEARCHES:
            return _atraced(attribute, type(self.__store).__name__)
        return attribute

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__store, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__store, name)

    def __dir__(self) -> list[str]:
        return dir(self.__store)

    def __repr__(self) -> str:
        return f"traced_search({self.__store!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return traced_search, (self.__store,)

    # LangChain's indexing looks these up on the type.
    def delete(self, *args: Any, **kwargs: Any) -> Any:
        return self.__store.delete(*args, **kwargs)

    async def adelete(self, *args: Any, **kwargs: Any) -> Any:
        return await self.__store.adelete(*args, **kwargs)


def _traced(search: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(search)
    def traced(*args: Any, **kwargs: Any) -> Any:
        manager = CallbackManager.configure(ensure_config().get("callbacks"))
        run = manager.on_retriever_start(None, _query(args, kwargs), name=name)
        try:
            found = search(*args, **kwargs)
        except Exception as error:
            run.on_retriever_error(error)
            raise
        run.on_retriever_end(_shown(found))
        return found

    return traced


def _atraced(search: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(search)
    async def traced(*args: Any, **kwargs: Any) -> Any:
        manager = AsyncCallbackManager.configure(ensure_config().get("callbacks"))
        run = await manager.on_retriever_start(None, _query(args, kwargs), name=name)
        try:
            found = await search(*args, **kwargs)
        except Exception as error:
            await run.on_retriever_error(error)
            raise
        await run.on_retriever_end(_shown(found))
        return found

    return traced


def _query(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get("query", "")


def _shown(found: Any) -> Any:
    """Give what callbacks see of a result: documents, those with a score as copies."""
    return [_scored(one) for one in found] if isinstance(found, list) else found


def _scored(one: Any) -> Any:
    match one:
        case (Document() as document, score, *_):
            return document.model_copy(update={"metadata": {**document.metadata, "score": score}})
    return one
