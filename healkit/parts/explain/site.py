"""Place of a failure, and the facts known there."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, TypeVar

import msgspec

from healkit.core.contracts.failure import Frame
from healkit.core.contracts.patches import Check, Edit, EditKind
from healkit.core.crossing import values
from healkit.core.pysource import shapes
from healkit.core.pysource.nodes import (
    Function,
    bound_names,
    called_name,
    first_line,
    header_nodes,
    own_nodes,
    parameters,
)
from healkit.errors import ToolShapeError, near_misses
from healkit.parts.explain.explanation import MatchedFailure
from healkit.parts.explain.source import Source, names_at

N = TypeVar("N", bound=ast.AST)

#: Marks that a traceback puts under a source line.
_MARKS = re.compile(r"[ ~^]*\^[ ~^]*\Z")
_ITEMS_MAX = 200


@dataclasses.dataclass(frozen=True)
class Proposal:
    """A change that a fix proposes: the edits, and a sentence with the change and its reason.

    less: How much less likely it is than the fix's first proposal.
    guard: It prevents the failure without knowing the right result.
    kind: What it does to the meaning, if that differs from the kind of its fix.
    """

    reason: str
    edits: list[Edit]
    less: float = 0.0
    guard: bool = False
    kind: EditKind | Literal[""] = ""


class Site:
    """A tool's parsed code, and the line of its failure.

    source: The code.
    matched: The failure; None for a tool that returns a wrong result.
    checks: What a patch has to do.
    readable: Paths that the tool may read.
    given: Names that a notebook cell finds defined, with their values. Only types and plain contents are read.
    answers: The recorded answers of the tool's calls.

    Questions about an unknown line have empty answers.
    """

    def __init__(
        self,
        source: Source,
        tool_name: str,
        matched: MatchedFailure | None,
        checks: Sequence[Check] = (),
        readable: Sequence[str] = (),
        given: Mapping[str, Any] | None = None,
        answers: Sequence[Any] = (),
    ) -> None:
        self.source = source
        self.matched = matched
        self.failure = None if matched is None else matched.failure
        self.readable = readable
        self.is_cell = given is not None
        self.given = given or {}
        self._answers = answers
        self._tool_name = tool_name
        self._checks = [_in_parts(check) for check in checks]

    @property
    def facts(self) -> dict[str, str]:
        """What the objects of the failure show, as texts by name."""
        return self.failure.facts if self.failure else {}

    @property
    def message(self) -> str:
        """Message of the failure."""
        return self.failure.evalue if self.failure else ""

    @cached_property
    def frame(self) -> Frame | None:
        """Innermost frame of the tool's own code that is in this code."""
        frame = self.failure.tool_frame if self.failure else None
        if frame is None:
            return None
        failed_line = frame.line.strip()
        here = {
            n for n, line in enumerate(self.source.lines, 1) if not failed_line or line.strip() == failed_line
        }
        if frame.lineno in here:
            return frame
        # The failure is of another revision: accept its line if the code has exactly one like it.
        return msgspec.structs.replace(frame, lineno=here.pop()) if len(here) == 1 else None

    @cached_property
    def statement(self) -> ast.stmt | None:
        """Statement that failed."""
        if self.frame is None:
            return None
        line = self.frame.lineno
        around = [
            node
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.stmt) and first_line(node) <= line <= (node.end_lineno or 0)
        ]
        return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)

    @cached_property
    def function(self) -> Function | None:
        """Function that failed; without a failure, the one that is called."""
        return self.source.function_at(self.frame.lineno) if self.frame else self.entry

    @property
    def scope(self) -> ast.AST:
        """Failing function, or the module if there is none."""
        return self.function or self.source.tree

    @cached_property
    def entry(self) -> Function | None:
        """Function that is called with the arguments: a tool's own, or its class's `run`."""
        try:
            shape = shapes.read_shape(self.source.tree, self._tool_name)
        except ToolShapeError:
            return None
        inside: list[ast.stmt] = self.source.tree.body
        name = shape.entry
        if shape.kind == "class":
            inside = next(n.body for n in inside if isinstance(n, ast.ClassDef) and n.name == name)
            name = "run"
        return next((n for n in inside if isinstance(n, Function) and n.name == name), None)

    @cached_property
    def inputs(self) -> list[Check]:
        """Checks whose input fails or may fail; an example replaces a recorded failure with the same input."""
        failing = [check for check in self._checks if check.origin == "failing" and not check.call]
        examples = [
            c for c in self._checks if c.known and c.origin != "passing" and not c.call and not c.raises
        ]
        same = [
            check for check in examples if any(check.arguments == failure.arguments for failure in failing)
        ]
        return same or failing or examples

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the call that failed, or the likeliest ones."""
        return next((check.arguments for check in self.inputs), {})

    @cached_property
    def values(self) -> dict[str, Any]:
        """Known values of names in the failing function: the arguments, if they are its own parameters."""
        if self.is_cell:
            local_names = bound_names(self.function) if self.function is not None else {}
            return {
                name: value
                for name, value in self.given.items()
                if _is_plain(value) and name not in local_names
            }
        if self.function is None or self.function is not self.entry:
            return {}
        names = [arg.arg for arg in parameters(self.function)]
        if len(names) == 1 and names[0] not in self.arguments:
            return {names[0]: self.arguments}
        return {name: self.arguments[name] for name in names if name in self.arguments}

    @cached_property
    def expected(self) -> list[Any]:
        """Known result for the arguments that failed: one value, or none."""
        return self.demanded("")[:1]

    def demanded(self, condition: str) -> list[Any]:
        """Return the known results where a condition on the arguments holds, likeliest first.

        A condition that cannot be evaluated for the arguments counts as true for all of them.
        """
        values: list[Any] = []
        for check in self.inputs:
            if check.known and holds(condition, check.arguments) and check.expected not in values:
                values.append(check.expected)
        return values[:3]

    @cached_property
    def marked(self) -> tuple[int, int] | None:
        """Part of the failing line that the traceback marks, in characters of the code."""
        if self.failure is None or self.frame is None:
            return None
        head = f'File "{self.frame.filename}", line {self.frame.lineno}, in '
        excerpt = self.failure.traceback.rpartition(head)[2].split("\n")[1:3]
        line = self.source.lines[self.frame.lineno - 1]
        if len(excerpt) < 2 or excerpt[0].strip() != line.strip() or not _MARKS.match(excerpt[1]):
            return None
        shift = self.source.line_start(self.frame.lineno) + line.index(line.strip())
        shift -= len(excerpt[0]) - len(excerpt[0].lstrip())
        return shift + len(excerpt[1]) - len(excerpt[1].lstrip()), shift + len(excerpt[1].rstrip())

    def nodes(self, *kinds: type[N], near: bool = True) -> list[N]:
        """Return nodes of these kinds in the failing statement: the marked one first, then those inside the mark.

        near: With a mark, only those that touch it.
        """
        if self.statement is None:
            return []
        candidates = [node for node in header_nodes(self.statement) if isinstance(node, kinds)]
        if self.marked is None or not near:
            return candidates
        start, end = self.marked
        placed = [
            node for node in candidates if hasattr(node, "lineno") or isinstance(node, ast.comprehension)
        ]
        spans = {node: self.source.span(node) for node in placed}
        inside = [node for node, (s, e) in spans.items() if s < end and e > start]
        return sorted(inside, key=lambda node: (spans[node] != (start, end), abs(spans[node][0] - start)))

    def body_nodes(self, *kinds: type[N]) -> Iterator[N]:
        """Yield nodes of these kinds in the failing function, in text order."""
        nodes = (node for node in own_nodes(self.scope) if isinstance(node, kinds))
        yield from sorted(
            nodes, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        )

    def loops(self) -> list[tuple[ast.expr, ast.expr]]:
        """Return the target and the iterable of each loop and comprehension of the failing function."""
        for_loops = [(loop.target, loop.iter) for loop in self.body_nodes(ast.For)]
        return for_loops + [(part.target, part.iter) for part in self.body_nodes(ast.comprehension)]

    def all(self, kind: type[N]) -> Iterator[N]:
        """Yield every node of that kind in the code."""
        return (node for node in ast.walk(self.source.tree) if isinstance(node, kind))

    def uses(self, name: str) -> list[ast.Name]:
        """Return every place in the code where a name stands."""
        return [node for node in self.all(ast.Name) if node.id == name]

    def calls(self, *names: str) -> list[ast.Call]:
        """Return calls of these functions or methods with an argument, on the failing line."""
        return [call for call in self.nodes(ast.Call) if called_name(call) in names and call.args]

    def made(self, node: ast.expr) -> list[ast.expr]:
        """Return where a value is made: the expression itself, or what its name was assigned."""
        if isinstance(node, ast.Name):
            return [assigned.value for assigned in self.assignments(node.id)]
        return [node]

    def assignments(self, name: str) -> list[ast.Assign]:
        """Return the plain assignments to that name in the failing function."""
        return [
            node
            for node in self.body_nodes(ast.Assign)
            if any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        ]

    def names(self) -> list[str]:
        """Return the names that are defined where the code failed."""
        return list(dict.fromkeys([*names_at(self.source, self.statement or self.scope), *self.given]))

    def module_name(self, module: str) -> str | None:
        """Return the name that the code has for a module; None where it has none."""
        imported = (
            alias.asname or alias.name
            for node in self.all(ast.Import)
            for alias in node.names
            if alias.name == module
        )
        module_aliases = (
            name
            for name, value in self.given.items()
            if isinstance(value, ModuleType) and value.__name__ == module
        )
        return next(imported, None) or next(module_aliases, None)

    def add_import(self, text: str) -> list[Edit]:
        """Add import lines beside the other imports; nothing where a notebook has the name already."""
        last = text.rpartition(" ")[2]
        return [] if "\n" not in text and last in self.given else self.source.add_import(text)

    def with_module(self, text: str) -> tuple[str, list[Edit]]:
        """Return a text with the code's own names for pandas and numpy, and the missing imports."""
        edits: list[Edit] = []
        for short, module in (("pd", "pandas"), ("np", "numpy")):
            if not re.search(rf"(?<![\w.]){short}\.", text):
                continue
            module_alias = self.module_name(module)
            text = re.sub(rf"(?<![\w.]){short}\.", f"{module_alias or short}.", text)
            edits += [] if module_alias else self.add_import(f"import {module} as {short}")
        return text, edits

    def near(self, wanted: str, known: list[str] | None = None) -> list[str]:
        """Return similar names: first those of the failure, then those of `known`; never the name itself."""
        suggestions = list(self.failure.near) if self.failure else []
        candidates = dict.fromkeys([*suggestions, *near_misses(wanted, known or [], 4)])
        return [name for name in candidates if name != wanted and not _other_number(name, wanted)][:4]

    def data_keys(self) -> list[str]:
        """Return every text key in the failing arguments and in answers of calls, at any depth."""
        keys: dict[str, None] = {}
        pending: list[Any] = [check.arguments for check in self.inputs]
        pending += [value for value in self.given.values() if type(value) in (dict, list)]
        pending += self._answers
        while pending and len(keys) < _ITEMS_MAX:
            value = pending.pop(0)
            if isinstance(value, dict):
                keys.update(dict.fromkeys(key for key in value if isinstance(key, str)))
                pending += value.values()
            elif isinstance(value, list):
                pending += value[:_ITEMS_MAX]
        return list(keys)


