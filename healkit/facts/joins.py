"""Facts about failed joins, reshapes and assignments."""

from __future__ import annotations

import ast
import re
from typing import Any

from healkit.facts.labels import listed, shown, spoken
from healkit.facts.lookups import Facts
from healkit.facts.scene import UNREAD, Scene, is_array, is_frame, is_index, is_series

_ROWS_MAX = 200_000


def _is_text(value: Any) -> bool:
    return type(value) is str


def merge_key(scene: Scene) -> Facts | None:
    """Say which of the two tables of a merge lacks the key."""
    left, right = (
        scene.local("pandas", "left", accept=is_frame),
        scene.local("pandas", "right", accept=is_frame),
    )
    key = scene.error.args[0] if scene.error.args else None
    if not (is_frame(left) and is_frame(right)) or type(key) is not str or not shown(key):
        return None
    lacking = [table for table in (left, right) if key not in table.columns and key not in table.index.names]
    if not lacking:
        return None
    table = lacking[0]
    which = {id(left): "the left table", id(right): "the right table"}[id(table)]
    facts = {"about": "merge_key", "wanted": shown(key), "owner": scene.name_of(table) or which}
    facts["known"] = listed(table.columns, len(table.columns))
    return facts if len(lacking) == 1 and facts["known"] else None


def merge_nothing_common(scene: Scene) -> Facts | None:
    """List the columns of two tables without a common one."""
    left, right = (
        scene.local("pandas", "left", accept=is_frame),
        scene.local("pandas", "right", accept=is_frame),
    )
    if not (is_frame(left) and is_frame(right)):
        return None
    facts = {
        "about": "merge_nothing_common",
        "left": scene.name_of(left) or "the left table",
        "right": scene.name_of(right) or "the right table",
        "left_columns": listed(left.columns, len(left.columns)),
        "right_columns": listed(right.columns, len(right.columns)),
    }
    return facts if all(facts.values()) else None


def merge_types(scene: Scene) -> Facts | None:
    """Show the key of a merge on both sides, where its types differ."""
    left, right = (
        scene.local("pandas", "left", accept=is_frame),
        scene.local("pandas", "right", accept=is_frame),
    )
    match = re.search(r"for key '(?P<key>[^']+)'", str(scene.error))
    if not (is_frame(left) and is_frame(right)) or match is None:
        return None
    key = match["key"]
    if key not in left.columns or key not in right.columns or not len(left) or not len(right):
        return None
    facts = {
        "about": "merge_key_types",
        "wanted": shown(key),
        "left": scene.name_of(left) or "the left table",
        "right": scene.name_of(right) or "the right table",
        "left_type": f"`{left[key].dtype}`",
        "right_type": f"`{right[key].dtype}`",
        "left_value": shown(left[key].iloc[0]),
        "right_value": shown(right[key].iloc[0]),
    }
    return facts if all(facts.values()) else None


def overlap(scene: Scene) -> Facts | None:
    """Say which columns both tables of a join have."""
    match = re.search(r"Index\((?P<list>\[.*?\])", str(scene.error))
    left, right = (
        scene.local("pandas", "left", accept=is_frame),
        scene.local("pandas", "right", accept=is_frame),
    )
    if match is None:
        return None
    try:
        names = [shown(one) for one in ast.literal_eval(match["list"])]
    except (ValueError, SyntaxError):
        return None
    facts = {"about": "join_overlap", "columns": spoken(names[:6])}
    facts["left"] = (is_frame(left) and scene.name_of(left)) or "the left table"
    facts["right"] = (is_frame(right) and scene.name_of(right)) or "the right table"
    return facts if all(names) else None


def nothing_to_concat(scene: Scene) -> Facts | None:
    """Name the empty list that the code concatenates."""
    for node in scene.expressions():
        if isinstance(node, ast.Call) and node.args and getattr(node.func, "attr", "") == "concat":
            given = scene.value(node.args[0])
            if type(given) in {list, tuple, dict} and not given:
                return {"about": "concat_nothing", "given": scene.text(node.args[0])}
    return None


