"""Facts about attributes, scopes and parameters."""

from __future__ import annotations

import ast
import builtins
import datetime
import re
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, cast

from healkit.errors import near_misses
from healkit.parts.explain.facts.scene import (
    UNREAD,
    Facts,
    Scene,
    called,
    complete,
    is_array,
    labels_text,
    own_dict,
    quoted,
    similar,
)

_ITEMS_MAX = 10_000


# Attributes

_OWN_TYPES = (str, list, dict, set, tuple, int, float, bytes, bool)
_TIMES = (datetime.datetime, datetime.date, datetime.timedelta)


def attribute(scene: Scene) -> Facts | None:
    """Say what has the missing attribute: the items of a list, a class of the module, a key, another type."""
    name, value = getattr(scene.error, "name", None), getattr(scene.error, "obj", UNREAD)
    node = next(
        (
            expression
            for expression in scene.expressions()
            if isinstance(expression, ast.Attribute) and expression.attr == name
        ),
        None,
    )
    if type(name) is not str or value is UNREAD or node is None:
        return None
    owner = scene.text(node.value)
    facts = {"owner": owner, "wanted": f"`{name}`", "kind": f"`{type(value).__name__}`"}
    if not owner:
        return None
    if issubclass(type(value), type) and _set_in(scene, cast("type[Any]", value).__name__, name):
        return {**facts, "about": "class_for_object", "instead": f"`{owner.strip('`')}(…).{name}`"}
    members = vars(cast("type[Any]", value)).get("_member_names_") if issubclass(type(value), type) else None
    if type(members) is list:
        return complete(
            {**facts, "about": "enum_member", "known": labels_text(members, len(members)).replace("'", "")}
        )
    if type(value) is ModuleType:
        return _class_of_module(value, name, owner, facts)
    if type(value) in {list, tuple} or is_array(value):
        return _of_items(scene, value, name, node, facts)
    if issubclass(type(value), dict):
        kind, mapping = cast("type[Any]", type(value)), cast("dict[Any, Any]", value)
        is_key = type.__getattribute__(kind, "__getitem__") is dict.__getitem__ and dict.__contains__(
            mapping, name
        )
        return {**facts, "about": "attribute_is_key"} if is_key else _of_other_type(value, name, facts)
    if type(value) in (*_OWN_TYPES, *_TIMES):
        return _of_other_type(value, name, facts)
    names = [key for key in own_dict(value) if not key.startswith("_")]
    names += [
        member for kind in type.mro(type(value))[:-1] for member in vars(kind) if not member.startswith("_")
    ]
    is_own = type.__dict__["__module__"].__get__(type(value)) in {
        scene.frame.f_globals.get("__name__"),
        "__main__",
    }
    if is_own and (base := _base_that_sets(scene, type(value), name)):
        return {**facts, "about": "super_init", "found": f"`{base}`"}
    if not is_own or not names:
        return None
    if owner and any(
        _is_local(definition, name)
        for definition in scene.all(ast.ClassDef)
        if definition.name == type(value).__name__
    ):
        return {**facts, "about": "attribute_not_set", "right": f"`self.{name}`"}
    return {
        **facts,
        "about": "attribute_of_own",
        "known": labels_text(dict.fromkeys(names), len(set(names))).replace("'", ""),
    }


def _set_in(scene: Scene, owner: str, name: str) -> bool:
    """Return whether the code has a class of that name whose methods set that attribute of `self`."""
    return any(definition.name == owner and _sets(definition, name) for definition in scene.all(ast.ClassDef))


def _base_that_sets(scene: Scene, kind: type, name: str) -> str:
    """Return the base class whose `__init__` sets an attribute, if the class never calls it; otherwise nothing."""
    starts = {
        definition.name: statement
        for definition in scene.all(ast.ClassDef)
        for statement in definition.body
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__"
    }
    bases = [base.__name__ for base in type.mro(kind)[1:-1]]
    initializer = starts.get(kind.__name__)
    if initializer is None or any(
        isinstance(node, ast.Name) and node.id in {"super", *bases} for node in ast.walk(initializer)
    ):
        return ""
    return next((base for base in bases if base in starts and _sets(starts[base], name)), "")


