"""Language model's server that follows a plan, over real HTTP.

Each request takes the next turn of a plan. The path says which protocol is spoken; the events are those that the
providers publish. What arrived is kept, whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from healkit.config import Config
from healkit.errors import WorkerStartFailed
from healkit.parts.models import client

client.BACKOFF_S = 0.01  # pauses that a test can wait for

SECRET_KEY = "xk-" + "7Qm2vT9bLw4zR8nA"

Turn = Callable[["Handler"], None]


@dataclasses.dataclass
class Received:
    """Request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at_s: float

    @property
    def text(self) -> str:
        """Text of all messages to the model, in either protocol."""
        told = [message["content"] for message in self.body["messages"]]
        return "\n".join([self.body.get("system", ""), *told])


class ModelServer(ThreadingHTTPServer):
    """Answers with the turns of `plan`, one a request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan: deque[Turn] = deque()
        self.requests: list[Received] = []
        self.hung_up = threading.Event()
        self.closing = threading.Event()
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def config(self, provider: str = "openai", **more: Any) -> Config:
        """Settings that ask this server."""
        url = f"{self.url}/v1" if provider == "openai" else self.url
        named = {
            "heal_model_timeout_s": 20.0,
            "heal_model": "teacher-1",
            "heal_model_url": url,
            "heal_model_provider": provider,
        }
        return Config(**{**named, **more})

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing where a client has hung up."""


class Handler(BaseHTTPRequestHandler):
    """Takes a request down and plays the next turn."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(Received(self.path, headers, body, time.monotonic()))
        turn = self.server.plan.popleft() if self.server.plan else fails(500, {"error": "the plan is over"})
        try:
            turn(self)
        except (BrokenPipeError, ConnectionResetError):
            self.server.hung_up.set()
            self.close_connection = True

    def begin(
        self, status: int = 200, kind: str = "text/event-stream; charset=utf-8", **headers: str
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def send(self, piece: bytes) -> None:
        if piece:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()

    def end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: Any) -> None:
        """Nothing on the terminal."""


def call_events(path: str, name: str, arguments: str) -> bytes:
    """Build a whole stream of one call of a function, its arguments cut into pieces, in the protocol of that path."""
    pieces = [arguments[start : start + 7] for start in range(0, len(arguments), 7)]
    if path.endswith("/messages"):
        block = {"type": "tool_use", "id": "t-1", "name": name, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces]]
        return _anthropic([(block, deltas)], "tool_use", (100, 20))
    begins = {"index": 0, "id": "t-1", "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    return _openai(
        [{"content": None, "tool_calls": [piece]} for piece in (begins, *rest)], "tool_calls", (100, 20)
    )


def events(path: str, text: str, ending: str = "complete", tokens: tuple[int, int] = (100, 20)) -> bytes:
    """Build a whole stream of that text, in the protocol of that path."""
    pieces = [text[start : start + 7] for start in range(0, len(text), 7)]
    if path.endswith("/messages"):
        thought = {"type": "thinking_delta", "thinking": "```python\nnot this\n```"}
        told = [{"type": "text_delta", "text": piece} for piece in pieces]
        blocks = [({"type": "thinking", "thinking": ""}, [thought]), ({"type": "text", "text": ""}, told)]
        stop = {"complete": "end_turn", "length": "max_tokens", "refused": "refusal"}[ending]
        return _anthropic(blocks, stop, tokens)
    finish = {"complete": "stop", "length": "length", "refused": "content_filter"}[ending]
    return _openai(
        [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces)], finish, tokens
    )


def _openai(deltas: list[dict[str, Any]], finish: str, tokens: tuple[int, int]) -> bytes:
    kind = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "teacher-1"}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    chunks = [
        {**kind, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": None}
        for delta, reason in [*((delta, None) for delta in deltas), ({}, finish)]
    ]
    lines = [f"data: {json.dumps(one)}\n\n" for one in [*chunks, {**kind, "choices": [], "usage": usage}]]
    return "".join([": keep-alive\n\n", *lines, "data: [DONE]\n\n"]).encode()


def _anthropic(blocks: list[tuple[dict[str, Any], list[Any]]], stop: str, tokens: tuple[int, int]) -> bytes:
    start = {"input_tokens": tokens[0] - 30, "cache_read_input_tokens": 30, "output_tokens": 1}
    message = {"id": "m-1", "type": "message", "role": "assistant", "content": [], "usage": start}
    told: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, (block, deltas) in enumerate(blocks):
        told.append({"type": "content_block_start", "index": index, "content_block": block})
        told += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        told.append({"type": "content_block_stop", "index": index})
    told += [
        {"type": "a_kind_of_event_from_the_future"},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": tokens[1]}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in told).encode()


def says(text: str, ending: str = "complete", **more: Any) -> Turn:
    """Stream that text, cut into pieces at odd places."""

    def play(handler: Handler) -> None:
        stream = events(handler.path, text, ending, **more)
        handler.begin()
        for start in range(0, len(stream), 1000):
            handler.send(stream[start : start + 1000])
        handler.end()

    return play


def calls(choice: dict[str, Any]) -> Turn:
    """Call the function of that type with the rest of it, as a model that speaks tool calling."""
    arguments = {name: value for name, value in choice.items() if name != "type"}

    def play(handler: Handler) -> None:
        handler.begin()
        handler.send(call_events(handler.path, choice["type"], json.dumps(arguments)))
        handler.end()

    return play


def fails(status: int, body: Any, **headers: str) -> Turn:
    """Answer with a status and a JSON body."""

    def play(handler: Handler) -> None:
        handler.begin(status, "application/json", **headers)
        handler.send(json.dumps(body).encode())
        handler.end()

    return play


def sends(*pieces: bytes, kind: str = "text/event-stream", ended: bool = True) -> Turn:
    """Send these bytes; without `ended` the connection is cut in the middle of the answer."""

    def play(handler: Handler) -> None:
        handler.begin(kind=kind)
        for piece in pieces:
            handler.send(piece)
        if ended:
            handler.end()
        handler.close_connection = True

    return play


def drips(handler: Handler) -> None:
    """Send a word every few milliseconds, until the client or the server closes."""
    chat = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
    message = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}
    handler.begin()
    while not handler.server.closing.wait(0.01):
        said = message if handler.path.endswith("/messages") else chat
        handler.send(b"data: %s\n\n" % json.dumps(said).encode())


def hangs(handler: Handler) -> None:
    """Say nothing at all."""
    handler.server.closing.wait(60)


@contextlib.contextmanager
def model_server(tls: ssl.SSLContext | None = None) -> Iterator[ModelServer]:
    """Run a server for as long as the block."""
    server = ModelServer()
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        server.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


class Budget:
    """Rest of a healing's time; nothing can be tried on it."""

    def __init__(self, seconds: float = 60.0) -> None:
        self._until = time.monotonic() + seconds
        self.stopped = False

    @property
    def left_s(self) -> float:
        return 0.0 if self.stopped else max(0.0, self._until - time.monotonic())

    def score(self, *args: Any, **more: Any) -> Any:
        raise WorkerStartFailed("Nothing is tried here.")

    run = observe = score
