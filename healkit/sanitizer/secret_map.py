"""What must not leave this machine: hidden on the way out, and put back in the code on the way in.

The sanitiser finds secrets and personal data, by its own rules and the user's. In arguments and messages they are gone
for good. In code they have to come back: a tool that holds an address, or a key that should not be there, would
otherwise come home with `[EMAIL]` in its place. So each hidden text has a mark of its own, and where the mark stands
in the answer, the text stands again.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from healkit.sanitizer import Sanitizer

_MAX_ROUNDS = 4
#: A shorter text that was hidden once may be an everyday word elsewhere.
_KNOWN_MIN_CHARS = 8

_encode = msgspec.json.Encoder(order="deterministic").encode


class SecretMap:
    """Hides and puts back; made for each case. `hidden` counts what each rule hid."""

    def __init__(self, sanitizer: Sanitizer, hidden: Counter[str] | None = None) -> None:
        self._sanitizer = sanitizer
        self._marks: dict[str, str] = {}
        self.hidden: Counter[str] = Counter() if hidden is None else hidden

    def text(self, text: str) -> str:
        """The text with marks for all that is hidden in it, and for what was hidden before."""
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
        """A value as JSON text, cleaned as data (by its keys, too) and then cut at the limit."""
        cleaned = self._sanitizer.clean(value, limit_bytes=limit_bytes)
        self.hidden.update(cleaned.hidden)
        return self.text(_encode(cleaned.value).decode())

    def cleaned(self, text: str) -> str:
        """The text with what is hidden in it gone for good: no mark of its own stands for it."""
        cleaned = self._sanitizer.clean(text, limit_bytes=len(text.encode()) * 4)
        self.hidden.update(cleaned.hidden)
        return self.text(str(cleaned.value))

    def restored(self, text: str) -> str:
        """The text with what was hidden in place of the marks."""
        for original, mark in reversed(self._marks.items()):  # a later one may hold an earlier one's mark
            text = text.replace(mark, original)
        return text

    def numbered(self, code: str) -> str:
        """The code hidden, each line behind its number in the original: a hidden text may be several lines long."""
        lines: list[str] = []
        number = 1
        for line in self.text(code).replace("\r\n", "\n").removesuffix("\n").split("\n"):
            lines.append(f"{number:>4} | {line}")
            number += 1 + self.restored(line).count("\n")
        return "\n".join(lines)

    def _mark(self, original: str, rule: str) -> str:
        """The sanitiser takes what looks like its own replacements for harmless, so marks do."""
        if original not in self._marks:
            self._marks[original] = f"[REDACTED:{rule}-{len(self._marks) + 1}]"
        return self._marks[original]


def _rule_of(mark: str) -> str:
    return mark.removeprefix("[REDACTED:").rpartition("-")[0]


def cut_text(text: str, max_chars: int) -> str:
    """A text's beginning and end, with what was left out between them; for texts that were hidden already."""
    if len(text) <= max_chars:
        return text
    head, tail = max_chars * 2 // 3, max_chars // 3
    return f"{text[:head]} … ({len(text) - head - tail:,} characters left out) … {text[-tail:]}"
