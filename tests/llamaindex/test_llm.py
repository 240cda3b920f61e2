"""LlamaIndex models as judges: real ones, whose answers are scripted."""

import asyncio
import json
import subprocess
import sys
import threading
from contextvars import ContextVar
from types import SimpleNamespace

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.dispatcher import active_instrument_tags, instrument_tags
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import ChatMessage, CompletionResponse, CustomLLM, LLMMetadata, MockLLM
from llamaindex_parts import Judge, said
from pydantic import Field

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
    score,
)
from ctxeval.testing import ScriptedLLM
from ctxeval_llamaindex.llm import as_llm
from ctxeval_llamaindex.replies import read_reply
from ctxeval_llamaindex.suppression import suppressed

MESSAGES = [{"role": "system", "content": "Judge."}, {"role": "user", "content": "{}"}]
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
ONE = Usage(requests=1, unreported=1)


def complete(model, max_tokens=None, **options):
    llm = as_llm(model, **options)
    return asyncio.run(llm.complete(MESSAGES, SCHEMA, max_tokens=max_tokens))


def test_it_judges():
    model = Judge(ScriptedLLM(relevant={"useful"}))
    sample = {"user_input": "Q?", "retrieved_contexts": ["idle", "useful"]}
    results = score(sample, ["context_relevance"], as_llm(model))
    assert results["context_relevance"].value == 0.5
    assert len(model.calls) == 1


async def test_it_judges_in_a_running_loop_and_in_threads():
    metric = ContextRelevance(as_llm(Judge(ScriptedLLM(relevant={"useful"}))))
    sample = {"user_input": "Q?", "retrieved_contexts": ["useful"]}
    assert (await metric.ascore(sample)).value == 1
    assert metric.score(sample).value == 1
    assert (await asyncio.to_thread(metric.score, {**sample, "user_input": "R?"})).value == 1


def test_a_completion_model_judges_by_its_chat_prompt():
    class Plain(CustomLLM):
        @property
        def metadata(self):
            return LLMMetadata(model_name="plain")

        def complete(self, prompt, formatted=False, **kwargs):
            assert "Judge." in prompt
            return CompletionResponse(text="{}", raw={"usage": {"prompt_tokens": 3}})

        def stream_complete(self, prompt, formatted=False, **kwargs):
            raise NotImplementedError

    assert complete(Plain()) == Completion("{}", Usage(1, 3, 0))


def test_it_is_an_llm():
    llm = as_llm(Judge(), concurrency=3)
    assert isinstance(llm, LLM)
    assert llm.concurrency == 3
    assert repr(llm) == "<LLM llamaindex_parts.Judge>"


@pytest.mark.parametrize(
    ("model", "options"),
    [("gpt-5", {}), (Judge, {}), (Judge(), {"concurrency": 0}), (Judge(), {"concurrency": True})],
)
def test_what_is_no_model(model, options):
    with pytest.raises(InvalidArgumentError, match=r"is no LLM of LlamaIndex|no number of calls"):
        as_llm(model, **options)


# Where it runs.


class Watching(MockLLM):
    """Notes where it is called, and what surrounds the call."""

    def chat(self, messages, **kwargs):
        SEEN.append((threading.current_thread().name, suppressed.get(), TAG.get(), tags()))
        return said("{}")


SEEN: list = []
TAG: ContextVar[str] = ContextVar("tag", default="")


def tags():
    return dict(active_instrument_tags.get())


def test_the_applications_context_is_not_in_the_call():
    SEEN.clear()
    TAG.set("the application's")
    with instrument_tags({"case": "1"}):
        assert complete(Watching()).text == "{}"
    assert [seen[1:] for seen in SEEN] == [(True, "", {})]
    assert SEEN[0][0] != threading.main_thread().name
    assert suppressed.get() is False


