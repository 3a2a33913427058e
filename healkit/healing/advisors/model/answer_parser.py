"""Parser of a model's answer: one sentence, and the new code.

Models put code in one fence, or in three; they think aloud first, repeat the wrong code, add an example of use, send a
diff, or forget the fence. The parser takes the last block that is a whole tool of the same kind as before, with other
code. Nothing of an answer runs here; its code is only a candidate.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import textwrap

from healkit.contracts.vault import VaultEntry
from healkit.errors import VaultError
from healkit.pysource import shapes

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^`]*")
_DIFF = re.compile(r"^(?:diff --git |--- .+\n\+\+\+ |@@ .*@@)", re.MULTILINE)
_NUMBERED = re.compile(r" {0,4}\d+ \| ?")
_MARKUP = re.compile(r"^(?:[#>*\-\s]+|\d+[.)]\s+)|[*`]+")
_LABEL = re.compile(r"^(?:reason|explanation|fix)\s*:\s*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_REASON_MAX_CHARS, _BLOCKS_MAX = 300, 40
NO_REASON = "The model gave no reason."


class UnusableAnswer(Exception):
    """Answer without new code; the text says why, to the model and to people."""


@dataclasses.dataclass(frozen=True)
class ModelAnswer:
    """Code and reason that a model proposes."""

    code: str
    reason: str


@dataclasses.dataclass(frozen=True)
class CodeBlock:
    """Fenced block of an answer."""

    language: str
    text: str


def read_answer(text: str, entry: VaultEntry) -> ModelAnswer:
    """Return the proposal of an answer; raise `UnusableAnswer` where there is none."""
    said = _THINKING.sub("", text).replace("\r\n", "\n").strip()
    if not said:
        raise UnusableAnswer("The answer is empty.")
    blocks, prose = split_blocks(said)
    diffs = [block for block in blocks if block.language in {"diff", "patch"} or _DIFF.search(block.text)]
    candidates = [block for block in blocks if block not in diffs]
    if not blocks:
        candidates, prose = [CodeBlock("", said)], ""
    if diffs and not candidates:
        raise UnusableAnswer("The answer is a diff; the whole new code is needed.")
    code = _chosen(candidates, entry, fenced=bool(blocks))
    return ModelAnswer(code.replace("\n", "\r\n") if "\r\n" in entry.code else code, _reason(prose))


def same_code(one: str, other: str, kind: str) -> bool:
    """Return True if two codes are equal but for comments and layout."""
    if kind == "python":
        try:
            return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return one.split() == other.split()


def split_blocks(text: str) -> tuple[list[CodeBlock], str]:
    """Split a text into its fenced blocks and the prose around them.

    As CommonMark has it (https://spec.commonmark.org/0.31.2/#fenced-code-blocks): a block ends at a fence at least as
    long as the one it began with, or with the text.
    """
    blocks: list[CodeBlock] = []
    prose: list[str] = []
    inside: list[str] | None = None
    fence = language = ""
    for line in text.split("\n"):
        match = _FENCE.fullmatch(line)
        if inside is None:
            if match is None or len(blocks) >= _BLOCKS_MAX:
                prose.append(line)
                continue
            inside, fence, language = [], match["fence"], match["language"].lower()
        elif match is not None and not match["language"] and match["fence"].startswith(fence):
            blocks.append(CodeBlock(language, textwrap.dedent("\n".join(inside))))
            inside = None
        else:
            inside.append(line)
    if inside is not None:
        blocks.append(CodeBlock(language, textwrap.dedent("\n".join(inside))))
    return blocks, "\n".join(prose)


def _chosen(blocks: list[CodeBlock], entry: VaultEntry, *, fenced: bool) -> str:
    """Return the last block that can be the new code; raise `UnusableAnswer` with the fault of the longest one."""
    codes = [_unnumbered(block.text).strip("\n") + "\n" for block in blocks]
    wrong = {code: _wrong_with(code, entry) for code in codes}
    right = [code for code in codes if not wrong[code]]
    if right:
        changed = [code for code in right if not same_code(code, entry.code, entry.type)]
        if not changed:
            raise UnusableAnswer("The code in the answer is the same as before.")
        return changed[-1]
    if not fenced:
        raise UnusableAnswer("The answer holds no fenced block of code.")
    raise UnusableAnswer(wrong[max(codes, key=len)])


def _wrong_with(code: str, entry: VaultEntry) -> str:
    """Say why the code cannot be the tool's new code; empty if it can."""
    if entry.type != "python":
        return "" if code.strip() else "The block in the answer is empty."
    try:
        tree = shapes.parse(code, entry.tool_name)
        found = shapes.read_shape(tree, entry.tool_name)
    except VaultError as error:
        return f"The code in the answer cannot be used: {error.message}"
    try:
        wanted = shapes.read_shape(shapes.parse(entry.code, entry.tool_name), entry.tool_name)
    except VaultError:
        return ""  # a draft that does not parse says nothing about what it will be
    if (found.kind, found.entry) != (wanted.kind, wanted.entry):
        name = wanted.entry or "result"
        return f"The code in the answer is not the whole tool: {wanted.kind} {name!r} is not in it as it was."
    return ""


def _unnumbered(code: str) -> str:
    """Remove the line numbers with which the code was shown."""
    lines = code.split("\n")
    if all(_NUMBERED.match(line) for line in lines if line.strip()):
        return "\n".join(_NUMBERED.sub("", line, count=1) for line in lines)
    return code


def _reason(prose: str) -> str:
    """Return the first sentence outside the blocks, without markup."""
    for line in prose.split("\n"):
        plain = _LABEL.sub("", _MARKUP.sub("", line).strip())
        if sum(character.isalpha() for character in plain) >= 3 and not plain.endswith(":"):
            return _SENTENCE_END.split(plain, maxsplit=1)[0][:_REASON_MAX_CHARS]
    return NO_REASON
