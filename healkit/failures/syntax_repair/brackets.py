"""Brackets that have no partner."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from healkit.failures.syntax_repair.lexing import CLOSERS, OPENERS, STARTERS, Token, code_tokens
from healkit.failures.syntax_repair.records import Change, Draft
from healkit.pysource.scope import BUILTINS

_LINES_MAX = 12
#: What often comes right behind a closing bracket.
_AFTER = frozenset((":", ",", ".", "=", "==", "for", "if", "else", "in", "and", "or"))


def unmatched(found: list[Token]) -> tuple[list[Token], list[tuple[Token | None, Token]]]:
    """Openers that nothing closes, and closers with the opener of another kind that they met, or none."""
    stack: list[Token] = []
    wrong: list[tuple[Token | None, Token]] = []
    for token in found:
        if token.text in OPENERS:
            stack.append(token)
        elif token.text in CLOSERS:
            if stack and stack[-1].text == CLOSERS[token.text]:
                stack.pop()
            elif stack and any(opener.text == CLOSERS[token.text] for opener in stack):
                wrong.append((stack.pop(), token))
                while stack and stack[-1].text != CLOSERS[token.text]:
                    stack.pop()
                if stack:
                    stack.pop()
            else:
                wrong.append((stack[-1] if stack else None, token))
    return stack, wrong


def changes(draft: Draft) -> Iterator[Change]:
    """Each bracket without a partner gets one, becomes another kind, or goes."""
    found = code_tokens(draft.text)
    openers, closers = unmatched(found)
    stop = draft.lines.end(min(draft.line + 1, len(draft.lines)))
    told = "never closed" in draft.message or "match" in draft.message
    for opener in [opener for opener in openers if opener.start <= stop][-3:]:
        yield from _closed(draft, found, opener, 0.0 if told else 0.2)
    for opener_met, closer in closers[:3]:
        if closer.start <= stop or told:
            yield from _opened(draft, found, opener_met, closer)


def _closed(draft: Draft, found: list[Token], opener: Token, far: float) -> Iterator[Change]:
    """The partner of an opener: at the end of its line, of a line below, or between two tokens of them."""
    close, first = OPENERS[opener.text], draft.where(opener.start)
    lines = draft.lines
    done = f"`{close}` is added in line "
    last = first
    while last < len(lines) and last < first + _LINES_MAX:
        words = lines.line(last + 1).split()
        deeper = len(lines.indent(last + 1)) > len(lines.indent(first))
        if words and _begins(lines.line(last + 1), deeper):
            break
        last += 1
    for number in range(first, last + 1):
        if lines.blank(number):
            continue
        for place, cost in _ends(lines.line(number)):
            at = lines.start(number) + place
            if at > opener.start:
                # The line that it was opened in is likelier, unless it plainly goes on.
                apart = 0.05 * min(number - first, 4)
                yield draft.replaced(at, at, close, 0.5 + far + cost + apart, f"{done}{number}")
    here = [t for t in found if opener.end <= t.start and draft.where(t.start) <= first + 1]
    depth = 0
    for before, after in itertools.pairwise(here):
        depth += (before.text in OPENERS) - (before.text in CLOSERS)
        if depth == 0 and before.ends_value:
            likely = 0.0 if after.text in _AFTER else 0.1
            called = 0.0 if before.start == opener.end else 0.1
            yield draft.replaced(
                before.end, before.end, close, 0.65 + far + likely + called, f"{done}{first}"
            )
    if here and here[0].text in {":", ")", "]", ","}:
        yield draft.replaced(opener.end, opener.end, close, 0.5 + far, f"{done}{first}")
    stray = 0.45 if draft.text[opener.end : opener.end + 1] == opener.text else 0.85
    yield draft.replaced(
        opener.start, opener.end, "", stray + far, f"a stray `{opener.text}` is left out of line {first}"
    )


def _begins(line: str, deeper: bool) -> bool:
    """Whether a line begins a statement that cannot stand in brackets."""
    word = re.match(r"\s*(\w+)", line)
    return bool(word and word[1] in STARTERS) or (
        not deeper and bool(re.match(r"\s*[\w.\[\]]+(?:\s*,\s*[\w.]+)*\s*[-+*/]?=(?!=)\s*\S+.*[^,]$", line))
    )


def _ends(line: str) -> list[tuple[int, float]]:
    """Places near a line's end: before a `:` that begins a block, before a comma, at the very end."""
    body = re.sub(r"\s*#.*$", "", line).rstrip()
    places = []
    if body.endswith(":"):
        places.append((len(body) - 1, 0.0))
    elif body.endswith((",", ";", "\\")):
        places += [(len(body) - 1, 0.1), (len(body), 0.15)]
    else:
        places.append((len(body), 0.0))
    return places


