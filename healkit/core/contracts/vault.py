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
#: Those in force for a tool of an untrusted database, whatever is stored there.
UNTRUSTED_GRANTS = Grants(calls=())
#: The persona whose entry serves a persona that has none of its own.
DEFAULT_PERSONA = "default"
#: Characters of the first line of code in an entry's `repr`.
REPR_CODE_CHARS = 120


@dataclasses.dataclass(frozen=True, repr=False)
class VaultEntry:
    """Revision of a tool for a persona, ready to run.

    `code` has the hash `code_hash`, checked when it was read. `removed_at`: a removed tool can be read, not run.
    `flags` are the owner's switches
    (`side_effects`, `log`), `derived`: which of `input_schema`, `description` and `examples` were read off the code
    and follow it, and `removed_grants`: stored ones that healkit no longer has; such a tool is shown and not run.
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
        """True when it may change something that lasts: declared to have side effects, or granted to write."""
        return bool(self.flags.get("side_effects") or self.grants.write)

    @property
    def logged(self) -> bool:
        """True when its arguments, output and result go on record; that it ran always does."""
        return self.flags.get("log", True) is not False

    def __repr__(self) -> str:
        """Say which entry it is, with the first line of its code."""
        first = next((" ".join(line.split()) for line in self.code.splitlines() if line.strip()), "")
        first = first if len(first) <= REPR_CODE_CHARS else f"{first[: REPR_CODE_CHARS - 1]}…"
        return f"<VaultEntry {self.label}: {first!r}>"


@dataclasses.dataclass(frozen=True)
class CodeChange:
    """Other code for a tool, and where it comes from.

    parent: the number of the revision that it was made from; None is the active one. motivating_log_id: the failure
    that it answers. draft: it gets a number, but the active revision stays. grants: changed along with the code.
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
    """Line of a tool's history; `runs` and `failures` count its finished executions."""

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
    """Renaming, removal or return of a tool: `kind` is `renamed`, `removed`, `restored` or `added` (again)."""

    kind: str
    persona: str
    old_name: str
    new_name: str
    reason: str
    changed_at: datetime


@dataclasses.dataclass(frozen=True)
class Blame:
    """Revisions that brought a failure in and took it out: numbers, None where unknown.

    first_failed: the first to fail with that fingerprint, in which log row and when. last_good: the newest
    one before it that succeeded and never failed so; else that one itself, if it succeeded in other runs.
    last_cured_by: the first one after the last such failure that passed with arguments for which it is on record; None
    while none has. count: how often it failed so; 0 when it never did.
    """

    fingerprint: str = ""
    first_failed: int | None = None
    first_failed_log_id: int | None = None
    first_failed_at: datetime | None = None
    last_good: int | None = None
    last_cured_by: int | None = None
    last_failed_at: datetime | None = None
    count: int = 0


# Examples of a tool: what a call of it has to do, as data.
#
# Three forms. `{"arguments": {…}, "result": …}`: the right result for these arguments. `{"arguments": {…}, "raises":
# "ValueError"}`: the right exception. `{"call": "…"}` with either: Python source beside the tool's code, statements and
# a last expression, for what arguments alone cannot say. With neither result nor raises, the tool only has to return.


_PARTS = ("arguments", "call", "result", "raises")
_SHOWN_CHARS = 80
_HINT = (
    'Write {"arguments": {…}, "result": …}, {"arguments": {…}, "raises": "ValueError"}, or "call": "…" in place of '
    "the arguments."
)


def checked_examples(examples: Iterable[Any], *, sql: bool = False) -> list[dict[str, Any]]:
    """Return the examples as they are; raise `ExamplesInvalid` for the first bad one, by number."""
    if isinstance(examples, str | Mapping):
        raise ExamplesInvalid(f"The examples must be a list, not a {type(examples).__name__}.", hint=_HINT)
    checked = []
    for number, example in enumerate(examples, 1):
        if why := _wrong(example, sql):
            raise ExamplesInvalid(f"Example {number}, {_shown(example)}: {why}.", hint=_HINT)
        checked.append(dict(example))
    return checked


def _wrong(example: object, sql: bool) -> str:
    """Return the fault of one example, or an empty text."""
    if not isinstance(example, Mapping):
        return f"it is a {type(example).__name__}, not a dict"
    for name in example:
        if name not in _PARTS:
            return f"{name!r} is no part of an example.{did_you_mean(str(name), _PARTS)}".removesuffix(".")
    if ("arguments" in example) == ("call" in example):
        return "it needs either arguments or a call, and not both"
    if "result" in example and "raises" in example:
        return "it cannot both return and raise"
    if "arguments" in example:
        arguments = example["arguments"]
        if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
            return "its arguments are no dict of names and values"
    elif sql:
        return "a SQL tool has no Python for a call to be beside; give it arguments"
    elif why := _wrong_call(example["call"], valued="result" in example):
        return why
    raises = example.get("raises", "Exception")
    if not isinstance(raises, str) or not all(part.isidentifier() for part in raises.split(".")):
        return f"raises={raises!r} is no exception's name"
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
    """Return the diff with a line end on each line, even if the code's last line has none; empty for equal codes."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old_label, new_label, lineterm="")
    return "".join(f"{line}\n" for line in lines)
