"""Errors in the words of the face that shows them.

An error states its next step in Python, since any caller of `Healkit` may get it. A terminal or a magic needs the same
step in its own syntax. A phrase that is not in the table is not changed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from healkit.core.rendering.execution_card import Face
from healkit.errors import (
    ArgumentsInvalid,
    AuditError,
    ConfigError,
    HealkitError,
    LogFileError,
    RunFolderError,
    UsageInvalid,
    VaultError,
    ViewError,
)


class _Said(NamedTuple):
    python: str
    terminal: str
    notebook: str


_TABLE = tuple(
    (re.compile(phrase.python), phrase)
    for phrase in (
        _Said(r"hk\.views\.list\(\)", "healkit views", "%views"),
        _Said(r"hk\.views\.remove\('(\S+)'\)", r"healkit views remove \1", r"\g<0>"),
        _Said(r"hk\.views\.remove\b(?!\()", "healkit views remove NAME", r"\g<0>"),
        _Said(r"hk\.views\.put\b(?!\()", "hk.views.put, in Python", r"\g<0>"),
        _Said(r"hk\.requests\.list\(\)", "healkit requests", "%healkit requests"),
        _Said(r"hk\.undo\('(\S+)'\)", r"healkit vault undo \1", r"%vault undo \1"),
        _Said(r"hk\.executions\(status='FAILURE'\)", "healkit errors", "%executions --status FAILURE"),
        _Said(r"hk\.executions\(\)", "healkit log", "%executions"),
        _Said(r"hk\.vault\.list\(\)", "healkit vault list", "%vault list"),
        _Said(
            r"hk\.vault\.add\(name, code\) adds a tool, and hk\.seed\(\) adds samples",
            "healkit vault add NAME FILE adds a tool, and healkit seed adds samples",
            "%%tool NAME above a function adds it",
        ),
        _Said(r"(?:hk\.)?vault\.add\(name, code\)", "healkit vault add NAME FILE", "%%tool NAME"),
        _Said(
            r"(?:hk\.)?vault\.add\('(\S+?)', code, persona=…\)",
            r"healkit vault add \1 FILE --persona PERSONA",
            r"%%tool \1 --persona PERSONA",
        ),
        _Said(
            r"(?:hk\.)?vault\.patch\('(\S+?)', code, reason=…\)", r"healkit vault patch \1 FILE", r"%%tool \1"
        ),
        _Said(r"(?:hk\.)?vault\.set_grants\('(\S+?)', …\)", r"healkit vault grant \1", r"%vault grant \1"),
        _Said(
            r"(?:hk\.)?vault\.restore\('(\S+?)', persona='(\S+?)'\)",
            r"healkit vault restore \1 --persona \2",
            r"%vault restore \1 --persona \2",
        ),
        _Said(r"(?:hk\.)?vault\.restore\('(\S+?)'\)", r"healkit vault restore \1", r"%vault restore \1"),
        _Said(
            r"hk\.execute\('(\S+?)', arguments=\{…\}\)",
            r"healkit run \1 --args '{…}'",
            r"%run_tool \1 --args '{…}'",
        ),
        _Said(
            r"hk\.vault\.add_example\('(\S+?)', \{…\}\)",
            r"""healkit vault examples \1 --add '{"arguments": {…}, "result": …}'""",
            r"\g<0>",
        ),
        _Said(
            r"hk\.run\(\), hk\.execute\(…, record=True\) or healkit run TOOL --record",
            "healkit run TOOL --record",
            "%run_tool TOOL --record",
        ),
        _Said(
            r"Give older_than=… \(days\) or keep=… \(rows\), or set retention_days or retention_rows",
            "Write healkit log prune --older-than 90d, or healkit log prune --keep 10000",
            r"\g<0>",
        ),
        _Said(r"draft=True", "--draft", "--draft"),
        _Said(r"tools=\['by_region'\]", "--tools by_region", "--tools by_region"),
        _Said(r"parent=(\d+)", r"--parent \1", r"\g<0>"),
        # Steps only for a terminal, because Python users have one too.
        _Said(r"(?<![%\w])healkit (doctor|status|requests)\b", r"\g<0>", r"%healkit \1"),
    )
)


def rephrased(text: str, face: Face) -> str:
    """Return the text with each next step in the syntax of that face."""
    for pattern, phrase in _TABLE:
        text = pattern.sub(phrase.terminal if face == "terminal" else phrase.notebook, text)
    return text


#: Errors of a wrongly typed line; all others have other causes.
_OF_A_LINE = (
    UsageInvalid,
    ArgumentsInvalid,
    ConfigError,
    VaultError,
    ViewError,
    LogFileError,
    AuditError,
    RunFolderError,
)


def rephrase(error: HealkitError, face: Face, command: str) -> None:
    """Rephrase an error for that face; if a wrongly typed line has no next step, it becomes the command's help.

    command: The command or magic that was typed.
    """
    error.message, error.hint = rephrased(error.message, face), rephrased(error.hint, face)
    text = f"{error.message} {error.hint}"
    lead = "healkit " if face == "terminal" else "%"
    if isinstance(error, _OF_A_LINE) and lead not in text and "Did you mean" not in text:
        end = "" if not error.hint or error.hint.rstrip().endswith((".", "?", ":", "}")) else "."
        error.hint = f"{error.hint}{end} {command} --help shows what it takes.".lstrip()
