"""Errors between healkit and a model.

Each has its code, its hint, and an end in time.
"""

from __future__ import annotations

import datetime
import ipaddress
import itertools
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from healkit.contracts.vault import VaultEntry
from healkit.errors import (
    BudgetSpent,
    HealkitError,
    ModelError,
    ModelInputTooLarge,
    ModelKeyRefused,
    ModelRefused,
    ModelUnavailable,
    is_retryable,
)
from healkit.healing.advisor import Case
from healkit.healing.advisors.model import ModelAdvisor, Progress
from healkit.language_models import client

BROKEN = "def halve(n):\n    return n / 0\n"
ANSWER = "It divided by zero.\n```python\ndef halve(n):\n    return n / 2\n```\n"
CASE = Case(VaultEntry("halve", "default", 1, BROKEN, ""), None, ())
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])
STREAM = events("/v1/chat/completions", ANSWER)
HALF = STREAM[: STREAM.index(b"\n\n", len(STREAM) // 2)]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


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
        fails(307, {}, Location="http://elsewhere.example/v1?key=x"), ModelError, "points to elsewhere.example/v1, .*heal_model_url"
    ),
    "a teapot": (fails(418, {}), ModelError, "418"),
    "a page of HTML": (sends(b"<html>", kind="text/html"), ModelError, "'text/html' instead of a stream"),
    "an error that calls itself a success": (fails(200, error("no such model")), ModelError, "no such model"),
    "a packed stream": (
        lambda handler: (handler.begin(Content_Encoding="gzip"), handler.end())[0], ModelError, "packed as gzip"
    ),
    "no JSON in the stream": (sends(b"data: {nonsense\n\n"), ModelError, "no JSON object"),
    "a list in the stream": (sends(b"data: [1]\n\n"), ModelError, "no JSON object"),
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


@pytest.mark.slow
@PROVIDERS
def test_an_overload_in_the_middle_of_a_stream_is_retried(server: ModelServer, provider: str) -> None:
    stop = b'data: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
    server.plan.extend([sends(stop), says(ANSWER)])
    advisor = ModelAdvisor(server.config(provider, heal_model_attempts=1), environ={})
    assert len(list(advisor.propose(CASE, Budget()))) == 1


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
    assert "broke off after" in raised.message


@pytest.mark.slow
def test_the_servers_retry_after_is_honoured(server: ModelServer) -> None:
    server.plan.extend([fails(429, error("wait"), Retry_After="1"), says(ANSWER)])
    list(ModelAdvisor(server.config(heal_model_attempts=1), environ={}).propose(CASE, Budget()))
    first, second = server.requests
    assert second.at_s - first.at_s >= 0.9


def test_a_pause_longer_than_the_budget_is_not_begun(server: ModelServer) -> None:
    server.plan.append(fails(429, error("wait"), Retry_After="3600"))
    raised = asked(server.config(), Budget(30))
    assert isinstance(raised, ModelUnavailable)
    assert_says(raised, "3.6e.03 s, and .* of the budget are left")
    assert len(server.requests) == 1


def test_a_silent_model_is_given_up_in_time(server: ModelServer) -> None:
    server.plan.append(hangs)
    raised = asked(server.config(heal_model_timeout_s=0.5))
    assert isinstance(raised, ModelUnavailable)
    assert_says(raised, "did not answer within 0.5 s.*heal_model_timeout_s")
    assert len(server.requests) == 1


@pytest.mark.slow
def test_a_trickling_answer_is_given_up_in_time(server: ModelServer) -> None:
    server.plan.append(drips)
    assert isinstance(asked(server.config(heal_model_timeout_s=1.5)), ModelUnavailable)
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


def test_the_budget_bounds_a_request(server: ModelServer) -> None:
    server.plan.append(hangs)
    raised = asked(server.config(heal_model_timeout_s=60.0), Budget(0.3))
    assert isinstance(raised, BudgetSpent)


@PROVIDERS
def test_stop_in_the_middle_of_an_answer_hangs_up(server: ModelServer, provider: str) -> None:
    server.plan.append(drips)
    bench = Budget()
    told: list[Progress] = []

    def progress(now: Progress) -> None:
        told.append(now)
        bench.stopped = now.received_chars > 3

    raised = asked(server.config(provider), bench, on_progress=progress)
    assert isinstance(raised, BudgetSpent)
    assert told[-1].received_chars > 3
    assert server.hung_up.wait(WITHIN_S), "the request went on after Stop"


def test_stop_ends_the_wait_for_a_busy_server(server: ModelServer) -> None:
    server.plan.append(fails(503, error("later"), Retry_After="600"))
    bench = Budget(3600)
    waiting = threading.Event()

    def progress(now: Progress) -> None:
        if now.wait_s:
            waiting.set()
            bench.stopped = True

    assert isinstance(asked(server.config(), bench, on_progress=progress), BudgetSpent)
    assert waiting.is_set()


def test_nothing_is_asked_once_the_budget_is_spent(server: ModelServer) -> None:
    bench = Budget()
    bench.stopped = True
    assert isinstance(asked(server.config(), bench), BudgetSpent)
    assert not server.requests


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


def test_https_to_an_http_server_is_explained(server: ModelServer) -> None:
    raised = asked(Config(heal_model="m", heal_model_url=server.url.replace("http:", "https:")))
    assert type(raised) is ModelError
    assert_says(raised, "no safe connection.*http or https")


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
    assert "the whole new code is needed" in told[2]


def test_the_next_patch_carries_the_cost_of_vain_calls(server: ModelServer) -> None:
    server.plan.extend([says("Hm."), says(ANSWER)])
    advisor = ModelAdvisor(server.config(heal_model_attempts=2), environ={})
    (patch,) = advisor.propose(CASE, Budget())
    assert patch.cost == {"requests": 2, "input_tokens": 200, "output_tokens": 40}


def test_code_that_does_not_fit_is_not_sent(server: ModelServer) -> None:
    raised = asked(server.config(heal_model_input_max_bytes=500))
    assert isinstance(raised, ModelInputTooLarge)
    assert_says(raised, "halve v1 .* 500 are allowed; nothing was sent")
    assert not server.requests


def _own_certificate(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
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
