"""Values behind a secret's name, in any syntax.

`password=…`, `"api_key": "…"`, `--token …`, `X-Api-Key: …`, `<password>…</password>`, `("Authorization", "…")`, `-
name: DB_PASSWORD` with `value: …` below it. Each word that may be part of a secret's name starts three steps. They read
and judge the whole name around it (`secret_names`), find the separator, and judge the value after it (`secret_values`).
Every step reads a bounded part of the text, so the cost of a hostile text is proportional to its length.
"""

from __future__ import annotations

import re
import string
from typing import NamedTuple

from healkit.core.secrets.secret_names import Secrecy, secrecy_of, word_set
from healkit.parts.sanitizer.rule import Span
from healkit.parts.sanitizer.secret_values import (
    BARE,
    HIDDEN,
    QUOTED,
    STRUCTURED,
    either,
    hides,
    is_generated,
    is_line,
    is_reference,
    looks_like_token,
    spells_bytes,
)


def locate(text: str, start: int, end: int) -> Span | None:
    """Find the secret after the name that contains the keyword at [start, end)."""
    if (
        end < len(text)
        and text[end].islower()
        and text[end] not in "sw"
        and text[end - 1].islower()
        and text[start:end].lower() not in _OPEN
    ):
        return None  # `author`, `passed`, `keyboard`
    begin, stop, name = name_at(text, start, end)
    level = secrecy_of(name)
    if level is Secrecy.QUERY:
        level = Secrecy.TOKEN if begin and text[begin - 1] in "?&;" else Secrecy.NONE
    if level is Secrecy.NONE or _HIDDEN_NEXT.match(text, stop) is not None:
        return stop, stop, ""
    # An empty span: the name is judged once, however many keywords it holds.
    return _behind(text, begin, stop, name, level) or (stop, stop, None)


#: A value that an earlier round has hidden.
_HIDDEN_NEXT = re.compile(r"""[\s"'=:>(]{1,8}\[REDACTED:""")