def concat_without_list(scene: Scene) -> Facts | None:
    """Name the tables that `concat` got as separate arguments."""
    node = scene.node
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "concat" or len(node.args) < 2:
        return None
    values, names = [scene.value(arg) for arg in node.args], [scene.text(arg) for arg in node.args]
    if not all(is_frame(value) or is_series(value) for value in values) or not all(names):
        return None
    together = ", ".join(name.strip("`") for name in names)
    return {"about": "concat_without_list", "tables": spoken(names), "instead": f"`[{together}]`"}


def pivot_duplicates(scene: Scene) -> Facts | None:
    """Name the first pair that occurs twice in a table to pivot."""
    table = scene.local("pandas", "data", accept=is_frame)
    index, columns = (
        scene.local("pandas", "index", accept=_is_text),
        scene.local("pandas", "columns", accept=_is_text),
    )
    if not is_frame(table) or type(index) is not str or type(columns) is not str:
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
        "index": shown(index), "columns": shown(columns),
        "row": shown(first[index]), "column": shown(first[columns]), "times": f"{times:,}",
    }  # fmt: skip
    return facts if all(facts.values()) else None


def duplicate_index(scene: Scene) -> Facts | None:
    """Name the labels that an index has more than once."""
    owner = UNREAD
    for found in scene.library_locals("pandas"):
        if is_frame(found.get("self")) or is_series(found.get("self")):
            owner = found["self"]
    if owner is UNREAD:
        return None
    axes = [("index", owner.index)] + ([("columns", owner.columns)] if is_frame(owner) else [])
    for name, axis in axes:
        if is_index(axis) and not axis.is_unique and len(axis) <= _ROWS_MAX:
            twice = axis[axis.duplicated()].unique()
            labels = listed(twice, len(twice))
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
    if len(sizes) != len(data) or len(set(sizes.values())) < 2 or not all(shown(key) for key in sizes):
        return None
    return {
        "about": "column_lengths",
        "sizes": spoken([f"{shown(key)} has {size:,}" for key, size in sizes.items()]),
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
    if target.attr not in {"columns", "index"} or not (is_frame(owner) or is_series(owner)):
        return None
    axis = getattr(owner, target.attr)
    if len(axis) != int(match[1]) or not listed(axis, len(axis)):
        return None
    return {
        "about": "too_few_names",
        "owner": scene.text(target.value),
        "what": target.attr if target.attr == "columns" else "rows",
        "has": match[1],
        "given": match[2],
        "known": listed(axis, len(axis)),
    }


def only_scalars(scene: Scene) -> Facts | None:
    """Show the single values that the code makes a table of."""
    data = scene.local("pandas", "data", accept=lambda value: type(value) is dict)
    if type(data) is not dict or not data or any(not shown(key) for key in data):
        return None
    node = next((node for node in scene.expressions() if scene.value(node) is data), None)
    given = scene.text(node) if node is not None else ""
    if not given:
        return None
    return {
        "about": "only_scalars",
        "given": given,
        "keys": listed(data, len(data)),
        "instead": f"`[{given.strip('`')}]`",
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
    given, rows = [one for one in match.groups() if one]
    owner = scene.value(node.value)
    if not (is_frame(owner) or is_series(owner)) or len(owner) != int(rows):
        return None
    facts = {
        "about": "filter_length",
        "owner": scene.text(node.value),
        "filter": scene.text(node.slice),
        "given": given,
        "rows": rows,
    }
    return facts if all(facts.values()) else None


def filter_index(scene: Scene) -> Facts | None:
    """Show the labels of a filter and of the table that it filters."""
    node = scene.node
    if not isinstance(node, ast.Subscript):
        return None
    owner, given = scene.value(node.value), scene.value(node.slice)
    if not (is_frame(owner) or is_series(owner)) or not is_series(given):
        return None
    facts = {
        "about": "filter_index",
        "owner": scene.text(node.value),
        "filter": scene.text(node.slice),
        "labels": listed(owner.index, len(owner)),
        "given": listed(given.index, len(given)),
    }
    return facts if all(facts.values()) else None


def usecols(scene: Scene) -> Facts | None:
    """Say which columns the file has where `usecols` names another."""
    match = re.search(r"columns expected but not found: (?P<list>\[.+\])", str(scene.error))
    names = scene.local("pandas", "orig_names", "names", accept=lambda value: type(value) is list)
    if match is None or type(names) is not list or not listed(names, len(names)):
        return None
    return {"about": "usecols_missing", "wanted": f"`{match['list']}`", "known": listed(names, len(names))}
