"""Changes of a draft: hints, indentation, single tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from healkit.errors import near_misses
from healkit.parts.explain.syntax_repair.draft import (
    CLOSERS,
    KEYWORDS,
    OPENERS,
    Draft,
    DraftToken,
    Lines,
    Repair,
    code_tokens,
)


def hinted_changes(draft: Draft) -> Iterator[Repair]:
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
                parameter_text = ", ".join(p.strip() + ("=None" if p in late else "") for p in parts)
                yield draft.replaced(
                    opener + 1,
                    end,
                    parameter_text,
                    0.7,
                    f"the parameters after a default get one too in line {number}",
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
        yield Repair(text, 0.8, f"a name cannot begin with a digit, so `{wrong}` is renamed")
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
    matches = list(re.finditer(rf",\s*\*{{0,2}}{re.escape(word)}\b(?:\s*=\s*[^,()]+)?", line)) if word else []
    if matches:
        at = start + matches[-1].start()
        yield draft.replaced(
            at, at + len(matches[-1][0]), "", 0.8, f"`{word}` is given once in line {number}"
        )


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


# Lines that are indented wrongly


#: Words that begin a block.
BLOCK = (
    "if", "for", "while", "elif", "else", "def", "class", "try", "except", "finally", "with", "match", "case",
    "async",
)  # fmt: skip
_HEAD = re.compile(rf"\s*(?:async\s+)?(?:{'|'.join(BLOCK[:-1])})\b.*:\s*(?:#.*)?$")
_INDENT_WORDS = (
    "indent",
    "block",
    "tab",
    "outside",
    "not properly in",
    "expected 'except'",
    "invalid syntax",
)


def indent_changes(draft: Draft) -> Iterator[Repair]:
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
    current = _begun(draft, draft.line if not lines.blank(draft.line) else lines.before(draft.line))
    above = _begun(draft, lines.before(current))
    focus = [current, above, _begun(draft, lines.before(above)), lines.after(current)]
    for distance, number in enumerate(number for number in focus if number > 0):
        for indent in _columns(draft, number):
            yield from _moved(draft, number, indent, far + 0.15 * distance)
    yield from _with_body(draft, current)


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
    indents: list[str] = []
    if above:
        indent = lines.indent(above)
        indents += [indent + unit] if _HEAD.match(lines.line(above)) else [indent, indent + unit]
    if below:
        indents.append(lines.indent(below))
        if _HEAD.match(lines.line(number)) and lines.indent(below).startswith(unit):
            indents.append(lines.indent(below)[: -len(unit)])
    at = above
    while at and lines.indent(at):
        indents.append(lines.indent(at))
        at = _begun(draft, lines.before(at))
    if at:
        indents.append(lines.indent(at))
    here = lines.indent(number)
    indents += [here + unit, here.removesuffix(unit)]
    return [indent for indent in dict.fromkeys(indents) if indent != here][:8]


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


# Single tokens: added, left out, exchanged


#: Signs that are confused with one another.
_EXCHANGED = {
    ";": (":", ",", ""), ":": ("=", ",", ";", "", " in"), "=": ("==", ":", ""), "==": ("=",), ",": (".", ":", " and", ""), ".": (",", "", "0."),
    "->": (":", ".", ">"), "=>": (":", "->", ">=", "="), "!": ("not ", "!="), "?": ("", ":"), "%": ("",), "&": (" and ",), "|": (" or ",),
    "::": (":", "[::"), "++": (" += 1", "+"), "--": (" -= 1", "-"), ":=": ("=", ":"), "*": ("",), "**": ("",), "(": ("[", "{"), "[": ("(", "{"),
    "{": ("(", "["), ")": ("]", "}", ":"), "]": (")", "}"), "}": (")", "]"), "~": ("",), "^": ("**",), "...": ("",), "<": (" in ", "<="), "-": ("_",),
}  # fmt: skip
_SHORT = ("in", "is", "as", "and", "or", "if")
#: Words that lost the space before or after them.
_GLUED = ("in", "if", "for", "or", "and", "not", "is", "as", "else", "import", "lambda", "return", "def")
_WINDOW = 4


def token_changes(draft: Draft) -> Iterator[Repair]:
    """Yield changes of one token in the line where the compiler stops and in the one above."""
    lines = draft.lines
    numbers = [draft.line]
    above = lines.before(draft.line)
    if above:
        numbers.append(above)
    for far, number in enumerate(numbers):
        line_tokens = code_tokens(draft.text, lines.start(number), lines.end(number))
        if not line_tokens:
            continue
        at = draft.at if number == draft.line else lines.end(number)
        focus = sum(1 for token in line_tokens if token.start < at)
        yield from header_changes(draft, number, line_tokens, 0.25 * far)
        for place in range(max(0, focus - _WINDOW), min(len(line_tokens), focus + _WINDOW) + 1):
            near = 0.25 * far + 0.08 * abs(place - focus)
            yield from _added(draft, line_tokens, place, near)
            if place < len(line_tokens):
                yield from _exchanged(draft, line_tokens, place, near)
        if not far:
            yield from _added_far(draft, line_tokens, focus)


def _added(draft: Draft, found: list[DraftToken], place: int, near: float) -> Iterator[Repair]:
    """Add a token between two others, depending on what is on either side."""
    previous = found[place - 1] if place else None
    right = found[place] if place < len(found) else None
    at = right.start if right is not None else found[-1].end
    if previous is not None and right is not None and previous.end < right.start:
        at = previous.end
    number = draft.where(at)
    inside = _bracket(found[:place])
    for text, cost in missing(found, previous, right, inside):
        put = _spaced(draft.text, at, text)
        yield draft.replaced(at, at, put, cost + near, f"`{text}` is added in line {number}")


def _added_far(draft: Draft, found: list[DraftToken], focus: int) -> Iterator[Repair]:
    """Add a comma elsewhere in the line: the compiler may stop late."""
    for place in range(1, len(found)):
        if abs(place - focus) > _WINDOW and found[place - 1].ends_value and found[place].begins_value:
            at = found[place - 1].end
            yield draft.replaced(at, at, ",", 1.1, f"`,` is added in line {draft.where(at)}")


def _bracket(before: list[DraftToken]) -> str:
    """Return the innermost bracket of this line that is open there."""
    stack: list[str] = []
    for token in before:
        if token.text in OPENERS:
            stack.append(token.text)
        elif token.text in CLOSERS and stack:
            stack.pop()
    return stack[-1] if stack else ""


def _spaced(text: str, at: int, sign: str) -> str:
    """Return a token with the spaces that good style puts around it."""
    if sign in {".", ")", "]", "}", ":", ",", "(", "[", "{", "**", "*"}:
        after = text[at : at + 1]
        return (
            f"{sign} "
            if sign in {":", ","} and after and not after.isspace() and after not in ")]}"
            else sign
        )
    prefix = "" if not text[:at] or text[at - 1].isspace() or text[at - 1] in "([{" else " "
    right = "" if text[at : at + 1].isspace() or text[at : at + 1] in {"", ")", "]", "}", ":", ","} else " "
    return f"{prefix}{sign}{right}"


def _exchanged(draft: Draft, found: list[DraftToken], place: int, near: float) -> Iterator[Repair]:
    """Leave a token out, replace it, or swap it with the next one."""
    token = found[place]
    line = f"line {draft.where(token.start)}"
    sign = token.kind in {"op", "other"}

    def other(new: str, cost: float, done: str) -> Repair:
        return draft.replaced(token.start, token.end, new, cost + near, f"{done} in {line}")

    yield other("", 0.8 if sign else 1.35, f"a stray `{token.text}` is removed")
    for new in _EXCHANGED.get(token.text, ()):
        yield other(new, 0.75, f"`{token.text}` becomes `{new.strip()}`")
    if token.text in KEYWORDS:
        yield other(
            f"{token.text}_", 1.1, f"`{token.text}` is not a valid name, so it becomes `{token.text}_`"
        )
        for new in _SHORT if token.text in _SHORT else ():
            if new != token.text:
                yield other(new, 1.0, f"`{token.text}` becomes `{new}`")
    elif token.kind == "name":
        for word in near_misses(token.text, KEYWORDS | {"None", "True", "False"}, 1):
            yield other(word, 0.7, f"`{token.text}` is spelt `{word}`")
        for word in _GLUED:
            if token.text.startswith(word) and place:
                yield other(f"{word} {token.text[len(word) :]}", 1.0, "a space is added")
            if token.text.endswith(word):
                yield other(f"{token.text[: -len(word)]} {word}", 1.0, "a space is added")
    if place + 1 < len(found):
        yield from _with_next(draft, token, found[place + 1], near, line)


def _with_next(
    draft: Draft, token: DraftToken, following: DraftToken, near: float, line: str
) -> Iterator[Repair]:
    """Join two neighbours, swap them, or leave out one that is doubled."""
    gap = draft.text[token.end : following.start]
    if following.text == token.text:
        cost = 0.5 if token.kind in {"op", "other"} else 0.35
        yield draft.replaced(
            token.start, following.start, "", cost + near, f"a doubled `{token.text}` is removed from {line}"
        )
    swapped = f"{following.text}{gap}{token.text}"
    yield draft.replaced(
        token.start, following.end, swapped, 1.15 + near, f"two tokens are swapped in {line}"
    )
    if token.kind == following.kind == "op" and gap and not gap.strip(" "):
        yield draft.replaced(
            token.end,
            following.start,
            "",
            0.7 + near,
            f"a space inside an operator is removed from {line}",
        )


Missing = tuple[str, float]

#: Operators between two values, with their costs: the commoner ones are cheaper.
_OPERATORS: tuple[Missing, ...] = (
    ("+", 0.75), ("==", 0.8), ("and", 0.8), ("in", 0.85), ("or", 0.85), ("-", 0.85), ("*", 0.85), ("<", 1.0), (">", 1.0),
    ("/", 1.0), ("!=", 1.0), ("is", 1.0), ("not in", 1.1), (">=", 1.1), ("<=", 1.1), ("is not", 1.3), ("//", 1.3),
)  # fmt: skip
#: Words and signs that a name follows.
_NAMED = {".", "import", "as", "class", "for", "global", "nonlocal", "def"}


def missing(
    found: list[DraftToken], left: DraftToken | None, right: DraftToken | None, inside: str
) -> Iterator[Missing]:
    """Yield what could be missing between two tokens, with its cost.

    found: The tokens of the line.
    left, right: The two; None at its ends.
    inside: The bracket that is open there.
    """
    first = found[0].text
    if left is None:
        if right is not None:
            yield from _at_the_start(found, right)
        return
    if left.text == "not" and right is not None and any(t.ends_value and t.end < left.start for t in found):
        yield "in", 0.4
    if right is None:
        if left.ends_value:
            yield from ((",", 1.2), (":", 0.9)) if left.text != ":" else ()
        else:
            yield from _operands(found, left, right)
        return
    if left.ends_value:
        if right.begins_value:
            yield from _between_values(found, left, right, inside)
        yield from _before_word(first, right, inside)
        return
    if right.text == "." and left.text != ".":
        yield "self", 0.5
    if first == "def" and left.text == "(" and right.text == ",":
        yield "self", 0.6
    if right.text == ":" and left.text in {"lambda", "(", "=", ","}:
        yield "lambda", 0.8
    if left.text not in CLOSERS and not right.begins_value:
        yield from _operands(found, left, right)


def _at_the_start(found: list[DraftToken], right: DraftToken) -> Iterator[Missing]:
    if right.text == ".":
        yield "self", 0.5
    if any(token.text == "import" for token in found) and right.text not in {"import", "from"}:
        yield "from", 0.5
    yield "return", 1.3
    if right.text == ":":
        yield from (("else", 1.0), ("try", 1.1))


_TEXT_METHODS = frozenset(name for name in dir(str) if not name.startswith("_"))


def _before_word(first: str, right: DraftToken, inside: str) -> Iterator[Missing]:
    """Yield what fits between a value and a word or sign that no value begins with."""
    if inside == "(" and right.text in KEYWORDS | {"="}:
        yield ")", 1.2
    if right.text in {"*", "**"} and first == "def" and inside == "(":
        yield ",", 0.5
    if right.text in {"for", "if", "else", "in", "and", "or", "is", "import", "as"}:
        yield ",", 1.4
    if right.text == "else":
        yield "if True", 1.9


def _between_values(
    found: list[DraftToken], left: DraftToken, right: DraftToken, inside: str
) -> Iterator[Missing]:
    """Yield an operator, a comma, a dot or a word for two adjacent values."""
    first, texts = found[0].text, {token.text for token in found}
    apart = left.end < right.start
    yield ",", 0.55 if inside else 0.85
    if first in {"if", "while", "elif", "return", "assert"} or inside or "=" in texts:
        yield from _OPERATORS
        yield "%", 0.7 if left.kind == "string" else 1.1
        yield "if", 0.9
        yield "else", 0.5 if "if" in texts and "else" not in texts and first != "if" else 1.2
    yield from _words(found, left, texts, inside)
    if (
        (left.kind == "name" or left.text in {")", "]"})
        and right.kind == "name"
        and right.text not in KEYWORDS
    ):
        yield ".", 0.9 if apart else 0.7
    if left is found[0]:
        yield from (("=", 0.6), ("+=", 1.0), ("-=", 1.2))
    elif left.kind == "name":
        yield "=", 0.65 if first == "self" else 0.75 if inside == "(" else 1.0
    elif left.text in {"]", ")"} and not inside:
        yield from (("=", 0.7), ("+=", 1.0), ("-=", 1.1))
    if left.kind == "name" and right.kind in {"name", "number", "string"}:
        yield "(", 0.9
    if not apart and left.kind == "string" and right.kind == "name":
        yield "+", 0.6
        if right.text in _TEXT_METHODS:
            yield ".", 0.4
    if not apart and left.kind == "name" and right.kind == "string":
        yield "[", 1.1
    yield from ((";", 1.6), ("[", 1.2))


def _words(found: list[DraftToken], left: DraftToken, texts: set[str], inside: str) -> Iterator[Missing]:
    """Yield the word that the line's first token or its bracket asks for."""
    first = found[0].text
    if first == "for" and "in" not in texts:
        yield "in", 0.3
    if "in" in texts and "for" not in texts and inside:
        yield "for", 0.45
    if inside in {"{", "["}:
        yield ":", 0.65 if inside == "{" else 0.8
    if first == "def":
        yield from ((":", 0.65),) if inside == "(" else (("->", 0.4),) if left.text == ")" else ()
    if "lambda" in texts:
        yield ":", 0.5
    if first in {"import", "with", "except", "from"}:
        yield "as", 0.6
    if first == "from" and "import" not in texts:
        yield "import", 0.3
    if first in BLOCK:
        yield ":", 0.7


