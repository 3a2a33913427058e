"""Values where they stand: quoted, bare, in lists and headers."""

from __future__ import annotations

import re

from healkit.sanitizer.assignment_syntax import (
    BRACKETED,
    BYTE_LIST,
    ValueSpan,
    end_of,
    value_at,
)
from healkit.sanitizer.rule import Span
from healkit.sanitizer.secret_names import Secrecy, secrecy_of
from healkit.sanitizer.secret_values import BARE, QUOTED, hides, is_generated, spells_bytes
from healkit.sanitizer.value_shapes import looks_like_token

#: Kinds of names whose values may stand in any syntax.
NUMBERED = frozenset({Secrecy.TOKEN, Secrecy.SECRET, Secrecy.PASSWORD, Secrecy.PHRASE})


def byte_list(text: str, position: int, level: Secrecy, least: int = 8) -> Span | None:
    """Find a list of bytes or characters, as each language writes one."""
    if _MAY_LIST.isdisjoint(text[position : position + 64]):
        return None
    numbers = BYTE_LIST.match(text, position)
    if (
        numbers is None
        or numbers["numbers"].count(",") + 1 < least
        or not spells_bytes(numbers["numbers"], level)
    ):
        return None
    return (*numbers.span("numbers"), None)


_MAY_LIST = frozenset("([{<")


def bracketed(text: str, position: int, name: str, level: Secrecy) -> Span | None:
    match = BRACKETED.match(text, position)
    if match is None or not looks_like_token(match[1]):
        return None
    return judged(text, ValueSpan(match.start(1), match.end(1), QUOTED), name, level)


def mixed(text: str, value: ValueSpan, name: str, level: Secrecy) -> Span | None:
    """Judge a value in a call that may be given other words too: it must have letters, and digits or symbols."""
    found = text[value.start : value.end]
    sure = len(found) >= 6 and (
        _LETTERS_AND_MORE.search(found) or is_generated(found) or looks_like_token(found)
    )
    return judged(text, value, name, level) if sure else None


_LETTERS_AND_MORE = re.compile(r"[^\W\d_].*[\d!@#$%^&*]|[\d!@#$%^&*].*[^\W\d_]")


_LIST_CLOSES = re.compile(r"\\*[\"']\s{0,3}[\])]")


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
        found = text[value.start : value.end]
        if looks_like_token(found) or (
            turn == 1 and name.lower().endswith("auth") and not looks_like_token(name)
        ):
            stated = Secrecy.PASSWORD if turn == 1 else level
            return judged(text, value, "", stated)
        alone = turn == 0 and level is Secrecy.PASSWORD and _LIST_CLOSES.match(text, value.end)
        if alone:  # `passwords = ["…"]`
            return judged(text, value, name, level)
        following = NEXT_ITEM.match(text, value.end)
        if following is None:
            return None
        position = following.end()
        if following["sign"] != "," and name[-1:] in "sS":  # `passwords = {"jane": "…"}`
            value = value_at(text, position)
            if value is not None and value.where == QUOTED and (span := judged(text, value, "", level)):
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


def judged(text: str, value: ValueSpan, name: str, level: Secrecy, *, loose: bool = False) -> Span | None:
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
    return value.start, end_of(text, value), None


def default_behind(text: str, start: int, end: int) -> Span | None:
    """Find the literal in `getenv("DB_PASSWORD") or "…"`: a secret's default, behind an operator at [start, end)."""
    value = value_at(text, end)
    if value is None or value.where != QUOTED or value.f_string or value.end - value.start < _DEFAULT_LEAST:
        return None
    lowest = max(0, start - _BEFORE_CHARS)
    names = _NAME_BEFORE.findall(text, max(lowest, text.rfind("\n", lowest, start) + 1), start)
    levels = {level: name for name in names if (level := secrecy_of(name)) in NUMBERED}
    if not levels and (variable := _VARIABLE.search(text, max(0, start - 300), start)) is not None:
        levels = {level: variable[1] for level in (secrecy_of(variable[1]),) if level in NUMBERED}
    for level, name in levels.items():
        if (span := judged(text, value, name, level)) is not None:
            return span
    return None


#: Terraform's way to name a value two lines above it.
_VARIABLE = re.compile(r"\bvariable\s+\"([\w-]{1,80})\"\s*\{[^{}]{0,200}$")
_DEFAULT_LEAST = 4
_NAME_BEFORE, _BEFORE_CHARS = re.compile(r"[A-Za-z_][\w-]*"), 120


def compared(text: str, begin: int, name: str, level: Secrecy) -> Span | None:
    """Find the literal that a secret is compared with, to the left of it: `"…" == password`, `"…".equals(password)`."""
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
