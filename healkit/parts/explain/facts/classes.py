"""Facts about classes of the user's own, and about coroutines."""

from __future__ import annotations

import ast
import inspect
import re
from types import CodeType, CoroutineType, FrameType, FunctionType
from typing import Any, cast

from healkit.parts.explain.facts.scene import UNREAD, Facts, Scene, complete, listed, of_package, plain, shown
from healkit.parts.explain.facts.standard import called

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CALLS_MAX = 3000
#: Of so many innermost calls, a function that calls itself without end makes at least so many.
_CHAIN, _TIMES_MIN = 200, 20


def _own_class(scene: Scene, name: str) -> ast.ClassDef | None:
    """Return the class of that name in the code at hand."""
    return next((one for one in scene.all(ast.ClassDef) if one.name == name), None)


def _methods(owner: ast.ClassDef, name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [one for one in owner.body if isinstance(one, _FUNCTIONS) and one.name == name]


def _decorated(one: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, by: str) -> bool:
    return any(ast.unparse(decorator).split("(")[0].endswith(by) for decorator in one.decorator_list)


def _kind_of(scene: Scene, node: ast.expr) -> str:
    """Return the name of the class of a value, or of the object that a call makes."""
    value = scene.value(node)
    if value is not UNREAD:
        return type(value).__name__
    return called(node) if isinstance(node, ast.Call) else ""


# Calls


def called_property(scene: Scene) -> Facts | None:
    """Say that the code calls the value of a property."""
    node = scene.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    owner, name = _own_class(scene, _kind_of(scene, node.func.value)), node.func.attr
    if owner is None or not any(_decorated(one, "property") for one in _methods(owner, name)):
        return None
    facts = {"about": "called_property", "owner": scene.text(node.func), "kind": f"`{owner.name}`"}
    facts |= {"wanted": f"`{name}`", "part": scene.text(node)}
    return complete(facts) if not node.args and not node.keywords else None


def method_of_class(scene: Scene) -> Facts | None:
    """Say that a static method has a `self`, or that a method is called on the class and not on an object."""
    node = scene.node
    match = re.search(r"(?P<cls>\w+)\.(?P<name>\w+)\(\) missing 1 required positional", str(scene.error))
    if match is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    owner = _own_class(scene, match["cls"])
    methods = _methods(owner, match["name"]) if owner is not None else []
    facts = {
        "wanted": f"`{match['name']}`",
        "kind": f"`{match['cls']}`",
        "owner": scene.text(node.func.value),
    }
    if methods and _decorated(methods[0], "staticmethod") and methods[0].args.args[:1]:
        return complete({**facts, "about": "static_self", "first": f"`{methods[0].args.args[0].arg}`"})
    value = scene.value(node.func.value)
    if not methods or methods[0].decorator_list or not issubclass(type(value), type) or not node.args:
        return None
    facts |= {"about": "method_on_class", "given": scene.text(node.args[0])}
    return complete({**facts, "first": f"`{methods[0].args.args[0].arg}`"})


def method_arguments(scene: Scene) -> Facts | None:
    """Say how many values a method or a dataclass of the user's own takes, without the object itself."""
    match = re.search(r"^(?P<cls>\w+)\.(?P<name>\w+)\(\) takes (?P<takes>\d+) positional arguments? but (?P<given>\d+)",
                      str(scene.error))  # fmt: skip
    owner = _own_class(scene, match["cls"]) if match is not None else None
    if match is None or owner is None:
        return None
    methods = _methods(owner, match["name"])
    names = [one.arg for one in methods[0].args.args] if methods else []
    if not methods and match["name"] == "__init__":
        fields = [one.target for one in owner.body if isinstance(one, ast.AnnAssign)]
        names = ["self", *(one.id for one in fields if isinstance(one, ast.Name))]
    if names[:1] not in (["self"], ["cls"]) or len(names) != int(match["takes"]):
        return None
    facts = {"about": "method_arguments", "takes": str(len(names) - 1), "given": str(int(match["given"]) - 1)}
    facts["owner"] = (
        f"`{match['cls']}`" if match["name"] == "__init__" else f"`{match['cls']}.{match['name']}`"
    )
    return {**facts, "known": ", ".join(f"`{one}`" for one in names[1:6])}


# Operators, hashes, attributes

#: Part of a message → the method that an object needs for it, and what asks for it.
_LACKS = (
    (r"object of type '(?P<kind>\w+)' has no len", "`__len__`", "`len(…)`"),
    (r"^'(?P<kind>\w+)' object is not iterable", "`__iter__`", "a loop, `list(…)` or an unpacking"),
    (r"^cannot unpack non-iterable (?P<kind>\w+) object", "`__iter__`", "an unpacking"),
    (r"^'(?P<kind>\w+)' object is not subscriptable", "`__getitem__`", "looking up with `[…]`"),
    (r"^'(?P<kind>\w+)' object does not support item assignment", "`__setitem__`", "setting an item with `[…]`"),
    (r"^'(?P<kind>\w+)' object is not callable", "`__call__`", "a call"),
    (r"^'(?P<kind>\w+)' object does not support the context manager", "`__enter__` and `__exit__`", "`with`"),
    (r"^argument of type '(?P<kind>\w+)' is not", "`__contains__`", "`in`"),
)  # fmt: skip


def own_lacks(scene: Scene) -> Facts | None:
    """Say which method a class of the user's own does not define, and what its objects have."""
    for pattern, method, sign in _LACKS:
        match = re.search(pattern, str(scene.error))
        owner = _own_class(scene, match["kind"]) if match is not None else None
        if owner is None:
            continue
        names = [
            one.name for one in owner.body if isinstance(one, _FUNCTIONS) and not one.name.startswith("_")
        ]
        names += [one.attr for one in ast.walk(owner) if isinstance(one, ast.Attribute)
                  and isinstance(one.ctx, ast.Store) and ast.unparse(one.value) == "self"]  # fmt: skip
        names += [ast.unparse(one.target) for one in owner.body if isinstance(one, ast.AnnAssign)]
        known = ", ".join(f"`{one}`" for one in list(dict.fromkeys(names))[:6])
        return {
            "about": "own_lacks",
            "kind": f"`{owner.name}`",
            "method": method,
            "sign": sign,
            "known": known,
        }
    return None


def compared_own(scene: Scene) -> Facts | None:
    """Say that a class of the user's own has no order."""
    match = re.search(r"'(?P<sign>[<>]=?)' not supported between instances of '(?P<a>\w+)' and '(?P<b>\w+)'",
                      str(scene.error))  # fmt: skip
    owner = _own_class(scene, match["a"]) if match is not None and match["a"] == match["b"] else None
    if match is None or owner is None:
        return None
    facts = {"kind": f"`{owner.name}`", "sign": f"`{match['sign']}`"}
    fields = [
        one.target.id
        for one in owner.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    ]
    if _decorated(owner, "dataclass") and fields:
        return {**facts, "about": "order_of_dataclass", "first": f"`{fields[0]}`"}
    return {**facts, "about": "order_of_own"}


def unhashable_own(scene: Scene) -> Facts | None:
    """Say why objects of a class of the user's own are no keys."""
    match = re.search(r"unhashable type: '(?P<kind>\w+)'", str(scene.error))
    owner = _own_class(scene, match["kind"]) if match is not None else None
    if owner is None:
        return None
    facts = {"kind": f"`{owner.name}`"}
    if _decorated(owner, "dataclass"):
        return {**facts, "about": "hash_of_dataclass"}
    return {**facts, "about": "hash_of_own"} if _methods(owner, "__eq__") else None


def slots(scene: Scene) -> Facts | None:
    """List the attributes that a class with slots has, where another one is set."""
    match = re.search(r"^'(?P<kind>\w+)' object has no attribute '(?P<name>\w+)'", str(scene.error))
    owner = _own_class(scene, match["kind"]) if match is not None else None
    made = (
        [
            one.value
            for one in owner.body
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__slots__"
        ]
        if owner is not None
        else []
    )
    if match is None or not made:
        return None
    names = [
        one.value for one in ast.walk(made[0]) if isinstance(one, ast.Constant) and type(one.value) is str
    ]
    facts = {"about": "slots", "kind": f"`{match['kind']}`", "wanted": f"`{match['name']}`"}
    return (
        complete({**facts, "known": listed(names, len(names)).replace("'", "")})
        if match["name"] not in names
        else None
    )


def super_attribute(scene: Scene) -> Facts | None:
    """Name the base classes, none of which has the attribute that `super()` is asked for."""
    name, value = getattr(scene.error, "name", None), getattr(scene.error, "obj", UNREAD)
    if type(name) is not str or type(value) is not super:
        return None
    kind = cast("Any", super).__thisclass__.__get__(value)
    bases = [one.__name__ for one in type.mro(kind)[1:]]
    facts = {"about": "super_attribute", "wanted": f"`{name}`", "kind": f"`{kind.__name__}`"}
    return {**facts, "known": ", ".join(f"`{one}`" for one in bases[:6])}


def enum_name(scene: Scene) -> Facts | None:
    """List the members of an enumeration that has none of that name."""
    node = scene.node
    owner = scene.value(node.value) if isinstance(node, ast.Subscript) else UNREAD
    names = vars(cast("type[Any]", owner)).get("_member_names_") if issubclass(type(owner), type) else None
    if type(names) is not list or not isinstance(node, ast.Subscript):
        return None
    facts = {"about": "enum_name", "owner": scene.text(node.value), "wanted": shown(scene.error.args[0])}
    return complete({**facts, "known": listed(names, len(names))})


# Recursion


def recursion(scene: Scene) -> Facts | None:
    """Say which function calls itself, and the values of its first argument in the first calls."""
    frame, code = scene.frame, scene.frame.f_code
    codes, own_frames = list[CodeType](), list[FrameType]()
    for _ in range(_CALLS_MAX):
        codes.append(frame.f_code)
        own_frames += [frame] if frame.f_code is code else []
        if frame.f_back is None:
            break
        frame = frame.f_back
    if codes[:_CHAIN].count(code) < _TIMES_MIN:
        return None
    facts = {"owner": f"`{code.co_name}`"}
    if _recursive_accessor(scene, code.co_name):
        spare = f"`self._{code.co_name}`"
        return {**facts, "about": "accessor_of_itself", "part": f"`self.{code.co_name}`", "spare": spare}
    turns = [one for one in dict.fromkeys(codes[:_CHAIN]) if codes[:_CHAIN].count(one) >= _TIMES_MIN]
    if len(turns) > 1:  # in the order of their definitions: where the stack ends is chance
        first, *others = (f"`{one.co_name}`" for one in sorted(turns, key=lambda one: one.co_firstlineno))
        return {"about": "recursion_of_several", "owner": first, "others": ", ".join(others[:3])}
    name = next((one for one in code.co_varnames[: code.co_argcount] if one not in {"self", "cls"}), "")
    values = [shown(plain(one.f_locals.get(name))) for one in reversed(own_frames[-3:])]
    if not name or not all(values):
        return {**facts, "about": "recursion_of"}
    facts |= {"name": f"`{name}`", "values": ", then ".join(values), "start": values[0]}
    return {**facts, "about": "recursion_same" if len(set(values)) == 1 else "recursion_values"}


def _recursive_accessor(scene: Scene, name: str) -> bool:
    """Return whether the failing line is in a property that reads or sets itself."""
    for function in scene.all(ast.FunctionDef):
        inside = function.lineno <= scene.frame.f_lineno <= (function.end_lineno or 0)
        if (
            inside
            and function.name == name
            and (_decorated(function, "property") or _decorated(function, "setter"))
        ):
            return any(isinstance(one, ast.Attribute) and one.attr == name and ast.unparse(one.value) == "self"
                       for one in ast.walk(function))  # fmt: skip
    return False


# Coroutines


def coroutine_attribute(scene: Scene) -> Facts | None:
    """Say that the attribute belongs to the result of a coroutine, which has not been awaited."""
    name, value = getattr(scene.error, "name", None), getattr(scene.error, "obj", UNREAD)
    node = next((n for n in scene.expressions() if isinstance(n, ast.Attribute) and n.attr == name), None)
    if type(value) is not CoroutineType or node is None:
        return None
    owner = scene.text(node.value)
    facts = {"about": "coroutine_attribute", "owner": owner, "wanted": f"`{name}`"}
    return complete({**facts, "new": f"`(await {owner.strip('`')})`"})


#: Objects of asyncio that are no awaitables → their method that is.
_WAITED = {
    "Event": "wait",
    "Lock": "acquire",
    "Semaphore": "acquire",
    "Condition": "wait",
    "Queue": "get",
    "Barrier": "wait",
}


def awaited(scene: Scene) -> Facts | None:
    """Say what stands after `await`, where it cannot be awaited: a function, or an ordinary function's result."""
    node = scene.node if isinstance(scene.node, ast.Await) else next(iter(_awaits(scene)), None)
    if node is None:
        return None
    given, owner = node.value, scene.text(node.value)
    facts = {"owner": owner, "part": scene.text(node)}
    if not all(facts.values()):
        return None
    value = scene.value(given)
    if type(value) is FunctionType:
        is_async = value.__code__.co_flags & inspect.CO_COROUTINE
        return {**facts, "about": "await_uncalled"} if is_async else {**facts, "about": "await_function"}
    told = re.search(r"(?P<kind>\w+)'? (?:object )?can't be", str(scene.error))
    facts["kind"] = f"`{told['kind']}`" if told is not None else ""
    if told is not None and told["kind"] in _WAITED:
        method = _WAITED[told["kind"]]
        new = f"`{facts['part'].strip('`')}.{method}()`"
        return {**facts, "about": "await_method", "method": f"`{method}`", "new": new}
    if not isinstance(given, ast.Call):
        return None
    function = scene.value(given.func)
    if type(function) is FunctionType and function.__code__.co_flags & inspect.CO_ASYNC_GENERATOR:
        return {**facts, "about": "await_generator"}
    if owner.startswith("`time.sleep("):
        return {**facts, "about": "await_sleep", "new": owner.replace("time.sleep", "asyncio.sleep")}
    return complete({**facts, "about": "await_ordinary"})


def not_awaited(scene: Scene) -> Facts | None:
    """Name the coroutine in the failing line whose result was meant."""
    if "coroutine" not in str(scene.error):
        return None
    for node in scene.expressions():
        value = scene.value(node)
        function = scene.value(node.func) if isinstance(node, ast.Call) else UNREAD
        is_async = type(function) is FunctionType and function.__code__.co_flags & inspect.CO_COROUTINE
        if type(value) is CoroutineType or is_async:
            owner = scene.text(node)
            return complete({"about": "not_awaited", "owner": owner, "new": f"`(await {owner.strip('`')})`"})
    return None


def passed_function(scene: Scene) -> Facts | None:
    """Name the function that is passed without a call, where its coroutine is needed."""
    calls = [one for one in scene.expressions() if isinstance(one, ast.Call)]
    for one in (given for call in calls for given in call.args):
        value, owner = scene.value(one), scene.text(one)
        if type(value) is FunctionType and value.__code__.co_flags & inspect.CO_COROUTINE and owner:
            return {"about": "function_for_coroutine", "owner": owner, "new": f"`{owner.strip('`')}()`"}
    return None


def _awaits(scene: Scene) -> list[ast.Await]:
    return [one for one in ast.walk(scene.statement or ast.Pass()) if isinstance(one, ast.Await)]


def async_loop(scene: Scene) -> Facts | None:
    """Say that an `async for` goes over a coroutine."""
    loop = scene.statement
    if not isinstance(loop, ast.AsyncFor) or "got coroutine" not in str(scene.error):
        return None
    owner = scene.text(loop.iter)
    facts = {
        "about": "async_for_coroutine",
        "owner": owner,
        "part": f"`async for {ast.unparse(loop.target)} in {owner.strip('`')}`",
    }
    return complete({**facts, "new": f"`for {ast.unparse(loop.target)} in await {owner.strip('`')}`"})


#: Classes for `async with` of libraries, whose objects are not looked into.
_ASYNC_ONLY = {"Lock", "Semaphore", "Condition", "TaskGroup", "Timeout", "ClientSession", "AsyncClient"}


def managed(scene: Scene) -> Facts | None:
    """Say that an object is for `async with`, or for a plain `with`."""
    line = scene.frame.f_lineno
    every: list[ast.With | ast.AsyncWith] = [*scene.all(ast.With), *scene.all(ast.AsyncWith)]
    blocks = [one for one in every if one.lineno <= line <= one.body[0].lineno]
    told = re.search(r"'(?P<kind>[\w.]+)' object does not support", str(scene.error))
    if not blocks or told is None:
        return None
    block = max(blocks, key=lambda one: one.lineno)
    if len(block.items) != 1:  # it could be any of them
        return None
    opened, kind = block.items[0].context_expr, told["kind"].rpartition(".")[2]
    about, written, other, needed = (
        ("async_for_with", "async with", "with", "__enter__")
        if isinstance(block, ast.AsyncWith)
        else ("with_for_async", "with", "async with", "__aenter__")
    )
    owner, value = _own_class(scene, kind), scene.value(opened)
    has = owner is not None and bool(_methods(owner, needed))
    if value is not UNREAD and of_package(value, "asyncio"):
        has = has or hasattr(type(value), needed)
    if not has and not (needed == "__aenter__" and kind in _ASYNC_ONLY):
        return None
    text = scene.text(opened).strip("`")
    facts = {"about": about, "owner": f"`{text}`" if text else "", "kind": f"`{told['kind']}`"}
    return complete({**facts, "part": f"`{written} {text}`", "new": f"`{other} {text}`"})


def gathered(scene: Scene) -> Facts | None:
    """Say that `gather` takes coroutines one by one, where it got a list of them."""
    node = scene.node
    if not isinstance(node, ast.Call) or called(node) != "gather" or len(node.args) != 1:
        return None
    given = scene.text(node.args[0])
    return complete({"about": "gather_list", "given": given, "new": f"`*{given.strip('`')}`"})


# Failures inside of a library

_OWN_FILES = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3[^/\\]*[/\\]|<frozen |^<__array_function__"
)


