"""Text that a terminal can show.

Every module that writes sentences imports this one, so it uses the standard library only.
"""

from __future__ import annotations

import re

#: Escape sequences that only change colours; the text is shown without them.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
#: An escape sequence, or the beginning of one: the rest may come with the next piece of text.
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_](?:[^\x07\x1b\x9c]{0,10000}(?:\x07|\x1b\\|\x9c))?|[ -/]*[0-~]?)"
)
_REORDERS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
#: Characters that move the cursor, ring the bell or reorder the line; they could hide a forged message.
_UNSEEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_REORDERS}]")
#: The same without backspace, carriage return and colours, which progress bars need.
_NOT_DRAWN = re.compile(f"[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f{_REORDERS}]")

#: Code in a sentence, as in Markdown.
TICKED = re.compile(r"`([^`\n]+)`")
#: A name or an operator, which needs quotes to stand out in a sentence.
_NAME = re.compile(r"(?!(?:None|True|False)$)[A-Za-z_][\w.]*|[^\w\s'\"]{1,3}")


def visible(text: str) -> str:
    """Return `text` without colour codes; other control and reordering characters become visible escapes."""
    text = _COLOUR.sub("", text).replace("\r\n", "\n")
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def drawn(text: str) -> str:
    """Return a tool's output in colour, without characters that leave or reorder the line or change the terminal.

    Output comes in pieces. An escape sequence that is split between two pieces loses its beginning and has no effect.
    """
    stripped = _SEQUENCE.sub(lambda match: match[0] if _COLOUR.fullmatch(match[0]) else "", text)
    return _NOT_DRAWN.sub("", stripped)


def seen_json(text: str) -> str:
    """Return JSON text with all control and reordering characters escaped."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def untick(text: str) -> str:
    """Return a sentence without the backticks around code, for a face that cannot show code.

    A name gets quotes, as in Python's own messages. A number, a constant and longer code get none.
    """
    return TICKED.sub(lambda match: f"'{match[1]}'" if _NAME.fullmatch(match[1]) else match[1], text)


def one_line(text: str, limit: int = 120) -> str:
    """Put the text on one line, cut at `limit` characters."""
    flat = " ".join(visible(text[: limit * 8]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def count(number: int, noun: str) -> str:
    """Write a number with its noun: `1 frame`, `2 frames`."""
    plural = {"entry": "entries", "index": "indices"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"


# Secrets in what is shown: texts, URLs, addresses.


#: From the user's name to the last `@`: an unescaped password may contain any character.
_PASSWORD = re.compile(r"(?<=://)([^/?#:]*):.*@", re.DOTALL)
_USER = re.compile(r"(?<=://)[^/?#@]*@")
_OPTION = re.compile(
    r"\b(\w*(?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|credentials?)\s*=)[^&#;\s]*",
    re.IGNORECASE,
)
_QUERY = re.compile(r"\?.*", re.DOTALL)


class Secret(str):
    """A text whose `repr` is `'***'`, so that it stays hidden when a container of it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr("***" if self else "")


def shown_url(url: str) -> str:
    """Return a database's URL or path with `***` for its password, also if the password is an option.

    If the URL cannot be parsed, it hides everything up to the last `@`.
    """
    return _OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def shown_address(url: str) -> str:
    """Return a web address without user, password and query, because each of them may be a key."""
    return _QUERY.sub("", _USER.sub("", _PASSWORD.sub("", url)))