def _sets(node: ast.AST, name: str) -> bool:
    attributes = (part for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr == name)
    return any(isinstance(target.ctx, ast.Store) for target in attributes)


def _class_of_module(module: ModuleType, name: str, owner: str, facts: Facts) -> Facts | None:
    last = module.__name__.rpartition(".")[2].casefold()
    for member_name, kind in list(vars(module).items()):
        if (
            issubclass(type(kind), type)
            and member_name.casefold() == last
            and name in _names_of(cast("type[Any]", kind))
        ):
            return {
                **facts,
                "about": "attribute_of_class",
                "found": f"`{owner.strip('`')}.{member_name}`",
                "whole": f"`{owner.strip('`')}.{member_name}.{name}`",
            }
    return None


def _of_items(scene: Scene, value: Any, name: str, node: ast.Attribute, facts: Facts) -> Facts | None:
    """Say that the items have the attribute, or that a comma turned the value into a tuple."""
    if not len(value) or (is_array(value) and value.dtype != object):
        return None if is_array(value) else _of_other_type(value, name, facts)
    numbers = type(value) is list and all(type(member) in {int, float} for member in value[:_ITEMS_MAX])
    numpy = sys.modules.get("numpy")
    module = next((name for name, global_value in scene.frame.f_globals.items() if global_value is numpy), "")
    if numbers and numpy is not None and module and hasattr(numpy.ndarray, name):
        instead = f"{module}.array({facts['owner'].strip('`')})"
        return {
            **facts,
            "about": "list_for_array",
            "part": f"{facts['owner'][:-1]}.{name}`",
            "right": f"`{instead}.{name}`",
        }
    item = value[(0,) * value.ndim] if is_array(value) else value[0]
    if name not in _names_of(type(item)) | set(own_dict(item)):
        return None if is_array(value) else _of_other_type(value, name, facts)
    place = ", ".join("0" for _ in value.shape) if is_array(value) else "0"
    first = f"{facts['owner'].strip('`')}[{place}]"
    facts |= {
        "item_kind": f"`{type(item).__name__}`",
        "first": f"`{first}.{name}`",
        "whole": f"`{ast.unparse(node)}`",
    }
    if type(value) is tuple and len(value) == 1 and isinstance(node.value, ast.Name):
        for assignment in scene.assigned(node.value.id):
            written = assignment.value
            if (
                isinstance(written, ast.Tuple)
                and len(written.elts) == 1
                and not scene.text(written).startswith("`(")
            ):
                return {
                    **facts,
                    "about": "tuple_by_comma",
                    "line": str(assignment.lineno),
                    "given": scene.text(written),
                }
    return {**facts, "about": "attribute_of_items"}


def _of_other_type(value: object, name: str, facts: Facts) -> Facts | None:
    """Say which of Python's own types has the attribute."""
    kinds = [kind.__name__ for kind in (*_OWN_TYPES, *_TIMES) if hasattr(kind, name)]
    if not kinds or name.startswith("_"):
        return None
    facts["others"] = " and ".join(f"`{kind}`" for kind in kinds[:3])
    named = (
        f"{facts['owner']} ({quoted(value)})" if quoted(value) not in {"", facts["owner"]} else facts["owner"]
    )
    return {**facts, "about": "attribute_of_type", "named": named}


def _names_of(kind: type) -> set[str]:
    return {name for base in type.mro(kind) for name in type.__getattribute__(base, "__dict__")}


def _is_local(made: ast.ClassDef, name: str) -> bool:
    """Return whether the `__init__` of a class assigns a parameter to a local variable of the same name."""
    for statement in made.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            for set_ in statement.body:
                match set_:
                    case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                        return True
    return False


# Scopes


