"""Card of an execution.

The message comes first: a reader looks for the message, then for the failed line of their own code, and last for the
stack. Frames of libraries are folded and counted, since the mistake is rarely there.

An `Execution` that was read from the log has no live variables. While the failed frame exists, a notebook's card also
shows its variables (`Aside`), the number of hidden ones, and how often this failure has happened.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from healkit import hooks
from healkit.config import ExplainLevel
from healkit.core.contracts.execution import RUN_CODE, CallRecord, DecisionRecord, ExecutionData, Grants
from healkit.core.contracts.failure import Failure, Frame, KeptFrame, Local
from healkit.core.contracts.tools import place_label
from healkit.core.crossing import values
from healkit.core.rendering import cleaning, plain
from healkit.core.rendering.cleaning import HIDDEN_MARK
from healkit.core.rendering.document import (
    Card,
    Code,
    Fact,
    Facts,
    Fold,
    Line,
    Only,
    Part,
    Section,
    Span,
    Table,
    Tone,
)
from healkit.core.wire.record_text import shortened
from healkit.errors import TOOL_CODES
from healkit.plain_text import untick

if TYPE_CHECKING:
    from healkit.core.contracts.explanation import Explanation
#: Interface where the reader can type the next step.
Face = Literal["notebook", "terminal"]
Frames = Sequence[tuple[KeptFrame, Sequence[Local]]]


@dataclasses.dataclass(frozen=True)
class Aside:
    """Further facts from the moment of a failure.

    locals: Variables of the innermost frame of the tool's code, already cleaned.
    hidden: Number of values that were removed from them.
    history: How often the failure happened, as one sentence.
    tip: Shown once, at the end.
    explained: Highest level of explanation.
    why, fix: Better texts than those of the failure catalogue, which they replace.
    defined: Names of the notebook, which need no import.
    made: The line above that made the value, as a sentence.
    """

    locals: Sequence[Local] = ()
    hidden: int = 0
    history: str = ""
    tip: str = ""
    explained: ExplainLevel = "fix"
    why: str = ""
    fix: str = ""
    defined: Collection[str] = ()
    made: str = ""


NO_ASIDE = Aside()


def card(
    execution: ExecutionData,
    *,
    frames: int | None = None,
    face: Face = "notebook",
    note: str = "",
    aside: Aside = NO_ASIDE,
) -> Card:
    """Build the card of an execution that failed, succeeded or is still running.

    frames: Number of innermost frames to show; None means all, with those of libraries folded.
    face: Where the user can type the commands under "next".
    note: One more line for the reader.
    aside: Facts from the moment of the failure.
    """
    execution = cleaning.execution(execution)
    if execution.failure is not None:
        return _failure_card(execution, execution.failure, frames, face, note, aside)
    parts: list[Part] = [*_notes(execution, note), *_details(execution)]
    if execution.status == "RUNNING":
        return Card(headline(execution), "…", "warn", parts=parts)
    value = Only("html", Code(result_text(execution), 240))
    title = f"{execution.label} returned a value"
    return Card(title, "✓", "good", parts=[value, *parts], line=f"✓ {headline(execution)}")


def success(execution: ExecutionData) -> Card:
    """Build one line for a success whose value is shown elsewhere, with its calls folded below."""
    execution = getattr(execution, "shown", None) or cleaning.execution_texts(execution)
    sign = Span(f"✓ {execution.label} ", "strong", "good")
    record = record_line(execution)
    line = Line((sign, Span(record, "quiet", plain=f"· {record}")), "wrapped", indent=0)
    title = f"{plain.count(len(execution.calls), 'call')} made"
    calls = [Fold(title, (Facts(list(_steps(execution))),))] if execution.calls else []
    return Card(tone="good", parts=(Section((line, *calls)), *_notes(execution, "")))


def _failure_card(
    execution: ExecutionData, failure: Failure, frames: int | None, face: Face, note: str, aside: Aside
) -> Card:
    advice = _told(execution, aside)
    if advice is not None:
        advice = _typed(advice, execution, face)
    why, rest = (
        _explained(failure, advice),
        [*locals_of(aside), _frames(failure, frames), *_details(execution)],
    )
    steps = next_steps(execution, face)
    if aside.tip:
        rest.append(Line(Span(f"Tip: {aside.tip}", "quiet", plain=aside.tip), "tip", "tip"))
    return Card(
        _title(failure, advice),
        "✗",
        "bad",
        below=list(_below(execution, failure, aside, advice)),
        parts=[
            *([Line(failure.hint, "note", "note")] if failure.hint else []),
            *_notes(execution, note),
            *_folded(why, advice),
            Fold("Values, frames and record" if aside.locals else "Frames and record", rest, "body"),
            *([_next(steps)] if steps else []),
        ],
        line=f"✗ {headline(execution)}",
    )


def _typed(advice: Explanation, execution: ExecutionData, face: Face) -> Explanation:
    """Return it with each `%vault grant NAME` as it can be typed there, with the name and persona of the tool."""
    name = "NAME" if execution.tool_name == RUN_CODE else f"{execution.tool_name}{_flag(execution)}"
    command = f"{'healkit ' if face == 'terminal' else '%'}vault grant {name}"
    return dataclasses.replace(
        advice,
        fix=advice.fix.replace("%vault grant NAME", command),
        linked=tuple(_typed(linked, execution, face) for linked in advice.linked),
    )


def _flag(execution: ExecutionData) -> str:
    """Return the flag of the tool's persona, empty for the default."""
    return "" if execution.persona == "default" else f" --persona {execution.persona}"


