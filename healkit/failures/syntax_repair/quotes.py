"""Texts that begin and do not end, or end and did not begin."""

from __future__ import annotations

import re
from collections.abc import Iterator

from healkit.failures.syntax_repair.records import Change, Draft

_TAIL = re.compile(r"[)\]}:,;]*\s*(?:#.*)?$")
_TRIPLE = re.compile(r'"""|\'\'\'')
_FIELD = re.compile(r"\{[^{}]*\}")


def changes(draft: Draft) -> Iterator[Change]:
    """Quotation marks added, taken away or exchanged in the line of the complaint, or at the end of a long text."""
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
            yield draft.replaced(at, at + 1, "", 0.8, f"a stray backslash is left out of line {draft.line}")


def _short(draft: Draft, number: int, far: float) -> Iterator[Change]:
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
            other = "'" if mark == '"' else '"'
            yield draft.replaced(at, at, other, 1.3 + far, done)
    for place in marks[-4:]:
        at = start + place
        other = "'" if line[place] == '"' else '"'
        yield draft.replaced(at, at + 1, other, 0.75 + far, f"a quotation mark is exchanged in line {number}")
        yield draft.replaced(
            at, at + 1, "", 0.9 + far, f"a stray quotation mark is left out of line {number}"
        )
        yield draft.replaced(
            at, at, "\\", 0.85 + far, f"a quotation mark inside of a text is escaped in line {number}"
        )
    for match in re.finditer(r"'([^'\n]*\w'\w[^'\n]*)'", line):  # 'don't'
        at = start + match.start()
        yield draft.replaced(
            at, at + len(match[0]), f'"{match[1]}"', 0.5 + far, f"the text of line {number} gets other marks"
        )


def _long(draft: Draft) -> Iterator[Change]:
    """A text in three marks: where it ended short of them, below its first line, before the next code, at the end."""
    lines, number = draft.lines, draft.line
    match = _TRIPLE.search(lines.line(number), draft.column) or _TRIPLE.search(lines.line(number))
    mark = match[0] if match else '"""'
    done = f"the text that begins in line {number} is ended"
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
        yield draft.replaced(at, at + 3, "", 1.1, f"stray quotation marks are left out of line {number}")
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


def _broken_word(draft: Draft) -> Iterator[Change]:
    """Plain words where code should be: a comment without its sign, or a text without its marks."""
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
            yield draft.replaced(at, at, '"""', 1.0, f"a text begins in line {n}")


def _fields(draft: Draft) -> Iterator[Change]:
    """f-strings: marks of the same kind inside of a field, a brace that is not doubled or not closed."""
    number = draft.line
    line, start = draft.lines.line(number), draft.lines.start(number)
    for mark, other in (('"', "'"), ("'", '"')):
        pattern = re.compile(rf"(?<=[\[(,: =]){mark}((?:(?!{mark}).)*?){mark}(?=[^{{}}]*\}})")
        fields = re.split(r"(\{[^{}]*\})", line)
        changed = "".join(
            pattern.sub(rf"{other}\1{other}", part) if part[:1] == "{" else part for part in fields
        )
        if changed != line:
            done = f"the marks inside of the fields of line {number} are of the other kind"
            yield draft.replaced(start, start + len(line), changed, 0.4, done)
    for match in re.finditer(r"[{}]", line):
        at = start + match.start()
        yield draft.replaced(at, at, match[0], 0.8, f"a brace is doubled in line {number}")
        yield draft.replaced(at, at + 1, "", 1.0, f"a stray brace is left out of line {number}")
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
        yield draft.replaced(at, at + 1, "", 0.9, f"the text of line {number} is no f-string")