# Separators between a name and its value, and both ends. Each pattern reads a bounded stretch of text.

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
#: A quote as HTML writes it.
_ENTITY = r"&(?:quot|apos|#0?3[49]|#x2[27]);"
#: What may close a name. In these tables, an example stands before each pattern.
_CLOSING_FORMS = {
    'password"': r"\\*[\"'`]",
    "password%22": r"%2[27]",
    "password&quot;": rf"\\*{_ENTITY}",
}
#: Signs between a name and its value.
_SIGN_FORMS = {
    "password := x": r":{1,3}=",
    "password => x": r"=>",
    "password -> x": r"->",
    "password == x": r"===?",
    "password != x": r"!==?",
    "password ?= x": r"\?\??=",
    "password = x": r"=",
    "password: x": r":(?!:)",
    "password%3Dx": r"%3[DdAa]",
}
ASSIGN = re.compile(
    rf"(?P<closed>{either(_CLOSING_FORMS)})?[\])]?(?P<pad>[ \t]{{0,40}}|&nbsp;)"
    r"(?:[ \t](?:string|String|str|text)\b[ \t]{0,20})?"
    rf"(?P<sign>{either(_SIGN_FORMS)})"
    r"(?P<gap>[ \t]{0,40}(?:(?:[|>][+-]?[ \t]*)?\\?\r?\n[ \t]{1,40}(?=[\"'\w]))?)"
)
#: ODBC puts a value in braces that holds a separator; braces around a name are a template's.
BRACED = re.compile(
    r"\{((?!\w+(?:![rsa]|=)\})(?=[^{}\n]{0,127}[;@!#$%^&*+=?/])"
    r"[^{}\n\"'()]{4,128})\}(?=;|$|[\"'])"
)
#: The value beside the name: `name: DB_PASSWORD`, `value: …`.
BESIDE = re.compile(
    rf"(?i)(?:\\*[\"']|{_ENTITY})?\s{{0,3}},?\s{{1,40}}"
    r"\\*[\"']?(?:value|content|val)\\*[\"']?\s{0,3}[:=]\s{0,3}"
)
PAIR = re.compile(r"""\\*["'](?:\s{0,3},\s{0,3}|[ ])(?=[bBuU]?\\*["'])""")
#: `<key>ApiKey</key><string>…`.
ATTRIBUTE = re.compile(r"</\w{1,20}>\s{0,40}<\w{1,20}>(?=[^<\s])")
#: A word of a line that holds nothing else.
_LONE_WORD = r"(?=[^\s\"'`<>(){}\[\]=:,]{8,200}[ \t]*(?:\r?\n|$))"
#: A value on the next line.
NEXT_LINE = re.compile(rf"[ \t]{{0,8}}\r?\n\s{{0,24}}{_LONE_WORD}")
ELEMENT = re.compile(r"[^<>\n]{0,80}>\s{0,40}(?=[^<\s])")
TYPED = re.compile(r"[A-Za-z_\[][\w.\[\], |?]{0,60}[ \t]*=[ \t]*(?=[bBrRuU]?[\"'`])")
#: A form's field in a body of parts.
PART = re.compile(r"\"[^\r\n\\]{0,120}(?:\r?\n){2}(?=[^\s-])")
#: A sentence that ends in a colon, with a value alone on a line below.
ANNOUNCED = re.compile(rf"[ \t][^\n:\"'`=<>]{{1,60}}:[ \t]*(?:\r?\n[ \t]{{0,8}}){{1,2}}{_LONE_WORD}")
OPTION = re.compile(r"[ \t]+(?![-|&<>;])")
#: `password "…";` on a line of its own.
DIRECTIVE, DIRECTIVE_END = (
    re.compile(r"[ \t]{1,40}(?=[\"'])"),
    re.compile(r"[\"'][ \t]*;?[ \t]*(?:\r?\n|//|$)"),
)
#: What connects a name with its value in a sentence.
_PROSE_FORMS = {
    "password is hunter2": r"[ \t](?:is|was|provided|given|used|being)[ \t]*:?[ \t]*",
    "password for jane: hunter2": r":[ \t]*",
    "password a1b2c3d4e5f6g7h8": r"[ \t](?=[\w./+=-]{16})",
}
PROSE_QUOTED = re.compile(
    r"(?i)[ \t]{1,2}(?:(?:for|of)\s[\w.@-]{1,40}\s)?(?:(?:is|was|of|to|as|with)[ \t]:?)?(?=[\"'`“])"
)
PROSE_BARE = re.compile(
    rf"(?i)(?:[ \t](?:for|of)[ \t][\w.@'\"-]{{1,40}})?{either(_PROSE_FORMS)}(?=[\w$!#%&*+/.@^~-])"
)
#: A password may follow its name with nothing between: `with password hunter2`.
NEXT_WORD = re.compile(r"[ \t](?=[^\s\"'`<>|(){}\[\]=:]{6})")
#: Calls around a value: those that make a secret or bytes of it, and those that it is the default of.
_WRAPPING_FORMS = {
    'SecretStr("x")': r"(?:[\w.]{1,30}\.)?(?:SecretStr|SecretBytes|Secret|Field|bytes)\(\s{0,3}(?:default\s?=\s?)?",
    'os.getenv("TOKEN", "x")': r"(?:os\.)?(?:getenv|environ\.get)\(\s{0,3}[\"'][\w.-]{1,80}[\"']\s{0,3},\s{0,3}",
}
WRAPPER = re.compile(rf"{either(_WRAPPING_FORMS)}(?=[bBuUrR]?\\*[\"'])")
CALL = re.compile(r"""\(\s{0,3}(?=[bBuU]?\\*["'])""")
#: Bytes as numbers: `bytes([57, 80, …])`, `{0x39, 0x50, …}`.
_ITEM = r"(?:\(byte\)\s?)?(?:-?0x[0-9A-Fa-f]{1,2}|-?\d{1,3})"
BYTE_LIST = re.compile(
    r"\s{0,3}(?:&?\[\w{1,8}(?:;\s?\d{1,5})?\]\s?=\s?)?[^\n;=:,\"']{0,40}?"
    r"(?:[\"'][^\"'\n]{0,4}[\"'](?:\.join\(|,)[^\n;=:,\"']{0,40}?)?(?<=[(\[{<,\s])\s{0,24}"
    rf"(?P<numbers>{_ITEM}(?:\s{{0,3}},\s{{0,40}}{_ITEM}){{7,2048}}),?\s{{0,40}}[)\]}}>]"
)
#: `CURLOPT_PASSWORD, "…"`: a constant that names what follows it in a call.
CONSTANT = re.compile(r",\s{0,3}(?=[bBuU]?[\"'])")
#: The next column of a printed table.
CELL = re.compile(r"[ ]{2,40}(?=[^\s|│-])")
#: What a quoted value begins with.
_QUOTE_FORMS = {
    '"""x': r"\\*\"{3}",
    '"x': r"\\*[\"'`“‘]",
    "&quot;x": rf"\\*{_ENTITY}",
}
_OPENING = re.compile(rf"(?P<prefix>[bBrRuUfFNEL@$]{{0,2}})(?P<quote>{either(_QUOTE_FORMS)})")
#: What a value without quotes is made of.
_BARE_FORMS = {
    "abc": r"[^\s\"'`<>,;&)\]}|\\]++",
    r"a\b": r"\\(?![nrt\"'\\])",
    "a&b": r"&(?!\w{1,40}=|amp;|\s|$)",
    "a,b": r",(?=[^\s\"'\[{=:]{1,80}(?:\s|$))(?![\w.-]{1,40}\s?[=:])",
    "a;b": r";(?=[^\s\"';=]{1,80}(?:\s|$))",
    "a)b": r"[)\]}](?=[\w!@#$%^*+])",
}
_BARE_REST = re.compile(f"{either(_BARE_FORMS)}+")
_BARE = re.compile(rf"(?![(\[{{]){_BARE_REST.pattern}")
_QUOTED_REST = re.compile(rf"(?:[^\s\"'`<”’»\\&]++|\\(?!\\{{0,16}}[\"'])|&(?!{_ENTITY[1:]}|lt;))*")
_LINE = re.compile(r"[^\r\n]*")
_CLOSERS = {"“": "”", "‘": "’"}
#: Lone words that mean something only with the word before them: `API key`, `next token`, `connection string`.
_NEEDS_EARLIER = frozenset(
    {"key", "keys", "token", "string", "phrase", "url", "cookie", "signature", "pin", "code"}
)


