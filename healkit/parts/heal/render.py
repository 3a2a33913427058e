"""Report of a healing, as text and as a card.

The verdict's words come first, because they are easily misread: a patch that passes is not necessarily right.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from healkit.core.rendering import plain
from healkit.core.rendering.document import (
    Card,
    Diff,
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
from healkit.core.rendering.execution_card import Face
from healkit.parts.heal.records import (
    HEAL_ENDINGS,
    VERDICTS,
    Attempt,
    CellFix,
    CellReportData,
    HealReportData,
)

#: Number of attempts listed one by one; a search has many that fail.
_SHOWN_MAX = 8
#: Shortest wait for a person that is shown.
_THINK_TIME_LEAST_S = 1.0

_HEADS = HEAL_ENDINGS | {"pending": "a patch is waiting for your approval"}


def report_card(report: HealReportData, face: Face = "terminal") -> Card:
    """Build the card of a healing: outcome, verdict, the diff, the other attempts, the next steps.

    face: The face that shows its text form; the commands are those of that face.
    """
    facts: list[tuple[str, Fact]] = [(name, Span(value, "ticked")) for name, value in report_facts(report)]
    parts: list[Part] = [Facts([*facts, *_next(report, face)])]
    if report.best is not None:
        verdict, diff = VERDICTS[report.best.verdict].words, Diff(report.best.diff, indent=2)
        parts += [Only("text", ""), Card(verdict, tone="info", parts=(diff,), line="")]
    if report.nearest is not None:
        near = f"nearest: passes {report.nearest.passed} of {plain.count(report.nearest.total, 'check')}"
        diff = Diff(report.nearest.diff, indent=2)
        parts += [Only("text", ""), Card(near, tone="warn", parts=(diff,), line=f"  {near}")]
    other_attempts = [attempt for attempt in report.attempts if attempt not in (report.best, report.nearest)]
    if other_attempts:
        hidden_count = len(other_attempts) - _SHOWN_MAX
        more = [Span(f"… and {hidden_count:,} more", "quiet")] if hidden_count > 0 else []
        table = Table(
            ("", "who", "what", "verdict"), [_row(attempt) for attempt in other_attempts[:_SHOWN_MAX]]
        )
        parts.append(Only("html", Fold(plain.count(len(other_attempts), "other attempt"), (table, *more))))
        lines = _lines(other_attempts)
        parts += [Only("text", part) for part in ("", Line("also tried"))]
        parts += [Only("text", Line(line, indent=4)) for line in lines]
    below = (Only("html", Span(report.reason, "ticked")),)
    return Card(report_title(report), report_mark(report), report_tone(report), below, parts)


def question_text(call: str, choices: Iterable[str], tables: Mapping[str, str] = MappingProxyType({})) -> str:
    """Write a question on patches that disagree, with numbered choices; a face adds how to answer.

    tables: The frames among the arguments, by name.
    """
    lines = [f"The plausible patches give different results. What is the right result of {call} ?"]
    lines += [f"{name}:\n{textwrap.indent(table, '    ')}" for name, table in tables.items()]
    for number, choice in enumerate(choices, 1):
        first, *more = choice.splitlines() or [""]
        if more:  # a table begins on a line of its own, so that its columns stay below each other
            lines += [f"  {number})", textwrap.indent(choice, "     ")]
        else:
            lines.append(f"  {number}) {first}")
    return plain.visible("\n".join(lines))


def consent_text(best: Attempt) -> str:
    """Write the chosen patch with its reason and verdict; a face asks whether to keep it."""
    verdict = f"{VERDICTS[best.verdict].words}. {meaning(best)}".rstrip()
    return plain.visible(f"{best.diff}{best.patch.advisor}: {best.patch.reason}\nVerdict: {verdict}")


def _time(report: HealReportData) -> str:
    worked = plain.duration(report.working_time_s * 1000)
    if report.think_time_s < _THINK_TIME_LEAST_S:
        return worked
    return f"{worked} (and {plain.duration(report.think_time_s * 1000)} waiting for you)"


def meaning(attempt: Attempt) -> str:
    """Say in a sentence or two what the verdict means, and what remains open."""
    if not attempt.plausible:
        return f"{attempt.why[:1].upper()}{attempt.why[1:]}"
    verdict, lost = VERDICTS[attempt.verdict], "" if attempt.verdict == "cured" else attempt.lost
    explanation = f"{verdict.meaning} {verdict.caveat}"
    if attempt.verdict == "unproven" and attempt.patch.doubt:
        doubt = attempt.patch.doubt.removeprefix(lost).strip()
        explanation = f"Passes all checks, but the result may be wrong. {doubt}"
    return f"{lost} {explanation}".strip()


def report_title(report: HealReportData) -> str:
    """Say the result in one line: the tool, the outcome, the verdict."""
    verdict = f": {VERDICTS[report.best.verdict].words}" if report.best is not None else ""
    if report.outcome == "kept" and report.revision is not None:
        return f"{report.label.rpartition(' ')[0]} v{report.revision} is active{verdict}"
    return f"{report.label}: {_HEADS.get(report.outcome, report.outcome)}{verdict}"


def report_facts(report: HealReportData) -> list[tuple[str, str]]:
    """List what was found, tried, asked and used: name and value."""
    facts = [("found", report.diagnosis), ("outcome", report.reason)]
    best = report.best
    if best is not None:
        facts.append(("patch", f"{best.patch.reason} ({best.patch.advisor})"))
        facts.append(("means", meaning(best)))
    total = len(report.checks)
    if total:
        passed = f"{total} of {total} passed" if best is not None else f"{total} to pass"
        facts.append(("checks", passed))
    facts.append(("tried", f"{plain.count(report.candidates_tried, 'candidate')} in {_time(report)}"))
    facts += [
        ("asked", f"{question.call} is {question.answer or 'not known'}") for question in report.questions
    ]
    if report.cost:
        facts.append(("cost", ", ".join(f"{amount:g} {unit}" for unit, amount in report.cost.items())))
    return [*facts, *(("note", note) for note in report.notes)]


def _next(report: HealReportData, face: Face) -> list[tuple[str, Fact]]:
    """Say where it is on record, and list the next steps in the form of each face."""
    command, tool = f'hk.timeline("{report.run_id}")', report.label.partition(" ")[0]
    entries = [("record", f"`{command}`", f"healkit trace show {report.run_id}")]
    if report.outcome == "pending":
        words = [f"healkit requests {word} {report.request_id}" for word in ("accept", "decline")]
        entries.append(("next", " or ".join(f"`%{word}`" for word in words), " or ".join(words)))
    if report.outcome == "kept" or (report.outcome == "halted" and report.revision is not None):
        code = f"`%heal {tool} --apply` puts it into a cell"
        entries.append(("code", code, f"healkit vault show {tool} --code"))
        entries.append(("undo", f"`%vault undo {tool}`", f"healkit vault undo {tool}"))
    if face == "notebook":
        entries = [(name, page, page.replace("`", "")) for name, page, _ in entries]
    return [(name, Span(page, "ticked", plain=typed)) for name, page, typed in entries]


def report_mark(report: HealReportData) -> str:
    """Give the outcome as a sign."""
    return {"kept": "✓", "healthy": "✓", "pending": "?", "shown": "?"}.get(report.outcome, "✗")


def report_tone(report: HealReportData) -> Tone:
    """Return how it went: `good` if an example confirms it, `warn` if you should check it, `bad` otherwise."""
    cured = report.best is not None and report.best.verdict == "cured"
    if report.outcome == "healthy" or (report.outcome == "kept" and cured):
        return "good"
    return "warn" if report.outcome in ("kept", "shown", "pending", "declined") else "bad"


def _lines(others: list[Attempt]) -> list[str]:
    """Write a line for each of the first attempts, and one for all that only hide the error."""
    hiding = [attempt for attempt in others if attempt.verdict == "silenced"]
    listed = [attempt for attempt in others if attempt not in hiding] if len(hiding) > 1 else others
    lines = [_line(attempt) for attempt in listed[:_SHOWN_MAX]]
    lines += [f"… and {len(listed) - _SHOWN_MAX:,} more"] if len(listed) > _SHOWN_MAX else []
    if len(hiding) > 1:
        who = ", ".join(dict.fromkeys(attempt.patch.advisor for attempt in hiding))
        lines.append(f"{VERDICTS['silenced'].mark} {who}: {len(hiding)} patches that only hide the error")
    return lines


def _line(attempt: Attempt) -> str:
    reason, why = attempt.patch.reason, attempt.why or attempt.lost
    summary = f"{reason.removesuffix('.')}: {why}" if why else reason
    return plain.one_line(f"{VERDICTS[attempt.verdict].mark} {attempt.patch.advisor}: {summary}", 160)


def _row(attempt: Attempt) -> tuple[str | Span, ...]:
    why = ": ".join(filter(None, (VERDICTS[attempt.verdict].words, attempt.why or attempt.lost)))
    cells = Span(attempt.patch.reason, "ticked"), Span(plain.one_line(why, 200), "ticked")
    return VERDICTS[attempt.verdict].mark, attempt.patch.advisor, *cells


_CELL_HEADS = {
    "proposed": "a fix",
    "question": "which one do you mean?",
    "rerun": "run other cells first",
    "not_cured": "no fix found",
    "not_tried": "not tried",
}


def cell_card(report: CellReportData) -> Card:
    """Build the card of a failing cell's healing: the edit, its result, open questions, and the next steps."""
    fix, head = report.chosen, f"{report.label}: {_CELL_HEADS[report.outcome]}"
    if report.outcome == "question" and fix is not None:
        head = f"{report.label}: is this what you mean?"
    not_fixes = _not_fixes(report)
    if fix is None:
        notes: list[Part] = [Line(Span(note, "ticked")) for note in report.notes]
        below = (Span(report.reason, "ticked"),)
        if report.outcome == "rerun":
            return Card(head, "→", "warn", below, notes)
        if report.outcome == "question":
            shown = [_other(edit, number) for number, edit in enumerate(report.edits, 1)]
            pick = Facts([("next", Span("`%heal --pick N` puts edit N into this cell", "ticked"))])
            return Card(head, "?", "warn", below, [*shown, *notes, *not_fixes, pick])
        return Card(head, "✗", "bad", below, [*notes, *not_fixes])
    if fix.cell != report.label:
        place = f", in {fix.cell}?" if head.endswith("?") else f" for {fix.cell}"
        head = f"{head.removesuffix('?')}{place}"
    facts: list[tuple[str, Fact]] = [("change", Span(fix.reason, "ticked")), ("seen", Span(fix.said))]
    facts += [("not known", Span(sentence, "ticked")) for sentence in fix.unknown if sentence != fix.rerun]
    facts += [("note", Span(note, "ticked")) for note in report.notes]
    then = "" if fix.cell == report.label else f" inserts the new text of {fix.cell} here"
    facts.append(("next", Span(f"`%heal --apply`{then}", "ticked")))
    facts += [("then", Span(fix.rerun, "ticked"))] if fix.rerun else []
    parts: list[Part] = [Diff(changed(fix)), Facts(facts)]
    rows = [_other(edit, number) for number, edit in enumerate(report.edits, 1) if edit is not fix]
    if rows:
        parts.append(Fold(f"{plain.count(len(rows), 'other edit')}, for `%heal --pick`", rows))
    parts += not_fixes
    is_sure = fix.ran and fix is report.fix
    return Card(head, "✓" if is_sure else "?", "good" if is_sure else "warn", (), parts)


def changed(fix: CellFix) -> str:
    """Return the diff of a cell without its head, which the card already has."""
    lines = fix.diff.split("\n")[2:]
    return "\n".join(lines[1:] if sum(line.startswith("@@") for line in lines) == 1 else lines)


def _not_fixes(report: CellReportData) -> list[Part]:
    """List, folded, the edits that run but are not fixes, with what they lose."""
    rows = [_other(fix) for fix in report.not_fixes]
    head = "Not a fix: an edit that changes or hides data"
    if len(rows) > 1:
        head = f"Not fixes: {len(rows)} edits that change or hide data"
    lines = [f"Not a fix: {fix.reason} {' '.join(fix.lost)}".rstrip() for fix in report.not_fixes]
    return [Only("html", Fold(head, rows)), *(Only("text", Line(line)) for line in lines)] if rows else []


def _other(fix: CellFix, number: int | None = None) -> Part:
    label = () if number is None else (f"Edit {number}:",)
    summary = " ".join((*label, *fix.lost, fix.reason, fix.said))
    return Section((Line(Span(summary, "ticked"), indent=4), Diff(changed(fix), indent=4)))
