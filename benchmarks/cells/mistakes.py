"""Mistakes that programs plant in working cells.

`KINDS` has them by name. Each is a function that yields the plants of a working notebook: the notebook with one mistake
in it, and what stood there. Where a plant does not fail when it is run, it is no mistake and is left out; so a kind may
be generous. What a cell gave without the mistake is the right result of its repair, except where a plant has a
`reference` of its own, or is `lost`: what is right cannot be known from what is left, and any fix is an invention.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import hashlib
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

WORKING = Path(__file__).parent / "working"
Cells = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Working:
    """Notebook whose cells run. turns: the cells as they are run, by their places; all of them, from the top."""

    name: str
    library: str
    cells: Cells
    files: Mapping[str, str]

    @property
    def text(self) -> str:
        return "\n".join(self.cells)


@dataclasses.dataclass(frozen=True)
class Plant:
    """Working notebook with a mistake.

    cells: as they stand in it; turns: the places of those that are run, in order. place: of the cell with the mistake.
    wrong: what stands there; right: what stood there, each as short as it can be said. reference: cells whose result is
    right too, where that is not only the working notebook's. lost: there is no right fix.
    """

    kind: str
    of: Working
    cells: Cells
    turns: tuple[int, ...]
    files: Mapping[str, str]
    place: int
    wrong: str
    right: str
    reference: Cells | None = None
    lost: bool = False

    @property
    def name(self) -> str:
        mark = hashlib.sha256(repr((self.cells, self.turns, sorted(self.files.items()))).encode()).hexdigest()
        return f"{self.kind}/{self.of.name}/{mark[:8]}"


@dataclasses.dataclass(frozen=True)
class Kind:
    """Kind of mistakes. plants: yields them. says: patterns, one of which a card that names the cause matches."""

    name: str
    plants: Callable[[Working, random.Random], Iterator[Plant]]
    says: tuple[str, ...]


KINDS: dict[str, Kind] = {}
Plants = Iterator[Plant]


def kind(*says: str) -> Callable[[Callable[[Working, random.Random], Plants]], None]:
    """Add a kind. says: patterns of what a card says of it; `{right}` and `{wrong}` stand for the plant's own."""

    def add(plants: Callable[[Working, random.Random], Plants]) -> None:
        KINDS[plants.__name__] = Kind(plants.__name__, plants, says)

    return add


def half(name: str) -> str:
    """Return the half that a notebook or a kind belongs to: `written` (rows may be written against it) or `measured`."""
    return ("written", "measured")[hashlib.sha256(f"half {name}".encode()).digest()[0] & 1]


def working() -> list[Working]:
    """Read the working notebooks."""
    found = []
    for path in sorted(WORKING.glob("*.py")):
        parts = re.split(r"(?m)^# === (\w+): (\w+)\n", path.read_text(encoding="utf-8"))
        for name, library, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            titled = re.split(r"(?m)^# %%(.*)\n", text)
            blocks = [
                (title.strip(), body.strip("\n"))
                for title, body in zip(titled[1::2], titled[2::2], strict=True)
            ]
            files = {title: ast.literal_eval(body).lstrip("\n") for title, body in blocks if title}
            found.append(Working(name, library, tuple(body for title, body in blocks if not title), files))
    assert len({one.name for one in found}) == len(found)
    return found


# What the kinds are written with


def plant(
    of: Working,
    place: int,
    text: str | Cells,
    wrong: str,
    right: str,
    *,
    turns: Sequence[int] | None = None,
    files: Mapping[str, str] | None = None,
    reference: Cells | None = None,
    lost: bool = False,
) -> Plant:
    """Return a plant. text: the new text of the cell in that place, or all cells."""
    cells = text if isinstance(text, tuple) else (*of.cells[:place], text, *of.cells[place + 1 :])
    turns = tuple(range(len(cells)) if turns is None else turns)
    return Plant(
        "", of, cells, turns, of.files if files is None else files, place, wrong, right, reference, lost
    )


def nodes(of: Working, *types: type) -> Iterator[tuple[int, Any]]:
    """Yield the nodes of those types, with the places of their cells."""
    for place, text in enumerate(of.cells):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, types):
                yield place, node


def span(text: str, node: ast.AST) -> tuple[int, int]:
    """Return where a node stands in a text."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line.encode()) + 1)
    first, last = (
        starts[line - 1] + column
        for line, column in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))  # type: ignore[attr-defined]
    )
    data = text.encode()
    return len(data[:first].decode()), len(data[:last].decode())


def source(of: Working, place: int, node: ast.AST) -> str:
    first, last = span(of.cells[place], node)
    return of.cells[place][first:last]


def put(of: Working, place: int, node: ast.AST, new: str) -> str:
    """Return the text of a cell with other text in the place of a node."""
    first, last = span(of.cells[place], node)
    return of.cells[place][:first] + new + of.cells[place][last:]


def typo(word: str, chance: random.Random) -> str:
    """Misspell a word as a hand does: two letters swapped, one left out, one twice, one beside it."""
    letters = [i for i in range(1, len(word)) if word[i].isalpha()]
    if not letters:
        return word + "s"
    i = chance.choice(letters)
    ways = [
        word[:i] + word[i + 1 :],
        word[:i] + word[i] + word[i:],
        word[:i] + chance.choice("aeionrst") + word[i + 1 :],
    ]
    if i + 1 < len(word):
        ways += 2 * [word[:i] + word[i + 1] + word[i] + word[i + 2 :]]
    ways = [way for way in ways if way != word and len(way) > 1] or [word + word[-1]]
    return chance.choice(ways)


def renamed(text: str, old: str, new: str) -> str:
    """Rename a name in a cell, wherever it is read or bound."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) and node.id == old]
    for node in sorted(found, key=lambda node: span(text, node), reverse=True):
        first, last = span(text, node)
        text = text[:first] + new + text[last:]
    return text


