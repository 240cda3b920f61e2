"""Whatever is given, it is taken, or refused by an error that is documented."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from anything import ANYTHING, JSON, NEARLY, TEXTS, damaged, fields_of, mutated, written
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxeval
from ctxeval import CtxEvalError, InvalidArgumentError, InvalidSampleError, References, Sample
from ctxeval.evaluation.reporting import report_of
from ctxeval.llm.faults import Fault
from ctxeval.llm.protocol import Completion, FirstToken
from ctxeval.llm.responses import read_completion, read_first_token
from ctxeval.result import results_from_dict, results_to_dict
from ctxeval.testing import ScriptedLLM

BY_NAME = [
    *("context_precision", "context_recall", "context_relevance", "context_utilization"),
    *("non_llm_context_recall", "non_llm_context_precision_with_reference"),
    *("id_based_context_precision", "id_based_context_recall", "reciprocal_rank", "ndcg@2"),
    *("hit_rate@1[text]", "average_precision", "precision@2", "recall@2"),
]
once = settings(suppress_health_check=list(HealthCheck))


def taken_or_refused(do, errors=CtxEvalError):
    """Have something done that may be refused by an error that says something."""
    try:
        return do()
    except errors as error:
        return _said(error)


def _said(error):
    assert str(error).strip()


@given(fields_of(ANYTHING))
def test_a_sample_is_one_or_is_refused(fields):
    sample = taken_or_refused(lambda: Sample(**fields), InvalidSampleError)
    if sample is None:
        return
    assert Sample(**sample.model_dump()) == sample or any(map(_has_nan, fields.values()))
    assert sample.key == Sample.of(sample).key


def _has_nan(value):
    if isinstance(value, dict):
        return any(map(_has_nan, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(map(_has_nan, value))
    try:
        return bool(value != value)
    except Exception:
        return True


def check_results(results):
    """Each result is a number in [0, 1], or says why it is none; all of it can be written."""
    for result in results.values():
        if result.status == "scored":
            assert 0 <= result.value <= 1
        else:
            assert result.value is None
            assert result.reason
        if result.bounds is not None:
            low, high = result.bounds
            assert 0 <= low <= high <= 1
    data = json.dumps(results_to_dict(results))
    assert json.dumps(results_to_dict(results_from_dict(json.loads(data)))) == data


@once
@given(st.fixed_dictionaries({}, optional=NEARLY), st.lists(TEXTS, max_size=3))
def test_any_sample_has_a_result_of_every_metric(fields, replies):
    try:
        sample = Sample(**fields)
    except InvalidSampleError:
        return
    results = ctxeval.score(
        sample, BY_NAME, ScriptedLLM(lambda question, text: True, replies=replies)
    )
    assert list(results) == [
        metric.name for metric in ctxeval.resolve_metrics(BY_NAME, ScriptedLLM())
    ]
    check_results(results)


@once
@given(st.lists(st.one_of(TEXTS, JSON.map(written)), max_size=6))
def test_any_reply_leaves_a_result(replies):
    sample = {
        "user_input": "q", "reference": "It is A. It is B.", "response": "A",
        "retrieved_contexts": ["A", "B"],
    }  # fmt: skip
    check_results(ctxeval.score(sample, BY_NAME[:4], ScriptedLLM(replies=replies)))


COMPLETION = {
    "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    "choices": [{
        "finish_reason": "stop",
        "message": {"content": "yes", "refusal": None},
        "logprobs": {"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": [
            {"token": "no", "logprob": -3.0}]}]},
    }],
}  # fmt: skip


@given(st.one_of(JSON, mutated(COMPLETION)))
def test_any_response_of_an_endpoint_is_read(response):
    completion = read_completion(response)
    assert isinstance(completion, Completion)
    assert isinstance(completion.text, str)
    assert isinstance(completion.usage.prompt_tokens, int)
    first = read_first_token(response)
    assert isinstance(first, FirstToken)
    assert all(isinstance(one, float) for one in first.logprobs.values())


@given(JSON, JSON, st.one_of(st.none(), st.integers()))
def test_any_error_of_a_client_is_read(body, headers, status):
    error = ValueError("no")
    error.body, error.status_code = body, status  # type: ignore[attr-defined]
    error.response = type("Response", (), {"headers": headers})()  # type: ignore[attr-defined]
    fault = Fault(error)
    assert isinstance(fault.message, str)
    assert isinstance(fault.passing and fault.overflow and fault.filtered and fault.no_credit, bool)
    assert fault.retry_after is None or fault.retry_after >= 0


# Files.


def _as_jsonl(rows):
    return "".join(f"{written(row)}\n" for row in rows)


def _as_csv(rows):
    names = [*dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)]
    lines = [
        names,
        *([written(row.get(name)) for name in names] for row in rows if isinstance(row, dict)),
    ]
    return "\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in one) for one in lines)


@once
@pytest.mark.parametrize(
    ("suffix", "write"), [(".jsonl", _as_jsonl), (".json", written), (".csv", _as_csv)]
)
@given(
    rows=st.lists(st.one_of(fields_of(JSON), JSON), min_size=1, max_size=4), strict=st.booleans()
)
def test_references_are_read_or_refused(tmp_path_factory, suffix, write, rows, strict):
    path = tmp_path_factory.getbasetemp() / f"references{suffix}"
    path.write_bytes(write(rows).encode("utf-8", "surrogatepass"))
    refusals = (InvalidSampleError, InvalidArgumentError)
    references = taken_or_refused(lambda: References.of(path, strict=strict), refusals)
    for sample in references or ():
        assert references.lookup(sample.user_input, id=sample.id).sample or sample.id is None


@once
@given(rows=st.lists(st.one_of(fields_of(ANYTHING), ANYTHING), min_size=1, max_size=4))
def test_lists_of_anything_are_samples_or_refused(rows):
    evaluation = taken_or_refused(
        lambda: ctxeval.evaluate(rows, ["reciprocal_rank"], progress=False),
        (InvalidSampleError, InvalidArgumentError),
    )
    for row in () if evaluation is None else evaluation.rows:
        check_results(row.results)


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    """A run with everything in it, as bytes."""
    path = tmp_path_factory.mktemp("runs") / "run.jsonl"
    sample = {
        "id": "1", "user_input": "q", "reference": "It is A. B.", "response": "A",
        "retrieved_contexts": ["A", "B"], "retrieved_context_ids": ["a", "b"],
        "reference_context_ids": {"a": 2}, "reference_contexts": ["A"], "metadata": {"k": "v"},
    }  # fmt: skip
    llm = ScriptedLLM(relevant={"A"})
    ctxeval.evaluate([sample, {**sample, "id": "2"}], BY_NAME, llm=llm, progress=False).save(path)
    return path


def _use_run(path: Path) -> None:
    evaluation = ctxeval.Evaluation.load(path, keep=False)
    for name in evaluation.metrics:
        evaluation.worst(name, 2)
    evaluation.summary()
    list(evaluation.to_dicts())
    report_of(evaluation)


@once
@given(data=st.data())
def test_a_damaged_run_is_refused(run_file, data):
    lines = run_file.read_text().splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    if data.draw(st.booleans()):
        changed = written(data.draw(mutated(json.loads(lines[number])))).encode()
    else:
        changed = data.draw(damaged(lines[number].encode()))
    path = run_file.with_name("damaged.jsonl")
    path.write_bytes(
        b"\n".join(changed if n == number else line.encode() for n, line in enumerate(lines))
    )
    taken_or_refused(lambda: _use_run(path))


# The store.

sqlalchemy = pytest.importorskip("sqlalchemy")

TABLES = {
    "records": ("refs", "data"), "texts": ("text", "tag"), "cells": ("data",),
    "runs": ("data",), "rows": ("refs", "data"),
}  # fmt: skip


@pytest.fixture(scope="module")
def full_store(tmp_path_factory):
    """A store with everything in it, as bytes."""
    path = tmp_path_factory.mktemp("stores") / "store.db"
    chunk = ctxeval.Chunk(0, "a", "document_id", "A is what was asked for.", 0.5, metadata={"k": 1})
    llm = ScriptedLLM(relevant={chunk.text})
    with ctxeval.Store(path) as store:
        reference = {"user_input": "q", "reference": "It is A. B.", "reference_context_ids": ["a"]}
        recorder = ctxeval.Recorder(BY_NAME, [reference], llm, store)
        stage = ctxeval.Retrieval("q", (chunk,), "Index")
        recorder.submit(0, 0, lambda: ctxeval.QueryRecord("1", "q", "A", retrievals=[stage]))
        assert recorder.flush(30)
        rows = [row.to_dict() for row in recorder.evaluation().rows]
        store.put_run("run", {"k": 4}, rows)
        store.put_unsent([("sink", "1")])
    return path.read_bytes()


@contextmanager
def fresh(content: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        path.write_bytes(content)
        yield path


def _use_store(path: Path) -> None:
    with ctxeval.Store(path) as store:
        for record in store.records():
            record.to_dict()
        for run in store.runs():
            list(run.rows())
        list(store.unsent("sink"))
        keys = [bytes([n]).hex() for n in range(3)]
        store.get_many(keys)
        store.export(path.with_suffix(".jsonl"))
        store.stats()
        store.prune()


@once
@given(data=st.data())
def test_damaged_rows_are_refused(full_store, data):
    with fresh(full_store) as path:
        _damage(path, data)
        taken_or_refused(lambda: _use_store(path))


def _damage(path, data):
    """Put something else in the place of what one cell of a table holds."""
    table = data.draw(st.sampled_from(sorted(TABLES)))
    column = data.draw(st.sampled_from(TABLES[table]))
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(f"SELECT rowid, {column} FROM ctxeval_{table}").fetchall()
        number, content = data.draw(st.sampled_from(found))
        changed = data.draw(st.one_of(damaged(content), _of_json(content), st.binary(max_size=9)))
        connection.execute(
            f"UPDATE ctxeval_{table} SET {column} = ? WHERE rowid = ?", (changed, number)
        )
        connection.commit()


def _of_json(content: bytes):
    try:
        value = json.loads(content)
    except ValueError:
        return st.nothing()
    return mutated(value).map(lambda one: written(one).encode())


@once
@given(data=st.data())
def test_a_damaged_file_is_refused(full_store, data):
    with fresh(data.draw(damaged(full_store))) as path:
        taken_or_refused(lambda: _use_store(path))


# Tables of Arrow.


def _arrow_types(pa):
    scalars = [
        pa.null(), pa.bool_(), pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(),
        pa.string(), pa.large_string(), pa.binary(), pa.date32(), pa.timestamp("us"),
        pa.dictionary(pa.int8(), pa.string()), pa.decimal128(9, 2),
    ]  # fmt: skip
    of = [
        *(pa.list_(one) for one in scalars),
        *(pa.large_list(one) for one in (pa.string(), pa.int64())),
        *(pa.map_(pa.string(), one) for one in (pa.int64(), pa.float64(), pa.string())),
        pa.list_(pa.string(), 2), pa.list_(pa.list_(pa.string())),
        pa.struct([("document", pa.string()), ("start", pa.int64()), ("end", pa.int64())]),
        pa.list_(
            pa.struct([("document", pa.string()), ("start", pa.int64()), ("end", pa.int64())])
        ),
        pa.struct([("a", pa.int64()), ("b", pa.int64())]),
    ]  # fmt: skip
    return [*scalars, *of]


WRITABLE = TEXTS.filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text))


def _cells(pa, kind):
    """Cells of a type: Arrow's own conversion is not what is tested."""
    types = pa.types
    if types.is_map(kind):
        pairs = st.tuples(WRITABLE, _cells(pa, kind.item_type))
        cells = st.lists(pairs, max_size=3)
    elif types.is_fixed_size_list(kind):
        cells = st.lists(_cells(pa, kind.value_type), min_size=2, max_size=2)
    elif types.is_list(kind) or types.is_large_list(kind):
        cells = st.lists(_cells(pa, kind.value_type), max_size=4)
    elif types.is_struct(kind):
        cells = st.fixed_dictionaries({one.name: _cells(pa, one.type) for one in kind})
    elif types.is_integer(kind):
        cells = st.integers(0, 9) if types.is_unsigned_integer(kind) else st.integers(-3, 9)
    elif types.is_floating(kind):
        cells = st.floats(width=32)
    elif types.is_boolean(kind):
        cells = st.booleans()
    elif types.is_binary(kind):
        cells = st.binary(max_size=3)
    elif types.is_date(kind):
        cells = st.dates()
    elif types.is_timestamp(kind):
        cells = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
    elif types.is_decimal(kind):
        cells = st.decimals(-9, 9, places=1)
    else:
        cells = st.none() if types.is_null(kind) else WRITABLE
    return st.one_of(st.none(), cells)


