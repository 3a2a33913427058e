"""Commands that heal: heal, check, requests."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from healkit.commands import options
from healkit.commands.options import Option, word
from healkit.commands.parsing import (
    ANSWER_PROMPT,
    DECISION_PROMPT,
    parse_decision,
    split_commas,
    split_label,
)
from healkit.commands.table import (
    CODE,
    DB,
    FAILED,
    INTERRUPTED,
    OK,
    Answer,
    Command,
    Group,
    Json,
    Terminal,
    wrong,
)
from healkit.core.contracts.tools import revision_address, revision_label
from healkit.core.plain_files import temporary_folder
from healkit.errors import DatabaseMissing, UsageInvalid
from healkit.parts.heal import render_requests
from healkit.plain_text import untick

if TYPE_CHECKING:
    from healkit.parts.heal.advisor import Advisor, Case
    from healkit.parts.heal.questions import Answer as PersonsAnswer
    from healkit.parts.heal.questions import Question
    from healkit.parts.heal.records import Attempt, PatchRequest
    from healkit.parts.heal.report import HealReport
    from healkit.services import Services


def heal(
    services: Services,
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
    terminal: Terminal,
) -> Answer:
    """Look for a patch of a failing tool, and keep it with your consent. Exit 0: kept, or nothing to fix; 1: not."""
    alone = as_json or not sys.stdin.isatty()
    report = services.heal(
        tool[0],
        tool[1] or persona,
        advisors=None if advisors is None else _advisors(advisors, terminal, alone=alone),
        auto=auto,
        budget_s=budget,
        log_id=log_id,
        dry_run=dry_run,
        live=split_commas(live or ""),
        files=split_commas(files or ""),
        ask=None if alone else lambda question: _ask(question, terminal),
        confirm=None if alone else lambda best: _confirm(best, terminal),
        progress=None if as_json else lambda sentence: terminal.say(f"· {untick(sentence)}"),
    )
    code = OK if report.ok else FAILED
    return Answer(
        lambda: str(report),
        lambda: report_json(report),
        exact=CODE,
        exit_code=INTERRUPTED if report.outcome == "stopped" else code,
    )


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


def _advisors(text: str, terminal: Terminal, *, alone: bool) -> list[str | Advisor]:
    """Read the advisors' names; `person` is an editor, which needs a person at the terminal."""
    advisors: list[str | Advisor] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name != "person":
            advisors.append(name)
            continue
        if alone:
            raise UsageInvalid(
                "This terminal is not interactive, so you cannot edit code here.", hint="Leave out `person`."
            )
        from healkit.parts.heal.advisors.simple import PersonAdvisor

        advisors.append(PersonAdvisor(lambda case, code, problem: _edit(case, code, problem, terminal)))
    return advisors


def _edit(case: Case, code: str, problem: str, terminal: Terminal) -> str | None:
    if problem and not terminal.confirm(f"Not valid yet: {problem} Edit again?"):
        return None
    return _edited(code, ".sql" if case.entry.type == "sql" else ".py")


def _edited(code: str, suffix: str) -> str | None:
    """Open the code in the user's editor; return the saved text, or None if it was not saved."""
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


def _ask(question: Question, terminal: Terminal) -> PersonsAnswer | None:
    """Ask on the terminal; a number chooses, other text is the value itself, and an empty line is not an answer."""
    from healkit.parts.heal.questions import answer_of
    from healkit.parts.heal.render import question_text

    terminal.say(
        f"\n{question_text(question.call, (choice.lines for choice in question.choices), question.tables)}"
    )
    return answer_of(question, terminal.ask(ANSWER_PROMPT, "", shown=False))


def _confirm(best: Attempt, terminal: Terminal) -> bool | None:
    from healkit.parts.heal.render import consent_text

    terminal.say(f"\n{consent_text(best)}")
    return parse_decision(terminal.ask(DECISION_PROMPT, "l"))


_FORMS = ("text", "json", "github", "junit")


def _form(text: str) -> str:
    return text if text in _FORMS else wrong(f"--format {text!r} is not one of {', '.join(_FORMS)}.")


_READ = Option("read", "a path that cells may read, besides the notebook's folder", metavar="PATH", many=True)
_HEAL = Option(
    "heal", "look for a fix of each failing cell, and run the notebook with it", bool, default=False
)
_APPLY = Option(
    "apply",
    "write the fixes with which the notebook got further into its file (includes --heal)",
    bool,
    default=False,
)
_FORMAT = Option("format", "text, json, github (annotations) or junit (XML)", default="text", read=_form)
_TIMEOUT = options.TIMEOUT.replace(help="limit on wall time of a cell", default=600.0)


