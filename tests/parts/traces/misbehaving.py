"""Collector that can be told to misbehave.

A real HTTP server on loopback, alone or in front of another one.

Each request takes the next word of a plan; when the plan is over, requests are answered as they should be. What it was
sent is kept, so that tests can say what arrived, how often, and when.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

#: How an item is answered: None for stored, else the error without its index.
Judge = Callable[[dict[str, Any]], dict[str, Any] | None]


class Collector(ThreadingHTTPServer):
    """Keeps traces by id. `upstream` is the URL of the collector that it stands in front of."""

    daemon_threads = True
    request_queue_size = 100

    def __init__(self, upstream: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.plan: deque[str] = deque()
        #: Asked for a word when the plan is over.
        self.otherwise: Callable[[], str] = lambda: "accept"
        self.judge: Judge = lambda trace: None
        #: The header of the answers that have no other; asked for each of them.
        self.retry_after: Callable[[], str] = lambda: ""
        self.max_body = 10**9
        self.stored: dict[str, dict[str, Any]] = {}
        #: How often each id was taken in: more than once is a repetition that the collector had to see through.
        self.taken: Counter[str] = Counter()
        #: (time, word, ids) of each request, as it came.
        self.requests: list[tuple[float, str, list[str]]] = []
        self.tokens: set[str] = set()
        self.lock = threading.Lock()
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def words(self) -> list[str]:
        return [word for _, word, _ in self.requests]

    def take(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Do what a collector does, here or upstream; its status and answer."""
        if self.upstream:
            parts = urlsplit(self.upstream)
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
            with contextlib.closing(connection):
                connection.request("POST", "/api/traces", body, headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
        errors = []
        traces = json.loads(body)["traces"]
        with self.lock:
            for index, trace in enumerate(traces):
                self.taken[trace["id"]] += 1
                error = self.judge(trace)
                if error is None:
                    self.stored[trace["id"]] = trace
                else:
                    errors.append({"index": index, "id": trace["id"], **error})
        answer = {"received": len(traces), "stored": len(traces) - len(errors), "errors": errors}
        return 200, json.dumps(answer).encode()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing where a client has hung up."""


@contextlib.contextmanager
def collecting(upstream: str = "") -> Iterator[Collector]:
    """Run a collector that serves until the end of the block."""
    with Collector(upstream) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join(timeout=10)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Collector

    def log_message(self, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with server.lock:
            word = server.plan.popleft() if server.plan else server.otherwise()
            if word == "accept" and len(body) > server.max_body:
                word = "413"
            ids = [trace["id"] for trace in json.loads(body)["traces"]]
            server.requests.append((time.monotonic(), word, ids))
            server.tokens.add(self.headers.get("Authorization", ""))
        getattr(self, f"_{word.replace('-', '_')}", self._status)(word, body)

    def _accept(self, word: str, body: bytes) -> None:
        status, answer = self.server.take(body, self._forwarded())
        self._answer(status, answer)

    def _status(self, word: str, body: bytes) -> None:
        self._answer(int(word), b'{"error": "no"}', {"Retry-After": self.server.retry_after()})

    def _html(self, word: str, body: bytes) -> None:
        self._answer(200, b"<!doctype html><h1>Welcome to the captive portal</h1>")

    def _nonsense(self, word: str, body: bytes) -> None:
        self._answer(200, b'{"received": 1000000, "stored": -3, "errors": "none"}')

    def _endless(self, word: str, body: bytes) -> None:
        self._answer(200, b" " * 3_000_000)

    def _half(self, word: str, body: bytes) -> None:
        self._torn(b'{"received": 1, "sto')

    def _half_after(self, word: str, body: bytes) -> None:
        """Takes the traces, and loses its answer on the way."""
        _, answer = self.server.take(body, self._forwarded())
        self._torn(answer[: len(answer) // 2])

    def _reset(self, word: str, body: bytes) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _reset_after(self, word: str, body: bytes) -> None:
        self.server.take(body, self._forwarded())
        self._reset(word, body)

    def _hang(self, word: str, body: bytes) -> None:
        """Accepts and never answers."""
        self.server.closing.wait(30)
        self.close_connection = True

    def _drip(self, word: str, body: bytes) -> None:
        """Send a byte now and then: no single read ever takes long."""
        with contextlib.suppress(OSError):
            for byte in b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Padding: " + b"x" * 1000:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if self.server.closing.wait(0.05):
                    break
        self.close_connection = True

    def _forgets(self, word: str, body: bytes) -> None:
        """Stores all but the last, and does not say so."""
        traces = json.loads(body)["traces"]
        self.server.take(json.dumps({"traces": traces[:-1]}).encode(), self._forwarded())
        stored = len(traces) - 1
        self._answer(200, json.dumps({"received": len(traces), "stored": stored, "errors": []}).encode())

    def _forwarded(self) -> dict[str, str]:
        return {name: self.headers[name] for name in ("Content-Type", "Authorization") if self.headers[name]}

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            for name, value in (headers or {}).items():
                if value:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def _torn(self, body: bytes) -> None:
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + 100))
            self.end_headers()
            self.wfile.write(body)
        self.close_connection = True
