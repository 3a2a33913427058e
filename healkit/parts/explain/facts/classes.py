"""Facts about classes of the user's own, and about coroutines."""

from __future__ import annotations

import ast
import inspect
import re
from types import CodeType, CoroutineType, FrameType, FunctionType
from typing import Any, cast

from healkit.parts.explain.facts.scene import (
    UNREAD,
    Facts,
    Scene,
    called,
    complete,
    labels_text,
    of_package,
    plain,
    quoted,
)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CALLS_MAX = 3000
#: Of so many innermost calls, a function that calls itself without end makes at least so many.
_CHAIN, _TIMES_MIN = 200, 20


def _own_class(scene: Scene, name: str) -> ast.ClassDef | None:
    """Return the class of that name in the code at hand."""
    return next((definition for definition in scene.all(ast.ClassDef) if definition.name == name), None)


def _methods(owner: ast.ClassDef, name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [method for method in owner.body if isinstance(method, _FUNCTIONS) and method.name == name]


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
    if owner is None or not any(_decorated(method, "property") for method in _methods(owner, name)):
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
    names = [parameter.arg for parameter in methods[0].args.args] if methods else []
    if not methods and match["name"] == "__init__":
        fields = [statement.target for statement in owner.body if isinstance(statement, ast.AnnAssign)]
        names = ["self", *(field.id for field in fields if isinstance(field, ast.Name))]
    if names[:1] not in (["self"], ["cls"]) or len(names) != int(match["takes"]):
        return None
    facts = {"about": "method_arguments", "takes": str(len(names) - 1), "given": str(int(match["given"]) - 1)}
    facts["owner"] = (
        f"`{match['cls']}`" if match["name"] == "__init__" else f"`{match['cls']}.{match['name']}`"
    )
    return {**facts, "known": ", ".join(f"`{name}`" for name in names[1:6])}


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
            definition.name
            for definition in owner.body
            if isinstance(definition, _FUNCTIONS) and not definition.name.startswith("_")
        ]
        names += [node.attr for node in ast.walk(owner) if isinstance(node, ast.Attribute)
                  and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"]  # fmt: skip
        names += [ast.unparse(field.target) for field in owner.body if isinstance(field, ast.AnnAssign)]
        listing = ", ".join(f"`{name}`" for name in list(dict.fromkeys(names))[:6])
        return {
            "about": "own_lacks",
            "kind": f"`{owner.name}`",
            "method": method,
            "sign": sign,
            "known": listing,
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
        statement.target.id
        for statement in owner.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]
    if _decorated(owner, "dataclass") and fields:
        return {**facts, "about": "order_of_dataclass", "first": f"`{fields[0]}`"}
    return {**facts, "about": "order_of_own"}


def unhashable_own(scene: Scene) -> Facts | None:
    """Say why objects of a user's class cannot be keys."""
    match = re.search(r"unhashable type: '(?P<kind>\w+)'", str(scene.error))
    owner = _own_class(scene, match["kind"]) if match is not None else None
    if owner is None:
        return None
    facts = {"kind": f"`{owner.name}`"}
    if _decorated(owner, "dataclass"):
        return {**facts, "about": "hash_of_dataclass"}
    return {**facts, "about": "hash_of_own"} if _methods(owner, "__eq__") else None


def slots(scene: Scene) -> Facts | None:
    """List the attributes of a class with slots, if the code sets another one."""
    match = re.search(r"^'(?P<kind>\w+)' object has no attribute '(?P<name>\w+)'", str(scene.error))
    owner = _own_class(scene, match["kind"]) if match is not None else None
    declarations = (
        [
            statement.value
            for statement in owner.body
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__slots__"
        ]
        if owner is not None
        else []
    )
    if match is None or not declarations:
        return None
    names = [
        constant.value
        for constant in ast.walk(declarations[0])
        if isinstance(constant, ast.Constant) and type(constant.value) is str
    ]
    facts = {"about": "slots", "kind": f"`{match['kind']}`", "wanted": f"`{match['name']}`"}
    return (
        complete({**facts, "known": labels_text(names, len(names)).replace("'", "")})
        if match["name"] not in names
        else None
    )


def super_attribute(scene: Scene) -> Facts | None:
    """Name the base classes that lack the attribute that `super()` looks for."""
    name, value = getattr(scene.error, "name", None), getattr(scene.error, "obj", UNREAD)
    if type(name) is not str or type(value) is not super:
        return None
    kind = cast("Any", super).__thisclass__.__get__(value)
    bases = [ancestor.__name__ for ancestor in type.mro(kind)[1:]]
    facts = {"about": "super_attribute", "wanted": f"`{name}`", "kind": f"`{kind.__name__}`"}
    return {**facts, "known": ", ".join(f"`{base}`" for base in bases[:6])}


def enum_name(scene: Scene) -> Facts | None:
    """List the members of an enumeration that lacks the wanted name."""
    node = scene.node
    owner = scene.value(node.value) if isinstance(node, ast.Subscript) else UNREAD
    names = vars(cast("type[Any]", owner)).get("_member_names_") if issubclass(type(owner), type) else None
    if type(names) is not list or not isinstance(node, ast.Subscript):
        return None
    facts = {"about": "enum_name", "owner": scene.text(node.value), "wanted": quoted(scene.error.args[0])}
    return complete({**facts, "known": labels_text(names, len(names))})


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
    turns = [
        called_code
        for called_code in dict.fromkeys(codes[:_CHAIN])
        if codes[:_CHAIN].count(called_code) >= _TIMES_MIN
    ]
    if len(turns) > 1:  # in the order of their definitions: where the stack ends is chance
        first, *remaining = (
            f"`{turn.co_name}`" for turn in sorted(turns, key=lambda one: one.co_firstlineno)
        )
        return {"about": "recursion_of_several", "owner": first, "others": ", ".join(remaining[:3])}
    name = next(
        (parameter for parameter in code.co_varnames[: code.co_argcount] if parameter not in {"self", "cls"}),
        "",
    )
    values = [quoted(plain(call_frame.f_locals.get(name))) for call_frame in reversed(own_frames[-3:])]
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
            return any(isinstance(node, ast.Attribute) and node.attr == name and ast.unparse(node.value) == "self"
                       for node in ast.walk(function))  # fmt: skip
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


#: asyncio objects that cannot be awaited → their method that can.
_WAITED = {
    "Event": "wait",
    "Lock": "acquire",
    "Semaphore": "acquire",
    "Condition": "wait",
    "Queue": "get",
    "Barrier": "wait",
}


def awaited(scene: Scene) -> Facts | None:
    """Say what follows `await` if it cannot be awaited: a function, or the result of an ordinary function."""
    node = scene.node if isinstance(scene.node, ast.Await) else next(iter(_awaits(scene)), None)
    if node is None:
        return None
    expression, owner = node.value, scene.text(node.value)
    facts = {"owner": owner, "part": scene.text(node)}
    if not all(facts.values()):
        return None
    value = scene.value(expression)
    if type(value) is FunctionType:
        is_async = value.__code__.co_flags & inspect.CO_COROUTINE
        return {**facts, "about": "await_uncalled"} if is_async else {**facts, "about": "await_function"}
    match = re.search(r"(?P<kind>\w+)'? (?:object )?can't be", str(scene.error))
    facts["kind"] = f"`{match['kind']}`" if match is not None else ""
    if match is not None and match["kind"] in _WAITED:
        method = _WAITED[match["kind"]]
        new = f"`{facts['part'].strip('`')}.{method}()`"
        return {**facts, "about": "await_method", "method": f"`{method}`", "new": new}
    if not isinstance(expression, ast.Call):
        return None
    function = scene.value(expression.func)
    if type(function) is FunctionType and function.__code__.co_flags & inspect.CO_ASYNC_GENERATOR:
        return {**facts, "about": "await_generator"}
    if owner.startswith("`time.sleep("):
        return {**facts, "about": "await_sleep", "new": owner.replace("time.sleep", "asyncio.sleep")}
    return complete({**facts, "about": "await_ordinary"})


def not_awaited(scene: Scene) -> Facts | None:
    """Name the coroutine in the failing line whose result the code needs."""
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
    calls = [expression for expression in scene.expressions() if isinstance(expression, ast.Call)]
    for argument in (call_argument for call in calls for call_argument in call.args):
        value, owner = scene.value(argument), scene.text(argument)
        if type(value) is FunctionType and value.__code__.co_flags & inspect.CO_COROUTINE and owner:
            return {"about": "function_for_coroutine", "owner": owner, "new": f"`{owner.strip('`')}()`"}
    return None


def _awaits(scene: Scene) -> list[ast.Await]:
    return [node for node in ast.walk(scene.statement or ast.Pass()) if isinstance(node, ast.Await)]


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
    blocks = [statement for statement in every if statement.lineno <= line <= statement.body[0].lineno]
    match = re.search(r"'(?P<kind>[\w.]+)' object does not support", str(scene.error))
    if not blocks or match is None:
        return None
    block = max(blocks, key=lambda one: one.lineno)
    if len(block.items) != 1:  # it could be any of them
        return None
    opened, kind = block.items[0].context_expr, match["kind"].rpartition(".")[2]
    about, written, replacement, needed = (
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
    facts = {"about": about, "owner": f"`{text}`" if text else "", "kind": f"`{match['kind']}`"}
    return complete({**facts, "part": f"`{written} {text}`", "new": f"`{replacement} {text}`"})


def gathered(scene: Scene) -> Facts | None:
    """Say that `gather` takes coroutines one by one, where it got a list of them."""
    node = scene.node
    if not isinstance(node, ast.Call) or called(node) != "gather" or len(node.args) != 1:
        return None
    argument = scene.text(node.args[0])
    return complete({"about": "gather_list", "given": argument, "new": f"`*{argument.strip('`')}`"})


# Failures inside of a library

_OWN_FILES = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3[^/\\]*[/\\]|<frozen |^<__array_function__"
)


def inside_library(scene: Scene) -> Facts | None:
    """Say which call failed on its arguments, if the failing code belongs to a library and not to the user.

    The message then describes a line that the user did not write.
    """
    node = scene.node.value if isinstance(scene.node, ast.Await) else scene.node
    if not isinstance(node, ast.Call) or not scene.frames:
        return None
    inner = scene.frames[-1]
    module = inner.f_globals.get("__name__")
    if type(module) is not str or _OWN_FILES.search(inner.f_code.co_filename) is None:
        return None
    match = re.search(r"'(?P<kind>\w+)'", str(scene.error))
    named = [("", argument) for argument in node.args]
    named += [(f"{keyword.arg}=", keyword.value) for keyword in node.keywords if keyword.arg]
    values = [(name, scene.text(expression), scene.value(expression)) for name, expression in named]
    kind = match["kind"] if match is not None and all(value is not UNREAD for _, _, value in values) else ""
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
    argument_facts = (
        {"owner": fitting[0], "kind": f"`{kind}`"} if len(fitting) == 1 else {"owner": "", "kind": ""}
    )
    return {**facts, **argument_facts}
