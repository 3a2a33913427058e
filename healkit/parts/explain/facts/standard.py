"""Facts about patterns, dates, arguments and missing values."""

from __future__ import annotations

import ast
import builtins
import calendar
import collections.abc
import datetime
import re
from collections.abc import Callable
from typing import Any

from healkit.parts.explain.facts.scene import (
    UNREAD,
    Facts,
    Scene,
    called,
    complete,
    own_dict,
    plain,
    quoted,
)
from healkit.parts.explain.facts.values import MOVED_PARTS, is_number

_PATTERN_MAX_CHARS = 60


# Regular expressions

#: Beginning of the message of `re.error` → what is wrong, and what to write instead.
_PATTERNS = (
    ("missing ), unterminated subpattern", "a `(` in it has no `)`", r"To match a parenthesis, write `\(`."),
    ("unbalanced parenthesis", "a `)` in it has no `(`", r"To match a parenthesis, write `\)`."),
    ("unterminated character set", "a `[` in it has no `]`", r"To match a bracket, write `\[`."),
    ("nothing to repeat", "there is nothing before a sign that repeats",
     "`*`, `+` and `?` repeat what comes before them; `.*` matches any text."),
    ("multiple repeat", "two signs that repeat follow each other", "To match the sign itself, put a backslash before it."),
    ("bad escape (end of pattern)", "it ends with a single backslash", "To match a backslash, write two of them, in `r'…'`."),
    ("bad escape", "it has a backslash before a letter that has no meaning there",
     "To match a backslash, write two of them, in `r'…'`."),
    ("bad character range", "a range in its brackets goes backwards", "To match a `-`, put it at the end."),
    ("invalid group reference", "it refers to a group that it does not have", "Groups are counted from 1."),
    ("incomplete escape", r"a backslash in it begins an escape, such as `\x41` or `\u0041`, that is not complete",
     "To match a backslash, write two of them, in `r'…'`."),
    ("look-behind requires fixed-width", "its look-behind can match texts of different lengths",
     "Give each alternative of `(?<=…)` the same length."),
    ("unknown extension", "`(?` is followed by a sign that has no meaning there", "A named group is `(?P<name>…)`."),
    ("redefinition of group name", "it gives two groups the same name", "Give each group its own name."),
)  # fmt: skip


def pattern(scene: Scene) -> Facts | None:
    """Show the regular expression, the place where it cannot be read, and what is wrong there."""
    attributes = own_dict(scene.error)
    text, place, message = attributes.get("pattern"), attributes.get("pos"), attributes.get("msg")
    if (
        type(text) is not str
        or type(message) is not str
        or not 0 < len(text) <= _PATTERN_MAX_CHARS
        or "`" in text
    ):
        return None
    if any(frame.f_code.co_name in {"parse_template", "expand_template"} for frame in scene.frames):
        return None  # a replacement text
    wrong, advice = next(
        ((what, how) for begin, what, how in _PATTERNS if message.startswith(begin)), (message, "")
    )
    facts = {"about": "pattern", "owner": f"`{text}`", "wrong": wrong, "advice": advice, "marked": ""}
    if type(place) is int and 0 <= place <= len(text):
        facts["marked"] = f"`{text[:place]}‸{text[place:]}`"
    return facts


# Dates and times

_PARTS = ("year", "month", "day", "hour", "minute", "second", "microsecond")
_LIMITS = {
    "month": (1, 12),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "microsecond": (0, 999_999),
}
_DAY, _MOMENT = datetime.date, datetime.datetime


def date_parts(scene: Scene) -> Facts | None:
    """Say which part of a date or a time does not exist."""
    parts = _date_parts(scene)
    year, month, day = parts.get("year"), parts.get("month"), parts.get("day")
    for part, value in parts.items():
        low, high = _LIMITS.get(part, (value, value))
        if not low <= value <= high:
            facts = {"asked": f"`{value}`", "part": part, "low": str(low), "high": str(high)}
            is_swapped = part == "month" and day is not None and 1 <= day <= 12 and value <= 31
            return {**facts, "about": "month_is_day" if is_swapped else "date_part"}
    if year is None or month is None or day is None or not 1 <= year <= 9999:
        return None
    size = calendar.monthrange(year, month)[1]
    if 1 <= day <= size:
        return None
    name = f"{calendar.month_name[month]} {year}"
    return {"about": "day_of_month", "month": name, "size": str(size), "asked": f"`{day}`"}