def bound_in(text: str) -> list[str]:
    """List the names that a cell assigns at its top level, or defines."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            found += [
                n.id
                for t in node.targets
                for n in ast.walk(t)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            ]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(node.name)
    return list(dict.fromkeys(found))


def reads(text: str, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(ast.parse(text))
    )


def is_table(of: Working) -> bool:
    return of.library in ("pandas", "polars", "sklearn", "matplotlib", "seaborn")


_COLUMN_ARGS = (
    "by",
    "on",
    "left_on",
    "right_on",
    "columns",
    "index",
    "values",
    "subset",
    "id_vars",
    "value_vars",
    "x",
    "y",
)
_COLUMN_CALLS = (
    "groupby",
    "sort_values",
    "merge",
    "set_index",
    "group_by",
    "sort",
    "col",
    "drop",
    "pivot_table",
    "pivot",
)


def columns(of: Working) -> Iterator[tuple[int, ast.Constant]]:
    """Yield texts that name a column or a key where it is read."""
    for place, node in nodes(of, ast.Subscript, ast.Call):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            told: list[ast.AST] = [node.slice]
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            told = [k.value for k in node.keywords if k.arg in _COLUMN_ARGS] if called != "DataFrame" else []
            told += node.args[:1] if called in _COLUMN_CALLS else []
        else:
            continue
        for one in told:
            parts = one.elts if isinstance(one, ast.List | ast.Tuple) else [one]
            yield from (
                (place, part)
                for part in parts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def quoted(text: str) -> str:
    return f'"{text}"'


# Names


@kind("{right}")
def name_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Name):
        if isinstance(node.ctx, ast.Load) and len(node.id) > 2:
            wrong = typo(node.id, chance)
            yield plant(of, place, put(of, place, node, wrong), wrong, node.id)


@kind("{right}")
def name_case(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Name):
        if isinstance(node.ctx, ast.Load) and len(node.id) > 2:
            wrong = node.id.capitalize() if node.id.islower() else node.id.lower()
            yield plant(of, place, put(of, place, node, wrong), wrong, node.id)


@kind("{right}")
def name_stale(of: Working, chance: random.Random) -> Plants:
    """A name is another one where it is made, and the cells below still have the old one."""
    others = ("data", "frame", "values_2", "temp", "my_{}", "{}_new", "{}_clean")
    for place, text in enumerate(of.cells[:-1]):
        for name in bound_in(text):
            if any(reads(later, name) for later in of.cells[place + 1 :]):
                new = chance.choice(others).format(name)
                yield plant(of, place, renamed(text, name, new), name, new)


@kind("{right}")
def name_misspelt_where_made(of: Working, chance: random.Random) -> Plants:
    for place, text in enumerate(of.cells[:-1]):
        for name in bound_in(text):
            if len(name) > 3 and any(reads(later, name) for later in of.cells[place + 1 :]):
                wrong = typo(name, chance)
                yield plant(of, place, renamed(text, name, wrong), name, wrong)


@kind("{right}", r"\bimport\b")
def missing_import(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Import, ast.ImportFrom):
        alias = node.names[0]
        if len(node.names) == 1 and node.col_offset == 0:
            lines = of.cells[place].split("\n")
            del lines[node.lineno - 1]
            yield plant(
                of,
                place,
                "\n".join(lines).strip("\n") or "pass",
                alias.asname or alias.name,
                source(of, place, node),
            )


@kind("{right}", r"no module named")
def module_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Import, ast.ImportFrom):
        name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        wrong = typo(name, chance)
        line = source(of, place, node)
        yield plant(of, place, put(of, place, node, line.replace(name, wrong, 1)), wrong, name)


@kind("{right}")
def imported_name_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.ImportFrom):
        name = chance.choice(node.names).name
        wrong = typo(name, chance)
        line = re.sub(
            rf"\b{name}\b(?!.*\b{name}\b)",
            wrong if f"as {name}" in source(of, place, node) else f"{wrong} as {name}",
            source(of, place, node),
        )
        yield plant(of, place, put(of, place, node, line), wrong, name)


@kind(
    "shadow", r"{wrong}.{{0,60}}(is (now )?an?|assigned|overwr|redefin|defined|rebound|hides)", r"del {wrong}"
)
def shadowed_builtin(of: Working, chance: random.Random) -> Plants:
    """A variable of an earlier cell has the name of a builtin that a later cell calls."""
    for place, node in nodes(of, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in vars(builtins) and name != "print":
            for earlier in range(place):
                for variable in bound_in(of.cells[earlier]):
                    if (
                        f"{name}(" not in of.cells[earlier]
                        and f"def {variable}" not in of.text
                        and f"class {variable}" not in of.text
                    ):
                        cells = tuple(
                            renamed(text, variable, name) if i >= earlier else text
                            for i, text in enumerate(of.cells)
                        )
                        yield plant(of, earlier, cells, name, variable)


@kind(
    "shadow",
    r"{wrong}.{{0,60}}(is (now )?an?|assigned|overwr|redefin|rebound|hides|no longer)",
    r"import .*{wrong}",
)
def shadowed_module(of: Working, chance: random.Random) -> Plants:
    for at, node in nodes(of, ast.Import):
        module = node.names[0].asname or node.names[0].name
        for place in range(at, len(of.cells) - 1):
            if any(reads(text, module) for text in of.cells[place + 1 :]):
                for variable in bound_in(of.cells[place]):
                    if not re.search(rf"(def|class) {variable}\b", of.text):
                        cells = tuple(
                            renamed(text, variable, module) if i >= place else text
                            for i, text in enumerate(of.cells)
                        )
                        yield plant(of, place, cells, module, variable)


# Columns, keys, attributes, files


@kind("{right}")
def column_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in columns(of) if is_table(of) else ():
        wrong = typo(node.value, chance)
        yield plant(of, place, put(of, place, node, quoted(wrong)), wrong, node.value)


@kind("{right}")
def column_case(of: Working, chance: random.Random) -> Plants:
    for place, node in columns(of) if is_table(of) else ():
        wrong = chance.choice([node.value.title(), node.value.upper(), node.value.swapcase()])
        yield plant(of, place, put(of, place, node, quoted(wrong)), wrong, node.value)


@kind("{right}")
def column_blank(of: Working, chance: random.Random) -> Plants:
    """A column has a blank where the code has an underscore, or the other way round, or one at its end."""
    for place, node in columns(of) if is_table(of) else ():
        name = node.value
        ways = [
            name.replace("_", " "),
            name.replace("_", "").replace(" ", ""),
            f"{name} ",
            name.replace(" ", "_"),
        ]
        wrong = chance.choice([way for way in ways if way != name])
        yield plant(of, place, put(of, place, node, quoted(wrong)), wrong, name)


@kind("{right}")
def column_header_differs(of: Working, chance: random.Random) -> Plants:
    """The file's header has the column in other letters than the code."""
    for file, text in of.files.items():
        first, _, rest = text.partition("\n")
        sep = ";" if ";" in first else ","
        names = first.split(sep)
        if not file.endswith(".csv"):
            continue
        for i, name in enumerate(names):
            for new in (name.replace("_", " ").title(), f" {name}", name.upper(), f"{name}s"):
                header = sep.join([*names[:i], new, *names[i + 1 :]])
                cells = next((n for n, cell in enumerate(of.cells) if file in cell), 0)
                reference = tuple(cell.replace(quoted(name), quoted(new)) for cell in of.cells)
                if new != name:
                    files = {**of.files, file: f"{header}\n{rest}"}
                    yield plant(of, cells, of.cells, name, new, files=files, reference=reference)


