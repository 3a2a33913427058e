"""Command that checks notebooks: check."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from healkit.errors import DatabaseMissing
from healkit.faces.cli.command import print_json, put, say
from healkit.faces.commands import options
from healkit.faces.commands.options import Option, word
from healkit.faces.commands.table import CODE, DB, FAILED, OK, Answer, Command, open_healkit, wrong
from healkit.plain_text import untick

if TYPE_CHECKING:
    from healkit.app import Healkit

_FORMS = ("text", "json", "github", "junit")


def _form(text: str) -> str:
    return text if text in _FORMS else wrong(f"--format {text!r} is none of {', '.join(_FORMS)}.")


_READ = Option("read", "a path the cells may read, besides the notebook's folder", metavar="PATH", many=True)
_HEAL = Option(
    "heal", "look for a fix of each failing cell, and run the notebook with it", bool, default=False
)
_APPLY = Option("apply", "write the fixes with which the notebook ran on (--heal too)", bool, default=False)
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
) -> Answer:
    """Run notebooks in restricted kernels, from top to bottom. Exit 0: all ran; 1: something fails; 2: wrong call."""
    from healkit.parts.heal import render_check as rendered
    from healkit.parts.heal.notebook_check import NotebookCheck, written_by

    form, reports, data, all_ran = "json" if as_json else format, [], [], True
    progress = (lambda sentence: say(f"· {untick(sentence)}")) if sys.stderr.isatty() else None
    with _opened(db) as healkit:
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
                put(rendered.log_text(report, written=written))
            elif form == "github" and (lines := rendered.github(report)):
                put(lines)
            elif form == "json":
                data.append({**rendered.data(report), "written": written})
    if form == "json":
        print_json({"notebooks": data}, exact=(*CODE, "before"))
    elif form == "junit":
        put(rendered.junit(reports))
    return Answer(exit_code=OK if all_ran else FAILED)


@contextlib.contextmanager
def _opened(db: str | None) -> Iterator[Healkit]:
    """Open the database; where there is none, as on a machine for tests, one in memory."""
    with contextlib.ExitStack() as stack:
        try:
            healkit = open_healkit(db, create=False)
        except DatabaseMissing:
            if db is not None:
                raise
            healkit = open_healkit("sqlite://", create=True)
        yield stack.enter_context(healkit)


COMMANDS = {"check": Command(check)}
