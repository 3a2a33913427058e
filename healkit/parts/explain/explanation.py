"""A failure with the rows that match it, put into words.

Four steps lead from a failure to its card. `MatchedFailure` finds the rows of `catalogue` once. `explanation_of` fills
in the sentences of the first row. `fixes.change_of` makes the code of the fix from the same object.
`healkit.core.rendering.execution_card` shows both.
"""

from __future__ import annotations

import builtins
import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal

from healkit.core.contracts.explanation import Explanation
from healkit.core.contracts.failure import FACT_MAX_CHARS, Failure
from healkit.core.contracts.patches import EditKind
from healkit.core.contracts.tools import place_label
from healkit.errors import is_refused
from healkit.parts.explain.catalogue import ExplanationText, bare, facts_text, matching, searched, spared
from healkit.plain_text import count, visible

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


@dataclasses.dataclass(frozen=True)
class RowEdit:
    """Change of the failing statement that a row names: a piece of its text, its replacement, and the reason.

    Without a piece, the text is a new line above the statement.

    rule: The name of the row.
    """

    piece: str
    text: str
    reason: str
    rule: str
    kind: EditKind | Literal[""]


@dataclasses.dataclass(frozen=True)
class RowMatch:
    """Row that applies to a failure, with the values of its placeholders."""

    text: ExplanationText
    fields: Mapping[str, str]

    def steps(self) -> Iterator[dict[str, str]]:
        """Yield its filled-in steps; nothing if `what` is empty."""
        steps = {
            step: filled_in(getattr(self.text, step), self.fields) for step in ("what", "why", "hint", "fix")
        }
        if what := steps["what"]:
            yield steps | {"what": what[:1].upper() + what[1:]}

    def edits(self) -> Iterator[RowEdit]:
        """Yield the changes that it names, filled in."""
        text, fields = self.text, self.fields
        for piece, instead in text.edits:
            reason = filled_in(text.fix, fields) or filled_in(text.what, fields)
            edit = RowEdit(filled_in(piece, fields), filled_in(instead, fields), reason, text.name, text.kind)
            if edit.text and (edit.piece or not piece):
                yield edit


class MatchedFailure:
    """A failure and the rows of the catalogue that apply to it; explanations and fixes read the same object.

    near: Names similar to the missing one; otherwise the name that Python suggests, if it is the code's own.
    """

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        self.near = list(failure.near)
        # For a name, it was looked at already what is done with it; Python compares the spelling only.
        if not failure.near and bare(failure.ename) != "NameError":
            named = _SUGGESTION.findall(failure.traceback)[-1:]
            self.near = [name for name in named if name not in vars(builtins)]

    @cached_property
    def rows(self) -> list[RowMatch]:
        """Rows that apply, the first to be shown.

        Facts of the objects come first, except if an execution did not end with an exception.
        """
        failure = self.failure
        ended = not is_refused(failure.code) and failure.code != "TOOL_EXCEPTION"
        observed = facts_text(failure)
        rows = [RowMatch(observed, self._fields)] if observed is not None and not ended else []
        for pattern, match in matching(failure.code if ended else bare(failure.ename), failure.evalue):
            if observed is not None and ended and not pattern.raises:
                rows.append(RowMatch(observed, self._fields))
            for text in pattern.texts:
                if (
                    (self.near or not text.near)
                    and searched(text.only, failure.evalue)
                    and holds(text, failure)
                ):
                    groups = {name: _short(piece or "") for name, piece in match.groupdict().items()}
                    rows.append(RowMatch(text, self._fields | groups | self._facts))
        return rows

    @cached_property
    def _facts(self) -> dict[str, str]:
        return {name: _short(fact, FACT_MAX_CHARS) for name, fact in self.failure.facts.items()}

    @cached_property
    def _fields(self) -> dict[str, str]:
        """Values for the placeholders of each row; a row also has the groups of its pattern."""
        return {
            "ename": bare(self.failure.ename),
            "message": _short(_ADDRESS.sub("", self.failure.evalue), _MESSAGE_MAX_CHARS).rstrip("."),
            "near": " or ".join(f"`{_short(name)}`" for name in self.near),
            **self._facts,
        }

    @cached_property
    def shown(self) -> tuple[ExplanationText, dict[str, str]] | None:
        """First row with a text, and its steps; a row that raises is skipped."""
        every = ((row.text, steps) for row in self.rows for steps in spared(row.steps(), row.text.name))
        return None if is_refused(self.failure.code) else next(every, None)

    @cached_property
    def edits(self) -> list[RowEdit]:
        """Changes that the rows name; those of the row that is shown first."""
        return [edit for row in self.rows for edit in spared(row.edits(), row.text.name)]

    @cached_property
    def called(self) -> Failure | None:
        """Failure of a called tool that this failure passes on; for a tool outside the vault, its one line."""
        failure = self.failure
        match = _CALL_ERROR.match(failure.evalue) if failure.ename == "ToolCallError" else None
        if failure.called is not None or match is None:
            return failure.called
        return Failure("TOOL_EXCEPTION", match["ename"], match["evalue"], "")


