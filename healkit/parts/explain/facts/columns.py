"""Facts about columns: failed conversions, wrong types."""

from __future__ import annotations

import ast
import datetime
import itertools
import math
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from healkit.parts.explain.facts.scene import (
    UNREAD,
    Facts,
    Scene,
    complete,
    is_array,
    is_column_or_frame,
    is_frame,
    is_kind,
    is_series,
    labels_text,
    own_dict,
    quoted,
)
from healkit.parts.explain.facts.values import cleaning_of, is_number
from healkit.plain_text import count

if TYPE_CHECKING:
    import pandas as pd

_SCANNED_MAX = 100_000
#: Ends with the text that is not a number.
_NO_NUMBER = re.compile(
    r"(?:(?P<whole>invalid literal for int\(\) with base 10)|could not convert string to float): ('.*'|\".*\")"
)


def missing_to_int(scene: Scene) -> Facts | None:
    """Say which rows of which column have no value where the code converts to integers."""
    owner = converted(scene)
    if is_series(owner) and _is_float(owner):
        return _gaps(scene, owner)
    if is_frame(owner):
        columns = [name for name in owner.columns if _is_float(owner[name]) and owner[name].isna().any()]
        if columns and owner.columns.is_unique and (names := labels_text(columns, len(columns))):
            return {
                "about": "gaps_in_columns",
                "owner": scene.name_of(owner) or "the table",
                "columns": names,
            }
    return None


def _is_float(column: pd.Series[Any]) -> bool:
    return str(column.dtype).startswith(("float", "Float"))


def _gaps(scene: Scene, owner: pd.Series[Any]) -> Facts | None:
    gaps = owner[owner.isna()]
    named = scene.name_of(owner) or "the column"
    if len(gaps):
        facts = {
            "about": "gaps",
            "owner": named,
            "count": f"{len(gaps):,}",
            "rows": f"{len(owner):,}",
            "row": quoted(gaps.index[0]),
        }
        return facts if facts["row"] else None
    infinite = owner[owner.abs() == math.inf]
    if not len(infinite) or not quoted(infinite.index[0]):
        return None
    return {
        "about": "infinite",
        "owner": named,
        "row": quoted(infinite.index[0]),
        "value": f"`{float(infinite.iloc[0])}`",
    }


def converted(scene: Scene) -> Any:
    """Return the table or series that pandas worked on, the outermost one."""
    owner = UNREAD
    for frame_locals in scene.library_locals("pandas"):
        if is_column_or_frame(frame_locals.get("self")):
            owner = frame_locals["self"]
    return owner


def number_text(scene: Scene) -> Facts | None:
    """Say which row holds the text that is not a number."""
    match = _NO_NUMBER.search(str(scene.error))
    if match is None:
        return None
    try:
        text = ast.literal_eval(match[2])
    except (ValueError, SyntaxError):
        return None
    node = scene.node
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"int", "float"}
        and node.args
    ):
        argument = node.args[0]
        facts = {
            "about": "text_not_number",
            "owner": scene.text(argument),
            "value": quoted(text),
            "kind": f"`{node.func.id}`",
        }
        facts |= _why_no_number(text, node.func.id)
        readable = not isinstance(argument, ast.Constant) and scene.value(argument) == text
        beside = _cleaning(text, _looped_over(scene, argument))
        return {**facts, **beside} if readable and all(facts.values()) else beside or None
    owner = converted(scene)
    if is_frame(owner):
        return _in_columns(scene, owner, text)
    if is_series(owner):
        return _row_of(
            scene, owner, text, "row_not_number", _why_no_number(text, "int" if match["whole"] else "float")
        )
    return _in_list(scene, text)


def _in_columns(scene: Scene, owner: pd.DataFrame, text: str) -> Facts | None:
    for name in owner.columns if owner.columns.is_unique else ():
        if facts := _row_of(scene, owner[name], text, "row_not_number", _why_no_number(text, "float")):
            column = f"{scene.name_of(owner) or 'the table'}, column {quoted(name)}"
            return {**facts, "owner": column} if quoted(name) else None
    return None


