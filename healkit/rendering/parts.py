"""Sentences of an execution's card, before text or HTML."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from healkit import values
from healkit.contracts.execution import CallRecord, DecisionRecord, ExecutionData, Grants, summarize
from healkit.contracts.failure import Failure, Frame
from healkit.contracts.tools import place_label
from healkit.errors import TOOL_CODES
from healkit.rendering import plain
from healkit.rendering.cleaning import HIDDEN_MARK

if TYPE_CHECKING:
    from healkit.failures.pattern import Explanation

#: Beginning of a command → its purpose.
_PURPOSES = {
    "%vault show": "fix it",
    "%vault list": "see what there is",
    "%trace_last_error": "see it again",
    "%post_mortem": "inspect it",
    "%debug": "inspect it (q leaves)",
    "%run_tool": "run it again",
    "hk.rerun": "run it again, as it was",
    "%healkit keep": "make it a tool",
}
#: Face in which the reader can type the next step.
Face = Literal["notebook", "terminal"]

#: Longest command that is offered for copying, in characters.
_COMMAND_MAX_CHARS = 1000
#: The log keeps arguments that were too long as cut text under this name; they cannot be passed again.
_CUT_ARGUMENTS = "…"
#: A call of a tool that is not there: its code cannot be shown, and calling it again is no use.
_NO_SUCH_TOOL = frozenset({"TOOL_NOT_FOUND", "TOOL_REMOVED", "PERSONA_NOT_FOUND"})


#: Beginnings of a result that is a frame or an array, as the log keeps it.
_FRAMES = ('{"type":', '{"shape":')


@dataclass(frozen=True)
class FrameGroup:
    """Neighbouring frames shown as one item: the tool's own (`repeats` times), or folded foreign ones."""

    frames: tuple[Frame, ...]
    own: bool
    repeats: int = 1

    @property
    def where(self) -> str:
        """Place such as `fibonacci v1, line 3, in fibonacci`."""
        frame = self.frames[0]
        times = f"  (× {self.repeats})" if self.repeats > 1 else ""
        return f"{place_label(frame.filename)}, line {frame.lineno}, in {frame.name}{times}"

    @property
    def folded(self) -> str:
        """Summary such as `4 library frames folded: json/decoder.py, json/__init__.py`."""
        files: dict[str, None] = {}
        for frame in self.frames:
            files["/".join(PurePosixPath(frame.filename).parts[-2:])] = None
        named = ", ".join(list(files)[:3]) + (", …" if len(files) > 3 else "")
        return f"{plain.count(len(self.frames), 'library frame')} folded: {named}"


def grouped(frames: Sequence[Frame], innermost: int | None = None) -> list[FrameGroup]:
    """Group frames, outermost first: a recursion is one item with its depth, neighbours from libraries another.

    With `innermost`, only that many frames at the failing end.
    """
    chosen = list(frames) if innermost is None else list(frames)[max(len(frames) - innermost, 0) :]
    groups: list[FrameGroup] = []
    for frame in chosen:
        last = groups[-1] if groups else None
        if last is not None and not last.own and not frame.in_tool:
            groups[-1] = FrameGroup((*last.frames, frame), own=False)
        elif last is not None and last.own and last.frames[0] == frame:
            groups[-1] = FrameGroup(last.frames, own=True, repeats=last.repeats + 1)
        else:
            groups.append(FrameGroup((frame,), own=frame.in_tool))
    return groups


def worth_listing(groups: Sequence[FrameGroup]) -> bool:
    """Return whether the frames say more than the headline, which has the tool's failing line already."""
    return len(groups) > 1 or any(not group.own for group in groups)


def headline(execution: ExecutionData) -> str:
    """Say in one sentence what happened to which tool."""
    if execution.failure is not None:
        return plain.one_line(f"{execution.label} failed: {execution.failure.summary}", 400)
    if execution.status == "RUNNING":
        return f"{execution.label} is running, started {plain.moment(execution.timestamp)}"
    return f"{execution.label} returned {result_line(execution, 200)}"


def place(execution: ExecutionData) -> str:
    """Say where it failed: `line 4 of fibonacci v1, in fibonacci`, or "" where no frame is the tool's own."""
    frame = execution.failure.tool_frame if execution.failure is not None else None
    return (
        f"line {frame.lineno} of {place_label(frame.filename)}, in {frame.name}" if frame is not None else ""
    )


