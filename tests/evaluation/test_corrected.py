"""Means corrected by what people said: which, by whose errors, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from ctxeval import (
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    Evaluation,
    InvalidArgumentError,
    LLMJudge,
    Sample,
    calibrate,
    evaluate,
)
from ctxeval.testing import ScriptedLLM


def says_yes_to(*words):
    return ScriptedLLM(
        relevant=lambda question, chunk: any(word in chunk for word in words),
        supported=lambda claim, chunks: [0] if any(word in claim for word in words) else [],
    )


def samples(*chunks_of_each, **more):
    return [
        Sample(id=str(n), user_input="q", retrieved_contexts=chunks, **more)
        for n, chunks in enumerate(chunks_of_each)
    ]


def calibrated(judge, purpose="question"):
    """9 of 10 yeses found, 8 of 10 noes: sensitivity 0.9, specificity 0.8."""
    judged = [True] * 90 + [False] * 10 + [True] * 20 + [False] * 80
    return calibrate(judged, [True] * 100 + [False] * 100, judge=judge, purpose=purpose)


MIXED = [["good 1", "bad"], ["bad", "worse"], ["good", "fine good"], ["good 3", "bad 3"]] * 10


class TestByCalibration:
    def test_by_hand(self):
        judge = LLMJudge(says_yes_to("good"))
        run = evaluate(samples(*MIXED), [ContextRelevance(judge), ContextPrecision(judge)])
        got = run.corrected(calibrated(judge))
        # (0.5 + 0.8 - 1) / (0.9 + 0.8 - 1)
        assert got.mean == pytest.approx(0.3 / 0.7)
        assert (got.method, got.n, got.labelled) == ("Rogan–Gladen", 40, 200)
        assert got.low < got.mean < got.high
        assert "0.429 (0." in str(got)
        assert "0.500 as judged; Rogan–Gladen, 40 samples, 200 labels" in str(got)

    def test_what_the_judge_did_not_judge_has_no_error_of_its(self):
        judge = LLMJudge(says_yes_to("good"))
        sets = [["good", " "], [], ["bad", "good", "", "good"], ["bad"]] * 5
        run = evaluate(samples(*sets), ContextRelevance(judge))
        got = run.corrected(calibrated(judge))
        # Values 1/2, 0, 1/2, 0 of which the judge gave 1/2, 0, 3/4 and all.
        mean, asked = (0.5 + 0 + 0.5 + 0) / 4, (0.5 + 0 + 0.75 + 1) / 4
        assert got.uncorrected == mean
        assert got.mean == pytest.approx((mean - asked * 0.2) / 0.7)

    def test_of_claims(self):
        judge = LLMJudge(says_yes_to("good"))
        given = samples(["x"], ["x"], [" "], reference_claims=["good", "good too", "bad"])
        run = evaluate([*given, *samples(["x"], reference_claims=["bad"])], ContextRecall(judge))
        got = run.corrected(calibrated(judge, "support"))
        mean, asked = (2 / 3 + 2 / 3 + 0 + 0) / 4, 3 / 4
        assert got.mean == pytest.approx((mean - asked * 0.2) / 0.7)

    def test_after_a_way_through_a_file(self, tmp_path):
        judge = LLMJudge(says_yes_to("good"))
        run = evaluate(samples(*MIXED), ContextRelevance(judge))
        again = Evaluation.load(run.save(tmp_path / "run.jsonl"), keep=False)
        assert again.corrected(calibrated(judge)) == run.corrected(calibrated(judge))

    def test_another_judge_is_refused(self):
        judge, other = LLMJudge(says_yes_to("good")), LLMJudge(says_yes_to("bad"))
        run = evaluate(samples(*MIXED), ContextRelevance(judge))
        with pytest.raises(InvalidArgumentError, match="was judged as context_relevance/1 llm"):
            run.corrected(calibrated(other))
        with pytest.raises(InvalidArgumentError, match="a judge that was not named"):
            run.corrected(calibrated(""))

    def test_another_threshold_is_refused_and_the_remedy_costs_nothing(self):
        llm = ScriptedLLM(relevant=lambda q, c: float(c))
        judge = LLMJudge(llm, "logprob")
        told = [n / 100 for n in range(100)]
        c = calibrate(told, [p > 0.7 for p in told], judge=judge)
        given = samples(["0.6", "0.9"], ["0.8", "0.1"], ["0.3", "0.2"])
        run = evaluate(given, ContextRelevance(judge))
        calls = len(llm.calls)
        with pytest.raises(InvalidArgumentError, match="with_calibration"):
            run.corrected(c)
        again = evaluate(given, ContextRelevance(judge.with_calibration(c)))
        assert again.corrected(c).uncorrected == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
        assert len(llm.calls) == calls

    @pytest.mark.parametrize(
        ("purpose", "metric", "message"),
        [
            ("question", "context_precision", "context_precision is no plain share"),
            ("reference", None, "a metric of verdicts for the reference is no plain share"),
            ("response", "context_utilization", "none is"),
            ("support", None, "metric: 'context_recall' was not scored"),
        ],
    )
    def test_what_is_no_share_of_verdicts(self, purpose, metric, message):
        judge = LLMJudge(says_yes_to("good"))
        given = samples(*MIXED, reference="good")
        run = evaluate(given, [ContextRelevance(judge), ContextPrecision(judge)])
        with pytest.raises(InvalidArgumentError, match=message):
            run.corrected(calibrated(judge, purpose), metric=metric)

    def test_no_value(self):
        judge = LLMJudge(says_yes_to("good"))
        run = evaluate([Sample(user_input="q")], ContextRelevance(judge))
        with pytest.raises(InvalidArgumentError, match="no sample has a value"):
            run.corrected(calibrated(judge))


class TestByLabels:
    def run(self):
        return evaluate(samples(*MIXED), ContextRelevance(says_yes_to("good")))

    def test_by_hand(self):
        # The judge is half a step too high wherever it says 1, and right elsewhere.
        labels = {str(n): {1.0: 0.5}.get(value, value) for n, value in enumerate([0.5, 0, 1, 0.5])}
        got = self.run().corrected(labels=labels)
        assert got.method == "prediction-powered"
        assert (got.n, got.labelled, got.uncorrected) == (40, 4, 0.5)
        assert got.low <= 0.375 <= got.high

    def test_labels_of_samples_without_a_value_are_told(self):
        given = [*samples(*MIXED[:6]), Sample(id="bare", user_input="q")]
        run = evaluate(given, ContextRelevance(says_yes_to("good")))
        got = run.corrected(labels={"0": 0.5, 1: 0.5, "2": 1, "bare": 0})
        assert got.labelled == 3
        assert "1 labels are of samples without a value of context_relevance" in got.note

    def test_any_metric_by_its_name(self):
        llm = says_yes_to("good")
        run = evaluate(
            samples(*MIXED, reference="r"), [ContextRelevance(llm), ContextPrecision(llm)]
        )
        labels = {str(n): n % 2 / 2 for n in range(8)}
        with pytest.raises(InvalidArgumentError, match="metric: of which are the labels"):
            run.corrected(labels=labels)
        got = run.corrected(labels=labels, metric="context_precision")
        assert (got.labelled, got.n) == (8, 40)

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ([0.5], "is no mapping"),
            ({"0": 1.5}, r"labels\['0'\]: 1.5 is no value"),
            ({"0": "yes"}, r"labels\['0'\]: 'yes' is no value"),
            ({"zero": 1}, "no sample has the id 'zero': they are in evaluation.ids"),
            ({}, "none of 0 is of a sample with a value"),
        ],
    )
    def test_bad_labels(self, labels, message):
        with pytest.raises(InvalidArgumentError, match=message):
            self.run().corrected(labels=labels)

    def test_either_is_needed(self):
        with pytest.raises(InvalidArgumentError, match="give a calibration"):
            self.run().corrected()
        with pytest.raises(InvalidArgumentError, match="give a calibration"):
            self.run().corrected(calibrated(""), {"0": 1})

    @pytest.mark.parametrize("given", ["calibration.json", {}, 5])
    def test_what_is_no_calibration(self, given):
        with pytest.raises(InvalidArgumentError, match=r"no Calibration: .*Calibration\.load"):
            self.run().corrected(given)


@pytest.mark.slow
def test_the_truth_is_covered_from_end_to_end():
    """Judged chunks with known errors, blank ones among them, and a calibration each time."""
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(300):
        truth = rng.random((80, 4)) < 0.4
        said = np.where(truth, rng.random(truth.shape) < 0.85, rng.random(truth.shape) < 0.15)
        blank = rng.random(truth.shape) < 0.2
        labels = rng.random(120) < 0.5
        judged = np.where(labels, rng.random(120) < 0.85, rng.random(120) < 0.15)
        judge = LLMJudge(says_yes_to("good"))
        given = samples(*(
            ["" if gap else f"{'good' if yes else 'bad'} {n}.{k}" for k, (yes, gap) in row]
            for n, row in enumerate(
                list(enumerate(zip(yeses, gaps, strict=True)))
                for yeses, gaps in zip(said, blank, strict=True)
            )
        ))  # fmt: skip
        run = evaluate(given, ContextRelevance(judge))
        c = calibrate(judged.tolist(), labels.tolist(), judge=judge)
        got = run.corrected(c)
        covered += got.low <= 0.4 * 0.8 <= got.high
    assert covered / 300 >= 0.93
