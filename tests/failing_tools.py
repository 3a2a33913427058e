"""Tools run in this process, and the cases of their failures."""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import sys
import types
import warnings
from typing import Any

from healkit import hooks
from healkit.core.contracts.execution import Grants
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import Check
from healkit.core.contracts.tools import Tool
from healkit.core.contracts.vault import VaultEntry
from healkit.core.pysource import shapes
from healkit.core.store.entries import code_hash
from healkit.core.workers.inside import capture
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.case import merged

capture.observers[:] = [name for part in hooks.every("observers") for name in part]  # as in a worker


def entry_of(code: str, name: str = "tool", **more: Any) -> VaultEntry:
    return VaultEntry(name, "default", 1, code, code_hash(code), **more)


def run(code: str, arguments: dict[str, Any], name: str = "tool") -> tuple[Any, Failure | None]:
    """Run the tool; return its value, or its failure as a worker would report it."""
    ref = entry_of(code, name).ref
    capture.show_source(ref, code)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a broken tool may be bad style too
        try:
            value = _call(code, copy.deepcopy(arguments), name, ref.filename)
        except BaseException as error:
            gc.disable()  # an alarm that rings in a callback of the collector is lost, and pytest would report it
            try:
                return None, capture.to_failure(error, ref, 1.0)
            finally:
                gc.enable()
    return value, None


def _call(code: str, arguments: dict[str, Any], name: str, filename: str) -> Any:
    tree = shapes.parse(code, filename)
    shape = shapes.read_shape(tree, name)
    module = types.ModuleType(capture.TOOL_MODULE)
    sys.modules[module.__name__] = module
    namespace = module.__dict__
    namespace["Tool"] = Tool
    if shape.kind == "script":
        namespace["arguments"] = arguments
    exec(compile(tree, filename, "exec", dont_inherit=True), namespace)
    if shape.kind == "script":
        return namespace.get("result")
    target = namespace[shape.entry]
    if shape.kind == "class":
        target = target().run
    value = target(arguments) if shape.takes_dict else target(**arguments)
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def case_of(
    code: str,
    arguments: dict[str, Any],
    *checks: Check,
    name: str = "tool",
    failure: Failure | None = None,
    folders: list[str] | None = None,
) -> Case:
    """Make the case of a tool that fails for these arguments; the tool is run here unless its failure is given."""
    if failure is None:
        _, failure = run(code, arguments, name)
    failing = Check(origin="failing", arguments=arguments)
    entry = entry_of(code, name, grants=Grants(read=tuple(folders or ())))
    return Case(entry, failure, merged(checks, [failing], []))


def declared(arguments: dict[str, Any], expected: Any) -> Check:
    return Check(origin="declared", arguments=arguments, known=True, expected=expected)
