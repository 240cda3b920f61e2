"""Real kernels that run cells, and what they send."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest


class Message(NamedTuple):
    """What a kernel sent to its frontends, and when."""

    kind: str
    content: dict[str, Any]
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
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(kernel_name="python3")

    def run(self, cell: str, late: float = 0.0) -> list[Message]:
        """Run a cell.

        Args:
            cell: Its code.
            late: How many seconds to go on listening after its end.

        Returns:
            What came of it, but for the states of the kernel.
        """
        request = self.client.execute(cell)
        return [
            one
            for one in self._listen(request, late)
            if one.kind not in ("status", "execute_input", "iopub_welcome")
        ]

    def _listen(self, request: str, late: float) -> Iterator[Message]:
        end = None
        while end is None or (left := end - time.monotonic()) > 0:
            try:
                got = self.client.get_iopub_msg(timeout=60 if end is None else left)
            except Exception as error:
                if end is None:
                    raise TimeoutError("the cell does not end") from error
                return
            yield Message(got["msg_type"], got["content"], got["header"]["date"].timestamp())
            idle = got["content"].get("execution_state") == "idle"
            if idle and got["parent_header"].get("msg_id") == request and end is None:
                end = time.monotonic() + late

    def value(self, expression: str) -> str:
        """Evaluate an expression, and give what is shown of it."""
        return next(one for one in self.run(expression) if one.kind == "execute_result").text

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def running() -> Iterator[Kernel]:
    """A kernel that all tests of a module share."""
    kernel = Kernel()
    yield kernel
    kernel.stop()
