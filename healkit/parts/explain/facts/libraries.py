"""Facts about any library: what it removed, has and takes.

These facts are for libraries without their own rows. Removed names are looked up before similar names are suggested,
because `DataFrame.append` did not become `add`. The removed names are in `removed.toml`.
`benchmarks/removed_interfaces.py` makes this file from two released versions of each library.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, cast

from healkit.parts.explain.facts.scene import (
    PRIVATE,
    UNREAD,
    Facts,
    Scene,
    complete,
    is_column_or_frame,
    is_frame,
    labels_text,
    nearest,
    own_dict,
    quoted,
    similar,
    spoken,
)
from healkit.parts.explain.facts.scopes import KEYWORD, called_by_name, parameters
from healkit.parts.explain.facts.tables import GONE


class Removed(NamedTuple):
    """Interface that a library no longer has.

    name: Name in the library, such as `DataFrame.append`.
    old: An earlier version that had it, such as `pandas==1.5.3`.
    instead: The full name that its documentation named; empty for none.
    same: Whether the new one takes the same parameters.
    """

    name: str
    old: str
    instead: str
    same: bool


class _Table(NamedTuple):
    """Removed interfaces of one library, with the successor of each, or an empty text."""

    old: str
    names: dict[str, str]


@functools.cache
def _tables() -> dict[str, _Table]:
    """Read the table, with the first failure that may be about one."""
    import tomllib

    read = tomllib.loads(Path(__file__).with_name("removed.toml").read_text(encoding="utf-8"))
    return {
        package: _Table(entry["old"], dict.fromkeys(entry["gone"].split(), "") | entry["instead"])
        for package, entry in read.items()
    }


def _removed(package: str, *names: str) -> Removed | None:
    table = _tables().get(package)
    for name in names if table is not None else ():
        if name in cast("_Table", table).names:
            old, instead = cast("_Table", table).old, cast("_Table", table).names[name]
            return Removed(name, old, instead.lstrip("="), instead.startswith("="))
    return None


def _class_names(value: object) -> tuple[str, list[str]]:
    """Return the package of a value's class, or of a class itself, and the names of its classes."""
    kind = cast("type[Any]", value) if issubclass(type(value), type) else type(value)
    module = type.__dict__["__module__"].__get__(kind)
    return str(module).partition(".")[0], [base.__name__ for base in type.mro(kind)[:-1]]


