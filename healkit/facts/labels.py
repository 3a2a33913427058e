"""Labels and values as sentences show them.

A label is shown as Python writes it, so that a space at its end is visible, and text differs from a number.
"""

from __future__ import annotations

import datetime
import difflib
import itertools
import re
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any

from healkit.contracts.encoding import int_text
from healkit.errors import near_misses

LISTED_MAX = 8
#: Texts that may be a token, a person's number or an address: never suggested as names.
PRIVATE = re.compile(r"@|\d{6}|(?=\w*\d)(?=\w*[A-Za-z])[\w-]{12,}")
_LABEL_MAX_CHARS = 60
_CANDIDATES_MAX = 2000
_PLAIN = (str, int, float, bool, type(None), datetime.datetime, datetime.date)


def plain(value: Any) -> Any:
    """Return a numpy number as Python's own; any other value as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic) and type(value).__module__ == "numpy":
        return value.item()
    return value


def shown(value: Any) -> str:
    """Return a label or a value in backquotes; empty where it is long, private or of a foreign type."""
    value = plain(value)
    if type(value).__name__ == "Timestamp" and type(value).__module__.startswith("pandas"):
        return f"`{value}`"
    if type(value) is tuple and value and all(shown(one) for one in value[:6]) and len(value) <= 6:
        return f"`({', '.join(shown(one).strip('`') for one in value)})`"
    if type(value) not in _PLAIN:
        return ""
    text = int_text(value) if type(value) is int else repr(value)
    if len(text) > _LABEL_MAX_CHARS or "`" in text or (type(value) is str and PRIVATE.search(value)):
        return ""
    return f"`{text}`"


def listed(values: Iterable[Any], count: int) -> str:
    """List the first of `count` labels: `'a'`, `'b'` and 3 more; empty where none can be shown."""
    found = [text for text in map(shown, itertools.islice(values, LISTED_MAX)) if text]
    more = count - len(found)
    if not found:
        return ""
    return ", ".join(found) + (f" and {more:,} more" if more else "")


def spoken(names: list[str]) -> str:
    """Join texts as a sentence does: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def difference(wanted: Any, found: Any) -> str:
    """Say how a label that looks the same differs from the one asked for; empty where it is another name."""
    wanted, found = plain(wanted), plain(found)
    if type(wanted) is not type(found):
        if (
            type(wanted) in {str, int, float}
            and type(found) in {str, int, float}
            and str(wanted) == str(found)
        ):
            kinds: dict[type, str] = {str: "text", int: "a number", float: "a number"}
            return f"which is {kinds[type(found)]}; {shown(wanted)} is {kinds[type(wanted)]}"
        return ""
    if type(wanted) is not str or wanted == found:
        return ""
    if wanted == found.strip():
        ends = [
            name
            for name, changed in (("beginning", found.lstrip()), ("end", found.rstrip()))
            if changed != found
        ]
        return f"with white space at its {' and '.join(ends)}"
    if wanted.strip() == found.strip():
        return "without the same white space"
    if wanted.casefold() == found.casefold():
        return "in other capitals"
    if wanted.casefold().strip() == found.casefold().strip():
        return "in other capitals, and with white space at an end"
    if _letters(wanted) == _letters(found):
        return "with other marks between its letters"
    return ""


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).casefold()


def nearest(wanted: Any, known: Iterable[Any]) -> tuple[Any, str] | None:
    """Return the label that was most likely meant, and how it differs; None where none is similar."""
    candidates = list(itertools.islice(known, _CANDIDATES_MAX))
    for found in candidates:
        if shown(found) and (told := difference(wanted, found)):
            return plain(found), told
    if type(plain(wanted)) is not str:
        return None
    texts = [one for one in candidates if type(one) is str and shown(one)]
    near = near_misses(wanted, texts, 1)
    if near and similar(wanted, near[0]):
        return near[0], "another spelling"
    return None


def similar(wanted: str, found: str) -> bool:
    """Return whether two names are so similar that one may be a misspelling of the other."""
    return difflib.SequenceMatcher(None, wanted.casefold(), found.casefold()).ratio() >= 0.7
