"""Shapes of tools: entry, schema, examples in docstrings.

A tool is one of the following:

1. a class that derives from `Tool` (or from anything named `…Tool`) and defines `run`, or the only class with
   `run(arguments)`, whatever its base;
2. a function: `run`, or one named like the tool, or the only public one;
3. a script of the older kind, which reads `arguments` and sets `result`.

The code is read, never run. The host reads the shape to refuse code that cannot run, and to derive an input schema. The
worker reads it again to know what to call. Both use this module, so they always agree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from healkit.core.pysource.nodes import Function, bound_names, parameters
from healkit.core.wire.encoding import is_plain, to_jsonable
from healkit.errors import CodeDoesNotParse, ToolShapeError

if TYPE_CHECKING:
    import doctest


Kind = Literal["class", "function", "script"]


class Shape(msgspec.Struct, frozen=True):
    """Entry point of a tool: the class or function `entry` ("" for a script), and how it takes its arguments."""

    kind: Kind
    entry: str = ""
    #: A function whose only parameter is named `arguments` gets the whole dict, like a class's `run`.
    takes_dict: bool = False


def parse(code: str, filename: str) -> ast.Module:
    """Return the syntax tree; raise `CodeDoesNotParse` with the line, the column and a caret at the error."""
    try:
        return ast.parse(code, filename=filename)
    except SyntaxError as error:
        lineno, offset = error.lineno or 1, error.offset or 1
        line = (error.text or "").rstrip("\n")
        caret = f"\n    {line}\n    {' ' * (offset - 1)}^" if line else ""
        raise CodeDoesNotParse(
            f"{filename}, line {lineno}, column {offset}: {error.msg}{caret}",
            hint="\nCorrect it, or save it as a draft (draft=True) to keep it without running it.",
            lineno=lineno,
            offset=offset,
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes; nesting too deep for the parser
        raise CodeDoesNotParse(f"{filename}: {error}", hint="Correct it and save it again.") from None


def read_shape(tree: ast.Module, tool_name: str) -> Shape:
    """Return the shape of the code; raise `ToolShapeError` if it is not a tool."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _is_tool_class(node):
            return Shape("class", node.name, takes_dict=True)
    functions = {node.name: node for node in tree.body if isinstance(node, Function)}
    for name in ("run", tool_name):
        if name in functions:
            return Shape("function", name, _takes_dict(functions[name]))
    if is_script(tree):
        return Shape("script")
    runs = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and _runs_arguments(node)]
    if len(runs) == 1:
        return Shape("class", runs[0], takes_dict=True)
    public = [name for name in functions if not name.startswith("_")]
    if len(public) == 1:
        return Shape("function", public[0], _takes_dict(functions[public[0]]))
    if len(runs) > 1:
        message = (
            f"{tool_name!r} defines several tools: the classes {', '.join(runs)} all have run(arguments)."
        )
    elif public:
        message = f"{tool_name!r} defines no function to call: it has the functions {', '.join(public)}"
        message += f", but not one named 'run' or {tool_name!r}."
    else:
        message = f"{tool_name!r} defines no function to call."
    raise ToolShapeError(
        message,
        hint=f"Define `def {tool_name}(…)`, a class deriving from Tool with run(arguments), or set `result`.",
    )


def input_schema(tree: ast.Module, shape: Shape) -> dict[str, Any]:
    """Return a JSON Schema of the arguments, from the entry function's signature.

    Annotations with a JSON type become that type; all others allow any value. A class, a script, or a function that
    takes the dict accepts any object.
    """
    function = next((n for n in tree.body if isinstance(n, Function) and n.name == shape.entry), None)
    if function is None or shape.takes_dict:
        return {"type": "object"}
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults)) + list(
        arguments.defaults
    )
    named, defaults = named + arguments.kwonlyargs, defaults + arguments.kw_defaults
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            a.arg: _with_default(_annotation_schema(a.annotation), d)
            for a, d in zip(named, defaults, strict=True)
        },
        "additionalProperties": arguments.kwarg is not None,
    }
    required = [a.arg for a, default in zip(named, defaults, strict=True) if default is None]
    return {**schema, "required": required} if required else schema


