"""How `trace()` finds its adapters: a broken one costs a warning, a missing framework nothing."""

import importlib
import logging
import sys
from importlib.metadata import EntryPoint

import pytest

from ctxeval import trace
from ctxeval.capture import trace as tracing


@pytest.fixture
def adapters(monkeypatch, tmp_path):
    """Give a function that puts an adapter in place, as an installed package would."""
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    monkeypatch.setattr(tracing, "entry_points", lambda group: found)
    monkeypatch.setattr(tracing, "_adapters", {})

    def put(name, source=None):
        if source is not None:
            (tmp_path / f"{name}.py").write_text(source)
            monkeypatch.delitem(sys.modules, name, raising=False)
            importlib.invalidate_caches()
        found.append(EntryPoint(name, f"{name}:install", tracing.GROUP))

    return put


def lines(caplog, level):
    return [one.getMessage() for one in caplog.records if one.levelno >= level]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("1 / 0", id="fails at import"),
        pytest.param("", id="has no install()"),
        pytest.param("def install(current): raise ValueError('no')", id="install() fails"),
    ],
)
def test_a_broken_adapter_costs_one_warning(adapters, caplog, source):
    adapters("adapter_that_is_broken", source)
    with caplog.at_level(logging.DEBUG, "ctxeval"):
        for _ in range(3):
            with trace() as t:
                pass
    assert lines(caplog, logging.WARNING) == [
        "ctxeval: the adapter adapter_that_is_broken is broken"
    ]
    assert t.records == []


def test_a_framework_that_is_missing_costs_nothing(adapters, caplog, monkeypatch, tmp_path):
    source = "import a_framework_that_is_missing\ncalls = []\ninstall = calls.append"
    adapters("adapter_without_framework", source)
    with caplog.at_level(logging.INFO, "ctxeval"), trace():
        pass
    assert caplog.records == []
    (tmp_path / "a_framework_that_is_missing.py").write_text("")
    importlib.invalidate_caches()
    with trace():
        pass
    import adapter_without_framework

    assert adapter_without_framework.calls == [tracing.current]


def test_an_adapter_is_asked_at_each_block_and_told_the_recorder(adapters):
    adapters("adapter_that_works", "seen = []\ndef install(current): seen.append(current)")
    with trace() as first:
        import adapter_that_works

        (current,) = adapter_that_works.seen
        assert current() is first
        with trace() as second:
            assert current() is second
        assert current() is first
    assert current() is None
    assert len(adapter_that_works.seen) == 2


def test_a_broken_adapter_leaves_the_others_alone(adapters, caplog):
    pytest.importorskip("langchain_core")
    from small_chains import Echo

    adapters("another_that_is_broken", "1 / 0")
    adapters("ctxeval_langchain.install")
    with trace() as t:
        Echo().invoke("q")
    assert [record.question for record in t.records] == ["q"]
