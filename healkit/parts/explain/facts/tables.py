"""Facts about tables: labels, joins, reshapes, filters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from healkit.parts.explain.facts.scene import (
    UNREAD,
    Facts,
    Scene,
    closeness,
    complete,
    is_array,
    is_column_or_frame,
    is_frame,
    is_index,
    is_series,
    is_text,
    label_difference,
    labels_text,
    near_label,
    nearest,
    of_package,
    plain,
    quoted,
    spoken,
)

if TYPE_CHECKING:
    import pandas as pd

_LISTS = (
    r"\A(?P<list>\[.+\]) not in index\Z",
    r"\ANone of \[\w*Index\((?P<list>\[.*?\]), dtype=",
    r"\ANone of (?P<list>\[.+\]) are in the columns\Z",
    r"\A(?P<list>\[.+\]) not found in axis\Z",
    r"\ALabel\(s\) (?P<list>\[.+\]) do not exist\Z",
    r"\AColumns not found: (?P<several>'.+')\Z",
    r"\AColumn not found: (?P<one>.+)\Z",
    r"The following (?:id_vars or value_vars are not present|'?\w+'? labels are not).*?(?P<list>\[.+\])",
    r"dtype mappings argument\. '(?P<one>.+)' not found in columns",
)
_SEPARATORS = {";": "';'", "\t": "'\\t'", "|": "'|'", ",": "','"}
_LABELS_MAX = 2000
#: There are hundreds of methods, and one is always a little similar.
_METHOD_LIKENESS = 0.8
#: Number of callers among which `apply` of a table is looked for.
_FRAMES_MAX = 12


def missing_label(scene: Scene) -> Facts | None:
    """Say which label of which table or series was asked for, and which it has."""
    owner, axis = _owner(scene)
    wanted = [] if axis is None else _wanted(scene.error, axis)
    if not wanted:
        return None
    rows = is_series(owner) or axis is owner.index
    named = scene.name_of(owner)
    facts = {
        "owner": named or ("the series" if is_series(owner) else "the table"),
        "wanted": spoken([quoted(label) for label in wanted]),
        "known": labels_text(axis, len(axis)),
        "count": f"{len(axis):,}",
    }
    if is_series(owner) and type(wanted[0]) is str and owner.index.name == wanted[0]:
        return complete({"about": "index_of_column", "owner": facts["owner"], "wanted": facts["wanted"]})
    if not facts["wanted"] or (not facts["known"] and len(axis)):
        return None
    if is_frame(owner) and (axis_facts := _other_axis(scene, owner, wanted)) is not None:
        return {**facts, **axis_facts}
    if is_series(owner) and (axis_facts := _reduced_along(scene, wanted[0])) is not None:
        return {**facts, **axis_facts}
    if any(label in axis for label in wanted):
        return None  # another axis was searched
    if is_series(owner) and (applied := _applied(scene, wanted[0])) is not None:
        return {**facts, "about": "apply_by_columns", "table": scene.name_of(applied) or "the table"}
    return {**facts, **(_row(owner, axis, wanted[0], scene) if rows else _column(owner, axis, wanted))}


def _other_axis(scene: Scene, owner: pd.DataFrame, wanted: list[Any]) -> Facts | None:
    """Return the axis that the failing call names, and the one that has the labels."""
    if all(label in owner.columns for label in wanted) is all(label in owner.index for label in wanted):
        return None
    opposites = {0: 1, 1: 0, "index": "columns", "rows": "columns", "columns": "index"}
    for keyword in scene.node.keywords if isinstance(scene.node, ast.Call) else ():
        named = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg == "axis" and named in opposites and (part := scene.text(keyword)):
            return {"about": "axis_other", "part": part, "instead": f"`axis={opposites[named]!r}`"}
    return None


def _reduced_along(scene: Scene, wanted: object) -> Facts | None:
    """Return the axis of the call that made a series of a table, where the table has the label along the other one."""
    node = scene.node.value if isinstance(scene.node, ast.Subscript) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        table = scene.value(node.func.value)
        for keyword in node.keywords if is_frame(table) and wanted in table.columns else ():
            if keyword.arg == "axis" and getattr(keyword.value, "value", None) in (1, "columns"):
                return {"about": "axis_other", "part": scene.text(keyword), "instead": "`axis=0`"}
    return None


def _applied(scene: Scene, wanted: object) -> Any:
    """Return the table whose `apply` called the code with a column, where the label is one of its columns."""
    frame = scene.frame.f_back
    for _ in range(_FRAMES_MAX):
        if frame is None:
            return None
        table = inner(frame.f_locals.get("self")) if frame.f_code.co_name == "apply_standard" else None
        if is_frame(table):
            return table if type(wanted) is str and wanted in table.columns else None
        frame = frame.f_back
    return None


def searched(scene: Scene) -> tuple[list[Any], Any]:
    """Return the labels that pandas did not find, and those that it searched; both empty for any other failure."""
    _, axis = _owner(scene)
    wanted = [] if axis is None else _wanted(scene.error, axis)
    return (wanted, axis[:_LABELS_MAX].tolist()) if wanted else ([], ())


def column_attribute(scene: Scene) -> Facts | None:
    """Say which column an attribute was meant for, or what replaces a method that pandas removed."""
    owner, name = getattr(scene.error, "obj", None), getattr(scene.error, "name", None)
    is_kept = type(name) is str and name not in GONE and "has no attribute" in str(scene.error)
    if is_series(owner) and is_kept and len(owner):
        kind = "dt" if str(owner.dtype).startswith("datetime64") else "str" if is_text(owner.iloc[0]) else ""
        named, members = scene.name_of(owner), dir(getattr(owner, kind)) if kind else []
        facts = {"about": "column_accessor", "owner": named, "wanted": f"`{name}`", "accessor": f"`.{kind}`"}
        facts |= {"instead": f"`{named.strip('`')}.{kind}.{name}`", "value": quoted(owner.iloc[0])}
        if name in members:
            return complete(facts)
        if (method := nearest(name, (member for member in dir(type(owner)) if member[0] != "_"))) is not None:
            right = f"`{method[0]}`"
            facts = {"about": "name_similar", "owner": named or "the column", "wanted": f"`{name}`"}
            return {**facts, "found": right, "right": right, "part": f"`{name}`", "known": ""}
        labels = labels_text(owner.index, len(owner.index))
        return complete(
            {
                "about": "series_attribute",
                "owner": named or "the value",
                "wanted": f"`{name}`",
                "known": labels,
            }
        )
    if type(name) is not str or not (is_frame(owner) or (is_series(owner) and name in GONE)):
        return None
    facts = {"owner": scene.name_of(owner) or "the table", "wanted": f"`{name}`"}
    if name in GONE:
        return {**facts, "about": "method_gone", "kind": f"a {type(owner).__name__}"}
    near_column = nearest(name, owner.columns)
    if is_frame(owner) and (separator_facts := one_name(name, owner.columns.tolist(), "sep")) is not None:
        return {**facts, **separator_facts}
    method = nearest(name, (member for member in dir(type(owner)) if member[0] != "_"))
    method = method if method is not None and closeness(name, method[0]) >= _METHOD_LIKENESS else None
    if method is not None and (
        near_column is None or closeness(name, method[0]) > closeness(name, near_column[0])
    ):
        right = f"`{method[0]}`"
        return {
            **facts,
            "about": "name_similar",
            "found": right,
            "right": right,
            "part": facts["wanted"],
            "known": "",
        }
    if near_column is None:
        return {"about": "no_attribute", **facts, "kind": "a DataFrame"}
    return {**facts, "about": "attribute_column", **near_label(near_column)}


#: Attributes of a table or a series that pandas removed, and what to write, likeliest first: `{o}` is the object,
#: `{a}` its arguments, `{first}` the first of them, `{rest}` the others. What it appends is looked at by the fix.
GONE = {
    "append": ("pd.concat([{o}, {first}]{rest})",),
    "iteritems": ("{o}.items()",), "ix": ("{o}.loc", "{o}.iloc"), "as_matrix": ("{o}.to_numpy()",),
    "get_value": ("{o}.at[{a}]",), "sort": ("{o}.sort_values({a})",),
    "order": ("{o}.sort_values({a})",), "applymap": ("{o}.map({a})",), "swaplevel_axis": ("{o}.swaplevel()",),
    "lookup": ("np.array([{o}.at[row, column] for row, column in zip({a})])",),
    "mad": ("({o} - {o}.mean()).abs().mean()",), "get_values": ("{o}.to_numpy()",),
    "is_monotonic": ("{o}.is_monotonic_increasing",), "pad": ("{o}.ffill({a})",), "backfill": ("{o}.bfill({a})",),
    "get_dtype_counts": ("{o}.dtypes.value_counts()",), "irow": ("{o}.iloc[{a}]",), "from_csv": ("pd.read_csv({a})",),
}  # fmt: skip


#: Methods of pandas, and what polars calls them.
_POLARS = {
    "apply": "map_rows", "fillna": "fill_null", "dropna": "drop_nulls", "astype": "cast", "isnull": "is_null",
    "isna": "is_null", "notna": "is_not_null", "notnull": "is_not_null", "isin": "is_in", "merge": "join",
    "sort_values": "sort", "assign": "with_columns", "groupby": "group_by", "nunique": "n_unique",
    "drop_duplicates": "unique", "cumsum": "cum_sum", "melt": "unpivot", "to_csv": "write_csv",
    "to_parquet": "write_parquet", "iterrows": "iter_rows", "itertuples": "iter_rows", "with_column": "with_columns",
    "agg": "select",
}  # fmt: skip
#: Methods of polars, of SQL and of R, and what pandas calls them.
_PANDAS = {polars_name: name for name, polars_name in _POLARS.items() if polars_name not in ("sort", "select", "cast", "map_rows")} | {
    "order_by": "sort_values", "arrange": "sort_values", "cast": "astype", "unique": "drop_duplicates",
    "mutate": "assign", "summarise": "agg", "summarize": "agg", "is_null": "isna",
    "write_excel": "to_excel", "write_json": "to_json", "left_join": "merge",
    "inner_join": "merge",
}  # fmt: skip


def method_elsewhere(scene: Scene) -> Facts | None:
    """Say what a table's library calls a method that the code knows from another library."""
    owner, name = getattr(scene.error, "obj", None), getattr(scene.error, "name", None)
    node = next((n for n in scene.expressions() if isinstance(n, ast.Attribute) and n.attr == name), None)
    package = next((candidate for candidate in ("polars", "pandas") if of_package(owner, candidate)), "")
    if type(name) is not str or node is None or not package:
        return None
    facts = {"owner": scene.text(node.value), "wanted": f"`{name}`", "package": package}
    if package == "polars" and name in {
        "loc",
        "iloc",
        "at",
        "iat",
        "index",
        "ix",
        "set_index",
        "reset_index",
    }:
        return complete({**facts, "about": "polars_rows"})
    equivalent = (_POLARS if package == "polars" else _PANDAS).get(name, "")
    if package == "polars" and name == "apply" and type(owner).__name__ != "DataFrame":
        equivalent = "map_elements"
    is_known = hasattr(type(owner), equivalent or "-")
    return complete({**facts, "about": "method_elsewhere", "found": f"`{equivalent}`"}) if is_known else None


