"""The client against a real endpoint that refuses, fails and answers oddly."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("openai")

import openai
from openai_server import (
    EVERYTHING,
    FAULTS,
    FORMATS,
    NO_CREDIT,
    PARAMETERS,
    RATE_LIMIT,
    OpenAIServer,
    Reply,
    completion,
    refused,
)

from ctxeval import (
    AuthenticationError,
    Completion,
    ContextOverflowError,
    ContextRelevance,
    InvalidArgumentError,
    JudgeError,
    MissingExtraError,
    QuotaError,
    Usage,
    llm_factory,
)
from ctxeval.judges.replies import read_verdicts
from ctxeval.llm.dialect import dialect_of
from ctxeval.llm.loop import run
from ctxeval.testing import ScriptedLLM

SAMPLE = {"user_input": "Where?", "retrieved_contexts": ["Paris.", "Oslo."]}
PARIS = ScriptedLLM(relevant={"Paris."})


def is_yes(reply: Completion) -> bool | None:
    return read_verdicts(reply.text, chunks=[1], claims=0, shown=1)[0][1].value


# What is sent.


def test_sends_what_it_was_told(serve, connect, ask):
    server = serve(PARIS)
    llm = connect(server, "tiny", temperature=0.5, top_p=0.9, seed=7)
    assert is_yes(run(ask(llm, max_tokens=300)))
    body = server.bodies[0]
    assert {name: body[name] for name in ("model", "temperature", "top_p", "seed")} == {
        "model": "tiny",
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
    }
    assert body["max_tokens"] == 300
    assert body["response_format"]["json_schema"]["strict"] is True
    assert server.keys == ["Bearer sk-secret-123456"]


def test_temperature_none_is_not_sent(serve, connect, ask):
    server = serve()
    run(ask(connect(server, temperature=None)))
    assert "temperature" not in server.bodies[0]


def test_extra_body_reaches_the_endpoint(serve, connect, ask):
    server = serve()
    run(ask(connect(server, extra_body={"top_k": 1})))
    assert server.bodies[0]["top_k"] == 1


def test_a_local_endpoint_needs_no_key(serve, connect, ask):
    server = serve(PARIS)
    assert is_yes(run(ask(connect(server, api_key=None))))


def test_key_and_address_from_the_environment(serve, connect, ask, monkeypatch):
    server = serve(PARIS)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert is_yes(run(ask(connect())))
    assert server.keys == ["Bearer sk-from-environment"]


# What an endpoint refuses is learnt once.

LADDER = [
    pytest.param(EVERYTHING, 0, id="everything is accepted: 0"),
    pytest.param({*EVERYTHING} - {"json_schema strict"}, 1, id="loose schema: 1"),
    pytest.param({"json_object", "text", *PARAMETERS}, 2, id="no schema: 2"),
    pytest.param({"json_object", *PARAMETERS}, 2, id="JSON only, no text: 2"),
    pytest.param({"text", *PARAMETERS}, 3, id="text only: 3"),
    pytest.param({*EVERYTHING} - {"temperature"}, 1, id="no temperature: 1"),
    pytest.param({*EVERYTHING} - {"max_tokens"}, 1, id="max_completion_tokens: 1"),
    pytest.param({*EVERYTHING} - {"max_tokens", "max_completion_tokens"}, 2, id="no cap: 2"),
    pytest.param(
        {*EVERYTHING} - {"max_tokens", "temperature", "seed"}, 3, id="a reasoning model: 3"
    ),
    pytest.param({"text"}, 7, id="nothing but text: 3 formats, 2 caps, temperature, seed"),
]


@pytest.mark.parametrize(("accepts", "refusals"), LADDER)
def test_each_refusal_costs_one_call(serve, connect, ask, accepts, refusals):
    server = serve(PARIS, accepts=accepts)
    llm = connect(server, seed=1)

    async def sixteen():
        return await asyncio.gather(*(ask(llm) for _ in range(16)))

    assert all(map(is_yes, run(sixteen())))
    assert server.statuses == {200: 16, 400: refusals} if refusals else {200: 16}
    run(ask(llm))
    assert server.statuses[400] == refusals


@pytest.mark.timeout(60)
def test_where_nobody_answers_nobody_waits_in_line(serve, connect, ask):
    server = serve(latency=60)
    llm = connect(server, timeout=0.5, max_retries=0)

    async def sixteen():
        return await asyncio.gather(*(ask(llm) for _ in range(16)), return_exceptions=True)

    assert {type(error) for error in run(sixteen())} == {JudgeError}
    assert server.max_in_flight > 1, "after the first"


def test_what_was_learnt_serves_other_models_objects(serve, connect, ask):
    server = serve(accepts={"text", *PARAMETERS})
    run(ask(connect(server)))
    run(ask(connect(server, temperature=0.7)))
    assert server.statuses == {200: 2, 400: 3}
    run(ask(connect(server, "another model")))
    assert server.statuses == {200: 3, 400: 6}


@pytest.mark.parametrize("accepted", FORMATS)
def test_a_terse_refusal_steps_down_the_formats(serve, connect, ask, accepted):
    server = serve(PARIS, accepts={accepted, *PARAMETERS}, terse=True)
    assert is_yes(run(ask(connect(server))))
    assert server.statuses[400] == FORMATS.index(accepted)


def test_the_newer_cap_leaves_room_for_reasoning(serve, connect, ask):
    server = serve(accepts={*EVERYTHING} - {"max_tokens"})
    run(ask(connect(server), max_tokens=100))
    assert [body.get("max_tokens") for body in server.bodies] == [100, None]
    assert server.bodies[-1]["max_completion_tokens"] == 400


def test_calls_that_are_refused_at_once_step_down_once(serve, connect, ask):
    server = serve(PARIS)
    llm = connect(server)
    run(ask(llm))
    server.together = 16
    server.accepts = {"json_schema", "json_object", "text", *PARAMETERS}  # another server now

    async def sixteen():
        return await asyncio.gather(*(ask(llm) for _ in range(16)))

    assert all(map(is_yes, run(sixteen())))
    assert server.statuses == {200: 17, 400: 16}
    formats = [body["response_format"]["type"] for body in server.bodies]
    assert formats == ["json_schema"] * 33


NAMES_THE_PARAMETER = [
    pytest.param("Unrecognized request argument supplied: seed", id="at the end"),
    pytest.param("Unknown arguments: seed, foo.", id="before a comma"),
    pytest.param("`seed`: extra fields not permitted", id="in backticks"),
    pytest.param("seed: Extra inputs are not permitted", id="before a colon"),
]


@pytest.mark.parametrize("message", NAMES_THE_PARAMETER)
def test_a_refusal_that_names_the_parameter_in_its_message(serve, connect, ask, message):
    server = serve(PARIS, replies=[refused(400, message)])
    assert is_yes(run(ask(connect(server, seed=1))))
    assert "seed" not in server.bodies[1]
    assert server.bodies[1]["response_format"] == server.bodies[0]["response_format"]


def test_a_word_that_holds_a_parameters_name_is_no_name(serve, connect, ask):
    server = serve(PARIS, replies=[refused(400, "This run is not seeded")])
    run(ask(connect(server, seed=1)))
    assert server.bodies[1]["seed"] == 1


def test_pydantics_422(serve, connect, ask):
    where = {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}
    server = serve(PARIS, replies=[Reply(422, {"detail": [where]})])
    assert is_yes(run(ask(connect(server, seed=1))))
    assert "seed" not in server.bodies[1]


def test_one_bad_request_unlearns_nothing_that_was_accepted(serve, connect, ask):
    server = serve(PARIS)
    llm = connect(server)
    run(ask(llm))
    server.replies = iter([refused(400, "Bad Request")])
    with pytest.raises(JudgeError, match="answered 400: Bad Request"):
        run(ask(llm))
    run(ask(llm))
    assert server.bodies[2]["response_format"] == server.bodies[0]["response_format"]
    assert server.requests == 3


def test_a_prompt_that_azure_filters_is_a_filtered_reply(serve, connect, ask):
    filtered = refused(
        400,
        "The response was filtered due to the prompt triggering our content policy.",
        param="prompt",
        code="content_filter",
    )
    server = serve(PARIS, replies=[filtered])
    llm = connect(server)
    assert run(ask(llm)).finish_reason == "content_filter"
    assert is_yes(run(ask(llm)))
    assert server.bodies[1]["response_format"] == server.bodies[0]["response_format"]


# What passes is tried again.

PASSING = [
    pytest.param(RATE_LIMIT, id="429"),
    pytest.param(FAULTS["429-retry-after"](""), id="429 with Retry-After: 0"),
    pytest.param(
        Reply(429, RATE_LIMIT.body, {"retry-after-ms": "5", "Retry-After": "999"}),
        id="429 with retry-after-ms",
    ),
    pytest.param(
        Reply(429, RATE_LIMIT.body, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        id="429 with a date",
    ),
    pytest.param(refused(408, "Timed out"), id="408"),
    pytest.param(refused(409, "Conflict"), id="409"),
    pytest.param(FAULTS["500"](""), id="500"),
    pytest.param(Reply(502, ""), id="502 without a body"),
    pytest.param(FAULTS["503-html"](""), id="503 in HTML"),
    pytest.param(FAULTS["reset"](""), id="reset"),
    pytest.param(Reply(body=completion("yes"), cut=True), id="body cut off"),
    pytest.param(FAULTS["bad-http-json"]("{}"), id="a body that is broken JSON"),
]


@pytest.mark.parametrize("failure", PASSING)
def test_tried_again(serve, connect, ask, failure):
    server = serve(PARIS, replies=[failure] * 3)
    assert is_yes(run(ask(connect(server))))
    assert server.requests == 4


def test_tried_again_after_a_timeout(serve, connect, ask):
    server = serve(PARIS, replies=[Reply(body=completion("{}"), delay=30)])
    assert is_yes(run(ask(connect(server, timeout=0.5))))
    assert server.requests == server.abandoned + 1 >= 2


@pytest.mark.parametrize("max_retries", [0, 2])
def test_given_up_after_max_retries(serve, connect, ask, max_retries):
    server = serve(replies=[RATE_LIMIT] * 10)
    with pytest.raises(JudgeError, match=f"answered 429: Rate limit.*{max_retries} retries"):
        run(ask(connect(server, max_retries=max_retries)))
    assert server.requests == 1 + max_retries


def test_nobody_listens(connect, ask, serve):
    server = serve()
    llm = connect(server, max_retries=1)
    server.__exit__()
    server.__enter__()  # elsewhere
    with pytest.raises(JudgeError, match=r"gave no answer.*1 retries"):
        run(ask(llm))


FINAL = [
    pytest.param(
        refused(401, "Incorrect API key provided.", code="invalid_api_key"),
        AuthenticationError,
        "Check the key",
        id="401",
    ),
    pytest.param(refused(403, "Not allowed"), AuthenticationError, "Check the key", id="403"),
    pytest.param(NO_CREDIT, QuotaError, "Add credit", id="429 insufficient_quota"),
    pytest.param(
        refused(404, "The model does not exist"), JudgeError, "Check model and base_url", id="404"
    ),
]


@pytest.mark.parametrize(("failure", "error", "remedy"), FINAL)
def test_not_tried_again(serve, connect, ask, failure, error, remedy):
    server = serve(replies=[failure])
    with pytest.raises(error, match=remedy) as caught:
        run(ask(connect(server)))
    assert type(caught.value) is error
    assert server.requests == 1


def test_a_400_that_nothing_helps_ends(serve, connect, ask):
    server = serve(accepts=())
    with pytest.raises(JudgeError, match="answered 400"):
        run(ask(connect(server)))
    assert server.requests < 10


def test_retry_after_longer_than_max_wait(serve, connect, ask):
    server = serve(replies=[Reply(429, RATE_LIMIT.body, {"Retry-After": "61"})])
    with pytest.raises(JudgeError, match=r"asks to wait 61 s, longer than max_wait=60"):
        run(ask(connect(server)))
    assert server.requests == 1


OVERFLOWS = [
    pytest.param(
        refused(400, "Too long", code="context_length_exceeded"), id="OpenAI, by its code"
    ),
    pytest.param(
        Reply(
            400,
            {
                "object": "error",
                "message": "This model's maximum context length is 4096 tokens. However, you "
                "requested 5000 tokens.",
                "code": 400,
            },
        ),
        id="vLLM, by its words",
    ),
    pytest.param(
        refused(400, "request (5000 tokens) exceeds the available context size (4096 tokens)"),
        id="llama.cpp, by its words",
    ),
]


@pytest.mark.parametrize("failure", OVERFLOWS)
def test_context_overflow(serve, connect, ask, failure):
    server = serve(replies=[failure])
    llm = connect(server)
    with pytest.raises(ContextOverflowError):
        run(ask(llm))
    run(ask(llm))
    assert server.requests == 2
    assert server.bodies[0]["response_format"] == server.bodies[1]["response_format"]


# No key comes out.

KEY = "key-4711-abcdef"
LEAKS = [
    pytest.param(f"Incorrect API key provided: {KEY}", id="the key as given"),
    pytest.param("Incorrect API key provided: sk-proj-abc123DEF", id="another key of OpenAI's"),
    pytest.param(f"{'x' * 290} {KEY}", id="the key where the message is cut"),
]


@pytest.mark.parametrize("message", LEAKS)
@pytest.mark.parametrize("status", [400, 401, 500])
def test_messages_carry_no_key(serve, connect, ask, message, status):
    server = serve(replies=[refused(status, message)] * 9)
    with pytest.raises(JudgeError) as caught:
        run(ask(connect(server, api_key=KEY, max_retries=0)))
    for part in ("key-4711", "abc123DEF"):
        assert part not in str(caught.value)


def test_identity_and_repr_carry_no_key(serve, connect):
    server = serve()
    address = server.url.replace("http://", "http://user:word@") + "?key=hidden"
    llm = connect(
        base_url=address, api_key=KEY, seed=1, extra_headers={"X-Api-Key": "hidden"}, top_p=1
    )
    assert llm.identity == {
        "endpoint": server.url,
        "model": "judge",
        "parameters": {"temperature": 0, "seed": 1, "top_p": 1},
    }
    shown = f"{llm!r} {json.dumps(llm.identity)} {ContextRelevance(llm).signature}"
    assert not [secret for secret in (KEY, "word", "hidden") if secret in shown]


# Clients of one's own.

OWN = {"api_key": "sk-own", "timeout": 10}
CLIENTS = [
    pytest.param(lambda s: openai.AsyncOpenAI(base_url=s.url, **OWN), id="AsyncOpenAI"),
    pytest.param(lambda s: openai.OpenAI(base_url=s.url, **OWN), id="OpenAI"),
    pytest.param(
        lambda s: openai.AsyncAzureOpenAI(azure_endpoint=s.root, api_version="2024-10-21", **OWN),
        id="AsyncAzureOpenAI, azure_endpoint",
    ),
    pytest.param(
        lambda s: openai.AsyncAzureOpenAI(base_url=s.url, api_version="2024-10-21", **OWN),
        id="AsyncAzureOpenAI, base_url",
    ),
    pytest.param(
        lambda s: openai.AzureOpenAI(azure_endpoint=s.root, api_version="2024-10-21", **OWN),
        id="AzureOpenAI",
    ),
    pytest.param(
        lambda s: lambda: openai.AsyncOpenAI(base_url=s.url, **OWN), id="a function that makes one"
    ),
    pytest.param(
        lambda s: openai.AsyncOpenAI(
            base_url=s.url, http_client=openai.DefaultAsyncHttpxClient(), **OWN
        ),
        id="AsyncOpenAI with its own transport",
    ),
]
FACTORIES = [
    pytest.param(lambda s: openai.AsyncOpenAI(base_url=s.url, **OWN), id="of AsyncOpenAI"),
    pytest.param(lambda s: openai.OpenAI(base_url=s.url, **OWN), id="of OpenAI"),
]


@pytest.mark.parametrize("make", FACTORIES)
def test_a_factory_tells_the_endpoint(serve, connect, make):
    """Else two factories of one name would be one model to the cache."""
    for verdict in (True, False):
        server = serve(ScriptedLLM(relevant=lambda question, chunk, verdict=verdict: verdict))
        llm = connect(client=lambda server=server: make(server))
        assert llm.endpoint == server.url
        assert ContextRelevance(llm).score(SAMPLE).value == float(verdict)


def test_a_factory_of_something_else():
    with pytest.raises(InvalidArgumentError, match=r"^client: .*\.chat\.completions\.create"):
        llm_factory("m", client=dict)


async def closed(client) -> None:
    closing = client.close()
    if closing is not None:
        await closing


@pytest.mark.parametrize("make", CLIENTS)
def test_a_client_of_ones_own(serve, connect, make):
    server = serve(PARIS, replies=[RATE_LIMIT])
    client = make(server)
    llm = connect(client=client, max_retries=0)
    with pytest.raises(JudgeError, match="429"):
        ContextRelevance(llm).score(SAMPLE)
    assert server.requests == 1, "the client itself does not try again"
    assert ContextRelevance(llm).score(SAMPLE).value == 0.5
    assert server.keys[0] in ("Bearer sk-own", "sk-own")
    run(llm.aclose())
    if hasattr(client, "chat"):
        run(closed(client))


def test_azures_address(serve, connect):
    server = serve(PARIS)
    client = openai.AsyncAzureOpenAI(
        azure_endpoint=server.root, api_version="2024-10-21", api_key="k"
    )
    llm = connect(model="my-deployment", client=client)
    ContextRelevance(llm).score(SAMPLE)
    path, _, query = server.paths[0].partition("?")
    assert path == "/openai/deployments/my-deployment/chat/completions"
    assert query == "api-version=2024-10-21"
    assert llm.endpoint == f"{server.root}/openai"
    run(closed(client))


USABLE = [
    pytest.param(openai.OpenAI, {}, id="OpenAI"),
    pytest.param(openai.AsyncOpenAI, {}, id="AsyncOpenAI"),
]


@pytest.mark.parametrize(("kind", "options"), USABLE)
async def test_a_users_client_stays_the_users(serve, connect, kind, options):
    server = serve(PARIS)
    client = kind(base_url=server.url, max_retries=1, **OWN)

    async def hello():
        messages = [{"role": "user", "content": '<data 0>\n{"text": "A. B."}\n</data 0>'}]
        answer = client.chat.completions.create(model="m", messages=messages)
        answer = await answer if kind is openai.AsyncOpenAI else answer
        return answer.choices[0].message.content

    before = await hello()
    llm = connect(client=client)
    assert (await ContextRelevance(llm).ascore(SAMPLE)).value == 0.5
    assert await hello() == before, "between"
    await asyncio.to_thread(run, llm.aclose())
    assert await hello() == before, "after ctxeval closed what it opened"
    assert client.max_retries == 1
    await closed(client)


def test_a_transport_of_ones_own_is_not_closed(serve, connect):
    server = serve(PARIS)
    client = openai.AsyncOpenAI(
        base_url=server.url, http_client=openai.DefaultAsyncHttpxClient(), **OWN
    )
    llm = connect(client=client)
    for _ in range(2):
        assert ContextRelevance(llm, instructions="Useful?").score(SAMPLE).value == 0.5
        run(llm.aclose())
    assert not client.is_closed()
    run(closed(client))


def test_after_closing_the_next_call_opens_again(serve, connect, ask):
    server = serve(PARIS)
    llm = connect(server)
    for _ in range(2):
        assert is_yes(run(ask(llm)))
        run(llm.aclose())
    assert server.connections == 2


class Duck:
    """Whatever has `.chat.completions.create`."""

    def __init__(self, create):
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=create))


YES = json.dumps({"chunks": [{"id": 1, "reason": "", "verdict": "yes"}]})
SPOKEN = completion(YES)
BLOCKS = completion(None)
BLOCKS["choices"][0]["message"]["content"] = [
    {"type": "text", "text": YES[:20]},
    {"type": "text", "text": YES[20:]},
]


def spoken(**call):
    return SPOKEN


async def spoken_async(**call):
    return SPOKEN


def spoken_as_object(**call):
    return json.loads(json.dumps(SPOKEN), object_hook=lambda item: SimpleNamespace(**item))


@pytest.mark.parametrize(
    "create",
    [
        pytest.param(spoken, id="sync, a dict"),
        pytest.param(spoken_async, id="async, a dict"),
        pytest.param(lambda **call: spoken_async(), id="a function that returns a coroutine"),
        pytest.param(spoken_as_object, id="sync, an object"),
        pytest.param(lambda **call: BLOCKS, id="content in blocks"),
    ],
)
def test_any_duck(connect, ask, create):
    llm = connect(client=Duck(create))
    reply = run(ask(llm))
    assert is_yes(reply)
    assert (reply.usage.requests, reply.usage.prompt_tokens) == (1, 100)
    assert llm.endpoint == "Duck"


def test_a_ducks_connection_error_is_tried_again(connect, ask):
    failures = [ConnectionResetError("gone"), TimeoutError()]

    def create(**call):
        if failures:
            raise failures.pop()
        return SPOKEN

    assert is_yes(run(ask(connect(client=Duck(create)))))
    assert failures == []


def test_a_ducks_bug_is_a_judge_error(connect, ask):
    def create(**call):
        raise KeyError("oops")

    with pytest.raises(JudgeError, match="oops") as caught:
        run(ask(connect(client=Duck(create))))
    assert isinstance(caught.value.__cause__, KeyError)


def test_sync_clients_are_called_side_by_side(connect, ask):
    both = threading.Barrier(2, timeout=20)

    def create(**call):
        both.wait()
        return SPOKEN

    llm = connect(client=Duck(create))
    dialect_of("Duck", "judge").settled = True

    async def twice():
        return await asyncio.gather(ask(llm), ask(llm))

    assert all(map(is_yes, run(twice())))


# What the factory refuses.

IMPOSSIBLE = [
    pytest.param({"model": ""}, "model", id="no name"),
    pytest.param({"model": None}, "model", id="None for a name"),
    pytest.param({"client": object()}, "client", id="no client"),
    pytest.param({"concurrency": 0}, "concurrency", id="nothing at once"),
    pytest.param({"concurrency": True}, "concurrency", id="a bool"),
    pytest.param({"max_retries": -1}, "max_retries", id="fewer than no retries"),
    pytest.param({"max_wait": "60"}, "max_wait", id="a wait in words"),
    pytest.param({"timeout": None}, "timeout", id="no timeout"),
]


@pytest.mark.parametrize(("options", "named"), IMPOSSIBLE)
def test_impossible_arguments(options, named):
    with pytest.raises(InvalidArgumentError, match=f"^{named}: "):
        llm_factory(**{"model": "m", "base_url": "http://localhost:1/v1", **options})


def test_no_key_for_openai():
    with pytest.raises(AuthenticationError, match="OPENAI_API_KEY"):
        llm_factory("gpt-5")


def test_openai_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ctxeval\[openai\]'") as caught:
        llm_factory("m", base_url="http://localhost:1/v1")
    assert caught.value.name == "openai"


def test_a_duck_needs_no_openai(monkeypatch, connect, ask):
    monkeypatch.setitem(sys.modules, "openai", None)
    assert is_yes(run(ask(connect(client=Duck(spoken_async)))))


# What is read out of an answer.


def with_usage(**usage):
    return {**completion(YES), "usage": usage}


def refusing(finish_reason):
    return completion(None, finish_reason, refusal="I can't help with that.")


ANSWERS = [
    pytest.param(completion(YES), YES, "stop", Usage(1, 100, 13), id="usual"),
    pytest.param(
        with_usage(
            prompt_tokens=9,
            completion_tokens=8,
            prompt_tokens_details={"cached_tokens": 7},
            completion_tokens_details={"reasoning_tokens": 6},
        ),
        YES,
        "stop",
        Usage(1, 9, 8, 7, 6),
        id="cached and reasoning tokens",
    ),
    pytest.param(
        with_usage(prompt_tokens=9, completion_tokens=None, prompt_tokens_details=None),
        YES,
        "stop",
        Usage(1, 9),
        id="usage with nulls",
    ),
    pytest.param(
        {**completion(YES), "usage": None}, YES, "stop", Usage(1, unreported=1), id="no usage"
    ),
    pytest.param(
        {**completion(YES), "choices": None}, "", "stop", Usage(1, 100, 13), id="choices null"
    ),
    pytest.param(
        {**completion(YES), "choices": []}, "", "stop", Usage(1, 100, 13), id="choices empty"
    ),
    pytest.param(
        {"error": {"message": "upstream"}},
        "{'message': 'upstream'}",
        "stop",
        Usage(1, unreported=1),
        id="an error with 200",
    ),
    pytest.param(completion(None), "", "stop", Usage(1, 100), id="content null"),
    pytest.param(BLOCKS, YES, "stop", Usage(1, 100), id="content in blocks"),
    pytest.param(completion(YES[:9], "length"), YES[:9], "length", Usage(1, 100, 2), id="cut"),
    pytest.param(
        refusing("stop"), "I can't help with that.", "refusal", Usage(1, 100), id="refusal"
    ),
    pytest.param(
        completion(None, "content_filter"), "", "content_filter", Usage(1, 100), id="filtered"
    ),
]


@pytest.mark.parametrize(("body", "text", "finish_reason", "usage"), ANSWERS)
def test_reads_what_was_answered(serve, connect, ask, body, text, finish_reason, usage):
    reply = run(ask(connect(serve(replies=[Reply(body=body)]))))
    assert (reply.text, reply.finish_reason, reply.usage) == (text, finish_reason, usage)
    assert reply.model == body.get("model", "")


def test_html_with_200_is_the_text(serve, connect, ask):
    reply = run(ask(connect(serve(replies=[FAULTS["html-200"]("")]))))
    assert reply.text.startswith("<html>")
    assert reply.usage == Usage(1, unreported=1)


def test_usage_adds_up_in_the_result(serve, connect):
    llm = connect(serve(PARIS))
    result = ContextRelevance(llm).score(SAMPLE)
    assert result.usage.requests == 1
    assert result.usage.prompt_tokens == 100


# How many calls are under way.


@pytest.mark.timeout(60)
@pytest.mark.parametrize("concurrency", [1, 4, 64])
def test_concurrency_is_the_limit(serve, connect, ask, concurrency):
    server = serve(ScriptedLLM(relevant=lambda question, chunk: True), latency=0.005)
    llm = connect(server, concurrency=concurrency)
    run(ask(llm))  # the first call goes alone, to find out what is accepted
    server.together = concurrency
    samples = [{**SAMPLE, "user_input": f"Where is {n}?"} for n in range(concurrency + 8)]
    results = ContextRelevance(llm).batch_score(samples)
    assert [result.value for result in results] == [1.0] * (concurrency + 8)
    assert server.max_in_flight == concurrency


# The server itself.


def test_the_server_fails_alike_in_every_run(connect, ask):
    def run_once(seed):
        with OpenAIServer(faults={"500": 0.3, "empty-content": 0.3}, seed=seed) as server:
            llm = connect(server)
            texts = [run(ask(llm, chunk=f"chunk {n}")).text for n in range(20)]
            run(llm.aclose())
            return texts, server.faulty

    assert run_once(1) == run_once(1)
    assert run_once(1) != run_once(2)


def test_a_model_is_sent_without_its_connections(connect, serve, ask):
    """To another process, which opens its own, and learns itself what the endpoint takes."""
    cloudpickle = pytest.importorskip("cloudpickle")
    server = serve(PARIS)
    llm = connect(server)
    assert is_yes(run(ask(llm)))
    sent = cloudpickle.loads(cloudpickle.dumps(llm))
    assert sent.identity == llm.identity
    assert is_yes(run(ask(sent)))
    assert server.connections == 2
    run(sent.aclose())
