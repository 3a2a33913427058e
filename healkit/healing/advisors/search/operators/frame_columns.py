"""Edits of columns, masks, groups and merges of frames."""

from __future__ import annotations

import ast

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.operators.frame_methods import deals_with_frames, method_of, with_option
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.pysource.precedence import ATOM

#: How many columns are tried in a place.
_COLUMNS_MAX = 12
#: Methods of a column that mean something else within groups, and whether they give one value for each group.
_GROUPED = dict.fromkeys(
    ["sum", "mean", "median", "min", "max", "count", "nunique", "first", "last", "std", "size"], True
) | dict.fromkeys(
    ["cumsum", "cummax", "cummin", "cumprod", "rank", "shift", "diff", "pct_change", "ffill", "bfill"], False
)


def columns(program: Program) -> list[str]:
    """Return the columns that are known: those of the frames in the checks, then those that the program names."""
    found = dict.fromkeys(program.hints.columns)
    for node in program.nodes:
        named = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        if named and isinstance(node.slice.value, str):  # type: ignore[attr-defined]  # as `named` says
            found[node.slice.value] = None  # type: ignore[attr-defined]  # as above
    return list(found)[:_COLUMNS_MAX]


def _is_column(program: Program, node: ast.Constant, known: list[str]) -> bool:
    """Return whether a text stands where a column is named."""
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
    known = columns(program)
    if _is_column(program, node, known):
        for other in known:
            if other != node.value:
                yield from program.put(node, repr(other))


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
    own, span = program.segment(node.value), program.source.span(node)
    for other in columns(program):
        if other != node.value.value:
            text = program.quoted(repr(other))
            yield Change((Edit(*span, f"left_on={own}, right_on={text}"),))
            yield Change((Edit(*span, f"left_on={text}, right_on={own}"),), 0.8)


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
        left, middle, right = (program.segment(part) for part in (node.left, *node.comparators))
        one, other = (_SIGNS.get(type(sign), "<") for sign in node.ops)
        yield from program.put(node, f"({left} {one} {middle}) & ({middle} {other} {right})")
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
    one = program.segment(inner.slice)
    other = program.segment(target.slice) if isinstance(target, ast.Subscript) else repr(target.attr)
    span = program.source.span(target)
    for rows, column, weight in ((one, other, 1.0), (other, one, 0.95)):
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
    given = program.text[program.source.span(func)[1] : program.source.span(node)[1]]
    for position, by in enumerate(columns(program)):
        if by == column.slice.value:
            continue
        grouped = f"{owner}.groupby({program.quoted(repr(by))})[{name}]"
        weight = 1.0 - 0.05 * position
        if _GROUPED[method] and given == "()":
            yield from program.put(node, f"{grouped}.transform({program.quoted(repr(method))})", weight)
        yield from program.put(node, f"{grouped}.{method}{given}", weight * 0.9)


@operator(
    "one value for each row of a group",
    0.6,
    ast.Call,
    before="import pandas\nx = df.groupby('a')['b'].sum()",
    after="import pandas\nx = df.groupby('a')['b'].transform('sum')",
)
def transform_groups(program: Program, node: ast.Call) -> Changes:
    """Give every row its group's value, or one value for each group."""
    func = node.func
    if not isinstance(func, ast.Attribute) or "groupby" not in program.segment(func.value):
        return
    own = program.segment(func.value)
    if _GROUPED.get(func.attr) and not node.args and not node.keywords:
        yield from program.put(node, f"{own}.transform({program.quoted(repr(func.attr))})")
    elif func.attr == "transform" and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
        yield from program.put(node, f"{own}.{node.args[0].value!s}()")


@operator(
    "a frame of one column, or the column",
    0.5,
    ast.Subscript,
    before="import pandas\nx = df['a']",
    after="import pandas\nx = df[['a']]",
)
def column_or_frame(program: Program, node: ast.Subscript) -> Changes:
    if not deals_with_frames(program) or not program.is_value(node):
        return
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        yield from program.put(node.slice, f"[{program.segment(node.slice)}]")
    elif isinstance(node.slice, ast.List) and len(node.slice.elts) == 1:
        yield from program.put(node.slice, program.segment(node.slice.elts[0]))


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
    """Say by which column a method works, where it works by all of them."""
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
    left, right = program.segment(node.left), program.segment(node.right)
    if isinstance(node.op, ast.MatMult):
        yield from program.put(node, f"{left} * {right}")
        yield from program.put(
            node, f"{program.piece(node.right, ATOM)} @ {program.piece(node.left, ATOM)}", 0.8
        )
    else:
        yield from program.put(node, f"{left} @ {right}")
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