_OTHER_COLUMNS = (
    r"unable to find column \"(?P<name>[^\"]+)\"",
    r"Field \"(?P<name>[^\"]+)\" (?:does not exist|exists 0 times) in schema",
    r"^\"?(?P<name>[^\"\n]+?)\"? not found",
    r"No match for FieldRef\.Name\((?P<name>[^)]+)\)",
    r"^(?P<name>\w+)(?:\n|\Z)",
)


def other_column(scene: Scene) -> Facts | None:
    """Say which columns a table of polars or pyarrow has, where the code asks for another."""
    message = str(scene.error.args[0]) if scene.error.args else ""
    match = next(
        (candidate for pattern in _OTHER_COLUMNS if (candidate := re.search(pattern, message))), None
    )
    if match is None or not quoted(match["name"]):
        return None
    for node in scene.expressions():
        value = scene.value(node)
        if value is UNREAD or not (of_package(value, "polars") or of_package(value, "pyarrow")):
            continue
        kind = type(value).__name__
        if kind not in {"DataFrame", "Table", "RecordBatch", "LazyFrame"}:
            continue
        if kind == "LazyFrame":
            columns = list(value.collect_schema().names())
        else:
            columns = list(value.columns if of_package(value, "polars") else value.column_names)
        facts = {
            "owner": scene.text(node),
            "wanted": quoted(match["name"]),
            "known": labels_text(columns, len(columns)),
        }
        if match["name"] in columns or not all(facts.values()):
            continue
        if _joins_by(scene, match["name"]):
            return {**facts, "about": "merge_key"}
        argument = "separator" if of_package(value, "polars") else "delimiter"
        if (separator_facts := one_name(match["name"], columns, argument)) is not None:
            return {**facts, **separator_facts}
        unnamed = [f"column_{place}" for place in range(len(columns))]
        first_row = (
            [quoted(cells[0]) for cells in value.head(1).to_dict(as_series=False).values()]
            if (
                of_package(value, "polars")
                and kind == "DataFrame"
                and columns[-1] in (unnamed[-1], f"column_{len(columns)}")
            )
            else []
        )
        if quoted(match["name"]) in first_row:
            return {**facts, "about": "header_in_row", "header": "`has_header=True`", "row": "1"}
        near = nearest(match["name"], columns)
        if near is None:
            return {**facts, "about": "column_missing"}
        return {**facts, "about": _about("column", match["name"], near[0]), **near_label(near)}
    return None


