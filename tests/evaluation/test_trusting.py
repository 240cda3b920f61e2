"""A report shows means as judged and as corrected, and whether the judge is worth its calls."""

from __future__ import annotations

import dataclasses
from io import StringIO

import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")
pytest.importorskip("rich")

from rich.console import Console

from ctxeval import (
    Calibration,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    Evaluation,
    InvalidArgumentError,
    LLMJudge,
    Sample,
    calibrate,
    check_judge,
    evaluate,
)
from ctxeval.calibration.beside import Beside
from ctxeval.evaluation.reporting import report_of, scores_of
from ctxeval.evaluation.trusting import trust_of
from ctxeval.naming import MetricSet
from ctxeval.report.terminal import show_report, show_scores
from ctxeval.testing import ScriptedLLM

MIXED = [["good 1", "bad"], ["bad", "worse"], ["good", "fine good"], ["good 3", "bad 3"]] * 10
SAMPLES = [
    Sample(id=str(n), user_input="q", retrieved_contexts=chunks, reference="It is good.")
    for n, chunks in enumerate(MIXED)
]
BETTER = Beside("word overlap", 0.3, 0.2, 0.4, 0.1, odd=False)
NO_BETTER = Beside("best sentence", 0.01, -0.1, 0.12, 0.1, odd=False)


@pytest.fixture(scope="module")
def judge():
    return LLMJudge(
        ScriptedLLM(
            relevant=lambda question, chunk: "good" in chunk, supported=lambda claim, chunks: [0]
        )
    )


@pytest.fixture(scope="module")
def run(judge):
    return evaluate(SAMPLES, [ContextRelevance(judge), ContextPrecision(judge)])


def calibrated(judge, purpose="question", **more):
    """9 of 10 yeses found, 8 of 10 noes: sensitivity 0.9, specificity 0.8."""
    judged = [True] * 90 + [False] * 10 + [True] * 20 + [False] * 80
    made = calibrate(judged, [True] * 100 + [False] * 100, judge=judge, purpose=purpose)
    return dataclasses.replace(made, **more)


def printed(show, what):
    written = StringIO()
    show(what, Console(width=160, file=written))
    return written.getvalue()


def test_the_corrected_mean_stands_beside_the_raw_one(run, judge):
    relevance, precision = scores_of(run, calibrations=[calibrated(judge)])
    # (0.5 + 0.8 - 1) / (0.9 + 0.8 - 1)
    assert relevance.mean == 0.5
    assert relevance.trust.mean == pytest.approx(0.3 / 0.7)
    assert relevance.trust.low < relevance.trust.mean < relevance.trust.high
    assert relevance.trust.labels == 200
    assert precision.trust is None
    text = printed(show_scores, [relevance])
    assert "corrected, by 200 labels" in text
    assert "0.429" in text
    assert "balanced accuracy on the labels is 0.850" in text