_WHY_MAX_CHARS = 120
#: Names and values in a sentence.
_VALUES = re.compile(r"`|\d")


def _folded(why: list[Part], advice: Explanation | None) -> list[Part]:
    """Fold the parts of an explanation, under their names; parts for terminals only are not folded."""
    if advice is None or all(isinstance(part, Only) and part.form == "text" for part in why):
        return why
    named = [
        *(["why"] if advice.why and not _is_short(advice.why) else []),
        *(["hint"] if advice.hint else []),
        *(["suggested fix"] if advice.fix or advice.code else []),
    ]
    title = ", ".join(named) or "more"
    return [Fold(f"{title[:1].upper()}{title[1:]}", why, "body")]


def title_of(execution: ExecutionData, explained: ExplainLevel) -> str:
    """Describe the failure in one sentence that includes the values; empty if the execution did not fail."""
    failure = execution.failure
    return "" if failure is None else _title(failure, _told(execution, Aside(explained=explained)))


def _title(failure: Failure, advice: Explanation | None) -> str:
    what = _with_values(failure, advice)
    return plain.one_line(f"{failure.ename}: {untick(what)}" if what else failure.summary, 400)


def _is_short(why: str) -> bool:
    """Return whether a reason that names values is short enough for the head of the card."""
    return len(why) <= _WHY_MAX_CHARS and "`" in why


def _with_values(failure: Failure, advice: Explanation | None) -> str:
    """Return what happened, if it names values and the exception's own message does not."""
    what = "" if advice is None else advice.what
    return what if _VALUES.search(what) and what.rstrip(".") not in failure.summary else ""


