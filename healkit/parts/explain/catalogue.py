"""Failure catalogue: what matches a failure, and explains it.

The rows are data, in one file for each subject, such as `keys.toml`. The code of the fixes is in the module of the same
name, such as `keys.py`. A file contains:

- `[[failure]]`: a kind of failure, matched by its exception types and a regular expression on its message. Below it are
  its explanations (`[[failure.text]]`) and the names of the fixes to try (`fixes`).
- `[[facts]]`: sentences for facts that the live objects of a failure show. `healkit.parts.explain.facts` reads the
  objects and names the sentence.
- `[fix.NAME]`: a fix, with an example of the mistake and an example that only looks like it. `fixes.FIXES` has its
  code.

The subjects, and the rows in a file, go from the specific to the general. The last row explains any failure. Each row
has its own code that fails in that way, and the tests run it. If Python changes a message, a test names the row that no
longer matches. (`friendly-traceback` explains more kinds of failure. Its last release is of 2022, and it does not know
the messages of later Python versions.)
"""

from __future__ import annotations

import functools
import logging
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import EditKind
from healkit.errors import is_refused
from healkit.parts.explain.known_names import MOVED

_log = logging.getLogger(__name__)
Item = TypeVar("Item")

#: In this order; the first explanation that applies is shown.
SUBJECTS = (
    "endings", "plots", "arrow", "tables", "classes", "imports", "names", "attributes", "calls", "none_values", "keys",
    "operands", "lists", "formats", "files", "syntax", "wrong_results", "general",
)  # fmt: skip
#: In the place of an exception type: the tool returns, and the result is wrong.
NO_EXCEPTION = "no exception"
#: The kinds that a diagnosis tells apart.
Kind = Literal[
    "syntax", "import", "name", "attribute", "key", "path", "type", "value", "zero", "index", "assertion",
    "wrong_value", "timeout", "memory", "crash", "arguments", "limits", "other",
]  # fmt: skip
#: The message of a missing name; the notebook's cards know where a cell got the name before.
NOT_DEFINED = r"name '(?P<name>\w+)' is not defined"


# Rows


class ExplanationText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sentences that explain a pattern's failures, with placeholders.

    name: Unique in the catalogue.
    what, why, hint, fix: The steps. Placeholders are the named groups of the pattern's message, `{ename}`, `{message}`,
        `{near}` (names similar to the missing one) and the facts of `[[facts]]`. A sentence is left out if the failure
        has no value for one of its placeholders.
    near: Used only if there are similar names.
    only: A narrower regular expression, for a part of the pattern's messages.
    claim: What the sentences assume beyond the message, such as `dict or Series` or `pandas`; `message` for nothing. It
        is an expression over two things: the types of the values in the failing statement, and the packages that the
        failure went through. The row is skipped if the values contradict it.
    example: Code that fails in this way; the tests run it and expect this explanation.
    edits: The changes that `fix` describes, likeliest first. Each is a piece of the failing statement and its
        replacement, with the same placeholders. Healing tries them.
    kind: What the edits do to the meaning.
    fixes: Names of fixes for changes that need code (`[fix.NAME]`). The first possible change is shown as code.
    """

    name: str
    what: str
    why: str = ""
    hint: str = ""
    fix: str = ""
    near: bool = False
    only: str = ""
    claim: str = "message"
    example: str = ""
    edits: tuple[tuple[str, str], ...] = ()
    kind: EditKind | Literal[""] = ""
    fixes: tuple[str, ...] = ()


class FailurePattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"texts": "text"}):
    """A kind of failure.

    raises: Exception types by their bare names, or codes of `healkit.errors`; empty for any.
    message: A regular expression to search for in the message.
    texts: The first text that applies is shown. Without one, a later, more general pattern explains the failure.
    fixes: The fixes of every matching pattern propose changes.
    kind: The kind in a diagnosis, if this pattern decides it.
    no_fix: One sentence that says why no change of the code helps. For an exception, it says what has to change outside
        the code. Empty if the code is the cause.
    """

    raises: tuple[str, ...] = ()
    message: str = ""
    texts: tuple[ExplanationText, ...] = ()
    fixes: tuple[str, ...] = ()
    kind: Kind | None = None
    no_fix: str = ""


class FixExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broken tool, its failing arguments, and one result of the fix ("" for none).

    right: The declared result for these arguments, if it matters.
    """

    before: str
    after: str = ""
    arguments: dict[str, Any] = {}
    right: Any = None


class FixRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that proposes changes for a pattern's failures.

    mistake: The mistake in a few words.
    only: A narrower regular expression, for a part of the pattern's messages.
    priority: How likely its first proposal is right, from 0 to 1; it orders the patches of different fixes.
    kind: What its edits do to the meaning; the resulting code is checked for it.
    example: A tool that it fixes.
    lookalike: A tool with the same failure but another mistake; the fix must propose nothing for it.
    """

    mistake: str
    priority: float
    kind: EditKind
    example: FixExample
    lookalike: FixExample
    only: str = ""


class Subject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows of one file."""

    failure: tuple[FailurePattern, ...] = ()
    facts: tuple[ExplanationText, ...] = ()
    fix: dict[str, FixRow] = {}


@functools.cache
def subjects() -> dict[str, Subject]:
    """Read all rows, when the first failure happens."""
    modules = (name for name in sys.stdlib_module_names if not name.startswith("_"))
    abbreviations = "|".join(sorted(("np", "pd", "plt", "sns", "dt", *modules)))
    by_name = {}
    moved = [key.rpartition(".") for key in MOVED]
    gone = "|".join(f"module '{m}' has no attribute '{n}'|name '{n}' from '{m}'" for m, _, n in moved)
    for name in SUBJECTS:
        text = Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")
        by_name[name] = msgspec.convert(
            tomllib.loads(text.replace("‹modules›", abbreviations).replace("‹moved›", gone)), Subject
        )
    return by_name


def patterns() -> list[FailurePattern]:
    """Return all patterns, in order."""
    return [pattern for subject in subjects().values() for pattern in subject.failure]


@functools.cache
def _facts() -> dict[str, ExplanationText]:
    return {text.name: text for subject in subjects().values() for text in subject.facts}


def facts_text(failure: Failure) -> ExplanationText | None:
    """Return the sentences for what the objects of a failure show; None where they show nothing."""
    return _facts().get(failure.facts.get("about", ""))


@functools.lru_cache(maxsize=256)
def _patterns_for(label: str) -> tuple[FailurePattern, ...]:
    """Return the patterns for an exception type or a code, in order."""
    return tuple(pattern for pattern in patterns() if not pattern.raises or label in pattern.raises)


#: Compiled when first used: a failure needs a few of them.
_compiled = functools.cache(functools.partial(re.compile, flags=re.DOTALL))


def searched(expression: str, message: str) -> re.Match[str] | None:
    """Search a failure's message for a row's regular expression."""
    return _compiled(expression).search(message)


def matching(label: str, message: str) -> Iterator[tuple[FailurePattern, re.Match[str]]]:
    """Yield the patterns for an exception type or a code, each with its match of the message."""
    for pattern in _patterns_for(label):
        if (match := searched(pattern.message, message)) is not None:
            yield pattern, match


def spared(items: Iterable[Item], row: str) -> Iterator[Item]:
    """Yield the results of a row until it raises, so that an error in one row does not affect the others."""
    try:
        yield from items
    except Exception:  # noqa: BLE001 - a row of the catalogue reads foreign code and messages
        _log.debug("the row %s of the failure catalogue raises", row, exc_info=True)


# Questions of a diagnosis


def failure_kind(failure: Failure) -> Kind:
    """Return the kind of a failure; `other` where no pattern decides it."""
    ended = (pattern.kind for pattern in _patterns_for(failure.code) if pattern.raises)
    raised = (pattern.kind for pattern, _ in matching(bare(failure.ename), failure.evalue))
    kinds = [*ended, *(() if is_refused(failure.code) else raised)]
    return next(filter(None, kinds), "other")


def no_fix(failure: Failure) -> str:
    """Return why no change of the code helps against a failure; empty where one may."""
    reasons = (pattern.no_fix for pattern in _patterns_for(failure.code) if pattern.raises)
    return next(filter(None, reasons), "")


def outside(failure: Failure) -> str:
    """Say what has to change outside the code: a file, a grant, a package; empty if the code may be wrong.

    The code may still be wrong, for example a misspelt file name. The fixes of the catalogue know such mistakes.
    """
    if failure.code != "TOOL_EXCEPTION":
        return ""
    remedies = (pattern.no_fix for pattern, _ in matching(bare(failure.ename), failure.evalue))
    return next(filter(None, remedies), "")


def bare(ename: str) -> str:
    """Return the name of an exception type without its module."""
    return ename.rpartition(".")[2]
