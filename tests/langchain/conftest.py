"""A handler that hides no fault of its own, for all tests of the adapter."""

import pytest


@pytest.fixture
def make_handler():
    """Make handlers whose hooks must not fail, and of which nothing may stay open."""
    from ctxeval_langchain import CtxEvalCallbackHandler

    made = []

    def make(*args, **options):
        handler = CtxEvalCallbackHandler(*args, **options)
        handler.raise_error = True
        made.append(handler)
        return handler

    yield make
    for handler in made:
        assert handler.close(10)
        assert handler.errors == {}
        assert len(handler._open) == 0


@pytest.fixture
def handler(make_handler):
    made = make_handler()
    yield made
    assert len(made._open) == 0
