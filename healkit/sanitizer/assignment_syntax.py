"""Separators between a name and its value, and both ends.

Each pattern is matched at one position and reads a bounded stretch of text.
"""

from __future__ import annotations

import re
import string
from typing import NamedTuple

from healkit.sanitizer.secret_values import BARE, QUOTED

NAME_MAX_CHARS = 64
VALUE_MAX_CHARS = 4096
#: Of a quoted value without an end, what is read; the rest of its last word is hidden with it.
UNCLOSED_MAX_CHARS = 512
#: Of a bare value, what is read to judge it: names may follow each other closely, and each has a value to read.
BARE_MAX_CHARS = 80
#: Where a bare value is cut, its pattern cannot look ahead, and may leave out the last character.
_MISREAD_CHARS = 1
_NAME_LETTERS = string.ascii_letters + string.digits + "_.$@-"
_NAME_RIGHT = re.compile(r"[\w-]*(?:\.[\w-]+)*")
_EARLIER_WORD = re.compile(r"([A-Za-z]{2,20})[ ]$")
ASSIGN = re.compile(r"""(?x)
    (?P<closed>\\*["'`]|%2[27]|%5D|[”’»]|\*\*|\x1b\[[\d;]{0,8}m|\\*&(?:amp;)?(?:quot|apos|\#0?3[49]|\#x2[27]);)?(?:[\])]|\[\d{0,4}\]|,[ ](?:_|err)\b|[ ]\((?:hex|base64|b64|raw|plain|text|pem)\))?(?P<pad>(?:[ \t]{0,40}|&nbsp;)(?:\.{2,40}[ \t]{0,3})?)
    (?:[ \t](?:[aA]s[ ])?(?:string|String|str|text)\b[ \t]{0,20}|\{[ ]?get;[^{}\n]{0,40}\}[ ]?)?
    (?P<sign>:{1,3}=|=>|->|<<<|<-(?=[ \t]*["'])|===?|!==?|\?\??=|[.+]=|=|:(?!:)|：|&\#(?:61|58|[xX]3[aAdD]);|%3[DdAa])
    (?P<gap>[ \t]{0,40}(?:%2[27]|(?:\*\*|\x1b\[[\d;]{0,8}m|</?(?:code|b|strong|em|tt|kbd|span|i)>|&nbsp;){1,3}[ \t]{0,8})?(?:(?:[|>][+-]?[ \t]*)?\\?\r?\n[ \t]{1,40}(?=["'\w]))?)""")
#: ODBC puts a value in braces that holds a separator; braces around a name are a template's.
BRACED = re.compile(
    r"\{((?!\w+(?:![rsa]|=)\})(?=[^{}\n]{0,127}[;@!#$%^&*+=?/])[^{}\n\"'()]{4,128})\}(?=;|$|[\"'])"
)
BESIDE = re.compile(r"""(?xi)
    (?:\\*["']|&(?:amp;)?(?:quot|apos|\#0?3[49]|\#x2[27]);)?\s{0,3},?\s{1,40}(?:-\s)?\\*["']?(?:default_?)?(?:value|content|val)\\*["']?\s{0,3}[:=]\s{0,3}
    | \\*["']\s{0,3},\s{0,3}\\*["'](?:default_?)?(?:value|content|val)\\*["']\s{0,3}[:=]\s{0,3}""")
