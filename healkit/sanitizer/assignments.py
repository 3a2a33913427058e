"""Values behind a secret's name, in any syntax.

`password=…`, `"api_key": "…"`, `--token …`, `X-Api-Key: …`, `<password>…</password>`, `("Authorization", "…")`, `-
name: DB_PASSWORD` with `value: …` below it. Each word that may be part of a secret's name starts three steps: read and
judge the whole name around it (`secret_names`), find the separator, judge the value behind it (`secret_values`). Every
step reads a bounded stretch of text, so a hostile text costs no more than its length.
"""

from __future__ import annotations

import re

from healkit.sanitizer.assignment_syntax import (
    ASSIGN,
    BARE_MAX_CHARS,
    BESIDE,
    BRACED,
    BYTE_LIST,
    CALL,
    CELL,
    ELEMENT,
    NAME_MAX_CHARS,
    NEXT_WORD,
    OPTION,
    PAIR,
    PROSE_BARE,
    PROSE_QUOTED,
    TYPED,
    VALUE_MAX_CHARS,
    ValueSpan,
    name_at,
    value_at,
)
from healkit.sanitizer.rule import Span
from healkit.sanitizer.secret_names import Secrecy, secrecy_of, word_set
from healkit.sanitizer.secret_values import BARE, QUOTED, hides, spells_bytes
from healkit.sanitizer.value_shapes import looks_like_token


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
    found = None if level is Secrecy.NONE else _behind(text, begin, stop, name, level)
    return found or (stop, stop, None)  # empty span: the name is judged once, however many keywords it holds


#: Keywords that begin glued names: `passwordConfirmation` ends at a capital, `secretkey` does not.
_OPEN = frozenset({"secret", "connection", "cookie", "webhook", "credential", "sas", "cred", "sig"})


def _behind(text: str, begin: int, stop: int, name: str, level: Secrecy) -> Span | None:
    match = ASSIGN.match(text, stop)
    if match is not None:
        return _assigned(text, begin, match, name, level)
    before = text[begin - 1] if begin else ""
    if before in {"<", ":"} and (match := ELEMENT.match(text, stop)) is not None:
        closing = text.find("<", match.end(), match.end() + VALUE_MAX_CHARS)
        if closing > 0:
            inner = text[match.end() : closing].rstrip().removesuffix("]]>")
            return _judged(text, ValueSpan(match.end(), match.end() + len(inner), QUOTED), name, level)
        return None
    if text.startswith("-", begin) or _ENV_BEFORE.search(text, max(0, begin - 12), begin):
        match = OPTION.match(text, stop)
        if match is not None and (value := value_at(text, match.end())) is not None:
            if (
                value.where == BARE
                and text[value.start : value.end].isalpha()
                and _WORD_FOLLOWS.match(text, value.end)
            ):
                return None
            return _judged(text, value, name, level, loose=value.where == BARE and level < Secrecy.SECRET)
    if (match := BESIDE.match(text, stop)) is not None and (value := value_at(text, match.end())) is not None:
        return _judged(text, value, name, level)
    return _farther(text, stop, name, level)


#: `--password options can be …`: a sentence about the option.
_WORD_FOLLOWS = re.compile(r" [a-z]")
_ENV_BEFORE = re.compile(r"(?:ENV|ARG|setx|-x|-gx|login)\s+$")


def _farther(text: str, stop: int, name: str, level: Secrecy) -> Span | None:
    """Find a value behind a syntax that often holds other things: only a text that looks like a token counts."""
    for pattern in (PAIR, CALL, CELL, PROSE_QUOTED, PROSE_BARE, NEXT_WORD):
        match = pattern.match(text, stop)
        if match is None:
            continue
        value = value_at(text, match.end())
        if value is None or value.f_string:
            return None
        found = text[value.start : value.end].rstrip(".")
        if _KEY_FOLLOWS.match(text, value.end) or (
            pattern is CELL and found.isidentifier() and not found.islower()
        ):
            return None
        sure = (
            level is Secrecy.PASSWORD
            and len(found) >= 6
            and _is_no_word(found, quoted=pattern is PROSE_QUOTED)
        )
        if pattern is NEXT_WORD:
            sure = sure and re.search(r"[A-Za-z].*\d|\d.*[A-Za-z]", found) is not None and found.isascii()
            if level not in {Secrecy.PASSWORD, Secrecy.PHRASE}:
                return None
        shaped = (sure and not found.isdigit()) or looks_like_token(found) or level is Secrecy.PIN
        if pattern is PROSE_BARE and level is not Secrecy.PASSWORD and len(found) < 10:
            shaped = False
        return _judged(text, value, name, level) if shaped else None
    return None