class ValueSpan(NamedTuple):
    """Place of a value and its form; `cut` if it may continue after the part that was read."""

    start: int
    end: int
    where: str
    f_string: bool = False
    cut: bool = False


#: What joins a literal to the next one.
_JOIN_FORMS = {
    '" + "': r"[ \t]{0,4}[+.&][ \t]{0,4}(?:\\?\r?\n[ \t]{0,60})?",
    '"\n + "': r"[ \t]{0,4}\\?\r?\n[ \t]{0,60}[+.&][ \t]{0,4}",
    '" \\\n "': r"[ \t]{0,4}\\\r?\n[ \t]{0,60}",
}
_NEXT_LITERAL = re.compile(rf"[\"'`]{either(_JOIN_FORMS)}(?=[bBrRuU]?[\"'`])")
#: In brackets, it may follow on the next line.
_NEXT_LINES_LITERAL, _IN_BRACKETS = (
    re.compile(r"[\"'`][ \t]{0,4}\r?\n[ \t]{0,60}(?=[bBrRuU]?[\"'`])"),
    re.compile(r"\(\s{0,60}[bBrRuU]?[\"'`]$"),
)
_LITERALS_MAX = 16


def end_of(text: str, value: ValueSpan) -> int:
    """Return the end of the complete value: of a cut one, or of one that is written as several literals."""
    if not value.cut:
        return value.end if value.where == BARE else _last_literal(text, value)
    rest = (_BARE_REST if value.where == BARE else _QUOTED_REST).match(text, value.end)
    return rest.end() if rest else value.end


def _last_literal(text: str, value: ValueSpan) -> int:
    """Return the end of the last literal of a value: `"…" + "…"`."""
    end = value.end
    bracketed = _IN_BRACKETS.search(text, max(0, value.start - 70), value.start) is not None
    for _ in range(_LITERALS_MAX):
        following = _NEXT_LITERAL.match(text, end) or (bracketed and _NEXT_LINES_LITERAL.match(text, end))
        literal = value_at(text, following.end()) if following else None
        if literal is None:
            break
        end = literal.end
    return end


def name_at(text: str, start: int, end: int) -> tuple[int, int, str]:
    """Return the bounds of the name around [start, end), and its words.

    A lone word such as `key` gets the word before it too.
    """
    lowest = max(0, start - NAME_MAX_CHARS)
    begin = lowest + len(text[lowest:start].rstrip(_NAME_LETTERS))
    while begin > lowest and text[begin - 1].isalnum():  # a letter that is not ASCII
        begin = lowest + len(text[lowest : begin - 1].rstrip(_NAME_LETTERS))
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
        cut = end - match.start() >= BARE_MAX_CHARS - _MISREAD_CHARS
        if len(match[0]) > 3 and match[0][-1] in ".:?" and (end == len(text) or text[end].isspace()):
            end -= 1  # a sentence's
        return ValueSpan(match.start(), end, BARE, cut=cut)
    quote = opening["quote"]
    start = opening.end()
    end, closed = _closing(text, start, _CLOSERS.get(quote, quote))
    if end == start:
        return None
    f_string = opening["prefix"].lower() in {"f", "rf", "fr"} and "{" in text[start:end]
    return ValueSpan(start, end, QUOTED, f_string, not closed and end - start >= UNCLOSED_MAX_CHARS)