def _date_parts(scene: Scene) -> dict[str, int]:
    """Return the parts of the date that the failing call is to make, as far as they are known."""
    for frame_locals in scene.library_locals("_strptime"):
        if {"year", "month", "day"} <= frame_locals.keys():
            return _numbers((part, frame_locals[part]) for part in ("year", "month", "day"))
    node = scene.node
    if not isinstance(node, ast.Call):
        return {}
    name = called(node)
    values = [scene.value(expression) for expression in node.args]
    named = {keyword.arg: scene.value(keyword.value) for keyword in node.keywords if keyword.arg}
    if name == "fromisoformat" and values and type(values[0]) is str:
        return _numbers(zip(_PARTS, re.findall(r"\d+", values[0]), strict=False))
    original_parts = dict[str, Any]()
    if name == "replace" and isinstance(node.func, ast.Attribute):
        owner = scene.value(node.func.value)
        if type(owner) in {_DAY, _MOMENT}:
            original_parts = {"year": owner.year, "month": owner.month, "day": owner.day}
        elif isinstance(node.func.value, ast.Call) and called(node.func.value) in {"date", "datetime"}:
            original_parts = _numbers(zip(_PARTS, map(scene.value, node.func.value.args), strict=False))
    elif name not in {"date", "datetime", "time"}:
        return {}
    parts = _PARTS[3:] if name == "time" else _PARTS
    return _numbers([*original_parts.items(), *zip(parts, values, strict=False), *named.items()])


def _numbers(pairs: Any) -> dict[str, int]:
    return {
        name: int(value)
        for name, value in pairs
        if type(value) is int or (type(value) is str and value.isdecimal())
    }


def moments(scene: Scene) -> Facts | None:
    """Say which of two times has a time zone, which is a day only, and which is a number or text."""
    sides = _sides(scene)
    if sides is None:
        return None
    texts, values = [scene.text(side) for side in sides], [scene.value(side) for side in sides]
    if not all(texts):
        return None
    kinds = [_kind_of_time(side, value) for side, value in zip(sides, values, strict=True)]
    if set(kinds) == {"naive", "aware"}:
        naive = kinds.index("naive")
        facts = {"about": "zone_one", "naive": texts[naive], "aware": texts[1 - naive]}
        is_now = re.fullmatch(r"`(?:\w+\.)*now\(\)`", texts[naive]) is not None
        return {**facts, "about": "zone_of_now"} if is_now else facts
    if {"date"} < set(kinds) and {"naive", "aware"} & set(kinds):
        day = kinds.index("date")
        return {"about": "moment_and_day", "day": texts[day], "moment": texts[1 - day]}
    times = [n for n, kind in enumerate(kinds) if kind in {"naive", "aware", "date", "time"}]
    if len(times) != 1:
        return None
    counterpart = 1 - times[0]
    facts = {"moment": texts[times[0]], "other": texts[counterpart]}
    if type(plain(values[counterpart])) in {int, float}:
        return {**facts, "about": "moment_and_number"}
    return {**facts, "about": "moment_and_text"} if type(values[counterpart]) is str else None


def _sides(scene: Scene) -> tuple[ast.expr, ast.expr] | None:
    match scene.node or scene.statement:
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return left, right
        case ast.AugAssign(target=left, value=right):
            return left, right
    return None


def _kind_of_time(node: ast.expr, value: object) -> str:
    """Return `naive`, `aware`, `date`, or nothing; for a call, the code decides."""
    if type(value) is _MOMENT:
        return "naive" if value.tzinfo is None else "aware"
    if type(value) is _DAY:
        return "date"
    if value is not UNREAD or not isinstance(node, ast.Call):
        return ""
    name, argument_count = called(node), len(node.args) + len(node.keywords)
    if name in {"now", "utcnow"}:
        return "aware" if argument_count else "naive"
    return {
        "today": "date" if ast.unparse(node.func).endswith("date.today") else "naive",
        "date": "date",
    }.get(name, "")


# Arguments

