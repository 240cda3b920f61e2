from __future__ import annotations

import copy
import enum
import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxeval import IDBasedContextRecall, InvalidSampleError, Sample, Span
from ctxeval.fields import MAX_CLAIMS, as_id

TEXT_FIELDS = ("user_input", "response", "reference")
TEXTS_FIELDS = ("retrieved_contexts", "reference_contexts", "reference_claims")
ID_FIELDS = ("retrieved_context_ids", "reference_context_ids")
LIST_FIELDS = (*TEXTS_FIELDS, *ID_FIELDS, "retrieved_spans", "reference_spans")

UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


class Named(str, enum.Enum):  # noqa: UP042  # its str() is "Named.FIRST", a StrEnum's is not
    FIRST = "doc-1"


class NAType:
    """Like the value that pandas puts into empty cells."""

    def __repr__(self) -> str:
        return "<NA>"


def message_of(**fields: Any) -> str:
    with pytest.raises(InvalidSampleError) as raised:
        Sample(**fields)
    assert isinstance(raised.value, ValueError)
    return str(raised.value)


# What is accepted, and what becomes of it.


def test_every_field_is_optional() -> None:
    sample = Sample()
    assert {value for name, value in sample if name != "metadata"} == {None}
    assert sample.metadata == {}


@pytest.mark.parametrize(
    ("given_id", "text"),
    [
        pytest.param("doc_1", "doc_1", id="str"),
        pytest.param(" a ", " a ", id="str with blanks: as it is"),
        pytest.param("01", "01", id="zero-padded: as it is"),
        pytest.param("nan", "nan", id="the word nan"),
        pytest.param(7, "7", id="int"),
        pytest.param(0, "0", id="zero"),
        pytest.param(-3, "-3", id="negative int"),
        pytest.param(10**30, "1" + "0" * 30, id="long int"),
        pytest.param(7.0, "7", id="integral float"),
        pytest.param(-0.0, "0", id="negative zero"),
        pytest.param(1e22, "1" + "0" * 22, id="integral float in exponential notation"),
        pytest.param(1.5, "1.5", id="float"),
        pytest.param(UUID, "12345678-1234-5678-1234-567812345678", id="UUID"),
        pytest.param(Fraction(1, 3), "1/3", id="anything with a stable str"),
        pytest.param(np.int64(7), "7", id="numpy int64"),
        pytest.param(np.uint8(7), "7", id="numpy uint8"),
        pytest.param(np.float64(7), "7", id="numpy float64, integral"),
        pytest.param(np.float32(7), "7", id="numpy float32, integral"),
        pytest.param(np.float32(1.5), "1.5", id="numpy float32"),
        pytest.param(np.str_("a"), "a", id="numpy str"),
        pytest.param(np.timedelta64(1, "D"), "1 days", id="numpy timedelta64"),
        pytest.param(Named.FIRST, "doc-1", id="str enum: its value"),
        pytest.param(enum.IntEnum("Number", {"SEVEN": 7}).SEVEN, "7", id="int enum: its value"),
    ],
)
def test_ids_are_kept_as_text(given_id: object, text: str) -> None:
    sample = Sample(
        id=given_id, retrieved_context_ids=[given_id], reference_context_ids={given_id: 1}
    )
    assert sample.id == text
    assert sample.retrieved_context_ids == (text,)
    assert sample.reference_context_ids == {text: 1}
    assert Span(given_id, 0, 1).document == text
    assert all(type(name) is str for name in (sample.id, *sample.retrieved_context_ids))


