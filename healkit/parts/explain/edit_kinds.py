"""Kinds of edits: what they do to the meaning of code.

The first five of `EDIT_KINDS` keep the author's meaning, so such an edit may be called a fix. The others choose one
reading, invent a value, or leave something out. A fix of the catalogue declares the kind of its edits. This module
compares the two texts and chooses a worse kind if it sees one.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from healkit.core.contracts.patches import EDIT_KINDS, EditKind
from healkit.core.pysource.nodes import called_name

#: From the one that keeps the meaning to the one that loses most.
_ORDER: dict[EditKind, int] = {kind: max(0, place - 4) for place, kind in enumerate(EDIT_KINDS)}

# What a part of the code does by its name. `errors="coerce"` makes a missing value of each that does not fit.

_DISCARDING_CALLS = frozenset((
    "dropna", "drop_duplicates", "drop_nulls", "drop_nans", "suppress", "compressed", "unique", "filterwarnings",
))  # fmt: skip
_DISCARDING_ARGUMENTS = {
    "errors": frozenset(("'coerce'", "'ignore'", "'replace'", "'backslashreplace'")),
    "on_bad_lines": frozenset(("'skip'", "'warn'")),
    "ignore_errors": frozenset(("True",)),
    "invalid_raise": frozenset(("False",)),
    "check": frozenset(("False",)),
    "verify": frozenset(("False",)),
    "return_exceptions": frozenset(("True",)),
    "missing_ok": frozenset(("True",)),
}
_INVENTING_CALLS = frozenset((
    "fillna", "fill_null", "fill_nan", "nan_to_num", "ffill", "bfill", "interpolate", "reindex", "setdefault",
    "combine_first", "backfill", "pad",
))  # fmt: skip
_INVENTING_ARGUMENTS = frozenset(("fill_value", "fillvalue", "default", "constant_values"))
#: Calls that take a value for what is missing, with the place of that value among the arguments.
_WITH_DEFAULT = {"get": 1, "pop": 1, "getattr": 2, "next": 1}
_ASSUMING_CALLS = frozenset((
    "tz_localize", "transpose", "swapaxes", "first", "last", "mean", "sum", "median", "mode", "min", "max", "any",
    "all", "item", "head", "tail", "groupby", "round", "abs", "squeeze", "flatten", "ravel", "cumcount",
    "add_suffix", "add_prefix",
))  # fmt: skip
_ASSUMING_ARGUMENTS = frozenset(
    ("dayfirst", "yearfirst", "utc", "aggfunc", "how", "suffixes", "rsuffix", "lsuffix")
)
#: Places of a number that says where or along which axis, and not what.
_PLACING_CALLS = frozenset(
    ("range", "reshape", "arange", "expand_dims", "subplots", "enumerate", "zeros", "ones")
)
_PLACING_ARGUMENTS = frozenset(("axis", "level", "header", "skiprows", "ndmin", "n_jobs", "start"))
_Places = tuple[ast.AST, ...]


class _Change(NamedTuple):
    """Smallest differing parts, with None for an added or removed part, and the parent of the new part."""

    old: ast.AST | None
    new: ast.AST | None
    around: _Places


def kind_of(before: str, after: str, declared: EditKind | Literal[""] = "") -> EditKind:
    """Return the kind of an edit: the kind that its fix declares, or a worse kind that the code shows.

    declared: Empty for an edit without a rule. If the old text is not Python, only the declared kind is known.
    """
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return declared or "restructures"
    if has_same_words(before, after):
        return declared or "restructures"
    changes = list(_changes(old, new, ()))
    kinds = [declared or "restructures", *_kinds(changes, declared)]
    return max(kinds, key=_ORDER.__getitem__)


def may_be_a_fix(kind: EditKind) -> bool:
    """Return whether an edit of that kind keeps what the author meant."""
    return not _ORDER[kind]


def worse(one: EditKind, other: EditKind) -> EditKind:
    """Return the kind that changes the meaning more."""
    return max(one, other, key=_ORDER.__getitem__)


def is_misspelling(wrong: str, right: str) -> bool:
    """Return whether a name is a misspelling of the other: a few letters, or the marks between words, differ.

    One more or one fewer word makes another name (`mean_price` is not `price`), and so does another number.
    """
    if _folded(wrong) == _folded(right):
        return True
    if re.sub(r"\D", "", wrong) != re.sub(r"\D", "", right):
        return False
    ours, theirs = _words(wrong), _words(right)
    if len(ours) == len(theirs):
        return all(map(_is_near, ours, theirs))
    common = Counter(ours) & Counter(theirs)
    return not common and _is_near(_folded(wrong), _folded(right))


def has_same_words(before: str, after: str) -> bool:
    """Return whether two texts differ only in brackets, capitals and marks inside names.

    The author wrote what such an edit does to the data: `fill_na` fills in, and `map[codes]` maps.
    """
    return _letters(before) == _letters(after)


def only_renames_attributes(before: str, after: str) -> bool:
    """Return whether two texts differ only in the names of attributes and methods."""
    try:
        changes = list(_changes(ast.parse(before), ast.parse(after), ()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(isinstance(change.old, ast.Attribute) and _renamed(change) is not None for change in changes)


def _letters(text: str) -> str:
    return re.sub(r"[\s()\[\]_]+", "", text).casefold()


def _is_near(one: str, other: str) -> bool:
    """Return whether two words differ by no more than their length allows."""
    from rapidfuzz.distance import OSA  # a card is drawn without it

    length = max(len(one), len(other))
    allowed = 0 if length < 3 else 1 if length < 6 else 2
    if OSA.distance(one, other) > allowed:
        return False
    # Few mistype the first letter, and many words differ there: `weight` and `height`.
    begins = one[:1] == other[:1] or one[:2] == other[1::-1]
    return begins or (length > 3 and (one[1:] == other or one == other[1:]))


def _folded(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _words(name: str) -> list[str]:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in re.split(r"[\W_]+", parted.casefold()) if word]


def _kinds(changes: Sequence[_Change], declared: EditKind | Literal[""]) -> Iterator[EditKind]:
    """Yield the kinds that the changes show."""
    changes = [change for change in changes if not _is_accumulating(change)]
    stays = {ast.dump(part) for change in changes if change.new is not None for part in ast.walk(change.new)}
    old = Counter(_features([change.old for change in changes]))
    new = Counter(_features([change.new for change in changes]))
    parts = (part for change in changes if change.old is not None for part in ast.walk(change.old))
    named = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    for kind, text in new - old:
        if kind == "assumes" and text in named:
            continue  # it was only not called
        if declared != "converts" or not text.startswith("dayfirst"):  # the data decides
            yield kind
    for change in changes:
        moved = change.new is None and _value_of(change.old) in stays
        if not moved:
            yield from _of_change(change, declared)


def _value_of(node: ast.AST | None) -> str:
    return "" if node is None else ast.dump(node.value if isinstance(node, ast.keyword) else node)


def _of_change(change: _Change, declared: EditKind | Literal[""]) -> Iterator[EditKind]:
    match change.old, change.new:
        case ast.stmt() as gone, None:
            if not isinstance(gone, ast.Import | ast.ImportFrom | ast.Pass | ast.Delete | ast.Global):
                yield "discards"
        case ast.Name(ctx=ast.Store()), None:
            return  # a name that is given no value
        case ((ast.keyword() | ast.expr()), None) if declared not in ("migrates", "restores"):
            yield "discards"
        case None, (ast.Continue() | ast.Break() | ast.Raise()):
            yield "discards"
        case None, ast.Assign(
            value=ast.Constant() | ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Tuple(elts=[])
        ):
            yield "invents"
        case None, ast.Constant() if isinstance(change.around[-1], ast.Call):
            if called_name(change.around[-1]) in _WITH_DEFAULT:
                yield "invents"
        case ast.Constant(value=bool() | None), ast.Constant():
            yield "assumes"
        case ast.Constant(value=int() | float()), ast.Constant(value=int() | float()):
            if not _is_place(change.around):
                yield "invents"
        case ast.operator(), ast.Div() if _is_absolute(change.around[-1]):
            yield "discards"  # what stands before an absolute path is dropped
        case (ast.cmpop(), ast.cmpop()) | (ast.operator(), ast.operator()) | (ast.boolop(), ast.boolop()):
            if not declared:
                yield "assumes"
        case _:
            names = _renamed(change)
            if names is not None and declared in ("", "renames") and not is_misspelling(*names):
                yield "assumes"


def _is_absolute(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(right=ast.Constant(value=str(text))):
            return text.startswith("/")
    return False


def _renamed(change: _Change) -> tuple[str, str] | None:
    """Return the two names if a change replaces one by another."""
    match change.old, change.new:
        case ast.Name(id=wrong), ast.Name(id=right):
            return wrong, right
        case ast.Attribute(attr=wrong), ast.Attribute(attr=right):
            return wrong, right
        case ast.Constant(value=str(wrong)), ast.Constant(value=str(right)):
            return wrong, right
        case ast.keyword(arg=str(wrong)), ast.keyword(arg=str(right)):
            return wrong, right
        case ast.alias(name=wrong), ast.alias(name=right):
            return wrong, right
    return None


def _is_place(around: _Places) -> bool:
    """Return whether a number is an index, an amount or an axis."""
    for node in reversed(around):
        match node:
            case ast.Subscript() | ast.Slice():
                return True
            case ast.keyword(arg=name):
                return name in _PLACING_ARGUMENTS
            case ast.Call():
                return called_name(node) in _PLACING_CALLS
            case ast.Dict() | ast.List() | ast.stmt():
                return False
    return False


def _features(nodes: Sequence[ast.AST | None]) -> Iterator[tuple[EditKind, str]]:
    """Yield the parts of the nodes that make the kind of an edit worse, with their texts."""
    for node in (part for root in nodes if root is not None for part in ast.walk(root)):
        match node:
            case ast.Call():
                yield from _of_call(node)
            case ast.keyword(arg=str(name), value=value):
                yield from _of_keyword(name, value)
            case ast.ExceptHandler():
                yield "discards", "except"
            case ast.BoolOp(op=ast.Or(), values=[*_, ast.Constant(value=value)]):
                yield "invents", repr(value)
            case ast.IfExp(body=ast.Constant()) | ast.IfExp(orelse=ast.Constant()):
                yield "invents", ast.unparse(node)
            case ast.Attribute(attr="T"):
                yield "assumes", ".T"
            case ast.Subscript(value=ast.Attribute(attr="iloc" | "iat"), slice=ast.Constant()):
                yield "assumes", "iloc"


def _of_call(call: ast.Call) -> Iterator[tuple[EditKind, str]]:
    name = called_name(call) or ""
    if name in _DISCARDING_CALLS:
        yield "discards", name
    if name in _INVENTING_CALLS:
        yield "invents", name
    if name in _ASSUMING_CALLS and not isinstance(call.func, ast.Name):
        yield "assumes", name
    place = _WITH_DEFAULT.get(name)
    if place is not None and len(call.args) > place and isinstance(call.args[place], ast.Constant):
        yield "invents", f"{name} {ast.unparse(call.args[place])}"
    elif name == "get" and len(call.args) == 1 and not call.keywords:
        yield "invents", "get None"


def _of_keyword(name: str, value: ast.expr) -> Iterator[tuple[EditKind, str]]:
    written = ast.unparse(value)
    if written in _DISCARDING_ARGUMENTS.get(name, ()):
        yield "discards", f"{name}={written}"
    elif name in _INVENTING_ARGUMENTS and isinstance(value, ast.Constant):
        yield "invents", f"{name}={written}"
    elif name in _ASSUMING_ARGUMENTS or (name, written) == ("format", "'mixed'"):
        yield "assumes", f"{name}={written}"


def _changes(old: ast.AST, new: ast.AST, around: _Places) -> Iterator[_Change]:
    """Yield the smallest parts in which two trees differ."""
    if type(old) is not type(new) or _is_around(new, old) or _is_around(old, new):
        yield _Change(old, new, around)
        return
    inside = (*around, new)
    for field in old._fields:
        old_value, new_value = getattr(old, field, None), getattr(new, field, None)
        if isinstance(old_value, list) and isinstance(new_value, list):
            yield from _of_lists(old_value, new_value, inside)
        elif isinstance(old_value, ast.AST) and isinstance(new_value, ast.AST):
            yield from _changes(old_value, new_value, inside)
        elif old_value != new_value and field not in ("kind", "type_comment", "ctx"):
            if isinstance(old_value, ast.AST) or isinstance(new_value, ast.AST):
                yield _Change(old_value, new_value, inside)  # a value that was put in or taken out
            else:
                yield _Change(old, new, around)


def _is_around(outer: ast.AST, inner: ast.AST) -> bool:
    """Return whether one expression contains the other unchanged."""
    if not isinstance(outer, ast.expr) or not isinstance(inner, ast.expr):
        return False
    text = ast.dump(inner)
    return any(ast.dump(part) == text for part in ast.walk(outer) if part is not outer)


def _of_lists(old: list[ast.AST], new: list[ast.AST], around: _Places) -> Iterator[_Change]:
    def texts(nodes: list[ast.AST]) -> list[str]:
        return [ast.dump(node) if isinstance(node, ast.AST) else repr(node) for node in nodes]

    for tag, a, b, c, d in SequenceMatcher(None, texts(old), texts(new), autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        yield from _of_block(old[a:b], new[c:d], around)


def _of_block(old: list[ast.AST], new: list[ast.AST], around: _Places) -> Iterator[_Change]:
    """Yield the differences of two blocks that have nothing in common: their nodes are paired by their types."""
    if len(old) == len(new):
        pairs: list[tuple[str, int, int, int, int]] = [("equal", 0, len(old), 0, len(new))]
    else:
        types = [[type(node).__name__ for node in block] for block in (old, new)]
        pairs = [*SequenceMatcher(None, types[0], types[1], autojunk=False).get_opcodes()]
    for tag, a, b, c, d in pairs:
        both = min(b - a, d - c) if tag in ("equal", "replace") else 0
        for old_node, new_node in zip(old[a : a + both], new[c : c + both], strict=True):
            if isinstance(old_node, ast.AST) and isinstance(new_node, ast.AST):
                yield from _changes(old_node, new_node, around)
        yield from (
            _Change(removed, None, around) for removed in old[a + both : b] if isinstance(removed, ast.AST)
        )
        yield from (_Change(None, added, around) for added in new[c + both : d] if isinstance(added, ast.AST))


#: What an operator leaves as it is.
_NEUTRAL: dict[type[ast.operator], frozenset[str]] = {
    ast.Add: frozenset(("0", "0.0", "''", "[]", "()")),
    ast.Sub: frozenset(("0", "0.0")),
    ast.Mult: frozenset(("1", "1.0")),
    ast.BitOr: frozenset(("set()", "{}", "0")),
}


def _is_accumulating(change: _Change) -> bool:
    """Return whether a change only adds a neutral start value for a variable that a loop adds to."""
    match change.old, change.new:
        case (
            ast.AugAssign(target=ast.Subscript(slice=key), op=op),
            ast.Assign(value=ast.BinOp(left=ast.Call(args=[_, start]) as call, op=other)),
        ):
            is_counting = (
                type(op) is type(other) and called_name(call) == "get" and not isinstance(key, ast.Constant)
            )
            return is_counting and ast.unparse(start) in _NEUTRAL.get(type(op), ())
        case None, ast.Assign(targets=[ast.Name(id=name)], value=start):
            return any(_collects(part, name, ast.unparse(start)) for part in _loops(change.around[0]))
    return False


def _loops(tree: ast.AST) -> Iterator[ast.AST]:
    for loop in ast.walk(tree):
        if isinstance(loop, ast.For | ast.AsyncFor | ast.While):
            yield from ast.walk(loop)


def _collects(node: ast.AST, name: str, start: str) -> bool:
    """Return whether a loop adds to a variable that starts with that value."""
    match node:
        case ast.AugAssign(target=ast.Name(id=added), op=op):
            return added == name and start in _NEUTRAL.get(type(op), ())
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=added), attr="append" | "extend" | "add" | "update")
        ):
            return added == name and start in ("[]", "set()", "{}")
        case ast.Subscript(value=ast.Name(id=added), ctx=ast.Store()):
            return added == name and start == "{}"
    return False