@kind("{right}", "rename")
def column_stale(of: Working, chance: random.Random) -> Plants:
    """A cell renames a column, and a later one still has the old name."""
    for place, node in columns(of) if of.library == "pandas" else ():
        frame = next((n for n in bound_in(of.cells[place - 1]) if place and reads(of.cells[place], n)), None)
        if frame is None:
            continue
        new = chance.choice([f"{node.value}_clean", node.value.upper(), f"total_{node.value}", "value_1"])
        extra = f'{frame} = {frame}.rename(columns={{"{node.value}": "{new}"}})'
        cells = (*of.cells[:place], extra, *of.cells[place:])
        said = [cell.replace(quoted(node.value), quoted(new)) for cell in of.cells[place:]]
        yield plant(of, place, cells, node.value, new, reference=(*of.cells[:place], extra, *said))


@kind("{right}", r"drop")
def column_dropped(of: Working, chance: random.Random) -> Plants:
    """A cell drops a column that a later one reads."""
    for place, node in columns(of) if of.library == "pandas" else ():
        frame = next((n for n in bound_in(of.cells[place - 1]) if place and reads(of.cells[place], n)), None)
        if frame is not None:
            extra = f'{frame} = {frame}.drop(columns="{node.value}")'
            yield plant(of, place, (*of.cells[:place], extra, *of.cells[place:]), node.value, extra)


@kind("{right}")
def key_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in columns(of) if not is_table(of) else ():
        wrong = typo(node.value, chance)
        yield plant(of, place, put(of, place, node, quoted(wrong)), wrong, node.value)


@kind("{right}")
def key_case(of: Working, chance: random.Random) -> Plants:
    for place, node in columns(of) if not is_table(of) else ():
        wrong = chance.choice([node.value.title(), node.value.upper()])
        yield plant(of, place, put(of, place, node, quoted(wrong)), wrong, node.value)


@kind("{right}")
def attribute_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Attribute):
        if isinstance(node.ctx, ast.Load) and len(node.attr) > 2:
            wrong = typo(node.attr, chance)
            yield plant(
                of,
                place,
                put(of, place, node, f"{source(of, place, node)[: -len(node.attr)]}{wrong}"),
                wrong,
                node.attr,
            )


@kind("{right}")
def attribute_other_words(of: Working, chance: random.Random) -> Plants:
    """A method has the name that it has in another language or library."""
    other = {
        "upper": "toUpperCase", "lower": "to_lower", "append": "push", "strip": "trim", "items": "entries", "mean": "avg",
        "replace": "replaceAll", "startswith": "startsWith", "sort_values": "order_by", "groupby": "group_by", "join": "concat",
        "group_by": "groupby", "reset_index": "resetIndex", "to_numpy": "toarray", "value_counts": "count_values",
        "drop": "remove", "merge": "left_join", "split": "tokenize", "fillna": "fill_na", "set_title": "title",
        "set_xlabel": "xlabel", "set_ylabel": "ylabel", "rename": "rename_columns", "shape": "size_", "read_csv": "load_csv",
        "sum": "total", "filter": "where", "title": "capitalizeWords", "max": "maximum", "min": "minimum", "std": "stdev",
    }  # fmt: skip
    for place, node in nodes(of, ast.Attribute):
        if node.attr in other:
            wrong = other[node.attr]
            yield plant(
                of,
                place,
                put(of, place, node, f"{source(of, place, node)[: -len(node.attr)]}{wrong}"),
                wrong,
                node.attr,
            )


@kind(r"len\(", r"{right}", "shape")
def length_as_attribute(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "len":
            inner = source(of, place, node.args[0])
            wrong = chance.choice(["length", "len()", "length()"])
            if re.fullmatch(r"[\w.\[\]\"]+", inner):
                yield plant(of, place, put(of, place, node, f"{inner}.{wrong}"), wrong, "len")


@kind("{right}")
def file_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Constant):
        if node.value in of.files:
            stem, _, ending = node.value.rpartition(".")
            wrong = chance.choice(
                [f"{typo(stem, chance)}.{ending}", f"{stem.title()}.{ending}", f"{stem}.{ending}x", stem]
            )
            yield plant(of, place, put(of, place, node, quoted(wrong)), wrong, node.value)


@kind("{right}")
def file_elsewhere(of: Working, chance: random.Random) -> Plants:
    """The file lies in a folder below, or the code names a folder that is not there."""
    for place, node in nodes(of, ast.Constant):
        if node.value in of.files:
            moved = {name: text for name, text in of.files.items() if name != node.value}
            moved[f"data/{node.value}"] = of.files[node.value]
            yield plant(of, place, of.cells, node.value, f"data/{node.value}", files=moved)
            yield plant(
                of,
                place,
                put(of, place, node, quoted(f"data/{node.value}")),
                f"data/{node.value}",
                node.value,
            )
            yield plant(
                of, place, put(of, place, node, quoted(f"../{node.value}")), f"../{node.value}", node.value
            )


# Calls


@kind("{right}")
def argument_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        for keyword in node.keywords:
            if keyword.arg and len(keyword.arg) > 1:
                wrong, text = typo(keyword.arg, chance), source(of, place, keyword)
                yield plant(
                    of, place, put(of, place, keyword, wrong + text[len(keyword.arg) :]), wrong, keyword.arg
                )


@kind("{right}")
def argument_other_words(of: Working, chance: random.Random) -> Plants:
    other = {
        "axis": "dim", "ascending": "reverse", "reverse": "descending", "by": "column", "figsize": "size", "color": "colour",
        "label": "name", "index_col": "index", "sep": "separator", "inplace": "in_place", "columns": "column", "window": "size",
        "max_iter": "iterations", "n_clusters": "k", "test_size": "test", "dtype": "type", "key": "by", "orient": "orientation",
        "on": "key", "how": "type", "drop": "delete", "ignore_index": "reset_index", "freq": "frequency", "marker": "markers",
        "random_state": "seed", "format": "fmt", "periods": "n", "values": "value", "loc": "position", "width": "bar_width",
        "keepdims": "keep_dims", "descending": "ascending_", "size": "shape", "var_name": "variable", "encoding": "charset",
    }  # fmt: skip
    for place, node in nodes(of, ast.Call):
        for keyword in node.keywords:
            if keyword.arg in other:
                wrong, text = other[keyword.arg], source(of, place, keyword)
                yield plant(
                    of, place, put(of, place, keyword, wrong + text[len(keyword.arg) :]), wrong, keyword.arg
                )


