"""A local HTTP server that keeps what it is sent and answers as it is told."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    """One request.

    Attributes:
        method: Its method.
        path: Its path, without a query.
        headers: Its headers, by their names in small letters.
        body: Its body, unpacked.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body as JSON."""
        return json.loads(self.body)


Answer = tuple[int, Any]


@dataclass
class RecordingServer:
    """What came, and what is answered.

    Attributes:
        url: Where it listens.
        answer: Gives status and body for a request; bytes go as they are, the rest as JSON.
        requests: What came so far.
        fail: Statuses to answer with before anything else, one request each, to posts.
    """

    url: str = ""
    answer: Callable[[Request], Answer] = lambda request: (200, {})
    requests: list[Request] = field(default_factory=list)
    fail: list[int] = field(default_factory=list)

    def posts(self, path: str) -> list[Request]:
        """Give what was posted to a path."""
        return [one for one in self.requests if (one.method, one.path) == ("POST", path)]

    def take(self, request: Request) -> Answer:
        """Keep a request and answer it."""
        self.requests.append(request)
        if self.fail and request.method == "POST":
            return self.fail.pop(0), {"detail": "told to fail"}
        return self.answer(request)


@contextmanager
def serving(server: RecordingServer) -> Iterator[RecordingServer]:
    """Let a server listen on a free port of the loopback interface for a while."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            path = self.path.partition("?")[0]
            status, said = server.take(Request(self.command, path, headers, body))
            sent = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            kind = "application/x-protobuf" if isinstance(said, bytes) else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PATCH = do_PUT = handle_any

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