def one_name(wanted: object, names: Sequence[Any], argument: str) -> Facts | None:
    """Return the separator at which the only name contains the wanted one.

    argument: The parameter for it.
    """
    if len(names) == 1 and type(names[0]) is str:
        for separator, written in _SEPARATORS.items():
            if wanted in [part.strip() for part in names[0].split(separator)]:
                facts = {"separator": f"`{argument}={written}`", "column": quoted(names[0])}
                return complete({"about": "one_column", **facts})
    return None


def _joins_by(scene: Scene, name: str) -> bool:
    """Return whether the statement joins two tables by a column of that name."""
    calls = (expression for expression in scene.expressions() if isinstance(expression, ast.Call))
    keys = (
        k.value
        for call in calls
        if getattr(call.func, "attr", "") == "join"
        for k in call.keywords
        if k.arg == "on"
    )
    return any(isinstance(key, ast.Constant) and key.value == name for key in keys)


def past_end(scene: Scene) -> Facts | None:
    """Say how many rows or columns there are where a position is beyond the last."""
    indexer = scene.local("pandas", "self", accept=lambda value: value is not None)
    owner = inner(indexer) if type(indexer).__name__ in {"_iLocIndexer", "_iAtIndexer"} else indexer
    if not is_column_or_frame(owner):
        return None
    position = _position(scene)
    rows = len(owner)
    facts = {"owner": scene.name_of(owner) or "the table", "rows": f"{rows:,}", "last": f"{rows - 1:,}"}
    if rows == 0:
        return {**facts, "about": "position_of_none"}
    if type(position) is not int:
        return None
    return (
        {**facts, "about": "position_past_end", "asked": f"`{position}`"}
        if not -rows <= position < rows
        else None
    )


