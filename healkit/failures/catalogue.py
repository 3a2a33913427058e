"""All rows of the failure catalogue in one order, and lookups.

The patterns are tried from the most particular to the most general; the last one says what can be said of any failure.
Each row has code of its own that fails so, which the tests run: when Python changes a message, a test names the row
that no longer matches. (`friendly-traceback` explains more kinds of failure; its last release is of 2022 and it does
not know the messages of the Pythons since.)
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

from healkit.contracts.failure import FACT_MAX_CHARS, Failure
from healkit.contracts.healing import apply_edits
from healkit.contracts.tools import place_label
from healkit.errors import is_refused
from healkit.failures import (
    attributes,
    calls,
    endings,
    files,
    formats,
    general,
    imports,
    keys,
    lists,
    names,
    none_values,
    observed_arrays,
    observed_columns,
    observed_tables,
    observed_values,
    operands,
    syntax,
    tables,
    wrong_results,
)
from healkit.failures.pattern import (
    NO_EXCEPTION,
    Explanation,
    ExplanationText,
    FailurePattern,
    Fix,
    Kind,
    Proposal,
    spared,
)
from healkit.failures.site import Site
from healkit.failures.syntax_repair.draft import compiler_message
from healkit.plain_text import count, visible

#: By subject; the first explanation that applies is shown, so the particular comes before the general.
SUBJECTS: dict[str, tuple[FailurePattern, ...]] = {
    "endings": endings.PATTERNS,
    "observed_tables": observed_tables.PATTERNS,
    "observed_columns": observed_columns.PATTERNS,
    "observed_arrays": observed_arrays.PATTERNS,
    "observed_values": observed_values.PATTERNS,
    "tables": tables.PATTERNS,
    "imports": imports.PATTERNS,
    "names": names.PATTERNS,
    "unbound": names.UNBOUND,
    "attributes": attributes.PATTERNS,
    "functions": calls.FUNCTIONS,
    "none_values": none_values.PATTERNS,
    "keys": keys.PATTERNS,
    "calls": calls.PATTERNS,
    "operands": operands.PATTERNS,
    "index_types": lists.INDEX_TYPES,
    "containers": lists.PATTERNS,
    "numbers": formats.NUMBERS,
    "iteration": lists.ITERATION,
    "formats": formats.PATTERNS,
    "files": files.PATTERNS,
    "indexes": lists.INDEXES,
    "syntax": syntax.PATTERNS,
    "wrong_results": wrong_results.PATTERNS,
    "shared_values": wrong_results.SHARED,
    "guards": general.GUARDS,
    "general": general.PATTERNS,
}
PATTERNS = tuple(pattern for patterns in SUBJECTS.values() for pattern in patterns)
_LINKS = {"cause": "Caused by", "context": "While handling"}
_VALUE_MAX_CHARS = 120
_MESSAGE_MAX_CHARS = 400
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`{])")
#: Places that stand as a word of their own, so that the sentence needs one of them; not an ending, as in `day{count}`.
_WORD = re.compile(r"(?<![\w}])(?:\{\w+(?::\w+)?\})+")
_SUGGESTION = re.compile(r"Did you mean: '([^']+)'\?")


class _Piece(str):
    """A piece of a message; where it is a number, `{size:item}` is that of items.

    `{wanted:bare}` is the piece without its backquotes.
    """

    __slots__ = ()

    def __format__(self, noun: str) -> str:
        if noun == "bare":
            return self.strip("`")
        return count(int(self), noun) if noun and self.isdecimal() else str(self)


def explain(failure: Failure, where: str = "") -> Explanation:
    """Explain a failure; `where` is its place as it is shown: `line 6 of longest_word v1`.

    The exceptions that are linked to it are explained each by itself.
    """
    explanation = _explained(failure, where)
    members, number = sum(one.link == "member" for one in failure.linked), 0
    found = []
    for one in failure.linked:
        number += one.link == "member"
        title = f"Exception {number} of {members}" if one.link == "member" else _LINKS[one.link or "cause"]
        found.append(dataclasses.replace(_explained(one, ""), title=title))
    return dataclasses.replace(explanation, linked=tuple(found))


def _explained(failure: Failure, where: str) -> Explanation:
    if is_refused(failure.code):
        why = "healkit refused the call before the tool was run."
        return Explanation("refused", _short(failure.evalue, _MESSAGE_MAX_CHARS), why=why, hint=failure.hint)
    near = list(failure.near) or _SUGGESTION.findall(failure.traceback)[-1:]
    told = (
        explanation
        for text, match in _texts_for(failure, near)
        for explanation in spared(_filled(text, match, failure, near, where), text.name)
    )
    message = _short(failure.evalue, _MESSAGE_MAX_CHARS)
    return next(told, Explanation("unexplained", f"{_bare(failure.ename)}: {message}".rstrip(": ")))


def _filled(
    text: ExplanationText, match: re.Match[str], failure: Failure, near: list[str], where: str
) -> Iterator[Explanation]:
    """Yield the explanation that a text makes of the failure."""
    fields = {
        "ename": _bare(failure.ename),
        "message": _short(failure.evalue, _MESSAGE_MAX_CHARS).rstrip("."),
        "near": _listed(near, " or "),
        **{name: _short(piece or "") for name, piece in match.groupdict().items()},
        **{name: _short(fact, FACT_MAX_CHARS) for name, fact in failure.facts.items()},
    }
    what, why, hint, fix = (filled_in(step, fields) for step in (text.what, text.why, text.hint, text.fix))
    if what:
        yield Explanation(text.name, what[:1].upper() + what[1:], _where(failure, where), why, hint, fix)


def filled_in(step: str, fields: Mapping[str, str]) -> str:
    """Fill a step's sentences in; leaves out those where the failure has nothing for a place."""
    pieces = {name: _Piece(text) for name, text in fields.items()}
    told = [
        sentence.format_map(pieces)
        for sentence in _SENTENCE_END.split(step)
        if all(places[0].format_map(pieces) for places in _WORD.finditer(sentence))
    ]
    return " ".join(told).strip()


