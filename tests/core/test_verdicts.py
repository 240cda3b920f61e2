from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxeval import IdJudge, LLMJudge, Sample, TextJudge, Usage, Verdict, Verdicts
from ctxeval.testing import ScriptedLLM
from ctxeval.verdicts import first_ranks

# Short texts of two letters: a good part of all pairs is similar, some are equal.
TEXTS = st.lists(st.text("ab ", max_size=4), max_size=5)
IDS = st.lists(st.sampled_from("abcde"), max_size=6)
GRADES = st.dictionaries(st.sampled_from("abcdef"), st.integers(-1, 3), max_size=5)
ASKED = st.lists(st.sampled_from(["relevant", "covered", "chunks", "units", 1, 2, 3]), max_size=4)


def ask(verdicts: Verdicts, questions: list[str | int]) -> None:
    for question in questions:
        if isinstance(question, int):
            verdicts.covered(question)
        else:
            answer = getattr(verdicts, question)
            _ = answer() if callable(answer) else answer


def plain(verdicts: Verdicts) -> Verdicts:
    return Verdicts(verdicts.chunks, verdicts.units, judge=verdicts.judge)


def say(verdicts: Verdicts) -> dict[str, object]:
    return {
        "relevant": verdicts.relevant(),
        **{f"covered({k})": verdicts.covered(k) for k in (None, 1, 2, 3, 4, 5, 99)},
        "gains": verdicts.gains(),
        "expected_gains": verdicts.expected_gains(),
        "distinct": verdicts.distinct(),
    }


def samples_by_text(retrieved: list[str], references: list[str]) -> Sample:
    return Sample(retrieved_contexts=retrieved, reference_contexts=references)


@given(IDS, GRADES, ASKED)
def test_lazy_verdicts_by_id_equal_plain_ones(
    retrieved: list[str], grades: dict[str, int], asked: list[str | int]
) -> None:
    sample = Sample(retrieved_context_ids=retrieved, reference_context_ids=grades)
    lazy = IdJudge().judge(sample)
    ask(lazy, asked)
    assert lazy == plain(lazy)
    assert say(lazy) == say(plain(lazy))


@settings(max_examples=200)
@given(TEXTS, TEXTS, ASKED)
def test_lazy_verdicts_by_text_equal_plain_ones(
    retrieved: list[str], references: list[str], asked: list[str | int]
) -> None:
    lazy = TextJudge().judge(samples_by_text(retrieved, references))
    ask(lazy, asked)
    kept = plain(lazy)
    assert lazy == kept
    assert say(lazy) == say(kept)


@settings(max_examples=200)
@given(TEXTS, TEXTS, ASKED, ASKED)
def test_what_was_asked_before_changes_nothing(
    retrieved: list[str], references: list[str], asked: list[str | int], otherwise: list[str | int]
) -> None:
    sample = samples_by_text(retrieved, references)
    one, other = TextJudge().judge(sample), TextJudge().judge(sample)
    ask(one, asked)
    ask(other, otherwise)
    assert one == other
    assert one.to_dict() == other.to_dict()


def verdicts_of_each_kind() -> list[Verdicts]:
    by_model = Sample(
        user_input="Where?",
        retrieved_contexts=["Paris is a city.", "Lyon is a city.", " "],
        reference="Paris is a city. It is large.",
    )
    llm = ScriptedLLM(
        relevant={"Paris is a city."}, supported={"Paris is a city.": {"Paris is a city."}}
    )
    return [
        Verdicts(),
        Verdicts(
            [Verdict(None, text="x", reason="no reply", votes=(True, None, False))],
            [Verdict(True, text="y", matched=(0, 2), similarity=0.25, grade=3)],
            judge="someone",
            usage=Usage(1, 2, 3, 4, 5, 6),
            together=True,
            note="cut",
        ),
        IdJudge().judge(Sample(retrieved_context_ids=["a", "b"], reference_context_ids={"a": 2})),
        TextJudge().judge(samples_by_text(["ab", "xy"], ["aby", "z"])),
        LLMJudge(llm).judge(by_model),
    ]