def test_its_spans_have_no_parent_in_the_application():
    spans = SimpleSpanHandler()
    dispatcher = get_dispatcher()
    dispatcher.add_span_handler(spans)

    @get_dispatcher("test").span
    def application():
        return complete(Judge(replies=["{}"]))

    try:
        application()
    finally:
        dispatcher.span_handlers.remove(spans)
    parents = {
        span.id_.split(".")[0].split("-")[0]: span.parent_id for span in spans.completed_spans
    }
    assert parents["Judge"] is None


class OnlyAsync(MockLLM):
    """Has no synchronous chat, and wants one loop."""

    def chat(self, messages, **kwargs):
        raise NotImplementedError

    async def achat(self, messages, **kwargs):
        LOOPS.append((asyncio.get_running_loop(), suppressed.get(), TAG.get()))
        return said("{}")


LOOPS: list = []


def test_a_model_without_chat_is_awaited_on_ctxevals_own_loop():
    LOOPS.clear()
    TAG.set("the application's")
    metric = ContextRelevance(as_llm(OnlyAsync()))
    for question in ("Q?", "R?"):
        metric.score(user_input=question, retrieved_contexts=["x"])
        asyncio.run(metric.ascore(user_input=f"async {question}", retrieved_contexts=["x"]))
    assert len(LOOPS) >= 4
    assert len({id(loop) for loop, _, _ in LOOPS}) == 1
    assert {seen[1:] for seen in LOOPS} == {(True, "")}


# What is asked for, and what is refused.


def test_the_cap_is_passed_on():
    model = Judge(replies=["{}", "{}"])
    complete(model, max_tokens=100)
    complete(model)
    assert model.calls == [{"max_tokens": 100}, {}]


def test_a_model_that_takes_no_cap_is_asked_without_from_then_on():
    model = Judge(refuses=("max_tokens",), replies=["{}"] * 2)
    llm = as_llm(model)
    for _ in range(2):
        assert asyncio.run(llm.complete(MESSAGES, SCHEMA, max_tokens=9)).text == "{}"
    assert model.calls == [{"max_tokens": 9}, {}, {}]


class Refused(Exception):
    def __init__(self, message, status=400):
        super().__init__(message)
        self.status_code = status


def like_openai(**fields):
    """Make a model whose class is called as LlamaIndex's for OpenAI is."""
    return type("OpenAI", (Judge,), {"__module__": __name__})(**fields)


FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "verdicts", "strict": True, "schema": SCHEMA},
}


def test_what_is_made_from_openais_is_asked_by_schema():
    model = type("OpenAILike", (type(like_openai()),), {})(replies=["{}"])
    assert complete(model, max_tokens=9).text == "{}"
    assert model.calls == [{"max_tokens": 9, "response_format": FORMAT}]


@pytest.mark.parametrize(
    ("refusals", "calls"),
    [
        pytest.param(
            [Refused("Unsupported parameter: 'max_tokens', use 'max_completion_tokens'")],
            [
                {"max_tokens": 9, "response_format": FORMAT},
                {"max_completion_tokens": 36, "response_format": FORMAT},
            ],
            id="the newer name of the cap, with room to reason",
        ),
        pytest.param(
            [Refused("json_schema is not supported"), Refused("max_tokens"), Refused("max_tokens")],
            [
                {"max_tokens": 9, "response_format": FORMAT},
                {"max_tokens": 9},
                {"max_completion_tokens": 36},
                {},
            ],
            id="one after the other",
        ),
        pytest.param(
            [TypeError("create() got an unexpected keyword argument 'response_format'")],
            [{"max_tokens": 9, "response_format": FORMAT}, {"max_tokens": 9}],
            id="by the client itself",
        ),
    ],
)
def test_what_is_refused_is_left_out_from_then_on(refusals, calls):
    model = like_openai(replies=[*refusals, "{}", "{}"])
    llm = as_llm(model)
    for _ in range(2):
        assert asyncio.run(llm.complete(MESSAGES, SCHEMA, max_tokens=9)).text == "{}"
    assert model.calls == [*calls, calls[-1]]


