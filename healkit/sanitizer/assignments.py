"""Values behind a secret's name, in any syntax.

`password=…`, `"api_key": "…"`, `--token …`, `X-Api-Key: …`, `<password>…</password>`, `("Authorization", "…")`, `-
name: DB_PASSWORD` with `value: …` below it. Each word that may be part of a secret's name starts three steps: read and
judge the whole name around it (`secret_names`), find the separator, judge the value behind it (`secret_values`). Every
step reads a bounded stretch of text, so a hostile text costs no more than its length.
"""

from __future__ import annotations

import re

from healkit.sanitizer.assignment_syntax import (
    ANNOUNCED,
    ASSIGN,
    ATTRIBUTE,
    BESIDE,
    BRACE,
    BRACED,
    CALL,
    CELL,
    CONSTANT,
    DIRECTIVE,
    DIRECTIVE_BEFORE,
    DIRECTIVE_END,
    ELEMENT,
    ELEMENT_ESCAPED,
    NAME_MAX_CHARS,
    NEXT_LINE,
    NEXT_WORD,
    OPTION,
    PAIR,
    PART,
    PROSE_BARE,
    PROSE_QUOTED,
    TYPED,
    UNCLOSED_MAX_CHARS,
    VALUE_MAX_CHARS,
    WRAPPER,
    ValueSpan,
    name_at,
    value_at,
)
from healkit.sanitizer.bare_values import is_loose, is_no_word, separates_otherwise, states_a_word
from healkit.sanitizer.judged_values import (
    NEXT_ITEM,
    NUMBERED,
    bracketed,
    byte_list,
    compared,
    header,
    in_list,
    judged,
    mixed,
)
from healkit.sanitizer.rule import Span
from healkit.sanitizer.secret_names import Secrecy, secrecy_of
from healkit.sanitizer.secret_values import BARE, QUOTED, is_generated, is_line, names_a_secret
from healkit.sanitizer.value_shapes import HIDDEN, is_reference, looks_like_token


def locate(text: str, start: int, end: int) -> Span | None:
    """Find the secret behind the name that the keyword at [start, end) is part of."""
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
    if level is Secrecy.NONE and _A_KEY.search(name) and (match := ASSIGN.match(text, stop)) is not None:
        if (written := _KEY_BYTES.match(text, match.end())) is not None:
            return (*written.span("secret" if written["secret"] else "hex"), None)
        return byte_list(text, match.end(), Secrecy.SECRET, 16) or (stop, stop, None)
    found = None if level is Secrecy.NONE else _behind(text, begin, stop, name, level)
    return found or (stop, stop, None)  # empty span: the name is judged once, however many keywords it holds


#: A plain `key` may be anything's; bytes behind it are a cipher's.
_A_KEY = re.compile(r"(?:^|[ .])(?:key|KEY|iv)$")
_KEY_BYTES = re.compile(
    r"""(?x)(?:[bB]?["'](?P<secret>(?:\\x[0-9a-fA-F]{2}){12,256})["'])
    |[\w.]{0,24}(?:fromhex|unhexlify|DecodeString|decodeHex|hex2bin|Buffer\.from)\(\s?["'](?P<hex>[0-9a-fA-F]{24,512})["']"""
)
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
    if not place and "," not in rest[0]:
        return None
    position = rest.end()
    for turn in range(place + 1):
        value = value_at(text, position)
        if value is None or value.where != QUOTED or value.f_string:
            return None
        if turn == place:
            return judged(text, value, name, level)
        following = NEXT_ITEM.match(text, value.end)
        if following is None or following["sign"] != ",":
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
    if level in NUMBERED and (span := compared(text, begin, name, level)) is not None:
        return span
    match = ASSIGN.match(text, stop)
    if match is not None:
        return _assigned(text, begin, match, name, level)
    if level in NUMBERED and (match := DIRECTIVE.match(text, stop)) is not None:
        line_start = max(text.rfind("\n", max(0, begin - 60), begin) + 1, begin - 60, 0)
        value = value_at(text, match.end())
        if (
            value is not None
            and DIRECTIVE_BEFORE.fullmatch(text, line_start, begin)
            and DIRECTIVE_END.match(text, value.end)
        ):
            return mixed(text, value, name, level)
    before = text[begin - 1] if begin else ""
    if before in {"<", ":"} and (match := ELEMENT.match(text, stop)) is not None:
        return _enclosed(text, match.end(), "<", name, level)
    if before == ";" and text.startswith("&lt;", begin - 4) and (match := ELEMENT_ESCAPED.match(text, stop)):
        return _enclosed(text, match.end(), "&lt;", name, level)
    if (
        level in NUMBERED
        and text.endswith('name="', 0, begin)
        and (match := PART.match(text, stop)) is not None
    ):
        return judged(text, ValueSpan(match.end(), _line_end(text, match.end()), QUOTED), name, level)
    if text.startswith("-", begin) or _ENV_BEFORE.search(text, max(0, begin - 12), begin):
        match = OPTION.match(text, stop)
        if match is not None and (value := value_at(text, match.end())) is not None:
            if (
                value.where == BARE
                and text[value.start : value.end].isalpha()
                and _WORD_FOLLOWS.match(text, value.end)
            ):
                return None
            return judged(text, value, name, level, loose=value.where == BARE and level < Secrecy.SECRET)
    if (
        level in NUMBERED
        and (match := ATTRIBUTE.match(text, stop)) is not None
        and not _CLOSING_TAG.search(text, max(0, begin - NAME_MAX_CHARS), begin)
    ):
        return _enclosed(text, match.end(), "<", name, level)
    if (match := BESIDE.match(text, stop)) is not None and (value := value_at(text, match.end())) is not None:
        return judged(text, value, name, level)
    return _farther(text, begin, stop, name, level)


