"""Edits of code on frames: methods, columns, groups, merges."""

from __future__ import annotations

import ast
import re

from healkit.core.contracts.patches import Edit
from healkit.parts.explain.source import ATOM
from healkit.parts.heal.advisors.search.operators.definition import Changes, operator
from healkit.parts.heal.advisors.search.program import Change, Program

_IMPORTS = re.compile(r"\b(?:import|from)\s+(?:pandas|numpy|polars)\b")
_TYPES = {"DataFrame", "Series", "ndarray", "DatetimeIndex", "DataFrameGroupBy", "SeriesGroupBy"}

_REDUCED = ("sum", "mean", "median", "min", "max", "count", "nunique", "first", "last", "size", "std", "prod")
_CUMULATED = ("cumsum", "cummax", "cummin", "cumprod", "cumcount", "sum")
#: Methods that are taken one for another, nearest first.
_METHODS = (
    _REDUCED, _CUMULATED, ("ffill", "bfill"), ("max", "idxmax"), ("min", "idxmin"), ("idxmax", "idxmin", "argmax"),
    ("argmax", "argmin", "argsort"), ("head", "tail"), ("nlargest", "nsmallest"), ("any", "all"), ("isna", "notna"),
    ("isnull", "notnull"), ("transform", "agg", "apply"), ("apply", "transform", "map"), ("shift", "diff", "pct_change"),
    ("rolling", "expanding"), ("sort_values", "sort_index"), ("floor", "ceil", "round"), ("drop_duplicates", "duplicated"),
    ("unique", "nunique", "value_counts"), ("count", "size", "nunique"), ("stack", "unstack"), ("melt", "pivot"),
    ("std", "var", "sem"), ("gt", "ge"), ("lt", "le"), ("eq", "ne"), ("vstack", "hstack"), ("union", "intersection", "difference"),
    ("isin", "eq"), ("startswith", "endswith", "contains"), ("contains", "match", "fullmatch"), ("extract", "findall"),
)  # fmt: skip
_ATTRIBUTES = (
    ("loc", "iloc"), ("at", "iat"), ("index", "columns"), ("rows", "columns"), ("dayofweek", "day", "dayofyear"),
    ("year", "month", "day", "quarter", "hour"), ("day", "month", "year", "dayofweek", "days"), ("days", "seconds"),
    ("hour", "minute", "second"), ("values", "index"),
)  # fmt: skip
#: Texts that an option takes, one for another.
_TEXTS = (
    _REDUCED, ("left", "inner", "outer", "right"), ("any", "all"), ("first", "last"), ("min", "max", "first", "dense", "average"),
    ("left_only", "right_only", "both"), ("index", "columns"), ("linear", "ffill"), ("both", "neither", "left", "right"),
    ("records", "list", "dict", "index"), ("D", "W", "ME", "MS", "QE", "YE", "h"), ("M", "D", "Y", "W"), ("coerce", "raise"),
)  # fmt: skip
_AXIS = "sum mean median min max count any all std var prod idxmax idxmin drop apply concat cumsum diff concatenate argmax argmin rank"
#: Options that are forgotten, by method, likeliest first.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "sort_values": ("ascending=False", "ignore_index=True", "kind='stable'", "na_position='first'"),
    "sort_index": ("ascending=False",),
    "rank": ("ascending=False", "method='min'", "method='dense'", "method='first'", "pct=True"),
    "concat": ("ignore_index=True", "axis=1", "join='inner'"),
    "merge": ("how='left'", "how='outer'", "how='right'"),
    "join": ("how='inner'", "how='outer'"),
    "groupby": ("as_index=False", "sort=False", "dropna=False", "group_keys=False", "observed=True"),
    "drop_duplicates": ("keep='last'", "ignore_index=True", "keep=False"),
    "duplicated": ("keep=False", "keep='last'"),
    "value_counts": ("normalize=True", "sort=False", "dropna=False"),
    "to_datetime": ("dayfirst=True", "errors='coerce'", "utc=True"),
    "to_numeric": ("errors='coerce'",),
    "rolling": ("min_periods=1", "center=True"),
    "reset_index": ("drop=True",),
    "std": ("ddof=0", "ddof=1"),
    "var": ("ddof=0", "ddof=1"),
    "pivot_table": ("aggfunc='sum'", "fill_value=0", "aggfunc='count'"),
    "pivot": (),
    "unstack": ("fill_value=0",),
    "explode": ("ignore_index=True",),
    "contains": ("case=False", "na=False", "regex=False"),
    "split": ("expand=True", "n=1"),
    "replace": ("regex=False", "regex=True"),
    "quantile": ("0.5",),
    "cut": ("right=False", "include_lowest=True"),
    "interpolate": ("method='time'",),
    "mean": ("keepdims=True", "numeric_only=True"),
    "sum": ("keepdims=True", "min_count=1", "numeric_only=True"),
    "dropna": ("how='all'", "ignore_index=True"),
    "shift": ("-1",),
    "between": ("inclusive='left'", "inclusive='neither'"),
    "reindex": ("fill_value=0",),
}


