"""Separators between a name and its value, and both ends.

Each pattern is matched at one position and reads a bounded stretch of text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from healkit.sanitizer.secret_values import BARE, QUOTED

NAME_MAX_CHARS = 64
VALUE_MAX_CHARS = 4096
#: Of a bare value, what is read to judge it: names may follow each other closely, and each has a value to read.
BARE_MAX_CHARS = 256
_NAME_MARKS = frozenset("_.$@-")
_NAME_RIGHT = re.compile(r"[\w-]*(?:\.[\w-]+)*")
_EARLIER_WORD = re.compile(r"([A-Za-z]{2,20})[ ]$")
ASSIGN = re.compile(r"""(?x)
    (?P<closed>\\*["'`]|[”’»]|&(?:quot|apos|\#0?3[49]|\#x2[27]);)?[\])]?(?P<pad>[ \t]{0,40})
    (?:[ \t](?:string|String|str|text)\b[ \t]{0,20})?
    (?P<sign>:{1,3}=|=>|->|===?|!==?|\?\??=|[.+]=|=|:(?!:)|：|&\#61;|%3[Dd])
    (?P<gap>[ \t]{0,40}(?:(?:[|>][+-]?[ \t]*)?\\?\r?\n[ \t]{1,40}(?=["'\w]))?)""")
#: ODBC puts a value in braces that holds a separator; braces around a name are a template's.
BRACED = re.compile(
    r"\{((?!\w+(?:![rsa]|=)\})(?=[^{}\n]{0,127}[;@!#$%^&*+=?/])[^{}\n\"'()]{4,128})\}(?=;|$|[\"'])"
)
BESIDE = re.compile(r"""(?xi)
    (?:\\*["']|&(?:quot|apos|\#0?3[49]|\#x2[27]);)?\s{0,3},?\s{1,40}(?:-\s)?\\*["']?(?:default_?)?(?:value|content|val)\\*["']?\s{0,3}[:=]\s{0,3}
    | \\*["']\s{0,3},\s{0,3}\\*["'](?:default_?)?(?:value|content|val)\\*["']\s{0,3}[:=]\s{0,3}""")
PAIR = re.compile(r"""\\*["']\s{0,3},\s{0,3}(?=[bBuU]?\\*["'])""")
ELEMENT = re.compile(r"[^<>\n]{0,80}>\s{0,40}(?:<!\[CDATA\[)?(?=[^<\s])")
TYPED = re.compile(r"[A-Za-z_][\w.\[\], |?]{0,60}[ \t]*=[ \t]*(?=[bBrRuU]?[\"'`])")
OPTION = re.compile(r"""[ \t]+(?![-|&<>;])|["'],[ \t]*(?=["'](?!-))""")
PROSE_QUOTED = re.compile(
    r"""(?xi)[ \t]{1,2}(?:(?:for|of)\s[\w.@-]{1,40}\s)?(?:(?:is|was|of|to|as|set\sto|with)[ \t]:?)?(?=["'`“])"""
)
PROSE_BARE = re.compile(
    r"(?i)(?:[ \t](?:for|of)[ \t](?:user[ \t])?[\w.@'\"-]{1,40})?"
    r"(?:[ \t](?:(?:is|was|set to|provided|given|used|being)[ \t]*:?[ \t]*|:[ \t]*|(?=[\w./+=-]{16}))|:[ \t]*)(?=[\w$!#%&*+/.@^~-])"
)
#: A password may follow its name with nothing between: `with password hunter2`.
NEXT_WORD = re.compile(r"[ \t](?=[^\s\"'`<>|(){}\[\]=:]{6})")
CALL = re.compile(r"""\(\s{0,3}(?=[bBuU]?\\*["'])""")
#: Bytes as numbers: `bytes([57, 80, …])`, `{0x39, 0x50, …}`.
BYTE_LIST = re.compile(
    r"\s{0,3}(?:(?:new )?(?:bytes|bytearray|byte\[\]|Buffer\.from|\[\]byte|Uint8Array(?:\.from)?)\s?)?[(\[{\s]{1,4}"
    r"(?P<numbers>(?:0x[0-9A-Fa-f]{1,2}|\d{1,3})(?:\s{0,3},\s{0,40}(?:0x[0-9A-Fa-f]{1,2}|\d{1,3})){7,2048}),?\s{0,3}[)\]}]"
)
CELL = re.compile(r"(?:[ \t]{1,40}[|│][ \t]{1,40}|\t[ \t]{0,40}|[ ]{2,40}|,(?=[\w+/=-]{12}))(?=[^\s|│-])")
_OPENING = re.compile(
    r"""(?P<prefix>[bBrRuUfF@$]{0,2})(?P<quote>\\*(?:\"{3}|'{3}|["'`“‘])|&(?:quot|apos|\#0?3[49]|\#x2[27]);)""".replace(
        "\\#", "#"
    )
)
_BARE = re.compile(
    r"""(?x)(?![(\[{])(?: [^\s"'`<>,;&)\]}|\\] | \\(?![nrt"'\\]) | &(?!\w{1,40}=|amp;|\s|$) | ,(?=[^\s"'\[{=:]{1,80}(?:\s|$))
    (?![\w.-]{1,40}\s?[=:]) | ;(?=[^\s"';=]{1,80}(?:\s|$)) | [)\]}](?=[\w!@\#$%^*+]) )+"""
)
_CLOSERS = {"“": "”", "‘": "’"}
#: Lone words that mean something only with the word before them: `API key`, `next token`, `connection string`.
_NEEDS_EARLIER = frozenset(
    {"key", "keys", "token", "string", "phrase", "url", "cookie", "signature", "pin", "code"}
)


class ValueSpan(NamedTuple):
    """Place of a value, and how it stands there."""

    start: int
    end: int
    where: str
    f_string: bool = False


def name_at(text: str, start: int, end: int) -> tuple[int, int, str]:
    """Return the bounds of the name around [start, end), and its words.

    A lone word such as `key` gets the word before it too.
    """
    begin = start
    lowest = max(0, start - NAME_MAX_CHARS)
    while begin > lowest and ((letter := text[begin - 1]).isalnum() or letter in _NAME_MARKS):
        begin -= 1
    if begin >= 1 and text[begin - 1] == "\\" and text[begin] in "nrt":
        begin += 1  # `\npassword`: the n is the escape's
    elif begin >= 1 and text[begin - 1] == "%" and re.match(r"[0-9A-Fa-f]{2}", text[begin : begin + 2]):
        begin += 2
    match = _NAME_RIGHT.match(text, end, min(len(text), end + NAME_MAX_CHARS))
    stop = match.end() if match else end
    name = text[begin:stop].rstrip(".-")
    stop = begin + len(name)
    if begin and name.lower() in _NEEDS_EARLIER:
        earlier = _EARLIER_WORD.search(text, max(0, begin - 22), begin)
        name = f"{earlier[1]} {name}" if earlier else name
    return begin, stop, name


def value_at(text: str, position: int) -> ValueSpan | None:
    """Return the quoted or bare value that begins at `position`, or None."""
    opening = _OPENING.match(text, position)
    if opening is None:
        match = _BARE.match(text, position, min(len(text), position + BARE_MAX_CHARS))
        if match is None:
            return None
        end = match.end()
        while (
            end > match.start() + 3
            and text[end - 1] in ".:!?"
            and (end == len(text) or text[end].isspace())
            and text[end - 1] != "!"
        ):
            end -= 1
        return ValueSpan(match.start(), end, BARE)
    quote = opening["quote"]
    start = opening.end()
    end = _closing(text, start, _CLOSERS.get(quote, quote))
    if end == start:
        return None
    f_string = opening["prefix"].lower() in {"f", "rf", "fr"} and "{" in text[start:end]
    return ValueSpan(start, end, QUOTED, f_string)


def _closing(text: str, start: int, quote: str) -> int:
    """Return the end of the quoted text that begins at `start`; an unclosed text ends with its line."""
    limit = min(len(text), start + VALUE_MAX_CHARS)
    position = start
    while (found := text.find(quote, position, limit)) >= 0:
        slashes = found - len(text[start:found].rstrip("\\")) - start
        if slashes % 2 == 0:
            return found
        position = found + 1
    line = re.compile(r"[^\r\n]*").match(text, start, limit)
    return line.end() if line else start