def _call(of: Working, place: int, node: ast.Call, args: Sequence[str]) -> str:
    """Return a cell's text with other arguments in a call."""
    return put(of, place, node, f"{source(of, place, node.func)}({', '.join(args)})")


@kind("order", "swap", "{right}")
def arguments_swapped(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args):
            told = [source(of, place, a) for a in (*node.args, *node.keywords)]
            told[0], told[1] = told[1], told[0]
            yield plant(
                of, place, _call(of, place, node, told), f"{told[0]}, {told[1]}", f"{told[1]}, {told[0]}"
            )


@kind("{right}", "keyword", "by name", "positional")
def positional_for_keyword(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if node.keywords and node.keywords[0].arg and not any(isinstance(a, ast.Starred) for a in node.args):
            told = [source(of, place, a) for a in node.args]
            first = source(of, place, node.keywords[0].value)
            rest = [source(of, place, k) for k in node.keywords[1:]]
            yield plant(
                of, place, _call(of, place, node, [*told, first, *rest]), first, f"{node.keywords[0].arg}="
            )


@kind("missing", "required", "argument")
def argument_missing(of: Working, chance: random.Random) -> Plants:
    """A required argument is missing; what it was cannot be known."""
    for place, node in nodes(of, ast.Call):
        if node.args and len(node.args) > 1:
            told = [source(of, place, a) for a in (*node.args[1:], *node.keywords)]
            yield plant(
                of, place, _call(of, place, node, told), "", source(of, place, node.args[0]), lost=True
            )


@kind(r"\(\)", "call", "parenthes")
def call_parentheses_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if not node.args and not node.keywords:
            name = source(of, place, node.func)
            yield plant(of, place, put(of, place, node, name), name, f"{name}()")


@kind(r"\(", "parenthes", "round")
def call_in_square_brackets(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if len(node.args) == 1 and not node.keywords:
            name, argument = source(of, place, node.func), source(of, place, node.args[0])
            if not isinstance(node.args[0], ast.GeneratorExp):
                yield plant(of, place, put(of, place, node, f"{name}[{argument}]"), f"{name}[", f"{name}(")


@kind(r"\[", "square", "bracket")
def index_in_parentheses(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Subscript):
        if isinstance(node.ctx, ast.Load) and not re.search(r":|\.\.\.", source(of, place, node.slice)):
            name, inner = source(of, place, node.value), source(of, place, node.slice)
            yield plant(of, place, put(of, place, node, f"{name}({inner})"), f"{name}(", f"{name}[")


@kind("return")
def return_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.FunctionDef):
        returns = [n for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
        if len(returns) == 1:
            yield plant(
                of, place, put(of, place, returns[0], source(of, place, returns[0].value)), "None", "return"
            )


@kind("self")
def self_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.ClassDef):
        for method in node.body:
            if not isinstance(method, ast.FunctionDef):
                continue
            first, rest = method.args.args[0], method.args.args[1:]
            text = of.cells[place]
            start, end = span(text, first)[0], span(text, rest[0])[0] if rest else span(text, first)[1]
            yield plant(of, place, text[:start] + text[end:], "", "self")
            for inner in ast.walk(method):
                if (
                    isinstance(inner, ast.Attribute)
                    and isinstance(inner.value, ast.Name)
                    and inner.value.id == "self"
                    and isinstance(inner.ctx, ast.Load)
                ):
                    yield plant(
                        of, place, put(of, place, inner, inner.attr), inner.attr, f"self.{inner.attr}"
                    )


@kind("await")
def await_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Await):
        yield plant(of, place, put(of, place, node, source(of, place, node.value)), "", "await")


# Operators and masks


@kind("parenthes", r"\) [&|] \(")
def mask_without_parentheses(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.BinOp):
        if isinstance(node.op, ast.BitAnd | ast.BitOr) and isinstance(node.left, ast.Compare):
            sign = "&" if isinstance(node.op, ast.BitAnd) else "|"
            bare = f"{source(of, place, node.left)} {sign} {source(of, place, node.right)}"
            yield plant(of, place, put(of, place, node, bare), bare, "parentheses")


@kind(r"[&|]", "any|all")
def and_for_mask(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.BinOp):
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            sign, word = ("&", "and") if isinstance(node.op, ast.BitAnd) else ("|", "or")
            text = put(
                of, place, node, re.sub(rf"\) {re.escape(sign)} \(", f") {word} (", source(of, place, node))
            )
            yield plant(of, place, text, word, sign)


@kind("~")
def not_for_mask(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.UnaryOp):
        if isinstance(node.op, ast.Invert):
            yield plant(of, place, put(of, place, node, f"not {source(of, place, node.operand)}"), "not", "~")


@kind(r"\[\[", r"\bsort_values|list of|{right}")
def columns_without_list(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Subscript):
        if isinstance(node.slice, ast.List) and is_table(of):
            yield plant(of, place, put(of, place, node.slice, source(of, place, node.slice)[1:-1]), "[", "[[")


@kind(r"str\(", "text", 'f"', "convert")
def text_plus_number(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
            yield plant(of, place, put(of, place, node, source(of, place, node.args[0])), "", "str")


@kind(r"int\(|float\(", "text", "number")
def number_as_text(of: Working, chance: random.Random) -> Plants:
    """A text that has to be made a number is not."""
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in ("int", "float") and node.args:
            yield plant(of, place, put(of, place, node, source(of, place, node.args[0])), "", node.func.id)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
            yield plant(of, place, put(of, place, node, source(of, place, node.func.value)), "", "astype")


@kind("str", "text", "join")
def numbers_joined(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "map"
            and len(node.args) == 2
            and source(of, place, node.args[0]) == "str"
        ):
            yield plant(of, place, put(of, place, node, source(of, place, node.args[1])), "", "str")


@kind(r"==", "compar", "assign")
def equals_once(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Compare):
        if isinstance(node.ops[0], ast.Eq):
            yield plant(
                of, place, put(of, place, node, source(of, place, node).replace("==", "=", 1)), "=", "=="
            )


@kind("items", "values")
def items_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.For, ast.comprehension):
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "items":
            yield plant(of, place, put(of, place, call, source(of, place, call.func.value)), "", ".items()")