def deals_with_frames(program: Program) -> bool:
    """Return whether a program names pandas or numpy, or was seen with their values."""
    has_frames: bool | None = getattr(program, "_frames", None)
    if has_frames is None:
        has_frame_types = any(kinds & _TYPES for kinds in program.hints.types.values())
        has_frames = (
            has_frame_types or bool(program.hints.columns) or _IMPORTS.search(program.text) is not None
        )
        program._frames = has_frames  # type: ignore[attr-defined]  # kept with the program it is about
    return has_frames


def _others(name: str, families: tuple[tuple[str, ...], ...]) -> list[str]:
    members = [member for family in families if name in family for member in family if member != name]
    return list(dict.fromkeys(members))


def method_of(node: ast.Call) -> str:
    """Return the name of the method or function that is called; empty where it has none."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


@operator(
    "another method of a frame",
    0.85,
    ast.Attribute,
    before="import pandas\nx = df.mean()",
    after="import pandas\nx = df.median()",
)
def change_frame_method(program: Program, node: ast.Attribute) -> Changes:
    if not deals_with_frames(program):
        return
    called = program.field(node) == "func"
    end = program.source.span(node)[1]
    for position, alternative in enumerate(_others(node.attr, _METHODS if called else _ATTRIBUTES)):
        yield Change((Edit(end - len(node.attr), end, alternative),), 1.0 - 0.04 * min(position, 10))


@operator(
    "another value of an option",
    0.85,
    ast.Constant,
    before="import pandas\nx = a.merge(b, how='inner')",
    after="import pandas\nx = a.merge(b, how='left')",
)
def change_option_text(program: Program, node: ast.Constant) -> Changes:
    if not deals_with_frames(program) or not isinstance(node.value, str):
        return
    if isinstance(program.parent(node), ast.Subscript):
        return
    for position, alternative in enumerate(_others(node.value, _TEXTS)):
        yield from program.put(node, repr(alternative), 1.0 - 0.04 * min(position, 10))


@operator(
    "the other axis",
    0.8,
    ast.Call,
    before="import pandas\nx = df.sum()",
    after="import pandas\nx = df.sum(axis=1)",
)
def change_axis(program: Program, node: ast.Call) -> Changes:
    if not deals_with_frames(program) or method_of(node) not in _AXIS.split():
        return
    axis = next((keyword.value for keyword in node.keywords if keyword.arg == "axis"), None)
    if axis is None:
        yield from with_option(program, node, "axis=1", 0.8)
        yield from with_option(program, node, "axis=0", 0.5)
    elif isinstance(axis, ast.Constant):
        opposite_axis = {0: "1", 1: "0", "index": "1", "columns": "0"}.get(axis.value, "")
        if opposite_axis:
            yield from program.put(axis, opposite_axis)


@operator(
    "an option added",
    0.6,
    ast.Call,
    before="import pandas\nx = df.sort_values('a')",
    after="import pandas\nx = df.sort_values('a', ascending=False)",
)
def add_option(program: Program, node: ast.Call) -> Changes:
    if not deals_with_frames(program):
        return
    option_names = {keyword.arg for keyword in node.keywords}
    for position, text in enumerate(_OPTIONS.get(method_of(node), ())):
        name, equals_sign, _ = text.partition("=")
        if (equals_sign and name not in option_names) or (not equals_sign and not node.args):
            yield from with_option(program, node, text, 1.0 - 0.1 * position)


def with_option(program: Program, node: ast.Call, text: str, weight: float) -> Changes:
    """Yield the change that adds an argument at the end of a call."""
    end = program.source.span(node)[1] - 1
    inside = program.text[program.source.span(node.func)[1] + 1 : end].rstrip()
    comma = "" if not inside or inside.endswith(",") else ", "
    value = text.partition("=")[2]
    text = text.replace(value, program.quoted(value)) if value else text
    place = program.source.span(node.func)[1] + 1 + len(inside)
    yield Change((Edit(place, place, comma + text),), weight)


@operator(
    "another order for each column",
    0.7,
    ast.Call,
    before="import pandas\nx = df.sort_values(['a', 'b'], ascending=False)",
    after="import pandas\nx = df.sort_values(['a', 'b'], ascending=[False, True])",
)
def order_each_column(program: Program, node: ast.Call) -> Changes:
    """Sort by several columns, one of them the other way round."""
    if method_of(node) != "sort_values" or not deals_with_frames(program):
        return
    by = next((keyword.value for keyword in node.keywords if keyword.arg == "by"), None)
    by = by or (node.args[0] if node.args else None)
    if not isinstance(by, ast.List) or not 2 <= len(by.elts) <= 4:
        return
    orders = [[i != place for i in range(len(by.elts))] for place in range(len(by.elts))]
    orders += [[i == place for i in range(len(by.elts))] for place in range(len(by.elts))]
    ascending = next((keyword.value for keyword in node.keywords if keyword.arg == "ascending"), None)
    for order in orders:
        if ascending is not None:
            yield from program.put(ascending, str(order))
        else:
            yield from with_option(program, node, f"ascending={order}", 0.9)


@operator(
    "two options swapped",
    0.6,
    ast.Call,
    before="import pandas\nx = df.pivot(index='a', columns='b')",
    after="import pandas\nx = df.pivot(index='b', columns='a')",
)
def swap_options(program: Program, node: ast.Call) -> Changes:
    if not deals_with_frames(program):
        return
    for first in range(len(node.keywords)):
        for second in range(first + 1, len(node.keywords)):
            first_value, second_value = node.keywords[first].value, node.keywords[second].value
            if type(first_value) is not type(second_value) or ast.dump(first_value) == ast.dump(second_value):
                continue
            constants = (value for value in (first_value, second_value) if isinstance(value, ast.Constant))
            if len({type(constant.value) for constant in constants}) > 1:
                continue
            yield program.swap(first_value, second_value, needed=0)


#: Calls that are often forgotten after a value, likeliest first.
_STEPS = (
    ".reset_index(drop=True)", ".reset_index()", ".dropna()", ".fillna(0)", ".drop_duplicates()", ".sort_index()", ".abs()",
    ".copy()", ".astype(int)", ".astype(float)", ".round(2)", ".tolist()", ".ffill()", ".astype(str)", ".shift(1)", ".cumsum()",
    ".T", ".to_frame()", ".unstack()", ".dt.normalize()", ".sort_values()",
)  # fmt: skip
_TEXT_STEPS = (".str.strip()", ".str.lower()", ".str.upper()", ".astype(str)", ".dropna()")


@operator(
    "a step added",
    0.4,
    ast.Call,
    ast.Subscript,
    ast.Name,
    before="import pandas\nx = df.groupby('a').sum()",
    after="import pandas\nx = df.groupby('a').sum().reset_index()",
)
def add_step(program: Program, node: ast.expr) -> Changes:
    """Add a method call to a value that is assigned or returned, or before the next method of a chain."""
    if not deals_with_frames(program) or not program.is_value(node):
        return
    parent = program.parent(node)
    text = program.segment(node)
    if isinstance(parent, ast.Attribute) and parent.attr == "str":
        for step in _TEXT_STEPS:
            yield from program.put(node, text + step, 1.0)
        return
    whole = isinstance(parent, ast.Assign | ast.Return)
    chained = isinstance(parent, ast.Attribute) and isinstance(node, ast.Call | ast.Subscript)
    if not (whole or chained) or (isinstance(node, ast.Name) and not isinstance(parent, ast.Return)):
        return
    for position, step in enumerate(_STEPS):
        yield from program.put(node, text + step, (1.0 if whole else 0.7) - 0.02 * position)


#: Properties and methods that a column has only behind `.dt` or `.str`.
_DATES = "year month day hour minute second date time dayofweek weekday days quarter strftime normalize total_seconds day_name month_name"
_WORDS = "lower upper strip lstrip rstrip title capitalize split replace contains startswith endswith zfill slice len isdigit extract"


@operator(
    "an accessor added",
    0.9,
    ast.Attribute,
    before="import pandas\nx = df['day'].year",
    after="import pandas\nx = df['day'].dt.year",
)
def add_accessor(program: Program, node: ast.Attribute) -> Changes:
    """Reach the dates or the texts of a column."""
    if not deals_with_frames(program) or not isinstance(node.value, ast.Subscript | ast.Call | ast.Name):
        return
    for accessor, names in (("dt", _DATES), ("str", _WORDS)):
        if node.attr in names.split():
            place = program.source.span(node.value)[1]
            yield Change((Edit(place, place, f".{accessor}"),))


@operator(
    "missing values filled differently",
    0.7,
    ast.Call,
    before="import pandas\nx = s.fillna(0)",
    after="import pandas\nx = s.ffill()",
)
def fill_otherwise(program: Program, node: ast.Call) -> Changes:
    if method_of(node) not in ("fillna", "ffill", "bfill", "dropna") or not isinstance(
        node.func, ast.Attribute
    ):
        return
    owner = program.segment(node.func.value)
    methods = (
        "ffill()",
        "bfill()",
        f"fillna({owner}.mean())",
        f"fillna({owner}.median())",
        "fillna(0)",
        "dropna()",
        "fillna('')",
    )
    for position, method in enumerate(methods):
        yield from program.put(node, f"{owner}.{method}", 1.0 - 0.05 * position)


# Columns, masks, groups and merges.


#: How many columns are tried in a place.
_COLUMNS_MAX = 12
#: Methods of a column that mean something else within groups, and whether they give one value for each group.
_GROUPED = dict.fromkeys(
    ["sum", "mean", "median", "min", "max", "count", "nunique", "first", "last", "std", "size"], True
) | dict.fromkeys(
    ["cumsum", "cummax", "cummin", "cumprod", "rank", "shift", "diff", "pct_change", "ffill", "bfill"], False
)


def columns(program: Program) -> list[str]:
    """Return the known columns: those of the frames in the checks, then those that the program names."""
    names = dict.fromkeys(program.hints.columns)
    for node in program.nodes:
        named = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        if named and isinstance(node.slice.value, str):  # type: ignore[attr-defined]  # as `named` says
            names[node.slice.value] = None  # type: ignore[attr-defined]  # as above
    return list(names)[:_COLUMNS_MAX]


def _is_column(program: Program, node: ast.Constant, known: list[str]) -> bool:
    """Return whether a text is used as the name of a column."""
    parent, field = program.parents[node]
    if isinstance(parent, ast.List | ast.Tuple) and parent in program.parents:
        parent, field = program.parents[parent]
    if isinstance(parent, ast.Subscript):
        return field == "slice"
    if isinstance(parent, ast.keyword):
        return parent.arg in {
            "on",
            "left_on",
            "right_on",
            "by",
            "columns",
            "index",
            "values",
            "subset",
            "key",
            "x",
            "y",
        }
    return node.value in known


@operator(
    "another column",
    0.95,
    ast.Constant,
    before="import pandas\nx = df['a'] + df['b']",
    after="import pandas\nx = df['b'] + df['b']",
)
def change_column(program: Program, node: ast.Constant) -> Changes:
    if not isinstance(node.value, str) or not deals_with_frames(program):
        return
    column_names = columns(program)
    if _is_column(program, node, column_names):
        for column in column_names:
            if column != node.value:
                yield from program.put(node, repr(column))


@operator(
    "keys of other names merged",
    0.7,
    ast.keyword,
    before="import pandas\nx = a.merge(b, on='k')\ny = b['id']",
    after="import pandas\nx = a.merge(b, left_on='k', right_on='id')\ny = b['id']",
)
def merge_on_two(program: Program, node: ast.keyword) -> Changes:
    """Merge on a column that has another name in the other frame."""
    if node.arg != "on" or not isinstance(node.value, ast.Constant) or not deals_with_frames(program):
        return
    key_text, span = program.segment(node.value), program.source.span(node)
    for column in columns(program):
        if column != node.value.value:
            text = program.quoted(repr(column))
            yield Change((Edit(*span, f"left_on={key_text}, right_on={text}"),))
            yield Change((Edit(*span, f"left_on={text}, right_on={key_text}"),), 0.8)


@operator(
    "conditions combined row by row",
    1.0,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Compare,
    before="import pandas\nx = df[(df['a'] > 0) and (df['b'] > 0)]",
    after="import pandas\nx = df[(df['a'] > 0) & (df['b'] > 0)]",
)
def combine_by_row(program: Program, node: ast.BoolOp | ast.UnaryOp | ast.Compare) -> Changes:
    """Write `&`, `|` and `~` for `and`, `or` and `not`, two comparisons for a chain of them, and `isin` for `in`."""
    if not deals_with_frames(program):
        return
    if isinstance(node, ast.BoolOp):
        parts = [program.piece(part, ATOM) for part in node.values]
        for sign, weight in (
            (("&", 1.0), ("|", 0.8)) if isinstance(node.op, ast.And) else (("|", 1.0), ("&", 0.8))
        ):
            yield from program.put(node, f" {sign} ".join(parts), weight)
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not):
            yield from program.put(node, f"~{program.piece(node.operand, ATOM)}")
    elif len(node.ops) == 2:
        left_text, middle, right = (program.segment(part) for part in (node.left, *node.comparators))
        first_sign, second_sign = (_SIGNS.get(type(sign), "<") for sign in node.ops)
        yield from program.put(
            node, f"({left_text} {first_sign} {middle}) & ({middle} {second_sign} {right})"
        )
    elif isinstance(node.ops[0], ast.In | ast.NotIn):
        sign = "~" if isinstance(node.ops[0], ast.NotIn) else ""
        owner = program.piece(node.left, ATOM)
        yield from program.put(node, f"{sign}{owner}.isin({program.segment(node.comparators[0])})", 0.9)


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


@operator(
    "a mask negated",
    0.7,
    ast.Name,
    ast.Compare,
    ast.Call,
    ast.Subscript,
    before="import pandas\nx = df[m]",
    after="import pandas\nx = df[~m]",
)
def negate_mask(program: Program, node: ast.expr) -> Changes:
    if program.field(node) != "slice" or not deals_with_frames(program) or not program.is_value(node):
        return
    yield from program.put(node, f"~{program.piece(node, ATOM)}")


@operator(
    "an assignment to rows of the frame itself",
    0.95,
    ast.Assign,
    ast.AugAssign,
    before="import pandas\ndf[m]['a'] = 0",
    after="import pandas\ndf.loc[m, 'a'] = 0",
)
def assign_by_loc(program: Program, node: ast.Assign | ast.AugAssign) -> Changes:
    """Assign once by rows and column; an assignment to a part of a part changes a copy."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if not isinstance(target, ast.Subscript | ast.Attribute) or not deals_with_frames(program):
        return
    inner = target.value
    if not isinstance(inner, ast.Subscript):
        return
    owner = program.segment(inner.value).removesuffix(".loc").removesuffix(".iloc")
    inner_key = program.segment(inner.slice)
    outer_key = program.segment(target.slice) if isinstance(target, ast.Subscript) else repr(target.attr)
    span = program.source.span(target)
    for rows, column, weight in ((inner_key, outer_key, 1.0), (outer_key, inner_key, 0.95)):
        yield Change((Edit(*span, f"{owner}.loc[{rows}, {column}]"),), weight)


