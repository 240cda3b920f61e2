"""A local endpoint that speaks OpenAI's chat completions, tells the scripted truth, and fails.

It answers `POST …/chat/completions` by the rules of a `ScriptedLLM`. Faults are drawn by a
seeded hash of the messages and of how often they were seen, so that a run fails alike
whatever the order in which its requests arrive, and whatever client sends them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import log
from typing import Any

from ctxeval.testing import ScriptedLLM

FORMATS = ("json_schema strict", "json_schema", "json_object", "text")
PARAMETERS = ("temperature", "max_tokens", "max_completion_tokens", "seed", "top_p", "logprobs")
EVERYTHING = (*FORMATS, *PARAMETERS)

_MARK = re.compile(r"(</?data )[0-9a-f]+>")
_JSON = {"Content-Type": "application/json"}
_HTML = {"Content-Type": "text/html"}


@dataclass
class Reply:
    """One response as it goes over the wire.

    Attributes:
        status: The HTTP status.
        body: Plain data, sent as JSON, or text, sent as it is.
        headers: Headers besides those that every response has.
        cut: Close the connection in the middle of the body?
        reset: Close the connection without an answer?
        delay: Seconds to wait before it.
    """

    status: int = 200
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    reset: bool = False
    delay: float = 0.0


def refused(status: int, message: str, **details: str) -> Reply:
    """Make an error as OpenAI writes them: with message, type, param and code."""
    error = {"type": "invalid_request_error", "param": None, "code": None, **details}
    return Reply(status, {"error": {"message": message, **error}})


RATE_LIMIT = refused(429, "Rate limit reached for requests", code="rate_limit_exceeded")
NO_CREDIT = refused(
    429,
    "You exceeded your current quota, please check your plan and billing details.",
    type="insufficient_quota",
    code="insufficient_quota",
)


def completion(text: str | None, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """Make the body of a chat completion."""
    tokens = len(text or "") // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": tokens, "total_tokens": 100 + tokens},
    }


def document_of(messages: Iterable[Mapping[str, str]]) -> dict[str, Any]:
    """Read the document between the two marks, apart from ctxeval's own reader."""
    lines = list(messages)[-1]["content"].splitlines()
    return json.loads(lines[1])


# What a faulty endpoint makes of the true answer, by kind.


def _edited(edit: Callable[[dict[str, Any]], None]) -> Callable[[str], Reply]:
    def make(truth: str) -> Reply:
        answer = json.loads(truth)
        if all(isinstance(item, dict) for items in answer.values() for item in items):
            edit(answer)
        return Reply(body=completion(json.dumps(answer)))

    return make


def _flipped(item: dict[str, Any]) -> dict[str, Any]:
    flipped = {**item, "verdict": "no" if item["verdict"] == "yes" else "yes"}
    if "supporting_chunks" in item:
        flipped["supporting_chunks"] = [1] if flipped["verdict"] == "yes" else []
    return flipped


def _wrong(truth: str) -> str:
    """Turn every verdict around; of claims, make another one."""
    answer = json.loads(truth)
    return json.dumps(
        {
            name: [_flipped(item) if isinstance(item, dict) else "The moon is red." for item in its]
            for name, its in answer.items()
        }
    )


def _wrong_ids(answer: dict[str, Any]) -> None:
    for items in answer.values():
        for item in items:
            item["id"] += 1000


def _missing_id(answer: dict[str, Any]) -> None:
    for items in answer.values():
        del items[0]


def _repeated_id(answer: dict[str, Any]) -> None:
    for items in answer.values():
        items.append(_flipped(items[0]))


def _off_menu(answer: dict[str, Any]) -> None:
    for items in answer.values():
        items[-1]["verdict"] = "maybe"


def _text(write: Callable[[str], str], finish_reason: str = "stop") -> Callable[[str], Reply]:
    return lambda truth: Reply(body=completion(write(truth), finish_reason))