PAIR = re.compile(r"""\\*["'](?:\s{0,3},\s{0,3}|[ ])(?=[bBuU]?\\*["'])""")
#: `<entry key="password">…`, `<key>ApiKey</key><string>…`.
ATTRIBUTE = re.compile(
    r"[\"']?\s{0,3}>(?:\s{0,40}<\w{1,20}>)?\s{0,40}(?=[^<\s])|</\w{1,20}>\s{0,40}<\w{1,20}>(?=[^<\s])"
)
#: `password=[…]`, as programs log it.
BRACKETED = re.compile(r"[\[<{]([^\s\[\]<>{}\"',]{6,256})[\]>}]")
#: A value on the next line, which holds nothing else.
NEXT_LINE = re.compile(r"[ \t]{0,8}\r?\n\s{0,24}(?=[^\s\"'`<>(){}\[\]=:,]{8,200}[ \t]*(?:\r?\n|$))")
ELEMENT_ESCAPED = re.compile(r"&gt;\s{0,40}(?=[^&\s])")
ELEMENT = re.compile(r"[^<>\n]{0,80}>\s{0,40}(?:<!\[CDATA\[)?(?=[^<\s])")
TYPED = re.compile(r"(?:&(?:'\w{1,12} )?)?[A-Za-z_\[][\w.\[\], |?]{0,60}[ \t]*=[ \t]*(?=[bBrRuU]?[\"'`])")
#: A form's field in a body of parts.
PART = re.compile(r"\"[^\r\n\\]{0,120}(?:(?:\r?\n){2}|(?:(?:\\r)?\\n){2})(?=[^\s-])")
#: A sentence that ends in a colon, with a value alone on a line below.
ANNOUNCED = re.compile(
    r"[ \t][^\n:\"'`=<>]{1,60}:[ \t]*(?:\r?\n[ \t]{0,8}){1,2}(?=[^\s\"'`<>(){}\[\]=:,]{8,200}[ \t]*(?:\r?\n|$))"
)
OPTION = re.compile(r"""[ \t]+(?![-|&<>;])|["'],[ \t]*(?=["'](?!-))""")
#: `password "…";` on a line of its own, also behind `#define`.
DIRECTIVE, DIRECTIVE_BEFORE, DIRECTIVE_END = (
    re.compile(r"[ \t]{1,40}(?=[\"'])"),
    re.compile(r"[ \t]*(?:#[ \t]*define[ \t]+)?"),
    re.compile(r"[\"'][ \t]*;?[ \t]*(?:\r?\n|\\n|//|/\*|$)"),
)
PROSE_QUOTED = re.compile(
    r"""(?xi)[ \t]{1,2}(?:(?:for|of)\s[\w.@-]{1,40}\s)?(?:(?:is|was|of|to|as|set\sto|with)[ \t]:?)?(?=["'`“])"""
)
PROSE_BARE = re.compile(
    r"(?i)(?:[ \t]\((?:for|of)[ \t][^()\n]{1,40}\)|[ \t](?:for|of)[ \t](?:user[ \t])?[\w.@'\"-]{1,40})?"
    r"(?:[ \t](?:(?:is generated for \S{1,60}:|is|was|(?:(?:re)?set|changed|updated)(?: to)?|provided|given|used|being)[ \t]*:?[ \t]*|:[ \t]*|(?=[\w./+=-]{16}))|:[ \t]*)(?=[\w$!#%&*+/.@^~-])"
)
#: A password may follow its name with nothing between: `with password hunter2`.
NEXT_WORD = re.compile(r"[ \t](?=[^\s\"'`<>|(){}\[\]=:]{6})")
#: `std::string token{"…"}`.
BRACE = re.compile(r"""\{\s?(?=\")""")
#: Calls that give back the text they are called with, as bytes, as a secret, or decoded; `{"…"}` initializes in C++.
WRAPPER = re.compile(
    r"""(?xi)(?:(?:[\w.]{1,30}(?:\.|::))?(?:SecretStr|SecretBytes|Secret|SecureString|Field|from|bytes|bytearray|str|String|to_string|fromhex|DecodeString|unhexlify|(?:url_?safe_?)?b(?:ase)?64_?decode(?:string)?|atob|encode|strdup
    |Some|Just|of|Optional|StringPtr|_T|TEXT|L|SecString|ProtectedString|literal|pulumi\.secret|Token|Password|ApiKey)\(|(?:std::)?string\{|\[\]byte\(|!!(?:str|binary)[ ]|(?:os\.)?(?:getenv|environ\.get)\(\s{0,3}["'][\w.-]{1,80}["']\s{0,3},)
    \s{0,3}(?:default\s?=\s?)?(?=[bBuUrR]?\\*["'])"""
)
CALL = re.compile(r"""\(\s{0,3}(?=[bBuU]?\\*["'])""")
#: Bytes as numbers: `bytes([57, 80, …])`, `{0x39, 0x50, …}`.
_ITEM = r"(?:\(byte\)\s?)?(?:-?0x[0-9A-Fa-f]{1,2}|-?\d{1,3}|'[^'\\\n]')"
BYTE_LIST = re.compile(
    r"\s{0,3}(?:&?\[\w{1,8}(?:;\s?\d{1,5})?\]\s?=\s?)?[^\n;=:,\"']{0,40}?(?:[\"'][^\"'\n]{0,4}[\"'](?:\.join\(|,)[^\n;=:,\"']{0,40}?)?(?<=[(\[{<,\s])\s{0,24}"
    rf"(?P<numbers>{_ITEM}(?:\s{{0,3}},\s{{0,40}}{_ITEM}){{7,2048}}),?\s{{0,40}}[)\]}}>]"
)
#: `CURLOPT_PASSWORD, "…"`: a constant that names what follows it in a call.
CONSTANT = re.compile(r",\s{0,3}(?=[bBuU]?[\"'])")
CELL = re.compile(r"(?:[ \t]{1,40}[|│][ \t]{1,40}|\t[ \t]{0,40}|[ ]{2,40}|,(?=[\w+/=-]{12}))(?=[^\s|│-])")
_OPENING = re.compile(
    r"""(?P<prefix>[bBrRuUfFNEL@$]{0,2})(?P<quote>\\*(?:\"{3}|'{3}|''(?=[^'\s,;:)\]}.+])|["'`“‘])|\\*&(?:amp;)?(?:quot|apos|\#0?3[49]|\#x2[27]);)""".replace(
        "\\#", "#"
    )
)
_BARE_REST = re.compile(
    r"""(?x)(?: [^\s"'`<>,;&)\]}|\\]++ | \\(?![nrt"'\\]) | &(?!\w{1,40}=|amp;|\s|$) | ,(?=[^\s"'\[{=:]{1,80}(?:\s|$))
    (?![\w.-]{1,40}\s?[=:]) | ;(?=[^\s"';=]{1,80}(?:\s|$)) | [)\]}](?=[\w!@\#$%^*+]) )+"""
)
_BARE = re.compile(r"(?x)(?![(\[{])" + _BARE_REST.pattern.removeprefix("(?x)"))
_QUOTED_REST = re.compile(
    r"(?:[^\s\"'`<”’»\\&]++|\\(?!\\{0,16}[\"'])|&(?!(?:amp;)?(?:quot|apos|lt|#0?3[49]|#x2[27]);))*"
)
_LINE = re.compile(r"[^\r\n]*")
_CLOSERS = {"“": "”", "‘": "’"}
#: Lone words that mean something only with the word before them: `API key`, `next token`, `connection string`.
_NEEDS_EARLIER = frozenset(
    {"key", "keys", "token", "string", "phrase", "url", "cookie", "signature", "pin", "code"}
)