def _enclosed(text: str, start: int, closer: str, name: str, level: Secrecy) -> Span | None:
    """Judge the text of an element, from `start` up to the next tag; of a very long one, its first word."""
    closing = text.find(closer, start, start + VALUE_MAX_CHARS)
    if closing > 0:
        inner = text[start:closing].rstrip().removesuffix("]]>")
        return judged(text, ValueSpan(start, start + len(inner), QUOTED), name, level)
    read = text[start : start + UNCLOSED_MAX_CHARS]
    if len(text) - start <= VALUE_MAX_CHARS or not _ONE_WORD.fullmatch(read):
        return None
    return judged(text, ValueSpan(start, start + len(read), QUOTED, cut=True), name, level)


def _line_end(text: str, start: int) -> int:
    """Return the end of the line, which may be an escaped one."""
    return _TO_LINE_END.match(text, start, start + UNCLOSED_MAX_CHARS).end()  # type: ignore[union-attr]  # it matches anything


_TO_LINE_END = re.compile(r"(?:[^\\\r\n]|\\(?![rn]))*")
_ONE_WORD = re.compile(r"\S+")
#: `--password options can be …`: a sentence about the option.
_WORD_FOLLOWS = re.compile(r" [a-z]")
#: `</password><user>…`: the value behind a closing tag is another one's.
_CLOSING_TAG = re.compile(r"</(?:[\w.-]+:)?$")
_ENV_BEFORE = re.compile(r"(?:ENV|ARG|setx|-x|-gx|login)\s+$")


_SETTER = re.compile(r"(?:^|\.)(?:[sS]et|[wW]ith|[uU]se)_?(\w+)$")
_BLANK_FIRST = (ANNOUNCED, CELL, PROSE_QUOTED, PROSE_BARE, NEXT_WORD)
#: Syntaxes by the character that they begin with.
_FARTHER = {
    **dict.fromkeys("\\\"'", (PAIR,)),
    **dict.fromkeys(" \t", _BLANK_FIRST),
    "(": (CALL,),
    "{": (BRACE,),
    ",": (CELL, CONSTANT),
    ":": (PROSE_BARE,),
}


def _farther(text: str, begin: int, stop: int, name: str, level: Secrecy) -> Span | None:
    """Find a value behind a syntax that often holds other things: only a text that looks like a token counts."""
    if level is Secrecy.WEAK and (setter := _SETTER.search(name)) is not None:
        level = secrecy_of(setter[1])  # `setApiKey("…")`
    for pattern in _FARTHER.get(text[stop : stop + 1], ()):
        match = pattern.match(text, stop)
        if match is None:
            continue
        value = value_at(text, match.end())
        if value is None or value.f_string:
            return None
        found = text[value.start : value.end].rstrip(".")
        if _KEY_FOLLOWS.match(text, value.end) or (
            pattern is CELL and found.isidentifier() and not found.islower() and not looks_like_token(found)
        ):
            return None
        if pattern is CALL and _is_setting(text, begin, name, level, value):
            return judged(text, value, name, level)
        return (_in_code if pattern in _OF_CODE else _in_prose)(text, stop, pattern, value, name, level)
    return None


def _is_setting(text: str, begin: int, name: str, level: Secrecy, value: ValueSpan) -> bool:
    """Recognise `.password("…")`, `setPassword("…")` and `password.equals("…")`."""
    found = text[value.start : value.end]
    return (
        level in NUMBERED
        and found[:1].islower()
        and not names_a_secret(found.rstrip("."))
        and NEXT_ITEM.match(text, value.end) is None  # of several arguments the last is the secret
        and (text[begin - 1 : begin] == "." or "." in name or _SETTER.search(name) is not None)
    )


def _in_code(
    text: str, stop: int, pattern: re.Pattern[str], value: ValueSpan, name: str, level: Secrecy
) -> Span | None:
    """Judge the value in a call, an initializer or a pair."""
    numbered = level in NUMBERED
    if pattern is CONSTANT:
        return mixed(text, value, name, level) if name.isupper() and numbered else None
    found = text[value.start : value.end].rstrip(".")
    if numbered and (
        name.upper().startswith("X-") if pattern is PAIR else len(found) >= 8 and found.isascii()
    ):
        return mixed(text, value, name, level)  # in a pair, a header
    if pattern is PAIR and numbered and _GETTER_BEFORE.search(text, max(0, stop - 110), stop):
        return judged(text, value, name, level)  # `getenv("DB_PASSWORD", "…")`
    return judged(text, value, name, level) if _is_shaped(found, level, _is_sure(found, level)) else None


