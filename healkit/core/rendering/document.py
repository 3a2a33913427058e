"""Documents: the content of cards and lists, as data.

A subject (an execution, a list of tools, a healing) builds one document. `to_text` writes it for a terminal and
`to_html` for a page, with the same words in the same order. A terminal cannot fold, colour or align a button. So a
document can say where the two forms differ. A `Span` may have other words for a terminal (`plain`). A `Fold` says how
much of it a terminal shows. `Only` limits a part to one form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

#: Outcome as a colour: `bad` is red, `warn` amber, `good` green, `info` blue, `quiet` and `ink` grey and
#: black. `ai` is purple; only text written by a model has it.
Tone = Literal["", "good", "warn", "bad", "info", "ai", "quiet", "ink"]

#: `code`: a short word as it is typed. `label`: the same on a coloured heading. `ticked`: a sentence with
#: code in backticks. `quiet`: secondary. `strong`: bold. `state`: bold on one line. `mark`: highlighted.
#: `moment`: a day and a time. `unbroken`: on one line. `struck`: a withdrawn claim.
Look = Literal[
    "", "code", "label", "ticked", "quiet", "strong", "state", "mark", "moment", "unbroken", "struck"
]

#: `bare`: not a block. `note`: a remark to the reader, set apart. Each other look belongs to lines of one
#: kind of card and has its own spacing.
LineLook = Literal["", "bare", "note", "quiet", "warn", "hint", "frame", "command", "tip", "step", "wrapped"]
#: Output form of a part.
Form = Literal["text", "html"]


@dataclass(frozen=True, slots=True)
class Span:
    """A few words with a look; `plain` replaces them in a terminal."""

    text: str
    look: Look = ""
    tone: Tone = ""
    plain: str | None = None


Inline = str | Span | tuple[str | Span, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a document; `label` precedes it in a terminal, and is "" for a line that continues the one above."""

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
    """Preformatted text of any length; a page scrolls it above `max_height_px`."""

    text: str
    max_height_px: int = 0
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff, whose sides differ in sign and colour; `compact` is a smaller form for lists."""

    text: str
    compact: bool = False
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under headers; without headers, each row is a line.

    `cut` is the header of the column that a narrow terminal cuts; it is the last column there. `narrow_first` gives the
    first column a fixed width on a page.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    cut: str = ""
    narrow_first: bool = False
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, one pair per line; `width` is that of the names in a terminal."""

    rows: Sequence[tuple[str, Fact]]
    width: int = 10
    indent: int = 2


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that a page opens on a click; a terminal shows its `summary`, its `body`, both or neither.

    `tone` distinguishes a step by colour; its words must say the same.
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
    """Parts that belong together; `is_last` marks the foot of a card."""

    parts: Sequence[Part]
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Only:
    """A part that appears in one form only."""

    form: Form
    part: Part


@dataclass(frozen=True, slots=True)
class Step:
    """Step of `Steps`, in full and in one line; steps with a lower `rank` are shown in full first."""

    full: Part
    brief: Part
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in order; a page shows them in full up to a size limit, then in one line each, then as a count.

    A card is saved with the notebook and should not make it much larger. A terminal shows all steps in full.
    """

    steps: Sequence[Step]
    max_chars: int


@dataclass(frozen=True, slots=True)
class Card:
    """Card: a mark and a title, lines directly below them, and parts.

    `line` is the first line in a terminal, if it differs from the mark and the title. A card without a title is a frame
    in the tone's colour around its parts.
    """

    title: str = ""
    mark: str = ""
    tone: Tone = ""
    below: Sequence[Part] = ()
    parts: Sequence[Part] = ()
    line: str | None = None


Block = Line | Items | Code | Diff | Table | Facts | Fold | Section | Only | Steps | Card
Part = Inline | Block
#: Content of a table's cell: words, or words and parts below them.
Cell = str | Span | tuple[Part, ...]
#: Content of a fact: words or code.
Fact = Inline | Code
#: Input of a writer: one card, or several to be shown one below the other.
Document = Card | tuple[Card, ...]
