"""Map of hidden texts and their marks, for a round trip.

Some text leaves this machine and comes back: a tool's code goes to a model, which returns it changed. A plain
replacement would come back in the place of an address, or of a key that should not be there. So each hidden text gets a
mark of its own, and the mark is replaced by the text again in the answer. Arguments and messages need no way back: what
is hidden in them is dropped.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from healkit.sanitizer import Sanitizer

_MAX_ROUNDS = 4
#: A shorter text that was hidden once may be a common word elsewhere.
_KNOWN_MIN_CHARS = 8

_encode = msgspec.json.Encoder(order="deterministic").encode


class SecretMap:
    """Hides texts behind marks and restores them; one is made for each case. `hidden` counts the texts by rule."""

    def __init__(self, sanitizer: Sanitizer, hidden: Counter[str] | None = None) -> None:
        self._sanitizer = sanitizer
        self._marks: dict[str, str] = {}
        self.hidden: Counter[str] = Counter() if hidden is None else hidden

    def text(self, text: str) -> str:
        """Return the text with marks for all that is hidden in it, now or in an earlier text."""
        for original, mark in self._marks.items():
            if len(original) >= _KNOWN_MIN_CHARS and original in text:
                self.hidden[_rule_of(mark)] += text.count(original)
                text = text.replace(original, mark)
        for _ in range(_MAX_ROUNDS):
            found = self._sanitizer.spans(text)
            if not found:
                break
            parts: list[str] = []
            position = 0
            for start, end, rule in found:
                parts += (text[position:start], self._mark(text[start:end], rule))
                position = end
                self.hidden[rule] += 1
            text = "".join((*parts, text[position:]))
        return text

    def value(self, value: object, limit_bytes: int) -> str:
        """Return a value as JSON text, cleaned as data (by its keys, too) and then cut at the limit."""
        cleaned = self._sanitizer.clean(value, limit_bytes=limit_bytes)
        self.hidden.update(cleaned.hidden)
        return self.text(_encode(cleaned.value).decode())

    def cleaned(self, text: str) -> str:
        """Return the text with everything hidden for good, without marks of its own."""
        cleaned = self._sanitizer.clean(text, limit_bytes=len(text.encode()) * 4)
        self.hidden.update(cleaned.hidden)
        return self.text(str(cleaned.value))

    def restored(self, text: str) -> str:
        """Return the text with the marks replaced by what they hide."""
        for original, mark in reversed(self._marks.items()):  # a later one may hold an earlier one's mark
            text = text.replace(mark, original)
        return text

    def numbered(self, code: str) -> str:
        """Return the code hidden, with each line's number in the original: a hidden text may span several lines."""
        lines: list[str] = []
        number = 1
        for line in self.text(code).replace("\r\n", "\n").removesuffix("\n").split("\n"):
            lines.append(f"{number:>4} | {line}")
            number += 1 + self.restored(line).count("\n")
        return "\n".join(lines)

    def _mark(self, original: str, rule: str) -> str:
        """Return the mark of a text; it looks like the sanitiser's own replacements, which are never hidden again."""
        if original not in self._marks:
            self._marks[original] = f"[REDACTED:{rule}-{len(self._marks) + 1}]"
        return self._marks[original]


def _rule_of(mark: str) -> str:
    return mark.removeprefix("[REDACTED:").rpartition("-")[0]


def cut_text(text: str, max_chars: int) -> str:
    """Cut the middle out of a long text, and say how much is left out; for texts that are hidden already."""
    if len(text) <= max_chars:
        return text
    head, tail = max_chars * 2 // 3, max_chars // 3
    return f"{text[:head]} … ({len(text) - head - tail:,} characters left out) … {text[-tail:]}"
