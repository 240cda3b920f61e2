"""Every value that Ragas 0.4.3 gave for these cases is ours too, or stands in a table.

The files in tests/golden hold what Ragas returned or raised. `docs/ragas.md` tells users of
the same differences, under the same keys.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ctxeval import (
    ContextPrecision,
    ContextRecall,
    ContextUtilization,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    InvalidSampleError,
    Metric,
    MissingFieldError,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    Sample,
    ragas,
)
from ctxeval.judges.similarity import NamedMatcher
from ctxeval.testing import ScriptedLLM

TESTS = Path(__file__).parent.parent
Case = tuple[str, int]
Outcome = float | str | type[Exception]
"""A number, a result's status, or what is raised."""


def revived(value: Any) -> Any:
    """Make what the files mark as a Python type."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        kinds: dict[str, Callable[[Any], Any]] = {
            "$tuple": tuple,
            "$set": set,
            "$uuid": uuid.UUID,
        }
        return kinds[kind](revived(content)) if kind in kinds else value
    return [revived(item) for item in value] if isinstance(value, list) else value


GOLDEN: dict[Case, dict[str, Any]] = {
    (path.stem.removeprefix("ragas_"), number): case
    for path in sorted((TESTS / "golden").glob("ragas_*.json"))
    for number, case in enumerate(json.loads(path.read_text())["cases"])
}

MISSING = dict.fromkeys([("id_based", n) for n in (9, 10, 11)], MissingFieldError)
MALFORMED = dict.fromkeys(
    [
        *[("id_based", n) for n in (29, 32, 33)],
        *[("non_llm", n) for n in (33, 34, 35, 36)],
        *[("string_similarity", n) for n in (5, 10, 17, 22)],
    ],
    InvalidSampleError,
)
DIFFERENCES: dict[str, dict[Case, Outcome]] = {
    "inclusive-threshold": {("non_llm", 24): 1.0, ("non_llm", 40): 1.0, ("non_llm", 41): 1.0},
    # Jaro of abcd and abxy is (2/4 + 2/4 + 2/2) / 3, below our 0.8.
    "default-threshold": {("non_llm", 43): 0.0, ("non_llm", 45): 0.0},
    "measure-argument": {("non_llm", 42): 0.0, ("non_llm", 44): 1.0, ("non_llm", 46): 1.0},
    "nothing-expected": {("non_llm", 13): "undefined", ("non_llm", 14): "undefined"},
    "nothing-retrieved": {("non_llm", 11): 0.0},
    "missing-field": MISSING
    | dict.fromkeys([("non_llm", n) for n in (15, 16, 17)], MissingFieldError),
    "malformed-sample": MALFORMED,
    "blank-text": {("non_llm", 23): "undefined"},
    "empty-id": {("id_based", 34): InvalidSampleError},
    "boolean-id": {("id_based", 28): InvalidSampleError},
    "fraction-id": {("id_based", 26): 0.0, ("id_based", 27): 0.0},
    "uuid-id": {("id_based", 37): 1.0},
    "unordered-ids": {("id_based", 31): InvalidSampleError},
}
_LISTED = {case for cases in DIFFERENCES.values() for case in cases}
DIFFERENCES["exact-one"] = {
    case: 1.0
    for case, golden in GOLDEN.items()
    if golden["value"] is not None and 1 - 1e-9 < golden["value"] < 1 and case not in _LISTED
}
_LISTED |= DIFFERENCES["exact-one"].keys()

METRICS: dict[str, type[Metric]] = {
    "id_based_context_recall": IDBasedContextRecall,
    "id_based_context_precision": IDBasedContextPrecision,
    "non_llm_context_recall": NonLLMContextRecall,
    "non_llm_context_precision_with_reference": NonLLMContextPrecisionWithReference,
}
MEASURES: dict[str, dict[str, Any]] = {
    "NonLLMStringSimilarity()": {},
    "DistanceMeasure.JARO": {"distance_measure": "jaro"},
    "NonLLMStringSimilarity(DistanceMeasure.JARO)": {"distance_measure": "jaro"},
    "StringPresence()": {
        "distance_measure": lambda reference, chunk: float(chunk in reference),
        "threshold": 0.5,
    },
}


def options_of(golden: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in golden["input"].get("init", {}).items():
        options |= MEASURES[value] if "distance_measure" in name else {name: value}
    return options


def fields_of(golden: dict[str, Any]) -> dict[str, Any]:
    fields = {name: revived(value) for name, value in golden["input"].items()}
    return {name: value for name, value in fields.items() if name not in ("init", "verdicts")}


def outcome(golden: dict[str, Any]) -> Outcome:
    """Say what ctxeval makes of a case."""
    try:
        if golden["metric"] == "non_llm_string_similarity":
            measure = golden["input"]["init"]["distance_measure"].lower()
            texts = golden["input"]["reference"], golden["input"]["response"]
            Sample(reference_contexts=texts)
            ((_, similarity),) = NamedMatcher(measure, 0.0)(texts[0], [texts[1]])
            return similarity
        metric = METRICS[golden["metric"]](**options_of(golden))
        result = metric.score(fields_of(golden))
    except ValueError as error:
        return type(error)
    return result.status if result.value is None else result.value


def named(cases: dict[Case, dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(case, id=f"{case[0]} {case[1]}: {golden['note']}")
        for case, golden in cases.items()
    ]


def test_the_files_are_there() -> None:
    assert len(GOLDEN) == 10 + 38 + 47 + 23


@pytest.mark.parametrize(
    "case", named({case: golden for case, golden in GOLDEN.items() if case not in _LISTED})
)
def test_agrees(case: Case) -> None:
    golden = GOLDEN[case]
    assert golden["raises"] is None
    assert outcome(golden) == pytest.approx(golden["value"], abs=1e-9)


@pytest.mark.parametrize(
    ("key", "case"),
    [
        pytest.param(key, case, id=f"{key}, {case}")
        for key in DIFFERENCES
        for case in DIFFERENCES[key]
    ],
)
def test_differs_as_documented(key: str, case: Case) -> None:
    ours = outcome(GOLDEN[case])
    assert ours == DIFFERENCES[key][case]
    assert ours != GOLDEN[case]["value"]


@pytest.mark.parametrize(
    "case",
    named({case: golden for case, golden in GOLDEN.items() if "exact average" in golden["note"]}),
)
def test_average_precision_is_exact(case: Case) -> None:
    golden = GOLDEN[case]
    exact = Fraction(golden["note"].rpartition("exact average precision ")[2])
    result = NonLLMContextPrecisionWithReference().score(fields_of(golden))
    assert result.value == pytest.approx(float(exact), abs=1e-15)
    assert (result.value == 1) == (exact == 1)
    if "verdicts" in golden["input"]:
        assert result.verdicts is not None
        assert result.verdicts.relevant() == golden["input"]["verdicts"]


@pytest.mark.parametrize("case", DIFFERENCES["default-threshold"])
def test_with_their_threshold_other_measures_agree(case: Case) -> None:
    golden = GOLDEN[case]
    options = options_of(golden)
    older = getattr(ragas, METRICS[golden["metric"]].__name__)(**options)
    newer = METRICS[golden["metric"]](**options, threshold=0.5)
    for metric in (older, newer):
        value = metric.score(fields_of(golden)).value
        assert value == pytest.approx(golden["value"], abs=1e-9)


def test_each_case_differs_for_one_reason() -> None:
    assert sum(map(len, DIFFERENCES.values())) == len(_LISTED)
    assert all(DIFFERENCES.values())


def test_the_documents_list_the_same_differences() -> None:
    text = (TESTS.parent / "docs" / "ragas.md").read_text()
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)) == sorted(DIFFERENCES)


# The examples on Ragas' own pages.

PARIS = "Paris is the capital of France."
TOWER = "The Eiffel Tower is located in Paris."
GATE = "The Brandenburg Gate is located in Berlin."
LANDMARK = "The Eiffel Tower is one of the most famous landmarks in Paris."
ASKED = {"user_input": "Where is the Eiffel Tower located?"}
LLM = ScriptedLLM(relevant={TOWER}, supported={TOWER: {PARIS}})
EXPECTED_IDS = {"reference_context_ids": ["doc_1", "doc_4", "doc_5", "doc_6"]}


@pytest.mark.parametrize(
    ("metric", "fields", "expected"),
    [
        pytest.param(
            ContextRecall(LLM),
            ASKED | {"retrieved_contexts": [PARIS], "reference": TOWER},
            1.0,
            id="context recall",
        ),
        pytest.param(
            ContextPrecision(LLM),
            ASKED | {"retrieved_contexts": [TOWER, GATE], "reference": TOWER},
            1.0,
            id="context precision, relevant first",
        ),
        pytest.param(
            ContextPrecision(LLM),
            ASKED | {"retrieved_contexts": [GATE, TOWER], "reference": TOWER},
            0.5,
            id="context precision, relevant second",
        ),
        pytest.param(
            ContextUtilization(LLM),
            ASKED | {"retrieved_contexts": [TOWER, GATE], "response": TOWER},
            1.0,
            id="context utilization, relevant first",
        ),
        pytest.param(
            ContextUtilization(LLM),
            ASKED | {"retrieved_contexts": [GATE, TOWER], "response": TOWER},
            0.5,
            id="context utilization, relevant second",
        ),
        pytest.param(
            NonLLMContextRecall(),
            {"retrieved_contexts": [PARIS], "reference_contexts": [PARIS, LANDMARK]},
            0.5,
            id="non-LLM recall",
        ),
        pytest.param(
            NonLLMContextPrecisionWithReference(),
            {"retrieved_contexts": [TOWER], "reference_contexts": [PARIS, LANDMARK]},
            1.0,
            id="non-LLM precision",
        ),
        pytest.param(
            IDBasedContextRecall(),
            EXPECTED_IDS | {"retrieved_context_ids": ["doc_1", "doc_2", "doc_3"]},
            0.25,
            id="recall by id",
        ),
        pytest.param(
            IDBasedContextPrecision(),
            EXPECTED_IDS | {"retrieved_context_ids": ["doc_1", "doc_2", "doc_3", "doc_4"]},
            0.5,
            id="precision by id",
        ),
    ],
)
def test_the_documented_examples(metric: Metric, fields: dict[str, Any], expected: float) -> None:
    assert metric.score(fields).value == expected
