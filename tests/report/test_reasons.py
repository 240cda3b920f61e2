"""Why values are missing, told together where that is the same."""

from collections import Counter

from ctxeval.report.reasons import UNASKED, Reason, gathered


def test_metrics_with_the_same_reason_stand_together():
    told = {
        ("x", "failed", "no reply"): 2,
        ("y", "failed", "no reply"): 2,
        ("z", "skipped", "needs an id"): 1,
    }
    assert gathered(told, {"x": 0, "y": 0, "z": 2}) == (
        Reason(("x", "y"), "failed", "no reply", 2),
        Reason(("z",), "skipped", "needs an id", 1),
        Reason(("z",), "skipped", UNASKED, 1),
    )


def test_reasons_that_differ_in_what_they_quote_are_told_once():
    replies = ("'I am sorry 1'", '"I can\'t"', "'I am sorry 1'")
    reasons = [f"{n} of 3 unread: no JSON: {reply}" for n, reply in enumerate(replies)]
    reasons += ["it can't be read", "it isn't there"]
    assert gathered(Counter(("x", "failed", one) for one in reasons), {}) == (
        Reason(("x",), "failed", "0 of 3 unread: no JSON: 'I am sorry 1' (and 2 like it)", 3),
        Reason(("x",), "failed", "it can't be read", 1),
        Reason(("x",), "failed", "it isn't there", 1),
    )
