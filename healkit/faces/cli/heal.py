"""Command that heals a tool: heal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from healkit.core.plain_files import temporary_folder
from healkit.errors import UsageInvalid
from healkit.faces.cli.command import INTERRUPTED, say
from healkit.faces.commands import options
from healkit.faces.commands.options import word
from healkit.faces.commands.parsing import (
    ANSWER_PROMPT,
    DECISION_PROMPT,
    parse_decision,
    split_commas,
    split_label,
)
from healkit.faces.commands.table import CODE, FAILED, OK, Answer, Command, Json
from healkit.plain_text import untick

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.parts.heal.advisor import Advisor, Case
    from healkit.parts.heal.questions import Answer as PersonsAnswer
    from healkit.parts.heal.questions import Question
    from healkit.parts.heal.records import Attempt
    from healkit.parts.heal.report import HealReport


def heal(
    healkit: Healkit,
    tool: Annotated[tuple[str, str | None, int | None], word("the tool's name", read=split_label)],
    persona: Annotated[str, options.PERSONA] = "default",
    advisors: Annotated[str | None, options.ADVISORS] = None,
    budget: Annotated[float | None, options.BUDGET] = None,
    auto: Annotated[bool, options.AUTO] = False,
    dry_run: Annotated[bool, options.DRY_RUN] = False,
    log_id: Annotated[int | None, options.LOG_ID] = None,
    live: Annotated[str | None, options.LIVE] = None,
    files: Annotated[str | None, options.FILES] = None,
    *,
    as_json: bool,
) -> Answer:
    """Look for a patch of a failing tool, and keep it with your consent. Exit 0: kept, or nothing to fix; 1: not."""
    alone = as_json or not sys.stdin.isatty()
    report = healkit.heal(
        tool[0],
        tool[1] or persona,
        advisors=None if advisors is None else _advisors(advisors, alone=alone),
        auto=auto,
        budget_s=budget,
        log_id=log_id,
        dry_run=dry_run,
        live=split_commas(live or ""),
        files=split_commas(files or ""),
        ask=None if alone else _ask,
        confirm=None if alone else _confirm,
        progress=None if as_json else lambda sentence: say(f"· {untick(sentence)}"),
    )
    code = OK if report.ok else FAILED
    return Answer(
        lambda: str(report),
        lambda: report_json(report),
        exact=CODE,
        exit_code=INTERRUPTED if report.outcome == "stopped" else code,
    )


COMMANDS = {"heal": Command(heal)}


def report_json(report: HealReport) -> Json:
    """Return the report of a healing as JSON."""
    best = report.best
    return {
        "tool_name": report.tool_name,
        "persona": report.persona,
        "outcome": report.outcome,
        "reason": report.reason,
        "diagnosis": report.diagnosis,
        "verdict": best.verdict if best is not None else None,
        "revision": report.revision,
        "request_id": report.request_id,
        "run_id": report.run_id,
        "duration_s": round(report.duration_s, 3),
        "think_time_s": round(report.think_time_s, 3),
        "candidates_tried": report.candidates_tried,
        "cost": report.cost,
        "notes": list(report.notes),
        "calls_answered": report.calls_answered,
        "calls_live": report.calls_live,
        "diff": best.diff if best is not None else "",
        "attempts": [msgspec.to_builtins(attempt) for attempt in report.attempts],
    }


def _advisors(text: str, *, alone: bool) -> list[str | Advisor]:
    """Read the advisors' names; `person` is an editor, which needs a person at the terminal."""
    advisors: list[str | Advisor] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name != "person":
            advisors.append(name)
            continue
        if alone:
            raise UsageInvalid(
                "This terminal is not interactive, so code cannot be edited here.", hint="Leave out `person`."
            )
        from healkit.parts.heal.advisors.simple import PersonAdvisor

        advisors.append(PersonAdvisor(_edit))
    return advisors


def _edit(case: Case, code: str, problem: str) -> str | None:
    if problem and not typer.confirm(f"Not yet: {problem} Edit again?", default=True, err=True):
        return None
    return _edited(code, ".sql" if case.entry.type == "sql" else ".py")


def _edited(code: str, suffix: str) -> str | None:
    """Open the code in the user's editor; return it as it was saved, or None where it was not."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="healkit-edit-", dir=temporary_folder()) as folder:
        file = Path(folder) / f"tool{suffix}"
        file.write_text(code)
        os.utime(file, (0, 0))  # so that a save within the clock's grain is seen too
        try:
            done = subprocess.run([*shlex.split(editor), str(file)], check=False)
        except (OSError, ValueError) as error:
            raise UsageInvalid(
                f"The editor {editor!r} cannot be started: {error}.", hint="Set EDITOR."
            ) from None
        saved = done.returncode == 0 and file.is_file() and file.stat().st_mtime > 0
        return file.read_text() if saved else None


def _ask(question: Question) -> PersonsAnswer | None:
    """Ask on the terminal; a number chooses, other text is the value itself, and an empty line is no answer."""
    from healkit.parts.heal.questions import answer_of
    from healkit.parts.heal.render import question_text

    say(f"\n{question_text(question.call, (choice.lines for choice in question.choices), question.tables)}")
    return answer_of(question, typer.prompt(ANSWER_PROMPT, default="", show_default=False, err=True))


def _confirm(best: Attempt) -> bool | None:
    from healkit.parts.heal.render import consent_text

    say(f"\n{consent_text(best)}")
    return parse_decision(typer.prompt(DECISION_PROMPT, default="l", err=True))