def _in_list(scene: Scene, text: str) -> Facts | None:
    """Say at which index of a list the text is that an array cannot hold."""
    for node in scene.expressions():
        if not isinstance(node, ast.Name):
            continue
        values = scene.value(node)
        if (
            type(values) is list
            and len(values) <= _SCANNED_MAX
            and any(type(v) is str and v == text for v in values)
        ):
            at = next(at for at, value in enumerate(values) if type(value) is str and value == text)
            facts = {"about": "item_not_number", "owner": f"`{node.id}[{at}]`", "value": quoted(text)}
            return {**facts, **_why_no_number(text, "float")} if facts["value"] else None
    return None


def _why_no_number(text: str, kind: str) -> Facts:
    """Say why a text is not a number."""
    stripped = text.strip()
    if not stripped:
        return {"reason": "It has no digits: it is empty or has only white space.", "remedy": ""}
    if kind == "int" and re.fullmatch(r"[-+]?\d*\.\d*", stripped) and re.search(r"\d", stripped):
        return {
            "reason": "It has a decimal point, and `int` accepts only integers.",
            "remedy": "`int(float(…))`",
        }
    if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", stripped):
        return {"reason": "It has a comma between thousands.", "remedy": "`.replace(',', '')`"}
    if re.fullmatch(r"[-+]?\d+,\d+", stripped):
        return {
            "reason": "It has a decimal comma; Python needs a decimal point.",
            "remedy": "`.replace(',', '.')`",
        }
    if re.search(r"\d", stripped):
        return {"reason": "It contains more than digits, a sign and a decimal point.", "remedy": ""}
    return {"reason": "It has no digits.", "remedy": ""}


def _row_of(scene: Scene, owner: pd.Series[Any], text: str, about: str, more: Facts) -> Facts | None:
    if len(owner) > _SCANNED_MAX:
        return None
    places = [at for at, value in enumerate(owner.tolist()) if type(value) is str and value == text]
    if not places or not quoted(text):
        return None
    row = quoted(owner.index[places[0]])
    count = "" if len(places) == 1 else f" ({len(places):,} rows contain it)"
    facts = {
        "about": about,
        "owner": scene.name_of(owner) or "the column",
        "row": row,
        "value": quoted(text),
        "count": count,
    }
    beside = _cleaning(text, owner.tolist()) if about == "row_not_number" else {}
    return {**facts, **more, **beside} if row else None


def _cleaning(text: str, others: Sequence[object]) -> Facts:
    """Return a cleaning that makes numbers of all texts, as a fact; empty if there is none."""
    cleaning = cleaning_of(text, others) if others else ""
    return {"cleaning": cleaning} if cleaning else {}


def _looped_over(scene: Scene, node: ast.expr) -> list[Any]:
    """Return the items of the list that a comprehension or a loop goes over; empty if that is not known."""
    for loops in scene.all(ast.comprehension), scene.all(ast.For):
        for loop in loops:
            values = scene.value(loop.iter)
            if isinstance(node, ast.Name) and isinstance(loop.target, ast.Name) and loop.target.id == node.id:
                return values[:_SCANNED_MAX] if type(values) is list else []
    return []


def to_numeric(scene: Scene) -> Facts | None:
    """Say which row `to_numeric` could not read."""
    match = re.search(
        r"Unable to parse string (?P<text>\".*?\"|'.*?') at position (?P<at>\d+)", str(scene.error)
    )
    owner = scene.local("pandas", "arg", accept=is_series)
    if match is None or not is_series(owner):
        return None
    text = match["text"][1:-1]
    return _row_of(scene, owner, text, "row_not_number", _why_no_number(text, "float"))


def to_datetime(scene: Scene) -> Facts | None:
    """Say which row `to_datetime` could not read, and which format it expected."""
    owner = UNREAD
    format_argument = None
    for frame_locals in scene.library_locals("pandas"):
        if "arg" in frame_locals and "format" in frame_locals:
            owner, format_argument = frame_locals["arg"], frame_locals["format"]
    if not is_series(owner) or len(owner) > _SCANNED_MAX:
        return None
    message = str(scene.error)
    match = re.search(r"time data \"(?P<text>.*?)\" doesn't match format \"(?P<form>.*?)\"", message)
    form = match["form"] if match else format_argument
    if type(form) is not str or "`" in form:
        return None
    texts = [value for value in owner.tolist() if type(value) is str]
    text = match["text"] if match else next(itertools.filterfalse(lambda one: _fits(one, form), texts), None)
    if text is None:
        return None
    day = re.search(r"is out of range for month|month must be in 1\.\.12", message)
    about = "no_such_day" if day else "row_other_form" if format_argument is None else "row_not_of_form"
    return _row_of(scene, owner, text, about, {"form": f"`{form}`", "first": quoted(texts[0])})