@kind("unpack", "values", "targets")
def unpacked_into_too_many(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            bare = [source(of, place, one) for one in target.elts]
            yield plant(
                of, place, put(of, place, target, ", ".join([*bare, "rest"])), "rest", ", ".join(bare)
            )


# Places and shapes


@kind("index", "last", "range", "length", "items", "position", "{right}")
def off_by_one(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Subscript, ast.Call):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            for inner in [node.slice, *getattr(node.slice, "elts", [])]:
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
                    wrong, right = source(of, place, inner.left), source(of, place, inner)
                    yield plant(of, place, put(of, place, inner, wrong), wrong, right)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "range"
            and len(node.args) == 1
        ):
            right = source(of, place, node.args[0])
            if re.match(r"len\(.*\) - 1$", right):
                yield plant(of, place, put(of, place, node.args[0], right[:-4]), right[:-4], right)
            elif not right.isdigit():
                yield plant(of, place, put(of, place, node.args[0], f"{right} + 1"), f"{right} + 1", right)


@kind("axis", "{right}")
def wrong_axis(of: Working, chance: random.Random) -> Plants:
    other = {"0": "1", "1": "0", '"columns"': '"index"', '"index"': '"columns"'}
    for place, node in nodes(of, ast.keyword):
        text = source(of, place, node.value)
        if node.arg == "axis" and text in other:
            yield plant(
                of, place, put(of, place, node.value, other[text]), f"axis={other[text]}", f"axis={text}"
            )
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, int):
                yield plant(of, place, put(of, place, node.value, "2"), "axis=2", f"axis={text}")


@kind("2-?D|two|dimension|reshape|\\[\\[|column")
def one_dimension_too_few(of: Working, chance: random.Random) -> Plants:
    """A table of one column is a column, an array lacks its reshape."""
    for place, node in nodes(of, ast.Subscript, ast.Call):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.List) and len(node.slice.elts) == 1:
            yield plant(
                of, place, put(of, place, node.slice, source(of, place, node.slice.elts[0])), "[", "[["
            )
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "reshape"
        ):
            yield plant(of, place, put(of, place, node, source(of, place, node.func.value)), "", "reshape")
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.List):
            inner = node.args[0].elts
            if len(inner) == 1 and isinstance(inner[0], ast.List):
                yield plant(of, place, put(of, place, node.args[0], source(of, place, inner[0])), "[", "[[")


@kind("shape|reshape|dimension|broadcast|elements|length")
def wrong_shape(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "reshape"
            and all(isinstance(a, ast.Constant) for a in node.args)
        ):
            told = [source(of, place, a) for a in node.args]
            wrong = [str(int(told[0]) + 1), *told[1:]]
            yield plant(of, place, _call(of, place, node, wrong), ", ".join(wrong), ", ".join(told))


@kind("array|list")
def list_for_array(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if source(of, place, node.func) in ("np.array", "np.asarray", "pd.Series") and node.args:
            yield plant(
                of,
                place,
                put(of, place, node, source(of, place, node.args[0])),
                "list",
                source(of, place, node.func),
            )


@kind("int|position|index|number")
def text_as_index(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int) and not is_table(of):
            wrong = f'"{node.slice.value}"'
            yield plant(of, place, put(of, place, node.slice, wrong), wrong, str(node.slice.value))


@kind("{right}", "label", "position", "i?loc")
def loc_for_iloc(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Attribute):
        if node.attr in ("loc", "iloc"):
            wrong = "iloc" if node.attr == "loc" else "loc"
            yield plant(
                of, place, put(of, place, node, f"{source(of, place, node.value)}.{wrong}"), wrong, node.attr
            )


@kind(r"\.{right}", "{right}")
def accessor_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Attribute):
        inner = node.value
        if isinstance(inner, ast.Attribute) and inner.attr in ("str", "dt", "cat"):
            yield plant(
                of, place, put(of, place, inner, source(of, place, inner.value)), node.attr, inner.attr
            )


# Syntax


def _without(of: Working, pattern: str) -> Iterator[tuple[int, str, re.Match[str]]]:
    for place, text in enumerate(of.cells):
        for match in re.finditer(pattern, text, re.MULTILINE):
            yield place, text[: match.start()] + text[match.end() :], match


@kind("comma", "{right}")
def comma_missing(of: Working, chance: random.Random) -> Plants:
    for place, text, _ in _without(of, r",(?= \S)"):
        yield plant(of, place, text, "", ",")


@kind(":", "colon")
def colon_missing(of: Working, chance: random.Random) -> Plants:
    for place, text, _ in _without(of, r"(?<=[\w)\]]):$"):
        yield plant(of, place, text, "", ":")


@kind("quot|string|text")
def quote_missing(of: Working, chance: random.Random) -> Plants:
    for place, text, _ in _without(of, r"\"(?=[),\]])"):
        yield plant(of, place, text, "", '"')


@kind("bracket|parenthes|clos|[(\\[{{]")
def bracket_missing(of: Working, chance: random.Random) -> Plants:
    for place, text, match in _without(of, r"[)\]}]$"):
        yield plant(of, place, text, "", match[0])


@kind("indent")
def indentation_lost(of: Working, chance: random.Random) -> Plants:
    for place, text in enumerate(of.cells):
        lines = text.split("\n")
        for i, line in enumerate(lines):
            if i and line.startswith("    ") and lines[i - 1].rstrip().endswith(":"):
                yield plant(of, place, "\n".join([*lines[:i], line[4:], *lines[i + 1 :]]), "", "indentation")


# Order of cells and what an earlier cell did


@kind("not been run|not run|run cell|defined in cell|run it")
def cell_not_run(of: Working, chance: random.Random) -> Plants:
    for place in range(len(of.cells) - 1):
        turns = [i for i in range(len(of.cells)) if i != place]
        yield plant(of, place, of.cells, "", f"cell {place + 1}", turns=turns)


@kind("stands|below|further down|run cell|not been run|move")
def cell_too_low(of: Working, chance: random.Random) -> Plants:
    for place in range(len(of.cells) - 1):
        for to in range(place + 1, len(of.cells)):
            cells = [*of.cells[:place], *of.cells[place + 1 :]]
            cells.insert(to, of.cells[place])
            yield plant(of, to, tuple(cells), "", of.cells[place].split("\n")[0])