@operator(
    "groups formed first",
    0.65,
    ast.Call,
    before="import pandas\nx = df['b'].cumsum()\ny = df['a']",
    after="import pandas\nx = df.groupby('a')['b'].cumsum()\ny = df['a']",
)
def group_first(program: Program, node: ast.Call) -> Changes:
    """Compute a column's method within groups of the rows instead of over all of them."""
    method, func = method_of(node), node.func
    if method not in _GROUPED or not isinstance(func, ast.Attribute) or not deals_with_frames(program):
        return
    column = func.value
    if not isinstance(column, ast.Subscript) or not isinstance(column.slice, ast.Constant):
        return
    owner, name = program.segment(column.value), program.segment(column.slice)
    arguments = program.text[program.source.span(func)[1] : program.source.span(node)[1]]
    for position, by in enumerate(columns(program)):
        if by == column.slice.value:
            continue
        grouped = f"{owner}.groupby({program.quoted(repr(by))})[{name}]"
        weight = 1.0 - 0.05 * position
        if _GROUPED[method] and arguments == "()":
            yield from program.put(node, f"{grouped}.transform({program.quoted(repr(method))})", weight)
        yield from program.put(node, f"{grouped}.{method}{arguments}", weight * 0.9)


#: Methods that take columns, and the name of that argument where it is not the first.
_BY_COLUMN = {
    "drop_duplicates": "subset", "duplicated": "subset", "dropna": "subset", "sort_values": "", "groupby": "",
    "set_index": "", "merge": "on", "explode": "", "value_counts": "",
}  # fmt: skip