def _operands(found: list[DraftToken], left: DraftToken, right: DraftToken | None) -> Iterator[Missing]:
    """Yield a value for an operator that lacks one: a name of the line, or a neutral one."""
    names = [t.text for t in found if t.kind == "name" and t.text not in KEYWORDS]
    if left.text == "def" and (right is None or right.text == "("):
        yield "run", 1.0
    elif left.text in _NAMED or (right is not None and right.text == "="):
        yield from ((name, 1.3) for name in dict.fromkeys(names[-3:]))
        yield "_", 1.5
    else:
        yield from ((name, 1.45 + 0.02 * i) for i, name in enumerate(dict.fromkeys(names[:3])))
        yield "None", 1.3
        if left.text not in {",", "(", "["}:
            yield from (("0", 1.5), ("1", 1.5), ('""', 1.6))


# Headers of blocks: their word and their colon


#: Words that begin a statement.
_WORDS = ("def", "class", "return", "import", "from", "while", "for", "elif", "else", "except", "finally", "with", "raise",
          "yield", "assert", "global", "nonlocal", "try", "pass", "break", "continue", "lambda", "async", "await", "del", "if")  # fmt: skip


def header_changes(draft: Draft, number: int, found: list[DraftToken], far: float) -> Iterator[Repair]:
    """Yield changes to the colon that ends a header and the word that begins one."""
    lines = draft.lines
    first, last = found[0], found[-1]
    in_line = f"in line {number}"
    if first.text in BLOCK and last.text != ":":
        yield draft.replaced(last.end, last.end, ":", 0.4 + far, f"`:` is added {in_line}")
        if last.text in {";", ",", ".", "=", "::", "->", ")"}:
            yield draft.replaced(last.start, last.end, ":", 0.5 + far, f"`{last.text}` becomes `:` {in_line}")
    if first.text in BLOCK and last.text == ":" and len(found) > 1 and found[-2].text in {";", ",", ".", ":"}:
        yield draft.replaced(
            found[-2].start, last.end, ":", 0.5 + far, f"a stray character is removed {in_line}"
        )
    yield from _respelt(draft, first, in_line, far)
    if last.text == ":" and first.text not in BLOCK:
        for word, cost in _missing_head([t.text for t in found]):
            yield draft.replaced(first.start, first.start, f"{word} " if len(found) > 1 else word, cost + far,
                                 f"`{word}` is added {in_line}")  # fmt: skip
        yield draft.replaced(last.start, last.end, "", 0.8 + far, f"a stray `:` is removed {in_line}")
    if last.text in {";", ",", ".", "\\", ":"} and number == draft.line:
        yield draft.replaced(
            last.start, last.end, "", 0.7 + far, f"a stray `{last.text}` is removed {in_line}"
        )
    if first.text == "else" and last.text == ":" and len(found) > 2:
        yield draft.replaced(first.start, first.end, "elif", 0.6 + far, f"`else` becomes `elif` {in_line}")
    if first.text == "elif" or first.text == "else":
        yield draft.replaced(
            first.start, first.end, "if", 0.9 + far, f"`{first.text}` becomes `if` {in_line}"
        )
    if first.text == "elif" and len(found) == 2 and last.text == ":":
        yield draft.replaced(first.start, first.end, "else", 0.5 + far, f"`elif` becomes `else` {in_line}")
    start, end = lines.start(number), lines.end(number)
    if number == draft.line:
        yield draft.replaced(start, min(end + 1, len(draft.text)), "", 2.2, f"line {number} is removed")


