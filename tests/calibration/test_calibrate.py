"""A judge beside people: by pencil, and as scikit-learn counts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sklearn")

from sklearn import metrics

from ctxeval import ContextRelevance, InvalidArgumentError, LLMJudge, Verdict
from ctxeval.calibration.agreement import calibrate
from ctxeval.calibration.calibration import Calibration, Confusion
from ctxeval.calibration.threshold import fit_threshold
from ctxeval.testing import ScriptedLLM

BOOLS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60)
GRADES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60)
LIKELY = st.lists(
    st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), min_size=2, max_size=60
)


def test_worked_by_hand():
    judged = [True] * 4 + [False] * 6
    labels = [True, True, True, False, True, False, False, False, False, False]
    c = calibrate(judged, labels)
    assert c.confusion == Confusion(3, 1, 1, 5)
    assert (c.n, c.unread, c.agreement) == (10, 0, 0.8)
    assert (c.sensitivity, c.specificity) == (3 / 4, 5 / 6)
    assert c.balanced_accuracy == pytest.approx((3 / 4 + 5 / 6) / 2)
    # By chance 0.4 × 0.4 + 0.6 × 0.6 = 0.52 agree: (0.8 - 0.52) / (1 - 0.52).
    assert c.kappa == pytest.approx(7 / 12)
    assert (c.auc, c.threshold, c.curve) == (None, None, ())


@given(BOOLS)
def test_verdicts_as_scikit_learn_counts_them(pairs):
    judged, labels = zip(*pairs, strict=True)
    c = calibrate(judged, labels)
    (tn, fp), (fn, tp) = metrics.confusion_matrix(labels, judged, labels=[False, True])
    assert c.confusion == (tp, fp, fn, tn)
    assert c.agreement == metrics.accuracy_score(labels, judged)
    if len({*judged, *labels}) == 2:
        assert c.kappa == pytest.approx(metrics.cohen_kappa_score(judged, labels))
    else:
        assert c.kappa is None
    if any(labels):
        assert c.sensitivity == metrics.recall_score(labels, judged)


@given(GRADES)
def test_grades_weigh_by_their_distance(pairs):
    judged, labels = zip(*pairs, strict=True)
    c = calibrate(judged, labels)
    if max(*judged, *labels) > 1 and len({*judged, *labels}) > 1:
        weighted = metrics.cohen_kappa_score(
            judged, labels, weights="quadratic", labels=[0, 1, 2, 3]
        )
        assert c.kappa == pytest.approx(weighted)
    assert sum(c.confusion) == len(pairs)


def test_grades_that_nobody_gave_keep_their_place():
    # Apart by 0 and 2, in the mean of squares 2; all pairs by 0, 3, 1 and 2, in the mean 14 / 4.
    assert calibrate([0, 1], [0, 3]).kappa == pytest.approx(1 - 2 / (14 / 4))


@given(BOOLS.filter(lambda pairs: any(label for _, label in pairs)))
def test_a_yes_agrees_with_whichever_grade_above_0(pairs):
    judged, labels = zip(*pairs, strict=True)
    graded = [place % 3 + 1 if label else 0 for place, label in enumerate(labels)]
    assert calibrate(judged, graded) == calibrate(judged, labels)
    verdicts = [Verdict(one) for one in judged]
    assert calibrate(verdicts, graded) == calibrate(verdicts, labels)


@given(LIKELY.filter(lambda pairs: len({label for _, label in pairs}) == 2))
def test_probabilities_as_scikit_learn_ranks_them(pairs):
    told, labels = zip(*pairs, strict=True)
    c = calibrate([float(p) for p in told], labels)
    assert c.auc == pytest.approx(metrics.roc_auc_score(labels, told))
    assert sum(one.n for one in c.curve) == sum(c.confusion) == len(pairs)
    low, high = c.threshold_interval
    assert 0 <= low <= high <= 1


@given(LIKELY.filter(lambda pairs: len({label for _, label in pairs}) == 2))
def test_no_threshold_does_better_than_the_fitted(pairs):
    told, labels = (np.array(side) for side in zip(*pairs, strict=True))

    def balanced(threshold):
        return metrics.balanced_accuracy_score(labels, told >= threshold)

    best = max(balanced(threshold) for threshold in (*told, *(told + 1e-9), 0, 1))
    assert balanced(fit_threshold(told, labels)) == pytest.approx(best)


@pytest.mark.parametrize(
    ("told", "labels", "threshold"),
    [
        pytest.param([0.2, 0.4], [False, True], 0.3, id="between the two"),
        pytest.param([0.1, 0.2, 0.8, 0.9], [False, False, True, True], 0.5, id="the middle"),
        # Both gaps do as well; the second is wider.
        pytest.param([0.0, 0.1, 0.6, 0.8], [False, True, False, True], 0.7, id="ties"),
    ],
)
def test_the_fitted_threshold(told, labels, threshold):
    assert fit_threshold(np.array(told), np.array(labels)) == pytest.approx(threshold)


def test_figures_are_those_of_labels_that_were_held_out():
    """Labels by chance: what a threshold does on its own labels would look like skill."""
    rng = np.random.default_rng(5)
    own, held_out = [], []
    for _ in range(20):
        told, labels = rng.random(40), rng.random(40) < 0.5
        c = calibrate(list(told), list(labels))
        own.append(metrics.balanced_accuracy_score(labels, told >= c.threshold))
        held_out.append(c.balanced_accuracy)
    assert np.mean(own) > 0.57
    assert abs(np.mean(held_out) - 0.5) < 0.05


@given(LIKELY.filter(lambda pairs: len({label for _, label in pairs}) == 2))
def test_rates_are_of_the_fitted_threshold_and_their_mean_is_the_held_out_one(pairs):
    told, labels = zip(*pairs, strict=True)
    c = calibrate([float(p) for p in told], labels)
    yes, wrong, missed, no = c.confusion
    held_out = (yes / (yes + missed) + no / (no + wrong)) / 2
    found = [p >= c.threshold for p in told]
    own = metrics.balanced_accuracy_score(labels, found)
    assert c.balanced_accuracy <= own + 1e-9
    assert c.sensitivity <= metrics.recall_score(labels, found) + 1e-9
    if held_out <= own and min(c.sensitivity, c.specificity) > 0:
        assert c.balanced_accuracy == pytest.approx(held_out)


def test_verdicts_and_unread_ones():
    judged = [Verdict(True, probability=0.9), Verdict(False, probability=0.1), Verdict(None), None]
    c = calibrate(judged, [True, False, True, True])
    assert (c.n, c.unread, c.auc) == (2, 2, 1.0)
    c = calibrate([Verdict(True), Verdict(False), Verdict(None)], [1, 0, 1])
    assert (c.n, c.unread, c.agreement, c.auc) == (2, 1, 1.0, None)


def test_it_goes_through_a_file(tmp_path):
    told = [n / 30 for n in range(31)]
    c = calibrate(told, [p > 0.4 for p in told], judge="a judge", purpose="support")
    assert Calibration.load(c.save(tmp_path / "c.json")) == c
    shown = str(c)
    assert "31 labelled pairs for 'support'" in shown
    assert "AUC" in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "holds no calibration"),
        ("{", "is no JSON"),
        (json.dumps({"ctxeval_calibration": 99}), "has format 99, this ctxeval reads 1"),
        (json.dumps({"metric": 1}), "has format None"),
        (json.dumps({"ctxeval_calibration": 1}), "is broken .KeyError"),
        (json.dumps({"ctxeval_calibration": 1, "threshold_interval": 3}), "is broken .TypeError"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_file_that_is_none(tmp_path, text, message):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match=rf"c\.json.* {message}.*: give "):
        Calibration.load(path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("judge", 3, "judge: 3 is no signature"),
        ("purpose", "chunks", "purpose: 'chunks' is no purpose, which is one of question, ref"),
        ("n", -1, "n: -1 is no count"),
        ("n", "many", "n: 'many' is no count"),
        ("n", 7, "confusion: .1, 0, 0, 1. is no table of the n = 7 pairs"),
        ("unread", True, "unread: True is no count"),
        ("confusion", ["a", "b", "c", "d"], "true_positive: 'a' is no count"),
        ("confusion", [1, 2], "is broken"),
        ("agreement", None, "agreement: None is no number from 0 to 1"),
        ("sensitivity", 2, "sensitivity: 2 is no number from 0 to 1"),
        ("specificity", "x", "specificity: 'x' is no number"),
        ("kappa", float("nan"), "kappa: nan is no number from -1 to 1"),
        ("threshold", 3, "threshold: 3 is no number from 0 to 1"),
        ("threshold_interval", [], "threshold_interval: .. is no interval"),
        ("threshold_interval", [0.1], "threshold_interval: .0.1,. is no interval"),
        ("threshold_interval", [0, 5], r"threshold_interval.1.: 5 is no number"),
        ("curve", [[0.5, 9, 1]], r"curve.0..found: 9 is no number from 0 to 1"),
        ("beside", [["x", 0.1, None, 0.2, 0.3, False]], r"beside.0..low: None is no number"),
        ("beside", [["x", 0.1, 0.1, 0.2, 0.3, "no"]], r"beside.0.: .* is no comparison"),
    ],
)
def test_a_file_that_somebody_has_edited(tmp_path, field, value, message):
    path = tmp_path / "c.json"
    edited = {**calibrate([0.2, 0.8], [False, True]).to_dict(), "confusion": [1, 0, 0, 1]}
    path.write_text(json.dumps({**edited, field: value}))
    with pytest.raises(InvalidArgumentError, match=rf"c\.json: calibration: .*{message}"):
        Calibration.load(path)


@pytest.mark.parametrize("path", [None, 5, ["c.json"]])
def test_what_is_no_path(path):
    for call in (Calibration.load, calibrate([True], [True]).save):
        with pytest.raises(InvalidArgumentError, match=r"calibration: .* is no path"):
            call(path)


@pytest.mark.parametrize("data", [None, [], "x"])
def test_what_is_no_mapping(data):
    with pytest.raises(InvalidArgumentError, match="is no mapping"):
        Calibration.from_dict(data)


def test_a_file_that_cannot_be_written(tmp_path):
    c = calibrate([True], [True])
    with pytest.raises(InvalidArgumentError, match="cannot be written: No such file"):
        c.save(tmp_path / "no" / "c.json")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InvalidArgumentError, match="cannot be read: No such file"):
        Calibration.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("judged", "labels", "message"),
    [
        ([True], [True, False], "judged has 1 and labels 2"),
        ([None, None], [1, 0], "nothing of it was read"),
        ([], [], "nothing of it was read"),
        (["yes"], [1], r"judged\[0\]: 'yes' is no verdict, grade or probability"),
        ([1.5], [1], r"judged\[0\]: 1.5 is no verdict"),
        ([-1], [1], r"judged\[0\]: -1 is no verdict"),
        ([True], ["yes"], r"labels\[0\]: 'yes' is no label"),
        ([True], [0.5], r"labels\[0\]: 0.5 is no label"),
        ([True], [float("nan")], r"labels\[0\]: nan is no label"),
        ([True], [None], r"labels\[0\]: None is no label"),
        ([0.5, True], [1, 0], "1 is a verdict and 0.5 a probability: give either"),
        ([0.5, 0.6], [1, 1], "all are yes: a threshold needs pairs of both kinds"),
        (iter([True]), [1], "judged: .* is no list: give one item for each pair"),
        (None, [1], "judged: None is no list"),
        ([True], {0: True}, "labels: .*True. is no list"),
        ({True, False}, [1, 0], "judged: .* is no list"),
        ([10**30], [1], r"judged\[0\]: 10+ is no verdict"),
        ([True], [10**30], r"labels\[0\]: 10+ is no label: .* an integer grade from 0 to 999"),
        ([float("nan")], [1], r"judged\[0\]: nan is no verdict"),
        ([Verdict(True, probability=float("nan"))], [1], r"judged\[0\]: Verdict.* is no verdict"),
    ],
)
def test_bad_input(judged, labels, message):
    with pytest.raises(InvalidArgumentError, match=message):
        calibrate(judged, labels)


def test_arrays_and_columns():
    pandas = pytest.importorskip("pandas")
    expected = calibrate([0.1, 0.2, 0.8], [False, False, True])
    assert calibrate(np.array([0.1, 0.2, 0.8]), np.array([0, 0, 1])) == expected
    assert calibrate([0.1, 0.2, 0.8], np.array([0.0, 0.0, 1.0])) == expected
    column = pandas.Series([0.1, 0.2, 0.8], index=[7, 8, 9])
    assert calibrate(column, pandas.Series([False, False, True])) == expected
    read = calibrate(pandas.array([True, pandas.NA, False], dtype="boolean"), [1, 1, 0])
    assert (read.n, read.unread) == (2, 1)


@pytest.mark.parametrize("judge", [None, 5, ScriptedLLM()])
def test_a_judge_that_is_none(judge):
    with pytest.raises(InvalidArgumentError, match=r"judge: .* is no judge: give the LLMJudge"):
        calibrate([True], [True], judge=judge)


def test_an_unknown_purpose():
    with pytest.raises(InvalidArgumentError, match="purpose: 'supports'"):
        calibrate([True], [True], purpose="supports")


class TestJudge:
    def labelled(self, judge):
        told = [0.1, 0.2, 0.3, 0.9]
        return calibrate(told, [False, True, True, True], judge=judge)

    def test_a_judge_takes_its_threshold(self):
        judge = LLMJudge(ScriptedLLM(relevant=lambda q, c: float(c)), "logprob")
        calibrated = judge.with_calibration(self.labelled(judge))
        assert (judge.threshold, calibrated.threshold) == (0.5, pytest.approx(0.15))
        sample = {"user_input": "q", "retrieved_contexts": ["0.1", "0.2", "0.9"]}
        assert ContextRelevance(judge).score(sample).value == pytest.approx(1 / 3)
        assert ContextRelevance(calibrated).score(sample).value == pytest.approx(2 / 3)
        assert len(judge.llm.calls) == 3, "the second threshold costs no call"

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({"instructions": "Only law."}, id="other prompts"),
            pytest.param({"repeats": 3}, id="other repeats"),
            pytest.param({"mode": "joint"}, id="another mode"),
        ],
    )
    def test_another_judge_refuses_it(self, change):
        llm = ScriptedLLM()
        c = self.labelled(LLMJudge(llm, "logprob"))
        with pytest.raises(InvalidArgumentError, match="calibrate this one"):
            LLMJudge(llm, **{"mode": "logprob", **change}).with_calibration(c)
        with pytest.raises(InvalidArgumentError, match="calibrate this one"):
            LLMJudge(ScriptedLLM(), "logprob").with_calibration(c)

    @pytest.mark.parametrize("given", ["calibration.json", None, {}])
    def test_what_is_no_calibration(self, given):
        with pytest.raises(InvalidArgumentError, match=r"no Calibration: .*Calibration\.load"):
            LLMJudge(ScriptedLLM()).with_calibration(given)

    def test_a_judge_that_was_not_named(self):
        judge = LLMJudge(ScriptedLLM())
        with pytest.raises(InvalidArgumentError, match="of a judge that was not named"):
            judge.with_calibration(calibrate([True], [True]))

    def test_a_judge_of_verdicts_has_no_threshold_to_take(self):
        judge = LLMJudge(ScriptedLLM())
        c = calibrate([True, False], [True, False], judge=judge)
        assert judge.with_calibration(c).signature == judge.signature
        with pytest.raises(InvalidArgumentError, match="gives verdicts, no probabilities"):
            judge.with_threshold(0.3)
