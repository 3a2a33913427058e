"""Search for the nearest text that Python can read.

A change adds, removes or replaces a few characters where Python stops. If Python then reads further, another change is
tried there, up to three in all; otherwise the change is dropped. The compiler alone decides what Python can read. Of
the texts found, the cheaper and the less odd ones come first.
"""

from __future__ import annotations

import ast
import heapq
import itertools
import time
import warnings
from collections.abc import Callable, Container, Iterable, Iterator
from typing import NamedTuple

from healkit.core.contracts.patches import apply_edits
from healkit.core.pysource.nodes import Function, Jump, bound_names, own_nodes, unknown_names
from healkit.errors import near_misses
from healkit.parts.explain.catalogue import spared
from healkit.parts.explain.known_names import import_for
from healkit.parts.explain.source import Source
from healkit.parts.explain.syntax_repair import changes, delimiters, readings
from healkit.parts.explain.syntax_repair.draft import (
    KEYWORDS,
    CompilerMessage,
    Draft,
    Repair,
    code_tokens,
    compiler_message,
)

CHANGES_MAX = 3
_SECONDS_MAX = 2.0
_TRIALS_MAX = 4000
#: How much more than the cheapest text another may cost and still be tried.
_SLACK = 0.75
#: Expressions that have no effect as a statement.
_IDLE = (ast.Name, ast.Compare, ast.BinOp, ast.Tuple, ast.Subscript, ast.UnaryOp, ast.List, ast.Attribute, ast.BoolOp,
         ast.IfExp, ast.Set, ast.Dict, ast.Lambda, ast.GeneratorExp)  # fmt: skip
_NO_FUNCTION = (
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Compare,
    ast.BinOp,
    ast.JoinedStr,
    ast.Set,
    ast.ListComp,
)
#: Functions that rarely get a condition as an argument.
_PLAIN_ARGUMENTS = frozenset(("len", "range", "int", "float", "abs", "open", "isinstance", "min", "max"))


#: Messages about tokens that Python reports before any other mistake, wherever they are.
_REPORTED_FIRST = ("unterminated", "was never closed")


class Readable(NamedTuple):
    """A text that compiles, its distance from the draft, and what was done, in order."""

    text: str
    cost: float
    done: tuple[str, ...]


class _Open(NamedTuple):
    cost: float
    number: int
    text: str
    stop: CompilerMessage
    done: tuple[str, ...]
    depth: int


def nearest(code: str, limit: int = 10) -> list[Readable]:
    """Return texts near a draft that compile, likeliest first; empty if none was found in time."""
    judged: list[tuple[float, int, Readable, str]] = []
    for number, item in enumerate(_found(code)):
        odd, tree = oddness(item.text, code)
        judged.append((item.cost + odd, number, item, ast.dump(tree)))
    distinct: dict[str, Readable] = {}
    for cost, _, item, dump in sorted(judged):
        distinct.setdefault(dump, item._replace(cost=cost))
    return list(distinct.values())[:limit]


def _found(code: str) -> Iterator[Readable]:
    until = time.monotonic() + _SECONDS_MAX
    numbers = itertools.count()
    visited = {code}
    best = float("inf")
    queue: list[_Open] = []
    for start in _starts(code):
        visited.add(start.text)
        stop = compiler_message(start.text)
        if stop is None:
            best = min(best, start.cost)
            yield start
        else:
            heapq.heappush(queue, _Open(start.cost, next(numbers), start.text, stop, start.done, 0))
    trials = 0
    while queue and trials < _TRIALS_MAX and time.monotonic() < until:
        node = heapq.heappop(queue)
        if node.cost > best + _SLACK:
            return
        draft = Draft(node.text, node.stop)
        for change in sorted(_changes(draft), key=lambda change: change.cost):
            cost = node.cost + change.cost
            if (
                cost > best + _SLACK
                or trials >= _TRIALS_MAX
                or (not trials % 16 and time.monotonic() > until)
            ):
                break
            if change.text in visited:
                continue
            visited.add(change.text)
            trials += 1
            stop = compiler_message(change.text)
            done = (*node.done, change.done)
            if stop is None:
                best = min(best, cost)
                yield Readable(change.text, cost, done)
            elif node.depth + 1 < CHANGES_MAX and _further(change.text, stop, draft):
                heapq.heappush(queue, _Open(cost, next(numbers), change.text, stop, done, node.depth + 1))


