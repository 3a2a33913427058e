"""Bare values behind a name: settings, variables, words."""

from __future__ import annotations

import re

from healkit.sanitizer.assignment_syntax import NAME_MAX_CHARS, ValueSpan
from healkit.sanitizer.secret_names import word_set


def separates_otherwise(text: str, begin: int, match: re.Match[str]) -> bool:
    """Detect colons that put no value behind a name: in an ARN, in a URL, at the end of a statement's line."""
    if match["sign"] not in {":", "："} or match["closed"]:
        return False
    if not match["gap"]:
        return text.startswith("//", match.end()) or (begin > 0 and text[begin - 1] == ":")
    broken = "\n" in match["gap"] and match["gap"].lstrip()[:1] not in {"|", ">"}
    line_start = text.rfind("\n", max(0, begin - 80), begin) + 1
    return broken and bool(text[line_start:begin].strip(" \t-"))


def is_loose(text: str, begin: int, match: re.Match[str], value: ValueSpan) -> bool:
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


#: Words behind "the password is" that say something of it.
_SAID = word_set(
    "wrong invalid incorrect correct required missing weak strong secure hidden blank different unknown shorter longer "
    "optional mandatory sensitive changing default similar common stronger weaker numeric secret needed something "
    "nothing always already almost neither either visible plaintext expiring identical enough entirely currently"
)
_OF_IT = ("ed", "ing", "ly", "able", "ible", "ent", "ant", "ive", "ful", "less", "en", "word", "words")
_ENDS = re.compile(r"[.!]?[\"')]?\s*(?:\n|$)|[.!][\"')]?\s+[A-Z]")


def states_a_word(text: str, value: ValueSpan, found: str) -> bool:
    """Return True for `the password is swordfish`: one plain word at the end of its line or sentence."""
    return (
        found.isalpha()
        and found.islower()
        and 6 <= len(found) <= 24
        and found not in _SAID
        and not found.endswith(_OF_IT)
        and _ENDS.match(text, value.start + len(found)) is not None
    )


def is_no_word(found: str, *, quoted: bool) -> bool:
    """Accept digits, symbols or inner capitals; between quotes in a sentence, a single word too."""
    return (
        any(character.isdigit() or character in "!@#$%^&*" for character in found)
        or re.search(r"[a-z][A-Z]", found) is not None
        or (quoted and found.isalpha() and found.islower())
    )