@once
@given(data=st.data())
def test_any_table_is_scored_or_refused(data):
    pa = pytest.importorskip("pyarrow")
    rows = data.draw(st.integers(0, 4))
    columns = {}
    for name in data.draw(
        st.lists(st.sampled_from([*NEARLY, "other"]), unique=True, min_size=1, max_size=5)
    ):
        kind = data.draw(st.sampled_from(_arrow_types(pa)))
        cells = [data.draw(_cells(pa, kind)) for _ in range(rows)]
        columns[name] = pa.array(cells, kind)
    table = pa.table(columns)
    metrics = data.draw(
        st.one_of(st.just("auto"), st.lists(st.sampled_from(BY_NAME[4:]), max_size=3))
    )
    errors = data.draw(st.sampled_from(["raise", "status"]))
    scored = taken_or_refused(lambda: ctxeval.score_table(table, metrics, errors=errors))
    if scored is not None:
        assert scored.num_rows == rows
        for name in scored.column_names[len(columns) :: 2]:
            values = scored.column(name).to_pylist()
            assert all(value is None or 0 <= value <= 1 for value in values)
            statuses = scored.column(f"{name}_status").to_pylist()
            assert [value is None for value in values] == [one != "scored" for one in statuses]


# The command line.

WORDS = st.one_of(
    TEXTS.filter(lambda text: "\0" not in text),
    st.sampled_from([
        "score", "show", "report", "worst", "compare", "gate", "store", "stats", "prune", "export",
        "resend", "run.jsonl", "samples.jsonl", "nowhere.jsonl", "store.db", "a:b", "json:dumps",
        "-m", "--metrics", "-o", "--output", "--minimum", "--max-drop", "--json", "--baseline",
        "-n", "--store", "--concurrency", "--min-coverage", "--dry-run", "--skip-bad", "--help",
        "ndcg@10", "reciprocal_rank", "ndcg@10=0.5", "=", "nan=nan", "-1", "0", "1e999", ".",
        "2026-01-31", "9999-12-31", "0001-01-01", "out.html", "out.parquet", "/", "postgresql://",
    ]),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_file, full_store):
    """A folder with samples, a run and a store."""
    made = tmp_path_factory.mktemp("command")
    (made / "run.jsonl").write_bytes(run_file.read_bytes())
    (made / "store.db").write_bytes(full_store)
    (made / "samples.jsonl").write_text(
        '{"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}\n'
    )
    return made


@once
@given(words=st.lists(WORDS, max_size=7))
def test_any_arguments_end_well_or_with_one_line(folder, words):
    pytest.importorskip("typer")
    pytest.importorskip("scipy")
    from typer.testing import CliRunner

    from ctxeval.commands import app

    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, (SystemExit, type(None))), repr(done.exception)
    assert done.exit_code in (0, 1, 2)
    assert "Traceback" not in done.output