def docstring(tree: ast.Module, shape: Shape) -> str:
    """Return the first paragraph of the entry's docstring, or of the module's, as one line."""
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and node.name == shape.entry and ast.get_docstring(node):
            text = ast.get_docstring(node) or ""
            break
    else:
        text = ast.get_docstring(tree) or ""
    return " ".join(text.split("\n\n")[0].split())


def is_script(tree: ast.Module) -> bool:
    """Return whether a module sets `result`, like a tool of the older kind."""
    return "result" in bound_names(tree, "variable", "comprehension")


def _is_tool_class(node: ast.ClassDef) -> bool:
    defines_run = any(isinstance(item, Function) and item.name == "run" for item in node.body)
    bases = [base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases]
    return defines_run and any(base.endswith("Tool") for base in bases)


def _runs_arguments(node: ast.ClassDef) -> bool:
    """Return whether the class defines `run(self, arguments)`; an abstract method does not count."""
    for item in node.body:
        if isinstance(item, Function) and item.name == "run":
            named = [arg.arg for arg in parameters(item)]
            abstract = any("abstractmethod" in ast.unparse(mark) for mark in item.decorator_list)
            return named[-1:] == ["arguments"] and len(named) <= 2 and not abstract
    return False


def _takes_dict(function: Function) -> bool:
    named = [arg for arg in parameters(function) if arg is not function.args.vararg]
    return [arg.arg for arg in named] == ["arguments"] and function.args.kwarg is None


_SIMPLE = {"int": "integer", "float": "number", "str": "string", "bool": "boolean", "None": "null"}
_SIMPLE |= {"list": "array", "tuple": "array", "dict": "object", "List": "array", "Dict": "object"}


def _annotation_schema(node: ast.expr | None) -> dict[str, Any]:
    """Return the schema of one annotation; an empty schema (any value) if JSON has no such type."""
    match node:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str() as quoted):
            try:
                return _annotation_schema(ast.parse(quoted, mode="eval").body)
            except SyntaxError:
                return {}
        case ast.Name(id=name) | ast.Attribute(attr=name):
            if name == "DataFrame":
                return {"type": "object", "format": "dataframe"}
            return {"type": _SIMPLE[name]} if name in _SIMPLE else {}
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([_annotation_schema(left), _annotation_schema(right)])
        case ast.Subscript(value=base, slice=inside):
            return _subscript_schema(_annotation_schema(base), base, inside)
    return {}


def _subscript_schema(outer: dict[str, Any], base: ast.expr, inside: ast.expr) -> dict[str, Any]:
    name = base.id if isinstance(base, ast.Name) else getattr(base, "attr", "")
    items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if name == "Literal":
        return {"enum": [item.value for item in items if isinstance(item, ast.Constant)]}
    if name == "Optional":
        return _any_of([_annotation_schema(inside), {"type": "null"}])
    if name == "Union":
        return _any_of([_annotation_schema(item) for item in items])
    if name in {"list", "List"} and (item_schema := _annotation_schema(inside)):
        return {**outer, "items": item_schema}
    return outer


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return {} if {} in schemas else {"anyOf": schemas}


def _with_default(schema: dict[str, Any], default: ast.expr | None) -> dict[str, Any]:
    """Return the schema with its default; a default of None also allows None."""
    if not isinstance(default, ast.Constant) or not isinstance(
        default.value, int | float | str | bool | None
    ):
        return schema
    if default.value is None and schema:
        schema = _any_of([schema, {"type": "null"}])
    return {**schema, "default": default.value}


# Examples in docstrings, as data
#
# `>>> double(4)` and the line `8` below it are read in the same way as by the standard library's `doctest`. A literal
# becomes a value, so that it is compared as a value. A traceback becomes the name of the exception. Any other output is
# compared as text, through `repr`. Examples that depend on the text of an output (an ellipsis, lines printed by a loop)
# are left out, because a wrong example is worse than none.


_NOT_A_LITERAL = object()


def examples_in(tree: ast.Module, shape: Shape) -> list[dict[str, Any]]:
    """Return the examples in the docstring of a tool's entry, in the form of `contracts.vault`."""
    prints = _prints(tree)
    examples: list[dict[str, Any]] = []
    for text in _docstrings(tree, shape):
        if ">>>" in text:
            examples += _Reader(tree, shape, prints).read(text)
    return examples


