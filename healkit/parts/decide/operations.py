"""Built-in operations on views, and the files that they make.

`install(hk)` adds them to the vault, once and never over your tools. They run like any other tool, in restricted
workers. See docs/operations.md. Their code is in `tools/` and is never imported: an entry contains the operation's own
function with the imports and functions that it needs.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import os
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from healkit.core.contracts.vault import DEFAULT_PERSONA
from healkit.core.store.entries import code_hash
from healkit.errors import ToolExists, ToolRemoved, UsageInvalid

if TYPE_CHECKING:
    from healkit.core.contracts.vault import VaultEntry
    from healkit.core.store.vault import Vault
    from healkit.services import Services


__all__ = ["GROUP", "OPERATIONS", "InstallReport", "Operation", "install", "operation", "write_output"]

#: Group of the operations in the vault.
GROUP = "decide"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Operation:
    """Built-in operation: an `info` describes a view, a `data` operation makes one, an `output` makes a file.

    `input_schema` is given if the signature does not say everything; None means that the vault derives it. `naming`
    lists the parameters for names of columns. `is_free`: its result may be anything that a chooser writes.
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
_BY_NAME = {entry.name: entry for entry in OPERATIONS}


def operation(name: str) -> Operation:
    """Return the operation of that name; raise KeyError."""
    if (result := operation_of(name)) is None:
        raise KeyError(f"There is no operation {name!r}.")
    return result


def operation_of(name: str) -> Operation | None:
    """Return the operation of that name, whatever code a vault has for it."""
    return _BY_NAME.get(name)


def built_in(name: str, code: str) -> Operation | None:
    """Return the operation whose shipped code this is."""
    candidate = operation_of(name)
    return candidate if candidate is not None and candidate.code == code else None


# Installation

_ADD_REASON = "operations: as shipped with healkit"
_UPDATE_REASON = "operations: as shipped with this version of healkit"


@dataclasses.dataclass(frozen=True)
class InstallReport:
    """Result of an installation, by name: operations added, updated, and kept; `yours` are other tools.

    A tool in `yours` has the name of an operation and was not changed: you wrote, patched or removed it.
    """

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line for a terminal: `21 added, 0 updated, 0 kept`, and which of your tools were not changed."""
        line = f"{len(self.added)} added, {len(self.updated)} updated, {len(self.kept)} kept"
        if self.yours:
            line += f"; not changed, because you have a tool of that name: {', '.join(self.yours)}"
        return line


def install(hk: Services) -> InstallReport:
    """Add the built-in operations to the vault, in the group `decide`; twice changes nothing.

    An operation from an earlier version of healkit that was not patched since gets the code of this version. Raises the
    errors of the vault.
    """
    return install_in(hk.vault)


def install_in(vault: Vault) -> InstallReport:
    """Do as `install` does, in that vault."""
    done: dict[str, list[str]] = {"added": [], "updated": [], "kept": [], "yours": []}
    there = {entry.tool_name: entry for entry in vault.list(DEFAULT_PERSONA)}
    gone = {entry.tool_name for entry in vault.list(DEFAULT_PERSONA, removed=True)}
    gone |= set(vault.former_names(DEFAULT_PERSONA))
    for shipped in OPERATIONS:
        state = "yours" if shipped.name in gone else _install(vault, shipped, there.get(shipped.name))
        done[state].append(shipped.name)
    return InstallReport(**{state: tuple(names) for state, names in done.items()})


def _install(vault: Vault, one: Operation, there: VaultEntry | None) -> str:
    """Add or update the operation; return which of the four results it was."""
    code = one.code
    if there is None:
        try:
            vault.add(
                one.name, code, input_schema=one.input_schema, examples=examples_of(one.name),
                group=GROUP, author="seed", reason=_ADD_REASON,
            )  # fmt: skip
        except (ToolExists, ToolRemoved):  # another process was faster
            return "yours"
        return "added"
    if there.code_hash == code_hash(code):
        return "kept"
    history = vault.history(one.name, DEFAULT_PERSONA)
    if there.group != GROUP or any(revision.author != "seed" for revision in history):
        return "yours"
    vault.patch(one.name, code, author="seed", reason=_UPDATE_REASON)
    return "updated"


# Code

_TOOLS = Path(__file__).parent / "tools"
#: Files with operations; `common.py` has functions for all of them.
_FILES = ("rows.py", "shapes.py", "outputs.py")


@functools.cache
def _code_of(name: str) -> str:
    """Return the code of an operation: imports, its function, and the functions that it needs of both files."""
    source_file = next(file for file in _FILES if name in _definitions(file))
    definitions = _definitions(source_file) | _definitions("common.py")
    needed, waiting = {name}, [name]
    while waiting:
        names = _names_in(definitions[waiting.pop()]) & definitions.keys() - needed
        needed |= names
        waiting += names
    helpers = [helper for helper in definitions if helper in needed - {name}]
    body = "\n\n\n".join(definitions[part] for part in (name, *helpers))
    return f"{_imports_for(body, source_file)}\n\n\n{body}\n"


def _names_in(code: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}


@functools.cache
def _definitions(file: str) -> dict[str, str]:
    """Return the text of each function and constant of a file, by name, in the file's order."""
    text, definitions = _text_of(file), dict[str, str]()
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                definitions[name] = ast.get_source_segment(text, node) or ""
    return definitions


