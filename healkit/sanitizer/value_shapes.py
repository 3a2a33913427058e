"""Shapes of texts: references, paths, code, words, tokens.

These functions do not know which name a text stands behind; `secret_values` does.
"""

from __future__ import annotations

import re

_REFERENCE = re.compile(
    r"""(?x)^(?:
      \$\{[^}]*\}?.* | \$\(.* | \$[A-Za-z_][\w:.]*$ | \$\$.*          # shell and compose variables
    | \{\{.* | \{%.* | \{[^{}]{0,120}\}$ | <[^<>]*>?$ | \[[A-Za-z_ -]+\]$ | \#\{.*\}$ | @[\w.]+@$ | @\w+\(.*  # templates
    | %\(?[\w]*\)?[srdxif]$ | %[A-Za-z_]+%$ | :\w+$ | \?$ | !(?:vault|Ref|Sub|GetAtt|ImportValue|reference|secret|env_var|Join|Select)\b.* | ENC\[.* | vault:.* | arn:.* | op://.*
    | \#[0-9A-Fa-f]{3,8}$ | (?:[*.•_#=~+?-])+$ | [xX]{3,}$ | …
    )""",
    re.DOTALL,
)
#: A text in braces with blanks in it, such as Jenkins writes: no template.
_BRACED = re.compile(r"\{[^{}]*\s[^{}]*\}$")


def _holds_token(value: str) -> bool:
    return _BRACED.match(value) is not None and any(
        len(word) >= _TOKEN_LEAST and looks_like_token(word) for word in value.strip("{}").split()
    )


_TOKEN_LEAST = 16
#: What a replacement begins with.
HIDDEN = "[REDACTED:"
_ELIDED = re.compile(r"\*{3}|\.{3}|…|•{3}|\[REDACTED|\[TRUNCATED|\[(?:EMAIL|PHONE|SSN|CARD|IBAN)\]")
_MAY_ELIDE = re.compile(r"[*.…•\[]")
NUMERIC = re.compile(r"^[-+]?[\d.,:/ TZ_+-]*%?$")
_PATH = re.compile(r"^(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@ {}$-]*){1,30}$|^[\w.-]+(?:/[\w.-]+){2,}$|^file:")
URL = re.compile(r"^[A-Za-z][\w+.-]*://\S*$")
DOTTED = re.compile(r"^[^\W\d]\w*(?:\??\.[^\W\d]\w*)+(?:\(.*|\[.*)?;?$")
_CALL = re.compile(r"^(?:await\s|new\s|&|\*)?[^\W\d][\w.:]*(?:\(|\[|<|\{|->|::)")
ALGORITHM = re.compile(
    r"(?i)^(?:(?:hmac|rsa|ec|pbkdf2|with|aes|gcm|cbc|aws4|scram|ssh|nistp|oauth|openid|django|bcrypt|http|tls|v)?[-_:]?"
    r"(?:sha|md|aes|rsa|hmac|pbkdf|argon|ecdsa|secp|curve|x|ed|base|utf|utf-|latin|iso|oauth|rs|es|ps|hs|ecdh|cp|gpt)"
    r"[-_]?\d{1,5}\w?[-_]?)+(?:[-_]?(?:gcm|cbc|sha\d+|sha|id|k1|sha-\d+|pub))*$"
)
_WORDY_PART = re.compile(r"^(?:[^\W\d_]{1,24}\d{0,3}|\d{1,4})$")
_SPLIT = re.compile(r"[-_/.: ,+@|]+")


def is_reference(value: str) -> bool:
    """Return True for a stand-in: a template, a variable, or a text that was hidden already."""
    return (_REFERENCE.match(value) is not None and not _holds_token(value)) or (
        _MAY_ELIDE.search(value) is not None and _ELIDED.search(value) is not None
    )


