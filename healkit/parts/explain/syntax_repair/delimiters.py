"""Brackets and quotation marks without a partner."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from healkit.core.pysource.nodes import BUILTINS
from healkit.parts.explain.syntax_repair.draft import (
    CLOSERS,
    OPENERS,
    STARTERS,
    Draft,
    DraftToken,
    Repair,
    code_tokens,
)

_LINES_MAX = 12
#: Tokens that often follow a closing bracket.
_AFTER = frozenset((":", ",", ".", "=", "==", "for", "if", "else", "in", "and", "or"))


def unmatched(found: list[DraftToken]) -> tuple[list[DraftToken], list[tuple[DraftToken | None, DraftToken]]]:
    """Return openers that are never closed, and unmatched closers, each with the opener before it."""
    stack: list[DraftToken] = []
    wrong: list[tuple[DraftToken | None, DraftToken]] = []
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


def bracket_changes(draft: Draft) -> Iterator[Repair]:
    """Yield changes that give a bracket its partner, change its kind, or remove it."""
    all_tokens = code_tokens(draft.text)
    openers, closers = unmatched(all_tokens)
    stop = draft.lines.end(min(draft.line + 1, len(draft.lines)))
    is_reported = "never closed" in draft.message or "match" in draft.message
    for opener in [opener for opener in openers if opener.start <= stop][-3:]:
        yield from _closed(draft, all_tokens, opener, 0.0 if is_reported else 0.2)
    for opener_met, closer in closers[:3]:
        if closer.start <= stop or is_reported:
            yield from _opened(draft, all_tokens, opener_met, closer)


def _closed(draft: Draft, found: list[DraftToken], opener: DraftToken, far: float) -> Iterator[Repair]:
    """Close an opener: at the end of its line, of a line below, or between two tokens of them."""
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
                # The line of the opener is the likeliest.
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
        opener.start, opener.end, "", stray + far, f"a stray `{opener.text}` is removed from line {first}"
    )


def _begins(line: str, deeper: bool) -> bool:
    """Return whether a line begins a statement that cannot be inside brackets."""
    word = re.match(r"\s*(\w+)", line)
    return bool(word and word[1] in STARTERS) or (
        not deeper and bool(re.match(r"\s*[\w.\[\]]+(?:\s*,\s*[\w.]+)*\s*[-+*/]?=(?!=)\s*\S+.*[^,]$", line))
    )


def _ends(line: str) -> list[tuple[int, float]]:
    """Return places near a line's end: before a final `:` or comma, and at the very end."""
    body = re.sub(r"\s*#.*$", "", line).rstrip()
    places = []
    if body.endswith(":"):
        places.append((len(body) - 1, 0.0))
    elif body.endswith((",", ";", "\\")):
        places += [(len(body) - 1, 0.1), (len(body), 0.15)]
    else:
        places.append((len(body), 0.0))
    return places


