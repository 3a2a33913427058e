"""What an execution is while it is under way: ready to run, then run.

Plain data and what is read off it; the executor does the work in between.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from healkit.config import MIB, Config, ExplainLevel
from healkit.contracts.entries import VaultEntry
from healkit.contracts.failure import Failure
from healkit.contracts.records import CallRecord, Finished, Started
from healkit.contracts.rpc import Init
from healkit.contracts.tools import ToolDefinition
from healkit.runtime.contents import without_contents
from healkit.runtime.execution import Execution
from healkit.runtime.outcomes import failure_of
from healkit.tracing.collector import Collector
from healkit.workers.worker import Outcome


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A call that nothing speaks against, with its RUNNING row committed; `noted` is its beginning as it is there."""

    begun: Started
    noted: Started
    entry: VaultEntry
    arguments: bytes
    conversions: list[str]
    timeout_s: float
    log_id: int | None
    collector: Collector

    def noted_end(self, finished: Finished) -> Finished:
        """The ending as it goes on record."""
        return finished if self.entry.logged else without_contents(finished)


_NOT_DRAINED = "Some of what the tool displayed may be missing: its worker did not send it in time."


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of the work itself, before it is recorded."""

    value: Any = None
    encoded: str = "null"
    failure: Failure | None = None
    outputs: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    calls: list[CallRecord] = dataclasses.field(default_factory=list)
    conversions: list[str] = dataclasses.field(default_factory=list)
    last_output: str = ""
    problem: str = ""


def init_for(ready: Prepared, definitions: list[ToolDefinition], config: Config) -> Init:
    """The work as the worker gets it: the tool's own limits where it has any, else the configured ones."""
    entry = ready.entry
    return Init(
        entry=entry.ref,
        code=entry.code,
        arguments=msgspec.Raw(ready.arguments),
        definitions=definitions,
        timeout_s=ready.timeout_s,
        rpc_timeout_s=config.rpc_timeout_s,
        memory_bytes=(entry.grants.memory_mb or config.memory_mb) * MIB,
        cpu_s=entry.grants.cpu_s or config.cpu_s,
        result_max_bytes=config.result_max_bytes,
        output_max_bytes=config.output_max_bytes,
    )


def result_of(outcome: Outcome, init: Init, calls: list[CallRecord]) -> Result:
    """What a worker's run came to, as far as the host believes it."""
    failure = failure_of(outcome, init)
    encoded = bytes(outcome.complete.value).decode() if outcome.complete and failure is None else "null"
    return Result(
        value=msgspec.json.decode(encoded),
        encoded=encoded,
        failure=failure,
        outputs=outcome.outputs,
        calls=calls,
        conversions=outcome.complete.conversions if outcome.complete else [],
        last_output=outcome.last_output if failure is not None else "",
        problem="" if outcome.drained else _NOT_DRAINED,
    )


def execution_from(
    ready: Prepared,
    finished: Finished,
    result: Result,
    log_id: int | None,
    *,
    warnings: list[str],
    explained: ExplainLevel,
) -> Execution:
    """The outcome as the caller gets it."""
    begun = ready.begun
    given = [f"argument {conversion}" for conversion in ready.conversions]
    return Execution(
        tool_name=begun.tool_name,
        persona=begun.persona,
        arguments=msgspec.json.decode(begun.arguments),
        status=finished.status,
        trace_id=begun.trace_id,
        timestamp=begun.timestamp,
        log_id=log_id,
        value=result.value,
        failure=result.failure,
        result_summary=finished.result_summary,
        outputs=result.outputs,
        calls=result.calls,
        decisions=ready.collector.decisions,
        duration_ms=finished.duration_ms,
        isolation=begun.isolation,
        revision=begun.revision,
        origin=begun.origin,
        last_output=result.last_output,
        conversions=[*given, *(f"result {conversion}" for conversion in result.conversions)],
        warnings=warnings,
        grants=begun.grants,
        run_id=begun.run_id,
        code=ready.entry.code,
        explained=explained,
    )
