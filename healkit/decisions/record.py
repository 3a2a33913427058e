"""Record of a decision: events of its run, and their audit.

One function makes an event of a step, another the audit's entry of the event, so that run folder and audit cannot
disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from healkit.contracts.audit import AuditMetadata, AuditStep
from healkit.contracts.decisions import ANALYSIS_LABEL, Intended, Turn
from healkit.contracts.execution import utc_now
from healkit.contracts.runs import EventType, TraceEvent, error_object
from healkit.decisions.resuming import DoneStep
from healkit.errors import catalogue
from healkit.plain_text import count
from healkit.runtime.runs import OpenRun

StepType = Literal[
    "gather_info", "execute_data_op", "execute_output", "finalize", "self_correction", "choice_refused"
]
_EVENTS: dict[StepType, EventType] = {
    "gather_info": "trace.gather_info",
    "execute_data_op": "trace.execute_data_op",
    "execute_output": "trace.execute_output",
    "finalize": "trace.finalize",
    "self_correction": "trace.self_correction",
    "choice_refused": "trace.self_correction",  # the contract's event types are closed
}
_PREFIX = "trace."


class StepResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts of a step for its record; `sentence` is made by code.

    `rows`, `columns` and `unique_values` are those of the resulting frame. `actual` is the state reached.
    `known` is what else the run keeps. `applied` is set for a correction. `view_files` and `run_files` are those of
    `AuditMetadata`.
    """

    tool: str = ""
    params: dict[str, Any] = {}
    sentence: str = ""
    success: bool = True
    code: str | None = None
    column: str | None = None
    duration_ms: float = 0.0
    rows: int | None = None
    columns: int | None = None
    unique_values: dict[str, int] | None = None
    intended: Intended | None = None
    actual: dict[str, Any] | None = None
    applied: bool | None = None
    known: dict[str, Any] = {}
    view_files: dict[str, str] = {}
    run_files: dict[str, str] = {}


class DecideRecord:
    """Writes one decision into its run."""

    def __init__(self, run: OpenRun) -> None:
        self.run = run

    def begun(
        self,
        question: str,
        chooser: str,
        views: Mapping[str, str],
        tools: Sequence[str],
        shared: Sequence[str],
        view_files: Mapping[str, str],
        more: Mapping[str, Any],
    ) -> None:
        """Record what is asked, of whom, over which views, and which columns' values it is told.

        more: what else it takes to resume the decision.
        """
        known = {"question": question, "chooser": chooser, "views": dict(views), "tools": list(tools)}
        self.run.append(
            "observation_captured",
            metadata={
                "kind": "decision",
                "phase": "before",
                **known,
                "shared": list(shared),
                "view_files": dict(view_files),
                **more,
            },
        )

    def sent(self, turn: Turn) -> None:
        """Keep what a chooser is told, before it is told."""
        self.run.keep([("turn", msgspec.to_builtins(turn))])

    def finished(self, done: DoneStep) -> None:
        """Keep a step that needs not be taken again, where the decision is resumed."""
        self.run.keep([("report", msgspec.to_builtins(done))])

    def analysed(
        self, analyst: str, turn_number: int, text: str, filled: int, struck: int, problem: str
    ) -> None:
        """Record that an analysis was asked for, and keep its text with its label."""
        if text:
            self.run.keep([("report", f"{ANALYSIS_LABEL}\n\n{text}")])
        known = {"kind": "analysis", "phase": "after", "analyst": analyst, "turn": turn_number}
        counts = {"filled": filled, "struck": struck, "problem": problem}
        self.run.append("observation_captured", metadata={**known, **counts})

    def step(self, kind: StepType, result: StepResult, *, in_run: bool = True) -> None:
        """Record a step; in_run: whether it was an execution, which is a step of the run with an id."""
        fields = msgspec.to_builtins(result)
        fields = {"outcome": "done" if result.success else "failed", **fields}
        fields.pop("success", None)
        error = None
        if result.code is not None:
            message = catalogue().get(result.code, result.code)
            details = {name: fields[name] for name in ("tool", "column") if fields.get(name) is not None}
            error = error_object(result.code, "action", message, utc_now(), details=details)
        step_id = self.run.last_step if in_run else None
        self.run.append(_EVENTS[kind], step_id=step_id, result=fields, error=error)


