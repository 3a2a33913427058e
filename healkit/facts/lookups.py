"""Facts about labels that a table or a series does not have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from healkit.facts.labels import difference, listed, nearest, plain, shown, spoken
from healkit.facts.scene import UNREAD, Scene, is_frame, is_index, is_series, of_package

Facts = dict[str, str]
_LISTS = (
    r"\A(?P<list>\[.+\]) not in index\Z",
    r"\ANone of \[\w*Index\((?P<list>\[.*?\]), dtype=",
    r"\ANone of (?P<list>\[.+\]) are in the columns\Z",
    r"\A(?P<list>\[.+\]) not found in axis\Z",
    r"\ALabel\(s\) (?P<list>\[.+\]) do not exist\Z",
    r"\AColumns not found: (?P<several>'.+')\Z",
    r"\AColumn not found: (?P<one>.+)\Z",
)
_SEPARATORS = {";": "';'", "\t": "'\\t'", "|": "'|'"}
_LABELS_MAX = 2000


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
        "wanted": spoken([shown(one) for one in wanted]),
        "known": listed(axis, len(axis)),
        "count": f"{len(axis):,}",
    }
    if not facts["wanted"] or (not facts["known"] and len(axis)):
        return None
    return {**facts, **(_row(owner, axis, wanted[0], scene) if rows else _column(owner, axis, wanted))}


def searched(scene: Scene) -> tuple[list[Any], Any]:
    """Return the labels that pandas did not find, and those that it searched; both empty for any other failure."""
    _, axis = _owner(scene)
    wanted = [] if axis is None else _wanted(scene.error, axis)
    return (wanted, axis[:_LABELS_MAX].tolist()) if wanted else ([], ())


def column_attribute(scene: Scene) -> Facts | None:
    """Say which column an attribute was meant for, or what replaces a method that pandas removed."""
    owner, name = getattr(scene.error, "obj", None), getattr(scene.error, "name", None)
    if not is_frame(owner) or type(name) is not str:
        return None
    facts = {"owner": scene.name_of(owner) or "the table", "wanted": f"`{name}`"}
    if name in _GONE:
        return {**facts, "about": "method_gone", "instead": f"`{_GONE[name]}`"}
    found = nearest(name, owner.columns)
    if found is None:
        return {"about": "no_attribute", **facts, "kind": "a DataFrame"}
    return {**facts, "about": "attribute_column", "found": shown(found[0]), "how": found[1]}


#: Methods of a table that pandas 1 and 2 removed, and what replaces them.
_GONE = {
    "append": "pd.concat([…])", "ix": ".loc[…]", "iteritems": ".items()", "as_matrix": ".to_numpy()",
    "get_value": ".at[…]", "set_value": ".at[…]", "sort": ".sort_values(…)", "applymap": ".map(…)",
    "swaplevel_axis": ".swaplevel()", "lookup": ".loc[…]", "mad": ".std()",
}  # fmt: skip


def past_end(scene: Scene) -> Facts | None:
    """Say how many rows or columns there are where a position is beyond the last."""
    indexer = scene.local("pandas", "self", accept=lambda value: value is not None)
    owner = inner(indexer) if type(indexer).__name__ in {"_iLocIndexer", "_iAtIndexer"} else indexer
    if not (is_frame(owner) or is_series(owner)):
        return None
    asked = _position(scene)
    rows = len(owner)
    facts = {"owner": scene.name_of(owner) or "the table", "rows": f"{rows:,}", "last": f"{rows - 1:,}"}
    if rows == 0:
        return {**facts, "about": "position_of_none"}
    if type(asked) is not int:
        return None
    return (
        {**facts, "about": "position_past_end", "asked": f"`{asked}`"} if not -rows <= asked < rows else None
    )


def _position(scene: Scene) -> Any:
    node = scene.node
    if isinstance(node, ast.Subscript):
        asked = scene.value(node.slice)
        return plain(asked[0]) if type(asked) is tuple and asked else plain(asked)
    return UNREAD


def text_position(scene: Scene) -> Facts | None:
    """Say which label was given to `iloc`, which takes positions."""
    node = scene.node
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return None
    owner, asked = scene.value(node.value.value), scene.value(node.slice)
    if node.value.attr != "iloc" or not is_frame(owner) or type(asked) is not str:
        return None
    facts = {"owner": scene.text(node.value.value), "wanted": shown(asked)}
    if not all(facts.values()):
        return None
    if asked in owner.columns:
        return {**facts, "about": "iloc_of_column", "instead": f"`{facts['owner'].strip('`')}[{asked!r}]`"}
    return {**facts, "about": "iloc_of_label"}


def inner(value: Any) -> Any:
    """Return the table that an indexer or a grouping of pandas works on; None for anything else."""
    return (
        getattr(value, "obj", None)
        if of_package(value, "pandas") and not is_frame(value) and not is_series(value)
        else None
    )


def _wanted(error: BaseException, axis: Any) -> list[Any]:
    """Return the missing labels from the exception's arguments, or from the message of pandas."""
    key = error.args[0] if len(error.args) == 1 else None
    if type(key) is str and key not in axis:
        for pattern in _LISTS:
            if match := re.search(pattern, key, re.DOTALL):
                found = match.groupdict()
                return (
                    [found["one"]]
                    if found.get("one")
                    else _read(found.get("list") or f"[{found.get('several')}]")
                )
    return [key] if shown(key) else []


