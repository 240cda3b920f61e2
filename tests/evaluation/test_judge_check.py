"""Judges over labelled pairs: what they cost, how they did, what could not be judged."""

from __future__ import annotations

import json
import random

import pytest

pytest.importorskip("sklearn")

from ctxeval import (
    AuthenticationError,
    InvalidArgumentError,
    InvalidSampleError,
    JudgeError,
    LLMJudge,
    check_judge,
)
from ctxeval.calibration.labels import Labelled, Pair
from ctxeval.judges.cells import MemoryCache
from ctxeval.testing import ScriptedLLM


def told(question, chunk):
    """Good chunks 0.6 to 0.9, bad ones 0.2 to 0.5, by the number that they bear."""
    return (0.6 if "good" in chunk else 0.2) + int(chunk.split()[-1]) % 30 / 100


def labels(n=120, *, questions=10):
    rng = random.Random(4)
    made = []
    for number in range(n):
        good = number % 2 == 0
        word = "question" if (rng.random() < 0.7) == good else "other"
        chunk = f"{word} {'good' if good else 'bad'} {number}"
        made.append(
            Labelled(Pair("question", f"question {number % questions}", "", (chunk,)), good)
        )
    return made


def judge(llm, mode="joint", **options):
    return LLMJudge(llm, mode, cache=MemoryCache(), **options)


def test_every_mode_beside_the_baseline():
    llm = ScriptedLLM(relevant=told)
    check = check_judge([judge(llm, mode) for mode in ("joint", "pointwise", "logprob")], labels())
    (found,) = check.purposes
    assert (found.purpose, found.pairs, found.yes) == ("question", 120, 60)
    joint, pointwise, logprob = found.judges
    assert joint.usage.requests == 20, "10 questions with 12 chunks, 10 a call"
    assert pointwise.usage.requests == logprob.usage.requests == 120
    for one in found.judges:
        assert one.calibration.balanced_accuracy == 1
        assert one.calibration.judge == one.judge.signature
        (beside,) = one.beside
        assert beside.baseline == "word overlap"
        assert beside.better
    assert 0.49 < logprob.judge.threshold < 0.6
    assert found.recommended is logprob, "as right as the others, and it ranks"
    shown = str(check)
    assert "120 labelled pairs for 'question': 60 yes, 60 no" in shown
    assert "logprob does better than word overlap on these labels, +0." in shown
    assert "Recommended: mode='logprob', threshold=0.5" in shown
    assert json.loads(json.dumps(check.to_dict()))["question"]["recommended"]["mode"] == "logprob"


def test_a_judge_that_is_no_better_than_the_baseline():
    llm = ScriptedLLM(relevant=lambda question, chunk: "other" not in chunk)
    shown = str(check_judge(judge(llm), labels()))
    assert "joint does no better than word overlap on these labels" in shown
    assert "which no label shows to be better than a baseline" in shown


def test_embeddings_are_a_second_baseline():
    def embed(texts):
        return [[1.0, float("good" in text or "question" in text)] for text in texts]

    (found,) = check_judge(judge(ScriptedLLM(relevant=told)), labels(40), embed=embed).purposes
    assert list(found.baselines) == ["word overlap", "best sentence"]
    assert [one.baseline for one in found.judges[0].beside] == ["word overlap", "best sentence"]
    assert "40 labels are few" in str(check_judge(judge(ScriptedLLM(relevant=told)), labels(40)))


def test_claims_and_purposes_apart():
    claims = [Pair("support", "", f"claim {n}", ("one", "two")) for n in range(70)]
    chunks = [
        Pair("reference", "q", "the answer", (f"{'bad' if n % 2 else 'good'} {n}",))
        for n in range(20)
    ]
    given = [Labelled(p, n % 2 == 0) for of in (claims, chunks) for n, p in enumerate(of)]
    llm = ScriptedLLM(
        relevant=lambda q, c: "good" in c,
        supported=lambda claim, texts: [0] if int(claim.split()[1]) % 2 == 0 else [],
    )
    check = check_judge(judge(llm), given)
    assert [one.purpose for one in check.purposes] == ["reference", "support"]
    assert [one.judges[0].calibration.agreement for one in check.purposes] == [1, 1]
    assert [one.judges[0].calibration.purpose for one in check.purposes] == ["reference", "support"]
    assert {document.get("reference") for document in llm.documents} == {"the answer", None}


def test_repeats_show_how_often_they_flip():
    rng = random.Random(1)
    llm = ScriptedLLM(
        relevant=lambda q, c: rng.random() < 0.5 if "2" in c else "good" in c, concurrency=1
    )
    (found,) = check_judge(judge(llm, repeats=3), labels()).purposes
    assert 0.1 < found.judges[0].flips < 0.5
    assert "of the verdicts flip between repeats" in str(
        check_judge(judge(llm, repeats=3), labels())
    )


