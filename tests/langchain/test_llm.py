"""Chat models as judges: real ones, whose answers are scripted."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

pytest.importorskip("langchain_core")

import langsmith
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableMap
from langchain_core.tracers.context import collect_runs, register_configure_hook
from pydantic import Field, SecretStr

from ctxeval import (
    LLM,
    AuthenticationError,
    Completion,
    ContextOverflowError,
    ContextRelevance,
    InvalidArgumentError,
    JudgeError,
    QuotaError,
    Usage,
)
from ctxeval.judges.cells import DEFAULT_CACHE
from ctxeval.judges.prompts import Prompts
from ctxeval.judges.replies import read_verdicts
from ctxeval.llm.loop import run
from ctxeval.testing import ScriptedLLM
from ctxeval_langchain import CtxEvalCallbackHandler
from ctxeval_langchain.llm import as_llm

SCRIPT = ScriptedLLM(relevant={"Paris."})
SAMPLE = {"user_input": "Where?", "retrieved_contexts": ["Oslo.", "Paris."]}
YES = '{"chunks": [{"id": 1, "reason": "", "verdict": "yes"}]}'


@pytest.fixture(autouse=True)
def _nothing_kept():
    DEFAULT_CACHE.clear()


def ask(llm: LLM, max_tokens: int | None = 1000) -> Completion:
    messages, schema = Prompts().judge("question", "Where?", "", ["Paris."], [1], ())
    return run(llm.complete(messages, schema, max_tokens=max_tokens))


def says_yes(completion: Completion) -> bool | None:
    return read_verdicts(completion.text, chunks=[1], claims=0, shown=1)[0][1].value


class Text(BaseChatModel):
    """Answers in text; `calls` says what it was asked with, `replies` what it answers first."""

    model: str = "scripted"
    temperature: float = 0.0
    calls: list = Field(default_factory=list)
    replies: list = Field(default_factory=list)
    pause: float = 0.0

    @property
    def _llm_type(self):
        return "scripted"

    def answer(self, messages, run_manager, **bound):
        handlers = [type(handler).__name__ for handler in run_manager.handlers]
        cap = getattr(self, "max_tokens", None)
        thread = threading.current_thread()
        self.calls.append({"bound": bound, "cap": cap, "handlers": handlers, "thread": thread})
        time.sleep(self.pause)
        reply = self.replies.pop(0) if self.replies else None
        if isinstance(reply, Exception):
            raise reply
        if reply is None:
            reply = SCRIPT.answer([{"role": m.type, "content": m.content} for m in messages])
        return reply if isinstance(reply, AIMessage) else AIMessage(content=reply)

    def _generate(self, messages, stop=None, run_manager=None, **bound):
        message = self.answer(messages, run_manager, **bound)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Capped(Text):
    max_tokens: int | None = None


class Structured(Capped):
    def with_structured_output(self, schema, *, include_raw=False, method="json_schema", **kwargs):
        assert include_raw
        assert schema["title"]  # without one, LangChain can't make a function of it
        return RunnableMap(raw=self.bind(response_format=method))


class ByToolCall(Structured):
    """Takes `method` and calls a tool all the same, as several packages do."""

    def _generate(self, messages, stop=None, run_manager=None, **bound):
        args = json.loads(self.answer(messages, run_manager, **bound).content)
        call = {"name": "verdicts", "args": args, "id": "1"}
        message = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


class WithoutRaw(Structured):
    def with_structured_output(self, schema, **kwargs):
        return self.bind(response_format="json_schema") | (lambda message: {"verdicts": []})


class Blocks(Text):
    def _generate(self, messages, stop=None, run_manager=None, **bound):
        text = self.answer(messages, run_manager, **bound).content
        thought = {"type": "thinking", "thinking": "Oslo? yes", "signature": ""}
        half = len(text) // 2
        parts = [thought, {"type": "text", "text": text[:half]}, text[half:]]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=parts))])


class AsyncOnly(Structured):
    def _generate(self, messages, stop=None, run_manager=None, **bound):
        raise NotImplementedError("use the asynchronous method")

    async def _agenerate(self, messages, stop=None, run_manager=None, **bound):
        await asyncio.sleep(0)
        return Text._generate(self, messages, run_manager=run_manager, **bound)


class BoundToItsLoop(Text):
    """Has an asynchronous client that belongs to the loop of its first call."""

    loops: list = Field(default_factory=list)

    async def _agenerate(self, messages, stop=None, run_manager=None, **bound):
        self.loops.append(asyncio.get_running_loop())
        if self.loops[0] is not self.loops[-1]:
            raise ConnectionError("Event loop is closed")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content="hello"))])


# Each kind of model judges.


@pytest.mark.parametrize(
    "kind", [Text, Capped, Structured, ByToolCall, WithoutRaw, Blocks, AsyncOnly]
)
@pytest.mark.parametrize("way", ["score", "ascore"])
def test_judges(kind, way):
    metric = ContextRelevance(as_llm(kind()))
    result = metric.score(**SAMPLE) if way == "score" else asyncio.run(metric.ascore(**SAMPLE))
    assert result.value == 0.5  # useful at rank 2 of 2: 1/2


def test_a_model_of_the_application_loop_judges():
    model = BoundToItsLoop()

    async def application():
        await model.ainvoke("hello")
        return await ContextRelevance(as_llm(model)).ascore(**SAMPLE)

    assert asyncio.run(application()).value == 0.5
    assert len(model.loops) == 1


@pytest.mark.parametrize("wrong", ["gpt-5-mini", None, Text().bind(stop=["."]), ScriptedLLM()])
def test_says_what_is_no_chat_model(wrong):
    with pytest.raises(InvalidArgumentError, match="BaseChatModel"):
        as_llm(wrong)


@pytest.mark.parametrize("wrong", [0, -1, True, 2.5, "4"])
def test_says_what_is_no_number_of_calls(wrong):
    with pytest.raises(InvalidArgumentError, match="concurrency"):
        as_llm(Text(), concurrency=wrong)


# What is sent.


def sent(model) -> list[tuple[bool, int | None]]:
    """Tell of each call: was structured output asked for, and under which cap?"""
    return [("response_format" in call["bound"], call["cap"]) for call in model.calls]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(Text, (False, None), id="text, no field for a cap"),
        pytest.param(Capped, (False, 1000), id="text"),
        pytest.param(Structured, (True, 1000), id="structured"),
        pytest.param(AsyncOnly, (True, 1000), id="asynchronous only"),
    ],
)
def test_asks_for_what_the_model_has(kind, expected):
    model = kind()
    assert says_yes(ask(as_llm(model)))
    assert sent(model) == [expected]


def refusal(message, status=400):
    error = ConnectionError(message)
    error.status_code = status
    return error


REFUSED_FORMAT = refusal("'response_format' of type 'json_schema' is not supported")
REFUSED_CAP = refusal("Unsupported parameter: 'max_tokens'", 422)
BOTH, NO_FORMAT, NO_CAP, NEITHER = (True, 1000), (False, 1000), (True, None), (False, None)


@pytest.mark.parametrize(
    ("refused", "first", "later"),
    [
        pytest.param([REFUSED_FORMAT], [BOTH, NO_FORMAT], NO_FORMAT, id="the format"),
        pytest.param([REFUSED_CAP], [BOTH, NO_CAP], NO_CAP, id="the cap"),
        pytest.param([REFUSED_CAP, REFUSED_FORMAT], [BOTH, NO_CAP, NEITHER], NEITHER, id="both"),
        pytest.param(
            [refusal("Bad Request")] * 2,
            [BOTH, NO_FORMAT, NEITHER],
            NEITHER,
            id="it won't say what",
        ),
        pytest.param([TypeError("response_format?")], [BOTH, NO_FORMAT], NO_FORMAT, id="locally"),
    ],
)
def test_remembers_what_was_refused(refused, first, later):
    model = Structured(replies=refused.copy())
    llm = as_llm(model)
    assert says_yes(ask(llm))
    assert sent(model) == first
    model.calls.clear()
    assert says_yes(ask(llm))
    assert sent(model) == [later]


def test_does_not_blame_the_format_for_what_fails_without_it_too():
    model = Structured(replies=[refusal("no such model")] * 3)
    llm = as_llm(model)
    with pytest.raises(JudgeError, match="no such model"):
        ask(llm)
    model.calls.clear()
    ask(llm)
    assert sent(model) == [BOTH]


def test_leaves_room_to_reason_once_it_is_seen():
    details = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    thought = AIMessage(
        content="", usage_metadata={**details, "output_token_details": {"reasoning": 900}}
    )
    model = Capped(replies=[thought])
    llm = as_llm(model)
    for _ in range(2):
        ask(llm)
    assert [call["cap"] for call in model.calls] == [1000, 4000]


def test_leaves_the_model_as_it_is():
    model = Structured(max_tokens=7)
    ask(as_llm(model))
    assert model.max_tokens == 7


# What comes back.

COUNTED = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(AIMessage(YES), Completion(YES, Usage(1, unreported=1)), id="text alone"),
        pytest.param(
            AIMessage(
                YES,
                usage_metadata={
                    **COUNTED,
                    "input_token_details": {"cache_read": 4},
                    "output_token_details": {"reasoning": 3},
                },
                response_metadata={"finish_reason": "stop", "model_name": "m-1"},
            ),
            Completion(YES, Usage(1, 9, 5, 4, 3), "stop", "m-1"),
            id="usage and model",
        ),
        pytest.param(
            AIMessage(
                YES,
                usage_metadata=COUNTED,
                response_metadata={"stop_reason": "end_turn"},
            ),
            Completion(YES, Usage(1, 9, 5), "end_turn"),
            id="no details",
        ),
        pytest.param(
            AIMessage("", additional_kwargs={"refusal": "No."}),
            Completion("No.", Usage(1, unreported=1), "refusal"),
            id="refusal",
        ),
    ],
)
def test_reads_the_message(message, expected):
    assert ask(as_llm(Text(replies=[message]))) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"finish_reason": "content_filter"}, "content_filter"),
        ({"finish_reason": "SAFETY"}, "content_filter"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"stop_reason": "refusal"}, "refusal"),
        ({"stopReason": "guardrail_intervened"}, "content_filter"),
        ({"done_reason": "length"}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"finish_reason": None, "incomplete_details": None}, "stop"),
        ({}, "stop"),
    ],
    ids=str,
)
def test_reads_why_it_stopped(metadata, expected):
    message = AIMessage(YES, response_metadata=metadata)
    assert ask(as_llm(Text(replies=[message]))).finish_reason == expected


def named(name, message="…", base=ValueError, **attributes):
    error = type(name, (base,), {})(message)
    vars(error).update(attributes)
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (named("LengthFinishReasonError"), "length"),
        (named("ContentFilterFinishReasonError"), "content_filter"),
        (named("ModelRefusalError"), "refusal"),
        (named("BadRequestError", status_code=400, code="content_filter"), "content_filter"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_some_errors_are_replies(error, expected):
    model = Structured(replies=[error])
    assert ask(as_llm(model)).finish_reason == expected
    assert len(model.calls) == 1


BOTO = {"ResponseMetadata": {"HTTPStatusCode": 403}}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(named("ContextOverflowError"), ContextOverflowError, id="LangChain's own"),
        pytest.param(
            named("OpenAIContextOverflowError", base=type("ContextOverflowError", (OSError,), {})),
            ContextOverflowError,
            id="derived from it",
        ),
        pytest.param(
            refusal("prompt is too long: 250000 tokens > 200000 maximum"),
            ContextOverflowError,
            id="Anthropic's words",
        ),
        pytest.param(
            refusal("This model's maximum context length is 8192 tokens."),
            ContextOverflowError,
            id="OpenAI's words",
        ),
        pytest.param(
            refusal("Rate limit: context window tokens per minute", 429), JudgeError, id="429"
        ),
        pytest.param(refusal("bad key", 401), AuthenticationError, id="401"),
        pytest.param(named("ClientError", response=BOTO), AuthenticationError, id="AWS's 403"),
        pytest.param(
            named("RateLimitError", status_code=429, code="insufficient_quota"),
            QuotaError,
            id="no credit",
        ),
        pytest.param(ConnectionError("away"), JudgeError, id="no connection"),
    ],
)
def test_errors(error, expected):
    model = Structured(replies=[error])
    with pytest.raises(JudgeError) as caught:
        ask(as_llm(model))
    assert type(caught.value) is expected
    assert caught.value.__cause__ is error
    assert len(model.calls) == 1


def test_an_error_shows_no_key():
    model = Text(replies=[refusal("Incorrect API key provided: sk-proj-abcdef123456.", 401)])
    with pytest.raises(AuthenticationError, match=r"provided: \[key\]") as caught:
        ask(as_llm(model))
    assert "abcdef" not in str(caught.value)


def test_a_model_that_runs_out_of_answers_does_not_hang():
    with pytest.raises(JudgeError, match="no more answers"):
        ask(as_llm(GenericFakeChatModel(messages=iter([]))))


# What distinguishes models.


class Keyed(Text):
    api_key: SecretStr | None = None
    access_token: str | None = None
    default_headers: dict | None = None
    model_kwargs: dict = Field(default_factory=dict)
    base_url: str | None = None
    wrapped: Any = None
    thinking: dict | None = None
    max_retries: int = 2
    request_timeout: float | None = None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(Keyed(), Keyed(temperature=0.5), id="temperature"),
        pytest.param(Keyed(), Keyed(model="another"), id="model"),
        pytest.param(Keyed(), Text(), id="class"),
        pytest.param(Keyed(), Keyed(base_url="https://b/v1"), id="endpoint"),
        pytest.param(Keyed(), Keyed(model_kwargs={"seed": 1}), id="a parameter in a dict"),
        pytest.param(Keyed(), Keyed(thinking={"budget_tokens": 5}), id="a number of tokens"),
        pytest.param(Keyed(wrapped=Text(model="a")), Keyed(wrapped=Text(model="b")), id="wrapped"),
        pytest.param(
            FakeListChatModel(responses=["yes"]), FakeListChatModel(responses=["no"]), id="a fake"
        ),
    ],
)
def test_other_models_have_another_identity(one, other):
    assert as_llm(one).identity != as_llm(other).identity


@pytest.mark.parametrize(
    "other",
    [
        Keyed(api_key=SecretStr("SECRET")),
        Keyed(access_token="SECRET"),
        Keyed(default_headers={"Authorization": "SECRET"}),
        Keyed(model_kwargs={"extra_headers": {"x": "SECRET"}, "API-Key": "SECRET"}),
        Keyed(wrapped=Keyed(access_token="SECRET", model="inner")),
        Keyed(base_url="https://user:SECRET@host:8/v1/?api_key=SECRET"),
    ],
    ids=str,
)
def test_identity_holds_no_secret(other):
    assert "SECRET" in str(vars(other)) or other.api_key is not None
    assert "SECRET" not in json.dumps(as_llm(other).identity)


@pytest.mark.parametrize(
    "other",
    [
        Keyed(api_key=SecretStr("SECRET")),
        Keyed(max_retries=0, request_timeout=3.0),
        Keyed(tags=["a"], metadata={"b": 1}, callbacks=[BaseCallbackHandler()]),
    ],
    ids=["key", "patience", "tracing"],
)
def test_identity_is_of_what_decides_the_answers(other):
    assert as_llm(other).identity == as_llm(Keyed()).identity


def test_identity_does_not_change_with_use():
    model = FakeListChatModel(responses=[YES, YES])
    llm = as_llm(model)
    before = json.dumps(llm.identity)
    ask(llm)
    assert json.dumps(llm.identity) == before


def test_identity_is_the_same_in_another_process():
    program = (
        "import json\n"
        "from langchain_core.language_models.fake_chat_models import FakeListChatModel\n"
        "from ctxeval_langchain.llm import as_llm\n"
        "print(json.dumps(as_llm(FakeListChatModel(responses=['a', 'b'])).identity))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    here = as_llm(FakeListChatModel(responses=["a", "b"])).identity
    assert json.loads(done.stdout) == here, done.stderr
    assert here["parameters"]["responses"] == ["a", "b"]


# Nobody in the application hears of the judge's calls.


class Spy(BaseCallbackHandler):
    pass


_spy: ContextVar[Spy | None] = ContextVar("_spy", default=None)
register_configure_hook(_spy, True)


def by_config(call):
    RunnableLambda(lambda _: call()).invoke("", {"callbacks": [Spy()]})


def by_hook(call):
    token = _spy.set(Spy())
    try:
        call()
    finally:
        _spy.reset(token)


def by_collecting(call):
    with collect_runs():
        call()


def by_langsmith(call):
    sends_nothing = langsmith.Client(
        "http://127.0.0.1:9", api_key="x", tracing_sampling_rate=0, auto_batch_tracing=False
    )
    with langsmith.run_helpers.tracing_context(enabled=True, client=sends_nothing):
        call()


HEARD = {
    by_config: "Spy",
    by_hook: "Spy",
    by_collecting: "RunCollectorCallbackHandler",
    by_langsmith: "LangChainTracer",
}


@pytest.mark.parametrize("surrounded", HEARD, ids=lambda way: way.__name__)
@pytest.mark.parametrize("kind", [Structured, AsyncOnly])
def test_is_not_traced(surrounded, kind):
    judge, of_the_application = kind(), Text()

    def application():
        of_the_application.invoke("hello")
        ask(as_llm(judge))

    of_the_application.replies = ["hello"]
    surrounded(application)
    assert [call["handlers"] for call in of_the_application.calls] == [[HEARD[surrounded]]]
    assert [call["handlers"] for call in judge.calls] == [[]]


def test_is_not_traced_where_the_environment_says_so(monkeypatch):
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("LANGSMITH_API_KEY", "x")
    monkeypatch.setenv("LANGSMITH_TRACING_SAMPLING_RATE", "0")
    langsmith.utils.get_env_var.cache_clear()
    try:
        assert langsmith.utils.tracing_is_enabled() is True
        model = Structured()
        ask(as_llm(model))
    finally:
        monkeypatch.undo()
        langsmith.utils.get_env_var.cache_clear()
    assert [call["handlers"] for call in model.calls] == [[]]


class Kb(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(id=text, page_content=text) for text in ("Oslo.", "Paris.")]


def test_the_handler_records_the_application_alone():
    judge = Structured()
    handler = CtxEvalCallbackHandler(metrics=["context_relevance"], llm=as_llm(judge))
    handler.raise_error = True
    chain = Kb() | (lambda documents: Structured(replies=["hello"]).invoke("hello"))
    chain.invoke("Where?", {"callbacks": [handler]})
    assert handler.flush(10)
    (record,) = handler.records
    assert record.question == "Where?"
    assert record.scores["context_relevance"].value == 0.5
    assert len(judge.calls) == 1


# Many calls.


def test_keeps_to_its_concurrency():
    model = Text(pause=0.05)
    samples = [{"user_input": f"{n}?", "retrieved_contexts": ["Paris."]} for n in range(9)]
    started = time.perf_counter()
    results = ContextRelevance(as_llm(model, concurrency=3)).batch_score(samples)
    assert time.perf_counter() - started > 3 * 0.05
    assert [result.value for result in results] == [1.0] * 9


def test_calls_run_at_once():
    barrier = threading.Barrier(8, timeout=10)

    class Meeting(Text):
        def _generate(self, messages, stop=None, run_manager=None, **bound):
            barrier.wait()
            return super()._generate(messages, run_manager=run_manager, **bound)

    samples = [{"user_input": f"{n}?", "retrieved_contexts": ["Paris."]} for n in range(8)]
    results = ContextRelevance(as_llm(Meeting())).batch_score(samples)
    assert [result.value for result in results] == [1.0] * 8
