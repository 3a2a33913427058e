"""Facts about failed conversions to numbers and dates."""

from __future__ import annotations

import ast
import datetime
import itertools
import math
import re
from typing import Any

from healkit.facts.labels import listed, shown
from healkit.facts.lookups import Facts
from healkit.facts.scene import UNREAD, Scene, is_frame, is_series

_SCANNED_MAX = 100_000
_QUOTED = (
    r"invalid literal for int\(\) with base 10: (?P<a>'.*'|\".*\")|"
    r"could not convert string to float: (?P<b>'.*'|\".*\")"
)


def missing_to_int(scene: Scene) -> Facts | None:
    """Say which rows of which column have no value where the code converts to integers."""
    owner = converted(scene)
    if is_series(owner) and _is_float(owner):
        return _gaps(scene, owner)
    if is_frame(owner):
        columns = [name for name in owner.columns if _is_float(owner[name]) and owner[name].isna().any()]
        if columns and owner.columns.is_unique and (names := listed(columns, len(columns))):
            return {
                "about": "gaps_in_columns",
                "owner": scene.name_of(owner) or "the table",
                "columns": names,
            }
    return None


def _is_float(column: Any) -> bool:
    return str(column.dtype).startswith(("float", "Float"))


def _gaps(scene: Scene, owner: Any) -> Facts | None:
    gaps = owner[owner.isna()]
    named = scene.name_of(owner) or "the column"
    if len(gaps):
        facts = {
            "about": "gaps",
            "owner": named,
            "count": f"{len(gaps):,}",
            "rows": f"{len(owner):,}",
            "row": shown(gaps.index[0]),
        }
        return facts if facts["row"] else None
    infinite = owner[owner.abs() == math.inf]
    if not len(infinite) or not shown(infinite.index[0]):
        return None
    return {
        "about": "infinite",
        "owner": named,
        "row": shown(infinite.index[0]),
        "value": f"`{float(infinite.iloc[0])}`",
    }


def converted(scene: Scene) -> Any:
    """Return the table or series that pandas worked on, the outermost one."""
    owner = UNREAD
    for found in scene.library_locals("pandas"):
        if is_frame(found.get("self")) or is_series(found.get("self")):
            owner = found["self"]
    return owner


def number_text(scene: Scene) -> Facts | None:
    """Say which row holds the text that is not a number."""
    match = re.search(_QUOTED, str(scene.error))
    if match is None:
        return None
    try:
        text = ast.literal_eval(match["a"] or match["b"])
    except (ValueError, SyntaxError):
        return None
    node = scene.node
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"int", "float"}
        and node.args
    ):
        given = node.args[0]
        told = {
            "about": "text_not_number",
            "owner": scene.text(given),
            "value": shown(text),
            "kind": f"`{node.func.id}`",
        }
        told |= _why_no_number(text, node.func.id)
        readable = not isinstance(given, ast.Constant) and scene.value(given) == text
        return told if readable and all(told.values()) else None
    owner = converted(scene)
    if is_frame(owner):
        return _in_columns(scene, owner, text)
    if is_series(owner):
        return _row_of(
            scene, owner, text, "row_not_number", _why_no_number(text, "int" if match["a"] else "float")
        )
    return _in_list(scene, text)


def _in_columns(scene: Scene, owner: Any, text: str) -> Facts | None:
    for name in owner.columns if owner.columns.is_unique else ():
        if told := _row_of(scene, owner[name], text, "row_not_number", _why_no_number(text, "float")):
            column = f"{scene.name_of(owner) or 'the table'}, column {shown(name)}"
            return {**told, "owner": column} if shown(name) else None
    return None


def _in_list(scene: Scene, text: str) -> Facts | None:
    """Say at which index of a list the text is that an array cannot hold."""
    for node in scene.expressions():
        if not isinstance(node, ast.Name):
            continue
        found = scene.value(node)
        if (
            type(found) is list
            and len(found) <= _SCANNED_MAX
            and any(type(v) is str and v == text for v in found)
        ):
            at = next(at for at, value in enumerate(found) if type(value) is str and value == text)
            told = {"about": "item_not_number", "owner": f"`{node.id}[{at}]`", "value": shown(text)}
            return {**told, **_why_no_number(text, "float")} if told["value"] else None
    return None


def _why_no_number(text: str, kind: str) -> Facts:
    """Say why a text is not a number."""
    stripped = text.strip()
    if not stripped:
        return {"reason": "It has no digits: it is empty or only white space.", "remedy": ""}
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
        return {"reason": "It has more than digits, a sign and a decimal point.", "remedy": ""}
    return {"reason": "It has no digits.", "remedy": ""}


def _row_of(scene: Scene, owner: Any, text: str, about: str, more: Facts) -> Facts | None:
    if len(owner) > _SCANNED_MAX:
        return None
    places = [at for at, value in enumerate(owner.tolist()) if type(value) is str and value == text]
    if not places or not shown(text):
        return None
    row = shown(owner.index[places[0]])
    count = "" if len(places) == 1 else f" ({len(places):,} rows hold it)"
    told = {
        "about": about,
        "owner": scene.name_of(owner) or "the column",
        "row": row,
        "value": shown(text),
        "count": count,
    }
    return {**told, **more} if row else None


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
    asked = None
    for found in scene.library_locals("pandas"):
        if "arg" in found and "format" in found:
            owner, asked = found["arg"], found["format"]
    if not is_series(owner) or len(owner) > _SCANNED_MAX:
        return None
    message = str(scene.error)
    match = re.search(r"time data \"(?P<text>.*?)\" doesn't match format \"(?P<form>.*?)\"", message)
    form = match["form"] if match else asked
    if type(form) is not str or "`" in form:
        return None
    texts = [value for value in owner.tolist() if type(value) is str]
    text = match["text"] if match else next(itertools.filterfalse(lambda one: _fits(one, form), texts), None)
    if text is None:
        return None
    day = re.search(r"is out of range for month|month must be in 1\.\.12", message)
    about = "no_such_day" if day else "row_other_form" if asked is None else "row_not_of_form"
    return _row_of(scene, owner, text, about, {"form": f"`{form}`", "first": shown(texts[0])})


def _fits(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)  # noqa: DTZ007 - only tried, the time is not used
    except ValueError:
        return False
    return True
