"""The one event loop on which every model is called.

An asynchronous HTTP client belongs to the loop of its first request: used from a second
one, its pooled connections fail. So one daemon thread per process runs one loop, and
everything that calls a model runs there, whoever asks: a script, a notebook whose own
loop is running, or many threads. A forked process gets a loop of its own; `PerLoop` keeps
what belongs to one (semaphores, clients, the judgements under way) from the other.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar

from ctxeval.errors import InvalidArgumentError

T = TypeVar("T")

_lock = threading.Lock()
_running: _LoopThread | None = None


class _LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="ctxeval-loop", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


def _current() -> _LoopThread:
    global _running
    with _lock:
        if _running is None or not _running.thread.is_alive():
            _running = _LoopThread()
        return _running


def _after_fork() -> None:
    # The child has no thread but its own, and must not touch the parent's sockets.
    global _running, _lock
    _lock = threading.Lock()
    _running = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on ctxeval's loop, from any thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, _current().loop)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on ctxeval's loop and wait for it, from any thread.

    Raises:
        InvalidArgumentError: It was called on that loop itself, where waiting would
            never end.
    """
    if threading.current_thread() is _current().thread:
        coroutine.close()
        raise InvalidArgumentError(
            "score() was called from within a judge's own call: await ascore() there"
        )
    future = submit(coroutine)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def arun(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on ctxeval's loop and await it from whatever loop is running."""
    if asyncio.get_running_loop() is _current().loop:
        return await coroutine
    return await asyncio.wrap_future(submit(coroutine))


async def in_thread(call: Callable[[], T], context: Context | None = None) -> T:
    """Make a blocking call in a daemon thread of its own, and await it.

    For models with a synchronous client: a pool's threads would limit how many calls are
    under way to less than was asked for, and hold up the interpreter's exit.

    Args:
        call: The call.
        context: Which context variables it sees; None: those of here.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(call())
        except StopIteration:  # which no future of asyncio's may hold
            future.set_exception(LookupError("the model has no more answers"))
        except BaseException as error:
            future.set_exception(error)

    run_it = (copy_context() if context is None else context).run
    threading.Thread(target=run_it, args=(work,), daemon=True).start()
    return await asyncio.wrap_future(future)


class PerLoop(Generic[T]):
    """Something made once per event loop, for whichever loop is running.

    Args:
        make: Makes it. Only the newest loop's is kept: there is one at a time, and a
            forked child must not touch the parent's.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        """See the class."""
        self.make = make
        self._made: tuple[asyncio.AbstractEventLoop, T] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and send without what was made: that belongs to its loop."""
        return type(self), (self.make,)

    def get(self) -> T:
        """Give the running loop's own, made at its first use."""
        loop = asyncio.get_running_loop()
        if self._made is None or self._made[0] is not loop:
            self._made = (loop, self.make())
        return self._made[1]

    def made(self) -> T | None:
        """Give the running loop's own if it was made."""
        if self._made is None or self._made[0] is not asyncio.get_running_loop():
            return None
        return self._made[1]


class PerObject(Generic[T]):
    """Something made once per object, kept as long as that lives.

    An object is known by its identity: it may have no hash, as a dataclass has none, or
    equal another.

    Args:
        make: Makes it, given the object.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        """See the class."""
        self._make = make
        self._made: dict[int, T] = {}
        self._immortal: list[object] = []

    def of(self, holder: object) -> T:
        """Give the object's own, made at its first use."""
        key = id(holder)
        if key not in self._made:
            self._made[key] = self._make(holder)
            try:
                weakref.finalize(holder, self._made.pop, key, None).atexit = False
            except TypeError:  # it has no place for weak references
                self._immortal.append(holder)
        return self._made[key]