def explain(failure: Failure, where: str = "") -> Explanation:
    """Explain a failure; `where` is its place as shown to the user, such as `line 6 of longest_word v1`."""
    return explanation_of(MatchedFailure(failure), where)


def explanation_of(matched: MatchedFailure, where: str = "") -> Explanation:
    """Explain a failure, and each exception that is linked to it."""
    failure, called = matched.failure, matched.called
    if called is None:
        explanation = _alone(matched, where)
    else:
        inner = _alone(MatchedFailure(called), "")
        what = f"{_source(failure, called)} failed: {inner.what}"
        explanation = dataclasses.replace(inner, what=what, where=_where(failure, where))
    members, number, linked = sum(other.link == "member" for other in failure.linked), 0, []
    for other in failure.linked:
        is_member = other.link == "member"
        same = not is_member and (other.ename, other.evalue) == (failure.ename, failure.evalue)
        if other.link == "call" or same:
            continue  # a library that raises the same error anew says nothing new
        number += is_member
        title = f"Exception {number} of {members}" if is_member else _LINKS[other.link or "cause"]
        linked.append(dataclasses.replace(_alone(MatchedFailure(other), ""), title=title))
    return dataclasses.replace(explanation, linked=tuple(linked))


def _alone(matched: MatchedFailure, where: str) -> Explanation:
    failure = matched.failure
    message = _short(failure.evalue, _MESSAGE_MAX_CHARS)
    if is_refused(failure.code):
        why = "healkit refused the call before the tool was run."
        return Explanation("refused", message, why=why, hint=failure.hint)
    if matched.shown is None:
        return Explanation("unexplained", f"{bare(failure.ename)}: {message}".rstrip(": "))
    text, steps = matched.shown
    return Explanation(
        text.name, steps["what"], _where(failure, where), steps["why"], steps["hint"], steps["fix"]
    )


def _source(failure: Failure, called: Failure) -> str:
    """Return the name of the called tool that failed, with its row of the log."""
    name = f"`{failure.evalue.partition(': ')[0]}`"
    if called.log_id is None:
        return name
    if (frame := called.tool_frame) is not None:
        name = f"line {frame.lineno} of {place_label(frame.filename)}"
    return f"{name[:1].upper()}{name[1:]} (log row {called.log_id})"


def holds(text: ExplanationText, failure: Failure) -> bool:
    """Return whether the values confirm the claim of a row; True if no values were observed."""
    kinds = failure.facts.get("kinds")
    if kinds is None:
        return True
    observed = {"message", *kinds.split()}
    return any(observed.issuperset(every.split(" and ")) for every in text.claim.split(" or "))


class _Piece(str):
    """A piece of a message; `{size:item}` adds a noun to a number.

    `{wanted:bare}` is the piece without its backquotes. `{kind:a}` is a type's name with its article: an `int`.
    `{names:code}` shows quoted names as code.
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
    """Fill in the sentences of a step; a sentence is left out if the failure has no value for a placeholder."""
    pieces = {name: _Piece(text) for name, text in fields.items()}
    sentences = [
        sentence.format_map(pieces)
        for sentence in _SENTENCE_END.split(step)
        if all(places[0].format_map(pieces) for places in _WORD.finditer(sentence))
    ]
    return " ".join(sentences).strip()


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