def _below(
    execution: ExecutionData, failure: Failure, aside: Aside, advice: Explanation | None
) -> Iterator[Part]:
    """Yield lines on where it failed, the failed code, how it ended, and how often it has happened."""
    where, own_line = place(execution), tool_line(execution)
    label = Span(execution.label, "label", "bad", plain="at" if where else "")
    line: list[str | Span] = [label, " ", where]
    html_line = [where, "  ", Span(own_line, "mark")] if own_line else line
    more = [] if failure.code == "TOOL_EXCEPTION" else [ending(failure)]
    more += [aside.history] if aside.history else []
    quiet = [Span("  " + " · ".join(more), "quiet")] if more else []
    yield Only("html", Line((*html_line, *quiet)))
    if advice is not None and _is_short(advice.why):
        yield Only("html", Line(Span(advice.why, "ticked"), "quiet"))
    # A terminal cannot fold, and the whole text may not fit into one line.
    if where:
        yield Only("text", Line(tuple(line)))
    if own_line:
        yield Only("text", Line(Span(own_line, "mark"), indent=6))
    if failure.code != "TOOL_EXCEPTION":
        yield Only("text", Line(ending(failure), "quiet"))
    if aside.history:
        yield Only("text", Line(aside.history, "quiet", "seen"))
    if advice is not None and advice.what and advice.what.rstrip(".") not in failure.summary:
        yield Only("text", Line(Span(advice.what, "ticked"), label="what"))


def _told(execution: ExecutionData, aside: Aside) -> Explanation | None:
    """Return the explanation, with better texts if available, up to the allowed level."""
    advice = explanation(execution, aside.defined)
    if advice is None:
        return None
    if aside.why:
        what = advice.what.partition(" Did you mean")[0]
        advice = dataclasses.replace(advice, what=what, why=aside.why, hint="", fix=aside.fix, code="")
    elif aside.made and "`None`" in aside.made:  # another reason for `None` is not the cause
        advice = dataclasses.replace(advice, why=aside.made, hint="", fix="", code="")
    elif aside.made:
        advice = dataclasses.replace(advice, why=f"{advice.why} {aside.made}".strip())
    return advice.at(execution.explained).at(aside.explained)


def _explained(failure: Failure, advice: Explanation | None) -> list[Part]:
    """Show why as text, the hint set apart, and the fix, which a page folds so that the reader can try first."""
    if advice is None:
        return []
    lines: list[Part] = []
    if advice.what and not _with_values(failure, advice) and advice.what.rstrip(".") not in failure.summary:
        lines.append(Only("html", Line(Span(advice.what, "ticked"))))
    if advice.why:
        why = Line(Span(advice.why, "ticked"), label="why")
        lines.append(Only("text", why) if _is_short(advice.why) else why)
    if advice.hint and advice.hint != failure.hint:  # the failure's own hint is shown anyway
        lines.append(Line((Span("Hint: ", "strong", plain=""), Span(advice.hint, "ticked")), "hint", "hint"))
    if advice.fix:
        lines.append(Line((Span("Fix: ", "strong", plain=""), Span(advice.fix, "ticked")), label="fix"))
    if advice.code:
        terminal = Facts([("code" if advice.fix else "fix", advice.code)])
        lines += [Only("html", Code(advice.code)), Only("text", terminal)]
    for linked in advice.linked:
        title = Span(f"{linked.title}: ", "strong", plain="")
        lines.append(Line((title, Span(linked.in_one_line, "ticked")), label=linked.title.lower()))
    return lines


def _frames(failure: Failure, innermost: int | None) -> Section:
    """Show the stack with adjacent library frames folded, and the traceback as Python prints it."""
    groups = grouped(failure.frames, innermost)
    items: list[Part] = []
    for group in groups if worth_listing(groups) else ():
        if group.own:
            line = group.frames[0].line.strip()
            where = Span(f"{group.where}  ", "quiet", plain=group.where)
            items.append(Line((where, Span(line, "code", plain=f"\n    {line}")), "frame", indent=4))
        else:
            stack = "\n".join(
                f"{place_label(f.filename)}, line {f.lineno}, in {f.name}\n    {f.line.strip()}"
                for f in group.frames
            )
            folded = Span(group.folded, plain=f"… {group.folded}")
            items.append(Fold(folded, (Code(stack, 240),), "summary", indent=4))
    if items:
        items.insert(0, Only("text", Line("frames, the innermost last")))
    if trace := failure.traceback.strip():
        # A terminal shows it only if there are no frames to list; a single line would repeat the message.
        alone = not failure.frames and "\n" in trace
        full = (Code(failure.traceback, 400, indent=4),)
        items.append(Fold("Full traceback, as Python prints it", full, "body" if alone else "neither"))
    return Section(items)


