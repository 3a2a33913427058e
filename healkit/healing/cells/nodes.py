"""Small questions to nodes of a syntax tree."""

from __future__ import annotations

import ast

_TEXT_MAX_CHARS = 60


def short(node: ast.AST) -> str:
    """The code of a node on one line, cut."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _TEXT_MAX_CHARS else text[: _TEXT_MAX_CHARS - 1] + "…"


def names_in(node: ast.AST) -> set[str]:
    """The names that a piece of code mentions."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def root(node: ast.expr) -> str | None:
    """`df` for `df.loc[0].x`."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def in_globals(node: ast.expr) -> str | None:
    """`x` for `globals()["x"]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    name = node.slice.value
    return name if isinstance(name, str) and short(node.value) in {"globals()", "locals()"} else None


def is_true(test: ast.expr) -> bool:
    """Whether a condition always holds in a notebook."""
    return short(test) in {"True", "1", "__name__ == '__main__'"}


def leaves(body: list[ast.stmt]) -> bool:
    """Whether statements never come out at their end."""
    return bool(body) and isinstance(body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)
