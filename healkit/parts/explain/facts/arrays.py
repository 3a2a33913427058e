"""Facts about arrays, and about the input of scikit-learn."""

from __future__ import annotations

import ast
import math
import re
import sys
from typing import Any

from healkit.parts.explain.facts.scene import (
    UNREAD,
    Facts,
    Scene,
    complete,
    has_shape,
    is_array,
    is_frame,
    is_series,
    labels_text,
    own_dict,
    plain,
    quoted,
    spoken,
)
from healkit.parts.explain.facts.values import is_number
from healkit.plain_text import count

_MATRIX_MAX, _SCANNED_MAX = 200, 10_000


def shape(value: object) -> str:
    """Return the shape of an array, a table or a series in backquotes; empty for anything else."""
    return f"`{tuple(int(n) for n in value.shape)}`" if has_shape(value) else ""


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
    sides = _sides(scene)
    if len(sides) != 2 or not all(text and shape(value) for text, value in sides):
        return None
    (left_text, a), (right, b) = sides
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    differing = next(((m, n) for m, n in pairs if m != n and 1 not in (m, n)), None)
    if differing is None:
        return None
    facts = {
        "about": "shapes_differ", "left": left_text, "right": right, "left_shape": shape(a), "right_shape": shape(b),
        "left_size": f"{differing[0]:,}", "right_size": f"{differing[1]:,}",
    }  # fmt: skip
    if is_array(b) and b.ndim == 1 and a.ndim == 2 and len(b) == len(a):
        return {**facts, "about": "broadcast_rows", "instead": f"`{right.strip('`')}[:, None]`"}
    return facts


def product(scene: Scene) -> Facts | None:
    """Show the shapes of the two factors of a matrix product, and whether one of them must be transposed."""
    sides = _sides(scene)
    if len(sides) != 2 or not all(text and is_array(value) and value.ndim in {1, 2} for text, value in sides):
        return None
    (left_text, a), (right, b) = sides
    if a.shape[-1] == b.shape[0]:
        return None
    facts = {
        "about": "product", "left": left_text, "right": right, "left_shape": shape(a), "right_shape": shape(b),
        "left_size": count(a.shape[-1], "column"), "right_size": count(b.shape[0], "row"),
    }  # fmt: skip
    if b.ndim == 2 and a.shape[-1] == b.shape[1]:
        return {**facts, "about": "product_turned", "instead": f"`{right.strip('`')}.T`"}
    return facts