def _details(execution: ExecutionData) -> list[Part]:
    """Show its input, its output, its grants, its calls, and its place in the log."""
    rows: list[tuple[str, Fact]] = []
    if has_arguments(execution):
        arguments_text = plain.value_text(execution.arguments)
        rows.append(("arguments", Span(arguments_text, "code", plain=plain.one_line(arguments_text, 500))))
    if execution.failure is not None and execution.last_output.strip():
        rows.append(("last output", Code(_tail(execution.last_output), 160)))
    if granted := grant_lines(execution.grants):
        rows.append(("grants", Span("\n".join(granted), "code")))
    rows += _steps(execution)
    record = Span(record_line(execution), "quiet")
    return [Facts([*rows, ("record", record)]) if rows else Line(record, "bare", "record")]


_CALL_TONES: dict[str, Tone] = {"✓": "good", "✗": "bad", "…": "warn"}


def _steps(execution: ExecutionData) -> Iterator[tuple[str, Fact]]:
    """List calls and decisions in order; a call that was answered from the record was not made and has no duration."""

    def decided(after_task: str) -> Iterator[tuple[str, Fact]]:
        for decision in execution.decisions:
            if decision.after_task == after_task:
                yield "decision", decision_line(decision)

    yield from decided("")
    for call in execution.calls:
        mark, outcome = call_mark(call), call_outcome(call)
        took = "from the record" if call.answered_from else plain.duration(call.duration_ms)
        sign, name = Span(mark, "strong", _CALL_TONES[mark]), Span(f"{call.server}.{call.tool}", "code")
        suffix = f"  {outcome}" if outcome.strip() else ""
        yield "call", (f"{call.task_id} ", name, " ", sign, " ", Span(took, "quiet"), suffix)
        yield from decided(call.task_id)


def _next(steps: Sequence[str]) -> Section:
    lines: list[Part] = []
    for number, step in enumerate(steps):
        what = Span(f"  {purpose(step)}", "quiet", plain="")
        lines.append(Line((Span(step, "code", "info"), what), "command", "" if number else "next"))
    return Section(lines, is_last=True)


def _notes(execution: ExecutionData, note: str) -> list[Part]:
    return [Line(text, "note", "note") for text in [*notes(execution), *([note] if note else [])]]


#: Number of characters at the end of the output that are shown; the last words matter most.
_OUTPUT_MAX_CHARS = 4000


def _tail(output: str) -> str:
    output = output.rstrip()
    return output if len(output) <= _OUTPUT_MAX_CHARS else "…" + output[-_OUTPUT_MAX_CHARS:]


# Sentences of the card, for text and HTML.


def headline(execution: ExecutionData) -> str:
    """State the outcome in one sentence with the tool's name."""
    if execution.failure is not None:
        return plain.one_line(f"{execution.label} failed: {execution.failure.summary}", 400)
    if execution.status == "RUNNING":
        return f"{execution.label} is running, started {plain.moment(execution.timestamp)}"
    return f"{execution.label} returned {result_line(execution, 200)}"


def place(execution: ExecutionData) -> str:
    """Return where it failed, such as `line 4 of fibonacci v1, in fibonacci`; "" without a frame of the tool."""
    frame = execution.failure.tool_frame if execution.failure is not None else None
    return "" if frame is None else frame.place


def tool_line(execution: ExecutionData) -> str:
    """Return the failed line of the tool's own code, or an empty text."""
    frame = execution.failure.tool_frame if execution.failure is not None else None
    return frame.line.strip() if frame is not None else ""


