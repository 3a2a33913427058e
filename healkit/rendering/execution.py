"""One execution as a card, in text and in HTML.

The message comes first: what a person looks for is the sentence, then the own line, and only then the
stack. Frames of libraries are folded with their count, since they are seldom where the mistake is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from healkit.contracts.records import CallRecord, DecisionRecord
from healkit.rendering import markup as m
from healkit.rendering import parts, plain
from healkit.rendering.asides import Aside, locals_lines, locals_section
from healkit.rendering.markup import Html, visible
from healkit.rendering.views import ExecutionView

#: Output is cut to its end, where the last words are.
_OUTPUT_MAX_CHARS = 4000
NO_ASIDE = Aside()


class Step(NamedTuple):
    """One step of an explanation, under its short name."""

    label: str
    text: str


def execution_text(
    execution: ExecutionView,
    *,
    frames: int | None = None,
    face: parts.Face = "notebook",
    note: str = "",
    aside: Aside = NO_ASIDE,
) -> str:
    """The card as plain text.

    frames: only that many of the innermost frames; None means all, with libraries' folded.
    face: where the commands under "next" can be typed. note: one more line for the reader. aside: what was known at the
    moment of the failure.
    """
    mark = "✓" if execution.ok else "✗" if execution.failure is not None else "…"
    lines = [f"{mark} {parts.headline(execution)}"]
    if execution.failure is not None:
        lines += _failure_lines(execution, frames, aside)
    lines += [
        f"  note       {visible(text)}" for text in [*parts.notes(execution), *([note] if note else [])]
    ]
    if parts.has_arguments(execution):
        lines.append(f"  arguments  {plain.one_line(plain.value_text(execution.arguments), 500)}")
    if execution.failure is not None and execution.last_output.strip():
        lines += ["  last output", plain.indent(visible(_tail(execution.last_output)), "    │ ")]
    for i, line in enumerate(parts.grant_lines(execution.grants)):
        lines.append(f"  {'' if i else 'grants':<10} {visible(line)}")
    lines += _decision_lines(execution, "")
    for call in execution.calls:
        lines.append(
            f"  call       {call.task_id} {call.server}.{call.tool} {parts.call_mark(call)} "
            f"{plain.duration(call.duration_ms)}  {parts.call_outcome(call)}".rstrip()
        )
        lines += _decision_lines(execution, call.task_id)
    lines.append(f"  record     {parts.record_line(execution)}")
    if execution.failure is not None:
        steps = parts.next_steps(execution, face)
        lines += [f"  {'next' if i == 0 else '    '}       {step}" for i, step in enumerate(steps)]
        lines += [f"  tip        {aside.tip}"] if aside.tip else []
    return "\n".join(lines)


def _decision_lines(execution: ExecutionView, after_task: str) -> list[str]:
    """What the tool decided after that call, and before the next."""
    return [
        f"  decision   {visible(parts.decision_line(decision))}"
        for decision in execution.decisions
        if decision.after_task == after_task
    ]


def _failure_lines(execution: ExecutionView, frames: int | None, aside: Aside) -> Iterator[str]:
    failure = execution.failure
    assert failure is not None
    if where := parts.place(execution):
        yield f"  at {where}"
        yield f"      {visible(parts.tool_line(execution))}"
    if failure.code != "TOOL_EXCEPTION":
        yield f"  {parts.ending(failure)}"
    if aside.history:
        yield f"  seen       {aside.history}"
    for step in _explained(execution, aside):
        yield f"  {step.label:<10} {visible(step.text)}"
    if failure.hint:
        yield f"  note       {visible(failure.hint)}"
    yield from (f"  {line}" for line in locals_lines(aside))
    groups = parts.grouped(failure.frames, frames)
    if parts.worth_listing(groups):
        yield "  frames, the innermost last"
        for group in groups:
            if group.own:
                yield f"    {group.where}"
                yield f"        {visible(group.frames[0].line.strip())}"
            else:
                yield f"    … {visible(group.folded)}"
    if not failure.frames and "\n" in failure.traceback.strip():  # one line is the message again
        yield plain.indent(visible(failure.traceback.strip()))


def _explained(execution: ExecutionView, aside: Aside) -> list[Step]:
    """The explanation's steps that the headline does not say already, as far as both allow."""
    explanation, failure = parts.explanation(execution), execution.failure
    if explanation is None or failure is None:
        return []
    if aside.why:
        explanation = dataclasses.replace(explanation, why=aside.why, hint="", fix=aside.mend)
    told = explanation.at(execution.explained).at(aside.explained)
    what = "" if told.what.rstrip(".") in failure.summary else told.what
    hint = "" if told.hint == failure.hint else told.hint  # healkit's own is shown anyway
    steps = (Step("what", what), Step("why", told.why), Step("hint", hint), Step("mend", told.fix))
    return [step for step in steps if step.text]


