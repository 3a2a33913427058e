"""Edits of texts: words, separators, formats, patterns."""

from __future__ import annotations

import ast
import difflib
import itertools
import re

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program

#: Codes of date formats that are easily confused.
_DATES = {
    "m": "Mb",
    "M": "m",
    "y": "Y",
    "Y": "yG",
    "d": "Dj",
    "D": "d",
    "H": "I",
    "I": "H",
    "B": "b",
    "b": "B",
    "p": "P",
    "A": "a",
    "a": "A",
    "S": "s",
}
_SEPARATORS = (" ", ", ", ",", "-", "_", "\n", ": ", ":", "/", ".", ";", "|", "\t", "")
_DIGITS = re.compile(r"\.(\d)(?=[fge%]?\})|(?<=\.)(\d)(?=[fge%]$)")


def _text(program: Program, node: ast.AST) -> str | None:
    """Return the text of a literal that is not part of an f-string."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    return None if isinstance(program.parent(node), ast.FormattedValue | ast.JoinedStr) else node.value


@operator(
    "another string, from the expected values or the program",
    0.5,
    ast.Constant,
    before="x = 'medium'\ny = 'large'",
    after="x = 'large'\ny = 'large'",
)
def use_known_text(program: Program, node: ast.Constant) -> Changes:
    if (value := _text(program, node)) is None:
        return
    found = dict.fromkeys(program.hints.constants)
    texts = [text for other in program.nodes if (text := _text(program, other)) is not None]
    found.update(dict.fromkeys(repr(text) for text in texts if len(text) < 60))
    own = repr(value)
    for text in list(found)[:60]:
        if text[:1] in "'\"" and text != own:
            likeness = difflib.SequenceMatcher(None, own, text).ratio()
            yield from program.put(node, text, 0.5 + 0.5 * likeness if len(own) > 3 else 0.8)


@operator("another separator", 0.6, ast.Constant, before="x = ','.join(a)", after="x = ', '.join(a)")
def change_separator(program: Program, node: ast.Constant) -> Changes:
    value = _text(program, node)
    if value is None or len(value) > 3:
        return
    parent = program.parent(node)
    joins = isinstance(parent, ast.Attribute) and parent.attr == "join"
    given = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute)
    for text in _SEPARATORS:
        if text != value:
            yield from program.put(node, repr(text), 1.0 if joins or given else 0.5)


@operator(
    "another format specifier",
    0.7,
    ast.Constant,
    ast.JoinedStr,
    before="x = f'{a:.1f}'",
    after="x = f'{a:.2f}'",
)
def change_format(program: Program, node: ast.Constant | ast.JoinedStr) -> Changes:
    if isinstance(node, ast.Constant) and _text(program, node) is None:
        return
    start, end = program.source.span(node)
    text = program.text[start:end]
    if isinstance(node, ast.Constant):
        for found in re.finditer(r"%-?([A-Za-z])", text):
            for other in _DATES.get(found.group(1), ""):
                yield Change((Edit(start + found.start(1), start + found.end(1), other),))
    codes = list(re.finditer(r"%-?[A-Za-z]", text)) if isinstance(node, ast.Constant) else []
    for first, second in itertools.combinations(codes, 2):
        places = ((start + one.start(), start + one.end()) for one in (first, second))
        yield Change(
            tuple(Edit(*place, other.group()) for place, other in zip(places, (second, first), strict=True))
        )
    for found in _DIGITS.finditer(text):
        group = 1 if found.group(1) else 2
        for digit in "0123":
            if digit != found.group(group):
                yield Change((Edit(start + found.start(group), start + found.end(group), digit),))


@operator(
    "another regular expression",
    0.4,
    ast.Constant,
    before="import re\nx = re.sub('a', '', s)",
    after="import re\nx = re.sub('a+', '', s)",
)
def change_pattern(program: Program, node: ast.Constant) -> Changes:
    parent = program.parent(node)
    if _text(program, node) is None or not isinstance(parent, ast.Call):
        return
    if not (
        isinstance(parent.func, ast.Attribute)
        and program.segment(parent.func.value) == "re"
        and parent.args[0] is node
    ):
        return
    start, end = program.source.span(node)
    text = program.text[start:end]
    first = re.match(r"[A-Za-z]*['\"]+", text)
    if first is None:
        return
    begin, stop = start + first.end(), end - len(first.group().lstrip("rRbBuUfF"))
    yield Change((Edit(stop, stop, "+"),), 1.0)
    yield Change((Edit(stop, stop, "*"),), 0.8)
    yield Change((Edit(stop, stop, "$"),), 1.0)
    yield Change((Edit(begin, begin, "^"),), 1.0)
    yield Change((Edit(begin, begin, "^"), Edit(stop, stop, "$")), 0.8)
    for found in re.finditer(r"[+*?]|\\[dwsDWS]|\.", program.text[begin:stop]):
        place = (begin + found.start(), begin + found.end())
        if (part := found.group()) in "+*?":
            for other in ("+", "*", "?", "", f"{part}?"):
                if other != part:
                    yield Change((Edit(*place, other),), 0.9)
        elif part == ".":
            yield Change((Edit(*place, r"\."),), 0.9)
        else:
            yield Change((Edit(place[1], place[1], "+"),), 0.9)
            yield Change((Edit(*place, part[0] + part[1].swapcase()),), 0.7)