def _closing(text: str, start: int, quote: str) -> tuple[int, bool]:
    """Return the end of the quoted text that begins at `start`, and whether it is closed; if not, the line ends it."""
    limit = min(len(text), start + VALUE_MAX_CHARS)
    position = start
    while (index := text.find(quote, position, limit)) >= 0:
        slashes = index - len(text[start:index].rstrip("\\")) - start
        if slashes % 2 == 0:
            return index, True
        position = index + 1
    line = _LINE.match(text, start, min(limit, start + UNCLOSED_MAX_CHARS))
    return (line.end() if line else start), False


# The value behind a name.

#: Keywords that begin glued names: `passwordConfirmation` ends at a capital, `secretkey` does not.
_OPEN = frozenset({"secret", "connection", "cookie", "webhook", "credential", "sas", "cred", "sig"})


def _unpacked(text: str, begin: int, stop: int, name: str, level: Secrecy) -> Span | None:
    """Find the secret in `user, password = "jane", "…"`: the value in the name's place."""
    line_start = max(text.rfind("\n", max(0, begin - 120), begin) + 1, begin - 120, 0)
    if not _OTHER_THAN_NAMES.isdisjoint(text[line_start:begin]):
        return None
    rest = _UNPACK_REST.match(text, stop)
    if rest is None:
        return None
    place = text.count(",", line_start, begin)
    position = rest.end()
    for turn in range(place + 1):
        value = value_at(text, position)
        if value is None or turn == place:
            return None if value is None else span_if_secret(text, value, name, level)
        following = NEXT_ITEM.match(text, value.end)
        if following is None:
            return None
        position = following.end()
    return None


#: What stands before a keyword argument, and not in a list of names.
_OTHER_THAN_NAMES = frozenset("=\"'`:;#")
_UNPACK_REST = re.compile(
    r"(?:\s{0,3},\s{0,3}[A-Za-z_][\w.]{0,40}){0,4}\s{0,3}\)?\s{0,3}:?=\s{0,3}[(\[]?\s{0,3}(?=[\"'])"
)


def _behind(text: str, begin: int, stop: int, name: str, level: Secrecy) -> Span | None:
    before = text[max(0, begin - 2) : begin].strip()[-1:]
    if (
        (before == "," or text[stop : stop + 1] == ",")
        and level in NUMBERED
        and (span := _unpacked(text, begin, stop, name, level))
    ):
        return span
    if level in NUMBERED and (span := literal_compared_with(text, begin, name, level)) is not None:
        return span
    match = ASSIGN.match(text, stop)
    if match is not None:
        return _assigned(text, begin, match, name, level)
    if level in NUMBERED and (match := DIRECTIVE.match(text, stop)) is not None:
        line_start = max(text.rfind("\n", max(0, begin - 60), begin) + 1, begin - 60, 0)
        value = value_at(text, match.end())
        if value is not None and not text[line_start:begin].strip() and DIRECTIVE_END.match(text, value.end):
            return mixed(text, value, name, level)
    before = text[begin - 1] if begin else ""
    if before in {"<", ":"} and (match := ELEMENT.match(text, stop)) is not None:
        return _enclosed(text, match.end(), name, level)
    if (
        level in NUMBERED
        and text.endswith('name="', 0, begin)
        and (match := PART.match(text, stop)) is not None
    ):
        return span_if_secret(text, ValueSpan(match.end(), _line_end(text, match.end()), QUOTED), name, level)
    if text.startswith("-", begin) or _ENV_BEFORE.search(text, max(0, begin - 12), begin):
        match = OPTION.match(text, stop)
        if match is not None and (value := value_at(text, match.end())) is not None:
            if text[value.start : value.end].isalpha() and _WORD_FOLLOWS.match(text, value.end):
                return None
            return span_if_secret(
                text, value, name, level, loose=value.where == BARE and level < Secrecy.SECRET
            )
    if (
        level in NUMBERED
        and (match := ATTRIBUTE.match(text, stop)) is not None
        and not _CLOSING_TAG.search(text, max(0, begin - NAME_MAX_CHARS), begin)
    ):
        return _enclosed(text, match.end(), name, level)
    if (match := BESIDE.match(text, stop)) is not None and (value := value_at(text, match.end())) is not None:
        return span_if_secret(text, value, name, level)
    return _farther(text, stop, name, level)


