"""A recording server on the loopback interface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recording_server import RecordingServer, serving


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    """Give a server that keeps what it is sent."""
    with serving(RecordingServer()) as running:
        yield running