@kind("twice|again|ran before|already|once|run cells?|drop|rename|overwr")
def cell_run_twice(of: Working, chance: random.Random) -> Plants:
    for place in range(len(of.cells)):
        turns = [*range(place + 1), *range(place, len(of.cells))]
        yield plant(of, place, of.cells, "", "", turns=turns)


@kind("inplace")
def inplace_assigned(of: Working, chance: random.Random) -> Plants:
    methods = (
        "sort_values",
        "rename",
        "drop",
        "fillna",
        "set_index",
        "reset_index",
        "dropna",
        "drop_duplicates",
        "sort_index",
        "replace",
    )
    for place, node in nodes(of, ast.Assign):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in methods:
            told = [source(of, place, a) for a in (*call.args, *call.keywords)]
            yield plant(of, place, _call(of, place, call, [*told, "inplace=True"]), "inplace=True", "inplace")
    for place, node in nodes(of, ast.Assign):
        call = node.value
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "sorted"
            and len(call.args) == 1
        ):
            told = [source(of, place, k) for k in call.keywords]
            yield plant(
                of,
                place,
                put(of, place, call, f"{source(of, place, call.args[0])}.sort({', '.join(told)})"),
                ".sort",
                "sorted",
            )


@kind("{wrong}.{{0,80}}(cell|In \\[|assign|overwr|line|again)", "overwr", "In \\[\\d+\\]|cell \\d+")
def name_overwritten(of: Working, chance: random.Random) -> Plants:
    """A result has the name of what it was made of, which a later cell still needs."""
    for place, text in enumerate(of.cells[:-1]):
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                read = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
                for other in sorted(read - {name}):
                    made = any(other in bound_in(cell) for cell in of.cells[:place])
                    if made and any(reads(later, other) for later in of.cells[place + 1 :]):
                        cells = tuple(
                            renamed(cell, name, other) if i >= place else cell
                            for i, cell in enumerate(of.cells)
                        )
                        yield plant(of, place, cells, other, name)


@kind("{wrong}.{{0,80}}(cell|In \\[|assign|overwr|line|again)", "overwr", "In \\[\\d+\\]|cell \\d+")
def frame_overwritten(of: Working, chance: random.Random) -> Plants:
    """A cell in between makes of a frame something else, under the same name."""
    for place, node in columns(of) if of.library == "pandas" else ():
        frame = next((n for n in bound_in(of.cells[place - 1]) if place and reads(of.cells[place], n)), None)
        if frame is not None:
            way = chance.choice([f'["{node.value}"]', ".describe()", ".dtypes", ".columns", ".T", ".shape"])
            extra = f"{frame} = {frame}{way}"
            yield plant(of, place, (*of.cells[:place], extra, *of.cells[place:]), frame, extra)


@kind("reset_index|index|as_index")
def key_left_in_index(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reset_index":
            yield plant(
                of, place, put(of, place, node, source(of, place, node.func.value)), "", "reset_index"
            )
        told = [k for k in node.keywords if k.arg == "as_index"]
        if told:
            rest = [source(of, place, a) for a in (*node.args, *(k for k in node.keywords if k not in told))]
            yield plant(of, place, _call(of, place, node, rest), "", "as_index")


@kind("fit")
def fit_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("fit", "fit_transform"):
            if node.func.attr == "fit":
                yield plant(of, place, put(of, place, node, source(of, place, node.func.value)), "", "fit")
            else:
                text = put(of, place, node.func, f"{source(of, place, node.func.value)}.transform")
                yield plant(of, place, text, "transform", "fit")


@kind("not defined|no cell|nothing defines|{wrong}")
def definition_lost(of: Working, chance: random.Random) -> Plants:
    """Nothing defines the name any more, and what it was cannot be known."""
    for place, text in enumerate(of.cells):
        for node in ast.parse(text).body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Constant | ast.List | ast.Dict | ast.Tuple)
                and isinstance(node.targets[0], ast.Name)
            ):
                yield plant(
                    of,
                    place,
                    put(of, place, node, "pass"),
                    node.targets[0].id,
                    source(of, place, node.value),
                    lost=True,
                )


# Data


def _column_texts(
    of: Working, of_numbers: Callable[[str], str]
) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    """Yield files with the numbers of one column written in another way: file, column, and one number before."""
    for file, text in of.files.items():
        if not file.endswith(".csv"):
            continue
        lines = text.strip("\n").split("\n")
        sep = ";" if ";" in lines[0] else ","
        rows = [line.split(sep) for line in lines]
        for i, column in enumerate(rows[0]):
            if all(re.fullmatch(r"-?\d+(\.\d+)?", row[i]) for row in rows[1:]):
                made = [rows[0], *([*row[:i], of_numbers(row[i]), *row[i + 1 :]] for row in rows[1:])]
                yield (
                    file,
                    column,
                    rows[1][i],
                    {**of.files, file: "\n".join(sep.join(row) for row in made) + "\n"},
                )


def _reader(of: Working, file: str) -> int:
    return next((place for place, text in enumerate(of.cells) if file in text), 0)


@kind(r"text|str|\$|to_numeric|astype|convert|symbol|strip|replace")
def numbers_with_symbols(of: Working, chance: random.Random) -> Plants:
    """The numbers of a column are written with a sign of money, a unit, a percent sign, blanks, or groups of digits."""
    for way in ("${}", "{} €", "{} kg", '"{:,}"', "{}%", "£ {}"):

        def written(number: str, way: str = way) -> str:
            value = float(number) if "." in number else int(number)
            return way.format(
                value * 1000 if "," in way and abs(value) < 1000 else value if "," in way else number
            )

        for file, column, before, files in _column_texts(of, written):
            if "," in way and abs(float(before)) < 1000:
                continue  # it would be another number
            yield plant(of, _reader(of, file), of.cells, written(before), column, files=files)


@kind(r"text|str|number|to_numeric|convert|unknown|no number")
def number_unknown(of: Working, chance: random.Random) -> Plants:
    """One cell of a column of numbers has a word; what number it is cannot be known."""
    word = chance.choice(["unknown", "?", "tbd", "-"])
    for file, column, before, files in _column_texts(of, str):
        lines = files[file].split("\n")
        lines[1] = lines[1].replace(before, word, 1)
        yield plant(
            of, _reader(of, file), of.cells, word, column, files={**files, file: "\n".join(lines)}, lost=True
        )