#: `"passwd", "sha256": …`: the second is a key, not the first one's value.
_KEY_FOLLOWS = re.compile(r"""\\*["']\s{0,3}:""")


def _is_no_word(found: str, *, quoted: bool) -> bool:
    """Accept digits, symbols or inner capitals; between quotes in a sentence, a single word too."""
    return (
        any(character.isdigit() or character in "!@#$%^&*" for character in found)
        or re.search(r"[a-z][A-Z]", found) is not None
        or (quoted and found.isalpha() and found.islower())
    )


def default_behind(text: str, start: int, end: int) -> Span | None:
    """Find the literal in `getenv("DB_PASSWORD") or "…"`: a secret's default, behind an operator at [start, end)."""
    value = value_at(text, end)
    if value is None or value.where != QUOTED or value.f_string:
        return None
    line = text[max(0, text.rfind("\n", max(0, start - 160), start) + 1, start - 160) : start]
    for found in _NAME_BEFORE.finditer(line):
        level = secrecy_of(found[0])
        if level in _NUMBERED and (span := _judged(text, value, found[0], level)) is not None:
            return span
    return None


_NAME_BEFORE = re.compile(r"[A-Za-z_][\w-]*")


def _assigned(text: str, begin: int, match: re.Match[str], name: str, level: Secrecy) -> Span | None:
    if _separates_otherwise(text, begin, match):
        return None
    position = match.end()
    if level in _NUMBERED and (numbers := BYTE_LIST.match(text, position)) is not None:
        return (*numbers.span("numbers"), None) if spells_bytes(numbers["numbers"], level) else None
    listed = _LIST_OPENS.match(text, position)
    if listed is not None:
        return _in_list(text, listed, name, level)
    typed = TYPED.match(text, position) if match["sign"] == ":" and level is not Secrecy.HEADER else None
    if typed is not None:
        position = typed.end()
    if level is Secrecy.PASSWORD and (braced := BRACED.match(text, position)) is not None:
        return _judged(text, ValueSpan(braced.start(1), braced.end(1), QUOTED), name, level)
    value = value_at(text, position)
    if value is None or value.f_string:
        return None
    if value.where == QUOTED:
        return _judged(text, value, name, level)
    if level is Secrecy.HEADER:
        return _header(text, position, name)
    found = _judged(text, value, name, level, loose=_is_loose(text, begin, match, value))
    in_json = (match["closed"] or "").endswith('"') and text[value.start : value.end].isdigit()
    if found is not None and in_json:
        return found[0], found[1], '"[REDACTED:secret-name]"'  # a quoted text, so that JSON stays JSON
    return found


_NUMBERED = frozenset({Secrecy.TOKEN, Secrecy.SECRET, Secrecy.PASSWORD, Secrecy.PHRASE})
_LIST_OPENS = re.compile(r"\s{0,3}[\[({]{1,2}\s{0,40}(?=[bBuU]?\\*[\"'])")


def _separates_otherwise(text: str, begin: int, match: re.Match[str]) -> bool:
    """Detect colons that put no value behind a name: in an ARN, in a URL, at the end of a statement's line."""
    if match["sign"] not in {":", "："} or match["closed"]:
        return False
    if not match["gap"]:
        return text.startswith("//", match.end()) or (begin > 0 and text[begin - 1] == ":")
    broken = "\n" in match["gap"] and match["gap"].lstrip()[:1] not in {"|", ">"}
    line_start = text.rfind("\n", max(0, begin - 80), begin) + 1
    return broken and bool(text[line_start:begin].strip(" \t-"))