@pytest.mark.parametrize("field", ID_FIELDS)
@pytest.mark.parametrize(
    ("given_ids", "kept"),
    [
        pytest.param([], (), id="nothing"),
        pytest.param(("a", "b"), ("a", "b"), id="tuple"),
        pytest.param(dict.fromkeys("ab").keys(), ("a", "b"), id="keys of a dict"),
        pytest.param(np.array(["a", "b"]), ("a", "b"), id="array of str"),
        pytest.param(np.array([3, 1]), ("3", "1"), id="array of int"),
        pytest.param(np.array([3.0, 1.0]), ("3", "1"), id="array of float"),
        pytest.param(np.array(["a", 1], dtype=object), ("a", "1"), id="array of objects"),
        pytest.param([1, "1", 1.0], ("1", "1", "1"), id="mixed types"),
        pytest.param(range(3), ("0", "1", "2"), id="range"),
    ],
)
def test_any_iterable_of_ids_is_a_list(
    field: str, given_ids: object, kept: tuple[str, ...]
) -> None:
    assert getattr(Sample(**{field: given_ids}), field) == kept


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_set_is_no_ranking(kind: type) -> None:
    assert Sample(reference_context_ids=kind("a")).reference_context_ids == ("a",)
    for field in ("retrieved_context_ids", "retrieved_contexts"):
        with pytest.raises(InvalidSampleError, match=rf"{field}: .* is a set, whose order means"):
            Sample(**{field: kind("a")})


@pytest.mark.parametrize("field", TEXTS_FIELDS)
@pytest.mark.parametrize(
    "given_texts",
    [
        pytest.param(["one", "two"], id="list"),
        pytest.param(("one", "two"), id="tuple"),
        pytest.param(np.array(["one", "two"]), id="array"),
        pytest.param({"one": 1, "two": 2}.keys(), id="keys of a dict"),
    ],
)
def test_any_iterable_of_texts_is_a_list(field: str, given_texts: object) -> None:
    assert getattr(Sample(**{field: given_texts}), field) == ("one", "two")


@pytest.mark.parametrize("field", LIST_FIELDS)
def test_a_generator_is_read_once(field: str) -> None:
    def items() -> Iterator[object]:
        yield Span("a", 0, 1) if field.endswith("spans") else "a"

    sample = Sample(**{field: items()})
    assert len(getattr(sample, field)) == len(getattr(sample, field)) == 1


def test_blank_texts_are_kept() -> None:
    assert Sample(retrieved_contexts=["", " "], reference="").retrieved_contexts == ("", " ")


@pytest.mark.parametrize(
    ("grades", "kept"),
    [
        pytest.param({"a": 2, "b": 0, "c": -1}, {"a": 2, "b": 0, "c": -1}, id="int"),
        pytest.param({"a": 2.0}, {"a": 2}, id="integral float"),
        pytest.param({"a": np.int64(2), "b": np.float32(3)}, {"a": 2, "b": 3}, id="numpy"),
        pytest.param({1: 2, "1": 2}, {"1": 2}, id="twice with one grade"),
        pytest.param({}, {}, id="nothing"),
    ],
)
def test_grades_are_integers(grades: dict[object, object], kept: dict[str, int]) -> None:
    sample = Sample(reference_context_ids=grades)
    assert sample.reference_context_ids == kept
    assert all(type(grade) is int for grade in sample.reference_context_ids.values())


def test_spans_are_given_as_spans_or_as_dicts() -> None:
    sample = Sample(
        retrieved_spans=[{"document": 7, "start": 0, "end": 5}, Span("b", 3, 3)],
        reference_spans=[{"document": "b", "start": np.int64(1), "end": np.int64(2)}],
    )
    assert sample.retrieved_spans == (Span("7", 0, 5), Span("b", 3, 3))
    assert sample.reference_spans == (Span(document="b", start=1, end=2),)
    assert type(sample.reference_spans[0].start) is int


@given(st.one_of(st.text(min_size=1), st.integers(), st.uuids(), st.fractions()))
def test_an_id_is_its_own_text(value: object) -> None:
    assert as_id(value) == str(value)
    assert as_id(as_id(value)) == as_id(value)


@given(st.integers(-(2**53), 2**53))
def test_integral_floats_equal_their_integers(value: int) -> None:
    assert as_id(float(value)) == as_id(value) == as_id(np.float64(value))