def _docstrings(tree: ast.Module, shape: Shape) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and node.name == shape.entry:
            yield ast.get_docstring(node) or ""
            inner = node.body if isinstance(node, ast.ClassDef) else []
            yield from (
                ast.get_docstring(n) or "" for n in inner if isinstance(n, Function) and n.name == "run"
            )


class _Reader:
    """Reader of a docstring, line by line; a line may need what earlier lines assign."""

    def __init__(self, tree: ast.Module, shape: Shape, prints: bool) -> None:
        functions = (node for node in tree.body if isinstance(node, Function) and node.name == shape.entry)
        self.entry = shape.entry
        self.function = None if shape.takes_dict else next(functions, None)
        self.prints = prints
        self.before: list[str] = []

    def read(self, text: str) -> list[dict[str, Any]]:
        """Return the examples of a docstring; an empty list if `doctest` cannot read it."""
        import doctest  # slow to import, and few docstrings need it

        try:
            lines = doctest.DocTestParser().get_examples(text)
            bodies = [ast.parse(line.source).body for line in lines]
        except (ValueError, SyntaxError):
            return []
        examples: list[dict[str, Any]] = []
        for line, body in zip(lines, bodies, strict=True):
            if not body or line.options.get(doctest.SKIP):
                continue
            example = self._example(line, body)
            if example is not None:
                examples.append(example)
            # A plain expression has no effect on later lines.
            if line.exc_msg is None and (self.before or not isinstance(body[-1], ast.Expr)):
                self.before.append(ast.unparse(ast.Module(body, [])))
        return examples

    def _example(self, line: doctest.Example, body: list[ast.stmt]) -> dict[str, Any] | None:
        if not self._calls_the_tool(body):
            return None
        last = body[-1]
        if line.exc_msg is not None:
            name = line.exc_msg.partition(":")[0].strip()
            is_name = all(part.isidentifier() for part in name.split("."))
            return {**self._call(body, last), "raises": name} if is_name else None
        if not isinstance(last, ast.Expr) or len(body) > 1:
            return None
        if not line.want:
            return {**self._call(body, last), "result": None}
        return self._shown(last.value, line.want.rstrip("\n"), exact=not any(line.options.values()))

    def _shown(self, value: ast.expr, want: str, *, exact: bool) -> dict[str, Any] | None:
        """Return an example of an expression and its output; exact: the text is the whole output."""
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
        """Return the arguments of a plain call, which are more useful than source; else the source to run."""
        if not self.before and len(body) == 1 and isinstance(last, ast.Expr):
            arguments = self._arguments(last.value)
            if arguments is not None:
                return {"arguments": arguments}
        source = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
        return {"call": "\n".join([*self.before, source])}

    def _arguments(self, value: ast.expr) -> dict[str, Any] | None:
        """Return the arguments, by name, of a call of the entry with literals; None for any other expression."""
        if self.function is None or not isinstance(value, ast.Call) or not _is_name(value.func, self.entry):
            return None
        signature = self.function.args
        names = [argument.arg for argument in (*signature.posonlyargs, *signature.args)]
        if len(value.args) > len(names):
            return None
        pairs = list(zip(names, value.args, strict=False))
        by_name = {*names[len(signature.posonlyargs) :], *(argument.arg for argument in signature.kwonlyargs)}
        for keyword in value.keywords:
            if keyword.arg not in by_name or keyword.arg in dict(pairs):
                return None
            pairs.append((str(keyword.arg), keyword.value))
        arguments = {name: _literal(ast.unparse(node)) for name, node in pairs}
        return arguments if all(is_plain(argument) for argument in arguments.values()) else None

    def _calls_the_tool(self, body: list[ast.stmt]) -> bool:
        """Return whether the tool is named in these lines, or in earlier lines that they may use."""
        text = "\n".join([*self.before, ast.unparse(ast.Module(body, []))])
        return any(_is_name(node, self.entry) for node in ast.walk(ast.parse(text)))


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _prints(node: ast.AST) -> bool:
    return any(_is_name(inner, "print") for inner in ast.walk(node))


def _printed(value: ast.expr) -> ast.expr | None:
    """Return the argument of a `print(…)` with one value; None for any other expression."""
    if not isinstance(value, ast.Call) or not _is_name(value.func, "print"):
        return None
    plain = len(value.args) == 1 and not value.keywords and not isinstance(value.args[0], ast.Starred)
    return value.args[0] if plain else None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _NOT_A_LITERAL
