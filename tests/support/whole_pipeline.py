"""A whole run of ctxeval, and everything that it produced: to look for what must not be there."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")
pytest.importorskip("openai")
pytest.importorskip("sqlalchemy")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")

from langchain_core.documents import Document
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llamaindex_parts import Fixed, node
from openai_server import OpenAIServer, refused
from small_chains import Broken, Scripted, rag
from small_chains import Fixed as Documents

import ctxeval
from ctxeval.export.score import Score
from ctxeval.llm.loop import run as run_on_loop
from ctxeval.testing import ScriptedLLM
from ctxeval_langchain import CtxEvalCallbackHandler
from ctxeval_llamaindex import CtxEvalEventHandler

METRICS = ["reciprocal_rank", "context_precision", "context_recall", "context_relevance"]


@dataclass
class Produced:
    """What a run left: by a name for each, as bytes."""

    texts: dict[str, bytes] = field(default_factory=dict)

    def add(self, name: str, value: object) -> None:
        made = value if isinstance(value, bytes) else str(value).encode("utf-8", "backslashreplace")
        self.texts[name] = self.texts.get(name, b"") + made

    def add_error(self, name: str, error: BaseException) -> None:
        """Keep an error as a user, a log and a reporter of errors get to see it."""
        self.add(name, "".join(traceback.format_exception(error)))
        while error is not None:
            self.add(name, f"{error!r} {error.args!r} {error}")
            hidden = error.__suppress_context__
            error = error.__cause__ or (None if hidden else error.__context__)  # type: ignore[assignment]

    def add_files(self, folder: Path, but: Sequence[Path] = ()) -> None:
        """Keep whatever lies in a folder, the names as well."""
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path not in but:
                self.add(f"the file {path.name}", f"{path}\n".encode() + path.read_bytes())

    def with_any(self, secrets: Sequence[str]) -> list[str]:
        """Say where a secret was found, and which."""
        return [
            f"{secret!r} in {name}: …{_around(text, secret.encode())}…"
            for name, text in self.texts.items()
            for secret in secrets
            if secret.encode() in text
        ]


def _around(text: bytes, secret: bytes) -> str:
    place = text.index(secret)
    return repr(text[max(0, place - 60) : place + len(secret) + 20])


class Everything(logging.Handler):
    """Keeps what all loggers say, at DEBUG, with tracebacks."""

    def __init__(self, produced: Produced) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))
        self._produced = produced

    def emit(self, record: logging.LogRecord) -> None:
        self._produced.add(f"the log of {record.name}", f"{self.format(record)}\n")


@dataclass
class Texts:
    """What is asked and found in a run."""

    question: str = "Where do geese rest?"
    answer: str = "They rest on the lake."
    chunks: tuple[str, str] = ("The geese rest on the lake.", "Of no use.")
    reference: str = "On the lake. Geese do."
    note: str = "a note"
    error: str = "the index is away"

    @property
    def references(self) -> list[dict[str, Any]]:
        return [
            {
                "id": "sample-1",
                "user_input": self.question,
                "reference": self.reference,
                "reference_context_ids": ["id-0"],
                "reference_contexts": [self.chunks[0]],
                "metadata": {"by": self.note},
            }
        ]


def endpoint(texts: Texts, **options: Any) -> OpenAIServer:
    """Make a local endpoint that judges rightly, and quotes what it is shown."""
    useful = texts.chunks[0]

    class Quoting(ScriptedLLM):
        def answer(self, messages: Any) -> str:
            reply = json.loads(super().answer(messages))
            for item in reply.get("chunks", []):
                item["reason"] = f"it says: {useful}"
            return json.dumps(reply)

    llm = Quoting(lambda question, text: text == useful, lambda claim, shown: [0])
    return OpenAIServer(llm, **options)


def refusing(key: str) -> OpenAIServer:
    """Make an endpoint that refuses the key, and says which one it was."""
    said = f"Incorrect API key provided: {key}. You can find it at https://me:{key}@host/?key={key}"
    return OpenAIServer(replies=[refused(401, said, code="invalid_api_key") for _ in range(999)])


@contextmanager
def model(server: OpenAIServer, key: str, **options: Any) -> Iterator[Any]:
    """Make a model behind an endpoint, and close its connections."""
    llm = ctxeval.llm_factory("judge", base_url=server.url, api_key=key, **options)
    try:
        yield llm
    finally:
        run_on_loop(llm.aclose())


@dataclass
class Run:
    """One run, step by step; what each step produced goes to `produced`.

    Args:
        folder: Where files go.
        produced: Where everything goes.
        store: The store.
        llm: The model that judges.
        texts: What is asked and found.
    """

    folder: Path
    produced: Produced
    store: ctxeval.Store
    llm: Any
    texts: Texts = field(default_factory=Texts)
    options: Mapping[str, Any] = field(default_factory=dict)
    scores: list[Score] = field(default_factory=list)

    def capture(self) -> ctxeval.Recorder:
        """Ask a chain of LangChain and an engine of LlamaIndex, well and badly."""
        texts = self.texts
        recorder = ctxeval.Recorder(
            METRICS, texts.references, self.llm, self.store, sinks=[self._sink], **self.options
        )
        documents = [
            Document(id=f"id-{n}", page_content=text, metadata={"by": texts.note})
            for n, text in enumerate(texts.chunks)
        ]
        handler = CtxEvalCallbackHandler(recorder=recorder)
        config = {"callbacks": [handler], "metadata": {"by": texts.note}}
        model = Scripted(reply=lambda question, turn: texts.answer)
        rag(Documents(documents=documents), model).invoke(texts.question, config)
        asyncio.run(rag(Documents(documents=documents), model).ainvoke(texts.question, config))
        with pytest.raises(ConnectionError):
            rag(Broken(error=ConnectionError(texts.error)), model).invoke(texts.question, config)
        self._ask_llamaindex(CtxEvalEventHandler(recorder=recorder))
        assert recorder.flush(60)
        return recorder

    def _ask_llamaindex(self, handler: Any) -> None:
        texts = self.texts
        found = [node(f"id-{n}", text, by=texts.note) for n, text in enumerate(texts.chunks)]
        handler.install()
        try:
            RetrieverQueryEngine.from_args(Fixed(*found), llm=MockLLM()).query(texts.question)
            broken = Fixed(by_question={texts.question: ConnectionError(texts.error)})
            engine = RetrieverQueryEngine.from_args(broken, llm=MockLLM())
            with pytest.raises(ConnectionError):
                engine.query(texts.question)
        finally:
            handler.uninstall()

    def _sink(self, scores: Sequence[Score]) -> None:
        self.scores += scores
        self.produced.add("what a sink got", json.dumps([one.to_dict() for one in scores]))

    def show(self, recorder: ctxeval.Recorder) -> None:
        """Show and write what was captured, in every form there is."""
        add = self.produced.add
        add("repr", [recorder, self.store, self.llm, recorder.deliveries, recorder.notes])
        add("records", [one.to_dict() for one in recorder.records])
        add("repr of records", recorder.records)
        add("notebook", recorder._repr_mimebundle_())
        add("data frame", recorder.to_pandas().to_string())
        evaluation = recorder.evaluation()
        self.write(evaluation, "captured")

    def write(self, evaluation: ctxeval.Evaluation, name: str) -> None:
        """Write a run to files of all kinds."""
        add = self.produced.add
        add("repr of a run", [evaluation, evaluation.summary(), list(evaluation.to_dicts())])
        import pyarrow.parquet as pq

        at = self.folder / name
        evaluation.save(at.with_suffix(".jsonl"))
        evaluation.report(at.with_suffix(".html"))
        evaluation.to_pandas().to_csv(at.with_suffix(".csv"))
        pq.write_table(evaluation.to_arrow(), at.with_suffix(".parquet"), compression="none")
        evaluation.to_jsonl(at.with_suffix(".flat.jsonl"))

    def evaluate(self) -> ctxeval.Evaluation:
        """Evaluate a sample offline, and keep the run in the store."""
        evaluation = ctxeval.evaluate(
            [self.sample], METRICS, llm=self.llm, store=self.store, progress=False
        )
        self.store.put_run("run", {"k": 4}, [row.to_dict() for row in evaluation.rows])
        return evaluation

    @property
    def sample(self) -> dict[str, Any]:
        texts = self.texts
        return {
            **texts.references[0],
            "retrieved_contexts": list(texts.chunks),
            "retrieved_context_ids": ["id-0", "id-1"],
            "response": texts.answer,
        }

    def command(self, *arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run the command line, and keep what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "ctxeval", *arguments],
            capture_output=True, text=True, timeout=100, env=env, cwd=self.folder,
        )  # fmt: skip
        self.produced.add(f"ctxeval {arguments[0]}", f"{done.stdout}\n{done.stderr}")
        return done


@contextmanager
def logged(produced: Produced) -> Iterator[None]:
    """Keep what all loggers say meanwhile."""
    handler, root = Everything(produced), logging.getLogger()
    before = {root: root.level}
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    for name in ("ctxeval", "openai", "httpx", "httpcore", "sqlalchemy", "llama_index"):
        before[logging.getLogger(name)] = logging.getLogger(name).level
        logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        for logger, level in before.items():
            logger.setLevel(level)
