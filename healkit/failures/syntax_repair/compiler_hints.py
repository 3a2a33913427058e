"""Changes that the compiler's message asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from healkit.failures.syntax_repair.draft import Draft, Lines, Repair, code_tokens


def changes(draft: Draft) -> Iterator[Repair]:
    """Yield the changes that the compiler's message asks for; none for `invalid syntax`."""
    message, number = draft.message, draft.line
    for pattern, make in _MAKERS:
        if re.search(pattern, message):
            yield from make(draft, number)


def _equals(draft: Draft, number: int) -> Iterator[Repair]:
    line, start = draft.lines.line(number), draft.lines.start(number)
    for match in re.finditer(r"(?<![=<>!:+*/%&|^-])=(?!=)", line):
        at = start + match.start()
        yield draft.replaced(at, at + 1, "==", 0.4, f"`=` becomes `==` in line {number}")
    turned = re.match(r"(\s*)(.+?)\s*=\s*([A-Za-z_]\w*)\s*$", line)
    if turned is not None:  # a + b = c, 5 = x
        yield draft.replaced(start, start + len(line), f"{turned[1]}{turned[3]} = {turned[2]}", 0.7,
                             f"the name comes first in line {number}")  # fmt: skip
    for match in re.finditer(r"(?<=\w)-(?=\w)", line.partition("=")[0]):
        at = start + match.start()
        yield draft.replaced(at, at + 1, "_", 0.6, f"a name is written with `_` in line {number}")


def _outside(draft: Draft, number: int) -> Iterator[Repair]:
    """Make the function of an `await` asynchronous."""
    head = _header_above(draft.lines, number)
    if head and "async" not in draft.lines.line(head):
        at = draft.lines.start(head) + len(draft.lines.indent(head))
        yield draft.replaced(at, at, "async ", 0.5, f"the function of line {head} becomes asynchronous")


def _header_above(lines: Lines, number: int) -> int:
    while number > 0 and not re.match(r"\s*(?:async\s+)?def\b", lines.line(number)):
        number -= 1
    return number


def _reordered(draft: Draft, number: int) -> Iterator[Repair]:
    """Put positional arguments before keyword arguments, and parameters without a default first."""
    stop = draft.end_at if draft.end_at > draft.at else draft.at + 1
    for opener in [m.start() for m in re.finditer(r"\(", draft.text[:stop])][-3:]:
        parts, end = _parts(draft.text, opener)
        if len(parts) < 2:
            continue
        named = [p for p in parts if re.match(r"\s*(?:\*\*|\w+\s*(?::[^=]+)?=(?!=))", p)]
        plain = [p for p in parts if p not in named]
        if named and plain and parts != plain + named:
            inside = ", ".join(part.strip() for part in plain + named)
            yield draft.replaced(
                opener + 1, end, inside, 0.6, f"keyword arguments come last in line {number}"
            )
            if "default" in draft.message:
                late = [p for i, p in enumerate(parts) if p in plain and any(q in named for q in parts[:i])]
                given = ", ".join(p.strip() + ("=None" if p in late else "") for p in parts)
                yield draft.replaced(
                    opener + 1, end, given, 0.7, f"what follows a default gets one in line {number}"
                )


def _parts(text: str, opener: int) -> tuple[list[str], int]:
    """Return what is between a bracket and its partner, split at its commas, and where it ends."""
    parts: list[str] = []
    depth, start = 0, opener + 1
    for token in code_tokens(text, opener):
        if token.text in {"(", "[", "{"}:
            depth += 1
        elif token.text in {")", "]", "}"}:
            depth -= 1
            if depth == 0:
                return [*parts, text[start : token.start]], token.start
        elif token.text == "," and depth == 1:
            parts.append(text[start : token.start])
            start = token.end
    return [], opener


def _try(draft: Draft, number: int) -> Iterator[Repair]:
    """End a `try` that has neither `except` nor `finally`, or leave the `try` out."""
    lines = draft.lines
    head = number - 1
    while head > 0 and lines.line(head).strip() != "try:":
        head -= 1
    if not head:
        return
    at, indent = lines.start(number), lines.indent(head)
    body = next(
        (lines.indent(n) for n in range(head + 1, len(lines) + 1) if not lines.blank(n)), indent + "    "
    )
    if lines.blank(number) and number == len(lines):
        at = lines.end(number)
    if lines.indent(number) == indent:
        yield draft.replaced(
            at, at, f"{indent}finally:\n{body}pass\n", 1.2, f"the `try` of line {head} is closed"
        )
    inside = [
        line.removeprefix(body[len(indent) :]) if line.strip() else line
        for line in lines.all[head : number - 1]
    ]
    yield draft.replaced(
        lines.start(head), lines.start(number), "".join(inside), 1.1, f"the `try` of line {head} is removed"
    )


