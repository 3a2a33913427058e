"""Prose of the project: pages, docstrings, comments and texts."""

from __future__ import annotations

import ast
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

#: Forms that a reader stumbles over, with what to write instead.
FORBIDDEN = {
    r"(?<!there )(?<!there’s )\b(?:is|are|was|were|be) no (?!longer\b|more\b|less\b|better\b|worse\b)\w+": "is not a …, or has no …",
    r"\bnone of\b": "no …, not one of …",
    r"\bof (?:ours|yours|its own making)\b": "our, your",
    r"\b(?:what|that) (?:is|was|are) told\b|\b(?:is|are|was|were) told\b": "says, reports, knows",
    r"\b(?:somebody|nobody)\b": "no one, or say who",
    r"\bmend(?:s|ed|ing|able)?\b": "fix, repair",
    r"\bnurser(?:y|ies)\b": "fork server",
    r"\broads?\b": "path",
    r"\balike\b": "similar, the same",
    r"\b(?:came|comes|come) of (?:it|this|that)\b": "result",
    r"\bhand(?:s|ed)? (?:it|them) on\b": "share",
    r"\ball the same\b(?! \w)": "still, anyway",
    r"\bwhich (?:it|there) has not\b|\b(?:it|he|one) has not\b(?! \w+(?:ed|en)\b)": "does not have",
    r"\bwho (?:asks|reads|writes|wants|calls|runs) (?:it|this)\b": "the caller, the reader",
}
_FORBIDDEN = {re.compile(form, re.IGNORECASE): instead for form, instead in FORBIDDEN.items()}
WORDS_MAX = 25

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,}|:{3,}).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
#: Example in a docstring, up to the next blank line: prompts and what they print.
_PROMPTS = re.compile(r"^(?:Example:\n)?>>> .*", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?:])[)\"”]?\s+(?=[A-Z`\"“(\d])")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|No|approx)\.")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class Sentence(NamedTuple):
    """Sentence, where it stands, and how many words it has; a piece of code counts as one."""

    place: str
    text: str

    @property
    def word_count(self) -> int:
        """Number of words."""
        return len(_WORD.findall(self.text))

    @property
    def forbidden(self) -> list[str]:
        """Forbidden forms in it, each with what to write instead."""
        found = ((form.search(self.text), instead) for form, instead in _FORBIDDEN.items())
        return [f"{match[0]!r}: {instead}" for match, instead in found if match]


def sentences(place: str, text: str) -> Iterator[Sentence]:
    """Yield the sentences of plain text."""
    text = _CODE.sub("X", text)
    text = _LINK.sub(r"\1", text)
    text = _ABBREVIATIONS.sub(r"\1", text)
    for sentence in _END.split(" ".join(text.replace("*", "").split())):
        if sentence.strip():
            yield Sentence(place, sentence.strip())


def markdown_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a page: of its paragraphs, list items and table cells, without code."""
    text = path.read_text()
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731 - keeps line numbers
    text = _FENCE.sub(blank, _COMMENT.sub(blank, text))
    block: list[str] = []
    begins = 1
    place = path.relative_to(ROOT).as_posix()
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        is_table = line.lstrip().startswith("|")
        if not line.strip() or is_table or _ITEM.match(line) or line.startswith(("#", ">", ":")):
            yield from sentences(f"{place}:{begins}", " ".join(block))
            block, begins = [], number
        if is_table:
            for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
                if not re.fullmatch(r"[\s:-]*", cell):
                    yield from sentences(f"{place}:{number}", cell)
        elif line.strip():
            block.append(_ITEM.sub("", line).lstrip("#> "))


def docstring_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a module's docstrings."""
    place = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                prose = _PROMPTS.sub("", paragraph)
                yield from sentences(f"{place}:{getattr(node, 'lineno', 1)}", prose)


def comment_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a Python file's comments; comments on lines below each other are one text."""
    place = path.relative_to(ROOT).as_posix()
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
    block: list[tokenize.TokenInfo] = []
    for token in [*tokens, None]:
        text = token.string.lstrip("#: ") if token else ""
        if block and not (token and text and _continues(block[-1], token)):
            joined = " ".join(one.string.lstrip("#: ") for one in block)
            yield from sentences(f"{place}:{block[0].start[0]}", joined)
            block = []
        if token and text:
            block.append(token)


def _continues(above: tokenize.TokenInfo, below: tokenize.TokenInfo) -> bool:
    """Return whether both comments have a line to themselves, one below the other."""
    alone = all(not one.line[: one.start[1]].strip() for one in (above, below))
    return alone and below.start == (above.start[0] + 1, above.start[1])


def name_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the names of a module's tests, as sentences."""
    place = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield from sentences(f"{place}:{node.lineno}", node.name.replace("_", " "))


def explanation_texts(path: Path) -> Iterator[str]:
    """Yield the texts of a TOML file that have more than two words and are not code, in their order."""
    pending: list[object] = [tomllib.loads(path.read_text())]
    while pending:
        value = pending.pop(0)
        if isinstance(value, dict):
            skipped = {"message", "only", "example", "lookalike", "claim", "edits", "before", "after"}
            pending[:0] = [inner for key, inner in value.items() if key not in skipped]
        elif isinstance(value, list):
            pending[:0] = value
        elif isinstance(value, str) and len(value.split()) > 2:
            yield value


def toml_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a TOML file's texts."""
    for text in explanation_texts(path):
        yield from sentences(path.relative_to(ROOT).as_posix(), text)


_QUOTED = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`")


def script_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of a TypeScript or JavaScript file with more than two words."""
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        for match in _QUOTED.finditer(line):
            text = next(group for group in match.groups() if group is not None)
            if len(text.split()) > 2 and not re.search(r"[{};=<>]{2}", text):
                yield number, text


def script_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences in the strings of a TypeScript or JavaScript file."""
    for number, text in script_texts(path):
        yield from sentences(f"{path.relative_to(ROOT).as_posix()}:{number}", text)


def pages() -> list[Path]:
    """Return the pages that are written by hand."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module with more than three words, except docstrings; `…` is what is filled in."""
    tree = ast.parse(path.read_text())
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            passed.update(map(id, node.values))
    for node in ast.walk(tree):
        if id(node) in passed:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if _is_prose(text):
            yield node.lineno, text


def _is_prose(text: str) -> bool:
    """Return whether a text is a sentence or a part of one, and not code, SQL, a pattern or a template."""
    words = text.split()
    letters = sum(char.isalpha() or char.isspace() for char in text)
    return (
        len(words) > 3
        and letters > 0.8 * len(text)
        and not re.search(
            r"\b(SELECT|CREATE|INSERT|UPDATE|DELETE|PRAGMA|ALTER|GRANT|def|import|return)\b", text
        )
        and not re.search(r"[\\{}<>=;]{2}|\(\?|<\w+", text)
    )


def literal_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a module's texts, except docstrings."""
    for line, text in literals(path):
        yield from sentences(f"{path.relative_to(ROOT).as_posix()}:{line}", text)
