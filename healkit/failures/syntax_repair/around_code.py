"""Text around code that was copied from a chat or a page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

#: Characters that look like one of Python's → that one.
_LOOKS_LIKE = {
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u00ab": '"', "\u00bb": '"', "\u2033": '"',
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "\u00b4": "'",
    "\u00a0": " ", "\u202f": " ", "\u2007": " ", "\u2009": " ", "\u2002": " ", "\u2003": " ", "\u3000": " ",
    "\u200b": "", "\u200c": "", "\u200d": "", "\ufeff": "", "\u2060": "", "\u00ad": "", "\x00": "",
    "\u2212": "-", "\u2013": "-", "\u2014": "-", "\u2010": "-", "\u2011": "-", "\u00d7": "*", "\u00f7": "/",
    "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u2026": "...", "\u2192": "->", "\uff08": "(", "\uff09": ")",
    "\uff0c": ",", "\uff1a": ":", "\uff1b": ";", "\uff1d": "=", "\u3001": ",", "\u2028": "\n", "\u2029": "\n",
}  # fmt: skip
_FENCE = re.compile(
    r"^[ \t]*(?:```|~~~)[^\n`]*\n(.*?)(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d*\]:|\s+\.\.\.:)(?: |$)")
_NUMBERED = re.compile(r"^[ \t]*\d+[:|.)]?(?:[ \t]|$)")
_CODE_LINE = re.compile(
    r"^\s*(?:#|@|\"\"\"|'''|(?:async\s+)?(?:def|class|for|while|if|with)\b.*:|(?:import|from)\s+\w|return\b|\w[\w.\[\]\"']*\s*(?:[-+*/|&]?=|\()|$)"
)
_SENTENCE = re.compile(
    r"^\s*(?:[-*•]\s+|\d+\.\s+|#+\s+)?[`*_]*[A-Z][\w'’`*,-]*(?:\s+[\w'’`*(),/.:;+=<>-]+)*[.:!?]?\s*$"
)


def readings(text: str) -> Iterator[tuple[str, str]]:
    """Yield other readings of a text, likeliest first, each with what was taken away."""
    for change, done in (
        (_unfenced, "only what stands between the fences is code"),
        (_without_look_alikes, "characters that only look like python's become python's"),
        (_without_prompts, "the session's prompts and what it printed are removed"),
        (_without_numbers, "the numbers before the lines are removed"),
        (_without_marks, "the marks of a diff or a quotation are removed"),
        (_without_prose, "the sentences around the code are removed"),
        (_dedented, "all lines begin further in than they should"),
    ):
        changed = change(text)
        if changed is not None and changed != text and changed.strip():
            yield changed, done


def _unfenced(text: str) -> str | None:
    """Keep what is between code fences."""
    blocks = [match[1] for match in _FENCE.finditer(text)]
    head = re.split(r"^[ \t]*(?:```|~~~)", text, maxsplit=1, flags=re.MULTILINE)[0]
    if re.search(r"^[ \t]*(?:def|class|import|from)\b.*(?::$|\w$)", head, re.MULTILINE):
        return None  # the fence stands in a docstring
    if blocks:
        with_code = [
            block
            for block in blocks
            if re.search(r"^\s*(?:def|class|import|from|result\s*=)", block, re.MULTILINE)
        ]
        return "\n\n".join(block.rstrip("\n") for block in (with_code or blocks)) + "\n"
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if not re.match(r"^\s*(?:```|~~~)\w*\s*$", line)]
    return "".join(kept) if len(kept) < len(lines) else None


def _without_look_alikes(text: str) -> str | None:
    """Replace characters that only look like Python's."""
    changed = "".join(_LOOKS_LIKE.get(c, c) for c in text)
    wide = "".join(unicodedata.normalize("NFKC", c) if "\uff01" <= c <= "\uff5e" else c for c in changed)
    return "".join(c for c in wide if c >= " " or c in "\t\n\r\f")


def _without_prompts(text: str) -> str | None:
    """Remove a session's prompts and what it printed."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if not re.match(r"\s*(?:>>>|In \[\d*\]:)", first):
        return None
    kept = [_PROMPT.sub("", line, count=1) for line in lines if _PROMPT.match(line)]
    return "\n".join(kept) + "\n"


def _without_numbers(text: str) -> str | None:
    """Remove line numbers."""
    lines = text.splitlines()
    numbered = [line for line in lines if line.strip()]
    if len(numbered) < 2 or not all(_NUMBERED.match(line) for line in numbered):
        return None
    return "\n".join(re.sub(r"^[ \t]*\d+[:|.)]? ?", "", line) for line in lines) + "\n"


def _without_marks(text: str) -> str | None:
    """Remove the marks of a diff or a quotation."""
    lines = [line for line in text.splitlines() if line.strip()]
    for mark in ("+", ">", "|"):
        if len(lines) > 1 and all(line.startswith(mark) for line in lines):
            return re.sub(rf"^{re.escape(mark)} ?", "", text, flags=re.MULTILINE)
    if (
        lines
        and any(line.startswith(("+", "-")) for line in lines)
        and any(line.startswith("@@") for line in lines)
    ):
        kept = [line for line in text.splitlines() if not line.startswith(("-", "@@", "\\"))]
        return "\n".join(line[1:] if line[:1] in {"+", " "} else line for line in kept) + "\n"
    return None


def _without_prose(text: str) -> str | None:
    """Remove the sentences around the code."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.strip() and _is_code(line)), None)
    if first is None:
        return None
    last = len(lines)
    while last > first and (not lines[last - 1].strip() or (_is_prose(lines[last - 1]))):
        last -= 1
    if any(line.strip() and not _is_prose(line) for line in lines[:first]):
        return None
    return "\n".join(lines[first:last]) + "\n" if first or last < len(lines) else None


def _is_code(line: str) -> bool:
    return bool(_CODE_LINE.match(line)) and not (
        _SENTENCE.match(line) and " " in line.strip() and "=" not in line and "(" not in line
    )


def _is_prose(line: str) -> bool:
    words = line.split()
    return bool(_SENTENCE.match(line)) and len(words) > 2 and not line.startswith((" ", "\t"))


def _dedented(text: str) -> str | None:
    """Remove the indentation that all lines have."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not lines[0].startswith((" ", "\t")):
        return None
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    if all(line.startswith(indent) for line in lines):
        return re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
    return None
