"""Both protocols, spoken to a real server, and its errors."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import itertools
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from model_server import (
    SECRET_KEY,
    Budget,
    ModelServer,
    Turn,
    drips,
    events,
    fails,
    hangs,
    model_server,
    says,
    sends,
)
from waiting import WITHIN_S

from healkit.config import Config
from healkit.core.contracts.vault import VaultEntry
from healkit.errors import (
    BudgetSpent,
    ConfigError,
    HealkitError,
    ModelError,
    ModelInputTooLarge,
    ModelKeyRefused,
    ModelRefused,
    ModelUnavailable,
    is_retryable,
)
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.advisors.model import ModelAdvisor, Progress
from healkit.parts.models import client
from healkit.parts.models.client import event_data
from healkit.parts.models.model_endpoint import find_endpoint
from healkit.parts.models.protocols import AnthropicMessages, OpenAIChat, Prompt

BROKEN = "def halve(n):\n    return n / 0\n"
ANSWER = "It divided by zero.\n```python\ndef halve(n):\n    return n / 2\n```\n"
CASE = Case(VaultEntry("halve", "default", 1, BROKEN, ""), None, ())
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])
STREAM = events("/v1/chat/completions", ANSWER)
HALF = STREAM[: STREAM.index(b"\n\n", len(STREAM) // 2)]


def asked(config: Config, bench: Budget | None = None, **more: Any) -> HealkitError:
    """Ask a model; return the error that this ends in."""
    advisor = ModelAdvisor(config, environ={"HEALKIT_MODEL_KEY": SECRET_KEY}, **more)
    with pytest.raises(HealkitError) as raised:
        list(advisor.propose(CASE, bench or Budget()))
    assert SECRET_KEY not in f"{raised.value}{raised.value!r}{raised.value.__cause__!r}{advisor!r}"
    return raised.value


def error(message: str, kind: str = "some_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind}}


FINAL: dict[str, tuple[Turn, type[HealkitError], str]] = {
    "a wrong key, which the server quotes": (
        fails(401, error(f"Incorrect API key provided: {SECRET_KEY}")), ModelKeyRefused, "401 Unauthorized.*HEALKIT_MODEL_KEY"
    ),
    "a key without the right": (fails(403, error("no access")), ModelKeyRefused, "403 Forbidden: no access"),
    "a model it does not have": (fails(404, {"error": "model 'teacher-1' not found"}), ModelError, "404.*teacher-1"),
    "no quota left": (
        fails(429, error("You exceeded your current quota", "insufficient_quota")), ModelError, "no quota left"
    ),
    "nobody paid": (fails(402, error("no credits", "billing_error")), ModelError, "402 .*no quota left"),
    "too much for it": (fails(413, error("too large")), ModelInputTooLarge, "heal_model_input_max_bytes"),
    "a request it does not like": (fails(400, error("bad")), ModelError, "400 Bad Request: bad"),
    "a redirect": (
        fails(307, {}, Location="http://elsewhere.example/v1?key=x"), ModelError, "points to elsewhere.example/v1\\. .*heal_model_url"
    ),
    "a teapot": (fails(418, {}), ModelError, "418"),
    "a page of HTML": (sends(b"<html>", kind="text/html"), ModelError, "'text/html' instead of a stream"),
    "an error that calls itself a success": (fails(200, error("no such model")), ModelError, "no such model"),
    "a packed stream": (
        lambda handler: (handler.begin(Content_Encoding="gzip"), handler.end())[0], ModelError, "packed as gzip"
    ),
    "no JSON in the stream": (sends(b"data: {nonsense\n\n"), ModelError, "not a JSON object"),
    "a list in the stream": (sends(b"data: [1]\n\n"), ModelError, "not a JSON object"),
    "an error in the stream": (
        sends(b'data: {"error": {"message": "context too long", "type": "invalid"}}\n\n'), ModelError, "context too long"
    ),
    "an answer that is cut at its limit": (says(ANSWER, "length"), ModelError, "heal_model_max_tokens"),
    "a filter": (says("I", "refused"), ModelRefused, "declined: I"),
    "a refusal": (
        sends(b'data: {"choices": [{"delta": {"refusal": "No."}}]}\n\ndata: [DONE]\n\n'), ModelRefused, "declined"
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("turn", "kind", "match"), FINAL.values(), ids=FINAL)
def test_a_permanent_error_is_not_retried_and_names_the_next_step(
    server: ModelServer, turn: Turn, kind: type[HealkitError], match: str
) -> None:
    server.plan.extend([turn, says(ANSWER)])
    raised = asked(server.config())
    assert type(raised) is kind, raised
    assert raised.code == kind.code
    assert not is_retryable(raised.code)
    assert_says(raised, match)
    assert len(server.requests) == 1


def assert_says(raised: HealkitError, match: str) -> None:
    import re

    assert re.search(match, str(raised), re.DOTALL), str(raised)


PASSING: dict[str, Turn] = {
    "busy": fails(429, error("slow down", "rate_limit_exceeded")),
    "overloaded": fails(529, error("overloaded", "overloaded_error")),
    "broken": fails(500, error("oops")),
    "a gateway's page": fails(502, "<html>"),
    "a connection cut in the middle": sends(HALF, ended=False),
    "a stream that ends in the middle": sends(HALF),
    "an error in the middle that passes": sends(
        HALF, b'\n\ndata: {"error": {"message": "busy", "code": 503}}\n\n'
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("turn", PASSING.values(), ids=PASSING)
def test_a_transient_error_is_retried_and_then_raised(
    server: ModelServer, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "RETRIES", 2)
    server.plan.extend([turn, says(ANSWER), turn, turn, turn])
    config = server.config(heal_model_attempts=1)
    told: list[Progress] = []
    (patch,) = ModelAdvisor(config, environ={}, on_progress=told.append).propose(CASE, Budget())
    assert patch.code.endswith("return n / 2\n")
    assert patch.cost["requests"] == 2
    assert [progress.why for progress in told if progress.wait_s] != []
    raised = asked(config)
    assert type(raised) is ModelUnavailable
    assert is_retryable(raised.code)
    assert raised.hint
    assert len(server.requests) == 5


@PROVIDERS
def test_half_an_answer_is_never_used(
    server: ModelServer, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "RETRIES", 1)
    path = "/v1/messages" if provider == "anthropic" else "/v1/chat/completions"
    whole = events(path, ANSWER)
    cut = whole[: whole.rindex(b"finish_reason" if provider == "openai" else b"message_stop") - 200]
    server.plan.extend([sends(cut)] * 2)
    raised = asked(server.config(provider))
    assert "ended too early, after" in raised.message


def test_a_pause_longer_than_the_budget_is_not_begun(server: ModelServer) -> None:
    server.plan.append(fails(429, error("wait"), Retry_After="3600"))
    raised = asked(server.config(), Budget(30))
    assert isinstance(raised, ModelUnavailable)
    assert_says(raised, "3.6e.03 s, but only .* of the budget are left")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("timeout_s", "budget_s", "kind", "said"),
    [
        (0.3, 60.0, ModelUnavailable, "did not answer within 0.3 s.*heal_model_timeout_s"),
        (60.0, 0.3, BudgetSpent, ""),
    ],
    ids=["limit", "budget"],
)
def test_a_silent_model_is_given_up_in_time(
    server: ModelServer, timeout_s: float, budget_s: float, kind: type[HealkitError], said: str
) -> None:
    server.plan.append(hangs)
    raised = asked(server.config(heal_model_timeout_s=timeout_s), Budget(budget_s))
    assert isinstance(raised, kind)
    assert_says(raised, said)
    assert len(server.requests) == 1


def test_a_trickling_answer_is_given_up_in_time(server: ModelServer) -> None:
    server.plan.append(drips)
    assert isinstance(asked(server.config(heal_model_timeout_s=0.5)), ModelUnavailable)
    assert server.hung_up.wait(WITHIN_S)


@PROVIDERS
def test_an_answer_is_complete_while_the_connection_stays_open(server: ModelServer, provider: str) -> None:
    def stays(handler: Any) -> None:
        handler.begin()
        handler.send(events(handler.path, ANSWER))
        handler.server.closing.wait(60)

    server.plan.append(stays)
    advisor = ModelAdvisor(server.config(provider, heal_model_attempts=1), environ={})
    (patch,) = advisor.propose(CASE, Budget())
    assert patch.cost["output_tokens"] == 20


def test_stop_ends_the_wait_for_a_busy_server(server: ModelServer) -> None:
    server.plan.append(fails(503, error("later"), Retry_After="600"))
    bench = Budget(3600)
    waiting = threading.Event()

    def progress(now: Progress) -> None:
        if now.wait_s > 500:  # as the server says
            waiting.set()
            bench.stopped = True

    assert isinstance(asked(server.config(), bench, on_progress=progress), BudgetSpent)
    assert waiting.is_set()


def test_an_answer_without_end_is_cut_off(server: ModelServer) -> None:
    def floods(handler: Any) -> None:
        handler.begin()
        for _ in itertools.count():
            handler.send(b": " + b"x" * 65536 + b"\n\n")

    server.plan.append(floods)
    raised = asked(server.config(heal_model_max_tokens=16))
    assert_says(raised, "sent more than 294,912 bytes.*heal_model_max_tokens")
    assert server.hung_up.wait(WITHIN_S)


def test_a_redirect_does_not_get_the_key(server: ModelServer) -> None:
    with model_server() as elsewhere:
        server.plan.append(fails(308, {}, Location=f"{elsewhere.url}/v1/chat/completions"))
        asked(server.config())
        assert not elsewhere.requests


def test_an_unreachable_server_is_named_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRIES", 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        raised = asked(Config(heal_model="m", heal_model_url=url))
    assert isinstance(raised, ModelUnavailable)
    assert_says(raised, "127.0.0.1:.*cannot be reached.*heal_model_url")


def test_an_untrusted_certificate_gets_no_question_and_no_key(tmp_path: Path) -> None:
    with model_server(_own_certificate(tmp_path)) as unknown:
        raised = asked(unknown.config())
    assert type(raised) is ModelError
    assert_says(raised, "no safe connection.*SSL_CERT_FILE")
    assert not unknown.requests


def test_answers_without_code_are_retried_and_then_refused(server: ModelServer) -> None:
    server.plan.extend([says(""), says("```diff\n-a\n+b\n```"), says("I would rather not.")])
    raised = asked(server.config(heal_model_attempts=3))
    assert isinstance(raised, ModelRefused)
    assert_says(raised, "no fenced block.*another model")
    told = [request.text for request in server.requests]
    assert "could not be used" not in told[0]
    assert "The answer is empty." in told[1]
    assert "the complete new code is needed" in told[2]


def test_code_that_does_not_fit_is_not_sent(server: ModelServer) -> None:
    raised = asked(server.config(heal_model_input_max_bytes=500))
    assert isinstance(raised, ModelInputTooLarge)
    assert_says(raised, "halve v1 .* A request may have 500 bytes, so nothing was sent")
    assert not server.requests


def _own_certificate(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
        now + datetime.timedelta(days=1)
    )
    made = builder.add_extension(alternative, critical=False).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "both.pem").write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context


def test_an_error_of_any_form_is_read_without_the_key(server: ModelServer) -> None:
    for body in (
        {"error": f"bad key {SECRET_KEY}"},
        {"message": f"bad key {SECRET_KEY}"},
        {"detail": f"bad key {SECRET_KEY}", "n": 1},
        {"error": {"message": f"bad key {SECRET_KEY}", "code": 7}},
    ):
        server.plan.append(fails(401, body))
        assert_says(asked(server.config()), r"401 Unauthorized: bad key \*\*\*")
    server.plan.append(fails(401, [json.dumps(SECRET_KEY)]))
    asked(server.config())


@PROVIDERS
@pytest.mark.requirement("HEAL-2")
def test_a_streamed_answer_becomes_a_patch_with_its_cost(server: ModelServer, provider: str) -> None:
    server.plan.append(says(ANSWER))
    config = server.config(provider, heal_model_attempts=1)
    advisor = ModelAdvisor(config, environ={"HEALKIT_MODEL_KEY": SECRET_KEY})
    (patch,) = advisor.propose(CASE, Budget())
    assert patch.code == "def halve(n):\n    return n / 2\n"
    assert (patch.advisor, patch.author) == (advisor.name, advisor.author) == ("model", "model")
    assert patch.reason == "The model says: “It divided by zero.”"
    cost = {"requests": 1, "input_tokens": 100, "output_tokens": 20}
    assert patch.cost == cost
    assert advisor.unclaimed == {}


def test_each_protocol_has_its_path_headers_and_fields(server: ModelServer) -> None:
    for provider in ("openai", "anthropic"):
        server.plan.append(says(ANSWER))
        advisor = ModelAdvisor(server.config(provider), environ={"HEALKIT_MODEL_KEY": SECRET_KEY})
        next(advisor.propose(CASE, Budget()))
    chat, message = server.requests
    assert (chat.path, chat.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {SECRET_KEY}")
    assert [one["role"] for one in chat.body["messages"]] == ["system", "user"]
    assert (chat.body["model"], chat.body["stream"]) == ("teacher-1", True)
    assert chat.body["max_tokens"] == 8192
    assert chat.body["stream_options"] == {"include_usage": True}
    assert (message.path, message.headers["x-api-key"]) == ("/v1/messages", SECRET_KEY)
    assert message.headers["anthropic-version"] == "2026-10-21"
    assert "authorization" not in message.headers
    assert [one["role"] for one in message.body["messages"]] == ["user"]
    assert (message.body["max_tokens"], message.body["stream"]) == (8192, True)


def test_an_unsupported_field_is_left_out_from_then_on(server: ModelServer) -> None:
    message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    limit = error(message, "invalid_request_error")
    limit["error"] |= {"param": "max_tokens", "code": "unsupported_parameter"}
    usage = {"detail": "stream_options: Extra inputs are not permitted"}
    server.plan.extend([fails(400, limit), fails(422, usage), says("No code."), says(ANSWER)])
    next(ModelAdvisor(server.config(), environ={}).propose(CASE, Budget()))
    *_, third, fourth = (set(request.body) for request in server.requests)
    assert "authorization" not in server.requests[0].headers  # there is no key
    assert third == fourth == {"model", "messages", "max_completion_tokens", "stream"}
    assert len(server.requests) == 4


def test_a_permanent_refusal_is_not_repeated(server: ModelServer) -> None:
    server.plan.append(fails(400, {"error": {"message": "max_tokens is too large", "type": "invalid"}}))
    server.plan.append(fails(400, {"error": {"message": "messages: too long", "type": "invalid"}}))
    with pytest.raises(ModelError, match="messages: too long"):
        next(ModelAdvisor(server.config(), environ={}).propose(CASE, Budget()))
    assert len(server.requests) == 2


def test_null_means_a_missing_field(server: ModelServer) -> None:
    stream = events("/v1/chat/completions", ANSWER).replace(
        b'"choices": [], "usage"', b'"choices": null, "usage"'
    )
    assert b'"choices": null' in stream
    server.plan.append(sends(stream))
    (patch,) = ModelAdvisor(server.config(heal_model_attempts=1), environ={}).propose(CASE, Budget())
    assert patch.cost["input_tokens"] == 100


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_stream_of_events_may_be_cut_anywhere(size: int, end: str) -> None:
    lines = [
        "\ufeffdata: one",
        ": a comment",
        "",
        "event: x",
        "data:zwei ü",
        "data:  drei",
        "id: 7",
        "",
        "data: cut",
    ]
    stream = end.join(lines).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(stream), size):
            yield stream[start : start + size]

    async def found() -> list[str]:
        request = httpx.Request("POST", "http://x.example")
        kind = {"Content-Type": "text/event-stream; charset=latin-1"}
        response = httpx.Response(200, headers=kind, content=pieces(), request=request)
        return [data async for data in event_data(response, len(stream))]

    assert asyncio.run(found()) == ["one", "zwei ü\n drei"]


ADDRESSES = [
    (OpenAIChat, "", "https://api.openai.com/v1/chat/completions"),
    (OpenAIChat, "http://localhost:11434/v1", "http://localhost:11434/v1/chat/completions"),
    (OpenAIChat, "http://localhost:1234/v1/", "http://localhost:1234/v1/chat/completions"),
    (OpenAIChat, "https://x.example/a/chat/completions?v=1", "https://x.example/a/chat/completions?v=1"),
    (AnthropicMessages, "", "https://api.anthropic.com/v1/messages"),
    (AnthropicMessages, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
    (AnthropicMessages, "https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1/messages"),
]


@pytest.mark.parametrize(("protocol", "given", "endpoint"), ADDRESSES)
def test_an_address_may_have_its_path_or_not(protocol: Any, given: str, endpoint: str) -> None:
    assert protocol(given).endpoint == endpoint


def test_openai_itself_gets_the_newer_name_of_the_limit() -> None:
    access, available = find_endpoint(Config(heal_model="m"), {"OPENAI_API_KEY": SECRET_KEY})
    assert available
    assert access is not None
    assert access.host == "api.openai.com"
    assert access.adapter.body("m", Prompt("", ""), 10)["max_completion_tokens"] == 10


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"heal_model_provider": "acme"}, "Choose one of openai, anthropic"),
        ({"heal_model_url": "ftp://x"}, "heal_model_url='ftp://x' is not an http"),
        ({"heal_model_url": "https://me:pw@x.example/v1"}, "HEALKIT_MODEL_KEY"),
        ({"heal_model_attempts": 0}, "greater than 0"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Config(**wrong)
