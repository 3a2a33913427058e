"""Frames with their local variables, from a retained worker."""

from __future__ import annotations

from collections.abc import Sequence

from healkit.contracts.post_mortem import KeptFrame, Local
from healkit.contracts.tools import place_label
from healkit.rendering.asides import row_of
from healkit.rendering.document import Card, Code, Fold, Line, Part, Section, Span, Table

Frames = Sequence[tuple[KeptFrame, Sequence[Local]]]
_TYPE_MAX_CHARS, _REPR_MAX_CHARS = 120, 200


def card(frames: Frames) -> Card:
    """Build the card of the frames and their locals; the innermost frame is open, the ones around it are folded."""
    title = (
        "Locals, as the worker still holds them"
        if frames
        else "There are no frames of the tool's own to show locals of."
    )
    folds = [
        _frame(frame, found, is_open=index == len(frames) - 1) for index, (frame, found) in enumerate(frames)
    ]
    return Card(parts=(Section((Span(title, "strong"), *folds)),))


def _frame(frame: KeptFrame, found: Sequence[Local], *, is_open: bool) -> Fold:
    """Build one frame: `#1  fibonacci v1, line 3, in fibonacci`; `eval(…, frame=1)` takes that number."""
    rows = [row_of(one, _TYPE_MAX_CHARS, _REPR_MAX_CHARS) for one in found]
    table: Part = Table(("name", "type", "value"), rows, indent=6)
    if not rows:
        table = Line(Span("no locals", "quiet"), "bare", indent=6)
    where = f"#{frame.number}  {place_label(frame.filename)}, line {frame.lineno}, in {frame.name}"
    return Fold(where, (Code(frame.line, indent=6), table), terminal="both", is_open=is_open)