def _position(scene: Scene) -> Any:
    node = scene.node
    if isinstance(node, ast.Subscript):
        position = scene.value(node.slice)
        return plain(position[0]) if type(position) is tuple and position else plain(position)
    return UNREAD


def text_position(scene: Scene) -> Facts | None:
    """Say which label was given to `iloc`, which takes positions."""
    node = scene.node
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return None
    owner, label = scene.value(node.value.value), scene.value(node.slice)
    if node.value.attr != "iloc" or not is_frame(owner) or type(label) is not str:
        return None
    facts = {"owner": scene.text(node.value.value), "wanted": quoted(label)}
    if not all(facts.values()):
        return None
    if label in owner.columns:
        instead = f"`{facts['owner'].strip('`')}[{label!r}]`"
        return {**facts, "about": "iloc_of_column", "part": scene.text(node), "instead": instead}
    return {**facts, "about": "iloc_of_label"}


def inner(value: object) -> Any:
    """Return the table that an indexer or a grouping of pandas works on; None for anything else."""
    return (
        getattr(value, "obj", None)
        if of_package(value, "pandas") and not is_frame(value) and not is_series(value)
        else None
    )


def _wanted(error: BaseException, axis: pd.Index[Any]) -> list[Any]:
    """Return the missing labels from the exception's arguments, or from the message of pandas."""
    key = error.args[0] if len(error.args) == 1 else None
    if type(key) is list or is_index(key):
        missing = [label for label in list(key)[:6] if quoted(label) and label not in axis]
        return [plain(label) for label in missing]
    if type(key) is str and key not in axis:
        for pattern in _LISTS:
            if match := re.search(pattern, key, re.DOTALL):
                groups = match.groupdict()
                return (
                    [groups["one"]]
                    if groups.get("one")
                    else _read(groups.get("list") or f"[{groups.get('several')}]")
                )
    return [key] if quoted(key) else []


