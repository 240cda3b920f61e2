"""Better or worse is said of pairs alone, and a gate shuts only on what is really there."""

import pytest

pytest.importorskip("scipy")

from ctxeval import Evaluation, GateFailure, InvalidArgumentError, compare, gate
from ctxeval.evaluation.rows import Row
from ctxeval.evaluation.statistics import paired_difference
from ctxeval.result import MetricResult
from ctxeval.sample import Sample


def run(values, metric="m", signature="s", start=0):
    """Make an evaluation of one metric: a number, or a status where there is none."""
    rows = []
    for number, value in enumerate(values, start=start):
        scored = not isinstance(value, str)
        result = MetricResult(
            value if scored else None,
            "scored" if scored else value,
            metric=metric,
            signature=signature,
        )
        rows.append(Row(str(number), Sample(id=number), {metric: result}))
    return Evaluation(rows)


LOW = [0.1, 0.2, 0.3, 0.2, 0.1, 0.3, 0.2, 0.1] * 4
HIGH = [value + 0.5 for value in LOW]


def test_pairs_by_id_and_counts_what_has_no_partner():
    one = compare(run([0.0, 0.5, "failed", 1.0]), run([0.5, "skipped", 1.0, 1.0, 1.0]))["m"]
    assert (one.pairs, one.dropped) == (2, 3)
    assert (one.baseline, one.candidate) == (0.5, 0.75)
    assert one.difference == paired_difference([0.5, 0.0])


def test_the_order_of_the_samples_does_not_matter():
    before, after = run(LOW), run(HIGH)
    turned = Evaluation(reversed(list(after.rows)))
    assert compare(before, turned)["m"].difference.interval.mean == pytest.approx(0.5)


def test_better_worse_and_neither():
    assert compare(run(LOW), run(HIGH))["m"].verdict == "better"
    assert compare(run(HIGH), run(LOW))["m"].verdict == "worse"
    assert compare(run(LOW), run(LOW[::-1]))["m"].verdict == "no significant change"


def test_several_metrics_are_adjusted_for():
    def two(first, second):
        rows = [
            Row(a.id, a.sample, {**a.results, **b.results})
            for a, b in zip(run(first, "m1").rows, run(second, "m2").rows, strict=True)
        ]
        return Evaluation(rows)

    small = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    found = compare(two(small, small), two([v + 0.1 for v in small], [v - 0.1 for v in small]))
    # six of six pairs turned one way: 2 / 2**6 each, times two metrics
    assert [one.difference.p for one in found.changes] == pytest.approx([1 / 32, 1 / 32])
    assert [one.p_adjusted for one in found.changes] == pytest.approx([1 / 16, 1 / 16])


def test_a_repeated_id_is_an_error():
    twice = Evaluation([*run([0.1]).rows, *run([0.2]).rows])
    with pytest.raises(InvalidArgumentError, match="two samples have the id '0'"):
        compare(twice, run([0.1]))


def test_without_pairs_nothing_is_compared():
    one = compare(run([0.1, 0.2]), run([0.9, 0.9], start=10))["m"]
    assert one.difference is None
    assert one.candidate is None
    assert one.verdict == "no significant change"


def test_no_metric_in_common():
    with pytest.raises(InvalidArgumentError, match="share no metric: m here, n there"):
        compare(run([0.1]), run([0.1], "n"))


def test_another_judge_is_noted():
    assert compare(run(LOW), run(LOW, signature="t"))["m"].note == "judged in different ways"


def test_the_table_tells_all():
    text = str(compare(run(LOW), run(HIGH)))
    assert "+0.500" in text
    assert "32 (0 dropped)" in text
    assert "better" in text