def concatenate(scene: Scene) -> Facts | None:
    """Show the shapes of the arrays to concatenate."""
    node = scene.node
    if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.List | ast.Tuple):
        return None
    arrays = [(scene.text(item), scene.value(item)) for item in node.args[0].elts]
    if not 2 <= len(arrays) <= 6 or not all(text and is_array(value) for text, value in arrays):
        return None
    return {
        "about": "concatenate",
        "shapes": spoken([f"{text} has shape {shape(value)}" for text, value in arrays]),
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


def text_array(scene: Scene) -> Facts | None:
    """Name the array of text that the code calculates with."""
    for node in scene.expressions():
        value = scene.value(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else UNREAD
        if is_array(value) and value.dtype.kind in "UT" and value.size:
            texts = value.ravel()[:_SCANNED_MAX].tolist()
            facts = {"owner": scene.text(node), "value": quoted(texts[0]), "instead": ""}
            if all(map(is_number, texts)):
                return complete(
                    {
                        **facts,
                        "about": "text_array",
                        "instead": f"`{scene.text(node).strip('`')}.astype(float)`",
                    }
                )
    return None


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
        "value": quoted(value),
    }
    return facts if type(value) is float and all(facts.values()) else None


def mask(scene: Scene) -> Facts | None:
    """Show the lengths of a mask and of the array that it filters."""
    node = scene.node
    if not isinstance(node, ast.Subscript):
        return None
    owner, selector = scene.value(node.value), scene.value(node.slice)
    if not is_array(owner) or not is_array(selector) or selector.dtype.kind != "b":
        return None
    facts = {"about": "mask", "owner": scene.text(node.value), "mask": scene.text(node.slice)}
    facts |= {"owner_shape": shape(owner), "mask_shape": shape(selector)}
    return facts if all(facts.values()) and owner.shape != selector.shape else None


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
    replacement = f"`{named} = {ast.unparse(ast.BinOp(statement.target, statement.op, statement.value))}`"
    facts = {
        "about": "cast",
        "owner": f"`{named}`",
        "dtype": f"`{match[2]}`",
        "result": f"`{match[1]}`",
        "part": scene.text(statement),
        "instead": replacement,
    }
    return facts if named and len(replacement) < 80 else None


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
        "rows": count(value.shape[0], "row"),
        "columns": count(value.shape[1], "column"),
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


# scikit-learn


_VALUES_MAX = 1_000_000


def _given(scene: Scene, *names: str) -> Any:
    """Return what was passed to scikit-learn under one of these names, as the user passed it."""
    for variables in reversed(list(scene.library_locals("sklearn"))):
        for name in names:
            if variables.get(name) is not None:
                return variables[name]
    return UNREAD


def _named(scene: Scene, value: object, spare: str) -> str:
    """Return what the user calls a value: by its name, or by its place in the failing call if it has the same size."""
    named = scene.name_of(value)
    if not named and isinstance(scene.node, ast.Call):
        for argument in scene.node.args:
            argument_value = scene.value(argument)
            if _size(argument_value) and _size(argument_value) == _size(value):
                return scene.text(argument) or spare
    return named or spare


def _size(value: Any) -> tuple[int, ...]:
    if type(value) is list:
        return (len(value),) if value and type(value[0]) is not list else ()
    return tuple(value.shape) if shape(value) else ()


def _model(scene: Scene) -> Any:
    """Return the estimator that was called: the outermost `self` or `estimator` of scikit-learn's frames."""
    return _given(scene, "estimator", "self")


def gaps(scene: Scene) -> Facts | None:
    """Say where the missing values are in the features or the target."""
    match = re.search(r"Input (X|y) contains NaN", str(scene.error))
    if match is None:
        return None
    value = _given(scene, match[1])
    if not has_shape(value) or value.size > _VALUES_MAX:
        return None
    named = _named(scene, value, "the features" if match[1] == "X" else "the target")
    refusing = re.search(r"(\w+) does not accept missing values", str(scene.error))
    model = f"`{refusing[1]}`" if refusing else "The model"
    if is_frame(value):
        counts = value.isna().sum()
        column_gaps = [(name, int(count)) for name, count in counts.items() if count]
        if not column_gaps or not all(quoted(name) for name, _ in column_gaps[:6]):
            return None
        places = spoken([f"{quoted(name)} ({count:,} of {len(value):,})" for name, count in column_gaps[:6]])
        return {"about": "features_gaps", "owner": named, "places": places, "model": model}
    if getattr(value.dtype, "kind", "") != "f":
        return None
    flat = (value != value).sum()
    return {
        "about": "values_gaps",
        "owner": named,
        "count": f"{int(flat):,}",
        "size": f"{value.size:,}",
        "model": model,
    }


def one_dimension(scene: Scene) -> Facts | None:
    """Write the expression that gives the features two dimensions."""
    value = _given(scene, "X", "array")
    if not (is_array(value) or is_series(value)) or value.ndim != 1:
        return None
    named = _named(scene, value, "")
    if not named:
        return None
    facts = {"about": "one_dimension", "owner": named, "shape": shape(value), "size": f"{value.size:,}"}
    bare = named.strip("`")
    if is_series(value):
        node = next(
            (n for n in scene.expressions() if scene.text(n) == named and isinstance(n, ast.Subscript)), None
        )
        inside = (
            f"{scene.text(node.value).strip('`')}[[{scene.text(node.slice).strip('`')}]]"
            if node is not None
            else ""
        )
        return {**facts, "instead": f"`{inside or bare + '.to_frame()'}`"}
    column, row = f"`{bare}.reshape(-1, 1)`", f"`{bare}.reshape(1, -1)`"
    model = scene.local("sklearn", "self", accept=lambda one: "n_features_in_" in own_dict(one))
    features = own_dict(model).get("n_features_in_") if model is not UNREAD else None
    arguments = scene.node.args if isinstance(scene.node, ast.Call) else []
    candidates = [
        candidate
        for candidate in map(scene.value, arguments)
        if candidate is not value and candidate is not UNREAD
    ]
    if any(has_shape(candidate) and candidate.shape[:1] == value.shape for candidate in candidates):
        return {**facts, "instead": column}  # a value of the target for each
    if features == value.size != 1:
        return {**facts, "about": "one_row", "instead": row}
    if features == 1 != value.size:
        return {**facts, "instead": column}
    return {**facts, "about": "one_dimension_only", "column": column, "row": row}


def samples(scene: Scene) -> Facts | None:
    """Say how many rows the features and the target have."""
    features, target = _given(scene, "X"), _given(scene, "y")
    values = [features, target]
    if not all(has_shape(v) or type(v) is list for v in values):
        return None
    if len(features) == len(target):
        return None
    return {
        "about": "samples",
        "features": _named(scene, features, "the features"), "target": _named(scene, target, "the target"),
        "rows": f"{len(features):,}", "values": f"{len(target):,}",
    }  # fmt: skip


def not_fitted(scene: Scene) -> Facts | None:
    """Name the model that has not been fitted, and the method that was called."""
    node = scene.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    model, named = scene.value(node.func.value), scene.text(node.func.value)
    match = re.search(r"This (\w+) instance is not fitted yet", str(scene.error))
    if match is None or type(model).__name__ != match[1] or not named:
        return None
    facts = {
        "about": "not_fitted",
        "owner": named,
        "model": f"`{match[1]}`",
        "method": f"`.{node.func.attr}`",
    }
    bare, part = named.strip("`"), scene.text(node.func)
    if node.func.attr == "transform" and hasattr(type(model), "fit_transform"):
        return {**facts, "about": "not_fitted_yet", "part": part, "instead": f"`{bare}.fit_transform`"}
    for features, target in _TRAINED_ON:
        values = [scene.frame.f_globals.get(name, UNREAD) for name in (features, target)]
        if all(map(has_shape, values)) and len(values[0]) == len(values[1]):
            instead = f"`{bare}.fit({features}, {target}).{node.func.attr}`"
            return {**facts, "about": "not_fitted_yet", "part": part, "instead": instead}
    return facts


#: Names that features and target have in most notebooks.
_TRAINED_ON = (("X_train", "y_train"), ("x_train", "y_train"), ("X", "y"), ("x", "y"))


def text_features(scene: Scene) -> Facts | None:
    """Name the columns of text among the features."""
    value = _given(scene, "X")
    if not is_frame(value) or not value.columns.is_unique or not len(value):
        return None
    texts = [name for name in value.columns if type(value[name].iloc[0]) is str]
    match = re.search(r"could not convert string to float: '(?P<text>.*)'", str(scene.error))
    names = labels_text(texts, len(texts))
    if match is None or not names or not quoted(match["text"]):
        return None
    return {
        "about": "text_features",
        "columns": names,
        "value": quoted(match["text"]),
        "owner": _named(scene, value, "the features"),
    }


def unseen_label(scene: Scene) -> Facts | None:
    """List the labels that an encoder knows."""
    match = re.search(r"previously unseen labels: (?P<labels>.+)", str(scene.error))
    classes = own_dict(_given(scene, "self")).get("classes_")
    if match is None or not is_array(classes):
        return None
    new = re.findall(r"'([^']*)'", match["labels"])[:6]
    labels = labels_text(classes.tolist(), len(classes))
    if not new or not labels or not all(map(quoted, new)):
        return None
    return {"about": "unseen_label", "wanted": spoken([quoted(label) for label in new]), "known": labels}


def unknown_category(scene: Scene) -> Facts | None:
    """Name the column with a category that an encoder has not seen, and list those that it knows."""
    match = re.search(r"Found unknown categories (?P<labels>\[.+\]) in column (?P<at>\d+)", str(scene.error))
    attributes = own_dict(_given(scene, "self"))
    categories = attributes.get("categories_")
    if match is None or type(categories) is not list or int(match["at"]) >= len(categories):
        return None
    column_categories = categories[int(match["at"])]
    names = attributes.get("feature_names_in_")
    column = quoted(names[int(match["at"])]) if is_array(names) else f"`{match['at']}`"
    new = re.findall(r"'([^']*)'", match["labels"])[:6]
    if not new or not column or not all(map(quoted, new)) or not is_array(column_categories):
        return None
    return {
        "about": "unknown_category", "wanted": spoken([quoted(label) for label in new]), "column": column,
        "known": labels_text(column_categories.tolist(), len(column_categories)),
    }  # fmt: skip


def feature_names(scene: Scene) -> Facts | None:
    """Say which columns of `fit` are missing now, and which columns are new to the model."""
    fitted = own_dict(_model(scene)).get("feature_names_in_")
    value = _given(scene, "X")
    if not is_array(fitted) or not is_frame(value):
        return None
    before, now = fitted.tolist(), list(value.columns)
    missing, new = (
        [column for column in before if column not in now],
        [column for column in now if column not in before],
    )
    named = _named(scene, value, "the table")
    facts = {"owner": named, "before": labels_text(before, len(before)), "now": labels_text(now, len(now))}
    if not missing and not new:
        fixed = f"`{named.strip('`')}[model.feature_names_in_]`"
        return {**facts, "about": "feature_order", "instead": fixed} if all(facts.values()) else None
    sentences = [
        f"It lacks {labels_text(missing, len(missing))}." if missing else "",
        f"It has {labels_text(new, len(new))}, which the model has not seen." if new else "",
    ]
    return (
        {**facts, "about": "feature_names", "told": " ".join(filter(None, sentences))}
        if all(facts.values())
        else None
    )


def feature_count(scene: Scene) -> Facts | None:
    """Compare the number of columns with the number that the model expects."""
    match = re.search(r"X has (\d+) features, but (\w+) is expecting (\d+) features", str(scene.error))
    value = _given(scene, "X")
    if match is None or not shape(value) or value.shape[-1] != int(match[1]):
        return None
    return {
        "about": "feature_count", "owner": _named(scene, value, "the table"), "has": match[1], "model": f"`{match[2]}`",
        "needs": match[3], "shape": shape(value),
    }  # fmt: skip


def continuous(scene: Scene) -> Facts | None:
    """Show a value of the target that is not a class."""
    target, model = _given(scene, "y"), _model(scene)
    if not (is_array(target) or is_series(target) or type(target) is list):
        return None
    values = [plain(entry) for entry in list(target[:1000])]
    value = next(
        (
            candidate
            for candidate in values
            if type(candidate) is float and math.isfinite(candidate) and candidate != int(candidate)
        ),
        None,
    )
    if value is None:
        return None
    return {
        "about": "continuous",
        "target": _named(scene, target, "the target"),
        "value": quoted(value),
        "model": f"`{type(model).__name__}`",
    }


def one_class(scene: Scene) -> Facts | None:
    """Show the only value of a target."""
    target = _given(scene, "y")
    if not (is_array(target) or is_series(target)) or not target.size or target.size > _VALUES_MAX:
        return None
    values = set(target.tolist())
    if len(values) != 1 or not quoted(next(iter(values))):
        return None
    return {
        "about": "one_class",
        "target": _named(scene, target, "the target"),
        "value": quoted(values.pop()),
        "size": f"{target.size:,}",
    }


def class_for_model(scene: Scene) -> Facts | None:
    """Write the call on a model, for one on its class."""
    node = scene.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    owner, named = scene.value(node.func.value), scene.text(node.func.value).strip("`")
    if (
        not isinstance(owner, type)
        or not type.__getattribute__(owner, "__module__").startswith("sklearn.")
        or not named
    ):
        return None
    rest = ", ".join(scene.text(arg).strip("`") for arg in node.args)
    return {
        "about": "class_for_model",
        "owner": f"`{named}`",
        "instead": f"`{named}().{node.func.attr}({rest})`",
    }


def no_samples(scene: Scene) -> Facts | None:
    """Name the table that has no rows."""
    value = _given(scene, "X", "array")
    if not shape(value) or len(value):
        return None
    return {
        "about": "no_samples",
        "owner": _named(scene, value, "the table of features"),
        "shape": shape(value),
    }


def folds(scene: Scene) -> Facts | None:
    """Compare the number of folds with the number of rows."""
    match = re.search(r"n_splits=(\d+) greater than the number of samples: n_samples=(\d+)", str(scene.error))
    return {"about": "folds", "folds": match[1], "rows": match[2]} if match else None


def mixed_targets(scene: Scene) -> Facts | None:
    """Show what the true and the predicted values are."""
    true, predicted = _given(scene, "y_true"), _given(scene, "y_pred")
    facts = {
        "about": "mixed_targets",
        "true": _named(scene, true, "the true values"),
        "predicted": _named(scene, predicted, "the predicted values"),
    }
    for name, values in (("true_value", true), ("predicted_value", predicted)):
        if not (is_array(values) or is_series(values) or type(values) is list) or not len(values):
            return None
        facts[name] = quoted(next(iter(values[:1])))
    return complete(facts)