def removed_in(error: BaseException, scene: Scene | None = None) -> Removed | None:
    """Return the removed interface that a failure is about; None for any other failure."""
    if isinstance(error, ImportError):
        match = re.search(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
        return _of_module(match[2], match[1]) if match else None
    if isinstance(error, AttributeError) and type(error.name) is str:
        if type(error.obj) is ModuleType:
            return _of_module(error.obj.__name__, error.name)
        package, kinds = _class_names(error.obj)
        return _removed(package, *(f"{kind}.{error.name}" for kind in kinds))
    match = KEYWORD.search(str(error)) if type(error) is TypeError else None
    if match is None or scene is None or not isinstance(scene.node, ast.Call):
        return None
    function, name = scene.value(scene.node.func), match[2]
    if issubclass(type(function), type):
        package, kinds = _class_names(function)
        return _removed(package, *(f"{home}{kinds[0]}({match[3]})" for home in _homes(function)))
    if type(function) is FunctionType:
        package = function.__module__.partition(".")[0]
        return _removed(package, *(f"{home}{name}({match[3]})" for home in _homes(function)))
    if isinstance(scene.node.func, ast.Attribute):
        owner = scene.value(scene.node.func.value)
        if owner is not UNREAD and type(owner) is not ModuleType:
            package, kinds = _class_names(owner)
            return _removed(package, *(f"{kind}.{scene.node.func.attr}({match[3]})" for kind in kinds))
    return None


def _homes(thing: Any) -> list[str]:
    """Return what may stand before a function's or class's name: each part of its module but the first."""
    parts = str(thing.__module__).split(".")[1:]
    return ["", *(f"{'.'.join(parts[:end])}." for end in range(1, len(parts) + 1))]


def _of_module(module: str, name: str) -> Removed | None:
    package, _, rest = module.partition(".")
    return _removed(package, f"{rest}.{name}" if rest else name, name)


def gone(scene: Scene) -> Facts | None:
    """Say that a library removed what the code asks for, and what its documentation named instead."""
    removal = removed_in(scene.error, scene)
    if removal is None:
        return None
    if is_column_or_frame(getattr(scene.error, "obj", None)) and getattr(scene.error, "name", None) in GONE:
        return None  # `tables` knows what to write
    package, old = removal.old.split("==")
    package = {"scikit-learn": "sklearn"}.get(package, package)
    owner = getattr(scene.error, "obj", None)
    home, _, last = removal.name.rpartition(".")
    class_names = _class_names(owner)[1] if owner is not None and type(owner) is not ModuleType else []
    whole = f"{class_names[0]}.{last}" if home in class_names else removal.name
    facts = {"wanted": f"`{whole}`", "old": old, "package": package}
    if removal.name.endswith(")"):
        name, _, argument = removal.name.rstrip(")").partition("(")
        facts |= {"function": f"`{name}`", "wanted": f"`{argument}`"}
        return complete({**facts, "about": "argument_removed"})
    if not removal.instead:
        return complete({**facts, "about": "interface_removed"})
    beside, _, right = removal.instead.rpartition(".")
    facts["successor"] = (
        f"`{f'{class_names[0]}.{right}' if home in class_names and beside.endswith(f'.{home}') else removal.instead}`"
    )
    node = next(
        (
            attribute
            for attribute in scene.expressions()
            if isinstance(attribute, ast.Attribute) and attribute.attr == last
        ),
        None,
    )
    text = scene.text(node.value).strip("`") if node is not None else ""
    if not removal.same or not text or beside != (f"{package}.{home}" if home else package):
        return complete({**facts, "about": "interface_replaced"})
    return complete(
        {**facts, "about": "interface_renamed", "part": f"`{text}.{last}`", "right": f"`{text}.{right}`"}
    )


# What a library itself says of a name: its warnings, its documentation

_TEXT_MAX_CHARS, _SAID_MAX_CHARS = 100_000, 280
_GONE = r"\b(?:deprecated|renamed|superseded|obsolete|removed|no longer|replaced (?:by|with))\b"
_ANNOUNCES = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
#: Marks of a documentation's format that no reader needs.
_MARKUP = re.compile(r"^\W*\w+:: ?[\d.]*[\s*]*|:\w+:(?=`)|(?<=`)[`~]|`(?=`)")
_NEW_NAME = re.compile(r"renamed\W+(?:from\W+\w+\W+)?(?:to\W+)?(\w+)\W*(?:in (?:version )?[\d.]+)?$")


def said_gone(scene: Scene) -> Facts | None:
    """Quote what a recorded warning, or the documentation, says about a removed name; runs no foreign code."""
    error, node = scene.error, scene.node
    match = KEYWORD.search(str(error)) if type(error) is TypeError else None
    if isinstance(error, AttributeError) and isinstance(node, ast.Attribute):
        name, value, owner = error.name, cast("Any", error.obj), scene.text(node.value)
    elif match is not None and isinstance(node, ast.Call):
        name, value, owner = match[3], called_by_name(match[2], scene), scene.text(node.func)
    else:
        return None
    gone = removed_in(error, scene)
    if type(name) is not str or not name.isidentifier() or (gone is not None and gone.instead):
        return None
    kind = value if issubclass(type(value), type) else type(value)
    home, document = _class_names(kind)[0], vars(kind).get("__doc__")
    if type(value) in (ModuleType, FunctionType):
        home, document = value.__name__ if type(value) is ModuleType else value.__module__, value.__doc__
    package = str(home).partition(".")[0]
    modules = [
        own_dict(module) for key, module in list(sys.modules.items()) if key.partition(".")[0] == package
    ]
    warning_keys = [
        (f"`{package}` warned", key)
        for namespace in modules
        for key in namespace.get("__warningregistry__", ())
    ]
    registry = scene.frame.f_globals.get("__warningregistry__", ())
    warning_keys += [("A warning above says", key) for key in (*registry, *scene.warned)]
    announcements = [
        (by, key[0]) for by, key in warning_keys if type(key) is tuple and issubclass(key[1], _ANNOUNCES)
    ]
    for source, text in (*announcements, (f"The documentation of {owner} says", document)):
        if type(text) is str and (sentence := _said_of(name, text)):
            facts = {"wanted": f"`{name}`", "owner": owner, "source": source, "said": sentence}
            new = _NEW_NAME.search(sentence)
            if new and match is not None and new[1] in parameters(match[2], scene):
                return complete({**facts, "about": "said_renamed", "right": f"`{new[1]}`"})
            return complete({**facts, "about": "said_gone"})
    return None


def _said_of(name: str, text: str) -> str:
    """Return the sentence that says that a name was removed, with its advice; empty if the text does not say so."""
    marked = rf"(?:[`'\"*.]{name}\b|\b{name}[`'\"*(=])"
    gone = rf"(?i){marked}[^;]{{0,80}}?{_GONE}|\b(?:renamed from|deprecated|removed)\W+(?:the )?(?:\w+ )?{marked}"
    parts = re.split(r"(?<=[.!])\s+|\n\s*\n|\s+\.\.\s", text[:_TEXT_MAX_CHARS]) if name in text else []
    for part, after in itertools.pairwise([*parts, ""]):
        if re.search(gone, part):
            more = after if re.match(r"(?:Please )?[Uu]se\b|Instead\b", after) else ""
            sentence = _MARKUP.sub("", " ".join(f"{part} {more}".split()))
            return sentence if len(sentence) <= _SAID_MAX_CHARS and not PRIVATE.search(sentence) else ""
    return ""


# Names that a library's objects have


#: Package → attributes of its objects that hold the names of their parts; one that can be called is called.
_NAMES = {
    "pandas": ("columns",), "polars": ("columns",), "pyarrow": ("column_names",), "duckdb": ("columns",),
    "xarray": ("data_vars", "coords", "dims"), "sqlalchemy": ("_fields", "keys"), "geopandas": ("columns",),
}  # fmt: skip
#: Kinds whose names cost a query, or that are other things.
_NOT_READ = frozenset(("LazyFrame", "Engine", "Connection", "Session", "Series", "Index", "MultiIndex"))
_NAMES_MAX, _NAME_MAX_CHARS = 200, 60
_QUOTE, _INSIDE = "[`'\"]", "[^`'\"\n]{1,60}"
_QUOTED = re.compile(f"{_QUOTE}({_INSIDE}){_QUOTE}")
#: Names that a message lists: `['a', 'b']`, `('a', 'b')`, `{'a', 'b'}`, `Candidate bindings: "a", "b"`.
_LIST = re.compile(
    rf"(?:[\[({{]|[Cc]andidate bindings: )(\s*{_QUOTE}{_INSIDE}{_QUOTE}(?:\s*,\s*{_QUOTE}{_INSIDE}{_QUOTE})*)"
)
_OWN_ADVICE = re.compile(
    rf"(?:[Dd]id you mean|(?:[Pp]erhaps|[Mm]aybe) you meant):? {_QUOTE}({_INSIDE}){_QUOTE}"
)
#: What a message says where a name is none that there is.
NO_SUCH = {
    r"\bnot (?:found|an?|the name|defined|exist|in|one of|among|permitted|appear|recogni[sz]ed)\b": "a is not among b, c",
    r"\bno (?:variable|column|field|such|dimension|attribute|item)|has no": "no such column: a",
    r"do(?:es)? not|could not interpret|unable to find|cannot find": "cannot find a",
    r"expected one of|unknown|invalid|unexpected": "unknown field a",
}
_NO_SUCH = re.compile("|".join(NO_SUCH), re.IGNORECASE)
#: What a message calls a name that an object in the statement has.
PARTS = {
    r"\b(?:columns?|entry|fields?|variables?|keys?|labels?|name|inputs?)\b": "no column a",
    r"\b(?:dim(?:ension)?s?|coord(?:inate)?s?)\b": "dimensions (a, b)",
}
_PARTS = re.compile("|".join(PARTS), re.IGNORECASE)


def message_of(error: BaseException) -> str:
    """Return an exception's message; that of a `KeyError` without the quotes that Python puts around it."""
    if isinstance(error, KeyError):
        return error.args[0] if len(error.args) == 1 and type(error.args[0]) is str else ""
    return str(error)


def names_in(value: object) -> list[str]:
    """Return the names of the parts of a library's object; empty for an unknown kind."""
    is_class = issubclass(type(value), type)
    kind = cast("type[Any]", value) if is_class else type(value)
    if type(fields := vars(kind).get("__pydantic_fields__")) is dict:
        return list(fields)
    names: dict[str, None] = {}
    package = _class_names(value)[0]
    if is_class or kind.__name__ in _NOT_READ:
        return []
    for attribute in _NAMES.get(package, ()):
        members = getattr(value, attribute, ())
        members = members() if callable(members) else members
        names |= dict.fromkeys(str(name) for name in list(members)[:_NAMES_MAX] if isinstance(name, str))
    return list(names)


def _asked(scene: Scene, message: str) -> Iterator[tuple[str, str, ast.AST]]:
    """Yield names in the failing statement that the message mentions, each with the text around it and its node."""
    quoted_names = [quote for quote in _QUOTED.findall(message) if quote.isidentifier()]
    for node in scene.expressions():
        if isinstance(node, ast.Constant) and type(node.value) is str and node.value:
            text, written = scene.text(node), node.value
            inside = [
                quoted_name
                for quoted_name in quoted_names
                if quoted_name != written and len(re.findall(rf"\b{quoted_name}\b", written)) == 1
            ]
            if not inside and len(written) <= _NAME_MAX_CHARS and _is_word_of(written, message):
                yield written, text, node
            yield from ((inner_name, text, node) for inner_name in inside)
        elif isinstance(node, ast.Attribute) and node.attr in (getattr(scene.error, "name", None), message):
            yield node.attr, f"`.{node.attr}`", node
        elif isinstance(node, ast.Call):
            for name in (word.arg for word in node.keywords if word.arg):
                # plotly takes `marker_colour` for the part `colour` of `marker`
                parts = [part for part in (name, name.rpartition("_")[2]) if _is_word_of(part, message)]
                yield from ((part, f"`{name}=`", node) for part in parts)


def _is_word_of(word: str, message: str) -> bool:
    return bool(word) and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", message) is not None


def _exchanged(text: str, wrong: str, right: str) -> str:
    """Return a piece of code with one name in place of another; empty if the new text is not a valid name there."""
    if (text[1:2] == "." or text.endswith("=`")) and not right.isidentifier():
        return ""
    pattern = rf"(?<![^\W_]){re.escape(wrong)}(?!\w)"
    return re.sub(pattern, lambda _: right, text) if text and len(re.findall(pattern, text)) == 1 else ""


def own_advice(scene: Scene) -> Facts | None:
    """Take the name that the library itself asks about: `Did you mean "title"?`."""
    message = message_of(scene.error)
    match = _OWN_ADVICE.search(message)
    if match is None or (not scene.frames and type(scene.error).__module__ == "builtins"):
        return None  # since 3.13 Python itself asks so about an argument
    candidates = [(name, text) for name, text, _ in _asked(scene, message)]
    texts = [
        node for node in scene.expressions() if isinstance(node, ast.Constant) and type(node.value) is str
    ]
    candidates += [
        (word, scene.text(constant)) for constant in texts for word in re.findall(r"\w+", str(constant.value))
    ]
    for wanted, text in candidates:
        is_told = wanted != match[1] and _is_word_of(wanted, message) and similar(wanted, match[1], 0.6)
        if is_told and (changed := _exchanged(text, wanted, match[1])):
            facts = {"about": "name_advised", "wanted": quoted(wanted), "found": quoted(match[1])}
            return complete({**facts, "part": text, "right": changed})
    return None


def other_name(scene: Scene) -> Facts | None:
    """List the names that a library's object has, if the message says that the wanted one is missing."""
    message = message_of(scene.error)
    if not (_NO_SUCH.search(message) or message.isidentifier()) or "keyword argument" in message:
        return None
    quoted_lists = [_QUOTED.findall(part) for part in _LIST.findall(message)]
    listed_names = [
        [name.rpartition(".")[2] for name in names]
        for names in quoted_lists
        if len(names) > 1 or "andidate" in message
    ]
    for wanted, text, node in _asked(scene, message):
        if not quoted(wanted) or any(wanted in names for names in listed_names):
            continue
        holders = (
            list(_holders(scene, node)) if isinstance(node, ast.Attribute) or _PARTS.search(message) else []
        )
        values = listed_names[:1] if isinstance(node, ast.Constant) else []
        for owner, names in (
            *holders,
            *(("the list of what is possible here", choices) for choices in values),
        ):
            if wanted in names:
                break
            facts = {"wanted": quoted(wanted), "known": labels_text(names, len(names)), "owner": owner}
            near = nearest(wanted, names)
            if near is not None and (changed := _exchanged(text, wanted, near[0])):
                facts |= {"found": quoted(near[0]), "part": text, "right": changed}
                return complete({**facts, "about": "name_similar"})
            if names not in values:  # what a message lists, it says itself
                return complete({**facts, "about": "name_known"})
    return None


def _holders(scene: Scene, asked: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield the objects that may have been searched for the name, as the code writes them, with their names.

    For an attribute this is its owner, for a keyword the called object or its owner. For a text it is any object in the
    statement.
    """
    nodes: list[ast.AST | None] = list(scene.expressions())
    if isinstance(asked, ast.Attribute):
        nodes = [asked.value]
    elif isinstance(asked, ast.Call):
        nodes = [asked.func, asked.func.value if isinstance(asked.func, ast.Attribute) else None]
    for node in nodes:
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            continue
        value = scene.value(node)
        if isinstance(asked, ast.Attribute) and (owner := getattr(scene.error, "obj", None)) is not None:
            value = owner
        if isinstance(node, ast.Attribute) and node.attr in ("c", "columns"):
            base = scene.value(node.value)
            value = getattr(base, node.attr) if _class_names(base)[0] == "sqlalchemy" else value
        if isinstance(asked, ast.Call) and _class_names(value)[0] == "pandas":
            continue  # its keyword is not a column
        if value is not UNREAD and (text := scene.text(node)) and (names := names_in(value)):
            yield text, names


# Parameters that take names only


def by_position(scene: Scene) -> Facts | None:
    """Say by which names a function takes the arguments that were passed by position."""
    node = scene.node
    if not isinstance(node, ast.Call) or any(isinstance(argument, ast.Starred) for argument in node.args):
        return None
    function = scene.value(node.func)
    if function is UNREAD or any(word.arg is None for word in node.keywords):
        return None
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    placed = [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    keywords = {word.arg for word in node.keywords}
    free = [
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in keywords
    ]
    twice = re.search(r"multiple values for (?:keyword )?argument '(\w+)'", str(scene.error))
    positional_count = len(placed)
    if placed == ["data"]:  # as plots take a table; before it, x and y were given
        first = scene.value(node.args[0]) if node.args else UNREAD
        if first is UNREAD and not twice:
            return None
        positional_count = 0 if twice or not is_frame(first) else 1
    elif twice:
        return None
    moved = node.args[positional_count:]
    if (
        not moved
        or len(moved) > len(free)
        or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    ):
        return None
    names = spoken([f"`{name}`" for name in free[: len(moved)]])
    return complete(
        {
            "about": "named_only",
            "function": scene.text(node.func),
            "names": names,
            "kept": str(positional_count),
        }
    )