def _fits(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)  # noqa: DTZ007 - only tried, the time is not used
    except ValueError:
        return False
    return True


# Columns of the wrong kind


def truth(scene: Scene) -> Facts | None:
    """Say which part of the line has many values, how many, and what needs a single one."""
    tested_value = scene.local("pandas", "self", accept=is_column_or_frame)
    node = scene.node
    if node is None:
        return None
    around = (
        [n for n in ast.walk(scene.statement) if node in ast.walk(n)] if scene.statement is not None else []
    )
    chain = next((n for n in around if isinstance(n, ast.Compare) and len(n.ops) > 1), None)
    both = next((n for n in reversed(around) if isinstance(n, ast.BoolOp)), None)
    negated = next((n for n in around if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)), None)
    facts = {"about": "truth_of_many", "size": "", "part": scene.text(node)}
    if chain is not None:
        facts |= {"about": "truth_of_chain", "part": scene.text(chain), "joined": _written(chain)}
        return facts if facts["part"] and facts["joined"] else None
    if both is not None:
        first = both.values[0]
        facts |= {"asker": "`and`" if isinstance(both.op, ast.And) else "`or`", "part": scene.text(first)}
        facts |= {"about": "truth_of_both", "sign": "`&`" if isinstance(both.op, ast.And) else "`|`"}
        node = first
    elif negated is not None:
        facts |= {"asker": "`not`", "part": scene.text(negated.operand)}
        node = negated.operand
    elif isinstance(scene.statement, ast.If | ast.While | ast.Assert):
        facts["asker"] = f"`{type(scene.statement).__name__.lower()}`"
        facts["part"] = scene.text(scene.statement.test)
        node = scene.statement.test
    else:
        return None
    size = _size(tested_value) or _size_of(scene, node)
    return {**facts, "size": size} if size and facts["part"] else None


def _written(chain: ast.Compare) -> str:
    """Write the two conditions of `a > 2 & b < 9` with brackets around each."""
    match chain:
        case ast.Compare(
            left=left, ops=[first, last], comparators=[ast.BinOp(left=a, op=op, right=b), right]
        ):
            sign = {ast.BitAnd: "&", ast.BitOr: "|"}.get(type(op))
            if sign:
                parts = [ast.Compare(left, [first], [a]), ast.Compare(b, [last], [right])]
                text = f" {sign} ".join(f"({ast.unparse(part)})" for part in parts)
                return f"`{text}`" if "`" not in text and len(text) < 80 else ""
    return ""


def _size(value: object) -> str:
    if is_frame(value):
        return f"{count(value.shape[0], 'row')} and {count(value.shape[1], 'column')}"
    return f"{value.size:,} values" if is_series(value) or is_array(value) else ""


def _size_of(scene: Scene, node: ast.expr) -> str:
    """Return the size of an expression; for a comparison, that of its larger side."""
    values = [
        scene.value(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript)
    ]
    sizes = {value.shape for value in values if (is_array(value) or is_series(value)) and value.size > 1}
    return f"{math.prod(sizes.pop()):,} values" if len(sizes) == 1 else ""


def accessor(scene: Scene) -> Facts | None:
    """Say what the column of a `.str` or `.dt` holds."""
    match = re.search(r"Can only use \.(\w+) accessor", str(scene.error))
    owner = scene.local("pandas", "data", "obj", accept=is_series)
    if match is None or not is_series(owner) or not len(owner):
        return None
    first = next((value for value in owner.iloc[:100].tolist() if value is not None and value == value), None)
    named = scene.name_of(owner)
    facts = {
        "owner": named or "the column",
        "dtype": f"`{owner.dtype}`",
        "value": quoted(first),
        "accessor": f"`.{match[1]}`",
    }
    if not facts["value"]:
        return None
    if match[1] == "dt" and type(first) is str and named:
        return {**facts, "about": "dt_of_text", "instead": f"`pd.to_datetime({named.strip('`')})`"}
    return {
        **facts,
        "about": "accessor_of_other",
        "needs": {"str": "text", "dt": "times", "cat": "categories"}[match[1]],
    }