def _imports_for(body: str, own: str) -> str:
    """Return the imports of both files whose names the code uses: the standard library's, then the others."""
    used, lines = _names_in(body), dict[str, bool]()
    for node in (*ast.parse(_text_of(own)).body, *ast.parse(_text_of("common.py")).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias for alias in node.names if (alias.asname or alias.name) in used]
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            if names and module is not None:
                statement = (
                    ast.Import(names) if isinstance(node, ast.Import) else ast.ImportFrom(module, names, 0)
                )
                lines[ast.unparse(statement)] = module.partition(".")[0] in sys.stdlib_module_names
    ordered = sorted(lines, key=lambda line: (line.startswith("from"), line))
    groups = ["\n".join(line for line in ordered if lines[line] is standard) for standard in (True, False)]
    return "\n\n".join(filter(None, groups))


@functools.cache
def _text_of(file: str) -> str:
    return (_TOOLS / file).read_text(encoding="utf-8")


# Files that outputs become. A tool in a worker returns text or bytes and never writes; the host does.

#: Longest name of a file, in bytes; most file systems take 255.
_NAME_MAX_BYTES = 200
_NAME = re.compile(r"[^\W_][\w .()+,=@-]*")
#: Names that Windows keeps for devices, with any ending: a run's folder may be carried there.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)


def write_output(value: str | bytes, folder: str | Path, name: str) -> Path:
    """Write a tool's result into `folder` as `name`, mode 600; return the file's path.

    Text is written as UTF-8. Raises `UsageInvalid` for a value of another kind, a name that is not a plain file name or
    already exists, and `OSError` if the folder is not writable.
    """
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes | bytearray):
        data = bytes(value)
    else:
        raise UsageInvalid(f"A file needs text or bytes, not a value of type {type(value).__name__}.")
    _check_name(name)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _write(descriptor, name, data)
    finally:
        os.close(descriptor)
    return Path(folder) / name


def _check_name(name: str) -> None:
    """Raise `UsageInvalid` unless it is a plain name of a file."""
    plain = isinstance(name, str) and _NAME.fullmatch(name) and len(name.encode()) <= _NAME_MAX_BYTES
    if not plain or name.endswith((".", " ")) or _DEVICES.match(name):
        raise UsageInvalid(
            f"{str(name)[:80]!r} is not a name for a file.",
            hint="Use letters, digits, spaces and . _ - ( ) + , = @ and begin with a letter or a digit.",
        )


def _write(folder: int, name: str, data: bytes) -> None:
    """Write a file in the open folder, completely or not at all."""
    partial = f".{secrets.token_hex(8)}.partial"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(partial, flags, 0o600, dir_fd=folder), "wb") as file:
        try:
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            # A link, unlike a renaming, never replaces a file that is there.
            os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise UsageInvalid(
                f"The folder already has a file {name!r}.",
                hint="Choose another name; files are never overwritten.",
            ) from None
        finally:
            os.unlink(partial, dir_fd=folder)


def examples_of(name: str) -> list[dict[str, Any]]:
    """Return the examples of an operation, in the form of `vault.add`.

    Some have none: view_sql needs an extra, and files in bytes differ by version.
    """
    example = json.loads(_text_of("examples.json")).get(name)
    if example is None:
        return []
    arguments = {argument: _example_value(value) for argument, value in example["arguments"].items()}
    return [{"arguments": arguments, "result": _example_value(example["result"])}]


def _example_value(value: Any) -> Any:
    """Return a value of an example: a frame by its columns, in which `<text>` is the dtype of texts."""
    if not isinstance(value, dict) or "frame" not in value:
        return value
    import pandas as pd

    text = str(pd.Series(["text"]).dtype)
    columns = {
        name: [text if cell == "<text>" else cell for cell in cells] for name, cells in value["frame"].items()
    }
    return pd.DataFrame(columns).astype(value.get("types", {}))