def tool_line(execution: ExecutionData) -> str:
    """Find the tool's own line that failed, or an empty text."""
    frame = execution.failure.tool_frame if execution.failure is not None else None
    return frame.line.strip() if frame is not None else ""


def explanation(execution: ExecutionData) -> Explanation | None:
    """Explain the failure in plain words, all of it; None for what did not fail."""
    from healkit.failures.catalogue import explain  # its tables are read with the first failure

    return None if execution.failure is None else explain(execution.failure, place(execution))


def ending(failure: Failure) -> str:
    """Say how it ended: `TOOL_TIMEOUT: the tool was still running when its time was up`."""
    meaning = TOOL_CODES.get(failure.code)
    return f"{failure.code}: {meaning}" if meaning else failure.code


def result_text(execution: ExecutionData) -> str:
    """Write the value where it is at hand, else the log's summary of it; a frame as a table."""
    if (frame := recorded_frame(execution)) is not None:
        return _frame_text(frame)
    value, summary = execution.value, execution.result_summary
    if value is None and summary is not None:
        return summary
    return summarize(repr(value)) if values.is_tabular(value) else plain.value_text(value)


def recorded_frame(execution: ExecutionData) -> values.Preview | None:
    """Return the frame or array that the log has as the value; None where it is at hand, or another one."""
    return _frame_in(execution.result_summary or "") if execution.value is None else None


def _frame_in(summary: str) -> values.Preview | None:
    if summary.startswith(_FRAMES):
        with suppress(msgspec.MsgspecError):  # a summary that was cut
            return values.recorded_frame(msgspec.json.decode(summary))
    return None


def _frame_text(frame: values.Preview) -> str:
    shown = frame.shown
    rows = [row if isinstance(row, list) else [row] for row in shown["first"]]
    names = shown.get("columns") or [""] * max(map(len, rows), default=0)
    if not names or any(len(row) != len(names) for row in rows):
        return repr(frame)
    more = ["…"] if shown["shape"] and len(rows) < shown["shape"][0] else []
    table = plain.text_table(names, [[str(cell) for cell in row] for row in rows])
    return "\n".join([repr(frame), *table.splitlines()[0 if any(names) else 1 :], *more])


def result_line(execution: ExecutionData, limit: int) -> str:
    """Write the value in one line; of a frame or an array its class and shape."""
    value = execution.value
    if values.is_tabular(value) and value.shape:
        return f"{type(value).__name__} {shape_text(value.shape)}"
    frame = recorded_frame(execution)
    return plain.one_line(result_text(execution) if frame is None else repr(frame), limit)


def shape_text(shape: Sequence[int]) -> str:
    """Write a shape: `1,000 × 3`."""
    return " × ".join(f"{size:,}" for size in shape)


def record_line(execution: ExecutionData) -> str:
    """Say where it is on record and how it was run: `log row 4 · isolation namespaces · 34 ms · …`."""
    if execution.origin == "cell":
        return f"ran in this notebook's own kernel, not in a worker · in no log · {plain.moment(execution.timestamp)}"
    row = f"log row {execution.log_id}" if execution.log_id is not None else "not in the log yet"
    refused = execution.refused
    tier = "no worker was started" if refused else "isolation not recorded"
    tier = f"isolation {execution.isolation}" if execution.isolation else tier
    run = [f"run {execution.run_id}"] if execution.run_id else []
    took, when = plain.duration(execution.duration_ms), plain.moment(execution.timestamp)
    return " · ".join([row, *run, tier, took, when])


def grant_lines(grants: Grants) -> list[str]:
    """Write one grant a line, `read /data`; empty where nothing is granted beyond the default."""
    lines = [f"{verb} {path}" for verb in ("read", "write") for path in getattr(grants, verb)]
    limits = (
        ("memory", "memory_mb", "MiB"),
        ("processor time", "cpu_s", "s"),
        ("wall time", "timeout_s", "s"),
    )
    lines += [
        f"{name} {value:g} {unit}"
        for name, field, unit in limits
        if (value := getattr(grants, field)) is not None
    ]
    if grants.packages is not None:
        named = f"{', '.join(grants.packages)} and what they need" if grants.packages else "none"
        lines.append(f"packages {named}, besides the worker's own")
    if grants.calls is not None:
        lines.append(f"calls {', '.join(grants.calls) or 'none'}")
    if grants.python is not None:
        lines.append(f"python {grants.python}")
    if grants.own_grants:
        lines.append("own grants: keeps all of this when another tool calls it")
    return lines


