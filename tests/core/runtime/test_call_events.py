"""Calls: live events, awaiting, provided names, default mode."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from trusted import trusted_copy

from healkit import Config, Healkit
from healkit.config import Mode
from healkit.core.runtime.events import CallEvent
from healkit.errors import ConfigError


@pytest.mark.requirement("WORK-10", "LOG-1")
@pytest.mark.parametrize("mode", ["worker", "subprocess"])
def test_each_call_begins_and_ends_live_and_its_events_are_kept(healkit: Healkit, mode: Mode) -> None:
    """C3, C7: a caller learnt of calls only when the execution had ended, and their events were then gone."""
    seen: list[CallEvent] = []
    at_call: list[list[str]] = []

    def double(n: int) -> int:
        at_call.append([event.type for event in seen])
        if n == 3:
            raise ValueError("three")
        return 2 * n

    healkit.provide(double)
    healkit.vault.add("calls", "def run():\n    mcp.host.double(n=1)\n    mcp.host.double(n=3)\n")
    execution = healkit.execute("calls", mode=mode, on_call=seen.append)
    assert at_call == [["tool_start"], ["tool_start", "tool_end", "tool_start"]]
    assert [(event.type, event.task_id, event.success, event.error_code) for event in seen] == [
        ("tool_start", "t1", None, None),
        ("tool_end", "t1", True, None),
        ("tool_start", "t2", None, None),
        ("tool_end", "t2", False, "CALL_FAILED"),
    ]
    assert {(event.trace_id, event.tool) for event in seen} == {(execution.trace_id, "host.double")}
    assert [event.time for event in seen] == sorted(event.time for event in seen)
    assert [event.duration_ms is None for event in seen] == [True, False, True, False]
    kept = healkit.last_error("calls")
    assert execution.events == kept.events == seen


@pytest.mark.requirement("WORK-10")
def test_a_call_begins_after_those_that_were_answered_have_ended(healkit: Healkit) -> None:
    """Its answer reaches the tool before its ending is on record: the next call came first on a slow machine."""
    seen: list[tuple[str, str]] = []

    def listen(event: CallEvent) -> None:
        if event.type == "tool_end":
            time.sleep(0.05)
        seen.append((event.task_id, event.type))

    healkit.provide(lambda n: n, "same")
    healkit.vault.add("calls", "def run():\n    for n in range(3):\n        mcp.host.same(n=n)\n")
    healkit.execute("calls", on_call=listen)
    assert seen == [(f"t{n}", type_) for n in (1, 2, 3) for type_ in ("tool_start", "tool_end")]


@pytest.mark.requirement("WORK-10")
def test_a_listener_that_raises_changes_nothing(healkit: Healkit) -> None:
    """C3: the tool's calls end as they would."""

    def broken(event: CallEvent) -> None:
        raise RuntimeError(event.type)

    healkit.provide(lambda text: len(text), "length")
    healkit.vault.add("calls", "def run():\n    return mcp.host.length(text='abc')\n")
    execution = healkit.execute("calls", on_call=broken)
    assert (execution.value, len(healkit.log.calls(execution.trace_id))) == (3, 1)


@pytest.mark.requirement("WORK-8")
def test_a_call_can_be_awaited_and_its_value_keeps_its_type(healkit: Healkit) -> None:
    """C3: `await mcp.host.f()` raised TypeError: a number cannot be awaited."""
    healkit.provide(lambda n: n + 1, "after")
    code = """
import asyncio

async def one(n):
    return await mcp.host.after(n=n)

async def run():
    plain = mcp.host.after(n=10)
    both = await asyncio.gather(one(1), mcp.host.after.acall(n=2))
    return [type(plain).__name__, plain, both, await mcp.host.after(await mcp.host.after(0))]
"""
    healkit.vault.add("awaits", code)
    assert healkit.execute_tool("awaits") == ["int", 11, [2, 3], 2]


@pytest.mark.requirement("WORK-9")
def test_a_name_is_provided_once_unless_it_is_replaced(healkit: Healkit) -> None:
    """C3: a second function took the first one's name without a word."""

    def price(n: int) -> int:
        return n

    def other(n: int) -> int:
        return -n

    healkit.provide(price)
    healkit.provide(price)
    with pytest.raises(ConfigError, match=r"'price' already.*replace=True"):
        healkit.provide(other, "price")
    healkit.provide(other, "price", replace=True)
    healkit.withdraw("price")
    healkit.provide(price)
    cell = "def shown(n): return n"  # as a notebook's cell that is run twice
    for _ in range(2):
        space: dict[str, object] = {"__name__": "__main__"}
        exec(cell, space)
        healkit.provide(space["shown"])  # type: ignore[arg-type]  # it is the function


@pytest.mark.requirement("WORK-12")
def test_the_default_mode_is_a_setting(tmp_path: Path, empty_database: Path) -> None:
    """C3: each call had to say `subprocess`."""
    path = trusted_copy(empty_database, tmp_path / "healkit.db")
    kernel = "import sys\ndef run():\n    return 'ipykernel' in sys.modules\n"
    with Healkit(path, config=Config(mode="subprocess", start_timeout_s=60)) as healkit:
        healkit.vault.add("kernel", kernel)
        healkit.vault.add("asks", "def run():\n    return mcp.vault.kernel()\n")
        assert healkit.execute_tool("kernel") is False
        assert healkit.execute_tool("asks") is False
        assert healkit.execute("kernel", mode="worker").value is True
    with pytest.raises(ConfigError, match="mode='thread' is not a mode"):
        Config(mode="thread")  # type: ignore[arg-type]  # what is refused


@pytest.mark.requirement("LOG-6")
def test_a_finished_row_always_has_a_summary(healkit: Healkit) -> None:
    """C5: `result_summary` was NULL for a failure."""
    healkit.vault.add("fails", "def run(n):\n    return 1 / n\n")
    healkit.vault.add("secret", "def run(n):\n    raise ValueError(n)\n", log=False)
    failed = healkit.execute("fails", arguments={"n": 0})
    assert failed.result_summary == "ZeroDivisionError: division by zero"
    healkit.execute("secret", arguments={"n": "98765"})
    with pytest.raises(Exception, match="nobody"):
        healkit.execute("nobody")
    summaries = [str(row.result_summary) for row in healkit.log.query().rows]
    assert summaries[2] == failed.result_summary
    assert summaries[0].startswith("ToolNotFound: No tool named 'nobody'")
    assert summaries[1].startswith("ValueError")
    assert "98765" not in summaries[1]


@pytest.mark.requirement("LOG-9")
def test_the_last_error_is_a_text_with_five_headings(healkit: Healkit) -> None:
    """C5: the words are those that callers of `get_last_error` look for."""
    healkit.seed(debug_tools_only=True)
    healkit.vault.add("fails", "def run(n):\n    return 1 / n\n")
    healkit.execute("fails", arguments={"n": 0})
    lines = str(healkit.execute_tool("get_last_error", arguments={"tool_name": "fails"})).splitlines()
    assert lines[0] == "Last error for tool 'fails':"
    heads = [line.partition(":")[0] for line in lines[1:4]]
    assert heads == ["Time", "Persona", "Input"]
    assert "{'n': 0}" in lines[3]
    at = lines.index("Traceback:")
    assert lines[at + 1] == "Traceback (most recent call last):"
    assert lines[-1] == "ZeroDivisionError: division by zero"
