"""Model as the chooser, asked over real HTTP."""

from __future__ import annotations

import dataclasses
import json
import random
import threading
from typing import Any

import pandas as pd
import pytest
from decide_samples import ALL, SALES, decide
from model_server import (
    SECRET_KEY,
    ModelServer,
    Received,
    Turn,
    call_events,
    calls,
    fails,
    hangs,
    says,
    sends,
)
from tiers import slow_but

from healkit import Healkit
from healkit.errors import UsageInvalid
from healkit.parts.decide import ModelChooser
from healkit.parts.decide.choosers import told
from healkit.parts.decide.decision import Decision
from healkit.parts.runs.run_folders import run_folders

PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])
LOOK = {"type": "gather_info", "tool": "regions", "params": {"df": "sales"}}
TOTALS = {"type": "execute_data_op", "tool": "totals", "params": {"df": "sales"}, "viewName": "by_region"}
WIDE = {"type": "execute_data_op", "tool": "spread", "params": {"df": "sales", "column": "region"}, "viewName": "wide"}  # fmt: skip
BROKEN = {"type": "execute_data_op", "tool": "as_numbers", "params": {"df": "sales", "column": "region"}, "viewName": "n"}  # fmt: skip
END = {"type": "finalize", "finalViewName": "by_region"}
KEY = {"HEALKIT_MODEL_KEY": SECRET_KEY}


def decided(
    deciding: Healkit, server: ModelServer, *plan: Turn, provider: str = "openai",
    question: str = "Which region sells most?", config: dict[str, Any] | None = None, frame: pd.DataFrame = SALES, **more: Any,
) -> Decision:  # fmt: skip
    server.plan.extend(plan)
    chooser = ModelChooser(server.config(provider, **(config or {})), environ=KEY)
    return deciding.decide(question, {"sales": frame}, tools=ALL, chooser=chooser, **more)


def user_of(request: Received) -> str:
    (found,) = [one["content"] for one in request.body["messages"] if one["role"] == "user"]
    return str(found)


def without_turn(request: Received) -> dict[str, Any]:
    """Return all of a request but the turn: path, headers, body."""
    kept = [one for one in request.body["messages"] if one["role"] != "user"]
    headers = {name: value for name, value in request.headers.items() if name != "content-length"}
    return {"path": request.path, "headers": headers, "body": {**request.body, "messages": kept}}


@pytest.mark.slow
@PROVIDERS
@pytest.mark.requirement("DECIDE-1")
def test_a_model_that_calls_functions_ends_in_the_right_view(
    deciding: Healkit, server: ModelServer, provider: str
) -> None:
    decision = decided(deciding, server, calls(LOOK), calls(TOTALS), calls(END), provider=provider)
    assert (decision.outcome, decision.problem) == ("finalized", ""), decision
    view = deciding.views.load(str(decision.raw_data_view_name))
    assert dict(zip(view["region"], view["total"], strict=True)) == {
        "Meta Inc": 3.0,
        "North": 5.0,
        "South": 2.0,
    }
    assert [entry.choice_type for entry in decision.audit_log] == [
        "decision_started", "gather_info", "execute_data_op", "finalize", "run_finished",
    ]  # fmt: skip
    assert "chooser: model" in decision.audit_log[0].description
    first = server.requests[0].body
    names = [one.get("function", one)["name"] for one in first["tools"]]
    assert names == ["gather_info", "execute_data_op", "execute_output", "finalize"]
    expected = {"openai": "required", "anthropic": {"type": "any", "disable_parallel_tool_use": True}}
    assert first["tool_choice"] == expected[provider]


@PROVIDERS
@pytest.mark.requirement("DECIDE-1")
def test_a_model_receives_the_turn_and_nothing_else(
    deciding: Healkit, server: ModelServer, provider: str
) -> None:
    """Whatever the data is, all of a request but the turn is the same; and no marker is in any of it."""
    rng = random.Random(7)

    def marker() -> str:
        return "".join(rng.choices("bcdfghjklmnpqrstvwxz", k=14))

    markers = [marker() for _ in range(5)]
    frame = pd.DataFrame({"region": [*markers, markers[0]], "sales": [1.5, 2.5, 3.5, 4.5, 5.5, 987654.321]})
    frame.attrs["source"] = markers[0]
    frame.index = pd.Index([f"row {markers[1]} {number}" for number in range(6)], name=markers[2])
    wrong = {"type": "finalize", "finalViewName": "never"}
    plan = [calls(LOOK), calls(WIDE), calls(BROKEN), calls(wrong), calls(TOTALS), calls(END)]
    decision = decided(deciding, server, *plan, provider=provider, frame=frame)
    assert decision.outcome == "finalized", decision
    assert [user_of(request) for request in server.requests] == [told(turn) for turn in decision.sent]
    assert len(server.requests) == 6
    whole = "".join(json.dumps([request.path, request.headers, request.body]) for request in server.requests)
    for word in markers:
        for form in (word, word[::-1], word.upper(), word[3:11], word.encode().hex()):
            assert form not in whole
    assert "987654" not in whole
    other = decided(deciding, server, calls({**END, "finalViewName": "sales"}), provider=provider, question="How many?", frame=pd.DataFrame({"a": [1]}))  # fmt: skip
    assert other.ok
    rest = [without_turn(request) for request in server.requests]
    assert all(one == rest[0] for one in rest)