def test_a_model_that_reasons_gets_more_room():
    details = {"completion_tokens_details": {"reasoning_tokens": 7}}
    usage = {"prompt_tokens": 1, "completion_tokens": 9, **details}
    model = Judge(replies=[said("{}", raw={"usage": usage}), "{}"])
    llm = as_llm(model)
    for _ in range(2):
        asyncio.run(llm.complete(MESSAGES, SCHEMA, max_tokens=10))
    assert [call["max_tokens"] for call in model.calls] == [10, 40]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (Refused("bad key sk-abc123def", 401), AuthenticationError, r"bad key \[key\]"),
        (Refused("not yours", 403), AuthenticationError, "not yours"),
        (Refused("insufficient_quota: pay", 429), QuotaError, "pay"),
        (Refused("slow down", 429), JudgeError, "Judge failed: Refused: slow down"),
        (Refused("maximum context length is 8 tokens"), ContextOverflowError, "maximum context"),
        (ValueError("prompt is too long: 9 > 8"), ContextOverflowError, "too long"),
        (ConnectionError("no route"), JudgeError, "ConnectionError: no route"),
        (StopIteration(), JudgeError, "no more answers"),
    ],
)
def test_errors(error, kind, message):
    with pytest.raises(kind, match=message) as caught:
        complete(Judge(replies=[error] * 3))
    assert type(caught.value) is kind
    assert not isinstance(caught.value, RuntimeError)


def test_a_filter_of_the_endpoint_is_an_answer_and_asked_once():
    refused = Refused("against the policy")
    refused.code = "content_filter"
    model = like_openai(replies=[refused])
    assert complete(model, max_tokens=9).finish_reason == "content_filter"
    assert len(model.calls) == 1


def test_a_prompt_that_does_not_fit_is_not_sent_again():
    model = like_openai(replies=[Refused("maximum context length is 8 tokens")])
    with pytest.raises(ContextOverflowError):
        complete(model, max_tokens=9)
    assert len(model.calls) == 1


def test_a_prompt_that_does_not_fit_is_halved():
    script = ScriptedLLM(relevant={"useful"})

    class Small(Judge):
        def chat(self, messages, **kwargs):
            if len(messages[1].content) > 700:
                raise Refused("This model's maximum context length is 200 tokens")
            return said(script.answer([{"role": m.role, "content": m.content} for m in messages]))

    contexts = ["idle " * 20, "useful", "idle too " * 20, "more idle " * 20]
    result = ContextRelevance(as_llm(Small())).score(user_input="Q?", retrieved_contexts=contexts)
    assert result.value == 0.25


# What is read from the reply.


def openai_like(finish="stop", refusal=None, **usage):
    return SimpleNamespace(
        model="gpt-5-2026",
        choices=[SimpleNamespace(finish_reason=finish, message=SimpleNamespace(refusal=refusal))],
        usage=SimpleNamespace(**usage) if usage else None,
    )


