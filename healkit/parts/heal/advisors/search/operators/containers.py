"""Edits of containers, texts and formats."""

from __future__ import annotations

import ast
import difflib
import itertools
import re

from healkit.core.contracts.patches import Edit
from healkit.parts.explain.source import ATOM
from healkit.parts.heal.advisors.search.operators.definition import Changes, operator
from healkit.parts.heal.advisors.search.program import (
    NUMBERS,
    SEQUENCES,
    Change,
    Program,
    guess_types,
    may_have_type,
)

#: Expressions that make a new mutable object each time.
_OWN = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.Call)


@operator("two elements swapped", 0.8, ast.List, ast.Tuple, ast.Dict, before="x = [a, b]", after="x = [b, a]")
def swap_elements(program: Program, node: ast.List | ast.Tuple | ast.Dict) -> Changes:
    groups = [node.elts] if not isinstance(node, ast.Dict) else [node.values]
    share = 1.0 if len(groups[0]) < 4 else 0.5  # with many elements each pair is less likely
    match program.parent(node):
        case ast.For(target=target, iter=iterable) | ast.comprehension(target=target, iter=iterable):
            # Targets are mixed up with `items()` or `enumerate()`; in other loops the code would never have worked.
            share *= 0.5 if target is node and not isinstance(iterable, ast.Call) else 1.0
    for group in groups:
        for first in range(len(group)):
            for second in range(first + 1, min(first + 7, len(group))):
                first_element, second_element = group[first], group[second]
                if isinstance(first_element, ast.Starred) or isinstance(second_element, ast.Starred):
                    continue
                if program.segment(first_element) != program.segment(second_element):
                    likely = share if second == first + 1 else 0.8 * share
                    yield program.swap(first_element, second_element, likely)
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and len(node.keys) == 1:
                yield program.swap(key, value, 0.8)


@operator(
    "a separate list for each element",
    0.7,
    ast.BinOp,
    before="def f(n):\n    return [[]] * n",
    after="def f(n):\n    return [[] for _ in range(n)]",
)
def copy_for_each_element(program: Program, node: ast.BinOp) -> Changes:
    """Build a new list for each element: repeating a list repeats references to one object."""
    if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List) and len(node.left.elts) == 1:
        element = node.left.elts[0]
        if isinstance(element, (*_OWN, ast.BinOp)):
            text, count = program.segment(element), program.segment(node.right)
            yield from program.put(node, f"[{text} for _ in range({count})]")


@operator(
    "a separate value for each object",
    0.6,
    ast.ClassDef,
    before="class A:\n    items = []\n\n    def __init__(self, n):\n        self.n = n\n",
    after="class A:\n\n    def __init__(self, n):\n        self.items = []\n        self.n = n\n",
)
def move_to_init(program: Program, node: ast.ClassDef) -> Changes:
    """Move a mutable class attribute into `__init__`: all objects of a class share it."""
    makers = [
        method for method in node.body if isinstance(method, ast.FunctionDef) and method.name == "__init__"
    ]
    for statement in node.body:
        if not (makers and makers[0].args.args and isinstance(statement, ast.Assign)):
            continue
        target, rows = statement.targets[0], program.rows(statement)
        if rows is None or not isinstance(target, ast.Name) or not isinstance(statement.value, _OWN):
            continue
        text = f"{makers[0].args.args[0].arg}.{target.id} = {program.segment(statement.value)}"
        start, stop = program.source.line_start(rows[0]), program.source.line_end(rows[1])
        if (edit := program.insert(makers[0].body[0], [text])) is not None:
            end = stop + len(program.source.newline)
            yield Change((Edit(start, end, ""), edit), line=statement.lineno)


@operator("an element removed", 0.4, ast.List, ast.Tuple, ast.Set, before="x = [a, b]", after="x = [b]")
def drop_element(program: Program, node: ast.List | ast.Tuple | ast.Set) -> Changes:
    if (
        not program.is_value(node)
        or len(node.elts) < 2
        or any(program.source.in_parentheses(element) for element in node.elts)
    ):
        return
    for leave, element in enumerate(node.elts):
        start, stop = program.source.span(element)
        if leave + 1 < len(node.elts):
            stop = program.source.span(node.elts[leave + 1])[0]
        elif len(node.elts) > 2 or not isinstance(node, ast.Tuple):
            start = program.source.span(node.elts[leave - 1])[1]
        if not (isinstance(node, ast.Tuple) and len(node.elts) == 2):
            yield Change((Edit(start, stop, ""),))
    if isinstance(node, ast.Tuple):
        for element in node.elts[:3]:
            yield from program.put(node, program.segment(element), 0.7)


