"""Facts about arrays whose shapes or types do not fit."""

from __future__ import annotations

import ast
import math
import re
import sys
from typing import Any

from healkit.facts.labels import plain, shown, spoken
from healkit.facts.lookups import Facts
from healkit.facts.scene import UNREAD, Scene, is_array, is_frame, is_series

_MATRIX_MAX = 200


def shape(value: Any) -> str:
    """Return the shape of an array, a table or a series in backquotes; empty for anything else."""
    return (
        f"`{tuple(int(n) for n in value.shape)}`"
        if is_array(value) or is_frame(value) or is_series(value)
        else ""
    )


def _sides(scene: Scene) -> list[tuple[str, Any]]:
    """Return the two operands of the failing operation or product, each with what the user calls it."""
    match scene.node:
        case ast.BinOp(left=left, right=right):
            nodes: list[ast.expr] = [left, right]
        case ast.Call(func=ast.Attribute(value=owner, attr="dot"), args=[one]) if is_array(
            scene.value(owner)
        ):
            nodes = [owner, one]
        case ast.Call(func=ast.Attribute(attr="dot" | "matmul"), args=[left, right]):
            nodes = [left, right]
        case _:
            return []
    return [(scene.text(node), scene.value(node)) for node in nodes]


def broadcast(scene: Scene) -> Facts | None:
    """Show the shapes of both operands, and the first sizes that differ, from the end."""
    found = _sides(scene)
    if len(found) != 2 or not all(text and shape(value) for text, value in found):
        return None
    (left, a), (right, b) = found
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    differing = next(((m, n) for m, n in pairs if m != n and 1 not in (m, n)), None)
    if differing is None:
        return None
    facts = {
        "about": "shapes_differ", "left": left, "right": right, "left_shape": shape(a), "right_shape": shape(b),
        "left_size": f"{differing[0]:,}", "right_size": f"{differing[1]:,}",
    }  # fmt: skip
    if is_array(b) and b.ndim == 1 and a.ndim == 2 and len(b) == len(a):
        return {**facts, "about": "broadcast_rows", "instead": f"`{right.strip('`')}[:, None]`"}
    return facts


def product(scene: Scene) -> Facts | None:
    """Show the shapes of the two factors of a matrix product, and whether one of them must be transposed."""
    found = _sides(scene)
    if len(found) != 2 or not all(text and is_array(value) and value.ndim in {1, 2} for text, value in found):
        return None
    (left, a), (right, b) = found
    if a.shape[-1] == b.shape[0]:
        return None
    facts = {
        "about": "product", "left": left, "right": right, "left_shape": shape(a), "right_shape": shape(b),
        "left_size": f"{a.shape[-1]:,}", "right_size": f"{b.shape[0]:,}",
    }  # fmt: skip
    if b.ndim == 2 and a.shape[-1] == b.shape[1]:
        return {**facts, "about": "product_turned", "instead": f"`{right.strip('`')}.T`"}
    return facts


def concatenate(scene: Scene) -> Facts | None:
    """Show the shapes of the arrays to concatenate."""
    node = scene.node
    if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.List | ast.Tuple):
        return None
    found = [(scene.text(item), scene.value(item)) for item in node.args[0].elts]
    if not 2 <= len(found) <= 6 or not all(text and is_array(value) for text, value in found):
        return None
    return {
        "about": "concatenate",
        "shapes": spoken([f"{text} has shape {shape(value)}" for text, value in found]),
    }


def _owner(scene: Scene) -> tuple[ast.expr | None, Any]:
    """Return the array that the failing expression is about."""
    match scene.node:
        case ast.Subscript(value=owner) | ast.Call(func=ast.Attribute(value=owner)):
            pass
        case _:
            return None, UNREAD
    value = scene.value(owner)
    if not is_array(value) and isinstance(scene.node, ast.Call) and scene.node.args:  # np.mean(array, axis=1)
        owner = scene.node.args[0]
        value = scene.value(owner)
    return owner, value


def axis(scene: Scene) -> Facts | None:
    """Say how many axes an array has where the code names a higher one."""
    owner, value = _owner(scene)
    match = re.search(r"axis (-?\d+) is out of bounds for array of dimension (\d+)", str(scene.error))
    if (
        owner is None
        or match is None
        or not is_array(value)
        or value.ndim != int(match[2])
        or not scene.text(owner)
    ):
        return None
    count = "1 axis" if value.ndim == 1 else f"{value.ndim} axes"
    return {
        "about": "axis",
        "owner": scene.text(owner),
        "shape": shape(value),
        "wanted": f"`{match[1]}`",
        "count": count,
    }


def too_many_indices(scene: Scene) -> Facts | None:
    """Say how many axes an array has where the code gives more indexes."""
    owner, value = _owner(scene)
    match = re.search(r"array is (\d+)-dimensional, but (\d+) were indexed", str(scene.error))
    if (
        owner is None
        or match is None
        or not is_array(value)
        or value.ndim != int(match[1])
        or not scene.text(owner)
    ):
        return None
    return {
        "about": "too_many_indices",
        "owner": scene.text(owner),
        "shape": shape(value),
        "has": match[1],
        "given": match[2],
    }


def index_end(scene: Scene) -> Facts | None:
    """Say how large an array is along the axis of an index beyond its end."""
    owner, value = _owner(scene)
    match = re.search(r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)", str(scene.error))
    if owner is None or match is None or not is_array(value) or not scene.text(owner):
        return None
    if int(match[2]) >= value.ndim or value.shape[int(match[2])] != int(match[3]):
        return None
    facts = {
        "owner": scene.text(owner),
        "shape": shape(value),
        "asked": f"`{match[1]}`",
        "axis": match[2],
        "size": match[3],
    }
    if match[3] == "0":
        return {**facts, "about": "array_empty"}
    return {**facts, "about": "array_end", "last": str(int(match[3]) - 1)}