_WANTED = (
    re.compile(r"must be (?P<wanted>real number|str|an integer|int|integer)(?: or None)?, not (?P<kind>[\w.]+)"),
    re.compile(r"'(?P<kind>[\w.]+)' object cannot be interpreted as an (?P<wanted>integer)"),
    re.compile(r"expected (?P<wanted>string) or bytes-like object(?:, got '(?P<kind>\w+)')?"),
    re.compile(r"expected (?P<wanted>str|string|int)(?: instance)?,? (?:got|not) '?(?P<kind>\w+)"),
    re.compile(r"expected (?P<wanted>str), bytes or os.PathLike object, not (?P<kind>\w+)"),
    re.compile(r"argument must be (?P<wanted>str), bytes, or os.PathLike object, not '(?P<kind>\w+)'"),
    re.compile(r"unsupported type for timedelta (?:\w+) component: (?P<kind>\w+)"),
    re.compile(r"bad operand type for abs\(\): '(?P<kind>\w+)'"),
    re.compile(r"type (?P<kind>\w+) doesn't define __(?:round|floor|ceil)__ method"),
)  # fmt: skip
_NEEDED = {
    "str": "text",
    "string": "text",
    "integer": "an integer",
    "an integer": "an integer",
    "int": "an integer",
}


def argument(scene: Scene) -> Facts | None:
    """Say which argument of a call has the wrong type, its value, and what is needed."""
    message, node = str(scene.error), scene.node
    match = next((m for m in (pattern.search(message) for pattern in _WANTED) if m is not None), None)
    if match is None or not isinstance(node, ast.Call):
        return None
    needs = _NEEDED.get(match.groupdict().get("wanted") or "", "a number")
    position_match = re.search(r"argument (\d+)", message)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    arguments = arguments[int(position_match[1]) - 1 :][:1] if position_match is not None else arguments
    kind = match["kind"]
    for expression in arguments:
        value, text = scene.value(expression), scene.text(expression)
        if value is UNREAD or not text or (kind and type(value).__name__ != kind.rpartition(".")[2]):
            continue
        if kind is None and type(value) in {str, bytes}:
            continue
        description = (
            text
            if isinstance(expression, ast.Constant) or value is None or not quoted(value)
            else f"{text} ({quoted(value)})"
        )
        facts = {"function": scene.text(node.func), "owner": description, "given": text, "needs": needs}
        facts["kind"] = f"`{type(value).__name__}`"
        is_date = called(node) in {"date", "datetime"} and type(value) is str
        if is_date and re.fullmatch(r"\d{4}-\d\d-\d\d(?:[T ][\d:]+)?", value):
            part = f"`{ast.unparse(node.func)}.fromisoformat({text.strip('`')})`"
            whole = {"given": scene.text(node), "part": part}
            return complete(
                {"about": "date_of_text", "function": facts["function"], "owner": description, **whole}
            )
        about = (
            "argument_none"
            if value is None and not isinstance(expression, ast.Constant)
            else _about(value, needs)
        )
        return complete({"about": about, **facts})
    return None


def _about(value: object, needs: str) -> str:
    if type(value) is str and needs != "text":
        try:
            number = float(value)
        except ValueError:
            return "argument_other"
        return "argument_to_int" if number.is_integer() and needs == "an integer" else "argument_to_float"
    if type(value) in {int, float, bool} and needs == "text":
        return "argument_to_text"
    if type(value) is float and needs == "an integer" and value.is_integer():
        return "argument_to_int"
    return "argument_other"


# Values that are not there

_IN_PLACE = frozenset(
    ("sort", "reverse", "append", "extend", "insert", "clear", "add", "update", "remove", "shuffle")
)


def nothing(scene: Scene) -> Facts | None:
    """Say why a value is `None`: a method that changes its object, `print`, or a function without `return`."""
    for node in scene.expressions():
        match node:
            case ast.Attribute(value=owner) | ast.Subscript(value=owner):
                pass
            case ast.Call(args=[owner, *_]) | ast.BinOp(left=owner):
                pass
            case ast.Name() | ast.Call() if node in {scene.node, getattr(scene.statement, "iter", None)}:
                owner = node
            case _:
                continue
        for source in [owner] if isinstance(owner, ast.Call) else _last_assigned(scene, owner):
            if (why := _gives_nothing(scene, source)) is None:
                continue
            facts = {
                "owner": scene.text(owner),
                "line": "" if source is owner else f" in line {source.lineno}",
            }
            return complete({**facts, **why, "line": facts["line"] or "here"}) if facts["owner"] else None
    return None


def _last_assigned(scene: Scene, node: ast.expr) -> list[ast.Call]:
    if not isinstance(node, ast.Name) or scene.value(node) is not None:
        return []
    before = [
        assignment for assignment in scene.assigned(node.id) if assignment.lineno < getattr(node, "lineno", 0)
    ]
    last = max(before, key=lambda one: one.lineno, default=None)
    return [last.value] if last is not None and isinstance(last.value, ast.Call) else []


