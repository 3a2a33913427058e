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

import builtins
import dataclasses
import functools
import logging
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from healkit.core.contracts.explanation import Explanation
from healkit.core.contracts.failure import FACT_MAX_CHARS, Failure
from healkit.core.contracts.patches import EditKind
from healkit.core.contracts.tools import place_label
from healkit.errors import is_refused
from healkit.plain_text import count, visible

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
_LINKS = {"cause": "Caused by", "context": "While handling"}
_VALUE_MAX_CHARS = 120
_MESSAGE_MAX_CHARS = 400
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`{])")
#: Places that stand as a word of their own, so that the sentence needs one of them; not an ending, as in `day{count}`.
_WORD = re.compile(r"(?<![\w}])(?:\{\w+(?::\w+)?\})+")
#: Message of a `ToolCallError` that has the exception of a called tool in it.
_CALL_ERROR = re.compile(
    r"mcp\.[\w.-]+: (?P<ename>[A-Za-z_][\w.]*(?:Error|Exception|Warning)): (?P<evalue>.*)", re.DOTALL
)
#: Where a message sends its reader for more.
_ADDRESS = re.compile(r"\s*(?:For further information visit \S+|\(Background on this error at: \S+\))")
_SUGGESTION = re.compile(r"Did you mean:? '([^']+)'\?")


# Questions about a failure


def explain(failure: Failure, where: str = "") -> Explanation:
    """Explain a failure; `where` is its place as it is shown: `line 6 of longest_word v1`.

    The exceptions that are linked to it are explained each by itself.
    """
    inner = _passed_on(failure)
    if inner is not None:
        explained = _explained(inner, "")
        explanation = dataclasses.replace(
            explained,
            what=f"{_source(failure, inner)} failed: {explained.what}",
            where=_where(failure, where),
        )
    else:
        explanation = _explained(failure, where)
    members, number = sum(linked_failure.link == "member" for linked_failure in failure.linked), 0
    explanations = []
    for linked_failure in failure.linked:
        same = linked_failure.link != "member" and (linked_failure.ename, linked_failure.evalue) == (
            failure.ename,
            failure.evalue,
        )
        if (
            linked_failure.link == "call" or same
        ):  # a library that raises the same error anew says nothing new
            continue
        number += linked_failure.link == "member"
        title = (
            f"Exception {number} of {members}"
            if linked_failure.link == "member"
            else _LINKS[linked_failure.link or "cause"]
        )
        explanations.append(dataclasses.replace(_explained(linked_failure, ""), title=title))
    return dataclasses.replace(explanation, linked=tuple(explanations))


def kind_of(failure: Failure) -> Kind:
    """Return the kind of a failure; `other` where no pattern decides it."""
    ended = (pattern.kind for pattern in _patterns_for(failure.code) if pattern.raises)
    raised = (pattern.kind for pattern, _ in matching(bare(failure.ename), failure.evalue))
    kinds = [*ended, *(() if is_refused(failure.code) else raised)]
    return next(filter(None, kinds), "other")


@dataclasses.dataclass(frozen=True)
class ToldEdit:
    """Change of the failing statement that an explanation names: a piece of its text, what replaces it, and why.

    Without a piece, the text is a line that is put above the statement. rule: the name of the row that names it.
    """

    piece: str
    text: str
    reason: str
    rule: str
    kind: EditKind | Literal[""]


def told_edits(failure: Failure) -> Iterator[ToldEdit]:
    """Yield the changes that the rows for a failure name, filled in; those of the explanation that is shown first."""
    for text, groups in _texts_for(failure, _near(failure)):
        fields = _fields(groups, failure, _near(failure))
        for piece, instead in text.edits:
            edit = ToldEdit(
                filled_in(piece, fields),
                filled_in(instead, fields),
                filled_in(text.fix, fields) or filled_in(text.what, fields),
                text.name,
                text.kind,
            )
            if edit.text and (edit.piece or not piece):
                yield edit


def told_fixes(failure: Failure) -> Iterator[str]:
    """Yield the names of the fixes that go with what the objects of a failure show."""
    explanation = _facts().get(failure.facts.get("about", ""))
    yield from explanation.fixes if explanation is not None else ()


def fixes_of(rule: str) -> tuple[str, ...]:
    """Return the names of the fixes that make the change which a row's sentence names."""
    return _by_name()[rule].fixes if rule in _by_name() else ()


def needs_near(rule: str) -> bool:
    """Return whether a row is about a name like another one."""
    return rule in _by_name() and _by_name()[rule].near


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


def _passed_on(failure: Failure) -> Failure | None:
    """Return the failure of a called tool that this one passes on; of a tool outside of the vault, its one line."""
    match = _CALL_ERROR.match(failure.evalue) if failure.ename == "ToolCallError" else None
    if failure.called is not None or match is None:
        return failure.called
    return Failure("TOOL_EXCEPTION", match["ename"], match["evalue"], "")


def _source(failure: Failure, inner: Failure) -> str:
    """Return the name of the called tool that failed, with its row of the log."""
    called = failure.evalue.partition(": ")[0]
    if inner.log_id is None:
        return f"`{called}`"
    frame = inner.tool_frame
    name = f"`{called}`" if frame is None else f"line {frame.lineno} of {place_label(frame.filename)}"
    return f"{name[:1].upper()}{name[1:]} (log row {inner.log_id})"


def _explained(failure: Failure, where: str) -> Explanation:
    if is_refused(failure.code):
        why = "healkit refused the call before the tool was run."
        return Explanation("refused", _short(failure.evalue, _MESSAGE_MAX_CHARS), why=why, hint=failure.hint)
    near = _near(failure)
    for text, groups in _texts_for(failure, near):
        for explanation in spared(_filled(text, groups, failure, near, where), text.name):
            return explanation
    message = _short(failure.evalue, _MESSAGE_MAX_CHARS)
    return Explanation("unexplained", f"{bare(failure.ename)}: {message}".rstrip(": "))


def _near(failure: Failure) -> list[str]:
    """Return the names like the one that was not found; else the one that Python names, if it is the code's own."""
    if failure.near or bare(failure.ename) == "NameError":
        # What is done with a name was looked at already; Python compares the spelling only.
        return list(failure.near)
    return [name for name in _SUGGESTION.findall(failure.traceback)[-1:] if name not in vars(builtins)]


def _texts_for(
    failure: Failure, near: list[str]
) -> Iterator[tuple[ExplanationText, Mapping[str, str | None]]]:
    """Yield the explanations that apply, each with the groups of its pattern; the last one always does.

    What the objects show comes first, but for an execution that ended otherwise than by an exception.
    """
    ended = not is_refused(failure.code) and failure.code != "TOOL_EXCEPTION"
    explanation = _facts().get(failure.facts.get("about", ""))
    if explanation is not None and not ended:
        yield explanation, {}
    for pattern, match in matching(failure.code if ended else bare(failure.ename), failure.evalue):
        if explanation is not None and ended and not pattern.raises:
            yield explanation, {}
        for text in pattern.texts:
            if (
                (near or not text.near)
                and _compiled(text.only).search(failure.evalue)
                and holds(text, failure)
            ):
                yield text, match.groupdict()


def holds(text: ExplanationText, failure: Failure) -> bool:
    """Return whether what a row takes for granted is true of the values; True where none were observed."""
    kinds = failure.facts.get("kinds")
    if kinds is None:
        return True
    observed = {"message", *kinds.split()}
    return any(observed.issuperset(every.split(" and ")) for every in text.claim.split(" or "))


def _filled(
    text: ExplanationText,
    groups: Mapping[str, str | None],
    failure: Failure,
    near: list[str],
    where: str,
) -> Iterator[Explanation]:
    """Yield the explanation that a text makes of the failure."""
    fields = _fields(groups, failure, near)
    what, why, hint, fix = (filled_in(step, fields) for step in (text.what, text.why, text.hint, text.fix))
    if what:
        yield Explanation(text.name, what[:1].upper() + what[1:], _where(failure, where), why, hint, fix)


def _fields(groups: Mapping[str, str | None], failure: Failure, near: list[str]) -> dict[str, str]:
    """Return what can stand in the sentences about a failure."""
    return {
        "ename": bare(failure.ename),
        "message": _short(_ADDRESS.sub("", failure.evalue), _MESSAGE_MAX_CHARS).rstrip("."),
        "near": " or ".join(f"`{_short(name)}`" for name in near),
        **{name: _short(piece or "") for name, piece in groups.items()},
        **{name: _short(fact, FACT_MAX_CHARS) for name, fact in failure.facts.items()},
    }


class _Piece(str):
    """A piece of a message; where it is a number, `{size:item}` is that of items.

    `{wanted:bare}` is the piece without its backquotes, `{kind:a}` a type's name with its article: an `int`,
    `{names:code}` quoted names as code.
    """

    __slots__ = ()

    def __format__(self, noun: str) -> str:
        if noun == "bare":
            return self.strip("`")
        if noun == "code":
            return (
                self.replace("'", "`")
                if "'" in self
                else ", ".join(f"`{part}`" for part in self.split(", ") if part)
            )
        if noun == "a":
            return f"{'an' if self[:1].lower() in 'aeio' else 'a'} `{self}`" if self else ""
        return count(int(self), noun) if noun and self.isdecimal() else str(self)