def test_the_html_says_the_same(run, judge, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    calibrated(judge, beside=(BETTER, NO_BETTER)).save(tmp_path / "c.json")
    page = run.report(tmp_path / "r.html", calibration=tmp_path / "c.json").read_text()
    assert "corrected for the judge’s errors, by 200 labels" in page
    assert ">0.429<" in page
    assert "does no better than best sentence on these labels" in page
    assert "does better than word overlap on these labels" in page
    plain = run.report(tmp_path / "plain.html").read_text()
    assert "corrected for" not in plain


def test_a_judge_no_better_than_a_baseline_is_doubted(run, judge):
    calibration = calibrated(judge, beside=(BETTER, NO_BETTER))
    trust = trust_of(run, [calibration])["context_relevance"]
    assert any("does better than word overlap" in said for said in trust.told)
    (doubt,) = trust.doubts
    assert "does no better than best sentence" in doubt
    assert doubt in printed(show_report, report_of(run, None, [calibration])).replace("\n", "")


def test_baselines_are_kept_with_the_calibration(judge, tmp_path):
    labels = [
        {"user_input": f"q{n}", "chunk": f"{'good' if n % 2 else 'bad'} {n}", "label": n % 2 == 1}
        for n in range(40)
    ]

    def embed(texts):
        return [[1.0, float("good" in text)] for text in texts]

    found = check_judge(judge, labels, embed=embed)["question"].judges[0].calibration
    assert [one.baseline for one in found.beside] == ["word overlap", "best sentence"]
    found.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == found
    older = {name: value for name, value in found.to_dict().items() if name != "beside"}
    assert Calibration.from_dict(older).beside == ()


def test_a_metric_that_is_no_share_shows_its_judge_alone(run, judge):
    trust = trust_of(run, [calibrated(judge, "reference")])["context_precision"]
    assert trust.mean is None
    assert any("no plain share" in said for said in trust.told)


def test_what_does_not_fit_is_refused(run, judge):
    other = LLMJudge(judge.llm, "pointwise")
    with pytest.raises(InvalidArgumentError, match=r"it is of llm.pointwise.*was judged as"):
        trust_of(run, [calibrated(other)])
    with pytest.raises(InvalidArgumentError, match="'support', which context_recall reads"):
        trust_of(run, [calibrated(judge, "support")])
    with pytest.raises(InvalidArgumentError, match="5 is no Calibration and no path"):
        run.report("r.html", calibration=5)


def test_a_run_of_values_says_why_it_is_not_corrected(judge, tmp_path):
    pytest.importorskip("pyarrow")
    evaluate(SAMPLES, [ContextRelevance(judge)], output=tmp_path / "run.parquet")
    run = Evaluation.load(tmp_path / "run.parquet")
    (doubt,) = trust_of(run, [calibrated(judge)])["context_relevance"].doubts
    assert "can't be corrected: The run holds values without samples" in doubt


@pytest.fixture(scope="module")
def probable():
    return LLMJudge(ScriptedLLM(relevant=lambda question, chunk: 0.6), "logprob")


class TestThresholds:
    """Each metric's judge gets the threshold that was fitted to the verdicts it reads."""

    def of(self, judge, purpose, threshold):
        fitted = judge.with_threshold(threshold)
        return calibrated(fitted, purpose, threshold=threshold)

    @pytest.mark.parametrize("metrics", [["context_relevance", "context_recall"], "auto"])
    def test_by_what_is_judged(self, probable, metrics):
        chosen = MetricSet(metrics, probable).calibrated(
            [self.of(probable, "question", 0.7), self.of(probable, "support", 0.2)]
        )
        found = {one.name: one.judge.threshold for one in chosen.of(SAMPLES[0])}
        assert found["context_relevance"] == 0.7
        assert found["context_recall"] == 0.2
        assert found.get("context_precision", 0.5) == 0.5

    def test_it_decides_the_values(self, probable):
        chosen = MetricSet("context_relevance", probable)
        for threshold, value in ((0.55, 1.0), (0.65, 0.0)):
            fitted = chosen.calibrated([self.of(probable, "question", threshold)])
            run = evaluate(SAMPLES[:1], fitted)
            assert list(run.values("context_relevance").values()) == [value]

    def test_what_does_not_fit_is_refused(self, probable, judge):
        chosen = MetricSet("context_relevance", probable)
        with pytest.raises(InvalidArgumentError, match=r"it is of llm.joint"):
            chosen.calibrated([calibrated(judge)])
        with pytest.raises(InvalidArgumentError, match="for 'support', and no metric here"):
            chosen.calibrated([self.of(probable, "support", 0.2)])
        with pytest.raises(InvalidArgumentError, match="two are about verdicts for 'question'"):
            chosen.calibrated([self.of(probable, "question", 0.2)] * 2)


def test_a_judge_may_stand_for_the_model(judge):
    run = evaluate(SAMPLES[:2], ["context_relevance", "hit_rate@1[llm]"], llm=judge)
    assert run.signature("hit_rate@1[llm]") == f"hit_rate@1[llm]/1 {judge.signature}"
    assert run.signature("context_relevance") == ContextRelevance(judge).signature
    assert ContextRecall(judge).verdicts_for == "support"