def _respelt(draft: Draft, first: DraftToken, in_line: str, far: float) -> Iterator[Repair]:
    """Correct a first word that is misspelt, in capitals, or joined with the next one."""
    if first.kind != "name" or first.text in KEYWORDS:
        return
    words = [*near_misses(first.text, _WORDS, 2), *({first.text.lower()} & KEYWORDS)]
    for word in dict.fromkeys(words):
        done = f"`{first.text}` is spelt `{word}` {in_line}"
        yield draft.replaced(first.start, first.end, word, 0.5 + far, done)
    for word in _WORDS:
        if first.text.startswith(word) and len(first.text) > len(word):
            at = first.start + len(word)
            yield draft.replaced(at, at, " ", 0.6 + far, f"a space is added {in_line}")


def _missing_head(texts: list[str]) -> Iterator[tuple[str, float]]:
    """Yield the words that could begin a line that ends as a header does, with their costs."""
    if len(texts) == 1:
        yield from (("else", 0.6), ("try", 0.7), ("finally", 0.8), ("except", 0.8))
        return
    if re.fullmatch(r"[a-z_]\w*", texts[0]) and texts[1] == "(" and texts[-2] == ")":
        yield "def", 0.65
    if re.fullmatch(r"[A-Z]\w*", texts[0]):
        yield "class", 0.7 if len(texts) == 2 or texts[1] == "(" else 1.1
        yield "except", 0.75 if "as" in texts or len(texts) == 2 else 1.1
    if "in" in texts:
        yield "for", 0.65
    yield "if", 0.7
    yield "elif", 0.8
    yield "while", 0.9
    if "as" in texts or texts[-2] == ")":
        yield "with", 0.75 if "as" in texts else 1.0
    yield "case", 1.2