def _read(text: str) -> list[Any]:
    try:
        labels = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return []
    return labels[:6] if isinstance(labels, list) and all(quoted(label) for label in labels[:6]) else []


def _owner(scene: Scene) -> tuple[Any, Any]:
    """Return the table or series whose labels were searched, and the searched labels."""
    searched = None
    for frame_locals in scene.library_locals("pandas"):
        value = frame_locals.get("self")
        if is_index(value) and searched is None:
            searched = value
        for owner in _holders(frame_locals, value):
            if is_series(owner):
                return owner, owner.index if is_index(owner.index) else None
            axes = [axis for axis in (owner.columns, owner.index) if is_index(axis)]
            if searched is None:
                return owner, axes[0] if axes and axes[0] is owner.columns else None
            for axis in axes:
                if axis is searched:
                    return owner, axis
            same = [axis for axis in axes if len(axis) == len(searched) and axis.equals(searched)]
            if len(same) == 1:
                return owner, same[0]
    return None, None


def _holders(found: dict[str, Any], value: object) -> Iterator[Any]:
    """Yield the tables and series that a frame of pandas works on."""
    yield from (
        candidate for candidate in (value, inner(value), found.get("obj")) if is_column_or_frame(candidate)
    )


def _column(owner: pd.DataFrame, columns: pd.Index[Any], wanted: list[Any]) -> Facts:
    first = wanted[0]
    if type(first) is tuple and all(label in columns for label in first):
        names = ", ".join(quoted(label).strip("`") for label in first)
        return {
            "about": "columns_as_tuple",
            "instead": f"`[[{names}]]`",
            "columns": spoken([quoted(label) for label in first]),
        }
    if (separator_facts := one_name(first, list(columns), "sep")) is not None:
        return separator_facts
    if (row := _header_row(owner, first)) is not None:
        header = row if all(type(plain(name)) is int for name in columns) else row + 1
        return {"about": "header_in_row", "header": f"`header={header}`", "row": f"{row + 1}"}
    if type(first) is str and first in [name for name in owner.index.names if type(name) is str]:
        return {"about": "column_is_index"}
    if (near := nearest(first, columns)) is not None:
        return {"about": _about("column", first, near[0]), "wanted": quoted(first), **near_label(near)}
    if len(columns) == 0:
        return {"about": "no_columns"}
    return {"about": "column_missing"}


def _header_row(owner: pd.DataFrame, wanted: object) -> int | None:
    """Return the row that contains the names of the columns, with the wanted one; None if no row does.

    The columns then have no names of their own, or only the first line of the file as a name, and numbers are below.
    """
    named = [str(name) for name in owner.columns.tolist() if type(plain(name)) is not int]
    if type(wanted) is not str or any("Unnamed" not in name for name in named[1:]):
        return None
    rows = [
        [*(label if type(label) is tuple else [label] if type(label) is str else []), *row]
        for label, row in zip(owner.index.tolist()[:50], owner.head(50).to_numpy().tolist(), strict=True)
    ]
    for place, row in enumerate(rows[:5]):
        texts = {cell for cell in row if type(cell) is str and not _is_number(cell)}
        columns = zip(*rows[place + 1 :], strict=False)
        if (
            wanted in texts
            and len(texts) == len(row) > 1
            and any(all(map(_is_number, column)) for column in columns)
        ):
            return place
    return None


def _is_number(value: object) -> bool:
    text = value.strip() if type(value) is str else str(plain(value))
    return re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", text) is not None