@operator("another slice", 0.6, ast.Subscript, before="x = a[1:b]", after="x = a[1:]")
def change_slice(program: Program, node: ast.Subscript) -> Changes:
    if not isinstance(node.slice, ast.Slice):
        return
    low, high, step = (
        program.segment(part) if part else ""
        for part in (node.slice.lower, node.slice.upper, node.slice.step)
    )
    owner = program.segment(node.value)
    slices = [("", high, step), (low, "", step), (low, high, ""), (high, low, step), (low, high, "-1")]
    slices += [
        (low or "1", high, step),
        (low, high or "-1", step),
        (low, f"{low} + {high}" if low and high else high, step),
    ]
    slices += [(name, high, step) for name in program.names(node)[:8] if not low] + [
        (low, name, step) for name in program.names(node)[:8] if not high
    ]
    slices += [(f"-{high}", "", step)] if high and not low else []
    slices += [("", f"-{low}", step)] if low and not high else []
    for begin, end, by in dict.fromkeys(slices):
        text = f"{owner}[{begin}:{end}{':' + by if by else ''}]"
        yield from program.put(node, text, 1.0)


@operator(
    "a slice instead of the whole sequence",
    0.4,
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    before="def f(a, k):\n    return a",
    after="def f(a, k):\n    return a[k:]",
)
def take_slice(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    kinds = guess_types(program, node)
    if (
        not program.is_value(node)
        or field == "func"
        or not may_have_type(kinds, SEQUENCES)
        or isinstance(parent, ast.Attribute | ast.Expr)
    ):
        return
    if isinstance(parent, ast.Subscript) and field == "value":
        return
    text, sure = program.segment(node), 1.0 if kinds else 0.6
    for part in ("1:", ":-1", "::-1", ":"):
        yield from program.put(node, f"{text}[{part}]", sure)
    for name in program.names(node)[:10]:
        if name != text and may_have_type(program.types(name, node), frozenset({"int"})):
            for part in (f"{name}:", f":{name}", f"{name} + 1:"):
                yield from program.put(node, f"{text}[{part}]", 0.9 * sure if "+" not in part else 0.6 * sure)


@operator("indexes swapped", 0.8, ast.Subscript, before="x = a[i][j]", after="x = a[j][i]")
def swap_indexes(program: Program, node: ast.Subscript) -> Changes:
    inner = node.value
    if (
        isinstance(inner, ast.Subscript)
        and not isinstance(inner.slice, ast.Slice)
        and not isinstance(node.slice, ast.Slice)
    ):
        inner_index, outer_index = inner.slice, node.slice
        if program.segment(inner_index) != program.segment(outer_index):
            yield program.swap(inner_index, outer_index, needed=0)


# Words, separators, formats, patterns.


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
    literals = dict.fromkeys(program.hints.constants)
    texts = [text for candidate in program.nodes if (text := _text(program, candidate)) is not None]
    literals.update(dict.fromkeys(repr(text) for text in texts if len(text) < 60))
    current = repr(value)
    for text in list(literals)[:60]:
        if text[:1] in "'\"" and text != current:
            likeness = difflib.SequenceMatcher(None, current, text).ratio()
            yield from program.put(node, text, 0.5 + 0.5 * likeness if len(current) > 3 else 0.8)


@operator("another separator", 0.6, ast.Constant, before="x = ','.join(a)", after="x = ', '.join(a)")
def change_separator(program: Program, node: ast.Constant) -> Changes:
    value = _text(program, node)
    if value is None or len(value) > 3:
        return
    parent = program.parent(node)
    joins = isinstance(parent, ast.Attribute) and parent.attr == "join"
    is_method_argument = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute)
    for text in _SEPARATORS:
        if text != value:
            yield from program.put(node, repr(text), 1.0 if joins or is_method_argument else 0.5)


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
        for match in re.finditer(r"%-?([A-Za-z])", text):
            for letter in _DATES.get(match.group(1), ""):
                yield Change((Edit(start + match.start(1), start + match.end(1), letter),))
    codes = list(re.finditer(r"%-?[A-Za-z]", text)) if isinstance(node, ast.Constant) else []
    for first, second in itertools.combinations(codes, 2):
        places = ((start + code.start(), start + code.end()) for code in (first, second))
        yield Change(
            tuple(Edit(*place, code.group()) for place, code in zip(places, (second, first), strict=True))
        )
    for match in _DIGITS.finditer(text):
        group = 1 if match.group(1) else 2
        for digit in "0123":
            if digit != match.group(group):
                yield Change((Edit(start + match.start(group), start + match.end(group), digit),))


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
    for match in re.finditer(r"[+*?]|\\[dwsDWS]|\.", program.text[begin:stop]):
        place = (begin + match.start(), begin + match.end())
        if (part := match.group()) in "+*?":
            for quantifier in ("+", "*", "?", "", f"{part}?"):
                if quantifier != part:
                    yield Change((Edit(*place, quantifier),), 0.9)
        elif part == ".":
            yield Change((Edit(*place, r"\."),), 0.9)
        else:
            yield Change((Edit(place[1], place[1], "+"),), 0.9)
            yield Change((Edit(*place, part[0] + part[1].swapcase()),), 0.7)


