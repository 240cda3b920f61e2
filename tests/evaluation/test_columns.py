"""A table's columns hold what its rows would get one by one, to the last bit."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxeval
from ctxeval import Sample
from ctxeval.evaluation.columns import by_id as columns_by_id
from ctxeval.evaluation.columns import ids as columns_ids
from ctxeval.evaluation.columns import score_table
from ctxeval.judges.similarity import NamedMatcher
from ctxeval.scoring import score_all

IDS = [
    "id_based_context_precision",
    "id_based_context_recall",
    "hit_rate",
    "hit_rate@3",
    "reciprocal_rank",
    "reciprocal_rank@2",
    "precision@1",
    "precision@5",
    "recall@1",
    "recall@4",
    "ndcg",
    "ndcg@3",
    "average_precision",
    "average_precision@3",
    "average_precision[retrieved]",
    "average_precision@2[retrieved]",
]
TEXTS = [
    "non_llm_context_precision_with_reference",
    "non_llm_context_recall",
    "hit_rate@2[text]",
    "ndcg@3[text]",
    "recall@2[text]",
    "average_precision[text]",
]

LONG = "https://example.org/documents/2024/"
STRINGS = st.sampled_from(
    [
        *("a", "b", "ab", "a\0", "\0", "1", "01", "é", "e\u0301", "🙂" * 5),
        *("1234567", "12345678", "123456789", "0123456789abcdef", "0123456789abcdefg"),
        *(f"{LONG}1", f"{LONG}2", f"{LONG}1?part=1", f"{LONG}2?part=1"),
        *("f" * 64, "f" * 63 + "g", "g" + "f" * 63, "f" * 65),
    ]
)
INTEGERS = st.sampled_from([0, 1, -1, 2, 10, 2**31, 2**32, 2**32 + 1, 2**62, -(2**63), 2**63 - 1])
GRADES = st.integers(-1, 3)


def lists(items, **limits):
    return st.none() | st.lists(items, max_size=9, **limits)


def tables(items):
    """Rows of retrieved ids and of expected ones, graded or not."""
    graded = st.none() | st.dictionaries(items, GRADES, max_size=5)
    return st.one_of(st.just(lists(items)), st.just(graded)).flatmap(
        lambda cells: st.lists(st.tuples(lists(items), cells), max_size=12)
    )


LIST_TYPES = st.sampled_from([pa.list_, pa.large_list])
STRING_TYPES = st.sampled_from(
    [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
INTEGER_TYPES = st.sampled_from([pa.int64(), pa.dictionary(pa.int32(), pa.int64())])


@st.composite
def layouts(draw, rows, types):
    """Lay rows out in Arrow: types of lists and of ids, graded or not, chunks and slices."""
    cut = draw(st.integers(0, len(rows)))
    chunks = []
    kinds = [draw(LIST_TYPES)(draw(types)) for _ in range(2)]
    if any(isinstance(expected, dict) for _, expected in rows):
        key = draw(types)
        kinds[1] = pa.map_(key.value_type if pa.types.is_dictionary(key) else key, pa.int64())
    before = draw(st.integers(0, 2))
    for part in (rows[:cut], rows[cut:]):
        columns = []
        for side, kind in enumerate(kinds):
            cells = [row[side] for row in part]
            cells = [list(c.items()) if isinstance(c, dict) else c for c in cells]
            padding = [None, [], None][:before]
            columns.append(pa.array(padding + cells, kind).slice(before))
        chunks.append(columns)
    names = ["retrieved_context_ids", "reference_context_ids"]
    return pa.table(
        {name: pa.chunked_array([c[i] for c in chunks]) for i, name in enumerate(names)}
    )


def row_by_row(rows, metrics):
    samples = [Sample(**row) for row in rows]
    return score_all(
        samples, [ctxeval.metric_by_name(m) if isinstance(m, str) else m for m in metrics]
    )


def assert_equal(table, rows, metrics):
    expected = row_by_row(rows, metrics)
    names = list(expected[0]) if rows else []
    for name in names:
        of_metric = [results[name] for results in expected]
        assert table.column(name).to_pylist() == [one.value for one in of_metric], name
        statuses = table.column(f"{name}_status").to_pylist()
        assert statuses == [one.status for one in of_metric], name


def fields(rows):
    names = ("retrieved_context_ids", "reference_context_ids")
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.fixture(params=["all by columns", "few rows alone"])
def way(request, monkeypatch):
    if request.param == "all by columns":
        monkeypatch.setattr(columns_by_id, "FEW", 10**9)


same_way = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(same_way, max_examples=100)
@given(st.data())
def test_ids_that_are_strings(way, data):
    rows = data.draw(tables(STRINGS))
    table = data.draw(layouts(rows, STRING_TYPES))
    assert_equal(score_table(table, IDS), fields(rows), IDS)


@settings(same_way, max_examples=100)
@given(st.data())
def test_ids_that_are_integers(way, data):
    rows = data.draw(tables(INTEGERS))
    table = data.draw(layouts(rows, INTEGER_TYPES))
    assert_equal(score_table(table, IDS), fields(rows), IDS)


@settings(max_examples=150)
@given(st.data())
def test_no_collision_of_fingerprints_changes_a_value(data):
    items, types = data.draw(
        st.sampled_from([(STRINGS, STRING_TYPES), (INTEGERS, INTEGER_TYPES)]), label="ids"
    )
    rows = data.draw(tables(items))
    table = data.draw(layouts(rows, types))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_by_id, "FEW", 10**9)
        patch.setattr(columns_ids, "mixed", lambda words, *_: (words[0] % 3).astype(np.uint32))
        assert_equal(score_table(table, IDS), fields(rows), IDS)


WORDS = st.sampled_from(["abcd", "abce", "abxy", "abxyz", "a", "é", "", " ", "\u3000", "b" * 70])


@settings(max_examples=100)
@given(st.data())
def test_texts(data):
    rows = data.draw(st.lists(st.tuples(lists(WORDS), lists(WORDS)), max_size=9))
    table = data.draw(layouts(rows, STRING_TYPES))
    table = table.rename_columns(["retrieved_contexts", "reference_contexts"])
    names = ("retrieved_contexts", "reference_contexts")
    asked = data.draw(st.lists(st.sampled_from(TEXTS), min_size=1, unique=True))
    assert_equal(
        score_table(table, asked), [dict(zip(names, row, strict=True)) for row in rows], asked
    )


def test_no_two_texts_are_compared_twice_nor_in_vain(monkeypatch):
    compared = []
    similar = NamedMatcher.similar

    def recording(self, references, chunks, **options):
        compared.extend(zip(references, chunks, strict=True))
        return similar(self, references, chunks, **options)

    monkeypatch.setattr(NamedMatcher, "similar", recording)
    table = pa.table(
        {
            "retrieved_contexts": [["aaaa", "bbbx", "cccc", " "]],
            "reference_contexts": [["aaaa", "bbbb", "bbby", "zzzz", ""]],
        }
    )
    metrics = ["non_llm_context_precision_with_reference", "non_llm_context_recall"]
    scored = score_table(table, metrics)
    assert scored.column(metrics[1]).to_pylist() == [3 / 5]
    # The first chunk and the first reference are equal; the second of each match. The third
    # chunk matches none; the third and fourth references are left to be found.
    of_chunks = [("aaaa", "bbbx"), ("bbbb", "bbbx")]
    of_chunks += [(one, "cccc") for one in ("aaaa", "bbbb", "bbby", "zzzz")]
    of_references = [("bbby", "aaaa"), ("bbby", "bbbx"), ("zzzz", "aaaa"), ("zzzz", "bbbx")]
    assert sorted(compared) == sorted(of_chunks + of_references)
