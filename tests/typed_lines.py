"""Commands that a sentence says to type.

`healkit vault rename ratio NEW; healkit vault lists what there is.` is two of them. A placeholder in capitals is filled
in by the one who follows.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

#: Words after a command that are the sentence's own.
_ENDS = {
    "shows", "lists", "adds", "makes", "opens", "installs", "starts", "one", "what", "or", "and", "has", "above", "in",
    "with", "brings", "too", "takes", "called", "writes", "for", "to", "is", "on",
}  # fmt: skip
_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|\S+")
#: Python, which a terminal does not take: a call, an object of a notebook, a value of its own.
PYTHON = re.compile(r"\bhk\.|\b(?:vault|healkit)\.(?!db\b)\w+|\w\(\)|\w+=\[|\bNone\b|\bnamespace\b")
#: What a parser of Python says, and no person.
PARSER = re.compile(
    r"the following arguments are required|unrecognized arguments|Traceback|ARGUMENTS_INVALID|_INVALID:"
)


def typed_in(text: str, lead: str, known: Mapping[str, str] = {}) -> list[str]:
    """Return the commands in a text that begin so, such as `healkit ` or `%`, with placeholders filled in.

    known: the placeholder → what stands for it.
    """
    found = []
    for match in re.finditer(rf"(?<![\w/.%!'\"]){re.escape(lead)}", text):
        words: list[str] = []
        for word in _WORD.findall(text[match.start() :].split("\n")[0]):
            if word.lower() in _ENDS and len(words) > 0:
                break
            end = word.rstrip(".;,?:") if not word.startswith(("'", '"')) else word
            words.append(end)
            if end != word:
                break
        line = " ".join(words)
        for placeholder, value in known.items():
            line = re.sub(rf"(?<![\w-]){placeholder}(?![\w-])", lambda _, value=value: value, line)
        found.append(line)
    return found


def split(line: str) -> list[str]:
    """Split a command as a shell does, without its first word."""
    return shlex.split(line)[1:]
