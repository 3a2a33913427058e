"""HTML from escaped parts and literal colours.

An untrusted notebook loses `<style>`, scripts, SVG, roles and `var()`, so every element carries its own
colours: a card brings background and text colour together and reads the same on a light and on a dark page.
Text that came from a worker is escaped because everything is, unless it is `Html` already; there is no way
to forget it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

INK, PAPER, SOFT, LINE, MUTED = "#1f2328", "#ffffff", "#f4f5f7", "#d5d9df", "#57606a"
RED, RED_SOFT = "#a8201a", "#fdeceb"
GREEN, GREEN_SOFT = "#176639", "#e5f4ea"
AMBER, AMBER_SOFT = "#7a4a00", "#fff3da"
BLUE, BLUE_SOFT = "#0a4f94", "#e8f1fb"

MONO = "font-family:monospace;font-size:12px"
_CARD = (
    f"background-color:{PAPER};color:{INK};border:1px solid {LINE};border-radius:6px;max-width:960px;"
    "margin:6px 0;font-family:sans-serif;font-size:13px;line-height:1.45;overflow:hidden"
)
#: Escape sequences that only colour text; a page shows the text without them.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
#: What moves the cursor, rings, or reorders the line around it: a forged message could hide behind it.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\ufeff]")


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def visible(text: str) -> str:
    """`text` without colour codes, other control and reordering characters spelt out as escapes."""
    text = _COLOUR.sub("", text).replace("\r\n", "\n")
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def tag(name: str, *children: str, style: str = "", **attributes: str | bool) -> Html:
    """One element; children that are not `Html` are escaped. An attribute of True has no value."""
    parts = [f'style="{html.escape(style)}"'] if style else []
    for key, value in attributes.items():
        if value is True:
            parts.append(key)
        elif value is not False:
            parts.append(f'{key}="{html.escape(value)}"')
    opening = " ".join([name, *parts])
    return Html(f"<{opening}>{join(children)}</{name}>")


def join(children: Iterable[str]) -> Html:
    """Children one after another, escaped where they are not `Html`."""
    return Html("".join(c if isinstance(c, Html) else html.escape(visible(c)) for c in children))


def card(*children: str, accent: str = LINE) -> Html:
    """The frame around all that healkit shows: own colours, and a bar that says how it went."""
    return tag("div", *children, style=f"{_CARD};border-left:5px solid {accent}")


def heading(mark: str, text: str, colour: str, background: str, *below: str) -> Html:
    """The first line of a card: a mark and a sentence, and what belongs right under it."""
    line = tag(
        "div", tag("b", f"{mark} {text}"), style=f"color:{colour};font-size:15px;overflow-wrap:anywhere"
    )
    return tag("div", line, *below, style=f"background-color:{background};color:{INK};padding:8px 12px")


def section(*children: str) -> Html:
    """A block of a card with its usual padding."""
    return tag("div", *children, style=f"padding:6px 12px;background-color:{PAPER};color:{INK}")


def muted(text: str) -> Html:
    """Secondary text; still at a contrast of 6 to 1."""
    return tag("span", text, style=f"color:{MUTED}")


def chip(text: str, colour: str = INK, background: str = SOFT) -> Html:
    """A short code-like word with its own colours."""
    style = f"{MONO};color:{colour};background-color:{background};border:1px solid {LINE};border-radius:4px"
    return tag("code", text, style=f"{style};padding:1px 6px;white-space:pre-wrap;overflow-wrap:anywhere")


def block(text: str, *, max_height: str = "") -> Html:
    """Preformatted text that wraps, so that a long line never widens the page."""
    scroll = f";max-height:{max_height};overflow:auto" if max_height else ""
    style = f"{MONO};color:{INK};background-color:{SOFT};padding:6px 8px;margin:2px 0;border-radius:4px"
    return tag("pre", text, style=f"{style};white-space:pre-wrap;overflow-wrap:anywhere{scroll}")


def fold(summary: str, *children: str, is_open: bool = False) -> Html:
    """A part that opens on a click and needs no script for it."""
    head = tag("summary", summary, style=f"cursor:pointer;color:{MUTED}")
    return tag("details", head, *children, open=is_open, style="margin:2px 0")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, narrow_first: bool = False) -> Html:
    """A table whose cells bring their own colours: a page's zebra stripes may be dark under dark ink."""
    cell = "text-align:left;vertical-align:top;padding:3px 10px 3px 0;line-height:1.5"
    cell += f";border:0;border-bottom:1px solid {LINE}"
    cell += f";background-color:{PAPER};color:{INK};white-space:normal;overflow-wrap:anywhere"
    row_style = f"background-color:{PAPER};color:{INK}"
    head = tag(
        "tr",
        *(tag("th", h, style=f"{cell};color:{MUTED};font-weight:normal") for h in headers),
        style=row_style,
    )
    body = []
    for row in rows:
        styles = [f"{cell};width:110px" if narrow_first and i == 0 else cell for i in range(len(row))]
        cells = (tag("td", item, style=look) for item, look in zip(row, styles, strict=True))
        body.append(tag("tr", *cells, style=row_style))
    parts = [tag("thead", head)] if headers else []
    style = "table-layout:auto;border-collapse:collapse;margin:0;font-size:12px;border:0;width:100%"
    return tag("table", *parts, tag("tbody", *body), style=style)


def facts(rows: Iterable[tuple[str, str]]) -> Html:
    """Name and value, one pair a line."""
    style = f"color:{MUTED};white-space:nowrap;padding-right:12px"
    return table((), ((tag("span", name, style=style), value) for name, value in rows), narrow_first=True)
