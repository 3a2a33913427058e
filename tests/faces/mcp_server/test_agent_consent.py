"""Consent to an agent's patches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_samples import FIXED, MEAN, data_of, error_of, in_process, run
from mcp_types import ElicitRequestParams, ElicitResult

from healkit import Healkit
from healkit.config import Config
from healkit.faces.mcp_server import consent
from healkit.parts.heal.deciding import decide

pytestmark = [pytest.mark.requirement("HEAL-4", "FACE-5")]

MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])


def answering(action: str, apply: bool, asked: list[str]) -> Callable[..., Any]:
    async def answer(_: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={"apply": apply} if action == "accept" else None)  # type: ignore[arg-type]  # a word of three

    return answer


async def proposed(client: Any) -> dict[str, Any]:
    """Write a failing tool, and propose its fix; the arguments of apply_patch."""
    example = {"arguments": {"xs": [1, 3]}, "result": 2}
    await client.call_tool("write_tool", {"name": "mean", "code": MEAN, "examples": [example]})
    error_of(await client.call_tool("mean", {"xs": [1, 2]}))
    asked = {"name": "mean", "code": FIXED, "reason": "the name is xs"}
    found = data_of(await client.call_tool("propose_patch", asked))
    return {"request_id": found["request_id"], "code_hash": found["code_hash"]}


@MODES
def test_the_clients_user_is_shown_the_diff_and_decides(db: Path, beside: Healkit, mode: str) -> None:
    async def work() -> None:
        asked: list[str] = []
        async with in_process(db, mode=mode, elicitation_callback=answering("accept", True, asked)) as client:
            applied = data_of(await client.call_tool("apply_patch", await proposed(client)))
            assert (applied["revision"], applied["decided_by"]) == (2, "user of tester")
            assert "+    return sum(xs) / len(xs)" in asked[0]
            assert "fixed, no regressions" in asked[0]
            assert beside.vault.get("mean").code == FIXED

    run(work)


@MODES
@pytest.mark.parametrize(
    ("action", "apply", "state", "code"),
    [
        ("decline", False, "declined", "PATCH_REQUEST_DECIDED"),
        ("accept", False, "declined", "PATCH_REQUEST_DECIDED"),
        ("cancel", False, "pending", "APPROVAL_NEEDED"),
    ],
)
@pytest.mark.slow
def test_a_refusal_stands_and_no_answer_leaves_the_request_waiting(
    db: Path, beside: Healkit, mode: str, action: str, apply: bool, state: str, code: str
) -> None:
    async def work() -> None:
        async with in_process(db, mode=mode, elicitation_callback=answering(action, apply, [])) as client:
            arguments = await proposed(client)
            assert error_of(await client.call_tool("apply_patch", arguments))["code"] == code
            assert beside.requests.get(arguments["request_id"]).state == state
            assert beside.vault.get("mean").revision == 1

    run(work)


def test_a_forged_an_old_and_a_swapped_answer_are_refused(db: Path, beside: Healkit) -> None:
    async def work() -> None:
        async with in_process(db, elicitation_callback=answering("accept", True, [])) as client:
            arguments = await proposed(client)
            yes = {"apply": ElicitResult(action="accept", content={"apply": True})}
            call = client.session.call_tool
            # Never asked.
            forged = await call("apply_patch", arguments, input_responses=yes, request_state="made-up")
            assert error_of(forged)["code"] == "AGENT_REFUSED"
            # Asked about one patch, answered for another.
            question = await call("apply_patch", arguments, allow_input_required=True)
            other = FIXED.replace("sum(xs)", "float(sum(xs))")
            second = await client.call_tool(
                "propose_patch", {"name": "mean", "code": other, "reason": "another"}
            )
            swapped = {"request_id": data_of(second)["request_id"], "code_hash": data_of(second)["code_hash"]}
            token = question.request_state
            refused = await call("apply_patch", swapped, input_responses=yes, request_state=token)
            assert error_of(refused)["code"] == "AGENT_REFUSED"
            # The token was for one answer.
            again = await call("apply_patch", arguments, input_responses=yes, request_state=token)
            assert error_of(again)["code"] == "AGENT_REFUSED"
            assert beside.vault.get("mean").revision == 1
            assert data_of(await client.call_tool("apply_patch", arguments))["revision"] == 2

    run(work)


def test_an_answer_that_comes_too_late_counts_for_nothing(
    beside: Healkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp import Client

    from healkit.faces.mcp_server.server import AgentServer

    monkeypatch.setattr(consent, "ANSWER_S", 0.05)

    async def slow(_: Any, params: ElicitRequestParams) -> ElicitResult:
        await asyncio.sleep(0.3)
        return ElicitResult(action="accept", content={"apply": True})

    async def work() -> None:
        async with Client(
            AgentServer(lambda: beside, beside.config).protocol, elicitation_callback=slow
        ) as client:
            refused = await client.call_tool("apply_patch", await proposed(client))
            assert error_of(refused)["code"] in ("AGENT_REFUSED", "APPROVAL_NEEDED")
            assert beside.vault.get("mean").revision == 1

    run(work)


def test_requests_only_never_asks_through_the_client(db: Path, beside: Healkit) -> None:
    async def work() -> None:
        asked: list[str] = []
        yes = answering("accept", True, asked)
        async with in_process(db, "--requests-only", elicitation_callback=yes) as client:
            assert (
                error_of(await client.call_tool("apply_patch", await proposed(client)))["code"]
                == "APPROVAL_NEEDED"
            )
            assert not asked
            assert beside.requests.waiting() == 1

    run(work)


def test_a_request_whose_tool_has_moved_on_is_refused_and_nothing_changes(db: Path, beside: Healkit) -> None:
    async def work() -> None:
        async with in_process(db, elicitation_callback=answering("accept", True, [])) as client:
            arguments = await proposed(client)
            beside.vault.patch("mean", MEAN.replace("len(x)", "len(xs) or 1"))
            error = error_of(await client.call_tool("apply_patch", arguments))
            assert error["code"] == "REVISION_CONFLICT"
            assert beside.vault.get("mean").revision == 2

    run(work)


@pytest.mark.slow
def test_the_policy_allows_and_denies_by_client_persona_and_tool(db: Path, beside: Healkit) -> None:
    async def work() -> None:
        allow = {"HEALKIT_HEAL_ALLOW": "friend/*/mean"}
        async with in_process(db, name="stranger", environment=allow) as client:
            arguments = await proposed(client)
            assert error_of(await client.call_tool("apply_patch", arguments))["code"] == "APPROVAL_NEEDED"
        deny = {**allow, "HEALKIT_HEAL_DENY": "default/me*"}
        async with in_process(db, name="friend", environment=deny) as client:
            denied = error_of(await client.call_tool("apply_patch", arguments))
            assert denied["code"] == "PATCH_REQUEST_DECIDED"
            assert "heal_deny" in denied["message"]
            asked = {"name": "mean", "code": FIXED + "\n", "reason": "again"}
            refused = await client.call_tool("propose_patch", asked)
            assert refused.structured_content
            assert refused.structured_content["outcome"] == "denied"
        assert beside.vault.get("mean").revision == 1
        async with in_process(db, name="friend", environment=allow) as client:
            found = data_of(await client.call_tool("apply_patch", arguments))
            assert found["revision"] == 2
            assert "policy" in found["decided_by"]

    run(work)


def test_deny_beats_allow_and_parts_that_are_left_out_fit_all() -> None:
    config = Config(heal_allow=("a/p/t*", "open"), heal_deny=("evil/*/*", "p/tx"))

    def ask(tool: str, persona: str, client: str) -> str:
        return decide(tool, "cured", "agent", config, persona=persona, client=client)

    assert ask("t1", "p", "a") == "allow"
    assert ask("t1", "p", "b") == "ask"
    assert ask("t1", "q", "a") == "ask"
    assert ask("open", "any", "any") == "allow"
    assert ask("open", "any", "evil") == "deny"
    assert ask("tx", "p", "a") == "deny"
    assert ask("open", "any", "") == "allow"


def test_to_go_back_needs_consent_too(db: Path, beside: Healkit) -> None:
    beside.vault.add("two", "def two():\n    return 2\n")
    beside.vault.patch("two", "def two():\n    return 3\n")

    async def work() -> None:
        async with in_process(db, elicitation_callback=answering("accept", True, [])) as client:
            back = data_of(await client.call_tool("revert", {"name": "two", "to_revision": 1}))
            assert back["revision"] == 3
            assert beside.execute_tool("two") == 2

    run(work)


def test_to_go_back_is_not_even_asked_for_where_the_policy_denies_it(db: Path, beside: Healkit) -> None:
    beside.vault.add("two", "def two():\n    return 2\n")
    beside.vault.patch("two", "def two():\n    return 3\n")

    async def work() -> None:
        async with in_process(db, environment={"HEALKIT_HEAL_DENY": "two"}) as client:
            error = error_of(await client.call_tool("revert", {"name": "two", "to_revision": 1}))
            assert error["code"] == "PATCH_REQUEST_DECIDED"
            assert beside.requests.list() == []
            gone = error_of(await client.call_tool("revert", {"name": "two", "to_revision": 9}))
            assert gone["code"] == "REVISION_NOT_FOUND"

    run(work)