def _enclosed(text: str, start: int, name: str, level: Secrecy) -> Span | None:
    """Judge the text of an element, from `start` up to the next tag; of a very long one, its first word."""
    closing = text.find("<", start, start + VALUE_MAX_CHARS)
    if closing > 0:
        inner = text[start:closing].rstrip().removesuffix("]]>")
        return span_if_secret(text, ValueSpan(start, start + len(inner), QUOTED), name, level)
    read = text[start : start + UNCLOSED_MAX_CHARS]
    if len(text) - start <= VALUE_MAX_CHARS or not _ONE_WORD.fullmatch(read):
        return None
    return span_if_secret(text, ValueSpan(start, start + len(read), QUOTED, cut=True), name, level)


def _line_end(text: str, start: int) -> int:
    """Return the end of the line, which may be an escaped one."""
    match = _TO_LINE_END.match(text, start, start + UNCLOSED_MAX_CHARS)
    return match.end() if match else start


_TO_LINE_END = re.compile(r"(?:[^\\\r\n]|\\(?![rn]))*")
_ONE_WORD = re.compile(r"\S+")
#: `--password options can be …`: a sentence about the option.
_WORD_FOLLOWS = re.compile(r" [a-z]")
#: `</password><user>…`: the value behind a closing tag is another one's.
_CLOSING_TAG = re.compile(r"</(?:[\w.-]+:)?$")
_ENV_BEFORE = re.compile(r"(?:ENV|ARG|setx|-x|-gx|login)\s+$")
_SETTER = re.compile(r"\.[sS]et_?(\w+)$")
_BLANK_FIRST = (ANNOUNCED, CELL, PROSE_QUOTED, PROSE_BARE, NEXT_WORD)
#: Syntaxes by the character that they begin with.
_FARTHER = {
    **dict.fromkeys("\\\"'", (PAIR,)),
    **dict.fromkeys(" \t", _BLANK_FIRST),
    "(": (CALL,),
    ",": (CELL, CONSTANT),
    ":": (PROSE_BARE,),
}


def _farther(text: str, stop: int, name: str, level: Secrecy) -> Span | None:
    """Find a value after a syntax that often has other values: only a text that looks like a token counts."""
    if level is Secrecy.WEAK and (setter := _SETTER.search(name)) is not None:
        level = secrecy_of(setter[1])  # `setApiKey("…")`
    for pattern in _FARTHER.get(text[stop : stop + 1], ()):
        match = pattern.match(text, stop)
        if match is None:
            continue
        value = value_at(text, match.end())
        if value is None or value.f_string:
            return None
        candidate = text[value.start : value.end].rstrip(".")
        if _KEY_FOLLOWS.match(text, value.end) or (
            pattern is CELL
            and candidate.isidentifier()
            and not candidate.islower()
            and not looks_like_token(candidate)
        ):
            return None
        return (_in_code if pattern in _OF_CODE else _in_prose)(text, pattern, value, name, level)
    return None


def _in_code(text: str, pattern: re.Pattern[str], value: ValueSpan, name: str, level: Secrecy) -> Span | None:
    """Judge the value in a call or a pair."""
    numbered = level in NUMBERED
    if pattern is CONSTANT:
        return mixed(text, value, name, level) if name.isupper() and numbered else None
    candidate = text[value.start : value.end].rstrip(".")
    if numbered and (name.upper().startswith("X-") if pattern is PAIR else len(candidate) >= 8):
        return mixed(text, value, name, level)  # in a pair, a header
    sure = _is_sure(candidate, level)
    return span_if_secret(text, value, name, level) if _is_shaped(candidate, sure) else None


def _in_prose(
    text: str, pattern: re.Pattern[str], value: ValueSpan, name: str, level: Secrecy
) -> Span | None:
    """Judge the value in a sentence, below it, or in a table's next cell."""
    candidate = text[value.start : value.end].rstrip(".")
    sure = _is_sure(candidate, level, quoted=pattern is PROSE_QUOTED)
    if pattern is NEXT_WORD:
        if level not in {Secrecy.PASSWORD, Secrecy.PHRASE}:
            return None
        sure = sure and _MINGLED.search(candidate) is not None
    if pattern is PROSE_BARE and level is not Secrecy.PASSWORD and len(candidate) < 10:
        return None
    return span_if_secret(text, value, name, level) if _is_shaped(candidate, sure) else None


def _is_sure(found: str, level: Secrecy, *, quoted: bool = False) -> bool:
    """Return True for a text that is not a common word after a password's name."""
    return level is Secrecy.PASSWORD and len(found) >= 6 and is_no_word(found, quoted=quoted)


def _is_shaped(found: str, sure: bool) -> bool:
    """Return True for a value that looks like a secret by itself."""
    return sure or is_generated(found) or looks_like_token(found)


