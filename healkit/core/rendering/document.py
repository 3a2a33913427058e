"""Documents: what healkit shows, as data.

A subject (an execution, a list of tools, a healing) builds one document; `to_text` writes it for a terminal and
`to_html` for a page. Both write the same words in the same order. Where a form must differ, the document says so: a
terminal cannot fold, colour or align a button, so a `Span` may have other words there (`plain`), a `Fold` says how much
of it a terminal shows, and `Only` keeps a part to one form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

#: Outcome as a colour: `bad` is red, `warn` amber, `good` green, `info` blue, `quiet` and `ink` grey and black. `ai` is
#: purple, for what a model wrote and nothing else.
Tone = Literal["", "good", "warn", "bad", "info", "ai", "quiet", "ink"]

#: `code`: a short word as it is typed. `label`: the same on a coloured heading. `ticked`: a sentence in which backticks
#: mark code. `quiet`: secondary. `strong`: bold. `state`: bold on one line. `mark`: highlighted. `moment`: a day and a
#: time. `unbroken`: on one line. `struck`: a claim that is taken back.
Look = Literal[
    "", "code", "label", "ticked", "quiet", "strong", "state", "mark", "moment", "unbroken", "struck"
]

#: `bare`: not a block of its own. `note`: a remark to the reader, set apart. The rest are lines of one kind of
#: card each, with the spacing that it wants.
LineLook = Literal["", "bare", "note", "quiet", "warn", "hint", "frame", "command", "tip", "step", "wrapped"]
#: Form that a part is for.
Form = Literal["text", "html"]


@dataclass(frozen=True, slots=True)
class Span:
    """Few words with a look; `plain` are the words in a terminal, where they differ."""

    text: str
    look: Look = ""
    tone: Tone = ""
    plain: str | None = None


Inline = str | Span | tuple[str | Span, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a document; `label` is what a terminal writes before it, "" for a line that belongs to the one above."""

    content: Inline
    look: LineLook = ""
    label: str | None = None
    indent: int = 2


@dataclass(frozen=True, slots=True)
class Items:
    """List of sentences with dashes or bullets."""

    items: Sequence[str]


@dataclass(frozen=True, slots=True)
class Code:
    """Preformatted text, as long as it is; a page scrolls it above `max_height_px`."""

    text: str
    max_height_px: int = 0
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff, its sides told apart by sign and by colour; `compact` is a smaller one within a list."""

    text: str
    compact: bool = False
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under headers; without headers, each row is a line.

    `cut` is the header of the column that a narrow terminal cuts, and which is therefore the last one there.
    `narrow_first` gives a page's first column a fixed width.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    cut: str = ""
    narrow_first: bool = False
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, one pair a line; `width` is that of the names in a terminal."""

    rows: Sequence[tuple[str, Fact]]
    width: int = 10
    indent: int = 2


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that a page opens on a click; a terminal shows its `summary`, its `body`, both or neither.

    `tone` sets a step apart by its colours; its words must say the same.
    """

    summary: Inline
    body: Sequence[Part]
    terminal: Literal["summary", "body", "both", "neither"] = "neither"
    is_open: bool = False
    look: Literal["", "step"] = ""
    indent: int = 2
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Parts that belong together; `is_last` is the foot of a card."""

    parts: Sequence[Part]
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Only:
    """A part that one form has and the other does not."""

    form: Form
    part: Part


@dataclass(frozen=True, slots=True)
class Step:
    """Step of `Steps`: in full, and in one line; the one with the lower `rank` is shown in full first."""

    full: Part
    brief: Part
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in order; a page has them in full up to a size, then in one line each, then counted.

    A card is saved with the notebook, which should not grow much by it. A terminal has them all.
    """

    steps: Sequence[Step]
    max_chars: int


@dataclass(frozen=True, slots=True)
class Card:
    """Card: a mark and a title, lines right under them, and parts.

    `line` is a terminal's first line, where it is not the mark and the title. A card without a title is its parts, in a
    frame with the tone's colour.
    """

    title: str = ""
    mark: str = ""
    tone: Tone = ""
    below: Sequence[Part] = ()
    parts: Sequence[Part] = ()
    line: str | None = None


Block = Line | Items | Code | Diff | Table | Facts | Fold | Section | Only | Steps | Card
Part = Inline | Block
#: Content of a table's cell: words, and below them parts of its own.
Cell = str | Span | tuple[Part, ...]
#: Content of a fact: words, or a part of its own.
Fact = Inline | Code
#: Input of a writer: one card, or several one below the other.
Document = Card | tuple[Card, ...]