class ValueSpan(NamedTuple):
    """Place of a value, and how it stands there; `cut` where it may go on behind the part that was read."""

    start: int
    end: int
    where: str
    f_string: bool = False
    cut: bool = False


#: A literal goes on in the next: behind an operator, or in brackets on the next line.
_NEXT_LITERAL = re.compile(
    r"[\"'`](?:[ \t]{0,4}[+.&][ \t]{0,4}(?:\\?\r?\n[ \t]{0,60})?|[ \t]{0,4}\\?\r?\n[ \t]{0,60}[+.&][ \t]{0,4}|[ \t]{0,4}\\\r?\n[ \t]{0,60})(?=[bBrRuU]?[\"'`])"
)
_NEXT_LINES_LITERAL, _IN_BRACKETS = (
    re.compile(r"[\"'`][ \t]{0,4}\r?\n[ \t]{0,60}(?=[bBrRuU]?[\"'`])"),
    re.compile(r"\(\s{0,60}[bBrRuU]?[\"'`]$"),
)
_LITERALS_MAX, _NAMES_ANOTHER = 16, re.compile(r"[\"'`]\s{0,3}[:=]")


def end_of(text: str, value: ValueSpan) -> int:
    """Return the end of the whole value: of one that was cut, or that is written as several literals."""
    if not value.cut:
        return value.end if value.where == BARE else _last_literal(text, value)
    rest = (_BARE_REST if value.where == BARE else _QUOTED_REST).match(text, value.end)
    return rest.end() if rest else value.end