# What is refused: the message names the field, the value and the remedy.


@pytest.mark.parametrize("field", ID_FIELDS)
@pytest.mark.parametrize(
    ("bad", "value", "remedy"),
    [
        pytest.param(None, "None is no id", "give a str or an int", id="None"),
        pytest.param("", "'' is no id", "leave it out", id="empty str"),
        pytest.param(np.str_(""), "'' is no id", "leave it out", id="empty numpy str"),
        pytest.param(True, "True is no id", "give a str or an int", id="True"),
        pytest.param(np.True_, "True", "give a str or an int", id="numpy True"),
        pytest.param(b"a", "b'a' is no id", "give a str or an int", id="bytes"),
        pytest.param(bytearray(b"a"), "bytearray(b'a')", "give a str or an int", id="bytearray"),
        pytest.param(float("nan"), "nan is no id", "empty", id="NaN"),
        pytest.param(np.float32("nan"), "nan", "empty", id="numpy NaN"),
        pytest.param(Decimal("NaN"), "NaN", "empty", id="decimal NaN"),
        pytest.param(float("inf"), "inf is no id", "empty", id="infinity"),
        pytest.param(NAType(), "<NA> is no id", "empty", id="NA of pandas"),
        pytest.param(object(), "<object object at", "different in every run", id="object()"),
        pytest.param(lambda: 0, "<lambda>", "different in every run", id="function"),
    ],
)
def test_what_is_no_id(field: str, bad: object, value: str, remedy: str) -> None:
    message = message_of(**{field: ["a", bad]})
    assert message.startswith(f"{field}[1]: ")
    assert value in message
    assert remedy in message
    graded = message_of(reference_context_ids={"a": 1, bad: 1} if bad.__hash__ else [bad])
    assert graded.startswith("reference_context_ids")
    assert value in graded
    if bad is not None:
        assert message_of(id=bad).startswith("id: ")
    with pytest.raises(InvalidSampleError, match=r"^Span\.document: "):
        Span(bad, 0, 1)


@pytest.mark.parametrize("field", LIST_FIELDS)
@pytest.mark.parametrize(
    ("bad", "value"),
    [
        pytest.param("abc", "'abc' is one string", id="a string"),
        pytest.param(b"abc", "b'abc' is a bytes", id="bytes"),
        pytest.param(7, "7 is a int", id="a number"),
        pytest.param(float("nan"), "nan is a float", id="NaN, as from an empty cell"),
    ],
)
def test_what_is_no_list(field: str, bad: object, value: str) -> None:
    message = message_of(**{field: bad})
    assert message.startswith(f"{field}: {value}: ")
    assert "list of" in message


@pytest.mark.parametrize("field", [name for name in LIST_FIELDS if name != ID_FIELDS[1]])
def test_only_the_expected_ids_may_be_a_mapping(field: str) -> None:
    assert message_of(**{field: {"a": 1}}).startswith(f"{field}: {{'a': 1}} is a dict: give a list")


@pytest.mark.parametrize("field", TEXTS_FIELDS)
@pytest.mark.parametrize("bad", [None, 1, 1.5, b"a", ["a"], float("nan")])
def test_what_is_no_text_in_a_list(field: str, bad: object) -> None:
    message = message_of(**{field: ["a", bad]})
    assert message.startswith(f"{field}[1]: {bad!r} is a {type(bad).__name__}: give its text")


def test_a_document_in_place_of_its_text() -> None:
    class Document:
        page_content = "text"

    message = message_of(retrieved_contexts=[Document()])
    assert message.startswith("retrieved_contexts[0]: ")
    assert message.endswith("give its text (of a Document, its page_content)")