# Parts of a text and their formats.


_TEXTS = frozenset({"str"})
#: Format specifications for whole numbers, and for others.
_WHOLE, _DECIMAL = (":02d", ":02", ":03d", ":,", ":04d"), (":.2f", ":.1f", ":.0f", ":,.2f", ":.3f", ":g")


@operator(
    "a format specifier added",
    0.45,
    ast.JoinedStr,
    before="x = f'{a}:{b}'",
    after="x = f'{a}:{b:02d}'",
)
def add_format(program: Program, node: ast.JoinedStr) -> Changes:
    start, end = program.source.span(node)
    for part in node.values:
        if not isinstance(part, ast.FormattedValue) or part.format_spec is not None or part.conversion != -1:
            continue
        if part.value not in program.parents:  # its place in the text is unknown
            continue
        stop = program.source.span(part.value)[1]
        if not start < stop < end or program.text[stop : stop + 1] != "}":
            continue
        kinds = guess_types(program, part.value)
        for spec in _WHOLE if may_have_type(kinds, frozenset({"int"})) else ():
            yield Change((Edit(stop, stop, spec),), 1.0 if kinds else 0.7)
        for spec in _DECIMAL if may_have_type(kinds, NUMBERS) else ():
            yield Change((Edit(stop, stop, spec),), 0.9 if kinds else 0.6)
        if may_have_type(kinds, _TEXTS):
            yield Change((Edit(stop, stop, "!r"),), 0.5)


@operator(
    "characters stripped from a string",
    0.35,
    ast.Name,
    ast.Call,
    ast.Subscript,
    ast.Attribute,
    ast.JoinedStr,
    before="def f(s):\n    t = s + '_'\n    return s",
    after="def f(s):\n    t = s + '_'\n    return s.strip('_')",
)
def strip_text(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    if not program.is_value(node) or field == "func" or not may_have_type(guess_types(program, node), _TEXTS):
        return
    if not isinstance(parent, ast.Return | ast.Assign | ast.Call | ast.comprehension | ast.For):
        return
    signs: dict[str, None] = {}
    for constant in program.nodes:
        if (
            isinstance(constant, ast.Constant)
            and isinstance(constant.value, str)
            and 0 < len(constant.value) <= 2
        ):
            signs.setdefault(repr(constant.value))
    text = program.piece(node, ATOM)
    weight = 1.0 if isinstance(parent, ast.Return) else 0.6
    for sign in list(signs)[:8]:
        for how in ("strip", "lstrip", "rstrip"):
            yield from program.put(node, f"{text}.{how}({sign})", weight)


@operator(
    "each part converted to another type",
    0.4,
    ast.Call,
    ast.Name,
    most=1.3,
    before="def f(s):\n    return s.split('.')",
    after="def f(s):\n    return [int(part) for part in s.split('.')]",
)
def convert_parts(program: Program, node: ast.expr) -> Changes:
    """Convert or filter the parts of a split text: numbers, surrounding spaces, empty parts."""
    parent, field = program.parents[node]
    if not program.is_value(node) or field == "func" or isinstance(parent, ast.Attribute | ast.Expr):
        return
    splits = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"
    if not splits and not (isinstance(node, ast.Name) and guess_types(program, node) == {"list"}):
        return
    text, weight = program.segment(node), 1.0 if splits else 0.35
    for expression, condition, share in (
        ("int(part)", "", 1.0), ("part.strip()", "", 1.0), ("part.strip()", " if part.strip()", 1.3),
        ("part", " if part", 1.0), ("float(part)", "", 1.0), ("part.lower()", "", 1.0), ("int(part)", " if part", 1.0),
    ):  # fmt: skip
        yield from program.put(node, f"[{expression} for part in {text}{condition}]", weight * share)


@operator(
    "a string split at the first separator only",
    0.5,
    ast.Assign,
    before="def f(s):\n    a, b = s.split('=')",
    after="def f(s):\n    a, b = s.split('=', 1)",
)
def split_once_only(program: Program, node: ast.Assign) -> Changes:
    """Split a text into two names at one separator only, or even if there is none."""
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(value, ast.Call):
        return
    func = value.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("split", "rsplit", "partition"):
        return
    names = [program.segment(element) for element in target.elts]
    owner, separator = program.segment(func.value), ", ".join(map(program.segment, value.args[:1])) or "' '"
    start, end = program.source.span(node)
    if start != program.source.span(target.elts[0])[0]:  # parentheses around the names
        return
    for text in (
        f"{', '.join(names)} = {owner}.split({separator}, 1)",
        f"{', '.join(names)} = {owner}.rsplit({separator}, 1)",
        f"{names[0]}, _, {names[1]} = {owner}.partition({separator})",
        f"{names[0]}, _, {names[1]} = {owner}.rpartition({separator})",
        f"{names[1]}, {names[0]} = {owner}.split({separator})",
    ):
        yield Change((Edit(start, end, text),))