@operator(
    "a column given to a method",
    0.6,
    ast.Call,
    before="import pandas\nx = df.drop_duplicates()\ny = df['a']",
    after="import pandas\nx = df.drop_duplicates(subset='a')\ny = df['a']",
)
def give_column(program: Program, node: ast.Call) -> Changes:
    """Name the column of a method that uses all columns."""
    method = method_of(node)
    if method not in _BY_COLUMN or not deals_with_frames(program):
        return
    name = _BY_COLUMN[method]
    if (node.args and method != "merge") or any(
        keyword.arg in {name, "by", "on"} for keyword in node.keywords
    ):
        return
    for position, column in enumerate(columns(program)):
        text = program.quoted(repr(column))
        yield from with_option(program, node, f"{name}={text}" if name else text, 1.0 - 0.03 * position)


@operator(
    "a product of matrices",
    0.7,
    ast.BinOp,
    before="import numpy\nx = a * b",
    after="import numpy\nx = a @ b",
)
def multiply_matrices(program: Program, node: ast.BinOp) -> Changes:
    if not deals_with_frames(program) or not isinstance(node.op, ast.Mult | ast.MatMult):
        return
    left_text, right = program.segment(node.left), program.segment(node.right)
    if isinstance(node.op, ast.MatMult):
        yield from program.put(node, f"{left_text} * {right}")
        yield from program.put(
            node, f"{program.piece(node.right, ATOM)} @ {program.piece(node.left, ATOM)}", 0.8
        )
    else:
        yield from program.put(node, f"{left_text} @ {right}")
        yield from program.put(
            node, f"{program.piece(node.right, ATOM)} @ {program.piece(node.left, ATOM)}", 0.6
        )


@operator(
    "the opposite order of a ranking",
    0.6,
    ast.Call,
    before="import numpy\nx = np.argsort(v)",
    after="import numpy\nx = np.argsort(-v)",
)
def rank_downwards(program: Program, node: ast.Call) -> Changes:
    """Sort or rank by the negative, largest first; or take the sorted values from the end."""
    if method_of(node) not in {"argsort", "sort", "argmax", "argmin", "rank"} or not deals_with_frames(
        program
    ):
        return
    if node.args and not isinstance(node.args[0], ast.Constant):
        first = node.args[0]
        negative = isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.USub)
        inner = first.operand if negative else first  # type: ignore[attr-defined]  # as `negative` says
        yield from program.put(
            first, program.segment(inner) if negative else f"-{program.piece(first, ATOM)}"
        )
    if method_of(node) in {"argsort", "sort"}:
        yield from program.put(node, f"{program.segment(node)}[::-1]", 0.7)