@pytest.mark.parametrize(
    ("response", "completion"),
    [
        pytest.param(said("{}"), Completion("{}", ONE), id="nothing but text"),
        pytest.param(said(""), Completion("", ONE), id="nothing at all"),
        pytest.param(
            said(
                "{}",
                raw=openai_like(
                    prompt_tokens=10,
                    completion_tokens=4,
                    prompt_tokens_details=SimpleNamespace(cached_tokens=6),
                    completion_tokens_details={"reasoning_tokens": 2},
                ),
            ),
            Completion("{}", Usage(1, 10, 4, 6, 2), "stop", "gpt-5-2026"),
            id="OpenAI's object",
        ),
        pytest.param(
            said("{", raw=openai_like("length")),
            Completion("{", ONE, "length", "gpt-5-2026"),
            id="cut",
        ),
        pytest.param(
            said("", raw=openai_like(refusal="I can't")),
            Completion("I can't", ONE, "refusal", "gpt-5-2026"),
            id="refused",
        ),
        pytest.param(
            said(
                "{}",
                raw={
                    "model": "claude",
                    "stop_reason": "max_tokens",
                    "usage": SimpleNamespace(
                        input_tokens=10,
                        output_tokens=4,
                        cache_read_input_tokens=5,
                        cache_creation_input_tokens=1,
                    ),
                },
            ),
            Completion("{}", Usage(1, 16, 4, 5), "length", "claude"),
            id="Anthropic's, which counts the cached ones beside",
        ),
        pytest.param(
            said(
                "{}",
                raw={"done_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
            ),
            Completion("{}", Usage(1, 3, 2)),
            id="Ollama's",
        ),
        pytest.param(
            said(
                "{}",
                raw={
                    "finish_reason": "SAFETY",
                    "usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 2},
                },
            ),
            Completion("{}", Usage(1, 3, 2), "content_filter"),
            id="Google's",
        ),
        pytest.param(
            said("{}", additional_kwargs={"prompt_tokens": 3, "completion_tokens": 2}),
            Completion("{}", Usage(1, 3, 2)),
            id="counted beside the raw reply",
        ),
        pytest.param(
            said("{}", raw={"usage": {"prompt_tokens": None, "completion_tokens": True}}),
            Completion("{}", ONE),
            id="counts that are none",
        ),
    ],
)
def test_a_reply(response, completion):
    assert read_reply(response) == completion


def test_thinking_is_no_part_of_the_text():
    blocks = pytest.importorskip("llama_index.core.base.llms.types")
    if not hasattr(blocks, "ThinkingBlock"):
        pytest.skip("this core has no thinking blocks")
    message = ChatMessage(role="assistant", content="{}")
    message.blocks.insert(0, blocks.ThinkingBlock(content="hm"))
    response = said("x").model_copy(update={"message": message})
    assert read_reply(response).text == "{}"


# Identity.


class Endpoint(Judge):
    """Has what packages of providers have."""

    api_base: str = "https://me:pw@host/v1?api_key=k"
    default_headers: dict = Field(default={"Authorization": "Bearer b"})
    max_tokens: int = 100
    max_retries: int = 3
    timeout: float = 60
    additional_kwargs: dict = Field(
        default={"seed": 7, "extra_headers": {"x": "y"}, "auth_token": "t"}
    )


def test_the_identity_has_what_decides_and_no_secret():
    identity = as_llm(Endpoint(model_name="m", temperature=0.5, system_prompt="Be brief.")).identity
    assert identity == {
        "class": "tests.Endpoint" if __name__.startswith("tests") else f"{__name__}.Endpoint",
        "model": "m",
        "parameters": {
            "temperature": 0.5,
            "model_name": "m",
            "api_base": "https://host/v1",
            "max_tokens": 100,
            "additional_kwargs": {"seed": 7},
            "system_prompt": "Be brief.",
        },
    }


def test_other_parameters_are_another_identity():
    one, other = (as_llm(Endpoint(model_name="m", temperature=t)).identity for t in (0.0, 0.5))
    assert one != other
    assert one == as_llm(Endpoint(model_name="m")).identity


def test_a_model_whose_metadata_raises_has_an_identity():
    class Unknown(Judge):
        @property
        def metadata(self):
            raise ValueError("unknown model")

    assert as_llm(Unknown(model_name="m")).identity["parameters"]["model_name"] == "m"


def test_the_identity_is_the_same_in_another_process():
    code = (
        "import json\n"
        "from llama_index.core.llms import MockLLM\n"
        "from ctxeval_llamaindex.llm import as_llm\n"
        "print(json.dumps(as_llm(MockLLM(max_tokens=3)).identity))\n"
    )
    other = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(other.stdout) == as_llm(MockLLM(max_tokens=3)).identity