FAULTS: dict[str, Callable[[str], Reply]] = {
    "late": lambda truth: Reply(body=completion(truth), delay=0.05),
    "429": lambda _: RATE_LIMIT,
    "429-retry-after": lambda _: Reply(429, RATE_LIMIT.body, {"Retry-After": "0"}),
    "500": lambda _: refused(500, "The server had an error", type="server_error"),
    "503-html": lambda _: Reply(503, "<html><h1>503 Service Unavailable</h1></html>", _HTML),
    "cut-body": lambda truth: Reply(body=completion(truth), cut=True),
    "reset": lambda _: Reply(reset=True),
    "bad-http-json": lambda truth: Reply(body=json.dumps(completion(truth))[:-30]),
    "html-200": lambda _: Reply(200, "<html>Please log in to {the} network</html>", _HTML),
    "choices-null": lambda truth: Reply(body={**completion(truth), "choices": None}),
    "choices-empty": lambda truth: Reply(body={**completion(truth), "choices": []}),
    "empty-content": _text(lambda _: ""),
    "malformed": _text(lambda truth: truth[: len(truth) * 2 // 3]),
    "fenced": _text("```json\n{}\n```".format),
    "prose": _text("Certainly! Here [as asked] is {{the JSON}}:\n{}\nAnything else?".format),
    "think": _text(lambda truth: f"<think>Is it {_wrong(truth)}? No.</think>\n{truth}"),
    "two-objects": _text(lambda truth: f"{_wrong(truth)}\nWait, that is wrong:\n{truth}"),
    "wrong-ids": _edited(_wrong_ids),
    "missing-id": _edited(_missing_id),
    "repeated-id": _edited(_repeated_id),
    "off-menu": _edited(_off_menu),
    "length": _text(lambda truth: truth[: len(truth) // 2], "length"),
    "refusal": lambda _: Reply(body=completion(None, refusal="I can't help with that.")),
    "content_filter": lambda _: Reply(body=completion(None, "content_filter")),
}


class OpenAIServer:
    """The endpoint: a context manager that serves from a thread of its own.

    Args:
        llm: Whose rules answer.
        latency: Seconds before every answer.
        together: Answers wait until so many requests have been under way at once.
        faults: How often each kind of `FAULTS` occurs, as a share of the answers.
        max_faults_per_body: How often the same messages meet a fault at most.
        accepts: Which response formats and parameters it takes; others get a 400.
        terse: Does the 400 not say what it is about?
        context: How many characters of messages fit.
        top_logprobs: How many of the likeliest tokens it tells; 0: it leaves them out.
        replies: What to answer first, in this order, whatever is asked.
        seed: Decides which answers are faulty.

    Attributes:
        url: The base_url for a client.
        bodies: What was received, request by request.
        keys: The Authorization and api-key headers, request by request.
        paths: The paths, request by request.
        statuses: How many responses had which status; 0 where there was none.
        faulty: How many faults of each kind there were.
        connections: How many connections were opened.
        in_flight: How many requests are under way.
        max_in_flight: How many were under way at once at most.
        abandoned: How many requests the client gave up before the answer.
        failure: What went wrong in the server itself.
    """

    def __init__(
        self,
        llm: ScriptedLLM | None = None,
        *,
        latency: float = 0.0,
        together: int = 0,
        faults: Mapping[str, float] | None = None,
        max_faults_per_body: int | None = None,
        accepts: Collection[str] = EVERYTHING,
        terse: bool = False,
        context: int | None = None,
        top_logprobs: int = 20,
        replies: Iterable[Reply] = (),
        seed: int = 0,
    ) -> None:
        self.llm = llm or ScriptedLLM()
        self.latency = latency
        self.together = together
        self.faults = dict(faults or {})
        self.max_faults_per_body = max_faults_per_body
        self.accepts = accepts
        self.terse = terse
        self.context = context
        self.top_logprobs = top_logprobs
        self.replies = iter(replies)
        self.seed = seed
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.paths: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.faulty: Counter[str] = Counter()
        self.connections = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.abandoned = 0
        self.failure: Exception | None = None
        self._seen: Counter[str] = Counter()
        self._faults_of: Counter[str] = Counter()
        self._open: set[_Connection] = set()

    def __enter__(self) -> OpenAIServer:
        started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(10), "the server did not start"
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive(), "the server did not stop"
        if self.failure is not None:
            raise self.failure

    @property
    def requests(self) -> int:
        """How many requests it received."""
        return len(self.bodies)

    @property
    def documents(self) -> list[dict[str, Any]]:
        """What was asked, request by request."""
        return [document_of(body["messages"]) for body in self.bodies]

    def _serve(self, started: threading.Event) -> None:
        async def serve() -> None:
            self._stop = asyncio.Event()
            self._more = asyncio.Event()
            server = await self._loop.create_server(
                lambda: _Connection(self), "127.0.0.1", 0, backlog=1024
            )
            self.port = server.sockets[0].getsockname()[1]
            self.root = f"http://127.0.0.1:{self.port}"
            self.url = f"{self.root}/v1"
            started.set()
            await self._stop.wait()
            server.close()
            for connection in list(self._open):
                connection.abort()
            await asyncio.sleep(0)

        self._loop.run_until_complete(serve())
        self._loop.close()

    def answer(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Reply:
        """Note a request down, and decide what to answer."""
        self.bodies.append(body)
        self.paths.append(path)
        self.keys.append(headers.get("authorization") or headers.get("api-key") or "")
        if (scripted := next(self.replies, None)) is not None:
            return scripted
        if not path.split("?")[0].endswith("/chat/completions"):
            return refused(404, f"Invalid URL (POST {path})")
        if (refusal := self._refusal(body)) is not None:
            return refused(400, "Bad Request") if self.terse else refusal
        size = sum(len(message["content"]) for message in body["messages"])
        if self.context is not None and size > self.context:
            return refused(
                400,
                f"This model's maximum context length is {self.context} tokens. However, your "
                f"messages resulted in {size} tokens. Please reduce their length.",
                param="messages",
                code="context_length_exceeded",
            )
        if "logprobs" in body:
            return self._first_token(body)
        truth = self.llm.answer(body["messages"])
        if kind := self._fault(json.dumps(body["messages"])):
            self.faulty[kind] += 1
            return FAULTS[kind](truth)
        return Reply(body=completion(truth))

    def _first_token(self, body: Mapping[str, Any]) -> Reply:
        if kind := self._fault(json.dumps(body["messages"])):
            self.faulty[kind] += 1
            return FAULTS[kind]("yes")
        told = sorted(self.llm.probabilities(body["messages"]).items(), key=lambda one: -one[1])
        likeliest = [
            {"token": word, "logprob": log(p) if p else -9999.0, "bytes": list(word.encode())}
            for word, p in [*told, ("Maybe", 0.0)][: self.top_logprobs]
        ]
        answer = completion(told[0][0])
        place = {**likeliest[0], "top_logprobs": likeliest} if likeliest else None
        answer["choices"][0]["logprobs"] = place and {"content": [place]}
        return Reply(body=answer)

    def _refusal(self, body: Mapping[str, Any]) -> Reply | None:
        """Refuse what is not accepted, in OpenAI's words."""
        asked = body.get("response_format") or {"type": "text"}
        kind = asked["type"] + (" strict" if asked.get("json_schema", {}).get("strict") else "")
        if kind not in self.accepts:
            return refused(
                400,
                f"Invalid parameter: 'response_format' of type '{kind}' is not supported with "
                "this model.",
                param="response_format",
            )
        if 0 < self.top_logprobs < body.get("top_logprobs", 0):
            return refused(
                400,
                f"Invalid 'top_logprobs': must be at most {self.top_logprobs}.",
                param="top_logprobs",
            )
        for name in PARAMETERS:
            if name in body and name not in self.accepts:
                return refused(
                    400,
                    f"Unsupported parameter: '{name}' is not supported with this model.",
                    param=name,
                    code="unsupported_parameter",
                )
        return None

    def _fault(self, messages: str) -> str | None:
        """Draw whether this answer is faulty, and how."""
        name = hashlib.sha256(_MARK.sub(r"\1>", messages).encode()).hexdigest()
        times = self._seen[name]
        self._seen[name] += 1
        if self.max_faults_per_body is not None and self._faults_of[name] >= (
            self.max_faults_per_body
        ):
            return None
        drawn = hashlib.sha256(f"{self.seed} {name} {times}".encode()).digest()
        left = int.from_bytes(drawn[:8], "big") / 2**64
        for kind, rate in self.faults.items():
            left -= rate
            if left < 0:
                self._faults_of[name] += 1
                return kind
        return None


class _Connection(asyncio.Protocol):
    """One keep-alive connection: reads a request, answers it, reads the next."""

    def __init__(self, server: OpenAIServer) -> None:
        self._server = server
        self._received = b""
        self._task: asyncio.Task[None] | None = None
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._server.connections += 1
        self._server._open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._server._open.discard(self)
        if self._task is not None:
            self._server.abandoned += 1
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", 0))
        if len(body) < length:
            return
        self._received = body[length:]
        request = json.loads(body[:length] or b"{}")
        answering = self._answer(first.split(" ")[1], headers, request)
        self._task = asyncio.get_running_loop().create_task(answering)

    def abort(self) -> None:
        self._transport.abort()

    async def _answer(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> None:
        server = self._server
        server.in_flight += 1
        server.max_in_flight = max(server.max_in_flight, server.in_flight)
        server._more.set()
        try:
            try:
                reply = server.answer(path, headers, body)
            except Exception as error:  # raised where the server is closed, in the test itself
                server.failure = error
                reply = Reply(reset=True)
            while server.max_in_flight < server.together:
                server._more.clear()
                await server._more.wait()
            if delay := server.latency + reply.delay:
                await asyncio.sleep(delay)
            self._task = None
            server.statuses[0 if reply.reset else reply.status] += 1
            self._write(reply)
        finally:
            server.in_flight -= 1

    def _write(self, reply: Reply) -> None:
        if reply.reset:
            self._transport.abort()
            return
        text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
        body = text.encode()
        headers = {**_JSON, **reply.headers, "Content-Length": str(len(body))}
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{n}: {v}" for n, v in headers.items())]
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        if reply.cut:
            self._transport.write(head + body[: len(body) // 2])
            self._transport.close()
        else:
            self._transport.write(head + body)
