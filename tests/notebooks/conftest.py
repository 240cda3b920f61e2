"""Real kernels that run cells, and what they send."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest


class Message(NamedTuple):
    """What a kernel sent to its frontends, for which of their requests, and when."""

    kind: str
    content: dict[str, Any]
    request: str | None
    at: float

    @property
    def html(self) -> str:
        return self.content.get("data", {}).get("text/html", "")

    @property
    def text(self) -> str:
        return self.content.get("text") or self.content.get("data", {}).get("text/plain", "")

    @property
    def output(self) -> str | None:
        """The output that it makes or changes."""
        return self.content.get("transient", {}).get("display_id")


class Kernel:
    """A kernel, and a frontend that listens to it."""

    def __init__(self) -> None:
        from jupyter_client.manager import start_new_async_kernel

        self._loop = asyncio.new_event_loop()
        started = start_new_async_kernel(kernel_name="python3")
        self._manager, self._client = self._loop.run_until_complete(started)
        self.request = ""

    def run(self, cell: str, late: float = 0.0, others: bool = False) -> list[Message]:
        """Run a cell.

        Args:
            cell: Its code.
            late: How many seconds to go on listening after its end at most: less where nothing
                that it shows is still being judged.
            others: Give the updates of earlier cells' outputs too.

        Returns:
            What came of it, but for the states of the kernel.
        """
        self.request = self._client.execute(cell)
        told = ("status", "execute_input", "iopub_welcome")
        heard = [one for one in self._listen(late) if one.kind not in told]
        own = {one.output for one in heard if one.kind == "display_data"}
        return [
            one for one in heard if others or one.kind != "update_display_data" or one.output in own
        ]

    def _listen(self, late: float) -> Iterator[Message]:
        end = None
        pending: set[str | None] = set()
        while end is None or (left := end - time.monotonic()) > 0:
            try:
                getting = self._client.get_iopub_msg(timeout=60 if end is None else left)
                got = self._loop.run_until_complete(getting)
            except Exception as error:
                if end is None:
                    raise TimeoutError("the cell does not end") from error
                return
            request = got["parent_header"].get("msg_id")
            at = got["header"]["date"].timestamp()
            message = Message(got["msg_type"], got["content"], request, at)
            yield message
            if "is being judged" in message.html:
                pending.add(message.output)
            elif message.output in pending:
                pending.remove(message.output)
                if end is not None and not pending:
                    end = min(end, time.monotonic() + 0.5)
            idle = got["content"].get("execution_state") == "idle"
            if idle and request == self.request and end is None:
                end = time.monotonic() + late

    def value(self, expression: str) -> str:
        """Evaluate an expression, and give what is shown of it."""
        return next(one for one in self.run(expression) if one.kind == "execute_result").text

    def interrupt(self) -> None:
        """Interrupt the cell that runs, as a frontend's button does."""
        os.kill(self._manager.provisioner.pid, signal.SIGINT)

    def stop(self) -> None:
        self._client.stop_channels()
        self._loop.run_until_complete(self._manager.shutdown_kernel(now=True))
        self._loop.close()


@pytest.fixture(scope="module")
def running() -> Iterator[Kernel]:
    """A kernel that all tests of a module share."""
    kernel = Kernel()
    yield kernel
    kernel.stop()