def check(
    notebooks: Annotated[list[str], word("notebooks to run", "NOTEBOOK")],
    heal: Annotated[bool, _HEAL] = False,
    apply: Annotated[bool, _APPLY] = False,
    timeout: Annotated[float, _TIMEOUT] = 600.0,
    read: Annotated[list[str] | None, _READ] = None,
    format: Annotated[str, _FORMAT] = "text",  # noqa: A002 - the option's name
    db: Annotated[str | None, DB] = None,
    *,
    as_json: bool,
    open_healkit: Callable[..., Any],
    terminal: Terminal,
) -> Answer:
    """Run notebooks in restricted kernels, from top to bottom. Exit 0: all ran; 1: something fails; 2: wrong call."""
    from healkit.parts.heal import render_check as rendered
    from healkit.parts.heal.notebook_check import NotebookCheck, written_by

    form, reports, data, all_ran = "json" if as_json else format, [], [], True
    progress = (lambda sentence: terminal.say(f"· {untick(sentence)}")) if sys.stderr.isatty() else None
    with _opened(db, open_healkit) as healkit:
        checks = [
            NotebookCheck(healkit.services, name, heal or apply, timeout, read or (), progress)
            for name in notebooks
        ]
        for notebook_check in checks:
            report = notebook_check.report()
            written = apply and written_by(report)
            all_ran &= report.outcome == "passed" or (written and report.outcome == "healed")
            reports.append(report)
            if form == "text":
                terminal.put(rendered.log_text(report, written=written))
            elif form == "github" and (lines := rendered.github(report)):
                terminal.put(lines)
            elif form == "json":
                data.append({**rendered.data(report), "written": written})
    if form == "json":
        terminal.print_json({"notebooks": data}, exact=(*CODE, "before"))
    elif form == "junit":
        terminal.put(rendered.junit(reports))
    return Answer(exit_code=OK if all_ran else FAILED)


@contextlib.contextmanager
def _opened(db: str | None, open_healkit: Callable[..., Any]) -> Iterator[Any]:
    """Open the database; if there is none, as on a machine for tests, one in memory."""
    with contextlib.ExitStack() as stack:
        try:
            healkit = open_healkit(db, create=False)
        except DatabaseMissing:
            if db is not None:
                raise
            healkit = open_healkit("sqlite://", create=True)
        yield stack.enter_context(healkit)


Number = Annotated[int, word("the request's number", "ID")]


def list_requests(
    services: Services,
    tool: Annotated[str | None, options.TOOL_FILTER] = None,
    pending: Annotated[bool, Option("pending", "only requests that are waiting")] = False,
    limit: Annotated[int, options.LIMIT] = 50,
) -> Answer:
    """List all requests: waiting ones first, then the decided ones, newest first."""
    requests = services.requests.list(tool, state="pending" if pending else None, limit=limit)
    return Answer(
        lambda: render_requests.requests(requests),
        lambda: [*map(_request_json, requests)],
        exact=CODE,
        table=True,
    )


def show_request(services: Services, number: Number, *, program: str) -> Answer:
    """Show one request in full, with its diff."""
    return _request_answer(services, services.requests.get(number), program)


def accept_request(services: Services, number: Number, *, program: str) -> Answer:
    """Make it the tool's next revision; refused if the tool has another one by now."""
    request = services.requests.accept(number)
    active = services.vault.get(request.tool_name, request.persona).revision
    name, persona = request.tool_name, request.persona
    became, now = (revision_label(name, persona, revision) for revision in (request.revision, active))
    by_now = f"; {now} is active by now" if active != request.revision else ""
    return _request_answer(services, request, program, f"Request {number} accepted: it is {became}{by_now}")


def decline_request(
    services: Services,
    number: Number,
    reason: Annotated[str, Option("reason", "the reason, which is kept with the request")] = "",
    *,
    program: str,
) -> Answer:
    """Decide against it; its code stays in the vault under its hash."""
    return _request_answer(
        services, services.requests.decline(number, reason), program, f"Request {number} declined"
    )


def _request_answer(services: Services, request: PatchRequest, program: str, said: str = "") -> Answer:
    """Show a request's card; a terminal says a decision in one sentence instead."""
    if program == "%":
        active = services.vault.get(request.tool_name, request.persona).revision
        return Answer(lambda: render_requests.request(request, active=active))
    card = None if said else lambda: render_requests.request(request, "terminal")
    return Answer(card, lambda: _request_json(request), said=said, exact=CODE)


def _request_json(request: PatchRequest) -> Json:
    address = revision_address(request.tool_name, request.persona, request.parent)
    return {"label": address, **msgspec.to_builtins(request)}


GROUP = Group(
    "Patches waiting for approval; without a command, the list.",
    {
        "list": Command(list_requests),
        "show": Command(show_request),
        "accept": Command(accept_request),
        "decline": Command(decline_request),
    },
)
COMMANDS = {"heal": Command(heal), "check": Command(check), "requests": GROUP}
