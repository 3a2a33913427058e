"""One sign or word added, left out, or exchanged."""

from __future__ import annotations

from collections.abc import Iterator

from healkit.errors import near_misses
from healkit.failures.syntax_repair import fitting, heads
from healkit.failures.syntax_repair.lexing import CLOSERS, KEYWORDS, OPENERS, Token, code_tokens
from healkit.failures.syntax_repair.records import Change, Draft

#: Signs that are taken for one another.
_EXCHANGED = {
    ";": (":", ",", ""), ":": ("=", ",", ";", "", " in"), "=": ("==", ":", ""), "==": ("=",), ",": (".", ":", " and", ""), ".": (",", "", "0."),
    "->": (":", ".", ">"), "=>": (":", "->", ">=", "="), "!": ("not ", "!="), "?": ("", ":"), "%": ("",), "&": (" and ",), "|": (" or ",),
    "::": (":", "[::"), "++": (" += 1", "+"), "--": (" -= 1", "-"), ":=": ("=", ":"), "*": ("",), "**": ("",), "(": ("[", "{"), "[": ("(", "{"),
    "{": ("(", "["), ")": ("]", "}", ":"), "]": (")", "}"), "}": (")", "]"), "~": ("",), "^": ("**",), "...": ("",), "<": (" in ", "<="), "-": ("_",),
}  # fmt: skip
_SHORT = ("in", "is", "as", "and", "or", "if")
#: Words that the next or the last one may have grown together with.
_GLUED = ("in", "if", "for", "or", "and", "not", "is", "as", "else", "import", "lambda", "return", "def")
_WINDOW = 4


def changes(draft: Draft) -> Iterator[Change]:
    """Changes of single signs in the line of the complaint and the one above."""
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
        yield from heads.changes(draft, number, found, 0.25 * far)
        for place in range(max(0, focus - _WINDOW), min(len(found), focus + _WINDOW) + 1):
            near = 0.25 * far + 0.08 * abs(place - focus)
            yield from _added(draft, found, place, near)
            if place < len(found):
                yield from _exchanged(draft, found, place, near)
        if not far:
            yield from _added_far(draft, found, focus)


def _added(draft: Draft, found: list[Token], place: int, near: float) -> Iterator[Change]:
    """Something between two tokens, by what stands on either side."""
    left = found[place - 1] if place else None
    right = found[place] if place < len(found) else None
    at = right.start if right is not None else found[-1].end
    if left is not None and right is not None and left.end < right.start:
        at = left.end
    number = draft.where(at)
    inside = _bracket(found[:place])
    for text, cost in fitting.missing(found, left, right, inside):
        put = _spaced(draft.text, at, text)
        yield draft.replaced(at, at, put, cost + near, f"`{text}` is added in line {number}")


def _added_far(draft: Draft, found: list[Token], focus: int) -> Iterator[Change]:
    """A comma or a colon elsewhere in the line: the complaint can come late."""
    for place in range(1, len(found)):
        if abs(place - focus) > _WINDOW and found[place - 1].ends_value and found[place].begins_value:
            at = found[place - 1].end
            yield draft.replaced(at, at, ",", 1.1, f"`,` is added in line {draft.where(at)}")


def _bracket(before: list[Token]) -> str:
    """The innermost bracket that is open there, in this line."""
    stack: list[str] = []
    for token in before:
        if token.text in OPENERS:
            stack.append(token.text)
        elif token.text in CLOSERS and stack:
            stack.pop()
    return stack[-1] if stack else ""


def _spaced(text: str, at: int, sign: str) -> str:
    """The sign with the spaces that it has in good style."""
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


def _exchanged(draft: Draft, found: list[Token], place: int, near: float) -> Iterator[Change]:
    """One token left out, another in its place, or it and the next one the other way round."""
    token = found[place]
    line = f"line {draft.where(token.start)}"
    sign = token.kind in {"op", "other"}

    def other(new: str, cost: float, done: str) -> Change:
        return draft.replaced(token.start, token.end, new, cost + near, f"{done} in {line}")

    yield other("", 0.8 if sign else 1.35, f"a stray `{token.text}` is left out")
    for new in _EXCHANGED.get(token.text, ()):
        yield other(new, 0.75, f"`{token.text}` becomes `{new.strip()}`")
    if token.text in KEYWORDS:
        yield other(f"{token.text}_", 1.1, f"`{token.text}` is no name, and is written `{token.text}_`")
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


def _with_next(draft: Draft, token: Token, following: Token, near: float, line: str) -> Iterator[Change]:
    """Two neighbours: one of them twice, in the wrong order, or one sign in two parts."""
    gap = draft.text[token.end : following.start]
    if following.text == token.text:
        cost = 0.5 if token.kind in {"op", "other"} else 0.35
        yield draft.replaced(
            token.start, following.start, "", cost + near, f"a doubled `{token.text}` is left out of {line}"
        )
    swapped = f"{following.text}{gap}{token.text}"
    yield draft.replaced(
        token.start, following.end, swapped, 1.15 + near, f"two signs change places in {line}"
    )
    if token.kind == following.kind == "op" and gap and not gap.strip(" "):
        yield draft.replaced(
            token.end, following.start, "", 0.7 + near, f"a space inside of a sign is left out of {line}"
        )
