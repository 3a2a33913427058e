"""Examples in docstrings, as data.

`>>> double(4)` and the line `8` below it are read as the standard library's `doctest` reads them. A line that shows a
literal becomes a value, so that it is compared as values are; a traceback becomes the name of the exception; anything
else is compared as text, through `repr`. Examples that depend on the text of an output (an ellipsis, lines that a loop
prints) are left out, because a wrong example is worse than none. Nothing is run here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from healkit.contracts.encoding import is_plain, to_jsonable
from healkit.pysource.nodes import Function
from healkit.pysource.shapes import Shape

if TYPE_CHECKING:
    import doctest

_NOT_A_LITERAL = object()


def examples_in(tree: ast.Module, shape: Shape) -> list[dict[str, Any]]:
    """Return the examples in the docstring of a tool's entry, in the form of `contracts.vault.checked_examples`."""
    prints = _prints(tree)
    found: list[dict[str, Any]] = []
    for text in _docstrings(tree, shape):
        if ">>>" in text:
            found += _Reader(tree, shape, prints).read(text)
    return found


def _docstrings(tree: ast.Module, shape: Shape) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and node.name == shape.entry:
            yield ast.get_docstring(node) or ""
            inner = node.body if isinstance(node, ast.ClassDef) else []
            yield from (
                ast.get_docstring(n) or "" for n in inner if isinstance(n, Function) and n.name == "run"
            )


class _Reader:
    """Reader of a docstring, line by line; later lines may need what earlier ones assign."""

    def __init__(self, tree: ast.Module, shape: Shape, prints: bool) -> None:
        functions = (node for node in tree.body if isinstance(node, Function) and node.name == shape.entry)
        self.entry = shape.entry
        self.function = None if shape.takes_dict else next(functions, None)
        self.prints = prints
        self.before: list[str] = []

    def read(self, text: str) -> list[dict[str, Any]]:
        """Return the examples of a docstring; none if `doctest` cannot read it."""
        import doctest  # slow to load, and few docstrings need it

        try:
            lines = doctest.DocTestParser().get_examples(text)
            bodies = [ast.parse(line.source).body for line in lines]
        except (ValueError, SyntaxError):
            return []
        found: list[dict[str, Any]] = []
        for line, body in zip(lines, bodies, strict=True):
            if not body or line.options.get(doctest.SKIP):
                continue
            example = self._example(line, body)
            if example is not None:
                found.append(example)
            # A plain expression leaves nothing behind that a later line could need.
            if line.exc_msg is None and (self.before or not isinstance(body[-1], ast.Expr)):
                self.before.append(ast.unparse(ast.Module(body, [])))
        return found

    def _example(self, line: doctest.Example, body: list[ast.stmt]) -> dict[str, Any] | None:
        if not self._calls_the_tool(body):
            return None
        last = body[-1]
        if line.exc_msg is not None:
            name = line.exc_msg.partition(":")[0].strip()
            known = all(part.isidentifier() for part in name.split("."))
            return {**self._call(body, last), "raises": name} if known else None
        if not isinstance(last, ast.Expr) or len(body) > 1:
            return None
        if not line.want:
            return {**self._call(body, last), "result": None}
        return self._shown(last.value, line.want.rstrip("\n"), exact=not any(line.options.values()))

    def _shown(self, value: ast.expr, want: str, *, exact: bool) -> dict[str, Any] | None:
        """Return an example of an expression and the text below it; exact: the text is the whole output."""
        if (printed := _printed(value)) is not None:
            text = want.replace("<BLANKLINE>", "")
            return {**self._wrapped("str", printed), "result": text} if exact else None
        if _prints(value):
            return None
        literal = _literal(want)
        if literal is not _NOT_A_LITERAL:
            plain, notes = to_jsonable(literal)
            if not notes:
                return {**self._call([ast.Expr(value)], ast.Expr(value)), "result": plain}
            same = ast.Compare(value, [ast.Eq()], [ast.parse(want.strip(), mode="eval").body])
            return {**self._call([ast.Expr(same)], None), "result": True}
        if not exact or self.prints:
            return None
        return {**self._wrapped("repr", value), "result": want}

    def _wrapped(self, function: str, value: ast.expr) -> dict[str, Any]:
        call = ast.Call(ast.Name(function, ast.Load()), [value], [])
        return self._call([ast.Expr(call)], None)

    def _call(self, body: list[ast.stmt], last: ast.stmt | None) -> dict[str, Any]:
        """Return the arguments of a plain call, which tell more than source; else the source to run."""
        if not self.before and len(body) == 1 and isinstance(last, ast.Expr):
            arguments = self._arguments(last.value)
            if arguments is not None:
                return {"arguments": arguments}
        source = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
        return {"call": "\n".join([*self.before, source])}

    def _arguments(self, value: ast.expr) -> dict[str, Any] | None:
        """Return the arguments by name of a call of the entry with literals; None for anything else."""
        if self.function is None or not isinstance(value, ast.Call) or not _is_name(value.func, self.entry):
            return None
        known = self.function.args
        names = [argument.arg for argument in (*known.posonlyargs, *known.args)]
        if len(value.args) > len(names):
            return None
        given = list(zip(names, value.args, strict=False))
        by_name = {*names[len(known.posonlyargs) :], *(argument.arg for argument in known.kwonlyargs)}
        for keyword in value.keywords:
            if keyword.arg not in by_name or keyword.arg in dict(given):
                return None
            given.append((str(keyword.arg), keyword.value))
        found = {name: _literal(ast.unparse(node)) for name, node in given}
        return found if all(is_plain(argument) for argument in found.values()) else None

    def _calls_the_tool(self, body: list[ast.stmt]) -> bool:
        """Return whether the tool is named here, or in lines before that this one may use."""
        text = "\n".join([*self.before, ast.unparse(ast.Module(body, []))])
        return any(_is_name(node, self.entry) for node in ast.walk(ast.parse(text)))


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _prints(node: ast.AST) -> bool:
    return any(_is_name(inner, "print") for inner in ast.walk(node))


def _printed(value: ast.expr) -> ast.expr | None:
    """Return what a `print(…)` of one value prints."""
    if not isinstance(value, ast.Call) or not _is_name(value.func, "print"):
        return None
    plain = len(value.args) == 1 and not value.keywords and not isinstance(value.args[0], ast.Starred)
    return value.args[0] if plain else None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _NOT_A_LITERAL