def inside_library(scene: Scene) -> Facts | None:
    """Say which call failed on what it was given, where the failing code is a library's and not the user's.

    The message then speaks of a line that the user has not written.
    """
    node = scene.node.value if isinstance(scene.node, ast.Await) else scene.node
    if not isinstance(node, ast.Call) or not scene.frames:
        return None
    inner = scene.frames[-1]
    module = inner.f_globals.get("__name__")
    if type(module) is not str or _OWN_FILES.search(inner.f_code.co_filename) is None:
        return None
    told = re.search(r"'(?P<kind>\w+)'", str(scene.error))
    named = [("", one) for one in node.args]
    named += [(f"{one.arg}=", one.value) for one in node.keywords if one.arg]
    values = [(name, scene.text(one), scene.value(one)) for name, one in named]
    kind = told["kind"] if told is not None and all(value is not UNREAD for _, _, value in values) else ""
    fitting = [
        f"`{name}{text.strip('`')}`" for name, text, value in values if type(value).__name__ == kind and text
    ]
    message = " ".join(str(scene.error).split())
    facts = {
        "about": "inside_library",
        "function": scene.text(node.func),
        "package": f"`{module.partition('.')[0]}`",
    }
    facts["told"] = message if len(message) <= 120 else ""
    if not all(facts.values()):
        return None
    given = {"owner": fitting[0], "kind": f"`{kind}`"} if len(fitting) == 1 else {"owner": "", "kind": ""}
    return {**facts, **given}
