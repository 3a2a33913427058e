"""Parsed tool as the operators see it.

Everything that an operator needs to know about the code around a node is here. So an operator is only the few lines
that make its edits. It yields a `Change`; the search adds which operator made it and how likely it is.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from healkit.core.contracts.patches import Check, Edit
from healkit.core.crossing import values
from healkit.core.pysource.nodes import (
    FUNCTION_RESULTS,
    ITERATORS,
    LITERALS,
    METHOD_RESULTS,
    Function,
    bound_names,
    free_names,
    stored_names,
)
from healkit.core.pysource.shapes import is_script
from healkit.parts.explain.source import TEST, Source, parenthesized, required_precedence
from healkit.parts.heal.verdicts import annotated_types

#: Fields without an expression to change: annotations, decorators.
_OUT_OF_REACH = {"annotation", "returns", "decorator_list", "type_params", "type_comment"}


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """Edits of a program that make one variant.

    weight: Its share of the operator's prior, up to the operator's `most`.
    guard: It avoids a failure without knowing the right result.
    line: The line whose suspicion counts, if that is not the node's own line.
    """

    edits: tuple[Edit, ...]
    weight: float = 1.0
    guard: bool = False
    line: int = 0


@dataclasses.dataclass(frozen=True)
class Hints:
    """Facts from outside the code: constants of expected values, types seen at run time, peers' code.

    errors: Exceptions that are right.
    raised: Exceptions that occurred and are wrong.
    columns: Names of the columns of frames in the checks.
    """

    constants: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    raised: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)
    columns: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)
    types: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    peers: tuple[str, ...] = ()


class Program:
    """Parsed tool: places of its nodes and names in scope; raises `SyntaxError` if it does not parse."""

    def __init__(self, text: str, hints: Hints | None = None) -> None:
        self.source = Source(text)
        self.text = text
        self.tree = self.source.tree
        self.hints = hints or Hints()
        self.parents: dict[ast.AST, tuple[ast.AST, str]] = {}
        #: Nodes that may be changed, in text order.
        self.nodes: list[ast.AST] = []
        #: Each statement's block and its index there.
        self.places: dict[ast.stmt, tuple[list[ast.stmt], int]] = {}
        self._statement: dict[ast.AST, ast.stmt] = {}
        self._rows: dict[ast.stmt, tuple[int, int] | None] = {}
        self._visit(self.tree, None)

    def _visit(self, node: ast.AST, statement: ast.stmt | None) -> None:
        for field, value in ast.iter_fields(node):
            if field in _OUT_OF_REACH:
                continue
            children = value if isinstance(value, list) else [value]
            for position, child in enumerate(children):
                if not isinstance(child, ast.AST):
                    continue
                self.parents[child] = (node, field)
                inside = child if isinstance(child, ast.stmt) else statement
                if isinstance(child, ast.stmt):
                    self.places[child] = (value, position)
                if inside is not None:
                    self._statement[child] = inside
                if isinstance(child, ast.JoinedStr):
                    self.nodes.append(child)
                    self._visit_fstring(child, inside)
                elif not _is_docstring(field, child):
                    self.nodes.append(child)
                    self._visit(child, inside)

    def _visit_fstring(self, string: ast.JoinedStr, statement: ast.stmt | None) -> None:
        """Visit the expressions in an f-string whose places are right; before Python 3.12 some are not."""
        for part in string.values:
            if not isinstance(part, ast.FormattedValue):
                continue
            try:
                same = ast.dump(ast.parse(self.segment(part.value), mode="eval").body) == ast.dump(part.value)
            except (SyntaxError, ValueError, IndexError):
                same = False
            if not same:
                continue
            self.parents[part.value] = (part, "value")
            if statement is not None:
                self._statement[part.value] = statement
            self.nodes.append(part.value)
            self._visit(part.value, statement)

    # Nodes

    def segment(self, node: ast.AST) -> str:
        """Return a node's text."""
        return self.source.segment(node)

    def piece(self, node: ast.expr, needed: int) -> str:
        """Return an expression's text for a place that needs a certain precedence."""
        return parenthesized(self.segment(node), needed)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node around a node."""
        slot = self.parents.get(node)
        return slot[0] if slot else None

    def field(self, node: ast.AST) -> str:
        """Return the field of its parent that a node is in."""
        slot = self.parents.get(node)
        return slot[1] if slot else ""

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement around a node, or the node itself."""
        return node if isinstance(node, ast.stmt) else self._statement[node]

    def function(self, node: ast.AST) -> Function | None:
        """Return the innermost `def` around a node."""
        for around in self.around(node):
            if isinstance(around, Function):
                return around
        return None

    def home(self, node: ast.AST) -> Function | ast.Module | None:
        """Return the innermost `def` around a node; the module in a script; None for code beside functions."""
        return self.function(node) or (self.tree if self._is_script else None)

    @functools.cached_property
    def _is_script(self) -> bool:
        return is_script(self.tree)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        while (slot := self.parents.get(node)) is not None:
            node = slot[0]
            yield node

    def is_value(self, node: ast.AST) -> bool:
        """Return whether a node is an expression whose value is read."""
        if not isinstance(node, ast.expr) or isinstance(node, ast.Starred | ast.Slice):
            return False
        return isinstance(getattr(node, "ctx", None), ast.Load | None)

    # Edits

    def replace(self, node: ast.expr, text: str) -> Edit:
        """Return an edit that replaces an expression, in parentheses if needed."""
        slot = self.parents.get(node)
        if slot is not None and not self.source.in_parentheses(node):
            text = parenthesized(text, required_precedence(*slot))
        return Edit(*self.source.span(node), text)

    def swap(self, first: ast.expr, second: ast.expr, weight: float = 1.0, needed: int = TEST) -> Change:
        """Return the change that swaps two expressions."""
        spans = self.source.span(first), self.source.span(second)
        texts = [self.piece(node, needed) if needed else self.segment(node) for node in (second, first)]
        return Change((Edit(*spans[0], texts[0]), Edit(*spans[1], texts[1])), weight)

    def put(self, node: ast.expr, text: str, weight: float = 1.0, *, guard: bool = False) -> Iterator[Change]:
        """Yield the change that replaces an expression; nothing if the text stays the same."""
        if text != self.segment(node):
            text = self.quoted(text)
            try:
                yield Change((self.replace(node, text),), weight, guard)
            except SyntaxError:  # the text alone is not an expression
                return

    def quoted(self, text: str) -> str:
        """Return the text; a plain string literal gets the quotes that the program uses."""
        if (
            len(text) < 2
            or text[0] != "'"
            or text[-1] != "'"
            or not self._double
            or set(text[1:-1]) & set("'\"\\")
        ):
            return text
        return f'"{text[1:-1]}"'

    @functools.cached_property
    def _double(self) -> bool:
        return self.text.count('"') > self.text.count("'")

    def rows(self, statement: ast.stmt) -> tuple[int, int] | None:
        """Return the first and last line of a statement; None if other statements share them."""
        if statement not in self._rows:
            self._rows[statement] = self._rows_of(statement)
        return self._rows[statement]

    def _rows_of(self, statement: ast.stmt) -> tuple[int, int] | None:
        start, end = self.source.span(statement)
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        last = statement.end_lineno or statement.lineno
        before = self.text[self.source.line_start(statement.lineno) : start]
        after = self.text[end : self.source.line_end(last)].strip()
        return None if before.strip() or (after and not after.startswith("#")) else (first, last)

    def indent(self, statement: ast.stmt) -> str:
        """Return the white space before a statement."""
        return self.text[self.source.line_start(statement.lineno) : self.source.span(statement)[0]]

    def insert(self, statement: ast.stmt, lines: Sequence[str], *, after: bool = False) -> Edit | None:
        """Return an edit that inserts lines before or after a statement, indented like it.

        A tab in a line is one level of indentation. None if the statement shares its lines with others.
        """
        rows = self.rows(statement)
        if rows is None:
            return None
        indent, step = self.indent(statement), self.source.indent_unit
        block = [indent + line.replace("\t", step) for line in lines]
        newline = self.source.newline
        if after:
            at = self.source.line_end(rows[1])
            return Edit(at, at, newline + newline.join(block))
        at = self.source.line_start(rows[0])
        return Edit(at, at, newline.join(block) + newline)

    # Names in scope

    def names(self, node: ast.AST) -> list[str]:
        """Return the variables that can be read at a node, innermost first."""
        names: dict[str, None] = {}
        for around in self.around(node):
            if isinstance(around, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
                if any(part is node or self.parent(node) is part for part in around.generators[:1]):
                    continue
                for part in around.generators:
                    names.update(dict.fromkeys(stored_names(part.target)))
            elif isinstance(around, Function | ast.Lambda | ast.Module):
                names.update(dict.fromkeys(self.locals(around)))
        return list(names)

    def locals(self, owner: Any) -> list[str]:
        """Return the variables of a function or module, parameters first, without functions and imports."""
        variables: list[str] | None = getattr(owner, "_locals", None)
        if variables is None:
            bindings = bound_names(owner, "parameter", "variable")
            variables = owner._locals = [name for name in bindings if name != "_"]
        return variables

    @functools.cached_property
    def defined(self) -> dict[str, Function]:
        """Functions of the program by name."""
        return {node.name: node for node in ast.walk(self.tree) if isinstance(node, Function)}

    def types(self, name: str, node: ast.AST) -> frozenset[str]:
        """Return the type names that a variable was seen to have; empty if it was not seen."""
        function = self.function(node)
        observed_types = self.hints.types
        if function is not None and (kinds := observed_types.get(f"{function.name}.{name}")):
            return kinds
        return observed_types.get(name, frozenset())


def _is_docstring(field: str, child: object) -> bool:
    """Return whether a node is a string for the reader, such as a docstring."""
    return (
        field == "body"
        and isinstance(child, ast.Expr)
        and isinstance(child.value, ast.Constant)
        and isinstance(child.value.value, str)
    )


# Guessed types of expressions, from literals, the results of built-in functions and methods, and types seen at run
# time. An empty set means that nothing is known. With the types, changes that could only raise a TypeError are left
# out.

TypeNames = frozenset[str]
UNKNOWN: TypeNames = frozenset()
NUMBERS: TypeNames = frozenset({"int", "float", "bool", "complex", "Decimal", "Fraction"})
SEQUENCES: TypeNames = frozenset({"list", "str", "tuple", "bytes", "range", "deque"})
COLLECTIONS: TypeNames = SEQUENCES | {
    "dict", "set", "frozenset", "defaultdict", "Counter", "OrderedDict", "dict_keys", "dict_values", "dict_items",
    "generator",
}  # fmt: skip

#: `round` is left out: it returns an int or a float.
_CALLS = {
    name: "generator" if result in ITERATORS else result
    for name, result in FUNCTION_RESULTS.items()
    if name != "round"
}


def guess_types(program: Program, node: ast.expr) -> TypeNames:
    """Return the type names that an expression's value may have; empty if nothing is known."""
    if isinstance(node, ast.Constant):
        return frozenset({type(node.value).__name__})
    if (literal := LITERALS.get(type(node))) is not None:
        return frozenset({literal})
    if isinstance(node, ast.Name):
        return program.types(node.id, node)
    if isinstance(node, ast.Call):
        return _of_call(node)
    if isinstance(node, ast.UnaryOp):
        return frozenset({"bool"}) if isinstance(node.op, ast.Not) else guess_types(program, node.operand)
    if isinstance(node, ast.BinOp):
        return _of_binary(program, node)
    if isinstance(node, ast.Subscript):
        inside = guess_types(program, node.value)
        return inside if isinstance(node.slice, ast.Slice) or inside == {"str"} else UNKNOWN
    if isinstance(node, ast.IfExp):
        return guess_types(program, node.body) | guess_types(program, node.orelse)
    return UNKNOWN


def _of_call(node: ast.Call) -> TypeNames:
    if isinstance(node.func, ast.Name):
        type_name = _CALLS.get(node.func.id)
    elif isinstance(node.func, ast.Attribute):
        type_name = METHOD_RESULTS.get(node.func.attr)
        if isinstance(node.func.value, ast.Name) and node.func.value.id in ("math", "np", "numpy"):
            type_name = _CALLS.get(node.func.attr)
    else:
        type_name = None
    return frozenset({type_name}) if type_name else UNKNOWN


def _of_binary(program: Program, node: ast.BinOp) -> TypeNames:
    left_types, right = guess_types(program, node.left), guess_types(program, node.right)
    if isinstance(node.op, ast.Div):
        return frozenset({"float"}) if left_types and left_types <= NUMBERS else UNKNOWN
    if left_types and right and left_types <= NUMBERS and right <= NUMBERS:
        return frozenset({"float"}) if "float" in left_types | right else frozenset({"int"})
    if isinstance(node.op, ast.Add) or (isinstance(node.op, ast.Mod) and left_types == {"str"}):
        return left_types or right
    return left_types if left_types and left_types <= SEQUENCES else UNKNOWN


def may_have_type(kinds: TypeNames, wanted: TypeNames) -> bool:
    """Return whether a value of some of these types may have one of those; unknown types may be anything."""
    return not kinds or bool(kinds & wanted)


def type_agreement(first: TypeNames, second: TypeNames) -> float:
    """Return how likely one type can replace another: 1 same, 0.65 unknown, 0.5 related, 0 never."""
    if not first or not second:
        return 0.65
    if first & second:
        return 1.0
    related = (first <= NUMBERS and second <= NUMBERS) or (first <= COLLECTIONS and second <= COLLECTIONS)
    return 0.5 if related or "NoneType" in first | second else 0.0


# Ingredients of patches. Most missing code is already somewhere in the program, or in another program for the same
# purpose (the "plastic surgery hypothesis", Barr et al. 2014). Constants of the expected values are added. An
# ingredient is offered only where its names are in scope.

_MOST_CONSTANTS, _MOST_CONDITIONS, _MOST_COLUMNS = 40, 60, 30
#: How many texts of the arguments are used, and how long they may be.
_MOST_GIVEN, _GIVEN_MAX_CHARS = 6, 12
#: How many answers of calls are used.
_MOST_ANSWERS = 20


def constants(checks: list[Check], answers: Sequence[Any] = ()) -> tuple[str, ...]:
    """Return Python literals of the expected values (scalars and keys), then of given records' keys and short texts.

    answers: Answers of calls; their records and short texts are also included.
    """
    literals: dict[str, None] = {}
    for check in checks:
        if check.known and not check.raises:
            for value in _leaves(values.as_parts(check.expected)):
                if not (isinstance(value, str) and len(value) > 60):
                    literals[repr(value)] = None
    for check in checks:
        literals.update(dict.fromkeys(map(repr, _keys(values.as_parts(check.arguments)))))
    literals.update(dict.fromkeys(map(repr, _keys(list(answers)[:_MOST_ANSWERS], 1))))
    for group in (
        [values.as_parts(check.arguments) for check in checks],
        [answer for answer in answers if _is_short_text(answer)],
    ):
        short_texts = dict.fromkeys(text for text in _leaves(group) if _is_short_text(text))
        literals.update(dict.fromkeys(map(repr, list(short_texts)[:_MOST_GIVEN])))
    return tuple(literals)[:_MOST_CONSTANTS]


def frame_columns(checks: list[Check]) -> tuple[str, ...]:
    """Return the names of the columns of the checks' frames: those of expected frames first."""
    tagged = [
        check for check in checks if values.has_tags(check.expected) or values.has_tags(check.arguments)
    ]
    names: dict[str, None] = {}
    for check in tagged:
        names.update(dict.fromkeys(_column_names(values.remade(check.expected))))
    for check in tagged:
        for value in check.arguments.values():
            names.update(dict.fromkeys(_column_names(values.remade(value))))
    return tuple(names)[:_MOST_COLUMNS]


def _column_names(value: object) -> list[str]:
    names = list(getattr(value, "columns", ())) if type(value).__name__ == "DataFrame" else []
    return [name for name in names if isinstance(name, str)]


def _is_short_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _GIVEN_MAX_CHARS


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield key
            yield from _leaves(inside)
    elif isinstance(value, list):
        if not value:
            yield []
        for inside in value[:12]:
            yield from _leaves(inside)
    elif value == "Infinity":
        return
    else:
        yield value
        if isinstance(value, str):
            yield from re.findall(r"[^\w\s]+ ?", value)[:3]


def _keys(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the keys of the records in a tool's arguments; the names of the arguments are left out."""
    if isinstance(value, dict):
        if depth:
            yield from (key for key in value if key.isidentifier())
        for inside in value.values():
            yield from _keys(inside, depth + 1)
    elif isinstance(value, list):
        for inside in value[:3]:
            yield from _keys(inside, depth + 1)


@functools.lru_cache(maxsize=32)
def _peers(program: Program) -> tuple[Program, ...]:
    peers = []
    for text in program.hints.peers:
        try:
            peers.append(Program(text))
        except (SyntaxError, ValueError):
            continue
    return tuple(peers)


@functools.lru_cache(maxsize=32)
def _mined_conditions(program: Program) -> dict[str, frozenset[str]]:
    """Return the conditions of the program and its peers, each with the names that it needs."""
    mined: dict[str, frozenset[str]] = {}
    for source_program in (program, *_peers(program)):
        for node in source_program.nodes:
            tests = getattr(node, "ifs", None) or (
                [node.test] if isinstance(node, ast.If | ast.While | ast.IfExp) else []
            )
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Compare | ast.BoolOp):
                tests = [node.value]
            for test in tests:
                parts = test.values if isinstance(test, ast.BoolOp) else []
                for part in [test, *parts]:
                    text = source_program.segment(part)
                    if not isinstance(part, ast.Constant) and "\n" not in text and len(text) < 80:
                        mined[text if not isinstance(part, ast.BoolOp) else f"({text})"] = free_names(part)
    return mined


def conditions(program: Program, node: ast.AST) -> list[str]:
    """Return conditions for a node: the program's own, its peers', and tests of the names in scope."""
    names = program.names(node)
    available = {*names, *program.defined, *_imported(program)}
    candidates = {text: None for text, needed in _mined_conditions(program).items() if needed <= available}
    mined = list(candidates)
    for name in names[:10]:
        kinds = program.types(name, node)
        if not kinds or not kinds <= {"function", "type", "module"}:
            candidates[f"not {name}"] = None
            if "str" in kinds:
                candidates[f"not {name}.strip()"] = None
            if not kinds or kinds & NUMBERS:
                for ask in ("== 0", "<= 0", "< 0", "== 1", "<= 1", "> 0"):
                    candidates[f"{name} {ask}"] = None
            if not kinds or kinds & COLLECTIONS:
                candidates[f"len({name}) == 1"] = None
                candidates[f"len({name}) < 2"] = None
            if not kinds or "NoneType" in kinds:
                candidates[f"{name} is None"] = None
            if not kinds - NUMBERS:
                candidates[f"{name}"] = None
    for first in names[:8]:
        for second in names[:8]:
            first_kinds, second_kinds = program.types(first, node), program.types(second, node)
            if first != second and first_kinds & second_kinds & NUMBERS and first < second:
                for ask in ("==", "<", ">"):
                    candidates[f"{first} {ask} {second}"] = None
            elif first != second and second_kinds & COLLECTIONS and not first_kinds & COLLECTIONS:
                candidates[f"{first} not in {second}"] = None
                candidates[f"{first} in {second}"] = None
            elif first != second and first_kinds & second_kinds & {"str"}:
                candidates[f"{first} == {second}"] = None
    both = [
        f"{earlier} and {later}"
        for earlier, later in itertools.combinations(mined[:5], 2)
        if " and " not in earlier + later
    ]
    return list(dict.fromkeys([*mined, *both, *candidates]))[:_MOST_CONDITIONS]


@functools.lru_cache(maxsize=32)
def _imported(program: Program) -> frozenset[str]:
    return frozenset(
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )


@functools.lru_cache(maxsize=256)
def results(program: Program, function: ast.AST) -> tuple[str, ...]:
    """Return values that a function may return early: its own plain results, expected values, parameters."""
    texts: dict[str, None] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(
            node.value, ast.Constant | ast.List | ast.Name | ast.Dict | ast.UnaryOp
        ):
            text = program.segment(node.value)
            if len(text) < 30 and free_names(node.value) <= set(program.locals(function)[:8]):
                texts[text] = None
    for text in ("0", "1", "[]", "''", "False", "True", "None", "-1", "[[]]", "{}", "0.0"):
        texts[text] = None
    texts.update(dict.fromkeys(program.hints.constants[:8]))
    texts.update(dict.fromkeys(name for name in program.locals(function)[:4]))
    args = getattr(function, "args", None)
    if args is not None:
        for arg in args.args[:3]:
            if arg.arg != "self":
                texts[arg.arg] = None
                texts[f"[{arg.arg}]"] = None
    allowed = annotated_types(function)
    return tuple(text for text in texts if _fits(text, allowed))[:24]


def _fits(text: str, allowed: frozenset[str]) -> bool:
    """Return whether an annotation allows a literal; a name may be anything."""
    if not allowed:
        return True
    try:
        return type(ast.literal_eval(text)).__name__ in allowed
    except (ValueError, SyntaxError):
        return True


@functools.lru_cache(maxsize=32)
def _mined_expressions(program: Program) -> dict[str, tuple[ast.expr | None, frozenset[str]]]:
    mined: dict[str, tuple[ast.expr | None, frozenset[str]]] = {}
    for source_program in (program, *_peers(program)):
        for node in source_program.nodes:
            if not isinstance(
                node,
                ast.Call | ast.Subscript | ast.BinOp | ast.Attribute | ast.IfExp | ast.Compare | ast.ListComp,
            ):
                continue
            if not source_program.is_value(node) or source_program.field(node) == "func":
                continue
            text = source_program.segment(node)
            if "\n" not in text and len(text) < 60:
                mined.setdefault(text, (node if source_program is program else None, free_names(node)))
    return mined


def expressions(program: Program, node: ast.AST) -> list[tuple[ast.expr | None, str]]:
    """Return expressions (the program's own with their node) whose names are in scope at a node."""
    available = {*program.names(node), *program.defined, *_imported(program)}
    return [
        (expression, text)
        for text, (expression, needed) in _mined_expressions(program).items()
        if needed <= available
    ][:50]


@functools.lru_cache(maxsize=32)
def _mined_statements(program: Program) -> dict[str, tuple[ast.stmt, frozenset[str], float]]:
    mined: dict[str, tuple[ast.stmt, frozenset[str], float]] = {}
    for source_program in (program, *_peers(program)):
        for node in source_program.places:
            if not isinstance(
                node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return | ast.Break | ast.Continue
            ):
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            text = source_program.segment(node)
            if "\n" not in text and len(text) < 90:
                mined.setdefault(text, (node, free_names(node), 1.0 if source_program is program else 1.4))
    return mined


def statements(program: Program, node: ast.stmt) -> list[tuple[str, float]]:
    """Return simple statements for a place, with weights; some with one of their names exchanged."""
    names = program.names(node)
    available = {*names, *program.defined, *_imported(program)}
    weights: dict[str, float] = {}
    for text, (statement, needed, weight) in _mined_statements(program).items():
        if needed <= available:
            weights.setdefault(text, weight)
        if isinstance(statement, ast.Return):
            continue
        for old in sorted(needed & {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)}):
            if needed - {old} <= available:
                for new in names[:8]:
                    if new != old:
                        weights.setdefault(re.sub(rf"\b{re.escape(old)}\b", new, text), weight * 0.75)
    return list(weights.items())[:90]
