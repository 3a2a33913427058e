"""`trace.decision(…)`: where a worker's account of its branches goes.

A decision comes as a call of a server that no provider can be, and is answered like one: when `trace.decision` returns
in the worker, the decision is in the journal, and kill -9 cannot undo it. Its texts are a claim: their types are
checked, their sizes and their number capped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec

from healkit.contracts import rpc
from healkit.contracts.records import DecisionRecord, summarize, utc_now

_NAME_MAX_CHARS, _CONDITION_MAX_CHARS = 200, 1000
_decode = msgspec.json.Decoder(rpc.Decision).decode


class Decisions:
    """The branch decisions of one execution; `record` puts each on record."""

    def __init__(self, trace_id: str, most: int, record: Callable[[DecisionRecord], None]) -> None:
        self._trace_id = trace_id
        self._most = most
        self._record = record
        self._numbers = itertools.count(1)

    def take(self, call: rpc.RpcCall, after_task: str) -> rpc.RpcResult:
        """Put one on record and say so; called on a bridge thread. Never raises."""
        try:
            said = _decode(call.args)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            refused = rpc.RpcError("CALL_REFUSED", "", f"That is no decision: {error}")
            return rpc.RpcResult(call.id, success=False, error=refused)
        number = next(self._numbers)
        if number == self._most + 1:
            said = rpc.Decision(
                "…", "[TRUNCATED]", f"more than {self._most:,} decisions; the rest is not kept"
            )
        if number <= self._most + 1:
            self._record(
                DecisionRecord(
                    trace_id=self._trace_id,
                    number=number,
                    after_task=after_task,
                    node=summarize(said.node, _NAME_MAX_CHARS),
                    outcome=summarize(said.outcome, _NAME_MAX_CHARS),
                    condition=summarize(said.condition, _CONDITION_MAX_CHARS),
                    decided_at=utc_now(),
                )
            )
        return rpc.RpcResult(call.id, success=True)
