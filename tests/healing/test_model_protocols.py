"""Model protocols, both spoken to a real server.

Also the format that streams have in common.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from model_server import SECRET_KEY, Budget, ModelServer, events, fails, model_server, says, sends

from healkit.config import Config
from healkit.contracts.vault import VaultEntry
from healkit.errors import ConfigError, ModelError
from healkit.healing.advisor import Case
from healkit.healing.advisors.model import ModelAdvisor
from healkit.language_models.client import event_data
from healkit.language_models.model_endpoint import find_endpoint
from healkit.language_models.protocols import AnthropicMessages, OpenAIChat, Prompt

BROKEN = "def halve(n):\n    return n / 0\n"
ANSWER = "It divided by zero — always.\n```python\ndef halve(n):\n    return n / 2\n```\n"
CASE = Case(VaultEntry("halve", "default", 1, BROKEN, ""), None, ())
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@PROVIDERS
@pytest.mark.requirement("HEAL-2")
def test_a_streamed_answer_becomes_a_patch_with_its_author_and_its_cost(
    server: ModelServer, provider: str
) -> None:
    server.plan.append(says(ANSWER))
    config = server.config(
        provider,
        heal_model_usd_per_mtok=(3.0, 15.0),
        heal_model_attempts=1,
    )
    advisor = ModelAdvisor(config, environ={"HEALKIT_MODEL_KEY": SECRET_KEY})
    (patch,) = advisor.propose(CASE, Budget())
    assert patch.code == "def halve(n):\n    return n / 2\n"
    assert (patch.advisor, patch.author) == (advisor.name, advisor.author) == ("model", "model")
    assert patch.reason == "It divided by zero — always."
    assert patch.cost == {
        "requests": 1,
        "input_tokens": 100,
        "output_tokens": 20,
        "usd": pytest.approx(0.0006),
    }
    assert advisor.spending.cost() == patch.cost


@PROVIDERS
def test_without_prices_the_cost_has_no_money(server: ModelServer, provider: str) -> None:
    server.plan.append(says(ANSWER))
    (patch,) = ModelAdvisor(server.config(provider, heal_model_attempts=1), environ={}).propose(
        CASE, Budget()
    )
    assert patch.cost == {"requests": 1, "input_tokens": 100, "output_tokens": 20}


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


def test_a_server_without_key_gets_none(server: ModelServer) -> None:
    server.plan.append(says(ANSWER))
    next(ModelAdvisor(server.config(), environ={}).propose(CASE, Budget()))
    assert "authorization" not in server.requests[0].headers


def test_an_unsupported_field_is_left_out_from_then_on(server: ModelServer) -> None:
    limit = {
        "error": {
            "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "type": "invalid_request_error",
            "param": "max_tokens",
            "code": "unsupported_parameter",
        }
    }
    usage = {"detail": "stream_options: Extra inputs are not permitted"}
    server.plan.extend([fails(400, limit), fails(422, usage), says("No code."), says(ANSWER)])
    next(ModelAdvisor(server.config(), environ={}).propose(CASE, Budget()))
    *_, third, fourth = (set(request.body) for request in server.requests)
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


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [
        ("", "https://api.openai.com/v1/chat/completions"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1/chat/completions"),
        ("http://localhost:1234/v1/", "http://localhost:1234/v1/chat/completions"),
        ("https://x.example/a/chat/completions?v=1", "https://x.example/a/chat/completions?v=1"),
    ],
)
def test_the_address_of_chat_completions_may_have_its_path_or_not(given: str, endpoint: str) -> None:
    assert OpenAIChat(given).endpoint == endpoint


@pytest.mark.parametrize("given", ["", "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"])
def test_the_address_of_messages_may_have_its_path_or_not(given: str) -> None:
    assert AnthropicMessages(given).endpoint == "https://api.anthropic.com/v1/messages"


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
        ({"heal_model_url": "ftp://x"}, "heal_model_url='ftp://x' is no http"),
        ({"heal_model_url": "https://me:pw@x.example/v1"}, "HEALKIT_MODEL_KEY"),
        ({"heal_model_attempts": 0}, "greater than 0"),
        ({"heal_model_usd_per_mtok": (0.0, -1.0)}, "0 or greater"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Config(**wrong)
