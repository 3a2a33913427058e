"""Tools in the vault: entry, history, examples."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from healkit.core.contracts.execution import Grants
from healkit.core.contracts.tools import EntryRef
from healkit.errors import ExamplesInvalid, did_you_mean

NO_GRANTS = Grants()
#: Grants of every tool in an untrusted database, whatever is stored there.
UNTRUSTED_GRANTS = Grants(calls=())
#: Persona whose entry is used if the requested persona has no entry of its own.
DEFAULT_PERSONA = "default"
#: Maximum length of the first line of code in an entry's `repr`, in characters.
REPR_CODE_CHARS = 120


@dataclasses.dataclass(frozen=True, repr=False)
class VaultEntry:
    """Revision of a tool for a persona, ready to run.

    code, code_hash: The code and its hash, which was checked on reading.
    removed_at: Time of removal; a removed tool can be read, but not run.
    flags: The owner's switches `side_effects` and `log`. `derived` lists which of `input_schema`, `description` and
        `examples` come from the code and change with it. `removed_grants` lists stored grants that healkit no longer
        supports; such a tool is shown, but does not run.
    """

    tool_name: str
    persona: str
    revision: int
    code: str
    code_hash: str
    type: str = "python"
    description: str = ""
    input_schema: dict[str, Any] = dataclasses.field(default_factory=dict)
    grants: Grants = NO_GRANTS
    examples: list[Any] = dataclasses.field(default_factory=list)
    flags: dict[str, Any] = dataclasses.field(default_factory=dict)
    group: str = ""
    draft: bool = False
    removed_at: datetime | None = None

    @property
    def ref(self) -> EntryRef:
        """Reference to this code, for a worker and for the log."""
        return EntryRef(self.tool_name, self.persona, self.revision, self.code_hash)

    @property
    def label(self) -> str:
        """Name and revision: `fibonacci v2`, or `fibonacci v2 (teacher)`."""
        return self.ref.label

    @property
    def acts(self) -> bool:
        """True if it may have lasting effects: it is declared to have side effects, or may write."""
        return bool(self.flags.get("side_effects") or self.grants.write)

    @property
    def logged(self) -> bool:
        """True if its arguments, output and result are logged; the execution itself is always logged."""
        return self.flags.get("log", True) is not False

    def __repr__(self) -> str:
        """Name the entry and show the first line of its code."""
        first = next((" ".join(line.split()) for line in self.code.splitlines() if line.strip()), "")
        first = first if len(first) <= REPR_CODE_CHARS else f"{first[: REPR_CODE_CHARS - 1]}…"
        return f"<VaultEntry {self.label}: {first!r}>"


@dataclasses.dataclass(frozen=True)
class CodeChange:
    """New code for a tool, and its origin.

    parent: Number of the revision that it is based on; None is the active one.
    motivating_log_id: Row of the failure that it responds to.
    draft: The code gets a number, but the active revision does not change.
    grants: New grants, changed together with the code.
    """

    code: str
    author: str = "person"
    reason: str = ""
    parent: int | None = None
    motivating_log_id: int | None = None
    draft: bool = False
    grants: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class RevisionInfo:
    """Revision in a tool's history; `runs` and `failures` count its finished executions."""

    number: int
    parent: int | None
    author: str
    reason: str
    created_at: datetime
    code_hash: str
    draft: bool
    active: bool
    runs: int
    failures: int
    motivating_log_id: int | None = None


@dataclasses.dataclass(frozen=True)
class NameChange:
    """Change of a tool's name: `kind` is `renamed`, `removed`, `restored` or `added` (again)."""

    kind: str
    persona: str
    old_name: str
    new_name: str
    reason: str
    changed_at: datetime


@dataclasses.dataclass(frozen=True)
class Blame:
    """Revisions that introduced and fixed a failure; a number is None if unknown.

    first_failed: First revision that failed with that fingerprint, with its log row and time.
    last_good: Newest earlier revision that succeeded and never failed in this way. Otherwise `first_failed` itself, if
        it succeeded in other executions.
    last_cured_by: First revision after the last such failure that passed with recorded arguments of the failure.
    count: How often it failed in this way; 0 if never.
    """

    fingerprint: str = ""
    first_failed: int | None = None
    first_failed_log_id: int | None = None
    first_failed_at: datetime | None = None
    last_good: int | None = None
    last_cured_by: int | None = None
    last_failed_at: datetime | None = None
    count: int = 0


# Examples of a tool: the required result of a call, as data.
#
# There are three forms. `{"arguments": {…}, "result": …}` gives the right result for these arguments. `{"arguments":
# {…}, "raises": "ValueError"}` gives the right exception. `{"call": "…"}`, with a result or an exception, covers what
# arguments alone cannot express: Python source beside the tool's code, statements and a last expression. Without
# `result` and `raises`, the tool only has to return.


_PARTS = ("arguments", "call", "result", "raises")
_SHOWN_CHARS = 80
_HINT = (
    'Write {"arguments": {…}, "result": …}, {"arguments": {…}, "raises": "ValueError"}, or "call": "…" in place of '
    "the arguments."
)


def checked_examples(examples: Iterable[Any], *, sql: bool = False) -> list[dict[str, Any]]:
    """Return the examples unchanged; raise `ExamplesInvalid` for the first bad one, by number."""
    if isinstance(examples, str | Mapping):
        raise ExamplesInvalid(f"The examples must be a list, not a {type(examples).__name__}.", hint=_HINT)
    checked = []
    for number, example in enumerate(examples, 1):
        if why := _wrong(example, sql):
            raise ExamplesInvalid(f"Example {number}, {_shown(example)}: {why}.", hint=_HINT)
        checked.append(dict(example))
    return checked


def _wrong(example: object, sql: bool) -> str:
    """Return the error in one example; empty if it is valid."""
    if not isinstance(example, Mapping):
        return f"it is a {type(example).__name__}, not a dict"
    for name in example:
        if name not in _PARTS:
            return f"{name!r} is not part of an example.{did_you_mean(str(name), _PARTS)}".removesuffix(".")
    if ("arguments" in example) == ("call" in example):
        return "it needs either arguments or a call, and not both"
    if "result" in example and "raises" in example:
        return "it cannot both return and raise"
    if "arguments" in example:
        arguments = example["arguments"]
        if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
            return "its arguments are not a dict of names and values"
    elif sql:
        return "a SQL tool has no Python for a call to be beside; give it arguments"
    elif why := _wrong_call(example["call"], valued="result" in example):
        return why
    raises = example.get("raises", "Exception")
    if not isinstance(raises, str) or not all(part.isidentifier() for part in raises.split(".")):
        return f"raises={raises!r} is not the name of an exception"
    return ""


def _wrong_call(call: object, *, valued: bool) -> str:
    if not isinstance(call, str):
        return f"its call is a {type(call).__name__}, not Python source"
    try:
        body = ast.parse(call).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"its call does not parse ({getattr(error, 'msg', None) or error})"
    if not body:
        return "its call is empty"
    if valued and not isinstance(body[-1], ast.Expr):
        return "its call does not end in an expression, so it has no result"
    return ""


def _shown(example: object) -> str:
    text = (
        json.dumps(example, ensure_ascii=False, default=repr)
        if isinstance(example, Mapping)
        else repr(example)
    )
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def unified_diff(before: str, after: str, old_label: str, new_label: str) -> str:
    """Return the diff, in which every line ends with a line break, even the code's last; empty for equal codes."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old_label, new_label, lineterm="")
    return "".join(f"{line}\n" for line in lines)
