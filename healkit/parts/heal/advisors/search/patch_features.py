"""Features of a patch, read off the text alone.

A patch may pass every check and still be one that no one would write. It divides a number by itself, no longer reads
its input, or has a number that is nowhere else in the program. Human changes are small, counted in tokens, and leave a
program in which everything is used. (On patches that overfit: Xin and Reiss, "Identifying Test-Suite-Overfitted Patches
through Test Case Generation", ISSTA 2017, and Ye et al., "Automated Classification of Overfitting Patches with
Statically Extracted Code Features", TSE 2021.)
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import io
import operator
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator

from healkit.core.pysource.nodes import Function, dump_without_names

_SHAPED = ast.Compare | ast.BinOp | ast.BoolOp | ast.Call | ast.Subscript | ast.Assign | ast.AugAssign
#: Shorter dumps, such as that of `a + 1`, are equal by chance.
_SHAPE_LEAST_CHARS = 60
_NO_TOKENS = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING)
#: Numbers that are common in any program.
USUAL = (0, 1, -1, 2)
_SAME_ON_BOTH_SIDES = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.BitXor, ast.BitAnd, ast.BitOr)
_HOLDS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
_DIRECTIONS: dict[type[ast.cmpop], int] = {ast.Lt: -1, ast.LtE: -1, ast.Gt: 1, ast.GtE: 1}


@dataclasses.dataclass(frozen=True)
class PatchFeatures:
    """Effects of a change on the text: tokens removed, added and moved, and oddities.

    unread: Names that are bound and no longer read, and functions that no longer call themselves.
    foreign: Weight of new and unusual literals.
    idle: Expressions that are constant or return their operand, and loops that change what they iterate over.
    fixed: How many idle expressions the change removes.
    silent: Functions that return a value and may now end without one.
    uneven: Places that were equal except for their names, of which one is now different.
    """

    removed: int = 0
    added: int = 0
    moved: int = 0
    unread: int = 0
    foreign: float = 0.0
    idle: int = 0
    fixed: int = 0
    silent: int = 0
    uneven: int = 0


@dataclasses.dataclass(frozen=True)
class _Oddities:
    """Oddities of one text."""

    unread: set[tuple[str, str]]
    recursive: set[str]
    literals: set[tuple[str, object]]
    idle: Counter[str]
    silent: set[str]
    shapes: Counter[str]


@functools.lru_cache(maxsize=128)  # each patch is looked up twice: for its rank and its doubt
def patch_features(before: str, after: str) -> PatchFeatures:
    """Return the features of a change; all zero if a text does not parse."""
    old, new = _oddities(before), _oddities(after)
    if old is None or new is None:
        return PatchFeatures()
    return PatchFeatures(
        *_tokens(before, after),
        unread=len(new.unread - old.unread) + len(old.recursive - new.recursive),
        foreign=sum(_foreign(old.literals, new.literals)),
        idle=(new.idle - old.idle).total(),
        fixed=max(0, old.idle.total() - new.idle.total()),
        silent=len(new.silent - old.silent),
        uneven=sum(count > 1 and new.shapes[shape] == count - 1 for shape, count in old.shapes.items()),
    )


@functools.lru_cache(maxsize=128)  # the original code is looked up for each patch
def _oddities(text: str) -> _Oddities | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    idle, shapes = Counter(_idle(tree)), Counter(_shapes(tree))
    return _Oddities(_unread(tree), _recursive(tree), _literals(tree), idle, _silent(tree), shapes)


def _tokens(before: str, after: str) -> tuple[int, int, int]:
    """Return the numbers of tokens removed, added and moved; a level of indentation is one token."""
    old, new = _words(before), _words(after)
    same = next(
        (at for at, (old_word, new_word) in enumerate(zip(old, new, strict=False)) if old_word != new_word), 0
    )
    old, new = old[same:], new[same:]  # skip the common beginning
    removed, added = Counter[str](), Counter[str]()
    for kind, low, high, other_low, other_high in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if kind != "equal":
            removed.update(old[low:high])
            added.update(new[other_low:other_high])
    moved = (removed & added).total()
    return removed.total() - moved, added.total() - moved, moved


@functools.lru_cache(maxsize=64)
def _words(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [
        token.string.strip() or tokenize.tok_name[token.type]
        for token in tokens
        if token.type not in _NO_TOKENS
    ]


def _unread(tree: ast.Module) -> set[tuple[str, str]]:
    """Return the parameters and variables of functions that nothing in them reads."""
    unread = set()
    for function in ast.walk(tree):
        if not isinstance(function, Function | ast.Lambda):
            continue
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        bound |= {arg.arg for arg in function.args.args}
        read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        unread |= {(getattr(function, "name", ""), name) for name in bound - read if not name.startswith("_")}
    return unread


def _recursive(tree: ast.Module) -> set[str]:
    return {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, Function)
        and any(isinstance(node, ast.Name) and node.id == function.name for node in ast.walk(function))
    }


def _silent(tree: ast.Module) -> set[str]:
    """Return the functions that return a value on one path and end without one on another."""
    return {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, Function)
        and not _leaves(function.body)
        and any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))
        and not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    }


def _leaves(block: list[ast.stmt]) -> bool:
    """Return whether the end of a block is never reached, judged by its last statement."""
    last = block[-1] if block else ast.Pass()
    match last:
        case ast.Return() | ast.Raise():
            return True
        case ast.If():
            return _leaves(last.body) and _leaves(last.orelse)
        case ast.With():
            return _leaves(last.body)
        case ast.Try():
            return _leaves(last.finalbody) or (
                _leaves(last.orelse or last.body) and all(_leaves(handler.body) for handler in last.handlers)
            )
        case ast.While(test=ast.Constant(value=True)):
            return not any(isinstance(node, ast.Break) for node in ast.walk(last))
        case ast.Match():
            return all(_leaves(case.body) for case in last.cases)
        case _:
            return False


def _shapes(tree: ast.Module) -> Iterator[str]:
    """Yield the longer expressions and assignments with their names left out."""
    for node in ast.walk(tree):
        if isinstance(node, _SHAPED):
            shape = dump_without_names(node)
            if len(shape) > _SHAPE_LEAST_CHARS:
                yield shape


def _literals(tree: ast.Module) -> set[tuple[str, object]]:
    return {
        (type(node.value).__name__, node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)
    }


def _foreign(old: set[tuple[str, object]], new: set[tuple[str, object]]) -> Iterator[float]:
    """Yield for each new literal how odd it is."""
    numbers = {abs(value) for _, value in old if isinstance(value, int | float)}
    for kind, value in new - old:
        if kind in ("int", "float"):
            near = any(value in (number + 1, number - 1) for number in numbers)
            yield 0.0 if value in USUAL else 0.4 if near else 1.0
        elif kind in ("str", "bytes") and value:
            yield 0.5


def _idle(tree: ast.Module) -> Iterator[str]:
    """Yield expressions and statements without an effect, or with a constant result."""
    followed = set(_followed(tree))
    for node in ast.walk(tree):
        if (
            (isinstance(node, ast.BinOp) and _idle_sum(node))
            or (isinstance(node, ast.Compare) and _idle_question(node))
            or (isinstance(node, ast.BoolOp) and (_repeats(node.values) or _idle_bounds(node)))
            or (isinstance(node, ast.For) and _changes_its_own(node))
            or (isinstance(node, ast.For | ast.While) and _never_repeats(node))
            or (isinstance(node, ast.IfExp) and ast.dump(node.body) == ast.dump(node.orelse))
            or (isinstance(node, ast.Call) and _idle_call(node))
            or (
                isinstance(node, ast.Tuple)
                and _repeats([e for e in node.elts if not isinstance(e, ast.Constant)])
            )
            or (isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Constant))
            or (isinstance(node, ast.Assign | ast.AugAssign) and _idle_assignment(node))
            or (isinstance(node, ast.Return | ast.Break | ast.Continue) and node in followed)
        ):
            yield ast.dump(node)


def _idle_sum(node: ast.BinOp) -> bool:
    left_operand, right = node.left, node.right
    if isinstance(node.op, _SAME_ON_BOTH_SIDES) and ast.dump(left_operand) == ast.dump(right):
        return True
    if not isinstance(right, ast.Constant):
        return False
    if isinstance(left_operand, ast.Constant) and not isinstance(node.op, ast.Mult | ast.Pow):
        return True
    nothing = (0,) if isinstance(node.op, ast.Add | ast.Sub) else (0, 1)
    return right.value in nothing and type(right.value) is int and not isinstance(node.op, ast.LShift)


def _idle_question(node: ast.Compare) -> bool:
    if len(node.ops) != 1:
        return False
    left_operand, right, sign = node.left, node.comparators[0], node.ops[0]
    if ast.dump(left_operand) == ast.dump(right) or (
        isinstance(left_operand, ast.Constant) and isinstance(right, ast.Constant)
    ):
        return True
    never_negative = (isinstance(left_operand, ast.BinOp) and isinstance(left_operand.op, ast.Mod)) or (
        isinstance(left_operand, ast.Call)
        and isinstance(left_operand.func, ast.Name)
        and left_operand.func.id in ("len", "abs")
    )
    zero = isinstance(right, ast.Constant) and right.value == 0
    return never_negative and zero and isinstance(sign, ast.GtE | ast.Lt)


def _idle_bounds(node: ast.BoolOp) -> bool:
    """Return whether two comparisons of one value are contradictory, always true or redundant.

    Examples: `a < 3 and a > 12`, `a < 3 and not a > 12`. For bounds that are not numbers, two in one direction count.
    """
    bounds: dict[str, list[tuple[type[ast.cmpop], float | None]]] = {}
    for part in node.values:
        match part:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _HOLDS:
                sign = type(op)
            case ast.UnaryOp(op=ast.Not(), operand=ast.Compare(left=left, ops=[op], comparators=[right])) if (
                type(op) in _HOLDS
            ):
                sign = _OPPOSITES[type(op)]
            case _:
                continue
        bounds.setdefault(ast.dump(left), []).append((sign, _number(right)))
    meets = all if isinstance(node.op, ast.And) else any
    for of in bounds.values():
        numeric_bounds = [(sign, at) for sign, at in of if at is not None]
        if len(numeric_bounds) < len(of):
            directions = [_DIRECTIONS[sign] for sign, _ in of if sign in _DIRECTIONS]
            if len(set(directions)) < len(directions):
                return True
        places = [at + by for _, at in numeric_bounds for by in (-0.5, 0.0, 0.5)]
        one_by_one = [[_HOLDS[sign](place, at) for place in places] for sign, at in numeric_bounds]
        whole = [meets(answers) for answers in zip(*one_by_one, strict=True)]
        if len(numeric_bounds) > 1 and (len(set(whole)) == 1 or whole in one_by_one):
            return True
    return False


def _number(node: ast.expr) -> float | None:
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    number = value.value if isinstance(value, ast.Constant) else None
    return sign * number if isinstance(number, int | float) and not isinstance(number, bool) else None


def _changes_its_own(node: ast.For) -> bool:
    """Return whether a loop removes from what it iterates over, or adds to it."""
    if not isinstance(node.iter, ast.Name):
        return False
    for part in ast.walk(node):
        match part:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="remove" | "pop" | "append" | "insert")
            ):
                if name == node.iter.id:
                    return True
            case ast.Delete(targets=[ast.Subscript(value=ast.Name(id=name))]) if name == node.iter.id:
                return True
    return False


def _never_repeats(node: ast.For | ast.While) -> bool:
    """Return whether a loop is always left on its first iteration."""
    is_exit = isinstance(node.body[-1], ast.Return | ast.Break | ast.Raise)
    return is_exit and not any(isinstance(part, ast.Continue) for part in ast.walk(node))


def _idle_call(node: ast.Call) -> bool:
    """Return whether a call is a `min` or `max` of equal arguments, or a type called without any."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in ("min", "max"):
        return _repeats(node.args)
    return name in ("int", "float", "bool", "str") and not node.args


def _idle_assignment(node: ast.Assign | ast.AugAssign) -> bool:
    if isinstance(node, ast.AugAssign):
        nothing = isinstance(node.value, ast.Constant) and node.value.value == 0
        return nothing or ast.unparse(node.target) == ast.unparse(node.value)
    return len(node.targets) == 1 and ast.unparse(node.targets[0]) == ast.unparse(node.value)


def _repeats(nodes: list[ast.expr]) -> bool:
    return len({ast.dump(node) for node in nodes}) < len(nodes)


def _followed(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that are not the last of their block."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield from block[:-1]