def _gives_nothing(scene: Scene, call: ast.Call) -> Facts | None:
    name = called(call)
    if isinstance(call.func, ast.Attribute) and name in _IN_PLACE and scene.value(call.func) is UNREAD:
        return {"about": "changes_in_place", "function": f"`.{name}()`"}
    if isinstance(call.func, ast.Attribute):
        owner = scene.value(call.func.value)
        wanted = scene.value(call.args[0]) if call.args else UNREAD
        if name == "get" and len(call.args) == 1 and type(owner) is dict and type(wanted) in {str, int}:
            facts = {"about": "get_nothing", "given": scene.text(call.func.value), "wanted": quoted(wanted)}
            return facts | {"whole": scene.text(call)} if wanted not in owner else None
        if name in {"search", "match", "fullmatch"} and (owner is re or type(owner) is re.Pattern):
            return {"about": "search_nothing", "function": f"`{name}`"}
    if isinstance(call.func, ast.Name):
        if name == "print":
            return {"about": "prints_only", "function": "`print`"}
        for definition in scene.all(ast.FunctionDef):
            returns = [
                n for n in ast.walk(definition) if isinstance(n, ast.Return | ast.Yield | ast.YieldFrom)
            ]
            if (
                definition.name == name
                and not any(isinstance(n, ast.Return) and n.value for n in returns)
                and all(isinstance(n, ast.Return) for n in returns)
            ):
                return {"about": "returns_nothing", "function": f"`{name}`"}
    return None


# Unpacking


def unpacked(scene: Scene) -> Facts | None:
    """Say what a loop or an assignment unpacks, if that is known."""
    statement = scene.statement
    loops = [
        (n.target, n.iter)
        for n in ast.walk(statement or ast.Pass())
        if isinstance(n, ast.For | ast.comprehension)
    ]
    for target, source in loops:
        value, text = scene.value(source), scene.text(source)
        if isinstance(target, ast.Tuple) and len(target.elts) == 2 and type(value) is dict and text:
            return {"about": "unpack_keys", "owner": text}
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple):
        value, text = scene.value(statement.value), scene.text(statement.value)
        names = len(statement.targets[0].elts)
        starred = any(isinstance(element, ast.Starred) for element in statement.targets[0].elts)
        if not starred and (split_facts := _split_by_another(scene, statement.value, names)) is not None:
            return split_facts
        if type(value) in {list, tuple, dict, set, str} and text and not starred and len(value) != names:
            return {"about": "unpack_count", "owner": text, "size": str(len(value)), "names": str(names)}
    return None


