"""Oddness of a text that compiles.

Of many texts that compile, the one that a person would have written is the likeliest.
"""

from __future__ import annotations

import ast
import warnings

from healkit.errors import near_misses
from healkit.failures.syntax_repair.draft import KEYWORDS, code_tokens
from healkit.pysource.nodes import Function, own_nodes
from healkit.pysource.scope import bound_names, unknown_names

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
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


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
        odd += _odd(node)
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


def _odd(node: ast.AST) -> float:
    return _odd_expression(node) if isinstance(node, ast.expr) else _odd_statement(node)


def _odd_expression(node: ast.expr) -> float:
    match node:
        case ast.Call(func=func, args=args):
            inner = sum(isinstance(a, ast.BoolOp | ast.Compare) for a in args)
            known = isinstance(func, ast.Name) and func.id in _PLAIN_ARGUMENTS
            return isinstance(func, _NO_FUNCTION) * 1.0 + inner * (0.4 if known else 0.05)
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
        if place and isinstance(block[place - 1], _LEAVES):
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