def _other_number(one: str, other: str) -> bool:
    """Return whether two names differ only in their digits: `price_6` does not replace `price_9`."""
    return one != other and re.sub(r"\d+", "0", one) == re.sub(r"\d+", "0", other)


def _is_plain(value: object) -> bool:
    return value is None or type(value) in (bool, int, float, str, bytes, list, tuple, dict, set, frozenset)


#: The code of a fix: is given the place of the failure and the match of the pattern's message.
Propose = Callable[[Site, re.Match[str]], Iterator[Proposal]]


def _in_parts(check: Check) -> Check:
    """Return a check whose frames are dicts of their columns, so that rules find names and values in them."""
    if not (values.has_tags(check.arguments) or values.has_tags(check.expected)):
        return check
    arguments, expected = values.as_parts(check.arguments), values.as_parts(check.expected)
    return msgspec.structs.replace(check, arguments=arguments, expected=expected)


def holds(condition: str, arguments: dict[str, Any]) -> bool:
    """Return whether a condition holds for these arguments; True if that is unknown without running code."""
    try:
        node = ast.parse(condition, mode="eval").body
        return bool(_told(node, arguments))
    except (SyntaxError, LookupError, TypeError, ValueError):
        return True


def _told(node: ast.expr, arguments: dict[str, Any]) -> Any:
    """Evaluate a very simple expression; raises `LookupError` for any other."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return arguments[name]
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
            return arguments[name][key]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _told(operand, arguments)
        case ast.Call(func=ast.Name(id="len"), args=[given]):
            return len(_told(given, arguments))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            sides = _told(left, arguments), _told(right, arguments)
            match op:
                case ast.Eq():
                    return sides[0] == sides[1]
                case ast.Lt():
                    return sides[0] < sides[1]
                case ast.GtE():
                    return sides[0] >= sides[1]
                case ast.Is():
                    return sides[0] is sides[1]
    raise LookupError(ast.dump(node))
