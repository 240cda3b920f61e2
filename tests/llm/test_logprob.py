"""The mode by probabilities: a short call each, a threshold that costs none, honest gaps."""

from __future__ import annotations

import re

import pytest
from openai_server import RATE_LIMIT, Reply, completion, refused

from ctxeval import (
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    FirstToken,
    InvalidArgumentError,
    JudgeError,
    MetricResult,
    Sample,
    evaluate,
    score,
)
from ctxeval.judges.cells import MemoryCache
from ctxeval.judges.llm import LLMJudge
from ctxeval.llm.loop import run
from ctxeval.testing import ScriptedLLM

SAMPLE = Sample(
    user_input="q", reference="One. Two.", retrieved_contexts=["a", "b", "c"], response="r"
)
LIKELY = {"a": 0.2, "b": 0.9, "c": 0.6}
ALL = [ContextPrecision, ContextRecall, ContextRelevance]


def scripted(**options):
    return ScriptedLLM(
        relevant=lambda question, chunk: LIKELY[chunk], supported={"One.": {"b"}}, **options
    )


def judge(llm, **options):
    return LLMJudge(llm, "logprob", **{"cache": MemoryCache(), **options})


def test_each_chunk_and_each_claim_is_a_call():
    llm = scripted()
    shared = judge(llm)
    results = score(SAMPLE, [metric(shared) for metric in ALL])
    precision, recall, relevance = results.values()
    split, *asked = llm.documents
    assert split == {"text": "One. Two."}
    assert sum("claim" in one for one in asked) == 2
    assert sum("reference" in one for one in asked) == 3
    assert len(asked) == 8, "the question alone is another purpose"
    # No, yes, yes: (1/2 + 2/3) / 2.
    assert precision.value == pytest.approx(7 / 12)
    assert [one.probability for one in precision.verdicts.chunks] == pytest.approx([0.2, 0.9, 0.6])
    assert precision.verdicts.chunks[1].reason == "yes with a probability of 0.90 >= 0.5"
    assert recall.value == recall.expected == 0.5
    assert recall.verdicts.units[0].matched == (), "which chunks it needs is not told"
    assert relevance.value == pytest.approx(2 / 3)
    assert relevance.expected == pytest.approx((0.2 + 0.9 + 0.6) / 3)
    assert precision.usage.requests == 6


def test_another_threshold_costs_no_call():
    llm, cache = scripted(), MemoryCache()
    values = {}
    for threshold in (0.5, 0.15, 0.7, 1.0, 0.9):
        metric = ContextRelevance(judge(llm, cache=cache, threshold=threshold))
        values[threshold] = metric.score(SAMPLE).value
        assert f"threshold={threshold:g}" in metric.signature
    thirds = {0.15: 3, 0.5: 2, 0.7: 1, 0.9: 1, 1.0: 0}
    assert values == {limit: pytest.approx(n / 3) for limit, n in thirds.items()}
    assert len(llm.documents) == 3


def test_a_reason_tells_the_probability_beside_its_threshold():
    llm, cache = scripted(), MemoryCache()
    for threshold, said in ((0.75, "0.60 < 0.75"), (0.5, "0.60 >= 0.5")):
        metric = ContextRelevance(judge(llm, cache=cache, threshold=threshold))
        verdict = metric.score(SAMPLE).verdicts.chunks[2]
        assert verdict.reason == f"yes with a probability of {said}"


def test_a_reordered_retrieval_costs_nothing_and_a_new_chunk_itself():
    llm, cache = scripted(), MemoryCache()
    metrics = [metric(judge(llm, cache=cache)) for metric in (ContextPrecision, ContextRecall)]
    score(SAMPLE, metrics)
    calls = len(llm.documents)
    score(SAMPLE.model_copy(update={"retrieved_contexts": ["c", "a", "b", "a"]}), metrics)
    assert len(llm.documents) == calls
    LIKELY["new"] = 0.5
    score(SAMPLE.model_copy(update={"retrieved_contexts": ["a", "b", "new"]}), metrics)
    assert len(llm.documents) == calls + 1 + 2, "a claim is shown with all of the chunks"


def test_the_mode_is_no_other_modes_verdict():
    llm, cache = scripted(), MemoryCache()
    for mode in ("joint", "logprob", "pointwise"):
        ContextRelevance(LLMJudge(llm, mode, cache=cache)).score(SAMPLE)
    assert len(llm.documents) == 1 + 3 + 3