def zones(scene: Scene) -> Facts | None:
    """Say which of two times has a time zone and which has none."""
    node = scene.node
    if isinstance(node, ast.Compare):
        sides: list[ast.expr] = [node.left, node.comparators[0]]
    elif isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
    else:
        return None
    zone_by_text = {scene.text(side): _zone(scene.value(side)) for side in sides}
    unread = [text for text, zone in zone_by_text.items() if zone is None]
    if len(unread) == 1:  # one that is made in the statement
        operand = scene.local("pandas", "other", "right", accept=lambda value: _zone(value) is not None)
        zone_by_text[unread[0]] = _zone(operand)
    with_zone = [text for text, zone in zone_by_text.items() if text and zone]
    without = [text for text, zone in zone_by_text.items() if text and zone == ""]
    if len(with_zone) != 1 or len(without) != 1:
        return None
    zone = zone_by_text[with_zone[0]]
    bare = next(side for side in sides if scene.text(side) == without[0])
    how = ".dt.tz_localize" if is_series(scene.value(bare)) else ".tz_localize"
    of_pandas = is_kind(scene.value(bare), "pandas", "Timestamp", "Series")
    return {
        "about": "zones", "with": with_zone[0], "zone": f"`{zone}`", "without": without[0],
        "instead": f"`{without[0].strip('`')}{how}('{zone}')`" if of_pandas else "",
    }  # fmt: skip


def _zone(value: object) -> str | None:
    """Return the time zone of a time or a column of times, empty for none; None for any other value."""
    if is_series(value):
        kind = str(value.dtype)
        match = re.fullmatch(r"datetime64\[\w+, (.+)\]", kind)
        return match[1] if match else "" if kind.startswith("datetime64") else None
    if is_kind(value, "pandas", "Timestamp") or type(value) is datetime.datetime:
        return "" if value.tzinfo is None else str(value.tzinfo)
    return None


def not_numeric(scene: Scene) -> Facts | None:
    """Name the columns of text that the code sums up."""
    for frame_locals in scene.library_locals("pandas"):
        grouping = own_dict(frame_locals.get("self"))
        owner = grouping.get("obj", frame_locals.get("self"))
        if is_series(owner) and _is_text(owner) and len(owner):
            bad_text = next(
                (
                    entry
                    for entry in owner.iloc[:_SCANNED_MAX].tolist()
                    if type(entry) is str and not is_number(entry)
                ),
                None,
            )
            facts = {
                "about": "calculated_text" if bad_text is None else "calculated_mixed",
                "owner": scene.name_of(owner),
                "dtype": f"`{owner.dtype}`",
                "value": quoted(owner.iloc[0] if bad_text is None else bad_text),
            }
            if not facts["owner"] and bad_text is None and (table := _table_of(scene, owner)):
                column = f"{table.strip('`')}[{owner.name!r}]"
                instead = f"`{table.strip('`')}.assign(**{{{owner.name!r}: pd.to_numeric({column})}})`"
                return complete(
                    {
                        **facts,
                        "about": "grouped_text",
                        "owner": f"`{column}`",
                        "part": table,
                        "instead": instead,
                    }
                )
            if bad_text is None and facts["owner"]:
                facts["columns"] = _number_columns(scene)
            if all(facts.values()):
                return {**facts, **_cleaning(bad_text or "", owner.tolist()[:_SCANNED_MAX])}
        if is_frame(owner) and owner.columns.is_unique and len(owner):
            keys = grouping.get("keys")
            left_out = keys if type(keys) is list else [keys]
            texts = [name for name in owner.columns if name not in left_out and _is_text(owner[name])]
            named, texts_of = (
                scene.name_of(owner),
                [cell for name in texts for cell in owner[name].head(_SCANNED_MAX)],
            )
            if (
                named
                and len(texts) == len(owner.columns)
                and all(type(t) is str and is_number(t) for t in texts_of)
            ):
                instead = f"`{named.strip('`')}.apply(pd.to_numeric)`"
                facts = {
                    "about": "text_table",
                    "owner": named,
                    "value": quoted(texts_of[0]),
                    "instead": instead,
                }
                return complete(facts)
            if texts and (names := labels_text(texts, len(texts))):
                value = quoted(owner[texts[0]].iloc[0])
                facts = {
                    "about": "calculated_columns",
                    "owner": scene.name_of(owner) or "the table",
                    "columns": names,
                    "value": value,
                }
                return {**facts, "first": quoted(texts[0])} if value else None
    return None