def decide_steps(*, is_clean: bool) -> Callable[[TraceEvent], AuditStep | None]:
    """Return what makes the audit's entries of a decision; is_clean: whether the events are sanitised."""

    def step_of(event: TraceEvent) -> AuditStep | None:
        tell = _chosen if event.event_type.startswith(_PREFIX) else _TOLD.get(event.event_type)
        made = None if tell is None else tell(event)
        if made is None:
            return None
        choice_type, tool, params, metadata, description = made
        return AuditStep(
            execution_id=event.run_id,
            execution_type="decide",
            choice_type=choice_type,
            tool_name=tool,
            tool_params=params,
            metadata=metadata,
            description=description,
            run_id=event.run_id,
            event_seq=event.seq,
            timestamp=event.ts_utc,
            is_clean=is_clean,
        )

    return step_of


#: Choice, tool, parameters, metadata and description of an entry.
_Told = tuple[str, str, dict[str, Any], AuditMetadata, str]


def _chosen(event: TraceEvent) -> _Told:
    came = event.result or {}
    code, column = came.get("code"), came.get("column")
    error = None if code is None else f"{code} in column {column!r}" if column else str(code)
    unique, intended = came.get("unique_values"), came.get("intended")
    metadata = AuditMetadata(
        row_count=came.get("rows"),
        column_count=came.get("columns"),
        unique_values=unique if isinstance(unique, dict) else None,
        error_message=error,
        duration_ms=came.get("duration_ms", 0.0),
        success=came.get("outcome") == "done",
        intended_state=intended if isinstance(intended, dict) else None,
        actual_state=came["actual"] if isinstance(came.get("actual"), dict) else None,
        correction_applied=came.get("applied"),
        view_files=came.get("view_files"),
        run_files=came.get("run_files"),
    )
    params = came.get("params")
    choice = "choice_refused" if code == "CHOICE_INVALID" else event.event_type.removeprefix(_PREFIX)
    return (
        choice,
        str(came.get("tool", "")),
        params if isinstance(params, dict) else {},
        metadata,
        str(came.get("sentence", "")),
    )


def _observed(event: TraceEvent) -> _Told | None:
    known = event.metadata
    if known.get("kind") == "analysis":
        return _analysed(known)
    if known.get("kind") != "decision":
        return None
    shared = known.get("shared") or []
    told = f" The values of {', '.join(map(str, shared))} are shared with the chooser." if shared else ""
    counts = (
        f"{count(len(known.get('views') or ()), 'view')} and {count(len(known.get('tools') or ()), 'tool')}"
    )
    params = {name: known.get(name) for name in ("question", "views", "tools", "shared")}
    said = f"The decision begins with {counts}; chooser: {known.get('chooser')}.{told}"
    if resumed := known.get("resumes"):
        params["resumes"] = resumed
        said += f" It continues decision {resumed}."
    return "decision_started", "", params, AuditMetadata(view_files=known.get("view_files")), said


def _analysed(known: Mapping[str, Any]) -> _Told:
    params = {name: known.get(name) for name in ("analyst", "turn")}
    problem, filled, struck = (
        known.get("problem"),
        int(known.get("filled") or 0),
        int(known.get("struck") or 0),
    )
    counts = f"{count(filled, 'number')} filled in by code, {count(struck, 'sentence')} struck out"
    said = str(problem) if problem else f"An analysis was written by {known.get('analyst')}: {counts}."
    metadata = AuditMetadata(
        success=not problem, actual_state={name: known.get(name) for name in ("filled", "struck")}
    )
    return "analysis_written", "", params, metadata, said


def _halted(event: TraceEvent) -> _Told:
    policy = dict(event.metadata.get("policy") or {})
    code = "POLICY_HALT"
    metadata = AuditMetadata(success=False, error_message=code, actual_state=policy)
    return "policy_halt", "", {}, metadata, f"The policy ended the decision: {policy.get('reason')}."


def _finished(event: TraceEvent) -> _Told:
    came = event.result or {}
    outcome, _, _ = str(came.get("reason") or came.get("outcome") or "").partition(":")
    state: dict[str, Any] = {name: came[name] for name in ("outcome", "steps", "failures") if name in came}
    metadata = AuditMetadata(success=outcome == "finalized", actual_state=state)
    return "run_finished", "", {}, metadata, f"The decision ended: {outcome}."


_TOLD: dict[str, Callable[[TraceEvent], _Told | None]] = {
    "observation_captured": _observed,
    "policy_halt": _halted,
    "run_finished": _finished,
}