_OF_CODE = frozenset({CALL, PAIR, CONSTANT})
_MINGLED = re.compile(r"[A-Za-z].*\d|\d.*[A-Za-z]")
#: `"passwd", "sha256": …`: the second is a key, not the first one's value.
_KEY_FOLLOWS = re.compile(r"""\\*["']\s{0,3}:""")


def _assigned(text: str, begin: int, match: re.Match[str], name: str, level: Secrecy) -> Span | None:
    position = match.end()
    if text.startswith(HIDDEN, position + (text[position : position + 1] in _QUOTES)) or separates_otherwise(
        text, begin, match
    ):
        return None
    first = text[position : position + 1]
    if level in NUMBERED and (span := byte_list(text, position, level)) is not None:
        return span
    quoted = first in _QUOTES
    if level in NUMBERED and not quoted and (wrapped := WRAPPER.match(text, position)) is not None:
        value = value_at(text, wrapped.end())
        return None if value is None else mixed(text, value, name, level)
    if first in _LIST_FIRST and (listed := _LIST_OPENS.match(text, position)) is not None:
        return in_list(text, listed, name, level)
    may_be_typed = match["sign"] == ":" and not quoted and level is not Secrecy.HEADER
    typed = TYPED.match(text, position) if may_be_typed else None
    if typed is not None:
        position = typed.end()
    if first in "\r\n" and level in NUMBERED and (below := NEXT_LINE.match(text, position)) is not None:
        value = value_at(text, below.end())
        shaped = value is not None and looks_like_token(text[value.start : value.end])
        return span_if_secret(text, value, name, level) if value is not None and shaped else None
    if level is Secrecy.PASSWORD and first == "{" and (braced := BRACED.match(text, position)) is not None:
        return span_if_secret(text, ValueSpan(braced.start(1), braced.end(1), QUOTED), name, level)
    value = value_at(text, position)
    if value is None or value.f_string:
        return None
    if value.where == QUOTED:
        in_data = match["closed"] in {'"', "'"} and match["sign"] == ":"
        return span_if_secret(text, value._replace(where=STRUCTURED) if in_data else value, name, level)
    if level is Secrecy.HEADER:
        return header(text, position, name)
    if level in _WHOLE_LINES and (line := _line_value(text, begin, match, value)) is not None:
        return line
    result = span_if_secret(text, value, name, level, loose=is_loose(text, begin, match, value))
    in_json = (match["closed"] or "").endswith('"') and text[value.start : value.end].isdigit()
    if result is not None and in_json:
        return result[0], result[1], '"[REDACTED:secret-name]"'  # a quoted text, so that JSON stays JSON
    return result


def _line_value(text: str, begin: int, match: re.Match[str], value: ValueSpan) -> Span | None:
    """Find a value that continues to the end of its settings line: `password=correct horse battery staple`."""
    if text[value.end : value.end + 1] in _ENDS_LINE:
        return None
    before = text[max(text.rfind("\n", max(0, begin - 40), begin) + 1, begin - 40) : begin]
    if _LINE_START.fullmatch(before) is None or (
        begin - len(before) > 0 and text[begin - len(before) - 1] != "\n"
    ):
        return None
    rest = _LINE_REST.match(text, value.start, value.start + _LINE_MAX_CHARS)
    end = value.start + len(rest[0].rstrip(" \t,;\"'`")) if rest else value.end
    candidate = text[value.start : end]
    tight = match["sign"] == "=" and not match["gap"] and not match["pad"]
    if end <= value.end or is_reference(candidate) or not is_line(candidate, alone=not tight):
        return None
    return value.start, end, None


#: Kinds of names whose value may go to the end of its line.
_WHOLE_LINES = frozenset({Secrecy.PASSWORD, Secrecy.PHRASE, Secrecy.SECRET})
_LINE_START = re.compile(r"\s*(?:- )?(?:export\s+|set\s+|ENV\s+|ARG\s+)?")
#: The rest of a line, without the comment behind it; the line's end may be escaped.
_LINE_REST = re.compile(r"(?:[^\r\n\\ ]|\\(?![rn])| (?!#|//|;))+")
_LINE_MAX_CHARS, _ENDS_LINE = 200, frozenset(["", "\r", "\n", ",", ";", "&", '"', "'"])
#: The quotes that a value may begin with.
_QUOTES = frozenset("\"'`")
#: What a list of values, or of a secret's bytes, begins with.
_LIST_FIRST = frozenset("[({ \t\r\nbnBU")
_LIST_OPENS = re.compile(r"\s{0,3}[\[({]{1,2}\s{0,40}(?=[bBuU]?\\*[\"'])")


# Values where they stand: quoted, in lists and headers.