def _in_prose(
    text: str, _stop: int, pattern: re.Pattern[str], value: ValueSpan, name: str, level: Secrecy
) -> Span | None:
    """Judge the value in a sentence, below it, or in a table's next cell."""
    found = text[value.start : value.end].rstrip(".")
    if pattern is ANNOUNCED:
        return judged(text, value, name, level) if level in NUMBERED and looks_like_token(found) else None
    sure = _is_sure(found, level, quoted=pattern is PROSE_QUOTED)
    if pattern is NEXT_WORD:
        if level not in {Secrecy.PASSWORD, Secrecy.PHRASE}:
            return None
        sure = sure and _MINGLED.search(found) is not None and found.isascii()
    if pattern is PROSE_BARE:
        if level is Secrecy.PASSWORD and states_a_word(text, value, found):
            return value.start, value.start + len(found), None
        if level is not Secrecy.PASSWORD and len(found) < 10:
            return None
    return judged(text, value, name, level) if _is_shaped(found, level, sure) else None


def _is_sure(found: str, level: Secrecy, *, quoted: bool = False) -> bool:
    """Return True for what is no word behind a password's name."""
    return level is Secrecy.PASSWORD and len(found) >= 6 and is_no_word(found, quoted=quoted)


def _is_shaped(found: str, level: Secrecy, sure: bool) -> bool:
    """Return True for a value that looks like a secret by itself."""
    return (
        (sure and not found.isdigit())
        or is_generated(found)
        or looks_like_token(found)
        or level is Secrecy.PIN
    )


_OF_CODE = frozenset({CALL, BRACE, PAIR, CONSTANT})
_MINGLED = re.compile(r"[A-Za-z].*\d|\d.*[A-Za-z]")
_GETTER_BEFORE = re.compile(
    r"(?i)(?:env(?:\.\w+)?|define|get|fetch|config|settings?|options?|default|lookup|prop(?:erty)?|put|set|add|header)\w*\(\s{0,3}[\"'][\w.-]{1,80}$"
)
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
        return None if value is None or value.where != QUOTED else mixed(text, value, name, level)
    if first in _LIST_FIRST and not quoted:
        listed = _LIST_OPENS.match(text, position)
        if listed is not None:
            return in_list(text, listed, name, level)
        if first == "[":
            return bracketed(text, position, name, level)
    may_be_typed = match["sign"] == ":" and not quoted and level is not Secrecy.HEADER
    typed = TYPED.match(text, position) if may_be_typed else None
    if typed is not None:
        position = typed.end()
    if first in "<{" and level in NUMBERED and (span := bracketed(text, position, name, level)) is not None:
        return span
    if first in "\r\n" and level in NUMBERED and (below := NEXT_LINE.match(text, position)) is not None:
        value = value_at(text, below.end())
        shaped = value is not None and looks_like_token(text[value.start : value.end])
        return judged(text, value, name, level) if value is not None and shaped else None
    if level is Secrecy.PASSWORD and first == "{" and (braced := BRACED.match(text, position)) is not None:
        return judged(text, ValueSpan(braced.start(1), braced.end(1), QUOTED), name, level)
    value = value_at(text, position)
    if value is None or value.f_string:
        return None
    if value.where == QUOTED:
        return judged(text, value, name, level)
    if level is Secrecy.HEADER:
        return header(text, position, name)
    if level in _WHOLE_LINES and (line := _line_value(text, begin, match, value)) is not None:
        return line
    found = judged(text, value, name, level, loose=is_loose(text, begin, match, value))
    in_json = (match["closed"] or "").endswith('"') and text[value.start : value.end].isdigit()
    if found is not None and in_json:
        return found[0], found[1], '"[REDACTED:secret-name]"'  # a quoted text, so that JSON stays JSON
    return found


def _line_value(text: str, begin: int, match: re.Match[str], value: ValueSpan) -> Span | None:
    """Find a value that goes to the end of its settings line: `password=correct horse battery staple`."""
    if text[value.end : value.end + 1] in _ENDS_LINE:
        return None
    before = text[max(text.rfind("\n", max(0, begin - 40), begin) + 1, begin - 40) : begin]
    if _LINE_START.fullmatch(before) is None or (
        begin - len(before) > 0 and text[begin - len(before) - 1] != "\n"
    ):
        return None
    rest = _LINE_REST.match(text, value.start, value.start + _LINE_MAX_CHARS)
    end = value.start + len(rest[0].rstrip(" \t,;\"'`")) if rest else value.end
    found = text[value.start : end]
    tight = match["sign"] == "=" and not match["gap"] and not match["pad"]
    if end <= value.end or is_reference(found) or not is_line(found, alone=not tight):
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