def class_name(scene: Scene) -> Facts | None:
    """Say that a name belongs to the surrounding class, whose body the function or comprehension cannot see."""
    name = getattr(scene.error, "name", None)
    around = list(scene.around(scene.node))
    for depth, outer in enumerate(around):
        if isinstance(outer, ast.ClassDef):
            inner = around[:depth]
            is_stored = _set_in(scene, outer.name, str(name))
            if not (_binds(outer, name) or is_stored) or not inner:
                return None
            facts = {"wanted": f"`{name}`", "owner": f"`{outer.name}`"}
            if any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in inner):
                return {**facts, "about": "name_of_class", "instead": f"`self.{name}`"}
            if not _binds(outer, name):
                return None
            comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
            return (
                {**facts, "about": "name_in_class_body"}
                if any(isinstance(node, comprehensions) for node in inner)
                else None
            )
    return None


def inner_name(scene: Scene) -> Facts | None:
    """Say that a name exists only in a function, a comprehension or an `except` of the code."""
    name = getattr(scene.error, "name", None)
    around = set(scene.around(scene.node))
    facts = {"wanted": f"`{name}`"}
    for node in scene.all(ast.AST):
        if node in around:
            continue
        match node:
            case ast.ExceptHandler(name=bound) if bound == name:
                return {**facts, "about": "name_of_except", "line": str(node.lineno)}
            case ast.comprehension(target=target) if name in {
                n.id for n in ast.walk(target) if isinstance(n, ast.Name)
            }:
                return {**facts, "about": "name_of_comprehension", "line": str(target.lineno)}
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _stores(node, str(name)):
                return {**facts, "about": "name_of_function", "function": f"`{node.name}`"}
    return None


def _binds(owner: ast.ClassDef, name: object) -> bool:
    for node in owner.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if (
            any(isinstance(target, ast.Name) and target.id == name for target in targets)
            or getattr(node, "name", None) == name
        ):
            return True
    return False


