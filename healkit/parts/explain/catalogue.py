"""Failure catalogue: what matches a failure, and explains it.

The rows are data, in one file a subject, such as `keys.toml`; the code of their fixes is in the module of the same name,
such as `keys.py`. Of a subject, a file has:

- `[[failure]]`: a kind of failure, by its exception types and a regular expression on its message. What is known of it
  stands below: how it is explained (`[[failure.text]]`), and which fixes are tried (`fixes`).
- `[[facts]]`: sentences for what the live objects of a failure show. `healkit.parts.explain.facts` reads that, and names the sentence.
- `[fix.NAME]`: a fix, with an example of the mistake and one that only looks like it. `fixes.FIXES` has its code.

The subjects, and the rows in a file, go from the particular to the general; the last row says what can be said of any
failure. Each row has code of its own that fails so, which the tests run: when Python changes a message, a test names
the row that no longer matches. (`friendly-traceback` explains more kinds of failure; its last release is of 2022 and it
does not know the messages of the Pythons since.)
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
    """Sentences that explain a pattern's failures, with places to fill in.

    name: Unique in the catalogue.
    what, why, hint, fix: The steps; the named groups of the pattern's message can stand in them, as can `{ename}`,
        `{message}` and `{near}` (names like the one that was not found), and the facts in those of `[[facts]]`. A
        sentence is left out where the failure has nothing for one of its places.
    near: Used only where there are such names.
    only: A narrower regular expression, where not all of the pattern's messages are meant.
    claim: What the sentences take for granted beyond the message, as an expression over the types of the values in the
        failing statement and the packages that it went through, such as `dict or Series` or `pandas`; `message` for
        nothing. Where the values show that it is false, the row is passed over.
    example: Code that fails so; the tests run it and expect this explanation.
    edits: What `fix` says, as changes of the failing statement that healing tries, likeliest first: a piece of its text
        and what replaces it, with the same places.
    kind: What they do to the meaning.
    fixes: The same for a change that is more than a text (`[fix.NAME]`). The first change that can be made is shown as
        code.
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
    message: A regular expression searched for in the message.
    texts: The first that applies is shown; a pattern may leave the explanation to a later, more general one.
    fixes: The fixes of every pattern that matches propose changes.
    kind: What a diagnosis calls it, where this pattern decides that.
    no_fix: Why no change of the code helps, in one sentence, or for an exception, what has to change outside of the
        code; empty where the code is to blame.
    """

    raises: tuple[str, ...] = ()
    message: str = ""
    texts: tuple[ExplanationText, ...] = ()
    fixes: tuple[str, ...] = ()
    kind: Kind | None = None
    no_fix: str = ""


class FixExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broken tool, the arguments that it fails for, and one of the codes that the fix makes of it ("" for none).

    right: The declared result for these arguments, where that matters.
    """

    before: str
    after: str = ""
    arguments: dict[str, Any] = {}
    right: Any = None


class FixRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that proposes changes against a pattern's failures.

    mistake: In a few words.
    only: A narrower regular expression, where not all of the pattern's messages are meant.
    priority: 0 to 1, how likely its first proposal is right; it orders the patches of different fixes.
    kind: What its edits do to the meaning; the code that they make is checked for it.
    example: A tool that it fixes.
    lookalike: A tool with the same failure but another mistake, for which the fix must propose nothing.
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
    """Read all rows, with the first failure."""
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
    """Yield what a row yields until it raises, so that its mistake costs its own rest only."""
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
    """Say what has to change outside of the code: a file, a grant, a package; empty where the code may be wrong.

    The code may still be wrong: it may have misspelt the file. The fixes of the catalogue know such mistakes.
    """
    if failure.code != "TOOL_EXCEPTION":
        return ""
    remedies = (pattern.no_fix for pattern, _ in matching(bare(failure.ename), failure.evalue))
    return next(filter(None, remedies), "")


def bare(ename: str) -> str:
    """Return the name of an exception type without its module."""
    return ename.rpartition(".")[2]