def test_repeats_average():
    class Wavering(ScriptedLLM):
        async def first_token(self, messages):
            self._relevant = lambda question, chunk: (0.9, 0.2, 0.7)[len(self.documents) % 3]
            return await super().first_token(messages)

    one = Sample(user_input="q", retrieved_contexts=["a"])
    result = ContextRelevance(judge(Wavering(), repeats=3)).score(one)
    (verdict,) = result.verdicts.chunks
    assert verdict.probability == pytest.approx(0.6)
    assert sorted(verdict.votes) == [False, True, True]
    assert (result.value, result.expected) == (1, pytest.approx(0.6))


def test_what_is_no_yes_and_no_no_is_unread_and_not_kept():
    llm, cache = scripted(replies=["Perhaps"]), MemoryCache()
    one = Sample(user_input="q", retrieved_contexts=["b"])
    metric = ContextRelevance(judge(llm, cache=cache))
    result = metric.score(one)
    assert (result.status, result.bounds, result.expected) == ("failed", (0, 1), None)
    assert "neither yes nor no is among the likeliest words: 'Perhaps'" in result.reason
    assert metric.score(one).value == 1


def test_blank_chunks_are_not_asked_about():
    llm = scripted()
    result = ContextRelevance(judge(llm)).score(user_input="q", retrieved_contexts=[" ", "b"])
    assert len(llm.documents) == 1
    assert (result.value, result.expected) == (0.5, pytest.approx(0.45))


def test_a_result_survives_json():
    result = ContextRelevance(judge(scripted())).score(SAMPLE)
    again = MetricResult.from_json(result.to_json())
    assert (again, again.expected) == (result, result.expected)
    assert again.verdicts.chunks[0].probability == pytest.approx(0.2)


def test_a_rehearsal_counts_the_calls():
    pytest.importorskip("scipy")
    llm = scripted()
    metrics = [metric(judge(llm)) for metric in ALL]
    planned = evaluate([SAMPLE], metrics, dry_run=True)
    assert llm.documents == []
    evaluate([SAMPLE], metrics)
    assert planned.requests == len(llm.documents) == 9


def test_a_judge_has_its_options_already():
    with pytest.raises(InvalidArgumentError, match="a judge and repeats were given"):
        ContextRelevance(judge(scripted()), repeats=3)