class TestGate:
    def test_opens(self):
        checks = gate(run(HIGH), run(LOW), minimum={"m": 0.6}, max_drop={"m": 0.0})
        assert all(check.passed for check in checks)

    def test_shuts_on_a_significant_drop(self):
        with pytest.raises(GateFailure, match=r"FAIL m .*drop <= 0: -0.500"):
            gate(run(LOW), run(HIGH))

    def test_a_drop_may_be_allowed(self):
        assert gate(run(LOW), run(HIGH), max_drop={"m": 0.6})

    def test_a_drop_by_chance_does_not_shut_it(self):
        before = [0.1, 0.9, 0.5, 0.4, 0.6, 0.3]
        assert gate(run([*before[:-1], 0.2]), run(before))

    def test_shuts_on_a_floor_that_the_interval_excludes(self):
        with pytest.raises(GateFailure, match=r"mean >= 0\.5"):
            gate(run(LOW), minimum={"m": 0.5})

    def test_a_floor_inside_the_interval_does_not_shut_it(self):
        mean = sum(LOW) / len(LOW)
        assert gate(run(LOW), minimum={"m": mean + 0.005})

    def test_without_an_interval_the_mean_counts(self):
        with pytest.raises(GateFailure):
            gate(run([0.4] * 5), minimum={"m": 0.5})

    def test_shuts_on_too_little_coverage(self):
        with pytest.raises(GateFailure, match="9 of 10 scored"):
            gate(run([0.5, 0.6, 0.7] * 3 + ["failed"]))
        assert gate(run([0.5, 0.6, 0.7] * 3 + ["failed"]), min_coverage=0.9)

    def test_what_is_undefined_costs_no_coverage(self):
        assert gate(run([0.5, 0.6] + ["undefined"] * 8))

    def test_shuts_where_there_is_nothing(self):
        with pytest.raises(GateFailure, match="0, none of them scored"):
            gate(Evaluation([]))

    def test_shuts_where_auto_had_no_such_metric_for_most(self):
        rows = list(run([0.5] * 10).rows)
        rows += [Row(f"bare {n}", Sample(id=n), {}) for n in range(10)]
        with pytest.raises(GateFailure, match="10 of 20 scored"):
            gate(Evaluation(rows))

    def test_shuts_where_samples_of_the_baseline_are_gone(self):
        with pytest.raises(GateFailure, match="16 of 32 are there"):
            gate(run(LOW[:16]), run(LOW))

    def test_shuts_where_a_metric_of_the_baseline_is_gone(self):
        rows = [Row(one.id, one.sample, one.results) for one in run(LOW).rows]
        more = [Row(a.id, a.sample, {**a.results, "n": a.results["m"]}) for a in rows]
        with pytest.raises(GateFailure, match=r"FAIL n .*not scored"):
            gate(run(LOW), Evaluation(more))

    def test_takes_files(self, tmp_path):
        run(HIGH).save(tmp_path / "new.jsonl")
        run(LOW).save(tmp_path / "old.jsonl")
        assert gate(tmp_path / "new.jsonl", tmp_path / "old.jsonl")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"minimum": {"n": 0.5}}, "'n' was not scored"),
            ({"max_drop": {"m": 0.5}}, "needs a baseline"),
            ({"minimum": {"m": float("nan")}}, r"minimum\['m'\]: nan is no number from 0 to 1"),
            ({"minimum": {"m": 60}}, "60 is no number"),
            ({"min_coverage": "1"}, "min_coverage: '1' is no number"),
        ],
    )
    def test_what_cannot_be_asked(self, options, message):
        with pytest.raises(InvalidArgumentError, match=message):
            gate(run(LOW), **options)

    def test_as_a_fixture(self, ctxeval_gate):
        assert ctxeval_gate(run(HIGH), run(LOW))
        with pytest.raises(AssertionError):
            ctxeval_gate(run(LOW), run(HIGH))


def test_runs_are_taken_as_files_too(tmp_path):
    before, after = run(LOW), run(HIGH)
    files = [one.save(tmp_path / f"{n}.jsonl") for n, one in enumerate((before, after))]
    expected = compare(before, after)
    assert compare(*files) == compare(str(files[0]), after) == expected
    assert gate(files[1], files[0]) == gate(after, before)
    with pytest.raises(InvalidArgumentError, match=r"run: 5 is no Evaluation"):
        compare(5, after)
    with pytest.raises(InvalidArgumentError, match=r"minimum: .* is no mapping"):
        gate(after, minimum=["m"])


def test_runs_without_a_common_sample_say_so():
    change = compare(run(LOW), run(LOW, start=100))["m"]
    assert (change.pairs, change.dropped) == (0, 64)
    assert change.note == "no id is in both: '0' before, '100' now"
    one = compare(run([0.5, "failed"]), run(["failed", 0.5]))["m"]
    assert one.note == "no sample has a value in both"