def _read(text: str) -> list[Any]:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return []
    return found[:6] if isinstance(found, list) and all(shown(one) for one in found[:6]) else []


def _owner(scene: Scene) -> tuple[Any, Any]:
    """Return the table or series whose labels were searched, and the searched labels."""
    searched = None
    for found in scene.library_locals("pandas"):
        value = found.get("self")
        if is_index(value) and searched is None:
            searched = value
        for owner in _holders(found, value):
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


def _holders(found: dict[str, Any], value: Any) -> Iterator[Any]:
    """Yield the tables and series that a frame of pandas works on."""
    yield from (one for one in (value, inner(value), found.get("obj")) if is_frame(one) or is_series(one))


def _column(owner: Any, columns: Any, wanted: list[Any]) -> Facts:
    first = wanted[0]
    if type(first) is tuple and all(one in columns for one in first):
        names = ", ".join(shown(one).strip("`") for one in first)
        return {
            "about": "columns_as_tuple",
            "instead": f"`[[{names}]]`",
            "columns": spoken([shown(one) for one in first]),
        }
    if len(columns) == 1 and type(columns[0]) is str:
        for separator, written in _SEPARATORS.items():
            if first in [part.strip() for part in columns[0].split(separator)]:
                return {"about": "one_column", "separator": f"`sep={written}`", "column": shown(columns[0])}
    if type(first) is str and first in [name for name in owner.index.names if type(name) is str]:
        return {"about": "column_is_index"}
    if (near := nearest(first, columns)) is not None:
        return {
            "about": _about("column", first, near[0]),
            "wanted": shown(first),
            "found": shown(near[0]),
            "how": near[1],
        }
    if len(columns) == 0:
        return {"about": "no_columns"}
    return {"about": "column_missing"}


def _row(owner: Any, labels: Any, wanted: Any, scene: Scene) -> Facts:
    if is_frame(owner) and type(wanted) is str and wanted in owner.columns:
        drops = any(isinstance(node, ast.Attribute) and node.attr == "drop" for node in scene.expressions())
        return {"about": "dropped_column" if drops else "row_is_column", "wanted": shown(wanted)}
    wanted = plain(wanted)
    if len(labels) == 0:
        return {"about": "no_rows"}
    if (near := nearest(wanted, labels)) is not None:
        return {
            "about": _about("row", wanted, near[0]),
            "wanted": shown(wanted),
            "found": shown(near[0]),
            "how": near[1],
        }
    if type(wanted) is int and isinstance(scene.node, ast.Subscript) and -len(labels) <= wanted < len(labels):
        return {"about": "label_for_position", "instead": f"`.iloc[{wanted}]`"}
    return {"about": "row_missing"}


def _about(axis: str, wanted: Any, found: Any) -> str:
    return f"{axis}_differs" if difference(wanted, found) else f"{axis}_near"