#: Kinds of names whose values may stand in any syntax.
NUMBERED = frozenset({Secrecy.TOKEN, Secrecy.SECRET, Secrecy.PASSWORD, Secrecy.PHRASE})


def byte_list(text: str, position: int, level: Secrecy) -> Span | None:
    """Find a list of bytes or characters, in the forms of several languages."""
    if _MAY_LIST.isdisjoint(text[position : position + 64]):
        return None
    numbers = BYTE_LIST.match(text, position)
    if numbers is None or not spells_bytes(numbers["numbers"], level):
        return None
    return (*numbers.span("numbers"), None)


_MAY_LIST = frozenset("([{<")


def mixed(text: str, value: ValueSpan, name: str, level: Secrecy) -> Span | None:
    """Judge a value in a call that may have other words too: it must have letters, and digits or symbols."""
    candidate = text[value.start : value.end]
    sure = len(candidate) >= 6 and (
        _LETTERS_AND_MORE.search(candidate) or is_generated(candidate) or looks_like_token(candidate)
    )
    return span_if_secret(text, value, name, level) if sure else None


_LETTERS_AND_MORE = re.compile(r"[^\W\d_].*[\d!@#$%^&*]|[\d!@#$%^&*].*[^\W\d_]")
NEXT_ITEM = re.compile(r"\\*[\"']+\s{0,3}(?P<sign>,|:|=>)\s{0,40}")


def in_list(text: str, match: re.Match[str], name: str, level: Secrecy) -> Span | None:
    """Find the secret in a list: `auth=("user", "…")` or `api_keys = ["…"]`.

    That is the first value that looks like a token, or the second of `auth`.
    """
    position = match.end()
    for turn in range(8):
        value = value_at(text, position)
        if value is None or value.where != QUOTED:
            return None
        candidate = text[value.start : value.end]
        if looks_like_token(candidate) or (
            turn == 1 and name.lower().endswith("auth") and not looks_like_token(name)
        ):
            stated = Secrecy.PASSWORD if turn == 1 else level
            return span_if_secret(text, value, "", stated)
        following = NEXT_ITEM.match(text, value.end)
        if following is None:
            return None
        position = following.end()
        if following["sign"] != "," and name[-1:] in "sS":  # `passwords = {"jane": "…"}`
            value = value_at(text, position)
            if (
                value is not None
                and value.where == QUOTED
                and (span := span_if_secret(text, value, "", level))
            ):
                return span
    return None


#: Schemes whose credentials are fields: `Digest username="…", response="…"`.
_FIELDS_FOLLOW = re.compile(r"(?i)(?:digest|oauth|hawk|aws4-hmac-sha256|scram-sha-\d+|mac) ")
_HEADER_FIELDS = re.compile(r"[^\r\n]{1,8192}")
_HEADER_REST = re.compile(r"[^\r\n\"'`\\]{1,8192}")
#: Of a header, what is read to judge it.
_HEADER_READ = 256
_HEADER_SCHEME = re.compile(
    r"(?:Basic|Bearer|Digest|Token|ApiKey|Negotiate|AWS4-HMAC-SHA256|[A-Z][A-Za-z-]{2,20})[ ]+(?=\S)"
)


def header(text: str, position: int, name: str) -> Span | None:
    """Return the rest of a header's line, without the scheme."""
    pattern = _HEADER_FIELDS if _FIELDS_FOLLOW.match(text, position) else _HEADER_REST
    head = pattern.match(text, position, min(len(text), position + _HEADER_READ))
    if head is None or not hides(Secrecy.HEADER, name, head[0].rstrip(), BARE):
        return None
    rest = pattern.match(text, position)[0].rstrip()  # type: ignore[index]  # it matched above, on less
    scheme = _HEADER_SCHEME.match(rest)
    return position + (scheme.end() if scheme else 0), position + len(rest), None


def span_if_secret(
    text: str, value: ValueSpan, name: str, level: Secrecy, *, loose: bool = False
) -> Span | None:
    candidate = text[value.start : value.end]
    if level is Secrecy.HEADER and value.where != BARE:
        if not hides(level, name, candidate, value.where):
            return None
        scheme = re.match(r"\s*(?:Basic|Bearer|Digest|Token|ApiKey)\s+(?=\S)", candidate, re.IGNORECASE)
        return value.start + (scheme.end() if scheme else 0), value.end, None
    if not hides(level, name, candidate, value.where, loose=loose):
        return None
    return value.start, end_of(text, value), None