def _split_by_another(scene: Scene, node: ast.expr, names: int) -> Facts | None:
    """Say at which other separator a text has as many parts as there are names."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="split"), args=[ast.Constant(value=str(sign))]):
            value = scene.value(owner)
            for separator in (";", ",", "\t", "|", ":", " "):
                if type(value) is str and separator != sign and value.count(separator) == names - 1:
                    text = scene.text(owner).strip("`")
                    facts = {
                        "owner": f"`{text}`" if text else "",
                        "value": quoted(value),
                        "part": scene.text(node),
                    }
                    written = repr(separator)
                    return complete(
                        {
                            **facts,
                            "about": "split_by_another",
                            "instead": f"`{text}.split({written})`",
                            "sign": f"`{written}`",
                        }
                    )
    return None


def moved(scene: Scene) -> Facts | None:
    """Say where a name is now that a module no longer has."""
    match = re.search(r"cannot import name '(\w+)' from '([\w.]+)'", str(scene.error))
    if match is None:
        return None
    name, module = match.groups()
    facts = {"about": "name_moved", "wanted": f"`{name}`", "owner": f"`{module}`"}
    namespace = vars(collections.abc) if module in {"collections", "typing"} else {}
    if name in namespace and name[0].isupper():
        return {**facts, "found": "`collections.abc`", "instead": f"`from collections.abc import {name}`"}
    if f"{module}.{name}" in MOVED_PARTS:
        home = MOVED_PARTS[f"{module}.{name}"]
        return {**facts, "found": f"`{home}`", "instead": f"`import {home}`"}
    return None


def called_value(scene: Scene) -> Facts | None:
    """Say which value is called as if it were a function."""
    node = scene.node
    if not isinstance(node, ast.Call):
        return None
    value, owner = scene.value(node.func), scene.text(node.func)
    if value is UNREAD or not owner or isinstance(node.func, ast.Constant):
        return None
    facts = {"owner": owner, "kind": f"`{type(value).__name__}`"}
    if type(value) in {list, tuple, dict, str}:
        return {**facts, "about": "called_items"}
    return {**facts, "about": "called_number"} if type(value) in {int, float} else None


def summed(scene: Scene) -> Facts | None:
    """Say which item of a sum is text."""
    node = scene.node
    if not isinstance(node, ast.Call) or called(node) != "sum" or len(node.args) != 1:
        return None
    values, owner = scene.value(node.args[0]), scene.text(node.args[0])
    if type(values) not in {list, tuple} or not owner:
        return None
    texts = [(place, value) for place, value in enumerate(values[:1000]) if type(value) is str]
    if not texts or not quoted(texts[0][1]):
        return None
    facts = {
        "owner": owner,
        "place": str(texts[0][0]),
        "value": quoted(texts[0][1]),
        "given": owner,
        "part": "",
    }
    for kind in ("int", "float"):
        try:
            for _, text in texts:
                {"int": int, "float": float}[kind](text)
        except ValueError:
            continue
        return {**facts, "about": "sum_of_text", "part": f"`map({kind}, {owner.strip('`')})`"}
    return {**facts, "about": "sum_of_words"}


def counted(scene: Scene) -> Facts | None:
    """Say that a loop goes over a number."""
    loop = scene.statement
    if not isinstance(loop, ast.For) or type(scene.value(loop.iter)) is not int:
        return None
    return complete({"about": "loop_over_number", "owner": scene.text(loop.iter)})


#: Functions of two arguments that take a type, a function or a name in one place: function → place, test.
_PLACES: dict[str, tuple[int, Callable[[Any], bool]]] = {
    **dict.fromkeys(("isinstance", "issubclass"), (1, lambda value: issubclass(type(value), type))),
    **dict.fromkeys(("map", "filter", "reduce"), (0, callable)),
    **dict.fromkeys(("getattr", "hasattr", "delattr"), (1, lambda value: type(value) is str)),
    "enumerate": (1, lambda value: type(value) is int),
    "insert": (0, lambda value: type(value) is int),
    "split": (1, lambda value: type(value) is int),
    "round": (1, lambda value: type(value) is int),
    "sample": (0, lambda value: type(value) in (list, tuple, range)),
    "strptime": (1, lambda value: type(value) is str and "%" in value),
    "open": (1, lambda value: type(value) is str and re.fullmatch("[rwax][bt+]*", value) is not None),
}


def exchanged(scene: Scene) -> Facts | None:
    """Say that two arguments are in the wrong order, if their values leave no doubt."""
    node = scene.node
    if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords or called(node) not in _PLACES:
        return None
    place, fits = _PLACES[called(node)]
    values = [_named_value(scene, expression) for expression in node.args]
    if UNREAD in values or fits(values[place]) or not fits(values[1 - place]):
        return None
    function, first, second = (scene.text(part).strip("`") for part in (node.func, *node.args))
    return complete(
        {
            "about": "arguments_exchanged",
            "function": f"`{function}`",
            "part": scene.text(node) if function and first and second else "",
            "instead": f"`{function}({second}, {first})`",
        }
    )


def _named_value(scene: Scene, node: ast.expr) -> Any:
    """Return an expression's value, also of Python's own functions and types; otherwise UNREAD."""
    value = UNREAD if isinstance(node, ast.Starred) else scene.value(node)
    if value is UNREAD and isinstance(node, ast.Name):
        return vars(builtins).get(node.id, UNREAD)
    return value


def formatted(scene: Scene) -> Facts | None:
    """Name the text that is written with a format for numbers."""
    for node in scene.expressions():
        operands = (
            [node.value] if isinstance(node, ast.FormattedValue) and node.format_spec is not None else []
        )
        if isinstance(node, ast.Call) and called(node) == "format":
            operands = node.args
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            operands = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        for operand in operands:
            value = scene.value(operand)
            if type(value) is str and is_number(value):
                owner = scene.text(operand)
                how = (
                    "int"
                    if re.fullmatch(r"\s*[-+]?\d+\s*", value) and re.search("'d'|^%d", str(scene.error))
                    else "float"
                )
                facts = {"about": "text_formatted", "owner": owner, "value": quoted(value)}
                return complete({**facts, "instead": f"`{how}({owner.strip('`')})`" if owner else ""})
    return None


def command(scene: Scene) -> Facts | None:
    """Say that a program does not exist if the code was about to start one."""
    name = getattr(scene.error, "filename", None)
    starts = any(frame.f_globals.get("__name__") == "subprocess" for frame in scene.frames)
    return complete({"about": "no_command", "wanted": quoted(name)}) if starts else None
