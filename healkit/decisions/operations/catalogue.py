"""Built-in operations, as data.

Each is a vault tool on views. Its code is a file of its own in `tools/`, as the vault stores it, and is never imported.
`tools/_common.py` holds functions that several of them need; an entry's code is the file, followed by those of these
functions that it uses. So an entry is whole in itself: what its hash stands for does not change with the package.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
from pathlib import Path
from typing import Any, Literal

_TOOLS = Path(__file__).parent / "tools"
#: Group of the operations in the vault.
GROUP = "decide"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Operation:
    """Built-in operation: an `info` tells about a view, a `data` operation makes one, an `output` makes a file.

    `input_schema` is given where the signature does not say all; None means that the vault derives it. `naming` lists
    the parameters that hold names of columns. `is_free`: its result may be anything that a chooser writes.
    """

    name: str
    kind: Literal["info", "data", "output"] = "data"
    input_schema: dict[str, Any] | None = None
    naming: tuple[str, ...] = ("column",)
    is_free: bool = False

    @property
    def code(self) -> str:
        """Code of the vault entry."""
        return _code_of(self.name)


_VIEW = {"type": "object", "format": "dataframe"}
_FUNCTIONS = "rows count distinct sum mean median min max std var first last"
_AGGREGATE = {
    "type": "object",
    "properties": {"column": {"type": "string"}, "function": {"enum": _FUNCTIONS.split()}},
    "required": ["function"],
    "additionalProperties": False,
}

OPERATIONS: tuple[Operation, ...] = (
    Operation(name="view_schema", kind="info"),
    Operation(name="resolve_entity", kind="info"),
    Operation(name="filter_rows"),
    Operation(name="select_columns", naming=("columns", "rename")),
    Operation(name="join_views", naming=("on", "right_on")),
    Operation(
        name="group_rows",
        naming=("by", "aggregates"),
        input_schema={
            "type": "object",
            "properties": {
                "data": _VIEW,
                "by": {"type": "array", "items": {"type": "string"}},
                "aggregates": {"type": "object", "additionalProperties": _AGGREGATE},
            },
            "required": ["data", "by", "aggregates"],
            "additionalProperties": False,
        },
    ),
    Operation(name="sort_rows", naming=("by",)),
    Operation(name="top_rows", naming=("by", "within")),
    Operation(name="pivot_rows", naming=("rows",)),
    Operation(name="unpivot_columns", naming=("keep", "columns", "name", "value")),
    Operation(name="date_parts"),
    Operation(name="drop_duplicates", naming=("columns",)),
    Operation(name="drop_nulls", naming=("columns",)),
    Operation(name="fill_nulls"),
    Operation(name="replace_values"),
    Operation(
        name="view_sql",
        naming=("query",),
        is_free=True,
        input_schema={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
            "additionalProperties": _VIEW,  # every other argument is a view, by its name in the query
        },
    ),
    Operation(name="draw_chart", kind="output"),
    Operation(name="export_csv", kind="output"),
    Operation(name="export_parquet", kind="output"),
    Operation(name="export_notebook", kind="output"),
    Operation(name="export_report", kind="output"),
)


def operation(name: str) -> Operation:
    """Return the operation of that name; raise KeyError."""
    return next((one for one in OPERATIONS if one.name == name), None) or _missing(name)


def operation_of(name: str) -> Operation | None:
    """Return the operation of that name, whatever code a vault has for it."""
    return next((one for one in OPERATIONS if one.name == name), None)


def built_in(name: str, code: str) -> Operation | None:
    """Return the operation whose code, as it is shipped, this is."""
    return next((one for one in OPERATIONS if one.name == name and one.code == code), None)


@functools.cache
def _code_of(name: str) -> str:
    return _whole((_TOOLS / f"{name}.py").read_text(encoding="utf-8"))


def _missing(name: str) -> Operation:
    raise KeyError(f"There is no operation {name!r}.")


def _whole(code: str) -> str:
    """Return a tool's code with the common functions that it needs, directly or through another of them."""
    functions, imports = _common()
    own = {node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}
    needed: list[str] = []
    waiting = [code]
    while waiting:
        text = waiting.pop()
        for name in sorted({node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}):
            if name in functions and name not in own and name not in needed:
                needed.append(name)
                waiting.append(functions[name])
    added = [functions[name] for name in functions if name in needed]
    lines = [line for module, line in imports.items() if any(f"{module}." in text for text in added)]
    head = "".join(f"{line}\n" for line in lines if line not in code)
    return f"{head}{code.rstrip()}\n" + "".join(f"\n\n{text}\n" for text in added)


@functools.cache
def _common() -> tuple[dict[str, str], dict[str, str]]:
    """Return the common functions by name, and the import lines by the module's name in them."""
    text = (_TOOLS / "_common.py").read_text(encoding="utf-8")
    body = ast.parse(text).body
    functions = {
        node.name: ast.get_source_segment(text, node) or ""
        for node in body
        if isinstance(node, ast.FunctionDef)
    }
    imports = {
        alias.asname or alias.name: ast.unparse(node)
        for node in body
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    return functions, imports