def _further(text: str, stop: CompilerMessage, before: Draft) -> bool:
    """Return whether Python now reads further, or has one mistake fewer to report.

    An unclosed bracket is reported where it was opened. An unterminated string or an unclosed bracket anywhere below is
    reported before a mistake of another kind, so the next message may be about a line further up.
    """
    after = Draft(text, stop)
    if any(part in before.message and part not in stop.message for part in _REPORTED_FIRST):
        return True
    if "never closed" in stop.message and "never closed" not in before.message:
        return after.left[0] < before.left[0]
    return after.left < before.left


def _starts(code: str) -> Iterator[Readable]:
    """Yield the draft, and the draft without what is around the code, in Python's words, or both."""
    yield Readable(code, 0.0, ())
    plain, done, cost = code, [], 0.0
    for _ in range(4):
        reading = next(iter(readings.readings(plain)), None)
        if reading is None:
            break
        plain, cost = reading[0], cost + 0.1
        done.append(reading[1])
        yield Readable(plain, 0.2 + cost, tuple(done))
    yield from _in_python(code, 0.0, ())
    if done:
        yield from _in_python(plain, 0.2 + cost, tuple(done))


def _in_python(text: str, cost: float, done: tuple[str, ...]) -> Iterator[Readable]:
    """Yield the text with all habits of other languages rewritten at once, if there are several."""
    habits: dict[str, None] = {}
    for row in (row for _ in range(2) for row in readings.REWRITES if row.cost <= 0.5):
        splices = readings.matches(row, text)
        if splices:
            text = readings.spliced(text, splices)
            habits[row.name] = None
    if len(habits) > 1:
        yield Readable(
            text, cost + 0.3 * len(habits), (*done, "what is another language's is written as in Python")
        )


def _changes(draft: Draft) -> Iterable[Repair]:
    for kind in _KINDS_OF_CHANGES:
        yield from spared(_from(kind, draft), kind.__qualname__)


def _from(kind: Callable[[Draft], Iterable[Repair]], draft: Draft) -> Iterator[Repair]:
    # Called inside of the iterator, so that `spared` sees what the call itself raises.
    yield from kind(draft)


def _rewritten(draft: Draft) -> Iterator[Repair]:
    """Yield rewrites of other languages' habits: everywhere, and near the compiler's stop only."""
    for row, splices in readings.rewrites(draft.text):
        done = f"what is written as in another language (`{row.name}`) is written as in Python"
        near = any(abs(draft.where(start) - draft.line) <= 1 for start, _, _ in splices)
        yield Repair(readings.spliced(draft.text, splices), row.cost + (0 if near else 0.5), done)
        if len(splices) > 1:
            here = [splice for splice in splices if draft.where(splice[0]) == draft.line]
            if here:
                yield Repair(readings.spliced(draft.text, here), row.cost + 0.1, done)


#: In the order in which equally likely changes are tried.
_KINDS_OF_CHANGES: tuple[Callable[[Draft], Iterable[Repair]], ...] = (
    _rewritten,
    changes.hinted_changes,
    changes.indent_changes,
    delimiters.bracket_changes,
    delimiters.quote_changes,
    changes.token_changes,
)


def repairs(code: str, limit: int = 10, known: Container[str] = ()) -> list[tuple[str, str, float]]:
    """Return texts near a draft that compile: the code, what was done, and a rank of 0 to 1; best first.

    A text that uses well-known names without importing them comes with the imports first, then without. known: names
    that are there already, such as a notebook's.
    """
    ranked_texts = []
    for item in nearest(code, limit):
        rank = max(0.05, 0.95 - 0.15 * item.cost)
        done = ", and ".join(item.done)
        sentence = f"Python can read it now: {done}."
        tree = oddness(item.text)[1]
        unknown = (name for name in unknown_names(tree) if name not in known)
        lines = [line for name in unknown if (line := import_for(name)) is not None]
        if lines:
            source = Source(item.text, tree)
            imports = source.add_import(source.newline.join(lines))
            ranked_texts.append(
                (apply_edits(item.text, imports), f"{sentence[:-1]}, and what it uses is imported.", rank)
            )
        ranked_texts.append((item.text, sentence, rank - 0.01 * bool(lines)))
    return ranked_texts