def execution_html(
    execution: ExecutionView, *, frames: int | None = None, note: str = "", aside: Aside = NO_ASIDE
) -> str:
    """The card as static HTML; reads without a kernel, untrusted, on light and on dark pages.

    The arguments are those of `execution_text`.
    """
    if execution.failure is not None:
        return _failure_card(execution, frames, note, aside)
    if execution.status == "RUNNING":
        return m.card(
            m.heading("…", parts.headline(execution), m.AMBER, m.AMBER_SOFT),
            _record(execution),
            accent=m.AMBER,
        )
    head = m.heading("✓", f"{execution.label} returned a value", m.GREEN, m.GREEN_SOFT)
    value = m.section(m.block(parts.result_text(execution), max_height="240px"))
    return m.card(head, value, _notes(execution, note), _details(execution), accent=m.GREEN)


def success_line(execution: ExecutionView) -> str:
    """One line for a success whose value is shown elsewhere: `✓ fibonacci@2 · log row 4 · … · 34 ms`."""
    lines = [f"✓ {execution.label} · {parts.record_line(execution)}"]
    lines += [f"  note       {visible(text)}" for text in parts.notes(execution)]
    return "\n".join(lines)


def success_html(execution: ExecutionView) -> str:
    """The same as a card of one line, with the calls it made folded under it."""
    sign = m.tag("b", f"✓ {execution.label} ", style=f"color:{m.GREEN}")
    line = m.tag("div", sign, m.muted(parts.record_line(execution)), style="overflow-wrap:anywhere")
    count = plain.count(len(execution.calls), "call")
    calls = [m.fold(f"{count} made", _calls(execution.calls))] if execution.calls else []
    return m.card(m.section(line, *calls), _notes(execution, ""), accent=m.GREEN)


def _failure_card(execution: ExecutionView, frames: int | None, note: str, aside: Aside) -> Html:
    failure = execution.failure
    assert failure is not None
    below = [m.tag("div", m.chip(execution.label, m.RED, m.PAPER), Html(" "), parts.place(execution))]
    if line := parts.tool_line(execution):
        marked = m.tag("mark", line, style=f"color:{m.INK};background-color:{m.MARK};padding:1px 4px")
        below.append(
            m.tag("div", marked, style=f"{m.MONO};margin-top:4px;white-space:pre-wrap;overflow-wrap:anywhere")
        )
    if failure.code != "TOOL_EXCEPTION":
        below.append(m.tag("div", parts.ending(failure), style=f"color:{m.MUTED}"))
    if aside.history:
        below.append(m.tag("div", aside.history, style=f"color:{m.MUTED}"))
    head = m.heading("✗", plain.one_line(failure.summary, 600), m.RED, m.RED_SOFT, *below)
    hint = [_callout(failure.hint)] if failure.hint else []
    return m.card(
        head,
        _explanation(_explained(execution, aside)),
        *hint,
        _notes(execution, note),
        locals_section(aside),
        _frames(execution, frames),
        _details(execution),
        _next(execution, aside.tip),
        accent=m.RED,
    )


def _explanation(steps: list[Step]) -> Html:
    """What and why as text, the hint set apart, the way to mend it behind a click: try yourself first."""
    if not steps:
        return Html("")
    told = {step.label: step.text for step in steps}
    rows = []
    if "what" in told:
        rows.append(m.tag("div", m.ticked(told["what"])))
    if "why" in told:
        rows.append(m.tag("div", m.ticked(told["why"]), style=f"color:{m.MUTED}"))
    if "hint" in told:
        asked = m.tag("div", m.tag("b", "Hint: "), m.ticked(told["hint"]), style="margin-top:4px")
        rows.append(asked)
    if "mend" in told:
        rows.append(m.fold("A way to mend it", m.tag("div", m.ticked(told["mend"]))))
    return m.section(*rows)