def explanation(execution: ExecutionData, defined: Collection[str] = ()) -> Explanation | None:
    """Explain the failure in plain words; None if the execution did not fail, or if no part explains it.

    defined: Names that need no import.
    """
    failure = execution.failure
    if failure is None:
        return None
    advice: Explanation | None = hooks.first(
        "explain", failure=failure, where=place(execution), code=execution.code or "", defined=defined
    )
    if advice is None:
        return None
    if cleaning.has_secret(advice.code):
        advice = dataclasses.replace(advice, code="")  # the hidden secret would change the data
    return advice.of_cell() if execution.origin == "cell" else advice


def ending(failure: Failure) -> str:
    """Return how it ended, such as `TOOL_TIMEOUT: the tool was still running when its time was up`."""
    meaning = TOOL_CODES.get(failure.code)
    return f"{failure.code}: {meaning}" if meaning else failure.code


def record_line(execution: ExecutionData) -> str:
    """Return its place in the log and how it ran: `log row 4 · isolation namespaces · 34 ms · …`."""
    if execution.origin == "cell":
        return f"an ordinary cell: not recorded · {plain.moment(execution.timestamp)}"
    row = f"log row {execution.log_id}" if execution.log_id is not None else "not in the log yet"
    refused = execution.refused
    tier = "no worker was started" if refused else "isolation not recorded"
    tier = f"isolation {execution.isolation}" if execution.isolation else tier
    part = [f"run {execution.run_id}"] if execution.run_id else []
    part += [f"asked for by {plain.one_line(execution.client)}"] if execution.client else []
    took, when = plain.duration(execution.duration_ms), plain.moment(execution.timestamp)
    return " · ".join([row, *part, tier, took, when])


def has_arguments(execution: ExecutionData) -> bool:
    """Return whether to show the arguments: yes for every failed tool, but a cell has none."""
    return bool(execution.arguments) or (execution.failure is not None and execution.origin != "cell")


def notes(execution: ExecutionData) -> Iterator[str]:
    """List further notes: healkit's warnings first, then conversions of values."""
    yield from execution.warnings
    for conversion in execution.conversions:
        yield f"shown in another form than it had: {conversion}"


# The value.

#: Beginnings of a result in the log that is a frame or an array.
_FRAMES = ('{"type":', '{"shape":')


def result_text(execution: ExecutionData) -> str:
    """Return the value if available, else the log's summary of it; a frame becomes a table."""
    if (frame := recorded_frame(execution)) is not None:
        return _frame_text(frame)
    value, summary = execution.value, execution.result_summary
    if value is None and summary is not None:
        return summary
    return shortened(repr(value)) if values.is_tabular(value) else plain.value_text(value)


def recorded_frame(execution: ExecutionData) -> values.Preview | None:
    """Return the frame or array that the log recorded; None if the value itself is available or has another type."""
    return _frame_in(execution.result_summary or "") if execution.value is None else None


def _frame_in(summary: str) -> values.Preview | None:
    if summary.startswith(_FRAMES):
        with suppress(msgspec.MsgspecError):  # the summary was cut
            return values.recorded_frame(msgspec.json.decode(summary))
    return None


def _frame_text(frame: values.Preview) -> str:
    preview = frame.shown
    rows = [row if isinstance(row, list) else [row] for row in preview["first"]]
    names = preview.get("columns") or [""] * max(map(len, rows), default=0)
    if not names or any(len(row) != len(names) for row in rows):
        return repr(frame)
    more = ["…"] if preview["shape"] and len(rows) < preview["shape"][0] else []
    table = plain.text_table(names, [[str(cell) for cell in row] for row in rows])
    return "\n".join([repr(frame), *table.splitlines()[0 if any(names) else 1 :], *more])


def result_line(execution: ExecutionData, limit: int) -> str:
    """Return the value in one line; of a frame or an array, only its class and shape."""
    value = execution.value
    if values.is_tabular(value) and value.shape:
        return f"{type(value).__name__} {shape_text(value.shape)}"
    frame = recorded_frame(execution)
    return plain.one_line(result_text(execution) if frame is None else repr(frame), limit)


def shape_text(shape: Sequence[int]) -> str:
    """Format a shape: `1,000 × 3`."""
    return " × ".join(f"{size:,}" for size in shape)


