"""Command that heals a tool: heal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from healkit import options
from healkit.cli.command import (
    CODE,
    INTERRUPTED,
    OK,
    PERSONA,
    TOOL_FAILED,
    DbOption,
    JsonOption,
    PersonaOption,
    open_healkit,
    print_json,
    put,
    say,
    typed,
)
from healkit.errors import UsageInvalid
from healkit.parsing import ANSWER_PROMPT, DECISION_PROMPT, parse_decision, split_label
from healkit.plain_files import temporary_folder
from healkit.plain_text import untick

if TYPE_CHECKING:
    from healkit.contracts.healing import Attempt
    from healkit.healing.advisor import Advisor, Case
    from healkit.healing.questions import Answer, Question
    from healkit.healing.report import HealReport


def heal(
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    persona: PersonaOption = PERSONA,
    advisors: Annotated[str | None, typed(options.ADVISORS)] = None,
    budget: Annotated[float | None, typed(options.BUDGET)] = None,
    auto: Annotated[bool, typed(options.AUTO)] = False,
    dry_run: Annotated[bool, typed(options.DRY_RUN)] = False,
    log_id: Annotated[int | None, typed(options.LOG_ID)] = None,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Look for a patch of a failing tool, and keep it with your consent. Exit 0: kept, or nothing to fix; 1: not."""
    name, in_label, _ = split_label(tool)
    alone = as_json or not sys.stdin.isatty()
    with open_healkit(db, create=False) as healkit:
        report = healkit.heal(
            name,
            in_label or persona,
            advisors=None if advisors is None else _advisors(advisors, alone=alone),
            auto=auto,
            budget_s=budget,
            log_id=log_id,
            dry_run=dry_run,
            ask=None if alone else _ask,
            confirm=None if alone else _confirm,
            progress=None if as_json else lambda sentence: say(f"· {untick(sentence)}"),
        )
    if as_json:
        print_json(report_json(report), exact=CODE)
    else:
        put(str(report))
    if report.outcome == "stopped":
        return INTERRUPTED
    return OK if report.ok else TOOL_FAILED


def report_json(report: HealReport) -> dict[str, Any]:
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
        "diff": best.diff if best is not None else "",
        "attempts": [msgspec.to_builtins(attempt) for attempt in report.attempts],
    }


def _advisors(text: str, *, alone: bool) -> list[str | Advisor]:
    """Read the advisors' names; `person` is an editor, which needs a person at the terminal."""
    found: list[str | Advisor] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name != "person":
            found.append(name)
            continue
        if alone:
            raise UsageInvalid(
                "This terminal is not interactive, so code cannot be edited here.", hint="Leave out `person`."
            )
        from healkit.healing.advisors.simple import PersonAdvisor

        found.append(PersonAdvisor(_edit))
    return found


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


def _ask(question: Question) -> Answer | None:
    """Ask on the terminal; a number chooses, other text is the value itself, and an empty line is no answer."""
    from healkit.healing.questions import answer_of
    from healkit.rendering.healing import question_text

    say(f"\n{question_text(question.call, (choice.lines for choice in question.choices), question.tables)}")
    return answer_of(question, typer.prompt(ANSWER_PROMPT, default="", show_default=False, err=True))


def _confirm(best: Attempt) -> bool | None:
    from healkit.rendering.healing import consent_text

    say(f"\n{consent_text(best)}")
    return parse_decision(typer.prompt(DECISION_PROMPT, default="l", err=True))