def test_a_call_that_fails_costs_no_other_pair():
    llm = ScriptedLLM(relevant=told, replies=[JudgeError("gone"), "{", "no json", "{}"])
    (found,) = check_judge(judge(llm), labels()).purposes
    (one,) = found.judges
    assert one.calibration.unread == 12, "one question's chunks"
    assert one.calibration.n == 108
    assert "joint: some calls failed: gone" in str(check_judge(judge(ScriptedLLM(
        relevant=told, replies=[JudgeError("gone")])), labels()))  # fmt: skip


def test_a_judge_that_cannot_judge_costs_no_other():
    class Refuses(ScriptedLLM):
        asked = 0

        async def first_token(self, messages):
            self.asked += 1
            raise AuthenticationError("no key")

    llm = Refuses(relevant=told)
    check = check_judge([judge(llm, "logprob"), judge(llm, "joint")], labels())
    (found,) = check.purposes
    assert found.judges[0].failure == "no key"
    assert found.recommended is found.judges[1]
    assert "logprob could not judge: no key" in str(check)
    assert llm.asked == 24, "two questions' chunks, and no more"
    alone = check_judge(judge(llm, "logprob"), labels())
    assert alone.purposes[0].recommended is None
    assert "No mode can be recommended" in str(alone)


def test_a_second_look_costs_nothing():
    llm = ScriptedLLM(relevant=told)
    one = judge(llm, "logprob")
    check_judge(one, labels())
    again = check_judge(one, labels())
    assert len(llm.calls) == 120
    assert again.purposes[0].judges[0].usage.requests == 0


def test_what_was_said_twice_counts_once():
    (once,) = check_judge(judge(ScriptedLLM(relevant=told)), labels()).purposes
    (twice,) = check_judge(judge(ScriptedLLM(relevant=told)), labels() * 2).purposes
    assert twice.pairs == once.pairs == 120


def test_the_same_pair_of_another_sample_counts_once_and_a_dispute_is_told():
    pair, same = (Pair("question", "q", "", ("good 1",), sample) for sample in ("a", "b"))
    other = Pair("question", "q", "", ("bad 2",))
    given = [Labelled(pair, True), Labelled(same, 2), Labelled(other, False)]
    check = check_judge(judge(ScriptedLLM(relevant=told)), given)
    assert (check["question"].pairs, check["question"].disputed) == (2, 0)
    check = check_judge(judge(ScriptedLLM(relevant=told)), [*given, Labelled(same, False)])
    assert (check["question"].pairs, check["question"].disputed) == (3, 1)
    assert "1 of the pairs are labelled both yes and no" in str(check)
    assert check.to_dict()["question"]["disputed"] == 1


def test_grades_of_people_change_no_figure_of_a_judge_that_gives_none():
    by_mode = {}
    for grade in (1, 3):
        given = [Labelled(one.pair, grade * bool(one.label)) for one in labels(60)]
        judges = [judge(ScriptedLLM(relevant=told), mode) for mode in ("joint", "logprob")]
        by_mode[grade] = [
            (one.calibration.agreement, one.calibration.kappa)
            for one in check_judge(judges, given)["question"].judges
        ]
    assert by_mode[1] == by_mode[3] == [(1.0, 1.0), (1.0, 1.0)]


def test_a_file_with_a_bad_line_asks_no_model(tmp_path):
    llm = ScriptedLLM(relevant=told)
    path = tmp_path / "labels.jsonl"
    lines = [json.dumps(one.to_dict()) for one in labels(4)] + ['{"user_input": "q", "chunk": "c"}']
    path.write_text("\n".join(lines))
    with pytest.raises(InvalidSampleError, match=r"labels\.jsonl, line 5: label: it is missing"):
        check_judge(judge(llm), path)
    assert not llm.calls


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "labels: there are none"),
        (
            [Labelled(Pair("question", "q", "", (chunk,)), True) for chunk in "abc"],
            "all 3 for 'question' are yes: label pairs of both kinds",
        ),
    ],
)
def test_labels_that_cannot_serve(given, message):
    with pytest.raises(InvalidArgumentError, match=message):
        check_judge(judge(ScriptedLLM()), given)


@pytest.mark.parametrize("judges", ["gpt", [], [ScriptedLLM()], None])
def test_what_is_no_judge(judges):
    with pytest.raises(InvalidArgumentError, match=r"judges: .*: give an LLMJudge"):
        check_judge(judges, labels())