_PLACEHOLDER = re.compile(
    r"""(?xi)(?:
      (?:please[-_ ]?)?change[-_ ]?(?:me|it|this)(?:[-_ ]?(?:please|now))?\d?!? | (?:todo|fixme|tbd|redacted|placeholder|dummy|sample|foobar|foo|bar|baz|lorem|ipsum)
    | (?:replace|insert|put|add|enter|fill|set)[-_ ]?(?:me|it|this|your|with|in|the)?(?:[-_ ](?:your|here|me|in|the|own|api|access|auth|secret|token|key|password|value)){0,5}
    | (?:your|my|the|an?|some|example|test|dummy|fake|sample|placeholder|default|new|old|real|insert|enter)(?:[-_ ]?(?:your|own|api|access|auth|client|secret|app|user|db|example|test|fake|bot|github|openai|aws|private|service)){0,4}
      [-_ ]?(?:token|key|password|passwd|pass|passphrase|secret|credentials?|value|string|here|example)(?:[-_ ]?(?:here|value|example|goes[-_ ]here))?
    )""",
)


def is_placeholder(value: str) -> bool:
    """Return True for a text that only says what belongs in its place, such as `changeme` or `your-api-key`.

    The whole text must be of one of these forms: a real secret that holds such a word is none.
    """
    return (
        len(value) <= _PLACEHOLDER_MAX
        and _PLAIN.fullmatch(value) is not None
        and _PLACEHOLDER.fullmatch(value.strip("'\"` ")) is not None
    )


_PLACEHOLDER_MAX, _PLAIN = 48, re.compile(r"[A-Za-z_ '\"`-]+\d?!?")


def is_mismatched(value: str) -> bool:
    """Return True where a bracket closes another one than was opened, which no code does; one left open may be closed below."""
    opened = []
    for character in value.rstrip(")]},;"):
        if character in "([{":
            opened.append(_OTHER[character])
        elif character in ")]}" and (not opened or opened.pop() != character):
            return True
    return False


_OTHER = {"(": ")", "[": "]", "{": "}"}


def looks_like_token(value: str) -> bool:
    """Return True unless the value is a word, number, date, version, path or algorithm.

    A token has letters and digits in no readable order, or upper and lower case in none.
    """
    value = value[:80]
    if (
        len(value) < 6
        or " " in value
        or NUMERIC.match(value)
        or ALGORITHM.match(value)
        or value.startswith("(?")
    ):
        return False
    if not any(map(str.isalpha, value)):
        return False
    digits = sum(map(str.isdigit, value))
    parts = [part for part in _SPLIT.split(value) if part]
    if digits == 0:
        return len(value) >= 12 and _scrambled(value)
    if len(parts) == 1:
        return digits >= 3 or not _WORDY_PART.match(parts[0]) or (len(value) >= 8 and _scrambled(value))
    return not all(_WORDY_PART.match(part) for part in parts) or any(
        _scrambled(part) for part in parts if len(part) > 7
    )


def _scrambled(value: str) -> bool:
    """Return True where upper and lower case follow no spelling: neither words nor CamelCase."""
    turns = len(_TURN.findall(value))
    if turns < max(2, len(value) // 8):
        return False
    sizes = list(map(len, _CASED_WORD.findall(value)))
    short = sum(size <= 2 for size in sizes)
    return max(sizes, default=0) <= 6 and 2 * short >= len(sizes)


_TURN, _CASED_WORD = re.compile(r"[a-z](?=[A-Z])"), re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def is_path_or_url(value: str) -> bool:
    """Return True for a URL, or for a file's path whose parts are words."""
    if "/" not in value and "\\" not in value and not value.startswith("file:"):
        return False
    if URL.match(value):
        return True
    if not _PATH.match(value):
        return False
    parts = [part for part in re.split(r"[/\\]", value) if part]
    bits = [bit for part in parts for bit in _SPLIT.split(part.strip("{}$~")) if bit]
    return all(_WORDY_PART.match(bit) and not (len(bit) > 7 and _scrambled(bit)) for bit in bits)


def is_code(value: str) -> bool:
    """Return True for a call, an index or a dotted name."""
    return _CALL.match(value) is not None or DOTTED.match(value) is not None