def _opened(draft: Draft, found: list[Token], opener: Token | None, closer: Token) -> Iterator[Change]:
    """The partner of a closer: another kind for one of the two, an opener before, or neither."""
    number = draft.where(closer.start)
    wanted = CLOSERS[closer.text]
    stray = 0.55 if draft.text[closer.start - 1 : closer.start] == closer.text else 0.7
    yield draft.replaced(
        closer.start, closer.end, "", stray, f"a stray `{closer.text}` is left out of line {number}"
    )
    if opener is not None:
        line = draft.where(opener.start)
        close = OPENERS[opener.text]
        yield draft.replaced(
            closer.start, closer.end, close, 0.55, f"`{closer.text}` becomes `{close}` in line {number}"
        )
        yield draft.replaced(
            opener.start, opener.end, wanted, 0.6, f"`{opener.text}` becomes `{wanted}` in line {line}"
        )
        yield draft.replaced(closer.start, closer.start, close, 0.5, f"`{close}` is added in line {number}")
        yield from _closed(draft, [t for t in found if t.start <= closer.start], opener, 0.1)
    yield from _opener_before(draft, found, closer)


def _opener_before(draft: Draft, found: list[Token], closer: Token) -> Iterator[Change]:
    """An opener in the line of the closer, or at the end of the one that it goes on with."""
    number, wanted = draft.where(closer.start), CLOSERS[closer.text]
    begin = draft.lines.start(number)
    before = [t for t in found if begin <= t.start < closer.start]
    depth = 0
    for place in range(len(before) - 1, -1, -1):
        token = before[place]
        depth += (token.text in CLOSERS) - (token.text in OPENERS)
        if depth < 0:
            break
        if depth:
            continue
        left = before[place - 1] if place else None
        done = f"`{wanted}` is added in line {number}"
        if token.begins_value and token.text not in OPENERS:
            joined = left is not None and left.ends_value
            likely = (
                0.0
                if left is None or joined or left.text in {"=", "(", ",", "return", "in", "not", "if"}
                else 0.15
            )
            yield draft.replaced(token.start, token.start, wanted, 0.65 + likely, done)
        if token.text in {"=", "==", "in", "return", ","} and place + 1 == len(before):
            yield draft.replaced(closer.start, closer.start, wanted, 0.55, done)
        if token.kind == "string" and left is not None and left.kind == "name" and left.end == token.start:
            yield draft.replaced(token.start, token.start, wanted, 0.5, done)
        if token.kind == "name":
            for cut in range(len(token.text) - 1, 0, -1):
                if token.text[:cut] in BUILTINS or re.search(
                    rf"\b{re.escape(token.text[:cut])}\b", draft.text
                ):
                    at = token.start + cut
                    yield draft.replaced(at, at, wanted, 0.6, done)
    above = draft.lines.before(number)
    while above and len(draft.lines.indent(above)) >= len(draft.lines.indent(number)):
        above = draft.lines.before(above)
    if above and re.search(r"[\w)\]=,(]$", draft.lines.line(above).rstrip()):
        at = draft.lines.start(above) + len(draft.lines.line(above).rstrip())
        yield draft.replaced(at, at, wanted, 0.55, f"`{wanted}` is added in line {above}")
    if before and before[-1].ends_value and wanted == "(":
        yield draft.replaced(closer.start, closer.start, "(", 0.75, f"`(` is added in line {number}")