@pytest.mark.parametrize("field", TEXT_FIELDS)
@pytest.mark.parametrize("bad", [1, b"a", ["a"], float("nan")])
def test_what_is_no_text(field: str, bad: object) -> None:
    message = message_of(**{field: bad})
    assert message == f"{field}: {bad!r} is a {type(bad).__name__}: give a string"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            {"retrieved_contexts": ["a", "b"], "retrieved_context_ids": ["1"]},
            "retrieved_contexts has 2, retrieved_context_ids has 1",
            id="texts and ids",
        ),
        pytest.param(
            {"retrieved_context_ids": ["1"], "retrieved_spans": []},
            "retrieved_context_ids has 1, retrieved_spans has 0",
            id="ids and spans",
        ),
        pytest.param(
            {"reference_contexts": [], "reference_context_ids": {"a": 1}},
            "reference_contexts has 0, reference_context_ids has 1",
            id="texts and graded ids",
        ),
        pytest.param(
            {
                "reference_contexts": ["a"],
                "reference_context_ids": ["1"],
                "reference_spans": [Span("1", 0, 1), Span("1", 2, 3)],
            },
            "reference_contexts has 1, reference_context_ids has 1, reference_spans has 2",
            id="all three",
        ),
    ],
)
def test_lists_that_run_in_parallel_have_one_length(fields: dict[str, Any], message: str) -> None:
    assert f"{message}: they run in parallel, so give each the same length" in message_of(**fields)


def test_lists_of_different_sides_differ_in_length() -> None:
    sample = Sample(
        retrieved_contexts=["a", "b"], reference_context_ids=["1"], reference_claims=["x", "y", "z"]
    )
    assert (len(sample.retrieved_contexts), len(sample.reference_context_ids)) == (2, 1)


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        pytest.param("retrieved_context", "'retrieved_contexts'", id="singular"),
        pytest.param("Reference", "'reference'", id="capital"),
        pytest.param("question", "'user_input'", id="another library's question"),
        pytest.param("answer", "'response'", id="another library's answer"),
        pytest.param("contexts", "'retrieved_contexts'", id="another library's contexts"),
        pytest.param("ground_truth", "'reference'", id="another library's reference"),
        pytest.param("xyz", "it is one of id, metadata, reference", id="nothing near"),
    ],
)
def test_an_unknown_field(field: str, hint: str) -> None:
    message = message_of(**{field: "x"})
    assert message.startswith(f"unknown field {field!r}: ")
    assert hint in message


def test_every_wrong_field_is_named_at_once() -> None:
    message = message_of(user_input=1, retrieved_contexts="x", extra=2)
    for clause in ("user_input: 1 ", "retrieved_contexts: 'x' ", "unknown field 'extra'"):
        assert clause in message


@pytest.mark.parametrize(
    "grade", [1.5, "1", None, True, float("nan"), float("inf"), np.float64(0.5)]
)
def test_a_grade_that_is_no_integer(grade: object) -> None:
    message = message_of(reference_context_ids={"a": 1, "b": grade})
    assert message.startswith("reference_context_ids['b']: the grade ")
    assert f"{grade!r} is no integer" in message


def test_one_id_with_two_grades() -> None:
    message = message_of(reference_context_ids={1: 1, "1": 2})
    assert message == ("reference_context_ids['1']: '1' stands there twice with different grades")


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        pytest.param(-1, 2, "Span.start: -1 is no character position", id="negative"),
        pytest.param(0, 1.5, "Span.end: 1.5 is no character position", id="fraction"),
        pytest.param(True, 2, "Span.start: True is no character position", id="boolean"),
        pytest.param("0", 2, "Span.start: '0' is no character position", id="text"),
        pytest.param(0, None, "Span.end: None is no character position", id="None"),
        pytest.param(3, 2, "Span: end 2 precedes start 3", id="exchanged"),
    ],
)
@pytest.mark.parametrize("side", ["retrieved_spans", "reference_spans"])
def test_what_is_no_span(side: str, start: Any, end: Any, message: str) -> None:
    with pytest.raises(InvalidSampleError) as raised:
        Span("a", start, end)
    assert str(raised.value).startswith(message)
    spans = [Span("a", 0, 1), {"document": "a", "start": start, "end": end}]
    assert message_of(**{side: spans}).startswith(f"{side}[1]: {message}")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"document": "a", "start": 0}, id="no end"),
        pytest.param({"document": "a", "start": 0, "end": 1, "page": 3}, id="one key too many"),
        pytest.param(("a", 0, 1), id="tuple"),
        pytest.param("a:0-1", id="text"),
    ],
)
def test_what_has_not_the_form_of_a_span(bad: object) -> None:
    message = message_of(retrieved_spans=[Span("a", 0, 1), bad])
    assert message.startswith("retrieved_spans[1]: ")
    assert "document" in message


