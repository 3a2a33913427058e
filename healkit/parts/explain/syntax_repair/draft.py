"""Draft of code that does not compile, and where it stops.

`tokenize` stops at the first unknown text. The tokenizer here never stops: unreadable text is a token too.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import re
import warnings
from functools import cached_property, lru_cache
from typing import NamedTuple


class CompilerMessage(NamedTuple):
    """Why a text does not compile: the message, and the line (from 1) and column (characters from 0) where it stops."""

    message: str
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0


def compiler_message(text: str, *, is_cell: bool = False) -> CompilerMessage | None:
    """Return the compiler's error for a text, None if it compiles; never raises and runs nothing.

    Warnings are ignored, because a filter that turns them into errors would refuse valid code.

    is_cell: The code may await outside a function.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if is_cell else 0
            compile(text, "<draft>", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        return CompilerMessage(
            error.msg or "invalid syntax",
            error.lineno or 1,
            max(0, (error.offset or 1) - 1),
            error.end_lineno or 0,
            max(0, (error.end_offset or 1) - 1),
        )
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return CompilerMessage(str(error), 1, 0)
    return None


# Tokens, lines and changes


_PREFIX = "(?i:[rbuf]|rb|br|fr|rf)?"
#: Signs of Python and of other languages, the longest first.
_SIGNS = (
    "**= //= >>= <<= === !== ... := -> => =< <> == != <= >= ++ -- += -= *= /= %= &= |= ^= @= ** // << >> && || ?? :: "
    "- + * / % @ & | ^ ~ < > ( ) [ ] { } , : ; . = ! ? ` $"
)
#: Kinds of tokens in the order in which they are tried: kind, pattern, example.
TOKENS = (
    ("string", rf'{_PREFIX}"""(?:\\.|[^\\])*?"""', '"""a\nb"""'),
    ("string", rf"{_PREFIX}'''(?:\\.|[^\\])*?'''", "r'''a\nb'''"),
    ("string", rf'{_PREFIX}"(?:\\.|[^"\\\n])*"', 'f"a"'),
    ("string", rf"{_PREFIX}'(?:\\.|[^'\\\n])*'", "'a'"),
    ("open", rf"{_PREFIX}(?:\"\"\"|'''|\"|')[^\n]*", "'a"),
    ("comment", r"\#[^\n]*", "# a"),
    ("number", r"\d[\w.]*(?<!\.\.)", "1.5"),
    ("name", r"[^\W\d]\w*", "a1"),
    ("newline", r"\r?\n", "\n"),
    ("space", r"[ \t\f]+|\\\r?\n", "  "),
    ("op", "|".join(map(re.escape, _SIGNS.split())), ">>="),
    ("other", ".", "\x00"),
)
_TOKEN = re.compile(
    "|".join(
        f"(?P<{kind}>{'|'.join(pattern for _, pattern, _ in rows)})"
        for kind, rows in itertools.groupby(TOKENS, key=lambda row: row[0])
    ),
    re.DOTALL,
)
OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {close: open_ for open_, close in OPENERS.items()}
KEYWORDS = frozenset(keyword.kwlist) - {"None", "True", "False"}
#: Words that only a statement begins with.
STARTERS = frozenset((
    "def", "class", "return", "raise", "import", "del", "pass", "break", "continue", "while", "try", "except",
    "finally", "with", "global", "nonlocal", "elif", "assert",
))  # fmt: skip


class DraftToken(NamedTuple):
    """A token: its kind, its text, and where it begins (characters from 0)."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Position after its last character."""
        return self.start + len(self.text)

    @property
    def ends_value(self) -> bool:
        """True if a value can end with it."""
        if self.kind == "name":
            return self.text not in KEYWORDS
        return self.kind in {"string", "number"} or self.text in CLOSERS or self.text == "..."

    @property
    def begins_value(self) -> bool:
        """True if a value can begin with it."""
        if self.kind == "name":
            return self.text not in KEYWORDS or self.text in {"not", "lambda", "await"}
        return (
            self.kind in {"string", "number"} or self.text in OPENERS or self.text in {"-", "+", "~", "..."}
        )


def tokens(text: str, start: int = 0, end: int | None = None) -> list[DraftToken]:
    """Return every token of a text or a part of it, white space and comments included."""
    return [
        DraftToken(m.lastgroup or "other", m.group(), m.start())
        for m in _TOKEN.finditer(text, start, end or len(text))
    ]


def code_tokens(text: str, start: int = 0, end: int | None = None) -> list[DraftToken]:
    """Return the tokens that are neither white space nor comments."""
    return [t for t in tokens(text, start, end) if t.kind not in {"space", "comment", "newline"}]


@lru_cache(maxsize=64)
def masked(text: str) -> str:
    """Blank out the insides of strings and comments, each character in its place."""
    parts = []
    for token in tokens(text):
        if token.kind == "string":
            parts.append("".join(c if c in "\"'\n" else "\x01" for c in token.text))
        elif token.kind == "comment":
            parts.append("\x02" * len(token.text))
        else:
            parts.append(token.text)
    return "".join(parts)


class Lines:
    """A text by its lines (from 1)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = text.splitlines(keepends=True) or [""]
        self.starts = [0]
        for line in self.all:
            self.starts.append(self.starts[-1] + len(line))

    def __len__(self) -> int:
        return len(self.all)

    def line(self, number: int) -> str:
        """Return a line without its line end; empty beyond the text."""
        return self.all[number - 1].rstrip("\r\n") if 0 < number <= len(self.all) else ""

    def start(self, number: int) -> int:
        """Return where a line begins."""
        return self.starts[min(max(number, 1), len(self.all)) - 1]

    def end(self, number: int) -> int:
        """Return where a line ends, before its line end."""
        return self.start(number) + len(self.line(number))

    def indent(self, number: int) -> str:
        """Return the white space at the start of a line."""
        line = self.line(number)
        return line[: len(line) - len(line.lstrip(" \t"))]

    @cached_property
    def continued(self) -> set[int]:
        """Lines that continue an earlier one: inside brackets, or inside a long text."""
        line_numbers: set[int] = set()
        depth, line = 0, 1
        for token in tokens(self.text):
            if token.kind == "op":
                depth = max(0, depth + (token.text in OPENERS) - (token.text in CLOSERS))
            count = token.text.count("\n")
            if count and (depth or token.kind in {"string", "space"}):
                line_numbers |= set(range(line + 1, line + count + 1))
            line += count
        return line_numbers

    def blank(self, number: int) -> bool:
        """Return whether a line is empty or only a comment."""
        stripped = self.line(number).strip()
        return not stripped or stripped.startswith("#")

    def before(self, number: int) -> int:
        """Return the nearest line above that is not blank; 0 if there is none."""
        number = min(number, len(self.all) + 1) - 1
        while number > 0 and self.blank(number):
            number -= 1
        return number

    def after(self, number: int) -> int:
        """Return the nearest line below that is not blank; 0 if there is none."""
        number += 1
        while number <= len(self.all) and self.blank(number):
            number += 1
        return number if number <= len(self.all) else 0


class Repair(NamedTuple):
    """A new text, its cost (about 1 for one sign), and the change, as part of a sentence."""

    text: str
    cost: float
    done: str


class Draft:
    """A text that does not compile, and where Python stops reading it."""

    def __init__(self, text: str, complaint: CompilerMessage) -> None:
        self.text = text
        self.lines = Lines(text)
        self.message = complaint.message
        self.line = min(max(complaint.line, 1), len(self.lines))
        self.column = min(complaint.column, len(self.lines.line(self.line)))
        self.at = self.lines.start(self.line) + self.column
        self.end_at = self.at
        if complaint.end_line and complaint.end_line <= len(self.lines) and complaint.end_column >= 0:
            self.end_at = max(self.at, self.lines.start(complaint.end_line) + complaint.end_column)

    @property
    def left(self) -> tuple[int, int]:
        """Amount that is not read yet: lines, and characters of the line."""
        return len(self.lines) - self.line, len(self.lines.line(self.line)) - self.column

    def replaced(self, start: int, end: int, new: str, cost: float, done: str) -> Repair:
        """Return the change that replaces the text between two positions."""
        return Repair(self.text[:start] + new + self.text[end:], cost, done)

    def where(self, at: int) -> int:
        """Return the line of a position."""
        return self.text.count("\n", 0, at) + 1