def unbound(scene: Scene) -> Facts | None:
    """Say where the local name gets its value: later, or under a condition; and whether an outer name exists."""
    name = getattr(scene.error, "name", None) or next(iter(re.findall(r"'(\w+)'", str(scene.error))), "")
    function = next(
        (
            ancestor
            for ancestor in scene.around(scene.node)
            if isinstance(ancestor, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        None,
    )
    if function is None or not name:
        return None
    facts = {"wanted": f"`{name}`", "function": f"`{function.name}`", "word": f"`global {name}`"}
    outer = next(
        (ancestor for ancestor in scene.around(function) if isinstance(ancestor, ast.FunctionDef)), None
    )
    if outer is not None and any(n not in set(ast.walk(function)) for n in _stores(outer, name)):
        return {**facts, "about": "unbound_outer", "word": f"`nonlocal {name}`"}
    if name in scene.frame.f_globals:
        return {**facts, "about": "unbound_outer"}
    read = getattr(scene.node, "lineno", 0)
    lines = [store.lineno for store in _stores(function, name)]
    if not lines or hasattr(builtins, name):
        return None
    facts["line"] = str(min(lines))
    if min(lines) > read:
        return {**facts, "about": "unbound_later"}
    above = [store for store in _stores(function, name) if store.lineno < read]
    around = [
        next((p for p in scene.around(store) if isinstance(p, ast.If | ast.For | ast.While | ast.Try)), None)
        for store in above
    ]
    if len(above) == 1 and around[0] is not None:
        header = f"`{ast.unparse(around[0]).splitlines()[0][:60]}`"
        return {**facts, "about": "unbound_branch", "under": header} if "`" not in header.strip("`") else None
    return None


def _stores(function: ast.AST, name: str) -> list[ast.Name]:
    return [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]


# Parameters

#: Message of a call with a parameter that does not exist: class, function, parameter.
KEYWORD = re.compile(r"(?:(\w+)\.)?(\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
#: The same of a function of Python's own: parameter, function.
BUILTIN_KEYWORD = re.compile(r"'(?P<name>\w+)' is an invalid keyword argument for (\w+)\(\)")


def called_by_name(function: str, scene: Scene) -> Any:
    """Return the function or class that was called by that name, without running code; otherwise UNREAD or None.

    If the user's call has the parameter of the message, the function of that call is returned: calls inside the library
    have other parameters.
    """
    name = function.rpartition(".")[2]
    callee: Any = None
    for scope in (scene.frame.f_locals, scene.frame.f_globals):
        callee = callee if type(callee) is FunctionType else scope.get(function)
    if type(callee) is not FunctionType and isinstance(scene.node, ast.Call):
        callee = scene.value(scene.node.func)
        func = scene.node.func
        if (
            callee is UNREAD
            and isinstance(func, ast.Attribute)
            and (owner := scene.value(func.value)) is not UNREAD
        ):
            name = func.attr if asked_by_name(scene) else name
            callee = next((vars(kind)[name] for kind in type.mro(type(owner)) if name in vars(kind)), None)
    return callee


def asked_by_name(scene: Scene) -> str:
    """Return the parameter that the message says does not exist, where the user's call gives it; else an empty text."""
    match = KEYWORD.search(str(scene.error)) or BUILTIN_KEYWORD.search(str(scene.error))
    name = match["name"] if match is not None else ""
    return name if isinstance(scene.node, ast.Call) and name in {k.arg for k in scene.node.keywords} else ""


def parameters(function: str, scene: Scene) -> Iterator[str]:
    """Yield the parameters of the function or the class that was called, without running code of it."""
    callee = called_by_name(function, scene)
    if callee is None or callee is UNREAD:
        callee = getattr(builtins, function, getattr(list, function, None))
    if type(callee) in (
        BuiltinFunctionType,
        MethodDescriptorType,
    ):  # without a signature, its first lines show one
        text = getattr(callee, "__text_signature__", None) or str(callee.__doc__).partition("\n\n")[0]
        yield from dict.fromkeys(re.findall(r"(\w+)=", text))
    if issubclass(type(callee), type):
        kinds = type.mro(cast("type", callee))
        callee = next((vars(kind)["__init__"] for kind in kinds if "__init__" in vars(kind)), None)
    while callee is not UNREAD and "__wrapped__" in own_dict(callee):
        callee = own_dict(callee)["__wrapped__"]
    if type(callee) is FunctionType:
        code = callee.__code__
        yield from code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


#: Share of letters in common from which one parameter may be a misspelling of another.
_PARAMETER_LIKENESS = 0.75


def like_parameter(wanted: str, known: Iterable[str]) -> list[str]:
    """Return the parameters that may be meant: similar ones, otherwise prefixes and extensions of the name."""
    names = [name for name in known if name not in {"self", "cls"} and name[0] != "_"]
    near = [name for name in near_misses(wanted, names) if similar(wanted, name, _PARAMETER_LIKENESS)]
    begins = [name for name in names if len(name) > 2 and wanted.startswith(name)]
    begins = begins or [name for name in names if len(wanted) > 2 and name.startswith(wanted)]
    words = set(wanted.split("_"))
    shares = [name for name in names if words & set(name.split("_")) and len(name) > 2]
    return near or begins or (shares if len(shares) == 1 else [])


def keyword_known(scene: Scene) -> Facts | None:
    """List the parameters of the called function if none is similar to the wrong one."""
    match, node = KEYWORD.search(str(scene.error)), scene.node
    if match is None or not isinstance(node, ast.Call):
        return None
    if called(node) not in {match[1], match[2]} and not asked_by_name(scene):
        return None
    names = [name for name in parameters(match[2], scene) if name not in {"self", "cls"} and name[0] != "_"]
    if not names or match[3] in names or like_parameter(match[3], names):
        return None
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    facts = {
        "about": "keyword_known",
        "function": scene.text(node.func) or f"`{match[2]}`",
        "wanted": f"`{match[3]}`",
    }
    return {**facts, "known": ", ".join(f"`{name}`" for name in names[:10]) + more}
