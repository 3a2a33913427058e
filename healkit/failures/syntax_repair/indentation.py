"""Lines that are indented wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator

from healkit.failures.syntax_repair.draft import Draft, Repair

_HEAD = re.compile(
    r"\s*(?:async\s+)?(?:def|class|if|elif|else|for|while|try|except|finally|with|match|case)\b.*:\s*(?:#.*)?$"
)
_INDENT_WORDS = (
    "indent",
    "block",
    "tab",
    "outside",
    "not properly in",
    "expected 'except'",
    "invalid syntax",
)


def changes(draft: Draft) -> Iterator[Repair]:
    """Yield changes that move lines near the compiler's stop in or out, alone or with the lines below."""
    lines = draft.lines
    if "tab" in draft.message.lower() or "\t" in lines.indent(draft.line) + lines.indent(
        lines.before(draft.line)
    ):
        for width in (4, 8):
            text = "".join(_expanded(line, width) for line in lines.all)
            yield Repair(text, 0.4, "the tabs at the beginning of the lines become spaces")
    if not any(word in draft.message for word in _INDENT_WORDS):
        return
    far = 0.0 if "indent" in draft.message or "outside" in draft.message else 0.5
    seen = _begun(draft, draft.line if not lines.blank(draft.line) else lines.before(draft.line))
    above = _begun(draft, lines.before(seen))
    focus = [seen, above, _begun(draft, lines.before(above)), lines.after(seen)]
    for distance, number in enumerate(number for number in focus if number > 0):
        for indent in _columns(draft, number):
            yield from _moved(draft, number, indent, far + 0.15 * distance)
    yield from _with_body(draft, seen)


def _begun(draft: Draft, number: int) -> int:
    """Return the line that begins the statement that a line is part of."""
    while number > 1 and number in draft.lines.continued:
        number -= 1
    return number


def _columns(draft: Draft, number: int) -> list[str]:
    """Return indents that a line could have: those of the lines around it, or one level below its header."""
    lines = draft.lines
    unit = _unit(draft)
    above, below = _begun(draft, lines.before(number)), lines.after(number)
    while below in lines.continued:
        below = lines.after(below)
    found: list[str] = []
    if above:
        indent = lines.indent(above)
        found += [indent + unit] if _HEAD.match(lines.line(above)) else [indent, indent + unit]
    if below:
        found.append(lines.indent(below))
        if _HEAD.match(lines.line(number)) and lines.indent(below).startswith(unit):
            found.append(lines.indent(below)[: -len(unit)])
    at = above
    while at and lines.indent(at):
        found.append(lines.indent(at))
        at = _begun(draft, lines.before(at))
    if at:
        found.append(lines.indent(at))
    here = lines.indent(number)
    found += [here + unit, here.removesuffix(unit)]
    return [indent for indent in dict.fromkeys(found) if indent != here][:8]


def _moved(draft: Draft, number: int, indent: str, cost: float) -> Iterator[Repair]:
    """Yield the line, its nested block, and the rest of the block, each moved to that indent."""
    lines, here = draft.lines, draft.lines.indent(number)
    step = "in" if len(indent) > len(here) else "out"
    cost += 0.01 * abs(len(indent.expandtabs()) - len(here.expandtabs()))
    # A neighbour's indent costs less than one that no line around has.
    near = {lines.indent(n) for n in (_begun(draft, lines.before(number)), lines.after(number)) if n}
    cost += 0.6 if indent in near else 0.7
    if (
        (above := _begun(draft, lines.before(number)))
        and _HEAD.match(lines.line(above))
        and indent == lines.indent(above) + _unit(draft)
    ):
        cost -= 0.1
    start = lines.start(number)
    yield draft.replaced(start, start + len(here), indent, cost, f"line {number} is moved {step}")
    last = number
    while (below := lines.after(last)) and len(lines.indent(below)) >= max(len(here), 1):
        last = below
    ends = [last]
    inner = lines.after(number)
    while inner and inner < last and len(ends) < 6:
        ends.append(inner)
        inner = lines.after(inner)
    same = number
    while (below := lines.after(same)) and len(lines.indent(below)) == len(here):
        same = below
    ends.append(same)
    for end in dict.fromkeys(end for end in ends if end > number):
        moved = [
            line if not line.strip() else indent + line[len(here) :] if line.startswith(here) else line
            for line in lines.all[number - 1 : end]
        ]
        done = f"lines {number} to {end} are moved {step}"
        yield draft.replaced(start, lines.starts[end], "".join(moved), cost + 0.1, done)


def _with_body(draft: Draft, number: int) -> Iterator[Repair]:
    """Give a header without a body a `pass`."""
    lines = draft.lines
    if "expected an indented block" not in draft.message and number != lines.before(len(lines) + 1):
        return
    for header in (lines.before(number), number):
        if header and _HEAD.match(lines.line(header)):
            at = lines.end(header)
            new = f"\n{lines.indent(header)}{_unit(draft)}pass"
            yield draft.replaced(at, at, new, 1.3, f"the block of line {header} gets a `pass`")


def _unit(draft: Draft) -> str:
    """Return the unit of indentation: the shortest indent, if it is a usual one."""
    indents = [draft.lines.indent(n) for n in range(1, len(draft.lines) + 1) if not draft.lines.blank(n)]
    shortest = min((indent for indent in indents if indent), key=len, default="    ")
    return (
        "\t" if shortest.startswith("\t") else " " * (len(shortest) if len(shortest) in {2, 3, 4, 8} else 4)
    )


def _expanded(line: str, width: int) -> str:
    body = line.lstrip(" \t")
    return line[: len(line) - len(body)].expandtabs(width) + body
