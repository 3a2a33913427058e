"""Ways into a tool's code: its entry, or a call beside it.

Each way gets a fresh module namespace, with the same names in it however the tool is run.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType
from typing import Any

from healkit.contracts.tools import Tool
from healkit.pysource.shapes import Shape
from healkit.workers.inside import tool_loops
from healkit.workers.inside.capture import TOOL_MODULE

#: Filename of a call's source in tracebacks.
CALL_FILENAME = "<call>"


class Call:
    """Compiled Python source whose last expression counts; raises `SyntaxError` for what is none."""

    def __init__(self, source: str) -> None:
        body = ast.parse(source, filename=CALL_FILENAME).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        self._statements = _compile(ast.Module(body, []), "exec") if body else None
        self._value = None
        if isinstance(last, ast.Expr):
            self._value = _compile(ast.Expression(last.value), "eval")

    def evaluate(self, namespace: dict[str, Any]) -> Any:
        """Run the statements in that namespace and return the last expression's value, None where there is none."""
        if self._statements is not None:
            exec(self._statements, namespace)  # noqa: S102 - what a worker is for
        if self._value is None:
            return None
        return awaited(eval(self._value, namespace))  # noqa: S307 - what the caller was asked to evaluate, in the restricted worker


def _compile(tree: ast.Module | ast.Expression, mode: str) -> CodeType:
    return compile(tree, CALL_FILENAME, mode, dont_inherit=True)


def with_awaited_calls(tree: ast.Module) -> ast.Module:
    """Let `await mcp.server.tool(…)` be a call that leaves the event loop free: `await mcp.server.tool.acall(…)`.

    A proxy returns its value, of the value's own type, which for a text or a number cannot be awaited too. So it is the
    spelling that counts. Code that gives the name `mcp` another meaning stays as it is.
    """
    taken = any(
        (isinstance(node, ast.Name) and node.id == "mcp" and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == "mcp")
        or (isinstance(node, ast.alias) and "mcp" in (node.name, node.asname))
        for node in ast.walk(tree)
    )
    return tree if taken else ast.fix_missing_locations(_AwaitedCalls().visit(tree))


class _AwaitedCalls(ast.NodeTransformer):
    """Rewriter of `await mcp.server.tool(…)`."""

    def visit_Await(self, node: ast.Await) -> ast.AST:
        """Call `acall` of the proxy; called by `visit`."""
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="mcp"))) as tool) as call:
                call.func = ast.copy_location(ast.Attribute(tool, "acall", ast.Load()), tool)
        return node


def fresh_namespace(names: dict[str, Any]) -> dict[str, Any]:
    """Return a new module's namespace, with `names` and `Tool` in it; registered, because dataclasses look it up."""
    module = types.ModuleType(TOOL_MODULE)
    sys.modules[TOOL_MODULE] = module
    namespace = module.__dict__
    namespace.update(names)
    namespace["Tool"] = Tool
    if not any(isinstance(finder, BaseModule) for finder in sys.meta_path):
        sys.meta_path.append(BaseModule())
    return namespace


class BaseModule:
    """Module `base` with the class `ChameleonTool`, which tools written for other hosts import: `Tool` by another name.

    It is the last finder that is asked, so that a module `base` of the user's own comes first. It derives from none of
    the classes of `importlib.abc`, which load modules that a fork resets.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find `base`; called by the import system when nothing else has found it."""
        # It has the methods that count; the class that mypy asks for would load too much.
        return ModuleSpec(fullname, self) if fullname == "base" else None  # type: ignore[arg-type]  # see above

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave the making of the module to the import system, which calls this."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Fill the module; called by the import system."""
        module.__doc__ = "Base class of tools, given by healkit."
        module.__dict__["ChameleonTool"] = module.__dict__["Tool"] = Tool


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

    tool_loops.let_nest()
    return asyncio.run(value)
