"""Values that were hidden once, hidden wherever they stand.

A secret travels under other names: an argument `password` is a local `p` in one frame and a word of the message in the
next. So what was hidden in one record is hidden at its other places too. Only a value that is no word of the record by
chance: at least six characters with a digit, a symbol or mixed case, or eight letters or digits, and no common word;
and only where it stands alone, not inside a longer word. Personal data is left out: each kind has its own pattern.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from healkit.sanitizer.secret_names import word_set

if TYPE_CHECKING:
    from healkit.sanitizer.rule import SanitizerRule

_LEAST_MIXED, _LEAST_PLAIN, _MOST_CHARS = 6, 8, 512
#: A record of more secrets is a list of them, in which each has its name.
_VALUES_MAX = 32
#: In longer texts a value is looked for only as it is, not as `repr`, JSON or a URL write it.
_LONG_CHARS = 100_000
_COMMON = word_set(
    "localhost postgres postgresql username password passwords passphrase anonymous administrator development "
    "production staging testing undefined disabled required optional default example identifier application "
    "database document function argument arguments attribute exception traceback"
)
_MARK = "[REDACTED"

_encode = msgspec.json.Encoder().encode


class KnownValues:
    """Hidden values of one record, with what stands in their place."""

    def __init__(self) -> None:
        self._rules: dict[str, SanitizerRule] = {}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def add(self, original: str, rule: SanitizerRule) -> None:
        """Remember a text that the rule has hidden, if it is told apart from a common word."""
        if rule.kind == "personal" or len(self._rules) >= _VALUES_MAX:
            return
        value = original.strip().strip("\"'`")
        if value not in self._rules and _is_distinct(value):
            self._rules[value] = rule

    def hide(self, text: str, hidden: Counter[str]) -> str:
        """Return the text with these values hidden where they stand alone, each counted by its rule."""
        for value, rule in self._rules.items():
            for form in _forms(value) if len(text) < _LONG_CHARS else (value,):
                if form in text:
                    shown = rule.shown
                    text, times = _alone(form).subn(lambda _, shown=shown: shown, text)  # type: ignore[misc]  # bound at once
                    if times:
                        hidden[rule.id] += times
        return text

    def hide_in(self, value: Any, hidden: Counter[str]) -> Any:
        """Return JSON data with these values hidden in its texts and keys."""
        if isinstance(value, str):
            return self.hide(value, hidden)
        if not self._rules or not isinstance(value, list | dict):
            return value
        try:
            whole = _encode(value).decode()
        except (ValueError, msgspec.MsgspecError):  # half a surrogate pair, for one
            return self._walk(value, hidden)
        present = KnownValues()
        present._rules = {
            one: rule for one, rule in self._rules.items() if any(form in whole for form in _forms(one))
        }
        return present._walk(value, hidden) if present else value

    def _walk(self, value: Any, hidden: Counter[str]) -> Any:
        if isinstance(value, str):
            return self.hide(value, hidden)
        if isinstance(value, list):
            return [self._walk(item, hidden) for item in value]
        if isinstance(value, dict):
            return {self.hide(key, hidden): self._walk(item, hidden) for key, item in value.items()}
        return value


class Hidden(Counter[str]):
    """Count of what was hidden, by rule, with the values themselves."""

    def __init__(self, known: KnownValues | None = None) -> None:
        super().__init__()
        self.known = KnownValues() if known is None else known

    def note(self, original: str, rule: SanitizerRule) -> None:
        """Count a text that the rule has hidden, and remember it."""
        self[rule.id] += 1
        self.known.add(original, rule)


def _is_distinct(value: str) -> bool:
    if not _LEAST_MIXED <= len(value) <= _MOST_CHARS or _MARK in value or "\n" in value:
        return False
    if value.isdigit() or (value.isalpha() and (value.islower() or value.istitle() or value.isupper())):
        return len(value) >= _LEAST_PLAIN and value.lower() not in _COMMON
    return True


def _forms(value: str) -> tuple[str, ...]:
    """List how a value is written: as it is, and within `repr`, JSON and a URL."""
    if value.isalnum():
        return (value,)
    in_json, in_url = json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="", errors="replace")
    return tuple(dict.fromkeys((value, repr(value)[1:-1], in_json, in_url)))


def _alone(form: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if form[0].isalnum() or form[0] == "_" else ""
    after = r"(?!\w)" if form[-1].isalnum() or form[-1] == "_" else ""
    return re.compile(f"(?<!REDACTED:){before}{re.escape(form)}{after}")
