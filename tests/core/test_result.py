from __future__ import annotations

import copy
import json
import pickle

import pytest

from ctxeval import MetricResult, NotScoredError, Usage, Verdict, Verdicts

VERDICTS = Verdicts([Verdict(True, text="é", grade=1)], judge="j", usage=Usage(2, 30))
RESULTS = [
    pytest.param(MetricResult(0.75, metric="recall@5", signature="s"), id="scored"),
    pytest.param(
        MetricResult(
            1 / 3,
            verdicts=VERDICTS,
            bounds=(1 / 3, 1 / 3),
            metric="ndcg",
            usage=VERDICTS.usage,
        ),
        id="with verdicts",
    ),
    pytest.param(
        MetricResult(None, "failed", "no reply", VERDICTS, (0.25, 1.0), "m", "s", VERDICTS.usage),
        id="failed, with bounds",
    ),
    pytest.param(MetricResult(None, "undefined", "nothing is expected", metric="m"), id="none"),
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_can_be_kept_and_sent(result: MetricResult) -> None:
    for again in (
        pickle.loads(pickle.dumps(result)),
        copy.copy(result),
        copy.deepcopy(result),
        MetricResult.from_dict(result.to_dict()),
        MetricResult.from_json(result.to_json()),
    ):
        assert again == result
        assert again.bounds is None or type(again.bounds) is tuple


def test_json_is_one_line_of_plain_data() -> None:
    line = MetricResult(0.5, verdicts=VERDICTS, metric="m", usage=VERDICTS.usage).to_json()
    assert "\n" not in line
    assert "é" in line
    read = json.loads(line)
    assert (read["value"], read["status"], read["metric"]) == (0.5, "scored", "m")
    assert read["verdicts"]["chunks"][0]["text"] == "é"
    assert read["verdicts"]["usage"]["prompt_tokens"] == 30


def test_a_result_is_a_number_where_it_has_one() -> None:
    result = MetricResult(0.125, metric="m")
    assert float(result) == 0.125
    assert f"{result:.2f} {result:5.1%}" == "0.12 12.5%"
    assert repr(result) == str(result) == f"{result}" == "MetricResult(m=0.125)"


@pytest.mark.parametrize("status", ["undefined", "failed", "skipped"])
def test_a_result_without_a_number_says_why(status: str) -> None:
    result = MetricResult(None, status, "so it is", metric="m")  # type: ignore[arg-type]
    for ask in (float, lambda r: format(r, ".2f")):
        with pytest.raises(NotScoredError, match=f"m is {status}: so it is"):
            ask(result)
    assert repr(result) == f"{result}" == f"MetricResult(m: {status}, so it is)"


def test_zero_is_a_number() -> None:
    assert float(MetricResult(0.0)) == 0
    assert "=0.0" in repr(MetricResult(0.0))
