"""Tool shapes: the three kinds of Python tool.

1. a class that derives from `Tool` (or from anything named `…Tool`) and defines `run`, or the only class with
   `run(arguments)`, whatever it derives from;
2. a plain function: `run`, or one named like the tool, or the only public one;
3. the older script, which reads `arguments` and sets `result`.

The code is read, never run. The host reads the shape to refuse what cannot run and to derive an input schema; the
worker reads it again to know what to call. Both use this module, so they cannot disagree.
"""

from __future__ import annotations

import ast
from typing import Any, Literal

import msgspec

from healkit.errors import CodeDoesNotParse, ToolShapeError
from healkit.pysource.nodes import Function, parameters
from healkit.pysource.scope import bound_names

Kind = Literal["class", "function", "script"]


class Shape(msgspec.Struct, frozen=True):
    """Entry point of a tool: the class or function `entry` ("" for a script), and how it takes its arguments."""

    kind: Kind
    entry: str = ""
    #: A function whose only parameter is called `arguments` gets the whole dict, as a class's `run` does.
    takes_dict: bool = False


def parse(code: str, filename: str) -> ast.Module:
    """Return the syntax tree; raises `CodeDoesNotParse` with line, column and a caret under the place."""
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
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes; nesting beyond the parser's stack
        raise CodeDoesNotParse(f"{filename}: {error}", hint="Correct it and save it again.") from None


def read_shape(tree: ast.Module, tool_name: str) -> Shape:
    """Return which of the three kinds this code is; raises `ToolShapeError` if it is none of them."""
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
        said = f"{tool_name!r} defines several tools: the classes {', '.join(runs)} all have run(arguments)."
    elif public:
        said = f"{tool_name!r} defines no function to call: it has the functions {', '.join(public)}"
        said += f", none of them named 'run' or {tool_name!r}."
    else:
        said = f"{tool_name!r} defines no function to call."
    raise ToolShapeError(
        said,
        hint=f"Define `def {tool_name}(…)`, a class deriving from Tool with run(arguments), or set `result`.",
    )


def input_schema(tree: ast.Module, shape: Shape) -> dict[str, Any]:
    """Return a JSON Schema of the arguments, read off the entry function's signature.

    Annotations that JSON knows become types; everything else stays open. Without a signature to read (a class,
    a script, or a function that takes the dict) any object is accepted.
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
    """Return whether a module sets `result`, as a tool of the older kind does."""
    return "result" in bound_names(tree, "variable", "comprehension")


def _is_tool_class(node: ast.ClassDef) -> bool:
    defines_run = any(isinstance(item, Function) and item.name == "run" for item in node.body)
    bases = [base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases]
    return defines_run and any(base.endswith("Tool") for base in bases)


def _runs_arguments(node: ast.ClassDef) -> bool:
    """Return whether the class defines `run(self, arguments)`; an abstract one only says so to others."""
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
    """Return the schema of one annotation; an empty one (anything goes) if JSON has no such type."""
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
    """Return the schema with its default; a default of None also means that None may be passed."""
    if not isinstance(default, ast.Constant) or not isinstance(
        default.value, int | float | str | bool | None
    ):
        return schema
    if default.value is None and schema:
        schema = _any_of([schema, {"type": "null"}])
    return {**schema, "default": default.value}