def _table_of(scene: Scene, column: pd.Series[Any]) -> str:
    """Return the name of the table in the failing statement that a column is of; empty where that is not certain."""
    for node in scene.expressions():
        table = scene.value(node) if isinstance(node, ast.Name) else UNREAD
        if is_frame(table) and type(column.name) is str and column.name in table.columns:
            return scene.text(node) if len(table) == len(column) else ""
    return ""


def _is_text(column: pd.Series[Any]) -> bool:
    return (
        str(column.dtype) in {"object", "str", "string"}
        and type(column.iloc[0] if len(column) else None) is str
    )


def operand_of_text(scene: Scene) -> Facts | None:
    """Say which side of an operation is a column of text."""
    node = scene.node
    if isinstance(node, ast.Compare) and not any(isinstance(part, ast.BinOp) for part in ast.walk(node)):
        sides = (node.left, node.comparators[0])
    elif isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
    else:
        return None
    for side, opposite in (sides, sides[::-1]):
        value = scene.value(side)
        if is_series(value) and len(value) and _is_text(value):
            facts = {
                "about": "operand_column",
                "owner": scene.text(side),
                "dtype": f"`{value.dtype}`",
                "value": quoted(value.iloc[0]),
            }
            times = _has_times(scene, opposite) and re.match(
                r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", value.iloc[0]
            )
            reader = "to_datetime" if times else "to_numeric"
            facts |= {
                "other": scene.text(opposite),
                "instead": f"`pd.{reader}({scene.text(side).strip('`')})`",
            }
            texts = [cell for cell in value.iloc[:_SCANNED_MAX].tolist() if type(cell) is str]
            bad = next((text for text in texts if not is_number(text)), None)
            if times or bad is None:
                more = {} if times else {"columns": _number_columns(scene)}
                return complete({**facts, **more, "about": "operand_dates"} if times else {**facts, **more})
            del facts["instead"]
            facts |= {"about": "operand_mixed", "value": quoted(bad)}
            return complete({**facts, **_cleaning(bad, texts)})
    return None


