"""What LlamaIndex leaves behind is put away after each test."""

import asyncio

import pytest


def _current_loop():
    return getattr(asyncio.get_event_loop_policy()._local, "_loop", None)


@pytest.fixture(autouse=True)
def no_loop_left_open():
    """Close the loop that synchronous calls make for themselves, and leave to the collector."""
    before = _current_loop()
    yield
    left = _current_loop()
    if left is not None and left is not before and not left.is_running():
        left.close()
        asyncio.set_event_loop(before)
