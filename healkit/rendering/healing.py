"""Report of a healing, as text and as a card.

The verdict's words are on top, because they are easily misread: a patch that passes is not thereby right.
"""

from __future__ import annotations

from collections.abc import Iterable

from healkit.contracts.heal_report import HealReportData
from healkit.contracts.healing import VERDICTS, Attempt
from healkit.rendering import plain
from healkit.rendering.document import (
    Card,
    Diff,
    Fact,
    Facts,
    Fold,
    Line,
    Only,
    Part,
    Span,
    Table,
    Tone,
)

#: Number of attempts listed one by one; a search has many that fail.
_SHOWN_MAX = 8
#: Shortest wait for a person that is told.
_THINK_TIME_LEAST_S = 1.0

_HEADS = {
    "kept": "a patch was kept",
    "shown": "a patch was found, and only shown",
    "pending": "a patch waits for your consent",
    "declined": "the patch was declined",
    "denied": "the policy forbids the patch",
    "rolled_back": "the patch was taken back",
    "not_cured": "nothing that was tried cures it",
    "healthy": "nothing fails any more",
    "not_mendable": "no change of the code helps",
    "halted": "the policy ended it",
    "stopped": "it was stopped",
}


def card(report: HealReportData) -> Card:
    """Build the card of a healing: outcome, verdict, the diff, the other attempts, what to do next."""
    facts: list[tuple[str, Fact]] = [(name, Span(value, "ticked")) for name, value in report_facts(report)]
    parts: list[Part] = [Facts([*facts, *_next(report)])]
    if report.best is not None:
        verdict, diff = VERDICTS[report.best.verdict].words, report.best.diff
        parts.append(Only("html", Card(verdict, tone="info", parts=(Diff(diff),))))
        parts += [Only("text", ""), Only("text", Diff(diff, indent=2))]
    others = [attempt for attempt in report.attempts if attempt is not report.best]
    if others:
        left = len(others) - _SHOWN_MAX
        more = [Span(f"… and {left:,} more", "quiet")] if left > 0 else []
        table = Table(("", "who", "what", "verdict"), [_row(attempt) for attempt in others[:_SHOWN_MAX]])
        parts.append(Only("html", Fold(plain.count(len(others), "other attempt"), (table, *more))))
        lines = [*map(_line, others[:_SHOWN_MAX]), *(span.text for span in more)]
        parts += [Only("text", part) for part in ("", Line("also tried"))]
        parts += [Only("text", Line(line, indent=4)) for line in lines]
    below = (Only("html", Span(report.reason, "ticked")),)
    return Card(report_title(report), report_mark(report), report_tone(report), below, parts)


def verdict_line(attempt: Attempt) -> str:
    """Say the verdict and what it does not say, in one or two sentences."""
    return f"{VERDICTS[attempt.verdict].words}. {meaning(attempt)}".rstrip()


def question_text(call: str, choices: Iterable[str]) -> str:
    """Write a question on patches that disagree, with numbered choices; a face adds how to answer."""
    lines = (f"  {number}) {choice}" for number, choice in enumerate(choices, 1))
    return "\n".join((f"Plausible patches disagree. What is right for {call} ?", *lines))


def consent_text(best: Attempt) -> str:
    """Write the chosen patch with its reason and verdict; a face asks whether to keep it."""
    return f"{best.diff}{best.patch.advisor}: {best.patch.reason}\nVerdict: {verdict_line(best)}"


def _time(report: HealReportData) -> str:
    worked = plain.duration(report.working_time_s * 1000)
    if report.think_time_s < _THINK_TIME_LEAST_S:
        return worked
    return f"{worked} (and {plain.duration(report.think_time_s * 1000)} waiting for you)"


def meaning(attempt: Attempt) -> str:
    """Say in a sentence or two what the verdict means, and what it leaves open."""
    if attempt.verdict == "unproven" and attempt.patch.doubt:
        return f"It passes every check, but nobody vouches for it. {attempt.patch.doubt}"
    verdict = VERDICTS[attempt.verdict]
    return f"{verdict.meaning} {verdict.caveat}".strip()


def report_title(report: HealReportData) -> str:
    """Say what came of it in one line: the tool, the outcome, the verdict."""
    verdict = f": {VERDICTS[report.best.verdict].words}" if report.best is not None else ""
    return f"{report.label}: {_HEADS.get(report.outcome, report.outcome)}{verdict}"


def report_facts(report: HealReportData) -> list[tuple[str, str]]:
    """List what was found, tried, asked and spent: name and value."""
    found = [("found", report.diagnosis), ("outcome", report.reason)]
    best = report.best
    if best is not None:
        found.append(("patch", f"{best.patch.reason} ({best.patch.advisor})"))
        found.append(("means", meaning(best)))
    checked = plain.count(len(report.checks), "check")
    tried = plain.count(report.candidates_tried, "candidate")
    found.append(("held", f"against {checked}; {tried} in {_time(report)}"))
    found += [("asked", f"{one.call} is {one.answer or 'not known'}") for one in report.questions]
    found += (
        [("cost", ", ".join(f"{amount:g} {unit}" for unit, amount in report.cost.items()))]
        if report.cost
        else []
    )
    return [*found, *(("note", note) for note in report.notes)]


def _next(report: HealReportData) -> list[tuple[str, Fact]]:
    """Say where it is on record, and what can be done next, as each face types it."""
    told, tool = f'hk.timeline("{report.run_id}")', report.label.partition("@")[0]
    found = [("record", f"`{told}`", f"{told}, or healkit trace show {report.run_id}")]
    if report.outcome == "pending":
        words = [f"healkit requests {word} {report.request_id}" for word in ("accept", "decline")]
        found.append(("next", " or ".join(f"`%{word}`" for word in words), " or ".join(words)))
    if report.outcome == "kept":
        found.append(("undo", f"`%vault undo {tool}`", f"healkit vault undo {tool}"))
    return [(name, Span(page, "ticked", plain=terminal)) for name, page, terminal in found]


def report_mark(report: HealReportData) -> str:
    """Give the outcome as a sign."""
    return {"kept": "✓", "healthy": "✓", "pending": "?", "shown": "?"}.get(report.outcome, "✗")


def report_tone(report: HealReportData) -> Tone:
    """Say how it went: `good` is what somebody has said is right, `warn` what still wants a look, `bad` the rest."""
    cured = report.best is not None and report.best.verdict == "cured"
    if report.outcome == "healthy" or (report.outcome == "kept" and cured):
        return "good"
    return "warn" if report.outcome in ("kept", "shown", "pending", "declined") else "bad"


def _line(attempt: Attempt) -> str:
    why = f": {attempt.why}" if attempt.why else ""
    return plain.one_line(
        f"{VERDICTS[attempt.verdict].mark} {attempt.patch.advisor}: {attempt.patch.reason}{why}", 160
    )


def _row(attempt: Attempt) -> tuple[str | Span, ...]:
    why = f"{VERDICTS[attempt.verdict].words}{f': {attempt.why}' if attempt.why else ''}"
    told = Span(attempt.patch.reason, "ticked"), Span(plain.one_line(why, 200), "ticked")
    return VERDICTS[attempt.verdict].mark, attempt.patch.advisor, *told
