"""Record of a decision in its run, and the decision read back.

One function makes an event from a step, another the audit's entry from the event. So run folder and audit cannot
disagree.

A killed decision is read back from its run. Each turn and each finished step is evidence, in order. A turn without a
step after it was not answered, or its step was not finished; it is asked again. A run has only one writer, so the
decision continues in a new run. The new run begins with the data that was read here and can be resumed itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from healkit.core.contracts.execution import utc_now
from healkit.errors import RunLocked, UsageInvalid, catalogue
from healkit.parts.decide.choosers import Plan
from healkit.parts.decide.records import ANALYSIS_LABEL, DoneStep, Intended, Resumed, TextForm, Turn
from healkit.parts.runs.audit_records import AuditMetadata
from healkit.parts.runs.contract import EventType, EvidenceRef, Run, TraceEvent, error_object
from healkit.parts.runs.reader import read_run
from healkit.parts.runs.run_audit import Told
from healkit.parts.runs.run_folders import find_run, is_being_written
from healkit.parts.runs.runs import OpenRun
from healkit.plain_text import count

if TYPE_CHECKING:
    from healkit.parts.decide.analysis import Analysis  # made of views, which come after this
    from healkit.parts.decide.asked import Asked, HeldView

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

    `rows`, `columns` and `unique_values` are those of the resulting frame. `actual` is the reached state. `known` is
    other data that the run keeps. `applied` is set for a correction. `view_files` and `run_files` are those of
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

    def begun(self, asked: Asked, views: Mapping[str, HeldView]) -> None:
        """Record the question, the chooser, the views, the shared columns, and how to resume the decision."""
        chooser = asked.chooser
        metadata = {
            "kind": "decision",
            "phase": "before",
            "question": asked.question,
            "chooser": chooser.name,
            "views": {name: view.kept_as for name, view in views.items()},
            "tools": list(asked.tools),
            "shared": list(asked.share),
            "view_files": {view.kept_as: view.file_name for view in views.values()},
            "persona": asked.persona,
            "plan": chooser.steps if isinstance(chooser, Plan) else None,
            "texts": {name: form for name, view in views.items() if (form := text_form(view))},
        }
        if asked.resumed is not None:
            metadata["resumes"] = asked.resumed.run_id
        self.run.append("observation_captured", metadata=metadata)

    def sent(self, turn: Turn) -> None:
        """Keep the data for a chooser, before the chooser gets it."""
        self.run.keep([("turn", msgspec.to_builtins(turn))])

    def finished(self, done: DoneStep) -> None:
        """Keep a step that a resumed decision need not take again."""
        self.run.keep([("report", msgspec.to_builtins(done))])

    def analysed(self, analyst: str, turn: Turn, analysis: Analysis, problem: str) -> None:
        """Record that an analysis was requested, and keep its text with its label."""
        if analysis.text:
            self.run.keep([("report", f"{ANALYSIS_LABEL}\n\n{analysis.text}")])
        details = {"kind": "analysis", "phase": "after", "analyst": analyst, "turn": turn.number}
        counts = {"filled": analysis.filled, "struck": len(analysis.struck), "problem": problem}
        self.run.append("observation_captured", metadata={**details, **counts})

    def step(self, kind: StepType, result: StepResult, *, in_run: bool = True) -> None:
        """Record a step.

        in_run: Whether it was an execution, which is a step of the run with an id.
        """
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


# The audit's entry of each event.


def decide_steps(event: TraceEvent) -> Told | None:
    """Describe a decision's event for the audit."""
    make = _step_entry if event.event_type.startswith(_PREFIX) else _ENTRIES.get(event.event_type)
    return None if make is None else make(event)