def filled_in(step: str, fields: Mapping[str, str]) -> str:
    """Fill a step's sentences in; leaves out those where the failure has nothing for a place."""
    pieces = {name: _Piece(text) for name, text in fields.items()}
    sentences = [
        sentence.format_map(pieces)
        for sentence in _SENTENCE_END.split(step)
        if all(places[0].format_map(pieces) for places in _WORD.finditer(sentence))
    ]
    return " ".join(sentences).strip()


def bare(ename: str) -> str:
    """Return the name of an exception type without its module."""
    return ename.rpartition(".")[2]


def _where(failure: Failure, place: str) -> str:
    frame = failure.tool_frame
    if frame is None:
        return ""
    place = place or frame.place
    line = frame.line.strip()
    text = f"{place}: `{_short(line, 200)}`" if line else place
    return text[:1].upper() + text[1:]


def _short(text: str, limit: int = _VALUE_MAX_CHARS) -> str:
    flat = " ".join(visible(text[: limit * 4]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


# Rows


class ExplanationText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sentences that explain a pattern's failures, with places to fill in.

    name: unique in the catalogue. what, why, hint, fix: the steps; the named groups of the pattern's message can stand
    in them, as can `{ename}`, `{message}` and `{near}` (names like the one that was not found), and the facts in those of
    `[[facts]]`. A sentence is left out where the failure has nothing for one of its places. near: used only where there
    are such names. only: a narrower regular expression, where not all of the pattern's messages are meant. claim: what
    the sentences take for granted beyond the message, as an expression over the types of the values in the failing
    statement and the packages that it went through, such as `dict or Series` or `pandas`; `message` for nothing. Where
    the values show that it is false, the row is passed over. example: code that fails so; the tests run it and expect
    this explanation. edits: what `fix` says, as changes of the failing statement that healing tries, likeliest first: a
    piece of its text and what replaces it, with the same places; kind: what they do to the meaning.
    fixes:
    the same for a change that is more than a text (`[fix.NAME]`). The first change that can be made is shown as code.
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

    raises: exception types by their bare names, or codes of `healkit.errors`; empty for any. message: a regular
    expression searched for in the message. texts: the first that applies is shown; a pattern may leave the explanation
    to a later, more general one. fixes: the fixes of every pattern that matches propose changes. kind: what a diagnosis
    calls it, where this pattern decides that. no_fix: why no change of the code helps, in one sentence, or for an
    exception, what has to change outside of the code; empty where the code is to blame.
    """

    raises: tuple[str, ...] = ()
    message: str = ""
    texts: tuple[ExplanationText, ...] = ()
    fixes: tuple[str, ...] = ()
    kind: Kind | None = None
    no_fix: str = ""

    def match(self, message: str) -> re.Match[str] | None:
        """Match a failure's message."""
        return _compiled(self.message).search(message)


class FixExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broken tool, the arguments that it fails for, and one of the codes that the fix makes of it ("" for none).

    right: the declared result for these arguments, where that matters.
    """

    before: str
    after: str = ""
    arguments: dict[str, Any] = {}
    right: Any = None


class Fix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that proposes changes against a pattern's failures.

    mistake: in a few words. only: a narrower regular expression, where not all of the pattern's messages are meant.
    priority: 0 to 1, how likely its first proposal is right; it orders the patches of different fixes. kind: what its
    edits do to the meaning; the code that they make is checked for it. example: a tool that it fixes. lookalike: a tool with the same failure but another mistake, for which the fix must propose nothing.
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
    fix: dict[str, Fix] = {}


@functools.cache
def subjects() -> dict[str, Subject]:
    """Read all rows, with the first failure."""
    modules = (name for name in sys.stdlib_module_names if not name.startswith("_"))
    abbreviations = "|".join(sorted(("np", "pd", "plt", "sns", "dt", *modules)))
    by_name = {}
    from healkit.parts.explain.imports import MOVED  # it reads Python's names, which takes a while

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


@functools.cache
def _by_name() -> dict[str, ExplanationText]:
    return _facts() | {text.name: text for pattern in patterns() for text in pattern.texts}


@functools.lru_cache(maxsize=256)
def _patterns_for(label: str) -> tuple[FailurePattern, ...]:
    """Return the patterns for an exception type or a code, in order."""
    return tuple(pattern for pattern in patterns() if not pattern.raises or label in pattern.raises)


#: Compiled when first used: a failure needs a few of them.
_compiled = functools.cache(functools.partial(re.compile, flags=re.DOTALL))


def matching(label: str, message: str) -> Iterator[tuple[FailurePattern, re.Match[str]]]:
    """Yield the patterns for an exception type or a code, each with its match of the message."""
    for pattern in _patterns_for(label):
        if (match := pattern.match(message)) is not None:
            yield pattern, match


def spared(items: Iterable[Item], row: str) -> Iterator[Item]:
    """Yield what a row yields until it raises, so that its mistake costs its own rest only."""
    try:
        yield from items
    except Exception:  # noqa: BLE001 - a row of the catalogue reads foreign code and messages
        _log.debug("the row %s of the failure catalogue raises", row, exc_info=True)