@kind("sep|delimiter")
def wrong_separator(of: Working, chance: random.Random) -> Plants:
    for file, text in of.files.items():
        if file.endswith(".csv"):
            sep = ";" if ";" in text else ","
            for other in {";", "\t", "|", ","} - {sep}:
                yield plant(
                    of,
                    _reader(of, file),
                    of.cells,
                    sep,
                    other,
                    files={**of.files, file: text.replace(sep, other)},
                )
    for place, node in nodes(of, ast.Call):
        told = [source(of, place, a) for a in (*node.args, *node.keywords)]
        rest = [text for text in told if not text.startswith("sep=")]
        if len(rest) < len(told):
            yield plant(of, place, _call(of, place, node, rest), ",", "sep")


@kind("header|skiprows|first (row|line)")
def wrong_header(of: Working, chance: random.Random) -> Plants:
    for file, text in of.files.items():
        if file.endswith(".csv"):
            for top in ("Report of the office\n", "Exported 2025-06-01\n\n"):
                yield plant(
                    of,
                    _reader(of, file),
                    of.cells,
                    "header",
                    "skiprows",
                    files={**of.files, file: top + text},
                )
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "read_csv":
            told = [source(of, place, a) for a in (*node.args, *node.keywords)]
            yield plant(of, place, _call(of, place, node, [*told, "header=None"]), "header=None", "header")


@kind("encoding|latin|cp1252|utf")
def wrong_encoding(of: Working, chance: random.Random) -> Plants:
    for file, text in of.files.items():
        if not text.isascii() and "@" not in file:
            files = {name: body for name, body in of.files.items() if name != file}
            yield plant(
                of, _reader(of, file), of.cells, "utf-8", "latin-1", files={**files, f"{file}@latin-1": text}
            )


