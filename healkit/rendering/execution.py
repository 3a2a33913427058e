"""Card of an execution.

The message comes first: a person looks for the sentence, then for the own line, and only then for the stack. Frames of
libraries are folded with their count, since they are seldom where the mistake is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from healkit.contracts.execution import ExecutionData
from healkit.contracts.failure import Failure
from healkit.contracts.tools import place_label
from healkit.rendering import cleaning, parts, plain
from healkit.rendering.asides import Aside, locals_of
from healkit.rendering.document import (
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

#: Characters of the output's end that are shown; its last words say most.
_OUTPUT_MAX_CHARS = 4000
NO_ASIDE = Aside()
_CALL_TONES: dict[str, Tone] = {"✓": "good", "✗": "bad", "…": "warn"}


def card(
    execution: ExecutionData,
    *,
    frames: int | None = None,
    face: parts.Face = "notebook",
    note: str = "",
    aside: Aside = NO_ASIDE,
) -> Card:
    """Build the card of an execution that failed, succeeded or still runs.

    frames: only that many of the innermost frames; None means all, with libraries' folded.
    face: where the commands under "next" can be typed. note: one more line for the reader. aside: what was known at the
    moment of the failure.
    """
    execution = cleaning.execution(execution)
    if execution.failure is not None:
        return _failure_card(execution, execution.failure, frames, face, note, aside)
    shown: list[Part] = [*_notes(execution, note), *_details(execution)]
    if execution.status == "RUNNING":
        return Card(parts.headline(execution), "…", "warn", parts=shown)
    value = Only("html", Code(parts.result_text(execution), 240))
    title = f"{execution.label} returned a value"
    return Card(title, "✓", "good", parts=[value, *shown], line=f"✓ {parts.headline(execution)}")


def success(execution: ExecutionData) -> Card:
    """Build one line for a success whose value is shown elsewhere, with the calls it made folded under it."""
    execution = cleaning.execution(dataclasses.replace(execution, value=None))
    sign = Span(f"✓ {execution.label} ", "strong", "good")
    record = parts.record_line(execution)
    line = Line((sign, Span(record, "quiet", plain=f"· {record}")), "wrapped", indent=0)
    made = f"{plain.count(len(execution.calls), 'call')} made"
    calls = [Fold(made, (_calls(execution),))] if execution.calls else []
    return Card(tone="good", parts=(Section((line, *calls)), *_notes(execution, "")))


def _failure_card(
    execution: ExecutionData, failure: Failure, frames: int | None, face: parts.Face, note: str, aside: Aside
) -> Card:
    hint = [Line(failure.hint, "note", "note")] if failure.hint else []
    return Card(
        plain.one_line(failure.summary, 600),
        "✗",
        "bad",
        below=list(_below(execution, failure, aside)),
        parts=[
            *_explanation(execution, failure, aside),
            *hint,
            *_notes(execution, note),
            *locals_of(aside),
            _frames(failure, frames),
            *_details(execution),
            _next(execution, face, aside.tip),
        ],
        line=f"✗ {parts.headline(execution)}",
    )


def _below(execution: ExecutionData, failure: Failure, aside: Aside) -> Iterator[Part]:
    """Say where it failed, how it ended, and how often that has happened."""
    where = parts.place(execution)
    line = Line((Span(execution.label, "label", "bad", plain="at" if where else ""), " ", where))
    yield line if where else Only("html", line)
    if own_line := parts.tool_line(execution):
        yield Line(Span(own_line, "mark"), "failing", indent=6)
    if failure.code != "TOOL_EXCEPTION":
        yield Line(parts.ending(failure), "quiet")
    if aside.history:
        yield Line(aside.history, "quiet", "seen")


def _explanation(execution: ExecutionData, failure: Failure, aside: Aside) -> list[Part]:
    """Show what and why as text, the hint set apart, and the fix behind a click: try yourself first.

    Leaves out what the headline says already, and what either of the two limits does not allow.
    """
    explanation = parts.explanation(execution)
    if explanation is None:
        return []
    if aside.why:
        explanation = dataclasses.replace(explanation, why=aside.why, hint="", fix=aside.fix)
    told = explanation.at(execution.explained).at(aside.explained)
    lines: list[Part] = []
    if told.what and told.what.rstrip(".") not in failure.summary:
        lines.append(Line(Span(told.what, "ticked"), label="what"))
    if told.why:
        lines.append(Line(Span(told.why, "ticked"), "quiet", "why"))
    if told.hint and told.hint != failure.hint:  # healkit's own hint is shown anyway
        lines.append(Line((Span("Hint: ", "strong", plain=""), Span(told.hint, "ticked")), "hint", "hint"))
    if told.fix:
        lines.append(Fold("Suggested fix", (Line(Span(told.fix, "ticked"), label="fix"),), "body"))
    for one in told.linked:
        title = Span(f"{one.title}: ", "strong", plain="")
        lines.append(Line((title, Span(one.in_one_line, "ticked")), label=one.title.lower()))
    return [Section(lines)] if lines else []


def _frames(failure: Failure, innermost: int | None) -> Section:
    """Show the stack, its neighbouring library frames folded, and the traceback as Python prints it."""
    groups = parts.grouped(failure.frames, innermost)
    items: list[Part] = []
    for group in groups if parts.worth_listing(groups) else ():
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
        # A terminal shows it only without a stack to list; a single line of it repeats the message.
        alone = not failure.frames and "\n" in trace
        full = (Code(failure.traceback, 400, indent=4),)
        items.append(Fold("Full traceback, as Python prints it", full, "body" if alone else "neither"))
    return Section(items)


def _details(execution: ExecutionData) -> list[Part]:
    """Show its input, its output, its grants, its calls, and its place on record."""
    rows: list[tuple[str, Fact]] = []
    if parts.has_arguments(execution):
        given = plain.value_text(execution.arguments)
        rows.append(("arguments", Span(given, "code", plain=plain.one_line(given, 500))))
    if execution.failure is not None and execution.last_output.strip():
        rows.append(("last output", Code(_tail(execution.last_output), 160)))
    if granted := parts.grant_lines(execution.grants):
        rows.append(("grants", Span("\n".join(granted), "code")))
    made: list[tuple[str, Fact]] = []
    if execution.calls:
        made.append(("calls made", _calls(execution)))
    if execution.decisions:
        made.append(("decisions", _decisions(execution)))
    record = Span(parts.record_line(execution), "quiet")
    if not rows and not made:
        return [Line(record, "bare", "record")]
    page, terminal = (
        Facts([*rows, *made, ("record", record)]),
        [*rows, *_steps(execution), ("record", record)],
    )
    return [Only("html", page), Only("text", Facts(terminal))] if made else [page]


def _calls(execution: ExecutionData) -> Table:
    rows = []
    for call in execution.calls:
        mark = parts.call_mark(call)
        sign, name = Span(mark, "strong", _CALL_TONES[mark]), Span(f"{call.server}.{call.tool}", "code")
        rows.append((call.task_id, sign, name, plain.duration(call.duration_ms), parts.call_outcome(call)))
    return Table((), rows)


def _decisions(execution: ExecutionData) -> Table:
    rows = []
    for decision in execution.decisions:
        after = f"after {decision.after_task}" if decision.after_task else ""
        rows.append((Span(after, "quiet"), parts.decision_line(decision)))
    return Table((), rows)


def _steps(execution: ExecutionData) -> Iterator[tuple[str, Fact]]:
    """List calls and decisions in order, as a terminal shows them."""

    def decided(after_task: str) -> Iterator[tuple[str, Fact]]:
        for decision in execution.decisions:
            if decision.after_task == after_task:
                yield "decision", parts.decision_line(decision)

    yield from decided("")
    for call in execution.calls:
        came = f"{plain.duration(call.duration_ms)}  {parts.call_outcome(call)}".rstrip()
        yield "call", f"{call.task_id} {call.server}.{call.tool} {parts.call_mark(call)} {came}"
        yield from decided(call.task_id)


def _next(execution: ExecutionData, face: parts.Face, tip: str) -> Section:
    lines: list[Part] = [Only("html", Line(Span("Next, copy into a cell:", "quiet")))]
    for number, step in enumerate(parts.next_steps(execution, face)):
        what = Span(f"  {parts.purpose(step)}", "quiet", plain="")
        lines.append(Line((Span(step, "code", "info"), what), "command", "" if number else "next"))
    lines += [Line(Span(f"Tip: {tip}", "quiet", plain=tip), "tip", "tip")] if tip else []
    return Section(lines, is_last=True)


def _notes(execution: ExecutionData, note: str) -> list[Part]:
    return [Line(text, "note", "note") for text in [*parts.notes(execution), *([note] if note else [])]]


def _tail(output: str) -> str:
    output = output.rstrip()
    return output if len(output) <= _OUTPUT_MAX_CHARS else "…" + output[-_OUTPUT_MAX_CHARS:]