def test_too_many_claims() -> None:
    assert Sample(reference_claims=["claim"] * MAX_CLAIMS)
    message = message_of(reference_claims=["claim"] * (MAX_CLAIMS + 1))
    assert message == "reference_claims: 31 claims are too many: give at most 30"


def test_a_blank_claim() -> None:
    message = message_of(reference_claims=["claim", " \n"])
    assert message == "reference_claims[1]: the claim is blank: leave it out"


def test_metadata_is_a_mapping() -> None:
    assert message_of(metadata=["a"]) == "metadata: ['a'] is a list: give a dict"
    assert Sample(metadata=None).metadata == {}


def test_metadata_is_not_shared() -> None:
    given = {"a": 1}
    sample = Sample(metadata=given)
    given["a"] = 2
    assert sample.metadata == {"a": 1}
    assert Sample().metadata is not Sample().metadata


# A sample does not change.


@pytest.mark.parametrize("name", [*Sample.model_fields, "anything"])
def test_assignment_is_refused(name: str) -> None:
    sample = Sample()
    with pytest.raises(InvalidSampleError, match=rf"Sample\.{name}.*model_copy"):
        setattr(sample, name, "x")
    with pytest.raises(InvalidSampleError, match=rf"Sample\.{name}.*model_copy"):
        delattr(sample, name)
    assert sample == Sample()


def test_a_copy_may_differ() -> None:
    sample = Sample(retrieved_context_ids=["a"], reference_context_ids={"a": 2}, metadata={"k": 1})
    changed = sample.model_copy(update={"retrieved_context_ids": [1, 2]})
    assert changed.retrieved_context_ids == ("1", "2")
    assert changed.reference_context_ids == {"a": 2}
    assert sample.retrieved_context_ids == ("a",)
    assert sample.model_copy() == sample


@pytest.mark.parametrize(
    ("update", "message"),
    [
        pytest.param({"retrieved_contexts": "x"}, "one string", id="wrong type"),
        pytest.param({"retrieved_contexts": ["x", "y"]}, "run in parallel", id="wrong length"),
        pytest.param({"retrieved": []}, "unknown field 'retrieved'", id="unknown field"),
    ],
)
def test_a_copy_is_checked(update: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSampleError, match=message):
        Sample(retrieved_context_ids=["a"]).model_copy(update=update)


# Sample.of


def test_of_takes_samples_mappings_and_keywords() -> None:
    sample = Sample(user_input="q")
    assert Sample.of(sample) is sample
    assert Sample.of({"user_input": "q"}) == Sample.of(user_input="q") == sample


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        pytest.param(7, "7 is a int: give a Sample or a dict", id="a number"),
        pytest.param([("user_input", "q")], "is a list: give a Sample or a dict", id="a list"),
        pytest.param({"user_inputs": "q"}, "did you mean 'user_input'", id="an unknown field"),
        pytest.param({None: ["cell"]}, "unknown field 'None'", id="a row with a cell too many"),
    ],
)
def test_of_refuses_anything_else(argument: Any, message: str) -> None:
    with pytest.raises(InvalidSampleError, match=message):
        Sample.of(argument)


def test_of_takes_either_a_sample_or_fields() -> None:
    with pytest.raises(InvalidSampleError, match=r"fields \(user_input\).*give either"):
        Sample.of(Sample(), user_input="q")


