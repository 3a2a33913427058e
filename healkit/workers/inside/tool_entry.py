"""Ways into a tool's code: its entry, or a call beside it.

Each way gets a fresh module namespace, with the same names in it however the tool is run.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from typing import Any

from healkit.contracts.tools import Tool
from healkit.pysource.shapes import Shape
from healkit.workers.inside.capture import TOOL_MODULE

#: Filename of a call's source in tracebacks.
CALL_FILENAME = "<call>"


class Call:
    """Compiled Python source whose last expression counts; raises `SyntaxError` for what is none."""

    def __init__(self, source: str) -> None:
        body = ast.parse(source, filename=CALL_FILENAME).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        self._statements = compile(ast.Module(body, []), CALL_FILENAME, "exec") if body else None
        self._value = None
        if isinstance(last, ast.Expr):
            self._value = compile(ast.Expression(last.value), CALL_FILENAME, "eval")

    def evaluate(self, namespace: dict[str, Any]) -> Any:
        """Run the statements in that namespace and return the last expression's value, None where there is none."""
        if self._statements is not None:
            exec(self._statements, namespace)  # noqa: S102 - what a worker is for
        if self._value is None:
            return None
        return awaited(eval(self._value, namespace))  # noqa: S307 - what the caller was asked to evaluate, in the restricted worker


def fresh_namespace(names: dict[str, Any]) -> dict[str, Any]:
    """Return a new module's namespace, with `names` and `Tool` in it; registered, because dataclasses look it up."""
    module = types.ModuleType(TOOL_MODULE)
    sys.modules[TOOL_MODULE] = module
    namespace = module.__dict__
    namespace.update(names)
    namespace["Tool"] = Tool
    return namespace


def call_entry(namespace: dict[str, Any], shape: Shape, arguments: dict[str, Any]) -> Any:
    """Call what the code has defined there; for a script, look at what it has set."""
    if shape.kind == "script":
        return namespace.get("result")
    target: Any = namespace[shape.entry]
    if shape.kind == "class":
        target = target().run
    return awaited(target(arguments) if shape.takes_dict else target(**arguments))


def awaited(value: Any) -> Any:
    """Return the value, or what a coroutine returns."""
    if not inspect.iscoroutine(value):
        return value
    import asyncio  # late: most code has no coroutine, and a trial server is forked faster without

    return asyncio.run(value)
