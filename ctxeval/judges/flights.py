"""Judgements under way: what two ask for at the same time is asked once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from ctxeval.errors import JudgeError
from ctxeval.judges.cells import CellCache
from ctxeval.llm.loop import PerLoop, PerObject

K = TypeVar("K")
V = TypeVar("V")


class Flights:
    """The judgements under way for one cache: each is made once, and others wait for it.

    To be used on ctxeval's loop.
    """

    _of: ClassVar[PerObject[PerLoop[Flights]]] = PerObject(lambda cache: PerLoop(Flights))

    def __init__(self) -> None:
        """Begin with none."""
        self._futures: dict[str, asyncio.Future[Any]] = {}

    @classmethod
    def of(cls, cache: CellCache) -> Flights:
        """Give those of a cache."""
        return cls._of.of(cache).get()

    async def gather(
        self,
        names: Mapping[K, str],
        look_up: Callable[[Sequence[K]], Mapping[K, V]],
        ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]],
    ) -> dict[K, V]:
        """Take what is kept, ask for what nobody asks for yet, wait for the rest.

        Args:
            names: What is wanted, each with the name of the judgement that brings it.
            look_up: Gives what is kept of these.
            ask: Makes the judgements that bring these, all of them, and keeps what they say.
                It's begun right after `look_up`, before anything else may happen.

        Returns:
            All that is wanted.

        Raises:
            JudgeError: One of the judgements failed.
        """
        found: dict[K, V] = {}
        while missing := [key for key in names if key not in found]:
            found.update(look_up(missing))
            wanted = {key: names[key] for key in missing if key not in found}
            theirs = {k: self._futures[name] for k, name in wanted.items() if name in self._futures}
            mine = {key: name for key, name in wanted.items() if key not in theirs}
            if mine:
                with self._taken(mine) as arrived:
                    arrived.update(await ask(list(mine)))
                found.update(arrived)
            for key, future in theirs.items():
                arrival = await asyncio.shield(future)
                if isinstance(arrival, JudgeError):
                    raise arrival
                if arrival is not None:  # None: whoever asked was interrupted, so ask again
                    found[key] = arrival
        return found

    @contextmanager
    def _taken(self, names: Mapping[K, str]) -> Iterator[dict[K, Any]]:
        """Let others wait for what the block fills in."""
        futures = {key: asyncio.get_running_loop().create_future() for key in names}
        self._futures.update({names[key]: future for key, future in futures.items()})
        arrived: dict[K, Any] = {}
        failure: JudgeError | None = None
        try:
            yield arrived
        except JudgeError as error:
            failure = error
            raise
        finally:
            for key, future in futures.items():
                self._futures.pop(names[key], None)
                future.set_result(arrived.get(key, failure))