# Identity.

FULL: dict[str, Any] = {
    "user_input": "Where?",
    "retrieved_contexts": ["one", "two"],
    "retrieved_context_ids": [1, "b"],
    "retrieved_spans": [Span("d", 0, 3), Span("e", 1, 2)],
    "response": "Here.",
    "reference": "There.",
    "reference_contexts": ["three"],
    "reference_context_ids": {"c": 2},
    "reference_spans": [Span("d", 5, 9)],
    "reference_claims": ["It is there."],
    "metadata": {"topic": "places", "number": 3},
}
OTHER: dict[str, Any] = {
    "user_input": "When?",
    "retrieved_contexts": ["two", "one"],
    "retrieved_context_ids": ["b", 1],
    "retrieved_spans": [Span("e", 1, 2), Span("d", 0, 3)],
    "response": "Now.",
    "reference": "Then.",
    "reference_contexts": ["four"],
    "reference_context_ids": {"c": 1},
    "reference_spans": [Span("d", 5, 8)],
    "reference_claims": ["It was then."],
    "metadata": {},
}
DECIDES = {name: name.startswith(("user_input", "reference")) for name in FULL}


def test_its_own_id_is_the_key() -> None:
    assert Sample(id=7, user_input="q").key == "7"


@pytest.mark.parametrize("field", FULL)
def test_the_key_depends_on_question_and_expectation_only(field: str) -> None:
    sample = Sample(**FULL)
    changed = sample.model_copy(update={field: OTHER[field]})
    emptied = sample.model_copy(update={field: None})
    assert (changed.key != sample.key) == DECIDES[field]
    assert (emptied.key != sample.key) == DECIDES[field]


def test_the_key_does_not_depend_on_how_it_is_written() -> None:
    one, two = {"a": 1, "b": 2}, {"b": 2.0, "a": 1}
    assert Sample(reference_context_ids=one).key == Sample(reference_context_ids=two).key
    assert Sample(reference_context_ids=[1]).key == Sample(reference_context_ids=("1",)).key
    assert Sample(reference_context_ids=["1"]).key != Sample(reference_contexts=["1"]).key
    assert Sample(reference="").key != Sample().key


def test_the_key_is_the_same_in_every_process() -> None:
    code = (
        "from ctxeval import Sample\n"
        "ids = {f'doc-{n}': n for n in range(20)}\n"
        "print(Sample(user_input='Where is Café?', reference_context_ids=ids).key)"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    ids = {f"doc-{n}": n for n in range(20)}
    here = Sample(user_input="Where is Café?", reference_context_ids=ids).key
    assert keys == {f"{here}\n"}


@pytest.mark.parametrize("fields", [{}, FULL, {"id": "x", "user_input": "q"}])
def test_equality_and_hash(fields: dict[str, Any]) -> None:
    sample = Sample(**fields)
    assert sample == Sample(**fields)
    assert hash(sample) == hash(Sample(**fields))
    assert len({sample, Sample(**fields)}) == 1
    assert sample != sample.model_copy(update={"response": "different"})


@pytest.mark.parametrize("fields", [{}, FULL, {"id": "x", "reference_context_ids": [1, 2]}])
def test_a_sample_can_be_kept_and_sent(fields: dict[str, Any]) -> None:
    sample = Sample(**fields)
    for again in (
        pickle.loads(pickle.dumps(sample)),
        copy.copy(sample),
        copy.deepcopy(sample),
        Sample(**sample.model_dump()),
        Sample.model_validate_json(sample.model_dump_json()),
    ):
        assert again == sample
        assert again.key == sample.key
        assert type(again) is Sample


def test_what_comes_back_from_json_scores_alike() -> None:
    sample = Sample(retrieved_context_ids=[1, 2], reference_context_ids={1: 1, 3: 2})
    again = Sample.model_validate_json(sample.model_dump_json())
    assert IDBasedContextRecall().score(again).value == 0.5