def kind_of(failure: Failure) -> Kind:
    """Return the kind of a failure; `other` where no pattern decides it."""
    ended = (pattern.kind for pattern in PATTERNS if failure.code in pattern.enames)
    raised = (pattern.kind for pattern, _ in _matching(_bare(failure.ename), failure.evalue))
    kinds = [*ended, *(() if is_refused(failure.code) else raised)]
    return next(filter(None, kinds), "other")


def no_fix(failure: Failure) -> str:
    """Return why no change of the code helps against a failure; empty where one may."""
    reasons = (pattern.no_fix for pattern in PATTERNS if failure.code in pattern.enames)
    return next(filter(None, reasons), "")


def proposals(site: Site) -> Iterator[tuple[Fix, Proposal, str]]:
    """Yield what the fixes propose at a site, each with its fix and the code that it makes.

    They come in the order of the catalogue; `priority` and `less` say which is likelier.
    """
    for fix, match in fixes_for(site):
        yield from spared(((fix, *made) for made in proposals_of(fix, match, site)), fix.name)


def fixes_for(site: Site) -> Iterator[tuple[Fix, re.Match[str]]]:
    """Yield the fixes for the failure at a site, each with the match of its pattern."""
    failure = site.failure
    label, message = (NO_EXCEPTION, "") if failure is None else (_bare(failure.ename), failure.evalue)
    for pattern, match in _matching(label, message):
        for fix in pattern.fixes:
            if re.search(fix.only, message, re.DOTALL):
                yield fix, match


def proposals_of(fix: Fix, match: re.Match[str], site: Site) -> Iterator[tuple[Proposal, str]]:
    """Yield what one fix proposes, with the code that it makes; nothing that does not parse."""
    text = site.source.text
    for proposal in fix.propose(site, match):
        code = apply_edits(text, proposal.edits)
        if code != text and compiler_message(code) is None:
            yield proposal, code


def _texts_for(failure: Failure, near: list[str]) -> Iterator[tuple[ExplanationText, re.Match[str]]]:
    """Yield the explanations that apply, each with the match of its pattern; the last one always does."""
    ended = not is_refused(failure.code) and failure.code != "TOOL_EXCEPTION"
    for pattern, match in _matching(failure.code if ended else _bare(failure.ename), failure.evalue):
        for text in pattern.explanations:
            seen = failure.facts.get("about") == text.name
            there = {"": True, "near": bool(near), "facts": seen}[text.needs]
            if there and re.search(text.only, failure.evalue, re.DOTALL):
                yield text, match


def _matching(label: str, message: str) -> Iterator[tuple[FailurePattern, re.Match[str]]]:
    """Yield the patterns for an exception type or a code, each with its match of the message."""
    for pattern in PATTERNS:
        if (match := pattern.match(label, message)) is not None:
            yield pattern, match


def _bare(ename: str) -> str:
    return ename.rpartition(".")[2]


def _where(failure: Failure, place: str) -> str:
    frame = failure.tool_frame
    if frame is None:
        return ""
    place = place or f"line {frame.lineno} of {place_label(frame.filename)}, in {frame.name}"
    line = frame.line.strip()
    text = f"{place}: `{_short(line, 200)}`" if line else place
    return text[:1].upper() + text[1:]


def _listed(names: Sequence[str], last: str) -> str:
    return last.join(f"`{_short(name)}`" for name in names)


def _short(text: str, limit: int = _VALUE_MAX_CHARS) -> str:
    flat = " ".join(visible(text[: limit * 4]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
