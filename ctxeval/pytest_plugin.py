"""A pytest fixture: let a test fail where retrieval got worse.

def test_retrieval(ctxeval_gate):
ctxeval_gate(evaluate("samples.jsonl"), baseline="main.jsonl", minimum={"ndcg@10": 0.6})
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ctxeval.evaluation.gate import Check


@pytest.fixture
def ctxeval_gate() -> Callable[..., list[Check]]:
    """Give `ctxeval.gate`: it raises a `GateFailure`, an AssertionError with a table."""
    from ctxeval.evaluation.gate import gate

    return gate