def _row(owner: pd.DataFrame | pd.Series[Any], labels: pd.Index[Any], wanted: object, scene: Scene) -> Facts:
    if is_frame(owner) and type(wanted) is str and wanted in owner.columns:
        drops = any(isinstance(node, ast.Attribute) and node.attr == "drop" for node in scene.expressions())
        return {"about": "dropped_column" if drops else "row_is_column", "wanted": quoted(wanted)}
    wanted = plain(wanted)
    if len(labels) == 0:
        return {"about": "no_rows"}
    if (near := nearest(wanted, labels)) is not None:
        return {"about": _about("row", wanted, near[0]), "wanted": quoted(wanted), **near_label(near)}
    within = type(wanted) is int and -len(labels) <= wanted < len(labels)
    if within and isinstance(scene.node, ast.Subscript) and (instead := _by_position(scene, scene.node)):
        # Where no label is a number, a number can only be a position.
        numbered = any(type(plain(label)) in (int, float) for label in labels[:_LABELS_MAX])
        about = "label_or_position" if numbered else "label_for_position"
        return {"about": about, "part": scene.text(scene.node), "instead": f"`{instead}`"}
    return {"about": "row_missing"}


def _by_position(scene: Scene, node: ast.Subscript) -> str:
    """Return a lookup by position instead of by label; empty if that is not certain."""
    base, position = scene.text(node.value).strip("`"), scene.text(node.slice).strip("`")
    if base.endswith(".loc") and isinstance(node.slice, ast.Tuple):
        row, *columns = (scene.text(element).strip("`") for element in node.slice.elts)
        whole = len(columns) == 1 and isinstance(node.slice.elts[1], ast.Constant)
        return f"{base.removesuffix('.loc')}[{columns[0]}].iloc[{row}]" if whole and row else ""
    return f"{base.removesuffix('.loc')}.iloc[{position}]" if base and position else ""


def _about(axis: str, wanted: object, found: object) -> str:
    return f"{axis}_differs" if label_difference(wanted, found) else f"{axis}_near"


# Joins, reshapes and assignments


_ROWS_MAX = 200_000


def _merged(scene: Scene) -> tuple[Any, Any]:
    """Return the two tables that pandas merges; UNREAD for one that is not found."""
    return scene.local("pandas", "left", accept=is_frame), scene.local("pandas", "right", accept=is_frame)


def merge_key(scene: Scene) -> Facts | None:
    """Say which of the two tables of a merge lacks the key."""
    left_table, right = _merged(scene)
    key = scene.error.args[0] if scene.error.args else None
    if not (is_frame(left_table) and is_frame(right)) or type(key) is not str or not quoted(key):
        return None
    lacking = [
        table for table in (left_table, right) if key not in table.columns and key not in table.index.names
    ]
    if not lacking:
        return None
    table = lacking[0]
    which = {id(left_table): "the left table", id(right): "the right table"}[id(table)]
    facts = {"about": "merge_key", "wanted": quoted(key), "owner": scene.name_of(table) or which}
    facts["known"] = labels_text(table.columns, len(table.columns))
    return facts if len(lacking) == 1 and facts["known"] else None


def merge_nothing_common(scene: Scene) -> Facts | None:
    """List the columns of two tables without a common one."""
    left_table, right = _merged(scene)
    if not (is_frame(left_table) and is_frame(right)):
        return None
    facts = {
        "about": "merge_nothing_common",
        "left": scene.name_of(left_table) or "the left table",
        "right": scene.name_of(right) or "the right table",
        "left_columns": labels_text(left_table.columns, len(left_table.columns)),
        "right_columns": labels_text(right.columns, len(right.columns)),
    }
    return complete(facts)


def merge_types(scene: Scene) -> Facts | None:
    """Show the key of a merge on both sides, where its types differ."""
    left_table, right = _merged(scene)
    match = re.search(r"for key '(?P<key>[^']+)'", str(scene.error))
    if not (is_frame(left_table) and is_frame(right)) or match is None:
        return None
    key = match["key"]
    if key not in left_table.columns or key not in right.columns or not len(left_table) or not len(right):
        return None
    facts = {
        "about": "merge_key_types",
        "wanted": quoted(key),
        "left": scene.name_of(left_table) or "the left table",
        "right": scene.name_of(right) or "the right table",
        "left_type": f"`{left_table[key].dtype}`",
        "right_type": f"`{right[key].dtype}`",
        "left_value": quoted(left_table[key].iloc[0]),
        "right_value": quoted(right[key].iloc[0]),
    }
    return complete(facts)