class Silent:
    identity = {"endpoint": "here", "model": "m"}  # noqa: RUF012

    async def complete(self, messages, schema, *, max_tokens=None):
        raise AssertionError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "logprob", "threshold": 1.5}, "threshold: 1.5 is not from 0 to 1"),
        ({"mode": "logprob", "threshold": True}, "threshold: True is no number"),
        ({"mode": "joint", "threshold": 0.5}, 'gives verdicts, no probabilities: give mode="logp'),
        ({"mode": "logprobs"}, "did you mean 'logprob'"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        LLMJudge(ScriptedLLM(), **options)


def test_a_model_without_probabilities_is_told_at_once():
    with pytest.raises(InvalidArgumentError, match='tells no log-probabilities: use mode="joint"'):
        LLMJudge(Silent(), "logprob")


class Own:
    """A model of the user's own."""

    def __init__(self, logprobs):
        self.identity = {"model": "own"}
        self.logprobs = logprobs

    async def complete(self, messages, schema, *, max_tokens):
        raise NotImplementedError

    async def first_token(self, messages):
        return FirstToken(self.logprobs)


class TestModelOfOnesOwn:
    @pytest.mark.parametrize("told", [{"yes": "-0.1"}, {"yes": None}, {1: -0.1}, {"yes": 1e9}])
    def test_what_is_no_logarithm_is_unread(self, told):
        result = ContextRelevance(judge(Own(told))).score(SAMPLE)
        assert result.status == "failed"
        assert "is no log-probability" in result.reason

    @pytest.mark.parametrize("told", [None, [("yes", -0.1)], "yes"])
    def test_what_is_no_mapping_is_told(self, told):
        with pytest.raises(JudgeError, match=r"first_token\(\) gave .* with a mapping of words"):
            ContextRelevance(judge(Own(told))).score(SAMPLE)


class TestEndpoint:
    def score(self, llm, sample=SAMPLE):
        return ContextRelevance(judge(llm)).score(sample)

    def test_probabilities_come_over_the_wire(self, serve, connect):
        server = serve(scripted())
        result = self.score(connect(server))
        probabilities = [one.probability for one in result.verdicts.chunks]
        assert probabilities == pytest.approx([0.2, 0.9, 0.6])
        (body, *_) = server.bodies
        assert (body["logprobs"], body["top_logprobs"], body["temperature"]) == (True, 20, 0)
        assert "response_format" not in body
        assert body["max_tokens"] <= 2
        assert result.usage.requests == server.requests == 3

    def test_an_endpoint_that_tells_fewer(self, serve, connect):
        server = serve(scripted(), top_logprobs=5)
        assert self.score(connect(server)).value == pytest.approx(2 / 3)
        assert {body["top_logprobs"] for body in server.bodies} == {20, 5}

    def test_an_endpoint_that_leaves_them_out(self, serve, connect):
        server = serve(scripted(), top_logprobs=0)
        with pytest.raises(
            JudgeError, match='no log-probabilities: judge with mode="joint" or "po'
        ):
            self.score(connect(server))

    @pytest.mark.parametrize("likeliest", [None, [], {}, "x", 5, [1, 2]])
    def test_the_chosen_word_alone_is_no_probability(self, serve, connect, likeliest):
        answer = completion("Yes")
        place = {"token": "Yes", "logprob": -0.69, "top_logprobs": likeliest}
        answer["choices"][0]["logprobs"] = {"content": [place]}
        server = serve(scripted(), replies=[Reply(body=answer)] * 3)
        with pytest.raises(JudgeError, match="tells no log-probabilities: judge with mode="):
            self.score(connect(server))

    @pytest.mark.parametrize("told", [1000.0, float("inf"), float("nan"), 0.92, True])
    def test_what_is_no_logarithm_costs_no_other_chunk(self, serve, connect, told):
        answer = completion("Yes")
        tops = [{"token": "Yes", "logprob": told}, {"token": "No", "logprob": -3}]
        answer["choices"][0]["logprobs"] = {"content": [{**tops[0], "top_logprobs": tops}]}
        server = serve(scripted(), replies=[Reply(body=answer)])
        (unread,) = [v for v in self.score(connect(server)).verdicts.chunks if v.value is None]
        assert unread.probability is None
        assert re.search("for 'Yes' is no log-probability: .* at most 0", unread.reason)

    def test_an_endpoint_that_refuses_them(self, serve, connect):
        accepts = ("json_schema strict", "text", "temperature", "max_tokens")
        server = serve(scripted(), accepts=accepts)
        with pytest.raises(JudgeError, match=r"'logprobs' is not supp.*no log-probab"):
            self.score(connect(server))

    def test_refused_parameters_are_learnt_all_the_same(self, serve, connect):
        accepts = ("json_schema strict", "text", "max_completion_tokens", "logprobs")
        server = serve(scripted(), accepts=accepts)
        assert self.score(connect(server)).value == pytest.approx(2 / 3)

    def test_it_is_tried_again(self, serve, connect):
        server = serve(scripted(), replies=[RATE_LIMIT, Reply(503, "<html>")])
        assert self.score(connect(server)).value == pytest.approx(2 / 3)
        assert server.requests == 5

    @pytest.mark.parametrize(
        ("reply", "why"),
        [
            (completion(None, "content_filter"), r"would not answer \(content_filter\)"),
            (completion(None, refusal="No, sorry."), r"would not answer \(refusal\): No, sorry"),
            (completion(""), "the reply is empty"),
            ({**completion("yes"), "choices": []}, "the reply holds no answer"),
            ({**completion("yes"), "choices": None}, "the reply holds no answer"),
        ],
    )
    def test_a_chunk_that_gets_no_answer_costs_no_other(self, serve, connect, reply, why):
        server = serve(scripted(), replies=[Reply(body=reply)])
        result = self.score(connect(server))
        unread = [one for one in result.verdicts.chunks if one.value is None]
        assert len(unread) == 1
        assert result.bounds is not None
        assert re.search(why, unread[0].reason)

    def test_a_filter_in_the_way_costs_no_other_chunk(self, serve, connect):
        server = serve(scripted(), replies=[refused(400, "Blocked", code="content_filter")])
        result = self.score(connect(server))
        (unread,) = [one for one in result.verdicts.chunks if one.value is None]
        assert "the model would not answer: " in unread.reason

    def test_white_space_goes_before_the_word(self, serve, connect):
        place = {"token": "no", "logprob": -0.5, "top_logprobs": [{"token": "No", "logprob": -1.5}]}
        answer = completion("\n\nno")
        answer["choices"][0]["logprobs"] = {
            "content": [{"token": "\n\n", "logprob": 0.0, "top_logprobs": []}, place]
        }
        server = serve(scripted(), replies=[Reply(body=answer)])
        first = run(connect(server).first_token([{"role": "user", "content": "?"}]))
        assert first.logprobs == {"No": -1.5, "no": -0.5}

    def test_a_prompt_that_is_too_long_is_unread(self, serve, connect):
        server = serve(scripted(), context=2000)
        long = Sample(user_input="q", retrieved_contexts=["b", "x" * 3000])
        result = self.score(connect(server), long)
        assert result.bounds == (0.5, 1)
        assert "does not fit the model's context" in result.verdicts.chunks[1].reason
