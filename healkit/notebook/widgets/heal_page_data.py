"""Data of a healing for a page: question, patch, report.

Texts from a tool, a patch or a model are sanitised and cut. The words on screen are those of the report's card.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from healkit.contracts.healing import VERDICTS, Answered, Attempt
from healkit.healing.questions import Question
from healkit.healing.report import HealReport
from healkit.notebook.widgets.page_data import PageData
from healkit.notebook.widgets.panel import described
from healkit.rendering import healing as told
from healkit.rendering import plain
from healkit.rendering.plain import visible

#: What a page is given of one text, one code, and one list.
_TEXT_MAX_CHARS, _CODE_MAX_CHARS, _ATTEMPTS_MAX = 2000, 60_000, 12
_CALL_MAX_CHARS = 400


def text_of(text: str, recorded: PageData, limit: int = _TEXT_MAX_CHARS) -> str:
    """Return a text without secrets and control characters, cut at `limit`."""
    shown = visible(text)
    cut = shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
    return str(recorded.clean(cut).value)


def question_view(question: Question, recorded: PageData) -> dict[str, Any]:
    """Return the input, and the result of each plausible patch for it; a frame as a table too."""
    return {
        "number": question.number,
        "call": text_of(question.call, recorded, _CALL_MAX_CHARS),
        "tables": [
            {"name": visible(name), "text": text_of(table, recorded)}
            for name, table in question.tables.items()
        ],
        "choices": [
            {
                "text": text_of(choice.text, recorded, _CALL_MAX_CHARS),
                "table": text_of(choice.lines, recorded) if "\n" in choice.lines else "",
                "patches": choice.patches,
            }
            for choice in question.choices
        ],
    }


def consent_view(best: Attempt, base: str, recorded: PageData) -> dict[str, Any]:
    """Return the chosen patch: both codes, its verdict in the words of the screen, and what that does not say."""
    return {
        "number": best.number,
        "verdict": best.verdict,
        "words": VERDICTS[best.verdict].words,
        "tone": VERDICTS[best.verdict].tone,
        "means": told.meaning(best),
        "advisor": best.patch.advisor,
        "reason": text_of(best.patch.reason, recorded),
        "held": f"{best.passed} of {plain.count(best.total, 'check')} passed",
        "base": base[:_CODE_MAX_CHARS],
        "code": best.patch.code[:_CODE_MAX_CHARS],
    }


def cleaned(report: HealReport, recorded: PageData) -> HealReport:
    """Return the report with every text that came from a tool, a patch or a person sanitised."""

    def text(value: str) -> str:
        return text_of(value, recorded)

    attempts = {
        attempt.number: msgspec.structs.replace(
            attempt,
            patch=msgspec.structs.replace(attempt.patch, reason=text(attempt.patch.reason)),
            diff=str(recorded.clean(attempt.diff[:_CODE_MAX_CHARS]).value),
            why=text(attempt.why),
        )
        for attempt in report.attempts
    }
    questions = (
        Answered(text(one.call), tuple(map(text, one.choices)), one.answer and text(one.answer))
        for one in report.questions
    )
    return dataclasses.replace(
        report,
        reason=text(report.reason),
        diagnosis=text(report.diagnosis),
        attempts=tuple(attempts.values()),
        best=None if report.best is None else attempts[report.best.number],
        questions=tuple(questions),
        notes=tuple(map(text, report.notes)),
    )


def report_view(report: HealReport) -> dict[str, Any]:
    """Return a cleaned report for a page: outcome, facts, and every attempt with its verdict and its diff."""
    attempts = report.attempts[:_ATTEMPTS_MAX]
    return {
        "outcome": report.outcome,
        "tone": told.report_tone(report),
        "mark": told.report_mark(report),
        "title": told.report_title(report),
        "facts": [[name, value] for name, value in told.report_facts(report) if value],
        "best": None if report.best is None else report.best.number,
        "attempts": [_attempt(attempt) for attempt in attempts],
        "left": len(report.attempts) - len(attempts),
        "request_id": report.request_id,
        "run_id": report.run_id,
    }


def problem_view(error: Exception, recorded: PageData) -> dict[str, Any]:
    """Return why there was no healing, with its code and the next step."""
    return {
        name: value if name == "code" else text_of(value, recorded)
        for name, value in described(error).items()
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    verdict = VERDICTS[attempt.verdict]
    return {
        "number": attempt.number,
        "mark": verdict.mark,
        "tone": verdict.tone,
        "verdict": attempt.verdict,
        "words": verdict.words,
        "advisor": attempt.patch.advisor,
        "reason": attempt.patch.reason,
        "why": attempt.why,
        "diff": attempt.diff,
    }