def overlap(scene: Scene) -> Facts | None:
    """Say which columns both tables of a join have."""
    match = re.search(r"Index\((?P<list>\[.*?\])", str(scene.error))
    left_table, right = _merged(scene)
    if match is None:
        return None
    try:
        names = [quoted(name) for name in ast.literal_eval(match["list"])]
    except (ValueError, SyntaxError):
        return None
    facts = {"about": "join_overlap", "columns": spoken(names[:6])}
    facts["left"] = (is_frame(left_table) and scene.name_of(left_table)) or "the left table"
    facts["right"] = (is_frame(right) and scene.name_of(right)) or "the right table"
    return facts if all(names) else None


def nothing_to_concat(scene: Scene) -> Facts | None:
    """Name the empty list that the code concatenates."""
    for node in scene.expressions():
        if isinstance(node, ast.Call) and node.args and getattr(node.func, "attr", "") == "concat":
            tables = scene.value(node.args[0])
            if type(tables) in {list, tuple, dict} and not tables:
                return {"about": "concat_nothing", "given": scene.text(node.args[0])}
    return None


def concat_without_list(scene: Scene) -> Facts | None:
    """Name the tables that `concat` got as separate arguments."""
    node = scene.node
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "concat" or len(node.args) < 2:
        return None
    values, names = [scene.value(arg) for arg in node.args], [scene.text(arg) for arg in node.args]
    if not all(is_column_or_frame(value) for value in values) or not all(names):
        return None
    together = ", ".join(name.strip("`") for name in names)
    return {
        "about": "concat_without_list",
        "tables": spoken(names),
        "given": f"`{together}`",
        "instead": f"`[{together}]`",
    }


def pivot_duplicates(scene: Scene) -> Facts | None:
    """Name the first pair that occurs twice in a table to pivot."""
    table = scene.local("pandas", "data", accept=is_frame)
    index = scene.local("pandas", "index", accept=is_text)
    columns = scene.local("pandas", "columns", accept=is_text)
    if not is_frame(table) or not is_text(index) or not is_text(columns):
        return None
    if index not in table.columns or columns not in table.columns:
        return None
    pair = [index, columns]
    twice = table[table.duplicated(pair, keep=False)]
    if not len(twice):
        return None
    first = twice.iloc[0]
    times = int(((twice[index] == first[index]) & (twice[columns] == first[columns])).sum())
    facts = {
        "about": "pivot_duplicates",
        "owner": scene.name_of(table) or "the table",
        "index": quoted(index), "columns": quoted(columns),
        "row": quoted(first[index]), "column": quoted(first[columns]), "times": f"{times:,}",
    }  # fmt: skip
    return complete(facts)


def duplicate_index(scene: Scene) -> Facts | None:
    """Name the labels that an index has more than once."""
    owner: pd.DataFrame | pd.Series[Any] | None = None
    for frame_locals in scene.library_locals("pandas"):
        if is_column_or_frame(frame_locals.get("self")):
            owner = frame_locals["self"]
    if owner is None:
        return None
    axes = [("index", owner.index)] + ([("columns", owner.columns)] if is_frame(owner) else [])
    for name, axis in axes:
        if is_index(axis) and not axis.is_unique and len(axis) <= _ROWS_MAX:
            twice = axis[axis.duplicated()].unique()
            labels = labels_text(twice, len(twice))
            if labels:
                owner_name = scene.name_of(owner) or "the table"
                return {"about": "labels_twice", "owner": owner_name, "axis": name, "labels": labels}
    return None


def column_length(scene: Scene) -> Facts | None:
    """Say how long the table is, and how long its new column."""
    match = re.search(
        r"Length of values \((\d+)\) does not match length of index \((\d+)\)", str(scene.error)
    )
    statement = scene.statement
    if (
        match is None
        or not isinstance(statement, ast.Assign)
        or not isinstance(statement.targets[0], ast.Subscript)
    ):
        return None
    owner = scene.value(statement.targets[0].value)
    if not is_frame(owner) or len(owner) != int(match[2]):
        return None
    facts = {
        "about": "column_length",
        "owner": scene.text(statement.targets[0].value),
        "values": scene.text(statement.value) or "the new column",
        "given": match[1],
        "rows": match[2],
    }
    return facts if facts["owner"] else None