def _last_literal(text: str, value: ValueSpan) -> int:
    """Return the end of the last of the literals that make up a value: `"…" + "…"`."""
    end = value.end
    bracketed = _IN_BRACKETS.search(text, max(0, value.start - 70), value.start) is not None
    for _ in range(_LITERALS_MAX):
        following = _NEXT_LITERAL.match(text, end) or (bracketed and _NEXT_LINES_LITERAL.match(text, end))
        literal = value_at(text, following.end()) if following else None
        if literal is None or _NAMES_ANOTHER.match(text, literal.end):
            break
        end = literal.end
    return end


def name_at(text: str, start: int, end: int) -> tuple[int, int, str]:
    """Return the bounds of the name around [start, end), and its words.

    A lone word such as `key` gets the word before it too.
    """
    lowest = max(0, start - NAME_MAX_CHARS)
    begin = lowest + len(text[lowest:start].rstrip(_NAME_LETTERS))
    while begin > lowest and text[begin - 1].isalnum():  # a letter that is no ASCII
        begin = lowest + len(text[lowest : begin - 1].rstrip(_NAME_LETTERS))
    if begin >= 1 and text[begin - 1] == "\\" and text[begin] in "nrt":
        begin += 1  # `\npassword`: the n is the escape's
    elif begin >= 1 and text[begin - 1] == "%" and re.match(r"[0-9A-Fa-f]{2}", text[begin : begin + 2]):
        begin += 2
    if text.startswith("-D", begin) and begin + 2 <= start:
        begin += 2  # `-Dpassword=…`, as Java takes it
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
        cut = end - match.start() >= BARE_MAX_CHARS - _MISREAD_CHARS
        while (
            end > match.start() + 3
            and text[end - 1] in ".:!?"
            and (end == len(text) or text[end].isspace())
            and text[end - 1] != "!"
        ):
            end -= 1
        return ValueSpan(match.start(), end, BARE, cut=cut)
    quote = opening["quote"]
    start = opening.end()
    end, closed = _closing(text, start, _CLOSERS.get(quote, quote))
    if end == start:
        return None
    f_string = opening["prefix"].lower() in {"f", "rf", "fr"} and "{" in text[start:end]
    return ValueSpan(start, end, QUOTED, f_string, not closed and end - start >= UNCLOSED_MAX_CHARS)


def _closing(text: str, start: int, quote: str) -> tuple[int, bool]:
    """Return the end of the quoted text that begins at `start`, and if it has one; without, it ends with its line."""
    limit = min(len(text), start + VALUE_MAX_CHARS)
    position = start
    while (found := text.find(quote, position, limit)) >= 0:
        slashes = found - len(text[start:found].rstrip("\\")) - start
        if slashes % 2 == 0:
            return found, True
        position = found + 1
    line = _LINE.match(text, start, min(limit, start + UNCLOSED_MAX_CHARS))
    return (line.end() if line else start), False