def _step_entry(event: TraceEvent) -> Told:
    result = event.result or {}
    code, column = result.get("code"), result.get("column")
    error = None if code is None else f"{code} in column {column!r}" if column else str(code)
    metadata = AuditMetadata(
        row_count=result.get("rows"),
        column_count=result.get("columns"),
        unique_values=_mapping(result, "unique_values"),
        error_message=error,
        duration_ms=result.get("duration_ms", 0.0),
        success=result.get("outcome") == "done",
        intended_state=_mapping(result, "intended"),
        actual_state=_mapping(result, "actual"),
        correction_applied=result.get("applied"),
        view_files=result.get("view_files"),
        run_files=result.get("run_files"),
    )
    choice = "choice_refused" if code == "CHOICE_INVALID" else event.event_type.removeprefix(_PREFIX)
    params, sentence = _mapping(result, "params") or {}, str(result.get("sentence", ""))
    return Told(choice, str(result.get("tool", "")), params, metadata, sentence)


def _mapping(result: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return a field of a result that is a mapping; None if it was cut to a text."""
    value = result.get(name)
    return value if isinstance(value, dict) else None


def _observation_entry(event: TraceEvent) -> Told | None:
    metadata = event.metadata
    if metadata.get("kind") == "analysis":
        return _analysis_entry(metadata)
    if metadata.get("kind") != "decision":
        return None
    shared = metadata.get("shared") or []
    sharing = f" The values of {', '.join(map(str, shared))} are shared with the chooser." if shared else ""
    counts = f"{count(len(metadata.get('views') or ()), 'view')} and {count(len(metadata.get('tools') or ()), 'tool')}"
    params = {name: metadata.get(name) for name in ("question", "views", "tools", "shared")}
    sentence = f"The decision begins with {counts}; chooser: {metadata.get('chooser')}.{sharing}"
    if resumed := metadata.get("resumes"):
        params["resumes"] = resumed
        sentence += f" It continues decision {resumed}."
    about = AuditMetadata(view_files=metadata.get("view_files"))
    return Told("decision_started", "", params, about, sentence)


def _analysis_entry(metadata: Mapping[str, Any]) -> Told:
    problem, counts = metadata.get("problem"), {name: metadata.get(name) for name in ("filled", "struck")}
    filled = f"{count(int(counts['filled'] or 0), 'number')} filled in by code"
    struck = f"{count(int(counts['struck'] or 0), 'sentence')} struck out"
    sentence = f"An analysis was written by {metadata.get('analyst')}: {filled}, {struck}."
    params = {name: metadata.get(name) for name in ("analyst", "turn")}
    about = AuditMetadata(success=not problem, actual_state=counts)
    return Told("analysis_written", "", params, about, str(problem) if problem else sentence)


def _halt_entry(event: TraceEvent) -> Told:
    policy = dict(event.metadata.get("policy") or {})
    metadata = AuditMetadata(success=False, error_message="POLICY_HALT", actual_state=policy)
    return Told("policy_halt", "", {}, metadata, f"The policy ended the decision: {policy.get('reason')}.")


def _end_entry(event: TraceEvent) -> Told:
    result = event.result or {}
    outcome, _, _ = str(result.get("reason") or result.get("outcome") or "").partition(":")
    state: dict[str, Any] = {
        name: result[name] for name in ("outcome", "steps", "failures") if name in result
    }
    metadata = AuditMetadata(success=outcome == "finalized", actual_state=state)
    return Told("run_finished", "", {}, metadata, f"The decision ended: {outcome}.")


_ENTRIES: dict[str, Callable[[TraceEvent], Told | None]] = {
    "observation_captured": _observation_entry,
    "policy_halt": _halt_entry,
    "run_finished": _end_entry,
}


# Reading back.


def text_form(view: HeldView) -> TextForm:
    """Return how the record of a step distinguishes a view of texts from a table."""
    return "" if view.texts is None else "text" if isinstance(view.value, str) else "texts"


def read_back(runs_dir: Path, execution_id: str) -> Resumed:
    """Return the state of a killed decision.

    Raises `UsageInvalid` if it has ended or cannot continue, `RunLocked` if it is still running, `RunNotFound`, and
    `EvidenceChanged` if a file of its run was changed.
    """
    folder = find_run(runs_dir, execution_id)
    if is_being_written(folder):
        raise RunLocked(f"Decision {folder.name!r} is still running, in this process or another one.")
    run = read_run(folder)
    begun = next((event for event in run.events if event.metadata.get("kind") == "decision"), None)
    if begun is None or run.manifest is None:
        raise UsageInvalid(
            f"Run {folder.name!r} is not a decision that has started.", hint="healkit trace list"
        )
    _check_end(run)
    turns, done, problem = _progress(run)
    metadata = begun.metadata
    question = run.manifest.execution_profile.parameters.get("question")
    plan = None if metadata.get("hidden") or not isinstance(metadata.get("plan"), list) else metadata["plan"]
    try:
        return msgspec.convert(
            (
                run.run_id, question, metadata.get("chooser"), plan, metadata.get("persona", "default"),
                metadata.get("tools"), metadata.get("shared"), metadata.get("views"), metadata.get("texts", {}),
                turns, done, problem,
            ),
            Resumed,
        )  # fmt: skip
    except msgspec.ValidationError:
        raise _cut(run) from None


def _check_end(run: Run) -> None:
    """Raise `UsageInvalid` for a decision that has ended, or whose last tool may have had effects."""
    for event in run.events:
        if event.event_type in {"trace.finalize", "policy_halt", "run_finished"}:
            result = event.result or {}
            reason = str(result.get("sentence") or result.get("reason") or "Its policy ended it.")
            raise UsageInvalid(
                f"Decision {run.run_id!r} has ended, so it cannot be resumed: {reason}",
                hint=f"healkit audit show {run.run_id}",
            )
    critical: TraceEvent | None = None
    for event in run.events:
        spec = event.action_spec
        if spec is not None and spec.kind == "run":
            critical = event if spec.criticality == "critical" else None
        elif any(ref.kind == "report" for ref in event.evidence_refs):
            critical = None
    started = {event.step_id for event in run.events if event.event_type == "action_started"}
    if critical is not None and critical.step_id in started and critical.action_spec is not None:
        raise UsageInvalid(
            f"Decision {run.run_id!r} was killed while {critical.action_spec.tool_name!r} ran, which has side effects: "
            "whether they happened is not known.",
            hint="Check that, and start a new decision.",
        )


def _progress(run: Run) -> tuple[list[Turn], list[DoneStep], str | None]:
    """Return the answered turns, the finished steps, and why the last choice was refused."""
    turns: list[Turn] = []
    done: list[DoneStep] = []
    problem: str | None = None
    is_open = False
    for event in run.events:
        for ref in event.evidence_refs:
            if ref.kind == "turn":
                turns.append(_read(run, ref, Turn))
                is_open = True
            elif ref.kind == "report":
                report = _read(run, ref, DoneStep | str)
                if isinstance(report, DoneStep):
                    done.append(report)
                    is_open, problem = False, None
        result = event.result or {}
        if event.event_type == "trace.self_correction" and result.get("code") == "CHOICE_INVALID":
            is_open, problem = False, str(result.get("known", {}).get("why", ""))
    if is_open:
        problem = turns.pop().problem
    return turns, done, problem


def _read(run: Run, ref: EvidenceRef, kind: Any) -> Any:
    try:
        return msgspec.json.decode(run.read_evidence(ref), type=kind)
    except OSError as error:
        raise UsageInvalid(
            f"Decision {run.run_id!r} cannot be resumed: {ref.uri!r} of its run cannot be read "
            f"({error.strerror or error})."
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _cut(run) from None


def _cut(run: Run) -> UsageInvalid:
    return UsageInvalid(
        f"Decision {run.run_id!r} cannot be resumed: its record was cut, or an older healkit wrote it.",
        hint="Start a new decision; its views are in hk.views.list().",
    )


def written_files(runs_dir: Path, done: list[DoneStep]) -> list[Path]:
    """Return the files of the steps, each checked; raise `UsageInvalid` and `EvidenceChanged`."""
    files = []
    for step in done:
        if step.file is None or step.sha256 is None:
            continue
        run_id, _, name = step.file.partition("/")
        try:
            read_run(find_run(runs_dir, run_id)).read_file(name, step.sha256)
        except OSError as error:
            raise UsageInvalid(
                f"The decision cannot be resumed: {step.file!r}, which it wrote, cannot be read "
                f"({error.strerror or error})."
            ) from None
        files.append(runs_dir / run_id / name)
    return files
