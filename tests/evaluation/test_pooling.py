"""Several retrievals against what all of them found relevant, without asking again."""

from math import log2

import pytest

pytest.importorskip("scipy")

from ctxeval import ContextPrecision, InvalidArgumentError, compare, evaluate, pooled
from ctxeval.testing import ScriptedLLM

LLM = ScriptedLLM(relevant={"a", "b", "c"})


def samples(**texts):
    return [
        {"id": name, "user_input": f"{name}?", "reference": "r", "retrieved_contexts": list(one)}
        for name, one in texts.items()
    ]


def judged(**texts):
    return evaluate(samples(**texts), ["context_precision"], llm=LLM)


def test_worked_by_hand():
    first, second = pooled([judged(q="axb"), judged(q="ycy")], "context_precision", k=2)
    best = 1 + 1 / log2(3)  # of a, b and c two have room
    assert first.values("ndcg@2[pooled]")["q"] == pytest.approx(1 / best)
    assert second.values("ndcg@2[pooled]")["q"] == pytest.approx((1 / log2(3)) / best)
    assert first.values("recall@2[pooled]") == {"q": 1 / 3}
    assert second.values("judged@2") == {"q": 1.0}


def test_nothing_is_asked_and_what_is_not_judged_is_shown(tmp_path):
    saved = judged(q="abx").save(tmp_path / "run.jsonl")
    asked = len(LLM.calls)
    # A re-ranked order, and one with a chunk that nobody judged.
    others = [evaluate(samples(q=texts), ["reciprocal_rank"]) for texts in ("xba", "azzb")]
    _, ranked, unknown = pooled([saved, *others], "context_precision", k=3)
    assert len(LLM.calls) == asked
    assert ranked.values("judged@3") == {"q": 1.0}
    assert ranked.values("recall@3[pooled]") == {"q": 1.0}
    assert unknown.values("judged@3") == {"q": 1 / 3}
    assert unknown.values("recall@3[pooled]") == {"q": 0.5}
    (row,) = unknown.worst("recall@3[pooled]")
    result = row.results["recall@3[pooled]"]
    assert result.reason == "1 of the first 3 chunks are judged"
    assert [one.value for one in result.verdicts.chunks] == [True, None, None, True]


def test_a_repeated_chunk_is_credited_once():
    once, twice = pooled([judged(q="ab"), judged(q="aab")], "context_precision", k=2)
    assert once.values("recall@2[pooled]") == {"q": 1.0}
    assert twice.values("recall@2[pooled]") == {"q": 0.5}
    assert twice.values("ndcg@2[pooled]")["q"] == pytest.approx(1 / (1 + 1 / log2(3)))


def test_what_has_no_number_says_why():
    (found,) = pooled([judged(none="xy", empty="", good="a")], "context_precision")
    results = {row.id: row.results for row in found.rows}
    assert results["none"]["ndcg@10[pooled]"].reason == "no chunk of the pool is relevant"
    assert results["empty"]["judged@10"].reason == "nothing was retrieved"
    assert results["empty"]["recall@10[pooled]"].status == "undefined"
    assert found.values("recall@10[pooled]") == {"good": 1.0}


def test_the_results_are_compared_like_any_others():
    texts = {f"q{n}": "xab" for n in range(8)}
    turned = {name: "abx" for name in texts}
    before, after = pooled([judged(**texts), judged(**turned)], "context_precision", k=2)
    change = compare(before, after)["ndcg@2[pooled]"]
    assert (change.verdict, change.note) == ("better", "")


def test_by_the_texts_alone():
    expected = {"reference_contexts": ["a text that was expected"]}
    rows = [
        {"id": 1, **expected, "retrieved_contexts": texts}
        for texts in (["a text that was expected", "zzz"], ["zzz", "a text that was expected"])
    ]
    runs = [evaluate([row], ["non_llm_context_precision"]) for row in rows]
    name = runs[0].metrics[0]
    assert [run.values("judged@10")["1"] for run in pooled(runs, name)] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("runs", "metric", "message"),
    [
        pytest.param(lambda: [], "m", "'m' was not scored in any run: give at", id="no run"),
        pytest.param(
            lambda: [judged(q="a")],
            "context_recision",
            "did you mean 'context_precision'",
            id="typo",
        ),
        pytest.param(lambda: judged(q="a"), "m", "give a list of them", id="one run"),
        pytest.param(lambda: [5], "m", "5 is no Evaluation", id="no evaluation"),
        pytest.param(
            lambda: [
                evaluate(
                    [{"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}], ["mrr"]
                )
            ],
            "reciprocal_rank",
            "is judged by id, which knows all",
            id="by id",
        ),
        pytest.param(
            lambda: [
                judged(q="a"),
                evaluate(
                    [{**samples(q="a")[0], "user_input": "other"}], ["context_precision"], llm=LLM
                ),
            ],
            "context_precision",
            "'q' stands for 'q[?]' in one run, and for 'other'",
            id="another question",
        ),
    ],
)
def test_what_cannot_be_pooled(runs, metric, message):
    with pytest.raises(InvalidArgumentError, match=message):
        pooled(runs(), metric)


def test_verdicts_of_different_judges_do_not_go_together():
    other = evaluate(samples(q="a"), [ContextPrecision(LLM, instructions="Be strict.")])
    with pytest.raises(InvalidArgumentError, match="judged in different ways"):
        pooled([judged(q="a"), other], "context_precision")


@pytest.mark.parametrize("k", [0, True, 1.5])
def test_k_is_a_number_of_ranks(k):
    with pytest.raises(InvalidArgumentError, match="is no number of ranks"):
        pooled([judged(q="a")], "context_precision", k)