def column_lengths(scene: Scene) -> Facts | None:
    """Say how long each column of the new table is."""
    data = scene.local("pandas", "data", accept=lambda value: type(value) is dict)
    if type(data) is not dict or len(data) > 12:
        return None
    sizes = {
        key: len(value) for key, value in data.items() if type(value) in {list, tuple} or is_array(value)
    }
    if len(sizes) != len(data) or len(set(sizes.values())) < 2 or not all(quoted(key) for key in sizes):
        return None
    return {
        "about": "column_lengths",
        "sizes": spoken([f"{quoted(key)} has {size:,}" for key, size in sizes.items()]),
    }


def too_few_names(scene: Scene) -> Facts | None:
    """Say how many columns there are, and how many names were given."""
    match = re.search(r"Expected axis has (\d+) elements, new values have (\d+) elements", str(scene.error))
    statement = scene.statement
    if (
        match is None
        or not isinstance(statement, ast.Assign)
        or not isinstance(statement.targets[0], ast.Attribute)
    ):
        return None
    target = statement.targets[0]
    owner = scene.value(target.value)
    if target.attr not in {"columns", "index"} or not is_column_or_frame(owner):
        return None
    axis = getattr(owner, target.attr)
    if len(axis) != int(match[1]) or not labels_text(axis, len(axis)):
        return None
    return {
        "about": "too_few_names",
        "owner": scene.text(target.value),
        "what": target.attr if target.attr == "columns" else "rows",
        "has": match[1],
        "given": match[2],
        "known": labels_text(axis, len(axis)),
    }


def only_scalars(scene: Scene) -> Facts | None:
    """Show the single values that the code makes a table of."""
    data = scene.local("pandas", "data", accept=lambda value: type(value) is dict)
    if type(data) is not dict or not data or any(not quoted(key) for key in data):
        return None
    node = next((node for node in scene.expressions() if scene.value(node) is data), None)
    text = scene.text(node) if node is not None else ""
    if not text:
        return None
    return {
        "about": "only_scalars",
        "given": text,
        "keys": labels_text(data, len(data)),
        "instead": f"`[{text.strip('`')}]`",
    }


def filter_length(scene: Scene) -> Facts | None:
    """Say how long a filter is, and how long the table that it filters."""
    match = re.search(
        r"Item wrong length (\d+) instead of (\d+)|Boolean index has wrong length: (\d+) instead of (\d+)",
        str(scene.error),
    )
    node = scene.node
    if match is None or not isinstance(node, ast.Subscript):
        return None
    filter_size, rows = [number for number in match.groups() if number]
    owner = scene.value(node.value)
    if not is_column_or_frame(owner) or len(owner) != int(rows):
        return None
    facts = {
        "about": "filter_length",
        "owner": scene.text(node.value),
        "filter": scene.text(node.slice),
        "given": filter_size,
        "rows": rows,
    }
    return complete(facts)


def filter_index(scene: Scene) -> Facts | None:
    """Show the labels of a filter and of the table that it filters."""
    node = scene.node
    if not isinstance(node, ast.Subscript):
        return None
    owner, mask = scene.value(node.value), scene.value(node.slice)
    if not is_column_or_frame(owner) or not is_series(mask):
        return None
    facts = {
        "about": "filter_index",
        "owner": scene.text(node.value),
        "filter": scene.text(node.slice),
        "labels": labels_text(owner.index, len(owner)),
        "given": labels_text(mask.index, len(mask)),
    }
    return complete(facts)


def usecols(scene: Scene) -> Facts | None:
    """Say which columns the file has where `usecols` names another."""
    match = re.search(r"columns expected but not found: (?P<list>\[.+\])", str(scene.error))
    names = scene.local("pandas", "orig_names", "names", accept=lambda value: type(value) is list)
    if match is None or type(names) is not list or not labels_text(names, len(names)):
        return None
    return {
        "about": "usecols_missing",
        "wanted": f"`{match['list']}`",
        "known": labels_text(names, len(names)),
    }