def _decimal(draft: Draft, number: int) -> Iterator[Repair]:
    """Rename a name that begins with a digit, or add `*`: `3x`, `2nd_place`, `10 px`."""
    line, start = draft.lines.line(number), draft.lines.start(number)
    for match in re.finditer(r"(?<![\w.])(\d+)([A-Za-z_]\w*)", line):
        at = start + match.start()
        yield draft.replaced(
            at, at + len(match[0]), f"{match[1]} * {match[2]}", 0.7, f"`*` is added in line {number}"
        )
        new, wrong = f"{match[2]}{match[1]}", match[0]
        text = re.sub(
            rf"(?<![\w.]){re.escape(wrong)}\b", new if new.isidentifier() else f"_{wrong}", draft.text
        )
        yield Repair(text, 0.8, f"no name begins with a digit, so `{wrong}` is renamed")
        yield draft.replaced(
            at, at + len(match[0]), f'"{wrong}"', 1.0, f"quotation marks are added in line {number}"
        )


def _nonlocal(draft: Draft, number: int) -> Iterator[Repair]:
    at = draft.text.find("nonlocal", draft.lines.start(number))
    if at >= 0:
        yield draft.replaced(at, at + 8, "global", 0.6, f"`nonlocal` becomes `global` in line {number}")


def _global_late(draft: Draft, number: int) -> Iterator[Repair]:
    """Move a `global` below the name's first use to the top of its function."""
    lines = draft.lines
    head = _header_above(lines, number)
    below = lines.after(head) if head else 0
    if below and re.match(r"\s*(?:global|nonlocal)\b", lines.line(number)):
        moved = f"{lines.indent(below)}{lines.line(number).strip()}\n"
        text = "".join([*lines.all[:head], moved, *lines.all[head : number - 1], *lines.all[number:]])
        yield Repair(text, 0.4, f"line {number} is moved to the top of its function")


def _several_types(draft: Draft, number: int) -> Iterator[Repair]:
    line, start = draft.lines.line(number), draft.lines.start(number)
    if match := re.match(r"(\s*except\s+)([\w., ]+?)(\s+as\s+\w+)?\s*:", line):
        new = f"{match[1]}({match[2]}){match[3] or ''}:"
        yield draft.replaced(
            start, start + match.end(), new, 0.4, f"the types are put in parentheses in line {number}"
        )


def _annotated(draft: Draft, number: int) -> Iterator[Repair]:
    line, start = draft.lines.line(number), draft.lines.start(number)
    for match in re.finditer(r":", line):
        at = start + match.start()
        yield draft.replaced(at, at + 1, " =", 0.7, f"`:` becomes `=` in line {number}")


def _duplicate(draft: Draft, number: int) -> Iterator[Repair]:
    """Remove an argument that is given twice."""
    name = re.search(r"'(\w+)'|: (\w+)", draft.message)
    word = (name[1] or name[2]) if name else ""
    line, start = draft.lines.line(number), draft.lines.start(number)
    found = list(re.finditer(rf",\s*\*{{0,2}}{re.escape(word)}\b(?:\s*=\s*[^,()]+)?", line)) if word else []
    if found:
        at = start + found[-1].start()
        yield draft.replaced(at, at + len(found[-1][0]), "", 0.8, f"`{word}` is given once in line {number}")


_MAKERS = (
    (r"==|cannot assign|expression cannot contain assignment|not assignable", _equals),
    (r"'await' outside|asynchronous|'async", _outside),
    (r"positional argument follows|default argument|without a default", _reordered),
    (r"expected 'except' or 'finally'", _try),
    (r"invalid (?:decimal|hexadecimal|octal|binary|imaginary) literal|invalid digit", _decimal),
    (r"no binding for nonlocal|nonlocal declaration not allowed", _nonlocal),
    (r"prior to (?:global|nonlocal)", _global_late),
    (r"multiple exception types", _several_types),
    (r"annotat", _annotated),
    (r"duplicate argument|keyword argument repeated", _duplicate),
)
