"""Single tokens: added, left out, exchanged."""

from __future__ import annotations

from collections.abc import Iterator

from healkit.errors import near_misses
from healkit.failures.syntax_repair import block_headers
from healkit.failures.syntax_repair.block_headers import BLOCK
from healkit.failures.syntax_repair.draft import (
    CLOSERS,
    KEYWORDS,
    OPENERS,
    Draft,
    DraftToken,
    Repair,
    code_tokens,
)

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


def changes(draft: Draft) -> Iterator[Repair]:
    """Yield changes of one token in the line where the compiler stops and in the one above."""
    lines = draft.lines
    numbers = [draft.line]
    above = lines.before(draft.line)
    if above:
        numbers.append(above)
    for far, number in enumerate(numbers):
        found = code_tokens(draft.text, lines.start(number), lines.end(number))
        if not found:
            continue
        at = draft.at if number == draft.line else lines.end(number)
        focus = sum(1 for token in found if token.start < at)
        yield from block_headers.changes(draft, number, found, 0.25 * far)
        for place in range(max(0, focus - _WINDOW), min(len(found), focus + _WINDOW) + 1):
            near = 0.25 * far + 0.08 * abs(place - focus)
            yield from _added(draft, found, place, near)
            if place < len(found):
                yield from _exchanged(draft, found, place, near)
        if not far:
            yield from _added_far(draft, found, focus)


def _added(draft: Draft, found: list[DraftToken], place: int, near: float) -> Iterator[Repair]:
    """Add a token between two others, depending on what is on either side."""
    left = found[place - 1] if place else None
    right = found[place] if place < len(found) else None
    at = right.start if right is not None else found[-1].end
    if left is not None and right is not None and left.end < right.start:
        at = left.end
    number = draft.where(at)
    inside = _bracket(found[:place])
    for text, cost in missing(found, left, right, inside):
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
    left = "" if not text[:at] or text[at - 1].isspace() or text[at - 1] in "([{" else " "
    right = "" if text[at : at + 1].isspace() or text[at : at + 1] in {"", ")", "]", "}", ":", ","} else " "
    return f"{left}{sign}{right}"


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
            f"a space inside of an operator is removed from {line}",
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

    found: the tokens of the line. left, right: the two; None at its ends. inside: the bracket that is open there.
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
