"""Headers of blocks: their word and their colon."""

from __future__ import annotations

import re
from collections.abc import Iterator

from healkit.errors import near_misses
from healkit.failures.syntax_repair.draft import KEYWORDS, Draft, DraftToken, Repair

#: Words that begin a block.
BLOCK = (
    "if", "for", "while", "elif", "else", "def", "class", "try", "except", "finally", "with", "match", "case",
    "async",
)  # fmt: skip
#: Words that begin a statement.
_WORDS = ("def", "class", "return", "import", "from", "while", "for", "elif", "else", "except", "finally", "with", "raise",
          "yield", "assert", "global", "nonlocal", "try", "pass", "break", "continue", "lambda", "async", "await", "del", "if")  # fmt: skip


def changes(draft: Draft, number: int, found: list[DraftToken], far: float) -> Iterator[Repair]:
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