@PROVIDERS
def test_a_server_without_calls_is_asked_for_json(
    deciding: Healkit, server: ModelServer, provider: str
) -> None:
    refused = fails(400, {"error": {"message": "teacher-1 does not support tools", "type": "api_error"}})
    fenced = f"I take the totals {{of course}}:\n```json\n{json.dumps(TOTALS, indent=1)}\n```\nThen we see."
    decision = decided(deciding, server, refused, says(fenced), says(json.dumps(END)), provider=provider)
    assert decision.ok, decision
    assert ["tools" in request.body for request in server.requests] == [True, False, False]
    assert not any("tool_choice" in request.body for request in server.requests[1:])


def test_of_several_calls_the_first_counts(deciding: Healkit, server: ModelServer) -> None:
    one, two = {"df": "sales"}, {"finalViewName": "sales"}
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "execute_data_op", "arguments": json.dumps({"tool": "totals", "params": one, "viewName": "by_region"})}},
        {"index": 1, "id": "b", "function": {"name": "finalize", "arguments": json.dumps(two)}},
    ]  # fmt: skip
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": pieces}, "finish_reason": "tool_calls"}]}
    both = sends(b"data: %s\n\ndata: [DONE]\n\n" % json.dumps(chunk).encode())
    decision = decided(deciding, server, both, calls(END))
    assert (decision.ok, list(decision.views)) == (True, ["sales", "by_region"])


NONSENSE: dict[str, Turn] = {
    "words": says("I think that the North sells most."),
    "an unknown function": calls({"type": "run_sql", "query": "DROP TABLE sales"}),
    "a field too many": calls({**END, "sql": "1"}),
    "a view that does not exist": calls({"type": "finalize", "finalViewName": "never"}),
    "arguments that are no JSON": sends(
        call_events("/v1/chat/completions", "finalize", '{"finalViewName": ')
    ),
    "an empty answer": says(""),
}


@pytest.mark.parametrize("turn", slow_but(NONSENSE, {"words", "an unknown function", "a field too many"}))
def test_nonsense_halts_the_second_time(deciding: Healkit, server: ModelServer, turn: Turn) -> None:
    decision = decided(deciding, server, turn, turn, calls(END))
    assert decision.outcome == "halted", decision
    assert len(server.requests) == 2
    assert '"problem"' in user_of(server.requests[1])
    refused = [entry for entry in decision.audit_log if entry.choice_type == "choice_refused"]
    assert [entry.metadata.error_message for entry in refused] == ["CHOICE_INVALID"] * 2
    server.plan.clear()
    again = decided(deciding, server, calls(TOTALS), turn, calls(END))
    assert again.ok, again


GONE: dict[str, tuple[list[Turn], str]] = {
    "a wrong key": ([fails(401, {"error": {"message": f"Incorrect API key: {SECRET_KEY}"}})], "MODEL_KEY_REFUSED"),
    "a refusal": ([says("No.", "refused")], "MODEL_REFUSED"),
    "no answer in time": ([hangs], "MODEL_UNAVAILABLE"),
}  # fmt: skip


@pytest.mark.parametrize(("plan", "code"), slow_but(GONE, {"a wrong key", "a refusal"}))
def test_a_model_that_cannot_answer_halts_with_its_code(
    deciding: Healkit, server: ModelServer, plan: list[Turn], code: str
) -> None:
    quick = {"heal_model_timeout_s": 0.3} if hangs in plan else {}
    decision = decided(deciding, server, calls(TOTALS), *plan, config=quick)
    assert (decision.outcome, f"({code})" in decision.reason) == ("halted", True), decision.reason
    assert list(decision.views) == ["sales", "by_region"]
    kept = "".join(
        path.read_text(errors="replace") for path in decision.run.folder.rglob("*") if path.is_file()
    )
    assert SECRET_KEY not in f"{decision}{decision.audit_log}{kept}"
    assert deciding.audit.verify().ok


def test_a_stop_is_heard_while_the_model_thinks(deciding: Healkit, server: ModelServer) -> None:
    stop = threading.Event()

    def stops(handler: Any) -> None:
        stop.set()
        hangs(handler)

    decision = decided(deciding, server, calls(TOTALS), stops, stop=stop)
    assert (decision.outcome, list(decision.views)) == ("stopped", ["sales", "by_region"])


def test_the_configured_model_is_chosen_by_its_word(
    deciding: Healkit, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = run_folders(deciding.runs_dir)
    with pytest.raises(UsageInvalid, match="HEALKIT_HEAL_MODEL"):
        decide(deciding, "model")
    assert run_folders(deciding.runs_dir) == runs
    monkeypatch.setenv("HEALKIT_MODEL_KEY", SECRET_KEY)
    named = server.config()
    fields = ("heal_model", "heal_model_url", "heal_model_provider")
    config = dataclasses.replace(deciding.config, **{field: getattr(named, field) for field in fields})
    server.plan.extend([calls(TOTALS), calls(END)])
    with Healkit(deciding.path, config=config) as opened:
        assert opened.decide("Which?", {"sales": SALES}, tools=ALL, chooser="model").ok
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {SECRET_KEY}"}