def _is_loose(text: str, begin: int, match: re.Match[str], value: ValueSpan) -> bool:
    """Return True for a bare value that stands as a variable does in code, or as a word in a sentence."""
    after = text[value.end : value.end + 2]
    ends_line = not after or after[0] in "\r\n\\"
    if match["sign"] in {":", "：", "->", "=>"}:
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
        or (value.isalpha() and value.islower() and len(value) > 4 and value not in _VARIABLES)
    )


#: Names of variables that a password is read from.
_VARIABLES = word_set(
    "value values result results text data line lines args argument default settings config prompt input "
    "passwd password pass username user name match group groups creds credentials entry field secret token "
    "content contents string response request params options kwargs param item items option plain plaintext "
    "encoded decoded hashed encrypted decrypted stdin other random generated current given provided expected "
    "actual cleaned stored saved correct wrong invalid blank raw unicode form"
)


def _in_list(text: str, match: re.Match[str], name: str, level: Secrecy) -> Span | None:
    """Find the secret in a list: `auth=("user", "…")` or `api_keys = ["…"]`.

    That is the first value that looks like a token, or the second of `auth`.
    """
    position = match.end()
    for turn in range(4):
        value = value_at(text, position)
        if value is None or value.where != QUOTED:
            return None
        found = text[value.start : value.end]
        if looks_like_token(found) or (
            turn == 1 and name.lower().endswith("auth") and not looks_like_token(name)
        ):
            stated = Secrecy.PASSWORD if turn == 1 else level
            return _judged(text, value, "", stated)
        following = re.compile(r"\\*[\"']+\s{0,3},\s{0,40}").match(text, value.end)
        if following is None:
            return None
        position = following.end()
    return None


#: Schemes whose credentials are fields: `Digest username="…", response="…"`.
_FIELDS_FOLLOW = re.compile(r"(?i)(?:digest|oauth|hawk|aws4-hmac-sha256|scram-sha-\d+|mac) ")
_HEADER_FIELDS = re.compile(r"[^\r\n]{1,8192}")
_HEADER_REST = re.compile(r"[^\r\n\"'`\\]{1,8192}")


def _header(text: str, position: int, name: str) -> Span | None:
    """Return the rest of a header's line, without the scheme."""
    match = (_HEADER_FIELDS if _FIELDS_FOLLOW.match(text, position) else _HEADER_REST).match(text, position)
    if match is None:
        return None
    rest = match[0].rstrip()
    if not hides(Secrecy.HEADER, name, rest[:VALUE_MAX_CHARS], BARE):
        return None
    scheme = re.match(
        r"(?:Basic|Bearer|Digest|Token|ApiKey|Negotiate|AWS4-HMAC-SHA256|[A-Z][A-Za-z-]{2,20})[ ]+(?=\S)",
        rest,
    )
    return position + (scheme.end() if scheme else 0), position + len(rest), None


def _judged(text: str, value: ValueSpan, name: str, level: Secrecy, *, loose: bool = False) -> Span | None:
    found = text[value.start : value.end]
    if value.where == BARE and text[value.end : value.end + 1] in {"(", "["}:
        return None
    if level is Secrecy.HEADER and value.where == QUOTED:
        if not hides(level, name, found, QUOTED):
            return None
        scheme = re.match(r"\s*(?:Basic|Bearer|Digest|Token|ApiKey)\s+(?=\S)", found, re.IGNORECASE)
        return value.start + (scheme.end() if scheme else 0), value.end, None
    if not hides(level, name, found, value.where, loose=loose):
        return None
    end = value.end
    if (
        end - value.start >= (BARE_MAX_CHARS if value.where == BARE else VALUE_MAX_CHARS) - 1
    ):  # longer than the part that was judged: hide all of it
        more = re.compile(r"[^\s\"']*").match(text, end)
        end = more.end() if more else end
    return value.start, end, None