def _number_columns(scene: Scene) -> str:
    """Return the columns in the failing statement whose text is numbers, as the code writes them, one on a line."""
    columns: dict[str, None] = {}
    for node in scene.expressions():
        column = scene.value(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else UNREAD
        if is_series(column) and len(column) and _is_text(column) and (text := scene.text(node)):
            texts = [cell for cell in column.iloc[:_SCANNED_MAX].tolist() if type(cell) is str]
            if all(map(is_number, texts)):
                columns[text.strip("`")] = None
    return "\n".join(columns)


def calculated(scene: Scene) -> Facts | None:
    """Say which column of text a calculation uses, if all of it is numbers."""
    columns = _number_columns(scene)
    for node in scene.expressions():
        if columns and scene.text(node).strip("`") == columns.split("\n")[0]:
            column = scene.value(node)
            facts = {"about": "calculated_text", "owner": scene.text(node), "dtype": f"`{column.dtype}`"}
            return complete({**facts, "value": quoted(column.iloc[0]), "columns": columns})
    return None


def polars_text(scene: Scene) -> Facts | None:
    """Name the polars column whose text is used in a calculation, if all of it is numbers."""
    for node in scene.expressions():
        value = scene.value(node)
        if not is_kind(value, "polars", "Series") or str(value.dtype) != "String":
            continue
        texts = [entry for entry in value.head(_SCANNED_MAX).to_list() if entry is not None]
        if texts and all(map(is_number, texts)):
            whole = all(re.fullmatch(r"\s*[-+]?\d+\s*", text) for text in texts)
            module = next(
                (
                    n
                    for n, global_value in scene.frame.f_globals.items()
                    if global_value is sys.modules["polars"]
                ),
                "",
            )
            owner, kind = scene.text(node), "Int64" if whole else "Float64"
            instead = f"`{owner.strip('`')}.cast({module}.{kind})`" if module and owner else ""
            facts = {"about": "polars_text", "owner": owner, "value": quoted(texts[0]), "instead": instead}
            return complete(facts)
    return None


def _has_times(scene: Scene, node: ast.expr) -> bool:
    """Return whether an operand is a time, a column of times, or a call that makes one."""
    value = scene.value(node)
    written = ast.unparse(node)
    has_time_name = (
        re.search(r"Timestamp|datetime|to_datetime|Timedelta|timedelta|\bdate\b|now\(\)|today\(\)", written)
        is not None
    )
    return (
        has_time_name
        or (is_series(value) and str(value.dtype).startswith("datetime64"))
        or _zone(value) is not None
    )


def wrong_fill(scene: Scene) -> Facts | None:
    """Say what a column holds where the code assigns a value of another kind."""
    match = re.search(r"Invalid value (?P<value>.+?) for dtype '?(?P<dtype>[^']+)'?", str(scene.error))
    owner = converted(scene)
    if match is None or not is_series(owner) or "`" in match["value"] or len(match["value"]) > 60:
        return None
    return {
        "about": "wrong_fill",
        "owner": scene.name_of(owner) or "the column",
        "dtype": f"`{owner.dtype}`",
        "value": f"`{match['value']}`",
    }


def new_category(scene: Scene) -> Facts | None:
    """List the categories of a column to which the code assigns another value."""
    match = re.search(r"with a new category \((?P<value>.*?)\)", str(scene.error))
    statement = scene.statement
    if (
        match is None
        or not isinstance(statement, ast.Assign)
        or not isinstance(statement.targets[0], ast.Subscript)
    ):
        return None
    owner, value = scene.value(statement.targets[0].value), quoted(scene.value(statement.value))
    if not is_series(owner) or str(owner.dtype) != "category" or not value:
        return None
    categories = owner.cat.categories
    named = scene.text(statement.targets[0].value)
    return {
        "about": "new_category", "owner": named, "value": value, "known": labels_text(categories, len(categories)),
        "instead": f"`{named.strip('`')}.cat.add_categories({value.strip('`')})`",
    }  # fmt: skip


def read_only(scene: Scene) -> Facts | None:
    """Name the read-only array."""
    statement = scene.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    if not isinstance(target, ast.Subscript):
        return None
    owner, named = scene.value(target.value), scene.text(target.value)
    if not is_array(owner) or owner.flags.writeable or not named:
        return None
    return {"about": "read_only", "owner": named, "instead": f"`{named.strip('`')}.copy()`"}


def chained(scene: Scene) -> Facts | None:
    """Write a chained assignment as a single one."""
    match scene.statement:
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Subscript(value=owner, slice=rows), slice=column)], value=given
        ):
            if not is_frame(scene.value(owner)):
                return None
            parts = [scene.text(part).strip("`") for part in (owner, rows, column, given)]
            assignment = f"`{parts[0]}.loc[{parts[1]}, {parts[2]}] = {parts[3]}`"
            return (
                {
                    "about": "chained",
                    "owner": f"`{parts[0]}`",
                    "copy": f"`{parts[0]}[{parts[1]}]`",
                    "instead": assignment,
                }
                if all(parts)
                else None
            )
    return None


def missing_attribute(scene: Scene) -> Facts | None:
    """Say which part of the line is `None` or a missing value, where the code uses an attribute of it."""
    node = scene.node
    if isinstance(node, ast.Call):
        node = node.func
    if not isinstance(node, ast.Attribute):
        return None
    value, named = scene.value(node.value), scene.text(node.value)
    if not named or value is UNREAD:
        return None
    facts = {"owner": named, "wanted": f"`.{node.attr}`"}
    if value is None and isinstance(node.value, ast.Name | ast.Subscript | ast.Attribute):
        return {**facts, "about": "attribute_of_none_named"}
    if type(value) is float and value != value:
        return {**facts, "about": "attribute_of_gap"}
    return None