# The stack.


@dataclass(frozen=True)
class FrameGroup:
    """Adjacent frames that are shown as one item: the tool's own (`repeats` times), or folded foreign ones."""

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
    """Group frames, outermost first: a recursion is one item with its depth, adjacent library frames another.

    innermost: Number of frames at the failing end to keep.
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
    """Return whether the frames say more than the headline, which already has the failed line."""
    return len(groups) > 1 or any(not group.own for group in groups)


# Grants, calls and decisions.


def grant_lines(grants: Grants) -> list[str]:
    """Return the grants, one per line, such as `read /data`; empty if there are none beyond the default."""
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
    if grants.own_grants:
        lines.append("own grants: keeps all of this when another tool calls it")
    return lines


def call_mark(call: CallRecord) -> str:
    """Return the mark of a call: `✓` answered, `✗` failed, `…` no answer yet."""
    return "…" if call.success is None else "✓" if call.success else "✗"


def call_outcome(call: CallRecord) -> str:
    """Return the outcome of a call, in one line."""
    if call.success is None:
        return "no answer when the run ended"
    if not call.success:
        return plain.one_line(f"{call.error_code}: {call.error}", 160)
    frame = _frame_in(call.result_summary)
    return plain.one_line(call.result_summary if frame is None else repr(frame), 160)


def decision_line(decision: DecisionRecord) -> str:
    """Return the branch that the tool took: `size: large, because n > 3`."""
    because = f", because {decision.condition}" if decision.condition else ""
    return plain.one_line(f"{decision.node}: {decision.outcome}{because}", 300)


# The next steps.

#: Beginning of a command → what it is for.
_PURPOSES = {
    "%healkit keep": "make it a tool",
    "%vault show": "fix it",
    "%vault list": "see what there is",
    "%trace_last_error": "see it again",
    "%post_mortem": "inspect it",
    "%heal": "look for a fix",
    "%debug": "inspect it (q leaves)",
    "%run_tool": "run it again",
    "hk.rerun": "run it again, as it was",
}
#: Maximum length of a command that is offered for copying, in characters.
_COMMAND_MAX_CHARS = 1000
#: The log stores arguments that were too long as cut text under this name; they cannot be passed again.
_CUT_ARGUMENTS = "…"
#: Codes of calls of a missing tool: its code cannot be shown, and another call would fail too.
_NO_SUCH_TOOL = frozenset({"TOOL_NOT_FOUND", "TOOL_REMOVED", "PERSONA_NOT_FOUND"})


def next_steps(execution: ExecutionData, face: Face) -> list[str]:
    """List commands to copy: show the code, run it again with the same arguments, find the record."""
    name, flag = execution.tool_name, _flag(execution)
    if execution.origin == "cell":
        return ["%heal", "%debug", "%healkit keep NAME"]
    if name == RUN_CODE and execution.revision is None:
        return []
    if execution.failure is not None and execution.failure.code in _NO_SUCH_TOOL:
        return ["healkit vault list" if face == "terminal" else "%vault list"]
    if face == "terminal":
        steps = [f"healkit vault show {name}{flag}", f"healkit vault patch {name} FILE{flag}"]
        if values.is_plain(execution.arguments):  # a command line can express them
            masked = {key: "…" if is_hidden(value) else value for key, value in execution.arguments.items()}
            payload = shlex.quote(json.dumps(masked, ensure_ascii=False))
            steps.append(f"healkit run {name}{flag}" + (f" --args {payload}" if masked else ""))
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
    """Format arguments as ` n=10 name='Ada'`, or as ` --args '{…}'` if a name is not possible before an equals sign.

    A hidden value becomes `password=…`; the log still has it, and `hk.rerun` reads it from there.
    """
    if all(key.isidentifier() for key in arguments):
        return "".join(
            f" {key}={'…' if is_hidden(value) else repr(value)}" for key, value in arguments.items()
        )
    masked = {key: "…" if is_hidden(value) else value for key, value in arguments.items()}
    return f" --args {json.dumps(masked, ensure_ascii=False)}"


def is_hidden(value: object) -> bool:
    """Return whether an argument, or a part of it, was hidden for display."""
    return HIDDEN_MARK in repr(value)


def purpose(command: str) -> str:
    """Return what a command is for, such as `run it again`."""
    return next((what for begin, what in _PURPOSES.items() if command.startswith(begin)), "")


# Variables and history at the time of a failure.

#: Maximum number of locals in a terminal; the others are counted.
_TEXT_MAX = 12
_TYPE_MAX_CHARS, _REPR_MAX_CHARS = 120, 200


def history_line(count: int, first_seen: datetime, resolved_by: str) -> str:
    """Return how often it happened: `7th time since Tue 17 Nov 2026; last resolved by f v2`; "" for the first time.

    resolved_by: Label of the last revision that resolved it; empty if none did.
    """
    if count < 2:
        return ""
    day = first_seen.astimezone()
    since = (
        "today"
        if day.date() == datetime.now().astimezone().date()
        else f"since {day:%a} {day.day} {day:%b %Y}"
    )
    return f"{_ordinal(count)} time {since}; " + (
        f"last resolved by {resolved_by}" if resolved_by else "not fixed yet"
    )


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def locals_of(aside: Aside) -> list[Part]:
    """Build the table of the locals, with the number of hidden values; empty if there are no locals."""
    if not aside.locals:
        return []
    rows = [row_of(variable, 60, 160) for variable in aside.locals]
    more = len(rows) - _TEXT_MAX
    parts: list[Part] = [
        Only("text", Table(("locals", "type", "value"), rows[:_TEXT_MAX], indent=2)),
        Only("html", Table(("local", "type", "value"), rows, narrow_first=True)),
    ]
    if more > 0:
        parts.append(Only("text", Line(f"… {plain.count(more, 'more variable')}")))
    if aside.hidden:
        looked = "they looked like secrets" if aside.hidden > 1 else "it looked like a secret"
        parts.append(Line(f"{plain.count(aside.hidden, 'value')} hidden: {looked}", "warn"))
    return [Section(parts)]


def locals_card(frames: Frames) -> Card:
    """Build the card of the frames and their locals; the innermost frame is open, all others are folded."""
    title = (
        "Locals, as the worker still holds them"
        if frames
        else "There are no frames of the tool's own to show locals of."
    )
    folds = [
        _kept_frame(frame, variables, is_open=index == len(frames) - 1)
        for index, (frame, variables) in enumerate(frames)
    ]
    return Card(parts=(Section((Span(title, "strong"), *folds)),))


def _kept_frame(frame: KeptFrame, found: Sequence[Local], *, is_open: bool) -> Fold:
    """Build one frame, such as `#1  fibonacci v1, line 3, in fibonacci`; `eval(…, frame=1)` takes that number."""
    rows = [row_of(variable, _TYPE_MAX_CHARS, _REPR_MAX_CHARS) for variable in found]
    table: Part = Table(("name", "type", "value"), rows, indent=6)
    if not rows:
        table = Line(Span("no locals", "quiet"), "bare", indent=6)
    where = f"#{frame.number}  {place_label(frame.filename)}, line {frame.lineno}, in {frame.name}"
    return Fold(where, (Code(frame.line, indent=6), table), terminal="both", is_open=is_open)


def row_of(one: Local, type_chars: int, value_chars: int) -> tuple[Span, Span, Span]:
    """Build the row of one variable: its name, its type with its shape, and the beginning of its repr."""
    shape = "" if one.shape is None else f" {tuple(one.shape)}"
    return (
        Span(plain.one_line(one.name, 40), "code"),
        Span(plain.one_line(f"{one.type}{shape}", type_chars), "quiet"),
        Span(plain.one_line(one.repr, value_chars), "code"),
    )
