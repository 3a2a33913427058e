"""Scene of a failure: its line, its values, its frames.

Nothing here runs code of the user's objects. Values come from frames, from dicts and sequences of Python's own types,
and from pandas' and numpy's own classes, never from derived classes. Labels are shown as Python writes them, so a space
at the end is visible, and text differs from a number.
"""

from __future__ import annotations

import ast
import datetime
import difflib
import itertools
import linecache
import operator
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from types import FrameType, TracebackType
from typing import Any, TypeGuard, TypeVar

from healkit.core.wire.encoding import int_text
from healkit.errors import near_misses

N = TypeVar("N", bound=ast.AST)
_SOURCE_MAX_CHARS = 300_000
_TEXT_MAX_CHARS = 60
#: Operators that are applied to numbers of Python's own types.
_SUMS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
}  # fmt: skip
_NUMBER_MAX = 1e15
#: What was observed: texts by name.
Facts = dict[str, str]
#: Returned for an expression whose value cannot be read without running code.
UNREAD: object = object()


class Scene:
    """Exception, innermost frame of the user's own code, and the frames below it.

    entry: The traceback entry of that frame; the entries after it are frames of libraries.
    warned: Keys of `__warningregistry__`, as the cells above left them.
    """

    def __init__(self, error: BaseException, entry: TracebackType, warned: Iterable[Any] = ()) -> None:
        self.error, self.warned = error, warned
        self.frame = entry.tb_frame
        self._entry = entry

    @cached_property
    def frames(self) -> list[FrameType]:
        """Frames of libraries below the user's own, outermost first."""
        inner_frames: list[FrameType] = []
        traceback = self._entry.tb_next
        while traceback is not None and len(inner_frames) < 200:
            inner_frames.append(traceback.tb_frame)
            traceback = traceback.tb_next
        return inner_frames

    def library_locals(self, package: str) -> Iterator[dict[str, Any]]:
        """Yield the local variables of that library's frames, innermost first."""
        for frame in reversed(self.frames):
            module = frame.f_globals.get("__name__")
            if type(module) is str and module.partition(".")[0] == package:
                yield dict(frame.f_locals)

    def local(self, package: str, *names: str, accept: Callable[[Any], bool]) -> Any:
        """Return the first accepted local variable of these names, innermost frame first; otherwise UNREAD."""
        for frame_locals in self.library_locals(package):
            for name in names:
                if name in frame_locals and accept(frame_locals[name]):
                    return frame_locals[name]
        return UNREAD

    @cached_property
    def _tree(self) -> ast.Module | None:
        lines = linecache.getlines(self.frame.f_code.co_filename, self.frame.f_globals)
        self._lines = lines
        if sum(map(len, lines)) > _SOURCE_MAX_CHARS:
            return None
        try:
            return ast.parse("".join(lines))
        except (SyntaxError, ValueError, RecursionError):
            return None

    @cached_property
    def node(self) -> ast.AST | None:
        """Expression that failed, as Python marks it in the traceback."""
        positions = list(self.frame.f_code.co_positions())[self._entry.tb_lasti // 2]
        if self._tree is None or None in positions:
            return None
        line, end_line, start, end = positions
        for node in ast.walk(self._tree):
            place = [
                getattr(node, name, None) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset")
            ]
            if place == [line, end_line, start, end] and not isinstance(node, ast.Expr):
                return node
        return None

    @cached_property
    def statement(self) -> ast.stmt | None:
        """Innermost statement around the failing line."""
        line = self._entry.tb_lineno
        around = (
            node
            for node in ast.walk(self._tree or ast.Module([], []))
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
        )
        return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)

    def all(self, kind: type[N]) -> Iterator[N]:
        """Yield every node of that kind in the code of the failing frame."""
        yield from (node for node in ast.walk(self._tree or ast.Module([], [])) if isinstance(node, kind))

    def assigned(self, name: str) -> Iterator[ast.Assign]:
        """Yield the plain assignments to that name."""
        for assignment in self.all(ast.Assign):
            if any(isinstance(target, ast.Name) and target.id == name for target in assignment.targets):
                yield assignment

    def around(self, inner: ast.AST | None) -> Iterator[ast.AST]:
        """Yield the nodes around a node of the code, the innermost first."""
        parents = {
            child: node
            for node in ast.walk(self._tree or ast.Module([], []))
            for child in ast.iter_child_nodes(node)
        }
        while inner is not None and (inner := parents.get(inner)) is not None:
            yield inner

    def expressions(self) -> Iterator[ast.expr]:
        """Yield the expressions of the failing statement, those of the failing part first."""
        for root in (self.node, self.statement):
            if root is not None:
                yield from (node for node in ast.walk(root) if isinstance(node, ast.expr))

    def text(self, node: ast.AST) -> str:
        """Return an expression as the user wrote it, in backquotes; empty where it is long or has backquotes."""
        text = " ".join(ast.unparse(node).split()) if node is not None else ""
        segment = ast.get_source_segment("".join(self._lines), node) if self._tree is not None else None
        text = " ".join((segment or text).split())
        return f"`{text}`" if 0 < len(text) <= _TEXT_MAX_CHARS and "`" not in text else ""

    def value(self, node: ast.AST | None, depth: int = 0) -> Any:
        """Return an expression's value where reading it runs no foreign code; else UNREAD."""
        if depth > 6:
            return UNREAD
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.frame.f_locals.get(name, self.frame.f_globals.get(name, UNREAD))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Subscript(value=base, slice=key):
                return _item(self.value(base, depth + 1), self.value(key, depth + 1))
            case ast.Attribute(value=base, attr=name):
                return _attribute(self.value(base, depth + 1), name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SUMS:
                sides = self.value(left, depth + 1), self.value(right, depth + 1)
                if all(type(side) in {int, float} and abs(side) < _NUMBER_MAX for side in sides):
                    return _SUMS[type(op)](*sides)
            case ast.Call(func=ast.Name(id="len"), args=[given], keywords=[]):
                owner = self.value(given, depth + 1)
                is_own = self.frame.f_locals.get("len", self.frame.f_globals.get("len", len)) is len
                return len(owner) if is_own and type(owner) in {list, tuple, dict, set, str} else UNREAD
            case ast.List(elts=items) | ast.Tuple(elts=items):
                values = [self.value(item, depth + 1) for item in items]
                if any(value is UNREAD for value in values):
                    return UNREAD
                return values if isinstance(node, ast.List) else tuple(values)
        return UNREAD

    def name_of(self, value: object) -> str:
        """Return what the user calls an object, in backquotes; empty if it has no name.

        A column that was read from a table counts as the same object, although each reading makes a new one.
        """
        for node in self.expressions():
            if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
                candidate = self.value(node)
                if candidate is value or _same_column(candidate, value):
                    return self.text(node)
        for scope in (self.frame.f_locals, self.frame.f_globals):
            for name, candidate in list(scope.items()):
                if candidate is value and name.isidentifier() and not name.startswith("_"):
                    return f"`{name}`"
        return ""


def called(node: ast.Call) -> str:
    """Return the name of what is called, without what stands before its dot."""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def complete(facts: Facts) -> Facts | None:
    """Return the facts if each has a text; a sentence needs all its placeholders."""
    return facts if all(facts.values()) else None


def is_kind(value: object, package: str, *names: str) -> TypeGuard[Any]:
    """Return whether a value is of exactly that class of a library that is loaded."""
    module = sys.modules.get(package)
    return module is not None and any(type(value) is getattr(module, name, None) for name in names)


def is_frame(value: object) -> TypeGuard[Any]:
    """Return whether a value is a DataFrame of pandas' own that is complete: one in the making has no columns yet."""
    return is_kind(value, "pandas", "DataFrame") and "_mgr" in own_dict(value)


def is_series(value: object) -> TypeGuard[Any]:
    """Return whether a value is a Series of pandas' own that is complete."""
    return is_kind(value, "pandas", "Series") and "_mgr" in own_dict(value)


def is_column_or_frame(value: object) -> TypeGuard[Any]:
    """Return whether a value is a DataFrame or a Series of pandas' own."""
    return is_frame(value) or is_series(value)


def has_shape(value: object) -> TypeGuard[Any]:
    """Return whether a value is an array, a DataFrame or a Series."""
    return is_array(value) or is_frame(value) or is_series(value)


def is_text(value: object) -> TypeGuard[str]:
    """Return whether a value is a text of Python's own type."""
    return type(value) is str


def is_index(value: object) -> TypeGuard[Any]:
    """Return whether a value is an index of pandas' own, with one level."""
    pandas = sys.modules.get("pandas")
    if pandas is None or type(value) is getattr(pandas, "MultiIndex", None):
        return False
    return issubclass(type(value), pandas.Index) and of_package(value, "pandas")


def of_package(value: object, package: str) -> bool:
    """Return whether a value's class is one of that package's own."""
    module = type.__dict__["__module__"].__get__(type(value))
    return type(module) is str and module.partition(".")[0] == package


def is_array(value: object) -> TypeGuard[Any]:
    """Return whether a value is an array of numpy's own class."""
    return is_kind(value, "numpy", "ndarray")


def own_dict(value: object) -> dict[str, Any]:
    """Return a value of an object's `__dict__`, without running code of the object."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return attributes if type(attributes) is dict else {}


def _item(owner: Any, key: object) -> Any:
    if owner is UNREAD or key is UNREAD:
        return UNREAD
    if (
        issubclass(type(owner), dict)
        and type.__getattribute__(type(owner), "__getitem__") is dict.__getitem__
        and type(key) in {str, int}
    ):
        return dict.get(owner, key, UNREAD)
    if type(owner) in {list, tuple} and type(key) is int:
        return owner[key] if -len(owner) <= key < len(owner) else UNREAD
    if is_frame(owner) and type(key) is str and owner.columns.is_unique and key in owner.columns:
        return owner[key]
    if is_kind(owner, "polars", "DataFrame") and type(key) is str and key in owner.columns:
        return owner[key]
    if (
        is_frame(owner)
        and type(key) is list
        and all(type(label) is str and label in owner.columns for label in key)
    ):
        return owner[key]
    return UNREAD


def _attribute(owner: object, name: str) -> Any:
    if is_frame(owner) and name in owner.columns and owner.columns.is_unique:
        return owner[name]
    if has_shape(owner) and name in {"T", "shape", "index", "columns", "values"}:
        return getattr(owner, name, UNREAD)
    return own_dict(owner).get(name, UNREAD) if owner is not UNREAD else UNREAD


def _same_column(found: object, value: object) -> bool:
    if is_frame(found) and is_frame(value):
        return bool(found.shape == value.shape and found.columns.tolist() == value.columns.tolist())
    if not (is_series(found) and is_series(value)):
        return False
    same = type(found.name) is str and found.name == value.name and len(found) == len(value)
    return bool(same and found.dtype == value.dtype)


# Labels and values as sentences show them


LISTED_MAX = 8
#: Texts that may be a token, a person's number or an address: never suggested as names.
PRIVATE = re.compile(r"@|\d{6}|(?=\w*\d)(?=\w*[A-Za-z])[\w-]{12,}")
_LABEL_MAX_CHARS = 60
_CANDIDATES_MAX = 2000
_PLAIN = (str, int, float, bool, type(None), datetime.datetime, datetime.date)


def plain(value: object) -> Any:
    """Return a numpy number as Python's own; any other value as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic) and type(value).__module__ == "numpy":
        return value.item()
    return value


def quoted(value: object) -> str:
    """Return a label or a value in backquotes; empty where it is long, private or of a foreign type."""
    value = plain(value)
    if type(value).__name__ == "Timestamp" and type(value).__module__.startswith("pandas"):
        return f"`{value}`"
    if type(value) is tuple and value and all(quoted(member) for member in value[:6]) and len(value) <= 6:
        inner = ", ".join(quoted(part).strip("`") for part in value)
        return f"`({inner},)`" if len(value) == 1 else f"`({inner})`"
    if type(value) not in _PLAIN:
        return ""
    text = int_text(value) if type(value) is int else repr(value)
    if len(text) > _LABEL_MAX_CHARS or "`" in text or (type(value) is str and PRIVATE.search(value)):
        return ""
    return f"`{text}`"


def labels_text(values: Iterable[Any], count: int) -> str:
    """List the first of `count` labels: `'a'`, `'b'` and 3 more; empty where none can be shown."""
    texts = [text for text in map(quoted, itertools.islice(values, LISTED_MAX)) if text]
    more = count - len(texts)
    if not texts:
        return ""
    return ", ".join(texts) + (f" and {more:,} more" if more else "")


def spoken(names: list[str]) -> str:
    """Join texts as a sentence does: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def label_difference(wanted: object, found: object) -> str:
    """Say how a label that looks the same differs from the wanted one; empty for another name."""
    wanted, found = plain(wanted), plain(found)
    if type(wanted) is not type(found):
        if (
            type(wanted) in {str, int, float}
            and type(found) in {str, int, float}
            and str(wanted) == str(found)
        ):
            kinds: dict[type, str] = {str: "text", int: "a number", float: "a number"}
            return f"which is {kinds[type(found)]}; {quoted(wanted)} is {kinds[type(wanted)]}"
        return ""
    if not (is_text(wanted) and is_text(found)) or wanted == found:
        return ""
    if wanted == found.strip():
        ends = [
            name
            for name, changed in (("beginning", found.lstrip()), ("end", found.rstrip()))
            if changed != found
        ]
        return f"with white space at its {' and '.join(ends)}"
    if wanted.strip() == found.strip():
        return "with different white space"
    if wanted.casefold() == found.casefold():
        return "with other capitals"
    if wanted.casefold().strip() == found.casefold().strip():
        return "with other capitals, and white space at an end"
    if _letters(wanted) == _letters(found):
        return _OTHER_MARKS
    return ""


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).casefold()


#: How labels differ that have the same letters; there is nothing to say of that but the label itself.
_OTHER_MARKS = "with other marks between its letters"


def near_label(near: tuple[Any, str]) -> Facts:
    """Return the result of `nearest` as facts of a sentence: `found` and `how` it differs, or `meant` alone."""
    label, alone = quoted(near[0]), near[1] == _OTHER_MARKS
    return {"found": label, "how": "" if alone else near[1], "meant": label if alone else ""}


def nearest(wanted: object, known: Iterable[Any]) -> tuple[Any, str] | None:
    """Return the label that was most likely meant, and how it differs; None where none is similar."""
    wanted, candidates = plain(wanted), list(itertools.islice(known, _CANDIDATES_MAX))
    for candidate in candidates:
        if quoted(candidate) and (reason := label_difference(wanted, candidate)):
            return plain(candidate), reason
    if not is_text(wanted):
        return None
    texts = [text for text in candidates if type(text) is str and quoted(text)]
    near = near_misses(wanted, texts, 1)
    if near and similar(wanted, near[0]):
        return near[0], "another spelling"
    return None


def similar(wanted: str, found: str, least: float = 0.7) -> bool:
    """Return whether two names are so similar that one may be a misspelling of the other."""
    return closeness(wanted, found) >= least


def closeness(wanted: str, found: object) -> float:
    """Return how similar a name is to another: 1 for the same up to capitals, 0 for no letter in common."""
    return difflib.SequenceMatcher(None, wanted.casefold(), str(found).casefold()).ratio()


def near_files(wanted: str, names: Iterable[str]) -> list[str]:
    """Return names of files that may be the missing one, most similar first; the extension alone does not count.

    Either the name without the extension is nearly the same, or it is the only file with that extension and the same
    words.
    """
    parts = {name: os.path.splitext(name.casefold()) for name in (*names, wanted)}
    stem, ending = parts.pop(wanted)
    kin = {name: base_name for name, (base_name, kind) in parts.items() if kind == ending}
    same = {
        name for name, base_name in kin.items() if re.findall(r"\d+", stem) == re.findall(r"\d+", base_name)
    }
    near = {name for name in same if stem[:1] == kin[name][:1] and similar(stem, kin[name], 0.75)}
    near |= {name for name, (base_name, kind) in parts.items() if base_name == stem and kind}
    if near or len(kin) != 1:
        return [name for name in near_misses(wanted, parts, len(parts) or 1) if name in near][:3]
    ours, theirs = (set(re.findall(r"[^\W_]+", text)) for text in (stem, *kin.values()))
    return [*kin] if ours and theirs and (ours <= theirs or theirs <= ours) else []
