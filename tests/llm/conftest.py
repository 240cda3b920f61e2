from __future__ import annotations

from contextlib import ExitStack

import pytest
from openai_server import OpenAIServer

from ctxeval import llm_factory
from ctxeval.judges.cells import DEFAULT_CACHE
from ctxeval.judges.prompts import Prompts
from ctxeval.llm import client, dialect
from ctxeval.llm.loop import run


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Wait for retries hardly at all, and know nothing from earlier tests: ports come again."""
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(dialect, "_known", {})
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    DEFAULT_CACHE.clear()


@pytest.fixture
def serve():
    """Start servers that stop with the test."""
    with ExitStack() as servers:
        yield lambda llm=None, **options: servers.enter_context(OpenAIServer(llm, **options))


@pytest.fixture
def connect(serve):
    """Make models whose connections close with the test, at a server or with a client."""
    made = []

    def connect(server=None, model="judge", **options):
        pytest.importorskip("openai")
        if server is not None:
            options = {"base_url": server.url, "api_key": "sk-secret-123456", **options}
        made.append(llm_factory(model, **options))
        return made[-1]

    yield connect
    for llm in made:
        run(llm.aclose())


@pytest.fixture
def ask():
    """Ask a model for one chunk's verdict, straight through `complete`."""
    prompts = Prompts()

    def ask(llm, chunk="Paris.", max_tokens=1000):
        messages, schema = prompts.judge("question", "Where?", "", [chunk], [1], ())
        return llm.complete(messages, schema, max_tokens=max_tokens)

    return ask
