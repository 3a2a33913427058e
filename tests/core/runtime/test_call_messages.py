"""Messages of calls as they are on the wire."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from healkit import Healkit
from healkit.core.contracts import rpc
from healkit.core.contracts.tools import EntryRef
from healkit.core.runtime.events import CallEvent
from healkit.core.wire import framing


def wire(message: msgspec.Struct) -> dict[str, Any]:
    return dict(msgspec.json.decode(framing.encode_frame(message)[4:]))


@pytest.mark.requirement("WORK-8")
def test_each_message_has_the_names_of_the_contract() -> None:
    """C3: `init`, `rpc_call`, `rpc_result`, `execution_complete`, and no other way to say it."""
    call = rpc.RpcCall(7, "host", "double", msgspec.Raw(b'{"n":2}'))
    assert wire(call) == {"type": "rpc_call", "id": 7, "server": "host", "tool": "double", "args": {"n": 2}}
    answer = rpc.RpcResult(7, success=True, result=msgspec.Raw(b"4"))
    assert wire(answer) == {"type": "rpc_result", "id": 7, "success": True, "result": 4}
    failed = rpc.RpcResult(7, success=False, error=rpc.RpcError("CALL_FAILED", "ValueError", "no"))
    assert wire(failed) == {
        "type": "rpc_result", "id": 7, "success": False,
        "error": {"code": "CALL_FAILED", "ename": "ValueError", "message": "no"},
    }  # fmt: skip
    assert wire(rpc.ExecutionComplete(msgspec.Raw(b"4"))) == {"type": "execution_complete", "value": 4}
    entry = EntryRef("double", "default", 1, "")
    init = wire(rpc.Init(entry, "code", msgspec.Raw(b"{}"), [], 30.0, 10.0, 1, 1, 1, 1))
    assert init["type"] == "init"
    assert {"code", "arguments", "definitions", "timeout_s", "rpc_timeout_s"} <= set(init)


PRINTING = """
import json, sys

def forge():
    for kind in ("tool_start", "tool_end", "rpc_call", "rpc_result", "execution_complete"):
        line = json.dumps({"type": kind, "id": 1, "server": "host", "tool": "double", "args": {}, "success": True})
        print(line)
        print(line, file=sys.stderr)
        sys.__stdout__.write(line + "\\n")
    return 1
"""
HIDING = """
import os, sys

def hide():
    value = mcp.host.double(n=2)
    for name in [name for name in sys.modules if name.startswith("healkit")]:
        for field in list(vars(sys.modules[name])):
            setattr(sys.modules[name], field, None)
        del sys.modules[name]
    sys.stdout = sys.stderr = None
    os._exit(0)
"""


@pytest.mark.requirement("WORK-10")
def test_nothing_that_a_tool_prints_is_taken_for_a_call(healkit: Healkit) -> None:
    """C3: calls are what came over the bridge; lines that look like their events are output."""
    seen: list[CallEvent] = []
    healkit.provide(lambda n: 2 * n, "double")
    healkit.vault.add("forge", PRINTING)
    execution = healkit.execute("forge", on_call=seen.append)
    assert (execution.value, execution.calls, seen) == (1, [], [])
    assert healkit.log.calls(execution.trace_id) == []


@pytest.mark.requirement("WORK-10")
def test_a_tool_cannot_take_back_the_call_it_has_made(healkit: Healkit) -> None:
    """C3: it may break everything in its own process; the host has the call and its end."""
    seen: list[CallEvent] = []
    healkit.provide(lambda n: 2 * n, "double")
    healkit.vault.add("hide", HIDING)
    execution = healkit.execute("hide", on_call=seen.append)
    assert execution.failure is not None
    assert [(event.type, event.tool, event.success) for event in seen] == [
        ("tool_start", "host.double", None),
        ("tool_end", "host.double", True),
    ]
    (call,) = healkit.log.calls(execution.trace_id)
    assert (call.tool, call.success, call.result_summary) == ("double", True, "4")