def float_index(scene: Scene) -> Facts | None:
    """Name the index that is not an integer."""
    node = scene.node
    if not isinstance(node, ast.Subscript):
        return None
    value = plain(scene.value(node.slice))
    facts = {
        "about": "float_index",
        "owner": scene.text(node.value),
        "index": scene.text(node.slice),
        "value": shown(value),
    }
    return facts if type(value) is float and all(facts.values()) else None


def mask(scene: Scene) -> Facts | None:
    """Show the lengths of a mask and of the array that it filters."""
    node = scene.node
    if not isinstance(node, ast.Subscript):
        return None
    owner, given = scene.value(node.value), scene.value(node.slice)
    if not is_array(owner) or not is_array(given) or given.dtype.kind != "b":
        return None
    facts = {"about": "mask", "owner": scene.text(node.value), "mask": scene.text(node.slice)}
    facts |= {"owner_shape": shape(owner), "mask_shape": shape(given)}
    return facts if all(facts.values()) and owner.shape != given.shape else None


def reshape(scene: Scene) -> Facts | None:
    """Compare an array's number of values with the product of the shape."""
    owner, value = _owner(scene)
    match = re.search(r"cannot reshape array of size (\d+) into shape \(([\d,]+)\)", str(scene.error))
    if (
        owner is None
        or match is None
        or not is_array(value)
        or value.size != int(match[1])
        or not scene.text(owner)
    ):
        return None
    sizes = [int(n) for n in match[2].split(",") if n]
    wanted = " × ".join(map(str, sizes))
    return {
        "about": "reshape_size", "owner": scene.text(owner), "size": f"{value.size:,}", "wanted": wanted,
        "needed": f"{math.prod(sizes):,}", "last": str(sizes[-1]),
    }  # fmt: skip


def ragged(scene: Scene) -> Facts | None:
    """Name the first row that is longer or shorter than the first one."""
    for node in scene.expressions():
        rows = scene.value(node) if isinstance(node, ast.Name | ast.Subscript | ast.Attribute) else UNREAD
        if (
            type(rows) is not list
            or len(rows) < 2
            or not all(type(row) in {list, tuple} for row in rows[:10_000])
        ):
            continue
        at = next((at for at, row in enumerate(rows) if len(row) != len(rows[0])), None)
        named = scene.text(node).strip("`")
        if at is not None and named:
            return {
                "about": "ragged", "owner": f"`{named}`", "first": f"`{named}[0]`", "first_size": f"{len(rows[0]):,}",
                "other": f"`{named}[{at}]`", "other_size": f"{len(rows[at]):,}",
            }  # fmt: skip
    return None


def cast(scene: Scene) -> Facts | None:
    """Say what type the array has that the code changes in place."""
    statement = scene.statement
    if not isinstance(statement, ast.AugAssign):
        return None
    owner = scene.value(statement.target)
    match = re.search(r"from dtype\('(\w+)'\) to dtype\('(\w+)'\)", str(scene.error))
    if not is_array(owner) or match is None or str(owner.dtype) != match[2]:
        return None
    named = scene.text(statement.target).strip("`")
    made = f"`{named} = {ast.unparse(ast.BinOp(statement.target, statement.op, statement.value))}`"
    facts = {
        "about": "cast",
        "owner": f"`{named}`",
        "dtype": f"`{match[2]}`",
        "result": f"`{match[1]}`",
        "instead": made,
    }
    return facts if named and len(made) < 80 else None


def singular(scene: Scene) -> Facts | None:
    """Say how many of a matrix's rows are independent."""
    owner, value = _matrix(scene)
    numpy = sys.modules.get("numpy")
    if (
        owner == ""
        or numpy is None
        or value.ndim != 2
        or max(value.shape) > _MATRIX_MAX
        or value.dtype.kind not in "biuf"
    ):
        return None
    rank = int(numpy.linalg.matrix_rank(value))
    if rank >= len(value):
        return None
    return {"about": "singular", "owner": owner, "rows": f"{len(value):,}", "rank": f"{rank:,}"}


def not_square(scene: Scene) -> Facts | None:
    """Show the shape of a matrix that is not square."""
    owner, value = _matrix(scene)
    if owner == "" or value.ndim != 2 or value.shape[0] == value.shape[1]:
        return None
    return {
        "about": "not_square",
        "owner": owner,
        "rows": f"{value.shape[0]:,}",
        "columns": f"{value.shape[1]:,}",
    }


def _matrix(scene: Scene) -> tuple[str, Any]:
    node = scene.node
    if not isinstance(node, ast.Call) or not node.args:
        return "", UNREAD
    value = scene.value(node.args[0])
    return (scene.text(node.args[0]), value) if is_array(value) else ("", UNREAD)


def extreme_of_empty(scene: Scene) -> Facts | None:
    """Name the array or column that has no values."""
    for node in scene.expressions():
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            value = scene.value(node)
            if (is_array(value) or is_series(value)) and value.size == 0 and scene.text(node):
                return {"about": "no_values", "owner": scene.text(node), "shape": shape(value)}
    return None


def one_number(scene: Scene) -> Facts | None:
    """Say how many values the array has that the code converts to one number."""
    node = scene.node
    if not isinstance(node, ast.Call) or not node.args or not isinstance(node.func, ast.Name):
        return None
    value = scene.value(node.args[0])
    facts = {"about": "one_number", "owner": scene.text(node.args[0]), "kind": f"`{node.func.id}`"}
    if not (is_array(value) or is_series(value)) or value.size < 2 or not all(facts.values()):
        return None
    return {**facts, "size": f"{value.size:,}"}