def call_mark(call: CallRecord) -> str:
    """Mark a call: `✓` answered, `✗` failed, `…` no answer yet."""
    return "…" if call.success is None else "✓" if call.success else "✗"


def call_outcome(call: CallRecord) -> str:
    """Say what came back, on one line."""
    if call.success is None:
        return "no answer when the run ended"
    if not call.success:
        return plain.one_line(f"{call.error_code}: {call.error}", 160)
    frame = _frame_in(call.result_summary)
    return plain.one_line(call.result_summary if frame is None else repr(frame), 160)


def decision_line(decision: DecisionRecord) -> str:
    """Say which way the tool went: `size: large, because n > 3`."""
    because = f", because {decision.condition}" if decision.condition else ""
    return plain.one_line(f"{decision.node}: {decision.outcome}{because}", 300)


def next_steps(execution: ExecutionData, face: Face) -> list[str]:
    """List commands to copy: look at the code, run it again with the same arguments, find the record."""
    name, persona = execution.tool_name, execution.persona
    flag = "" if persona == "default" else f" --persona {persona}"
    if execution.origin == "cell":
        return ["%debug", "%trace_last_error", "%healkit keep NAME"]
    if execution.failure is not None and execution.failure.code in _NO_SUCH_TOOL:
        return ["healkit vault list" if face == "terminal" else "%vault list"]
    if face == "terminal":
        steps = [f"healkit vault show {name}{flag}", f"healkit vault patch {name} FILE{flag}"]
        if values.is_plain(execution.arguments):  # what a command line can say
            given = {key: "…" if is_hidden(value) else value for key, value in execution.arguments.items()}
            payload = shlex.quote(json.dumps(given, ensure_ascii=False))
            steps.append(f"healkit run {name}{flag}" + (f" --args {payload}" if given else ""))
    else:
        steps = [f"%vault show {name}{flag} --edit"]
        if execution.failure is not None:
            steps += [f"%trace_last_error {name}{flag}", f"%post_mortem {name}{flag}"]
        if values.is_plain(execution.arguments):
            steps.append(f"%run_tool {name}{flag}{_notebook_arguments(execution.arguments)}")
            hidden = any(map(is_hidden, execution.arguments.values()))
            if hidden and execution.log_id is not None and _CUT_ARGUMENTS not in execution.arguments:
                steps[-1:] = [f"hk.rerun({execution.log_id})", steps[-1]]
    if _CUT_ARGUMENTS in execution.arguments:
        steps.pop()
    return [step for step in steps if len(step) <= _COMMAND_MAX_CHARS]


def _notebook_arguments(arguments: dict[str, Any]) -> str:
    """Write ` n=10 name='Ada'`, or ` --args '{…}'` where a name could not stand before an equals sign.

    What is hidden is `password=…`: the log still holds it, and `hk.rerun` takes it from there.
    """
    if all(key.isidentifier() for key in arguments):
        return "".join(
            f" {key}={'…' if is_hidden(value) else repr(value)}" for key, value in arguments.items()
        )
    given = {key: "…" if is_hidden(value) else value for key, value in arguments.items()}
    return f" --args {json.dumps(given, ensure_ascii=False)}"


def is_hidden(value: Any) -> bool:
    """Return whether an argument, or a part of it, was hidden before it is shown."""
    return HIDDEN_MARK in repr(value)


def notes(execution: ExecutionData) -> Iterator[str]:
    """List what else the reader should know: healkit's warnings first, then what JSON could not hold."""
    yield from execution.warnings
    for conversion in execution.conversions:
        yield f"shown in another form than it had: {conversion}"


def purpose(command: str) -> str:
    """Say what a next step is for: `run it again`."""
    return next((what for begin, what in _PURPOSES.items() if command.startswith(begin)), "")


def has_arguments(execution: ExecutionData) -> bool:
    """Return whether the arguments are worth a line: a failed tool's always are, a cell has none."""
    return bool(execution.arguments) or (execution.failure is not None and execution.origin != "cell")