def oddness(text: str, draft: str = "") -> tuple[float, ast.Module]:
    """Sum up what in a text is hardly meant, and return the sum with the tree; the text must parse.

    An unknown name counts little if the draft has it too: the code around the draft is not known.
    """
    there = {token.text for token in code_tokens(draft)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    odd = 0.0
    for name in unknown_names(tree):
        odd += 0.6 if name not in there else 0.4 if near_misses(name, KEYWORDS, 1) else 0.1
    odd += 0.4 * len(_left_behind(tree))
    for node in ast.walk(tree):
        odd += _odd_expression(node) if isinstance(node, ast.expr) else _odd_statement(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                odd += _odd_block(block, isinstance(node, ast.Module))
    return odd, tree


def _left_behind(tree: ast.Module) -> set[str]:
    """Return names that only functions bind and the module's own lines read: those belong in a function."""
    inside = {name for node in ast.walk(tree) if isinstance(node, Function) for name in bound_names(node)}
    read = {n.id for n in own_nodes(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return (read & inside) - bound_names(tree).keys()


def _odd_expression(node: ast.expr) -> float:
    match node:
        case ast.Call(func=func, args=args):
            inner = sum(isinstance(a, ast.BoolOp | ast.Compare) for a in args)
            is_plain_call = isinstance(func, ast.Name) and func.id in _PLAIN_ARGUMENTS
            return isinstance(func, _NO_FUNCTION) * 1.0 + inner * (0.4 if is_plain_call else 0.05)
        case ast.Subscript(value=ast.Constant() | ast.Set() | ast.Compare()):
            return 0.6
        case ast.Subscript(value=ast.List(), slice=ast.Tuple()):
            return 0.8
        case ast.Set(elts=elts) if any(isinstance(e, ast.Dict | ast.List | ast.Set) for e in elts):
            return 0.6
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.In(), _, *_]):
            return 0.25
        case ast.Compare(left=ast.Lambda()):
            return 0.8
        case ast.Compare(comparators=[*rest]) if any(isinstance(c, ast.Lambda) for c in rest):
            return 0.6
        case ast.Tuple(elts=elts) if any(isinstance(e, ast.Compare | ast.BoolOp) for e in elts):
            return 0.15
    return 0.0


def _odd_statement(node: ast.AST) -> float:
    match node:
        case ast.AnnAssign(annotation=annotation, value=value):
            plain = isinstance(
                annotation, ast.Name | ast.Subscript | ast.Attribute | ast.Constant | ast.BinOp
            )
            return (0.0 if plain else 0.8) + (0.4 if value is None else 0.0)
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=name)) if target == name:
            return 0.5
        case ast.For(body=[_, *_, ast.Return()]) | ast.While(body=[_, *_, ast.Return()]):
            return 0.3
        case ast.For(target=ast.Name(id=target), iter=ast.Name(id=name)) if target == name:
            return 0.6
        case ast.If(test=ast.Lambda()) | ast.While(test=ast.Lambda()):
            return 0.8
        case ast.FunctionDef(returns=returns, body=body) if returns is not None:
            nothing = isinstance(returns, ast.Constant) and returns.value is None
            idle = len(body) == 1 and isinstance(body[0], ast.Expr | ast.Pass)
            return 0.0 if nothing or idle or any(map(_gives, own_nodes(node))) else 0.5
    return 0.0


def _gives(node: ast.AST) -> bool:
    """Return whether a node gives a function a value, or raises."""
    return isinstance(node, ast.Yield | ast.YieldFrom | ast.Raise) or (
        isinstance(node, ast.Return) and node.value is not None
    )


def _odd_block(block: list[ast.stmt], module: bool) -> float:
    """Count lines that do nothing, and lines that are never reached."""
    odd = 0.0
    for place, stmt in enumerate(block):
        if place and isinstance(block[place - 1], Jump):
            odd += 0.7
        if isinstance(stmt, ast.Expr):
            value = stmt.value
            if isinstance(value, _IDLE):
                odd += 0.6
            elif (
                isinstance(value, ast.Constant)
                and value.value is not ...
                and (place or not isinstance(value.value, str))
            ):
                odd += 0.5
        if module and isinstance(stmt, Function) and stmt.args.args and stmt.args.args[0].arg == "self":
            odd += 0.5
        if isinstance(stmt, ast.FunctionDef) and place and isinstance(block[place - 1], ast.Return):
            odd += 0.2
    return odd
