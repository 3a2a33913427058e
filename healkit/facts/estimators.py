"""Facts about the input of scikit-learn."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from healkit.facts.arrays import shape
from healkit.facts.labels import listed, plain, shown, spoken
from healkit.facts.lookups import Facts
from healkit.facts.scene import UNREAD, Scene, is_array, is_frame, is_series, own_dict

_VALUES_MAX = 1_000_000


def _given(scene: Scene, *names: str) -> Any:
    """Return what was passed to scikit-learn under one of these names, as the user passed it."""
    for found in reversed(list(scene.library_locals("sklearn"))):
        for name in names:
            if found.get(name) is not None:
                return found[name]
    return UNREAD


def _named(scene: Scene, value: Any, spare: str) -> str:
    """Return what the user calls a value: by its name, or by its place in the failing call if it has the same size."""
    named = scene.name_of(value)
    if not named and isinstance(scene.node, ast.Call):
        for given in scene.node.args:
            found = scene.value(given)
            if _size(found) and _size(found) == _size(value):
                return scene.text(given) or spare
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
    if not (is_frame(value) or is_array(value) or is_series(value)) or value.size > _VALUES_MAX:
        return None
    named = _named(scene, value, "the features" if match[1] == "X" else "the target")
    refusing = re.search(r"(\w+) does not accept missing values", str(scene.error))
    model = f"`{refusing[1]}`" if refusing else "The model"
    if is_frame(value):
        counts = value.isna().sum()
        found = [(name, int(count)) for name, count in counts.items() if count]
        if not found or not all(shown(name) for name, _ in found[:6]):
            return None
        places = spoken([f"{shown(name)} ({count:,} of {len(value):,})" for name, count in found[:6]])
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
    return {**facts, "instead": f"`{bare}.reshape(-1, 1)`"}


def samples(scene: Scene) -> Facts | None:
    """Say how many rows the features and the target have."""
    features, target = _given(scene, "X"), _given(scene, "y")
    values = [features, target]
    if not all(is_array(v) or is_frame(v) or is_series(v) or type(v) is list for v in values):
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
    return {"about": "not_fitted", "owner": named, "model": f"`{match[1]}`", "method": f"`.{node.func.attr}`"}


def text_features(scene: Scene) -> Facts | None:
    """Name the columns of text among the features."""
    value = _given(scene, "X")
    if not is_frame(value) or not value.columns.is_unique or not len(value):
        return None
    texts = [name for name in value.columns if type(value[name].iloc[0]) is str]
    match = re.search(r"could not convert string to float: '(?P<text>.*)'", str(scene.error))
    names = listed(texts, len(texts))
    if match is None or not names or not shown(match["text"]):
        return None
    return {
        "about": "text_features",
        "columns": names,
        "value": shown(match["text"]),
        "owner": _named(scene, value, "the features"),
    }


def unseen_label(scene: Scene) -> Facts | None:
    """List the labels that an encoder knows."""
    match = re.search(r"previously unseen labels: (?P<labels>.+)", str(scene.error))
    classes = own_dict(_given(scene, "self")).get("classes_")
    if match is None or not is_array(classes):
        return None
    new = re.findall(r"'([^']*)'", match["labels"])[:6]
    known = listed(classes.tolist(), len(classes))
    if not new or not known or not all(map(shown, new)):
        return None
    return {"about": "unseen_label", "wanted": spoken([shown(one) for one in new]), "known": known}


def unknown_category(scene: Scene) -> Facts | None:
    """Name the column with a category that an encoder has not seen, and list those that it knows."""
    match = re.search(r"Found unknown categories (?P<labels>\[.+\]) in column (?P<at>\d+)", str(scene.error))
    made = own_dict(_given(scene, "self"))
    categories = made.get("categories_")
    if match is None or type(categories) is not list or int(match["at"]) >= len(categories):
        return None
    known = categories[int(match["at"])]
    names = made.get("feature_names_in_")
    column = shown(names[int(match["at"])]) if is_array(names) else f"`{match['at']}`"
    new = re.findall(r"'([^']*)'", match["labels"])[:6]
    if not new or not column or not all(map(shown, new)) or not is_array(known):
        return None
    return {
        "about": "unknown_category", "wanted": spoken([shown(one) for one in new]), "column": column,
        "known": listed(known.tolist(), len(known)),
    }  # fmt: skip


def feature_names(scene: Scene) -> Facts | None:
    """Say which columns a model was fitted with that are missing now, and which it has not seen."""
    fitted = own_dict(_model(scene)).get("feature_names_in_")
    value = _given(scene, "X")
    if not is_array(fitted) or not is_frame(value):
        return None
    before, now = fitted.tolist(), list(value.columns)
    missing, new = [one for one in before if one not in now], [one for one in now if one not in before]
    named = _named(scene, value, "the table")
    facts = {"owner": named, "before": listed(before, len(before)), "now": listed(now, len(now))}
    if not missing and not new:
        fixed = f"`{named.strip('`')}[model.feature_names_in_]`"
        return {**facts, "about": "feature_order", "instead": fixed} if all(facts.values()) else None
    told = [
        f"It lacks {listed(missing, len(missing))}." if missing else "",
        f"It has {listed(new, len(new))}, which the model has not seen." if new else "",
    ]
    return (
        {**facts, "about": "feature_names", "told": " ".join(filter(None, told))}
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
    values = [plain(one) for one in list(target[:1000])]
    value = next(
        (one for one in values if type(one) is float and math.isfinite(one) and one != int(one)), None
    )
    if value is None:
        return None
    return {
        "about": "continuous",
        "target": _named(scene, target, "the target"),
        "value": shown(value),
        "model": f"`{type(model).__name__}`",
    }


def one_class(scene: Scene) -> Facts | None:
    """Show the only value of a target."""
    target = _given(scene, "y")
    if not (is_array(target) or is_series(target)) or not target.size or target.size > _VALUES_MAX:
        return None
    values = set(target.tolist())
    if len(values) != 1 or not shown(next(iter(values))):
        return None
    return {
        "about": "one_class",
        "target": _named(scene, target, "the target"),
        "value": shown(values.pop()),
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
        facts[name] = shown(next(iter(values[:1])))
    return facts if all(facts.values()) else None