@kind("dtype|text|str|number|astype|to_numeric|convert")
def read_as_text(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "read_csv":
            told = [source(of, place, a) for a in (*node.args, *node.keywords)]
            yield plant(of, place, _call(of, place, node, [*told, "dtype=str"]), "dtype=str", "dtype")
    for place, node in nodes(of, ast.List):
        if (
            is_table(of)
            and node.elts
            and all(isinstance(e, ast.Constant) and type(e.value) in (int, float) for e in node.elts)
        ):
            wrong = "[" + ", ".join(f'"{source(of, place, e)}"' for e in node.elts) + "]"
            yield plant(of, place, put(of, place, node, wrong), wrong, source(of, place, node))


@kind("length|same|items|values")
def value_dropped(of: Working, chance: random.Random) -> Plants:
    """A list of the data lacks an item, which cannot be known."""
    for place, node in nodes(of, ast.List):
        if len(node.elts) > 2 and all(isinstance(e, ast.Constant) for e in node.elts):
            rest = [source(of, place, e) for e in node.elts[:-1]]
            yield plant(
                of,
                place,
                put(of, place, node, f"[{', '.join(rest)}]"),
                "",
                source(of, place, node.elts[-1]),
                lost=True,
            )


@kind("None|missing")
def value_is_none(of: Working, chance: random.Random) -> Plants:
    """A value of the data is None, which cannot be known."""
    for place, node in nodes(of, ast.List, ast.Dict):
        elements = node.elts if isinstance(node, ast.List) else node.values
        if len(elements) > 1 and all(isinstance(e, ast.Constant) for e in elements):
            one = chance.choice(elements)
            yield plant(of, place, put(of, place, one, "None"), "None", source(of, place, one), lost=True)


@kind("{right}")
def merge_key_differs(of: Working, chance: random.Random) -> Plants:
    """The key of a merge has another name in one of the two tables."""
    for place, node in nodes(of, ast.keyword):
        if node.arg == "on" and isinstance(node.value, ast.Constant):
            key = node.value.value
            for at, text in enumerate(of.cells[: place + 1]):
                for match in re.finditer(rf'"{key}":', text):
                    new = chance.choice(
                        [key.removesuffix("_id"), f"{key}entifier", key.replace("_", ""), f"the_{key}", "id"]
                    )
                    if new != key:
                        yield plant(
                            of, at, text[: match.start()] + f'"{new}":' + text[match.end() :], key, new
                        )


@kind("type|str|int|object|text|astype")
def merge_key_types_differ(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.keyword):
        if node.arg in ("on", "left_on", "right_on") and isinstance(node.value, ast.Constant):
            for at, table in nodes(of, ast.Dict):
                for key, values in zip(table.keys, table.values, strict=True):
                    if (
                        isinstance(key, ast.Constant)
                        and key.value == node.value.value
                        and isinstance(values, ast.List)
                    ):
                        text = [source(of, at, e) for e in values.elts]
                        if at <= place and all(t.isdigit() for t in text):
                            wrong = "[" + ", ".join(f'"{t}"' for t in text) + "]"
                            yield plant(of, at, put(of, at, values, wrong), wrong, key.value)


@kind("tz|time ?zone|aware|naive|utc")
def one_time_is_aware(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        name = source(of, place, node.func)
        told = [source(of, place, a) for a in (*node.args, *node.keywords)]
        if name == "pd.to_datetime":
            yield plant(of, place, _call(of, place, node, [*told, "utc=True"]), "utc=True", "tz")
        elif name in ("pd.Timestamp", "pd.date_range"):
            yield plant(of, place, _call(of, place, node, [*told, 'tz="UTC"']), 'tz="UTC"', "tz")
        elif name == "datetime" and "import datetime" in of.text:
            cells = list(of.cells)
            cells[place] = _call(of, place, node, [*told, "tzinfo=timezone.utc"])
            cells = [
                re.sub(r"(?m)^from datetime import ", "from datetime import timezone, ", cell)
                for cell in cells
            ]
            yield plant(of, place, tuple(cells), "timezone.utc", "tz")


@kind("format|%[Ymd]")
def wrong_date_format(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Constant):
        if isinstance(node.value, str) and re.search(r"%Y.%m.%d", node.value):
            for wrong in ("%d/%m/%Y", "%Y/%m/%d", "%y-%m-%d", "%Y-%d-%m %H:%M"):
                text = put(of, place, node, quoted(node.value.replace("%Y-%m-%d", wrong)))
                yield plant(of, place, text, wrong, node.value)


@kind("array|list|json|parse|loads|text|str")
def json_not_parsed(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        name = source(of, place, node.func)
        if name in ("json.loads", "json.load") and node.args:
            yield plant(of, place, put(of, place, node, source(of, place, node.args[0])), "text", name)
            other = "json.load" if name == "json.loads" else "json.loads"
            yield plant(of, place, put(of, place, node.func, other), other, name)


# Removed interfaces: what was written for an older version


@dataclasses.dataclass(frozen=True)
class Removed:
    """Interface that is no more. now: pattern of its successor; then: what stood there; word: the successor's name."""

    now: str
    then: str
    word: str


def _removed(name: str, rows: Sequence[Removed]) -> None:
    """Add a kind: code of an older version."""

    def plants(of: Working, chance: random.Random) -> Plants:
        for row in rows:
            for place, text in enumerate(of.cells):
                for match in re.finditer(row.now, text):
                    new = text[: match.start()] + match.expand(row.then) + text[match.end() :]
                    yield plant(of, place, new, match.expand(row.then), row.word)

    plants.__name__ = name
    kind("{right}")(plants)


_removed("removed_in_pandas", [
    Removed(r"pd\.concat\(\[(\w+), (\w+)\]", r"\1.append(\2", "concat"),
    Removed(r"\.items\(\)", ".iteritems()", "items"),
    Removed(r"\.ffill\(\)", '.fillna(method="ffill")', "ffill"),
    Removed(r"\.bfill\(\)", '.fillna(method="bfill")', "bfill"),
    Removed(r"\.loc\[", ".ix[", "loc"),
    Removed(r"\.to_numpy\(\)", ".as_matrix()", "to_numpy"),
    Removed(r"\.sort_values\(", ".sort(", "sort_values"),
    Removed(r"\.drop\(columns=(\[[^\]]*\])\)", r".drop(\1, 1)", "columns"),
    Removed(r"\.map\((?=lambda|str|round)", ".applymap(", "map"),
    Removed(r'"ME"', '"M"', "ME"),
    Removed(r'"h"', '"H"', "h"),
    Removed(r"\.is_monotonic_increasing", ".is_monotonic", "is_monotonic_increasing"),
    Removed(r"\((\w+(?:\[\S+\])?) - \1\.mean\(\)\)\.abs\(\)\.mean\(\)", r"\1.mad()", "mean"),
    Removed(r'on_bad_lines="skip"', "error_bad_lines=False", "on_bad_lines"),
    Removed(r"\.dt\.isocalendar\(\)\.week", ".dt.week", "isocalendar"),
    Removed(r"\.rolling\(window=(\d+)\)\.mean\(\)", r".rolling_mean(\1)", "rolling"),
    Removed(r'orient="records"', 'orient="record"', "records"),
    Removed(r"\.explode\(", ".explode_rows(", "explode"),
    Removed(r"pd\.json_normalize\(", "pd.io.json.json_normalize(", "json_normalize"),
])  # fmt: skip
_removed("removed_in_numpy", [
    *(Removed(rf"\bnp\.{now}\b", f"np.{then}", now) for now, then in (
        ("float64", "float"), ("int64", "int"), ("trapezoid", "trapz"), ("prod", "product"), ("isin", "in1d"),
        ("nan", "NaN"), ("inf", "Inf"), ("round", "round_"), ("vstack", "row_stack"), ("all", "alltrue"),
        ("any", "sometrue"), ("cumprod", "cumproduct"), ("str_", "unicode_"), ("complex128", "complex"),
    )),
    Removed(r"np\.asarray\((\w+), dtype=float\)", r"np.asfarray(\1)", "asarray"),
    Removed(r"np\.ptp\((\w+)\)", r"\1.ptp()", "np.ptp"),
])  # fmt: skip
_removed("removed_in_python", [
    Removed(r"\.items\(\)", ".iteritems()", "items"),
    Removed(r"(?m)^print\((.+)\)$", r"print \1", "print("),
    Removed(r"\brange\(", "xrange(", "range"),
    Removed(r'"(\w+)" in (\w+)\b(?=:|$| and)', r'\2.has_key("\1")', "in"),
    Removed(r"time\.perf_counter\(\)", "time.clock()", "perf_counter"),
    Removed(r"from collections\.abc import", "from collections import", "collections.abc"),
    Removed(r"list\((\w+)\.keys\(\)\)\[", r"\1.keys()[", "list"),
    Removed(r"math\.gcd", "fractions.gcd", "math"),
    Removed(r"string\.ascii_letters", "string.letters", "ascii_letters"),
    Removed(r"except (\w+) as (\w+):", r"except \1, \2:", "as"),
    Removed(r"from functools import reduce\n", "", "functools"),
    Removed(r"\bstr\(", "unicode(", "str"),
    Removed(r"\bopen\(", "file(", "open"),
    Removed(r"\bnext\((\w+)\)", r"\1.next()", "next"),
])  # fmt: skip
_removed("removed_elsewhere", [
    Removed(r"sparse_output=", "sparse=", "sparse_output"),
    Removed(r"get_feature_names_out", "get_feature_names", "get_feature_names_out"),
    Removed(r"from sklearn\.model_selection import", "from sklearn.cross_validation import", "model_selection"),
    Removed(r"from sklearn\.impute import SimpleImputer", "from sklearn.preprocessing import Imputer as SimpleImputer", "SimpleImputer"),
    Removed(r"root_mean_squared_error\((\w+), (\w+)\)", r"mean_squared_error(\1, \2, squared=False)", "root_mean_squared_error"),
    Removed(r"penalty=None", 'penalty="none"', "None"),
    Removed(r"density=True", "normed=True", "density"),
    Removed(r'matplotlib\.colormaps\[("\w+")\]', r"plt.cm.get_cmap(\1)", "colormaps"),
    Removed(r'"seaborn-v0_8"', '"seaborn"', "seaborn-v0_8"),
    Removed(r"\.grid\(visible=", ".grid(b=", "visible"),
    Removed(r"\.group_by\(", ".groupby(", "group_by"),
    Removed(r"\.with_columns\(", ".with_column(", "with_columns"),
    Removed(r"descending=", "reverse=", "descending"),
    Removed(r"\.map_elements\(", ".apply(", "map_elements"),
    Removed(r"\.str\.strip_chars\(", ".str.strip(", "strip_chars"),
    Removed(r"\.unpivot\(", ".melt(", "unpivot"),
    Removed(r"(?<=execute\()text\((\"[^\"]*\")\)", r"\1", "text"),
    Removed(r"\bconnection\.execute\(", "engine.execute(", "connect"),
    Removed(r"select\(([\w., ]+)\)", r"select([\1])", "select"),
])  # fmt: skip
