"""Decision whose process was killed, read back from its run.

Each turn and each finished step is evidence of the run, in the order in which they happened. A turn without a step
behind it was not answered, or its step was not finished: it is asked again. A run has one writer in its life, so the
decision goes on in a run of its own, which begins with what was read here and can be resumed in its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from healkit.contracts.decisions import StepFacts, Turn
from healkit.contracts.runs import Run, TraceEvent
from healkit.errors import RunLocked, UsageInvalid
from healkit.tracing.reader import read_run
from healkit.tracing.run_folders import find_run, is_being_written

#: How a view of texts is had again: one text, or several; empty for a table.
TextForm = Literal["", "text", "texts"]


class DoneStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="step", tag_field="kind"):
    """Finished step: what later turns tell of it, the name in `hk.views` of the view it made, and the file it wrote.

    `file` is the path from the folder of the runs; `sha256` is that of its content. `stand_ins` names the view of what
    stands behind the names of ours that the step has told.
    """

    step: StepFacts
    view: str | None = None
    texts: TextForm = ""
    file: str | None = None
    sha256: str | None = None
    stand_ins: str | None = None


class Resumed(NamedTuple):
    """State of a killed decision; `turns` are those that were answered, `problem` is why the last choice was refused.

    `views` are the caller's data by name, as names in `hk.views`. `plan` is None where the chooser was none.
    """

    run_id: str
    question: str
    chooser: str
    plan: list[Any] | None
    persona: str
    tools: list[str]
    shared: list[str]
    views: dict[str, str]
    texts: dict[str, TextForm]
    turns: list[Turn]
    done: list[DoneStep]
    problem: str | None


def read_back(runs_dir: Path, execution_id: str) -> Resumed:
    """Return the state of a killed decision.

    Raises `UsageInvalid` for one that has ended or cannot go on, `RunLocked` for one that goes on, `RunNotFound`, and
    `EvidenceChanged` where a file of its run is not what it was.
    """
    folder = find_run(runs_dir, execution_id)
    if is_being_written(folder):
        raise RunLocked(f"Decision {folder.name!r} is going on, in another process or here.")
    run = read_run(folder)
    begun = next((event for event in run.events if event.metadata.get("kind") == "decision"), None)
    if begun is None or run.manifest is None:
        raise UsageInvalid(
            f"Run {folder.name!r} is not a decision that has begun.", hint="healkit trace list"
        )
    _check_end(run)
    turns, done, problem = _progress(run)
    known = begun.metadata
    question = run.manifest.execution_profile.parameters.get("question")
    plan = None if known.get("hidden") or not isinstance(known.get("plan"), list) else known["plan"]
    try:
        return msgspec.convert(
            (
                run.run_id, question, known.get("chooser"), plan, known.get("persona", "default"),
                known.get("tools"), known.get("shared"), known.get("views"), known.get("texts", {}),
                turns, done, problem,
            ),
            Resumed,
        )  # fmt: skip
    except msgspec.ValidationError:
        raise _cut(run) from None


def _check_end(run: Run) -> None:
    """Raise `UsageInvalid` for a decision that has ended, or whose last tool may have done something."""
    for event in run.events:
        if event.event_type in {"trace.finalize", "policy_halt", "run_finished"}:
            came = event.result or {}
            said = str(came.get("sentence") or came.get("reason") or "Its policy has ended it.")
            raise UsageInvalid(
                f"Decision {run.run_id!r} has ended, so it cannot be resumed: {said}",
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
            hint="Check that, and begin a new decision.",
        )


def _progress(run: Run) -> tuple[list[Turn], list[DoneStep], str | None]:
    """Return the turns that were answered, the steps that were finished, and why the last choice was refused."""
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
                found = _read(run, ref, DoneStep | str)
                if isinstance(found, DoneStep):
                    done.append(found)
                    is_open, problem = False, None
        came = event.result or {}
        if event.event_type == "trace.self_correction" and came.get("code") == "CHOICE_INVALID":
            is_open, problem = False, str(came.get("known", {}).get("why", ""))
    if is_open:
        problem = turns.pop().problem
    return turns, done, problem


def _read(run: Run, ref: Any, kind: Any) -> Any:
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
        f"Decision {run.run_id!r} cannot be resumed: its record was cut, or is of an older healkit.",
        hint="Begin a new decision; its views are in hk.views.list().",
    )


def written_files(runs_dir: Path, done: list[DoneStep]) -> list[Path]:
    """Return the files that the steps wrote, each checked; raise `UsageInvalid` and `EvidenceChanged`."""
    found = []
    for one in done:
        if one.file is None or one.sha256 is None:
            continue
        run_id, _, name = one.file.partition("/")
        try:
            read_run(find_run(runs_dir, run_id)).read_file(name, one.sha256)
        except OSError as error:
            raise UsageInvalid(
                f"The decision cannot be resumed: {one.file!r}, which it wrote, cannot be read "
                f"({error.strerror or error})."
            ) from None
        found.append(runs_dir / run_id / name)
    return found


def refused(given: Mapping[str, Any]) -> None:
    """Raise `UsageInvalid` for arguments of `decide` that a decision has already."""
    if names := [name for name, value in given.items() if value]:
        raise UsageInvalid(
            f"A decision that is resumed has its {' and '.join(names)} already.", hint="Leave that out."
        )
