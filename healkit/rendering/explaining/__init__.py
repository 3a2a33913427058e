"""Failures in plain words, offline, from tables.

Each row of the tables is one kind of failure, tried from the most particular to the most general; the last one says
what can be said of any. A row has code of its own that fails so, which the tests run: when Python changes a message,
a test says which sentence no longer finds it. (`friendly-traceback` explains more kinds of failure; its last release
is of 2022 and it does not know the messages of the Pythons since.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from healkit.contracts.failure import Failure
from healkit.errors import TOOL_CODES
from healkit.rendering import plain
from healkit.rendering.explaining import endings, files, names, syntax, tables, types, values
from healkit.rendering.explaining.records import LEVELS, Explanation, Rule
from healkit.rendering.plain import visible

__all__ = ["LEVELS", "RULES", "Explanation", "Rule", "explain"]

#: The kinds of failure, the particular before the general.
RULES: tuple[Rule, ...] = (
    *endings.RULES,
    *names.RULES,
    *tables.RULES,
    *types.RULES,
    *files.RULES,
    *values.RULES,
    *syntax.RULES,
)
_FALLBACK = Rule(
    "any",
    (),
    "",
    "{ename}: {message}",
    hint="Read the line it names, and look at the values that were in it.",
)
_VALUE_MAX_CHARS = 120
_MESSAGE_MAX_CHARS = 400
_SUGGESTION = re.compile(r"Did you mean: '([^']+)'\?")


class _Piece(str):
    """A piece of a message; where it is a number, `{size:item}` is that of items."""

    __slots__ = ()

    def __format__(self, noun: str) -> str:
        return plain.count(int(self), noun) if noun and self.isdecimal() else str(self)


def explain(failure: Failure, where: str = "") -> Explanation:
    """The failure explained; `where` is how its place is said: `line 6 of longest_word@1`."""
    if failure.code not in TOOL_CODES:
        why = "healkit refused the call before the tool was run."
        return Explanation("refused", _short(failure.evalue, _MESSAGE_MAX_CHARS), why=why, hint=failure.hint)
    near = list(failure.near) or _SUGGESTION.findall(failure.traceback)[-1:]
    for rule, match in _matching(failure):
        if (rule.needs == "near" and not near) or (rule.needs == "known" and not failure.known):
            continue
        fields = {
            "ename": failure.ename.rpartition(".")[2],
            "message": _short(failure.evalue, _MESSAGE_MAX_CHARS).rstrip("."),
            "near": _listed(near, " or "),
            "known": _listed(failure.known, ", "),
            **{name: _Piece(_short(text or "")) for name, text in match.groupdict().items()},
        }
        what, why, hint, fix = (
            text.format_map(fields).strip() for text in (rule.what, rule.why, rule.hint, rule.fix)
        )
        return Explanation(rule.name, what, _where(failure, where), why, hint, fix)
    raise AssertionError("the last rule matches everything")


def _matching(failure: Failure) -> Iterator[tuple[Rule, re.Match[str]]]:
    ended = failure.code in TOOL_CODES and failure.code != "TOOL_EXCEPTION"
    ename = failure.code if ended else failure.ename.rpartition(".")[2]
    for rule in (*RULES, _FALLBACK):
        if (match := rule.match(ename, failure.evalue)) is not None:
            yield rule, match


def _where(failure: Failure, place: str) -> str:
    frame = failure.tool_frame
    if frame is None:
        return ""
    place = place or f"line {frame.lineno} of {frame.filename.strip('<>')}, in {frame.name}"
    line = frame.line.strip()
    text = f"{place}: `{_short(line, 200)}`" if line else place
    return text[:1].upper() + text[1:]


def _listed(names: Sequence[str], last: str) -> str:
    return last.join(f"`{_short(name)}`" for name in names)


def _short(text: str, limit: int = _VALUE_MAX_CHARS) -> str:
    flat = " ".join(visible(text[: limit * 4]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
