"""What could be missing between two tokens."""

from __future__ import annotations

from collections.abc import Iterator

from healkit.failures.syntax_repair.heads import BLOCK
from healkit.failures.syntax_repair.lexing import CLOSERS, KEYWORDS, Token

Missing = tuple[str, float]

#: Operators between two values, with their costs: the commoner ones are cheaper.
_OPERATORS: tuple[Missing, ...] = (
    ("+", 0.75), ("==", 0.8), ("and", 0.8), ("in", 0.85), ("or", 0.85), ("-", 0.85), ("*", 0.85), ("<", 1.0), (">", 1.0),
    ("/", 1.0), ("!=", 1.0), ("is", 1.0), ("not in", 1.1), (">=", 1.1), ("<=", 1.1), ("is not", 1.3), ("//", 1.3),
)  # fmt: skip
#: Words that take a name behind them, and signs.
_NAMED = {".", "import", "as", "class", "for", "global", "nonlocal", "def"}


def missing(found: list[Token], left: Token | None, right: Token | None, inside: str) -> Iterator[Missing]:
    """What could stand between these two, with its cost.

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


def _at_the_start(found: list[Token], right: Token) -> Iterator[Missing]:
    if right.text == ".":
        yield "self", 0.5
    if any(token.text == "import" for token in found) and right.text not in {"import", "from"}:
        yield "from", 0.5
    yield "return", 1.3
    if right.text == ":":
        yield from (("else", 1.0), ("try", 1.1))


_TEXT_METHODS = frozenset(name for name in dir(str) if not name.startswith("_"))


def _before_word(first: str, right: Token, inside: str) -> Iterator[Missing]:
    """A value, and a word or a sign that no value begins with."""
    if inside == "(" and right.text in KEYWORDS | {"="}:
        yield ")", 1.2
    if right.text in {"*", "**"} and first == "def" and inside == "(":
        yield ",", 0.5
    if right.text in {"for", "if", "else", "in", "and", "or", "is", "import", "as"}:
        yield ",", 1.4
    if right.text == "else":
        yield "if True", 1.9


def _between_values(found: list[Token], left: Token, right: Token, inside: str) -> Iterator[Missing]:
    """Two values side by side: an operator, a comma, a dot or a word is missing."""
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


def _words(found: list[Token], left: Token, texts: set[str], inside: str) -> Iterator[Missing]:
    """What the line's own beginning asks for, or the bracket."""
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


def _operands(found: list[Token], left: Token, right: Token | None) -> Iterator[Missing]:
    """A value is missing after an operator: a name of the line, or nothing in particular."""
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