@pytest.mark.parametrize("kind", range(5), ids=["empty", "full", "by id", "by text", "by model"])
def test_verdicts_can_be_kept_and_sent(kind: int) -> None:
    verdicts = verdicts_of_each_kind()[kind]
    written = verdicts.to_dict()
    for again in (
        pickle.loads(pickle.dumps(verdicts)),
        copy.copy(verdicts),
        copy.deepcopy(verdicts),
        Verdicts.from_dict(written),
        Verdicts.from_dict(json.loads(json.dumps(written))),
    ):
        assert again == verdicts
        assert again.to_dict() == written
        assert again.usage == verdicts.usage
        assert (again.together, again.note) == (verdicts.together, verdicts.note)
        assert say(again)["relevant"] == say(verdicts)["relevant"]
        assert type(again.chunks) is type(again.units) is tuple


def test_what_to_dict_writes() -> None:
    verdicts = Verdicts([Verdict(True, text="a", matched=(1,))], judge="j", usage=Usage(1))
    assert verdicts.to_dict() == {
        "judge": "j",
        "together": False,
        "note": "",
        "usage": {
            "requests": 1,
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "cached_tokens": 0,
            "reasoning_tokens": 0,
            "unreported": 0,
        },
        "chunks": [
            {
                "value": True,
                "text": "a",
                "reason": "",
                "matched": (1,),
                "similarity": None,
                "grade": 0,
                "votes": (),
                "probability": None,
            }
        ],
        "units": [],
    }


@pytest.mark.parametrize(
    ("together", "k", "covered"),
    [
        pytest.param(False, 1, [True, False, False, None, True], id="any of 0 and 2, k=1"),
        pytest.param(False, 2, [True, True, False, None, True], id="any of 1 and 3, k=2"),
        pytest.param(True, 1, [False, False, False, None, True], id="both 0 and 2, k=1"),
        pytest.param(True, 3, [True, False, False, None, True], id="both 0 and 2, k=3"),
        pytest.param(True, 4, [True, True, False, None, True], id="both 1 and 3, k=4"),
        pytest.param(True, None, [True, True, False, None, True], id="all"),
    ],
)
def test_covered_by_the_first_k(together: bool, k: int | None, covered: list[bool | None]) -> None:
    units = [
        Verdict(True, matched=(0, 2)),
        Verdict(True, matched=(1, 3)),
        Verdict(False),
        Verdict(None),
        Verdict(True),  # nobody said by which
    ]
    assert Verdicts(units=units, together=together).covered(k) == covered


def test_what_the_formulas_read() -> None:
    verdicts = Verdicts(
        [Verdict(True, "a", grade=2), Verdict(None, "b"), Verdict(True, "a", grade=2)],
        [Verdict(True, grade=2), Verdict(False, grade=3)],
    )
    assert verdicts.relevant() == [True, None, True]
    assert verdicts.gains() == [2, None, 2]
    assert verdicts.expected_gains() == [2, 3]
    assert verdicts.distinct() == [0, 1]


def test_equal_in_what_is_said_not_in_what_it_cost() -> None:
    chunks = [Verdict(True)]
    assert Verdicts(chunks, usage=Usage(1)) == Verdicts(chunks, usage=Usage(2))
    assert Verdicts(chunks) != Verdicts([Verdict(False)])
    assert Verdicts(chunks, judge="a") != Verdicts(chunks, judge="b")
    assert Verdicts(units=chunks) != Verdicts(chunks)
    assert Verdicts() != "Verdicts()"


def test_repr_shows_the_values() -> None:
    verdicts = Verdicts([Verdict(True), Verdict(False), Verdict(None)], [Verdict(True)], judge="j")
    assert repr(verdicts) == "Verdicts(chunks='+-?', units='+', judge='j')"


def test_usages_add_up_field_by_field() -> None:
    assert Usage(1, 2, 3, 4, 5, 6) + Usage(10, 20, 30, 40, 50, 60) == Usage(11, 22, 33, 44, 55, 66)
    assert Usage(1) + Usage() == Usage(1)


@given(st.lists(st.sampled_from("abc"), max_size=8))
def test_first_ranks_agree_with_the_definition(items: list[str]) -> None:
    assert first_ranks(items) == [
        rank for rank, item in enumerate(items) if item not in items[:rank]
    ]