def _frames(execution: ExecutionView, innermost: int | None) -> Html:
    failure = execution.failure
    assert failure is not None
    items = []
    groups = parts.grouped(failure.frames, innermost)
    for group in groups if parts.worth_listing(groups) else ():
        if group.own:
            line = m.chip(group.frames[0].line.strip())
            items += [m.tag("div", m.muted(f"{group.where}  "), line, style="margin-top:3px")]
        else:
            stack = "\n".join(
                f"{f.filename}, line {f.lineno}, in {f.name}\n    {f.line.strip()}" for f in group.frames
            )
            items.append(m.fold(group.folded, m.block(stack, max_height="240px")))
    full = [m.fold("Full traceback, as Python prints it", m.block(failure.traceback, max_height="400px"))]
    return m.section(*items, *(full if failure.traceback.strip() else []))


def _details(execution: ExecutionView) -> Html:
    rows: list[tuple[str, str]] = []
    if parts.has_arguments(execution):
        rows.append(("arguments", m.chip(plain.value_text(execution.arguments))))
    if execution.failure is not None and execution.last_output.strip():
        rows.append(("last output", m.block(_tail(execution.last_output), max_height="160px")))
    if granted := parts.grant_lines(execution.grants):
        rows.append(("grants", m.chip("\n".join(granted))))
    if execution.calls:
        rows.append(("calls made", _calls(execution.calls)))
    if execution.decisions:
        rows.append(("decisions", _decisions(execution.decisions)))
    if not rows:
        return m.section(m.muted(parts.record_line(execution)))
    rows.append(("record", m.muted(parts.record_line(execution))))
    return m.section(m.facts(rows))


def _record(execution: ExecutionView) -> Html:
    return m.section(m.facts([("arguments", m.chip(plain.value_text(execution.arguments))),
                              ("record", m.muted(parts.record_line(execution)))]))  # fmt: skip


def _calls(calls: Sequence[CallRecord]) -> Html:
    colours = {"✓": m.GREEN, "✗": m.RED, "…": m.AMBER}
    rows = []
    for call in calls:
        mark = parts.call_mark(call)
        sign = m.tag("b", mark, style=f"color:{colours[mark]}")
        name = m.chip(f"{call.server}.{call.tool}")
        rows.append((call.task_id, sign, name, plain.duration(call.duration_ms), parts.call_outcome(call)))
    return m.table((), rows)


def _decisions(decisions: Sequence[DecisionRecord]) -> Html:
    rows = [
        (
            m.muted(f"after {decision.after_task}" if decision.after_task else ""),
            parts.decision_line(decision),
        )
        for decision in decisions
    ]
    return m.table((), rows)


def _next(execution: ExecutionView, tip: str) -> Html:
    steps = parts.next_steps(execution, "notebook")
    chips = [
        m.tag(
            "div",
            m.chip(step, m.BLUE, m.BLUE_SOFT),
            m.muted(f"  {parts.purpose(step)}"),
            style="display:inline-block;margin:3px 16px 3px 0",
        )
        for step in steps
    ]
    chips += [m.tag("div", m.muted(f"Tip: {tip}"), style="margin-top:6px")] if tip else []
    style = f"padding:6px 12px 10px 12px;background-color:{m.PAPER};color:{m.INK}"
    return m.tag("div", m.tag("div", m.muted("Next, copy into a cell:")), *chips, style=style)


def _callout(text: str) -> Html:
    return m.tag("div", text, style=f"background-color:{m.AMBER_SOFT};color:{m.AMBER};padding:5px 12px")


def _notes(execution: ExecutionView, note: str) -> Html:
    return m.join(_callout(text) for text in [*parts.notes(execution), *([note] if note else [])])


def _tail(output: str) -> str:
    output = output.rstrip()
    return output if len(output) <= _OUTPUT_MAX_CHARS else "…" + output[-_OUTPUT_MAX_CHARS:]