def default_behind(text: str, start: int, end: int) -> Span | None:
    """Find the literal in `getenv("DB_PASSWORD") or "…"`: a secret's default, after an operator at [start, end)."""
    value = value_at(text, end)
    if value is None or value.f_string or value.end - value.start < _DEFAULT_LEAST:
        return None
    lowest = max(0, start - _BEFORE_CHARS)
    names = _NAME_BEFORE.findall(text, max(lowest, text.rfind("\n", lowest, start) + 1), start)
    levels = {level: name for name in names if (level := secrecy_of(name)) in NUMBERED}
    if not levels and (variable := _VARIABLE.search(text, max(0, start - 300), start)) is not None:
        levels = {level: variable[1] for level in (secrecy_of(variable[1]),) if level in NUMBERED}
    for level, name in levels.items():
        if (span := span_if_secret(text, value, name, level)) is not None:
            return span
    return None


#: Terraform's way to name a value two lines above it.
_VARIABLE = re.compile(r"\bvariable\s+\"([\w-]{1,80})\"\s*\{[^{}]{0,200}$")
_DEFAULT_LEAST = 4
_NAME_BEFORE, _BEFORE_CHARS = re.compile(r"[A-Za-z_][\w-]*"), 120


def literal_compared_with(text: str, begin: int, name: str, level: Secrecy) -> Span | None:
    """Find the literal that a secret is compared with, on its left: `"…" == password`, `"…".equals(password)`."""
    if (
        text[begin - 1 : begin] not in {" ", "=", "("}
        or _COMPARES.search(text, max(0, begin - 20), begin) is None
    ):
        return None
    literal = _LITERAL_BEFORE.search(text, max(0, begin - 220), begin)
    return None if literal is None else mixed(text, ValueSpan(*literal.span("value"), QUOTED), name, level)


_COMPARES = re.compile(r"[=!]==?\s{0,3}$|\.equals\($")
_LITERAL_BEFORE = re.compile(
    r"(?P<q>[\"'])(?P<value>[^\"'\n]{6,160})(?P=q)(?:\s{0,3}[=!]==?\s{0,3}|\.equals\()$"
)


# Bare values: settings, variables, words.


def separates_otherwise(text: str, begin: int, match: re.Match[str]) -> bool:
    """Detect colons without a value after a name: in an ARN, in a URL, at the end of a statement's line."""
    if match["sign"] != ":" or match["closed"]:
        return False
    if not match["gap"]:
        return text.startswith("//", match.end()) or (begin > 0 and text[begin - 1] == ":")
    broken = "\n" in match["gap"] and match["gap"].lstrip()[:1] not in {"|", ">"}
    line_start = text.rfind("\n", max(0, begin - 80), begin) + 1
    return broken and bool(text[line_start:begin].strip(" \t-"))


def is_loose(text: str, begin: int, match: re.Match[str], value: ValueSpan) -> bool:
    """Return True for a bare value that looks like a variable in code, or like a word in a sentence."""
    after = text[value.end : value.end + 2]
    ends_line = not after or after[0] in "\r\n\\"
    if match["sign"] in {":", "->", "=>"}:
        return not ends_line and not (match["closed"] or after[0] in ",}&;\"'")
    spaced = bool(match["pad"]) and bool(match["gap"])
    if spaced and ends_line and _in_settings(text, begin):
        return False
    return (spaced or after[:1] in {",", ")", "]", "."}) and not text[begin : begin + 1].isupper()


def _in_settings(text: str, begin: int) -> bool:
    """Recognise a line of a settings file: a dotted or dashed name, or a plain word as value."""
    line = text[text.rfind("\n", max(0, begin - 200), begin) + 1 : begin + 2 * NAME_MAX_CHARS]
    name, _, value = (part.strip() for part in line.partition("\n")[0].partition("="))
    if "." in name and name.startswith(("self.", "this.", "cls.")):
        return False
    return (
        "-" in name
        or "." in name
        or (value.isalpha() and value.islower() and len(value) > 2 and value not in _VARIABLES)
    )


#: Names of variables that a password is read from.
_VARIABLES = word_set(
    "value values result results text data line lines args argument default settings config prompt input "
    "passwd password pass username user name match group groups creds credentials entry field secret token "
    "content contents string response request params options kwargs param item items option plain plaintext "
    "encoded decoded hashed encrypted decrypted stdin other random generated current given provided expected "
    "actual cleaned stored saved correct wrong invalid blank raw unicode form"
)


def is_no_word(found: str, *, quoted: bool) -> bool:
    """Accept digits or symbols; between quotes in a sentence, a single word too."""
    return any(character.isdigit() or character in "!@#$%^&*" for character in found) or (
        quoted and found.isalpha() and found.islower()
    )
