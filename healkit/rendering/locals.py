"""Frames with their local variables, asked of a kept worker."""

from __future__ import annotations

from collections.abc import Sequence

from healkit.contracts.post_mortem import KeptFrame, Local
from healkit.rendering import markup as m
from healkit.rendering import plain
from healkit.rendering.markup import Html, visible

Frames = Sequence[tuple[KeptFrame, Sequence[Local]]]
_REPR_MAX_CHARS = 200


def locals_text(frames: Frames) -> str:
    """Each frame, and a line for each of its locals: name, type with shape, short repr."""
    lines = ["Locals, as the worker still holds them"]
    for frame, found in frames:
        lines += [f"  {_where(frame)}", f"      {visible(frame.line)}"]
        rows = [(plain.one_line(one.name, 40), _kind(one), _value(one)) for one in found]
        table = plain.text_table(("name", "type", "value"), rows) if rows else "no locals"
        lines.append(plain.indent(table, "      "))
    return "\n".join(lines) if frames else "There are no frames of the tool's own to show locals of."


def locals_html(frames: Frames) -> Html:
    """The same as a card; the innermost frame is open, the ones around it are folded."""
    parts = []
    for index, (frame, found) in enumerate(frames):
        rows = [(m.chip(one.name), m.muted(_kind(one)), m.chip(_value(one))) for one in found]
        body = m.table(("name", "type", "value"), rows) if rows else m.muted("no locals")
        parts.append(m.fold(_where(frame), m.block(frame.line), body, is_open=index == len(frames) - 1))
    text = "Locals, as the worker still holds them" if frames else locals_text(frames)
    return m.card(m.section(m.tag("b", text), *parts))


def _where(frame: KeptFrame) -> str:
    """`#1  fibonacci@1, line 3, in fibonacci`; the number is what `eval(…, frame=1)` takes."""
    return visible(f"#{frame.number}  {frame.filename.strip('<>')}, line {frame.lineno}, in {frame.name}")


def _value(one: Local) -> str:
    return plain.one_line(one.repr, _REPR_MAX_CHARS)


def _kind(one: Local) -> str:
    """`pandas.DataFrame (3, 2)`."""
    shape = "" if one.shape is None else f" {tuple(one.shape)}"
    return plain.one_line(f"{one.type}{shape}", 120)
