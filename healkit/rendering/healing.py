"""What came of a healing, as text and as a card.

The verdict's words are on top, because they are what is easily misread: a patch that passes is not thereby right.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from healkit.contracts.healing import VERDICTS, Attempt, Check
from healkit.rendering import markup as m
from healkit.rendering import plain
from healkit.rendering.markup import Html, visible
from healkit.rendering.parts import Face
from healkit.rendering.reports import diff_html

#: Attempts that are told one by one; a search has many that came to nothing.
_SHOWN_MAX = 8
#: Waiting for a person that is shorter is not worth telling.
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
_MEANS = {
    "cured": "Every check passes, and an example says what is right where it was wrong. It is held only against those.",
    "unproven": "It no longer fails, but no example says what is right there: look at what it returns.",
    "silenced": "It no longer fails because a guard hides it; whether that is right, nobody has said.",
}


class AnsweredView(Protocol):
    """A question and its answer."""

    @property
    def call(self) -> str: ...
    @property
    def choices(self) -> tuple[str, ...]: ...
    @property
    def answer(self) -> str | None: ...


class ReportView(Protocol):
    """What is shown of a healing."""

    @property
    def label(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def diagnosis(self) -> str: ...
    @property
    def attempts(self) -> tuple[Attempt, ...]: ...
    @property
    def best(self) -> Attempt | None: ...
    @property
    def checks(self) -> tuple[Check, ...]: ...
    @property
    def working_time_s(self) -> float: ...
    @property
    def think_time_s(self) -> float: ...
    @property
    def candidates_tried(self) -> int: ...
    @property
    def run_id(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def request_id(self) -> int | None: ...
    @property
    def questions(self) -> Sequence[AnsweredView]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def cost(self) -> dict[str, float]: ...


def report_text(report: ReportView) -> str:
    """A healing for a terminal: outcome, verdict, the diff, the other attempts, what to do next."""
    lines = [f"{report_mark(report)} {visible(report_title(report))}"]
    lines += [f"  {name:<10} {visible(value)}" for name, value in _facts(report, "terminal")]
    if report.best is not None:
        lines += ["", plain.indent(visible(report.best.diff.rstrip()), "  ")]
    others = [attempt for attempt in report.attempts if attempt is not report.best]
    if others:
        lines += ["", "  also tried"]
        lines += [f"    {_line(attempt)}" for attempt in others[:_SHOWN_MAX]]
        lines += [f"    … and {len(others) - _SHOWN_MAX:,} more"] if len(others) > _SHOWN_MAX else []
    return "\n".join(lines)


def report_html(report: ReportView) -> str:
    """The same as a card."""
    colours = _colours(report)
    head = m.heading(report_mark(report), report_title(report), *colours, m.ticked(report.reason))
    facts = [(name, m.ticked(value)) for name, value in _facts(report, "notebook")]
    parts: list[Html] = [head, m.section(m.facts(facts))]
    if report.best is not None:
        parts.append(m.section(Html(diff_html(report.best.diff, f"{VERDICTS[report.best.verdict]}"))))
    others = [attempt for attempt in report.attempts if attempt is not report.best]
    if others:
        rows = [_row(attempt) for attempt in others[:_SHOWN_MAX]]
        left = m.muted(f"… and {len(others) - _SHOWN_MAX:,} more") if len(others) > _SHOWN_MAX else m.Html("")
        table = m.table(("", "who", "what", "verdict"), rows)
        parts.append(m.section(m.fold(f"{plain.count(len(others), 'other attempt')}", table, left)))
    return m.card(*parts, accent=colours[0])


def verdict_line(attempt: Attempt) -> str:
    """The verdict and what it does not say, in one or two sentences."""
    return f"{VERDICTS[attempt.verdict]}. {_means(attempt)}".rstrip()


def _time(report: ReportView) -> str:
    worked = plain.duration(report.working_time_s * 1000)
    if report.think_time_s < _THINK_TIME_LEAST_S:
        return worked
    return f"{worked} (and {plain.duration(report.think_time_s * 1000)} waiting for you)"


def _means(attempt: Attempt) -> str:
    if attempt.verdict == "unproven" and attempt.patch.doubt:
        return f"It passes every check, but nobody vouches for it. {attempt.patch.doubt}"
    return _MEANS.get(attempt.verdict, "")


def report_title(report: ReportView) -> str:
    """What came of it in one line: the tool, the outcome, the verdict."""
    verdict = f": {VERDICTS[report.best.verdict]}" if report.best is not None else ""
    return f"{report.label}: {_HEADS.get(report.outcome, report.outcome)}{verdict}"


def report_facts(report: ReportView) -> list[tuple[str, str]]:
    """What was found, tried, asked and spent: name and value, one pair a line."""
    found = [("found", report.diagnosis), ("outcome", report.reason)]
    best = report.best
    if best is not None:
        found.append(("patch", f"{best.patch.reason} ({best.patch.advisor})"))
        found.append(("means", _means(best)))
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


def _facts(report: ReportView, face: Face) -> list[tuple[str, str]]:
    """What came of it, and what can be done next; commands are in backticks where they become code."""
    record, tick, command = f'hk.timeline("{report.run_id}")', "`", "%"
    if face == "terminal":
        record, tick, command = f"{record}, or healkit trace show {report.run_id}", "", "healkit "
    found = [*report_facts(report), ("record", f"{tick}{record}{tick}")]
    if report.outcome == "pending":
        requests = "%healkit requests" if face == "notebook" else "healkit requests"
        choices = [f"{tick}{requests} {word} {report.request_id}{tick}" for word in ("accept", "decline")]
        found.append(("next", " or ".join(choices)))
    if report.outcome == "kept":
        found.append(("undo", f"{tick}{command}vault undo {report.label.partition('@')[0]}{tick}"))
    return found


def report_mark(report: ReportView) -> str:
    """The outcome as a sign."""
    return {"kept": "✓", "healthy": "✓", "pending": "?", "shown": "?"}.get(report.outcome, "✗")


def report_tone(report: ReportView) -> str:
    """How it went: `good` is what somebody has said is right, `warn` what still wants a look, `bad` the rest."""
    cured = report.best is not None and report.best.verdict == "cured"
    if report.outcome == "healthy" or (report.outcome == "kept" and cured):
        return "good"
    return "warn" if report.outcome in ("kept", "shown", "pending", "declined") else "bad"


def _colours(report: ReportView) -> tuple[str, str]:
    tones = {"good": (m.GREEN, m.GREEN_SOFT), "warn": (m.AMBER, m.AMBER_SOFT), "bad": (m.RED, m.RED_SOFT)}
    return tones[report_tone(report)]


def _line(attempt: Attempt) -> str:
    why = f": {attempt.why}" if attempt.why else ""
    return visible(
        plain.one_line(f"{attempt_mark(attempt)} {attempt.patch.advisor}: {attempt.patch.reason}{why}", 160)
    )


def _row(attempt: Attempt) -> tuple[str, ...]:
    why = f"{VERDICTS[attempt.verdict]}{f': {attempt.why}' if attempt.why else ''}"
    told = m.ticked(attempt.patch.reason), m.ticked(plain.one_line(why, 200))
    return attempt_mark(attempt), attempt.patch.advisor, *told


def attempt_mark(attempt: Attempt) -> str:
    """The verdict as a sign."""
    return {"cured": "✓", "unproven": "~", "silenced": "~"}.get(attempt.verdict, "✗")