def _opened(
    draft: Draft, found: list[DraftToken], opener: DraftToken | None, closer: DraftToken
) -> Iterator[Repair]:
    """Match a closer: change the kind of one of the two, add an opener, or remove the closer."""
    number = draft.where(closer.start)
    wanted = CLOSERS[closer.text]
    stray = 0.55 if draft.text[closer.start - 1 : closer.start] == closer.text else 0.7
    yield draft.replaced(
        closer.start, closer.end, "", stray, f"a stray `{closer.text}` is removed from line {number}"
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


def _opener_before(draft: Draft, found: list[DraftToken], closer: DraftToken) -> Iterator[Repair]:
    """Add an opener in the line of the closer, or at the end of the line that it continues."""
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
        previous = before[place - 1] if place else None
        done = f"`{wanted}` is added in line {number}"
        if token.begins_value and token.text not in OPENERS:
            joined = previous is not None and previous.ends_value
            likely = (
                0.0
                if previous is None or joined or previous.text in {"=", "(", ",", "return", "in", "not", "if"}
                else 0.15
            )
            yield draft.replaced(token.start, token.start, wanted, 0.65 + likely, done)
        if token.text in {"=", "==", "in", "return", ","} and place + 1 == len(before):
            yield draft.replaced(closer.start, closer.start, wanted, 0.55, done)
        if (
            token.kind == "string"
            and previous is not None
            and previous.kind == "name"
            and previous.end == token.start
        ):
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


_TAIL = re.compile(r"[)\]}:,;]*\s*(?:#.*)?$")
_TRIPLE = re.compile(r'"""|\'\'\'')


def quote_changes(draft: Draft) -> Iterator[Repair]:
    """Yield changes that add, remove or exchange quotation marks near where the compiler stops."""
    message = draft.message
    if "f-string" in message or (
        "invalid syntax" in message and re.search(r"\b[fF][\"']", draft.lines.line(draft.line))
    ):
        yield from _fields(draft)
    if "triple-quoted" in message:
        yield from _long(draft)
    elif "unterminated" in message or "EOL while" in message:
        yield from _short(draft, draft.line, 0.0)
    elif "invalid syntax" in message or "forgot a comma" in message or "never closed" in message:
        yield from _broken_word(draft)
        if any(mark in draft.lines.line(draft.line) for mark in "\"'"):
            yield from _short(draft, draft.line, 0.5)
    if "unexpected character after line continuation" in message:
        at = draft.text.find("\\", draft.lines.start(draft.line), draft.lines.end(draft.line))
        if at >= 0:
            yield draft.replaced(at, at + 1, "", 0.8, f"a stray backslash is removed from line {draft.line}")


def _short(draft: Draft, number: int, far: float) -> Iterator[Repair]:
    lines = draft.lines
    line, start = lines.line(number), lines.start(number)
    marks = [m.start() for m in re.finditer(r"(?<!\\)[\"']", line)]
    if not marks:
        return
    last = draft.column if "unterminated" in draft.message and draft.column < len(line) else marks[-1]
    mark = line[last] if last < len(line) and line[last] in "\"'" else line[marks[-1]]
    done = f"a quotation mark is added in line {number}"
    tail = _TAIL.search(line)
    if tail is not None:
        yield draft.replaced(start + tail.start(), start + tail.start(), mark, 0.55 + far, done)
    yield draft.replaced(start + len(line.rstrip()), start + len(line.rstrip()), mark, 0.65 + far, done)
    for match in re.finditer(r"(?<=[\w.!?%:;,)}\s])(?=[),\]}:;+% ])|(?<=[(\[{=,+ ])(?=[\w.!?%{\\<])", line):
        at = start + match.start()
        opening = match.start() < last
        yield draft.replaced(at, at, mark, 0.8 + far + (0.1 if line[match.start() :][:1] == " " else 0), done)
        if not opening:
            opposite_mark = "'" if mark == '"' else '"'
            yield draft.replaced(at, at, opposite_mark, 1.3 + far, done)
    for place in marks[-4:]:
        at = start + place
        opposite_mark = "'" if line[place] == '"' else '"'
        yield draft.replaced(
            at, at + 1, opposite_mark, 0.75 + far, f"a quotation mark is replaced in line {number}"
        )
        yield draft.replaced(
            at, at + 1, "", 0.9 + far, f"a stray quotation mark is removed from line {number}"
        )
        yield draft.replaced(
            at, at, "\\", 0.85 + far, f"a quotation mark inside a string is escaped in line {number}"
        )
    for match in re.finditer(r"'([^'\n]*\w'\w[^'\n]*)'", line):  # 'don't'
        at = start + match.start()
        yield draft.replaced(
            at,
            at + len(match[0]),
            f'"{match[1]}"',
            0.5 + far,
            f"the quotation marks of the string in line {number} change",
        )


def _long(draft: Draft) -> Iterator[Repair]:
    """End a triple-quoted text: where it almost ends, below its first line, before the next code, at the end."""
    lines, number = draft.lines, draft.line
    match = _TRIPLE.search(lines.line(number), draft.column) or _TRIPLE.search(lines.line(number))
    mark = match[0] if match else '"""'
    done = f"the string that begins in line {number} is closed"
    for n in range(number, len(lines) + 1):
        line = lines.line(n).rstrip()
        if (
            line.endswith(mark[:2])
            and not line.endswith(mark)
            and n * 1000 + len(line) > number * 1000 + (match.end() if match else 0)
        ):
            yield draft.replaced(lines.start(n) + len(line), lines.start(n) + len(line), mark[0], 0.4, done)
        elif line.endswith(mark[0]) and not line.endswith(mark):
            yield draft.replaced(lines.start(n) + len(line), lines.start(n) + len(line), mark[:2], 0.5, done)
    if match is not None:
        at = lines.start(number) + match.start()
        yield draft.replaced(at, at + 3, mark[0], 0.9, f"three quotation marks become one in line {number}")
        yield draft.replaced(at, at + 3, "", 1.1, f"stray quotation marks are removed from line {number}")
    end = lines.end(number)
    if lines.line(number).strip() != mark:
        tail = _TAIL.search(lines.line(number))
        yield draft.replaced(end, end, mark, 0.6, done)
        if tail is not None and tail.start() + lines.start(number) < end:
            yield draft.replaced(
                lines.start(number) + tail.start(), lines.start(number) + tail.start(), mark, 0.7, done
            )
    for n in range(number + 1, len(lines) + 1):
        if lines.blank(n) or re.match(
            r"\s*(?:def|class|return|import|from|if|for|while|with|try|raise|\w+\s*=)", lines.line(n)
        ):
            at = lines.end(n - 1)
            indent = lines.indent(number)
            yield draft.replaced(at, at, mark, 0.9, done)
            yield draft.replaced(at, at, f"\n{indent}{mark}", 0.85, done)
    yield draft.replaced(len(draft.text.rstrip()), len(draft.text), mark + "\n", 0.9, done)


def _broken_word(draft: Draft) -> Iterator[Repair]:
    """Turn plain words where code is expected into a comment or a string."""
    number = draft.line
    line, start = draft.lines.line(number), draft.lines.start(number)
    body = line.strip()
    if len(re.findall(r"[A-Za-z]{2,}", body)) >= 3 and not re.search(
        r"[=(\[.:,]\S|\b(?:return|if|for|in|not|and|or|is|import|from|def|class|else|raise|del|assert)\b",
        body,
    ):
        at = start + len(line) - len(line.lstrip())
        yield draft.replaced(at, at, "# ", 1.0, f"line {number} becomes a comment")
    for n in (number, draft.lines.before(number)):
        text = draft.lines.line(n)
        if n and re.search(r"\"\"\"|'''", text) is None and len(text.split()) > 2 and '"""' in draft.text:
            at = draft.lines.start(n) + len(draft.lines.indent(n))
            yield draft.replaced(at, at, '"""', 1.0, f"a string begins in line {n}")


def _fields(draft: Draft) -> Iterator[Repair]:
    """Repair an f-string: quotation marks inside a field, a brace that is not doubled or not closed."""
    number = draft.line
    line, start = draft.lines.line(number), draft.lines.start(number)
    for mark, opposite_mark in (('"', "'"), ("'", '"')):
        pattern = re.compile(rf"(?<=[\[(,: =]){mark}((?:(?!{mark}).)*?){mark}(?=[^{{}}]*\}})")
        fields = re.split(r"(\{[^{}]*\})", line)
        changed = "".join(
            pattern.sub(rf"{opposite_mark}\1{opposite_mark}", part) if part[:1] == "{" else part
            for part in fields
        )
        if changed != line:
            done = f"the quotation marks inside the fields of line {number} are of the other kind"
            yield draft.replaced(start, start + len(line), changed, 0.4, done)
    for match in re.finditer(r"[{}]", line):
        at = start + match.start()
        yield draft.replaced(at, at, match[0], 0.8, f"a brace is doubled in line {number}")
        yield draft.replaced(at, at + 1, "", 1.0, f"a stray brace is removed from line {number}")
    for match in re.finditer(r"\{[\w.\[\]()]*", line):
        at = start + match.end()
        yield draft.replaced(at, at, "}", 0.7, f"a brace is closed in line {number}")
    if "empty expression" in draft.message:
        yield draft.replaced(
            start,
            start + len(line),
            line.replace("{}", "{{}}"),
            0.6,
            f"empty braces are doubled in line {number}",
        )
    for match in re.finditer(r"\b[fF](?=[\"'])", line):
        at = start + match.start()
        yield draft.replaced(at, at + 1, "", 0.9, f"the string in line {number} is not an f-string")
