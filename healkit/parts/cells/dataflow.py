"""Dataflow of a cell: the names that it binds and reads.

Code that runs with the cell is visited in that order: a read before the cell binds the name differs from a read after
it. Functions run later; for their bodies `symtable` tells which names are their own and which they look up in the
notebook. From Python 3.12 on it does not separate the names of a comprehension from those around it, so those come from
the syntax tree.
"""

from __future__ import annotations

import ast
import functools
import re
import symtable
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from healkit.core.pysource.nodes import Comprehension, Function, Jump, names_in, parameters

_COMPREHENSIONS = frozenset({"listcomp", "setcomp", "dictcomp", "genexpr"})


@dataclass(frozen=True)
class CellDataflow:
    """Names of a cell and what it does with them.

    bound: Names that it binds.
    reads: Names that it reads before it binds them, in order.
    guarded_reads: The same, inside a `try` that catches the NameError.
    deferred_reads: Names that its functions look up when they are called.
    mutated: Names whose value it changes in place.
    deleted: Name → line.
    inner_names: Names that exist only inside a function, class, comprehension or `except`.
    star_imports: Modules imported with `*`.
    opaque: A statement that may define any other name, or an empty text.
    parsed: False if the text is not Python.
    """

    bound: Mapping[str, Binding] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    guarded_reads: tuple[str, ...] = ()
    deferred_reads: tuple[str, ...] = ()
    mutated: frozenset[str] = frozenset()
    deleted: Mapping[str, int] = field(default_factory=dict)
    inner_names: Mapping[str, InnerName] = field(default_factory=dict)
    star_imports: tuple[str, ...] = ()
    opaque: str = ""
    parsed: bool = True


@functools.lru_cache(maxsize=2048)
def dataflow_of(source: str) -> CellDataflow:
    """Return the dataflow of a cell's text; never raises."""
    text = read_cell(source)
    if text.tree is None:
        return CellDataflow(opaque=text.opaque, parsed=False)
    try:
        return _read(text)
    except (SyntaxError, ValueError, RecursionError):
        return CellDataflow(opaque=text.opaque, parsed=False)


def names_changed(source: str) -> tuple[list[str], list[str]]:
    """Return the names that a cell rebinds or deletes, and those whose value it changes in place."""
    flow = dataflow_of(source)
    return [*dict.fromkeys([*flow.bound, *flow.deleted])], sorted(flow.mutated)


@functools.lru_cache(maxsize=256)
def functions_of(source: str) -> Mapping[str, frozenset[str]]:
    """Return the functions and methods in a cell, by name, as dumps of their trees."""
    tree = read_cell(source).tree
    dumps: dict[str, set[str]] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, Function):
            dumps.setdefault(node.name, set()).add(ast.dump(node))
    return {name: frozenset(codes) for name, codes in dumps.items()}


@functools.lru_cache(maxsize=1024)
def function_reads(source: str, function: str) -> frozenset[str]:
    """Return the names that the functions of that name in a cell mention."""
    tree = read_cell(source).tree
    return frozenset(
        name
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, Function) and node.name == function
        for name in names_in(node)
    )


def _read(cell: CellSource) -> CellDataflow:
    assert cell.tree is not None
    flow = FlowVisitor()
    flow.block(cell.tree.body)
    for name, line in cell.bound.items():
        flow.bound.setdefault(name, Binding(line))
    for node in ast.walk(cell.tree):
        if isinstance(node, ast.comprehension):
            for name in names_in(node.target):
                flow.inner_names.setdefault(name, InnerName("comprehension", "", node.target.lineno))
    deferred: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = symtable.symtable(cell.code, "<cell>", "exec")
    for name, binding in _read_scopes(table, deferred, flow.inner_names, within=False):
        flow.bound.setdefault(name, binding)
    return CellDataflow(
        flow.bound,
        tuple(flow.reads),
        tuple(flow.guarded_reads),
        tuple(name for name in deferred if name not in flow.bound),
        frozenset(flow.mutated),
        flow.deleted,
        {name: inner for name, inner in flow.inner_names.items() if name not in flow.bound},
        tuple(flow.star_imports),
        cell.opaque or flow.opaque,
    )


def _read_scopes(
    table: symtable.SymbolTable, deferred: dict[str, None], inner: dict[str, InnerName], *, within: bool
) -> Iterator[tuple[str, Binding]]:
    """Fill in deferred reads and inner names of nested scopes; yield names that they bind as `global`."""
    for child in table.get_children():
        name, kind = child.get_name(), str(child.get_type())
        comprehension = name in _COMPREHENSIONS
        function = "function" in kind and not comprehension
        what = "class" if "class" in kind else "function"
        for symbol in child.get_symbols():
            if symbol.is_declared_global() and symbol.is_assigned():
                yield symbol.get_name(), Binding(child.get_lineno(), f"a call of {name}()")
            elif symbol.is_global() and symbol.is_referenced():
                if function or within:
                    deferred[symbol.get_name()] = None
            elif symbol.is_local() and (
                symbol.is_assigned() or symbol.is_parameter() or symbol.is_imported()
            ):
                owner = "" if name == "lambda" else name
                inner.setdefault(symbol.get_name(), InnerName(what, owner, child.get_lineno()))
        yield from _read_scopes(child, deferred, inner, within=within or function)


# Visitor that follows a cell's code in the order it runs
#
# A name that is read before the cell binds it has to come from elsewhere. A name that is read after that does not. Each
# branch is followed on its own; a name is bound if all branches bind it.


#: Methods that change their object when their result is not used.
_MUTATING = frozenset((
    "append", "extend", "insert", "update", "add", "sort", "reverse", "setdefault", "pop", "popitem", "remove",
    "discard", "clear", "appendleft", "extendleft", "fit", "partial_fit", "seed", "register", "rename",
))  # fmt: skip
#: Exceptions whose handler also catches a NameError.
_CATCH_NAME_ERROR = frozenset({"NameError", "Exception", "BaseException"})
_TEXT_MAX_CHARS = 60


@dataclass(frozen=True)
class Binding:
    """Place where a cell binds a name; `under` is the condition (`if debug:`), empty if there is none."""

    line: int
    under: str = ""


@dataclass(frozen=True)
class InnerName:
    """Name that exists only inside of `kind` (function, class, comprehension, except); `owner` is its name."""

    kind: str
    owner: str
    line: int


class _Branch(NamedTuple):
    """Path through a statement; `leaves`: it does not continue with the next statement."""

    visit: Callable[[], None]
    under: str
    leaves: bool = False


class FlowVisitor(ast.NodeVisitor):
    """Visitor of a cell's statements; its attributes become those of `dataflow.CellDataflow`."""

    def __init__(self) -> None:
        self.bound: dict[str, Binding] = {}
        self.reads: dict[str, None] = {}
        self.guarded_reads: dict[str, None] = {}
        self.mutated: set[str] = set()
        self.deleted: dict[str, int] = {}
        self.inner_names: dict[str, InnerName] = {}
        self.star_imports: list[str] = []
        self.opaque = ""
        #: Names of the comprehensions, handlers and class bodies around this place.
        self._hidden: list[set[str]] = []
        self._in_class = 0
        self._guarded = 0

    def block(self, body: list[ast.stmt]) -> None:
        """Visit statements one after the other."""
        for statement in body:
            self.visit(statement)

    def _read(self, name: str) -> None:
        hidden = any(name in names for names in self._hidden)
        if name not in self.bound and not hidden:
            reads = self.guarded_reads if self._guarded else self.reads
            reads[name] = None

    def _bind(self, name: str, line: int) -> None:
        if self._in_class:
            self._hidden[-1].add(name)
            return
        self.deleted.pop(name, None)
        if name not in self.bound or self.bound[name].under:
            self.bound[name] = Binding(line)

    def _branches(self, branches: list[_Branch], *, complete: bool) -> None:
        """Follow branches of which at most one is taken.

        complete: One of them is always taken.
        """
        before, ends = dict(self.bound), []
        for branch in branches:
            self.bound = dict(before)
            branch.visit()
            ends.append(self.bound)
        lasting = [end for end, branch in zip(ends, branches, strict=True) if not branch.leaves]
        self.bound = {
            name: binding for name, binding in before.items() if all(name in end for end in lasting)
        }
        for end, branch in zip(ends, branches, strict=True):
            for name, binding in end.items():
                sure = complete and all(
                    name in branch_end and not branch_end[name].under for branch_end in lasting
                )
                if name not in self.bound or (sure and self.bound[name].under):
                    self.bound[name] = Binding(binding.line, "" if sure else binding.under or branch.under)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._bind(node.id, node.lineno)
            return
        self._read(node.id)
        if isinstance(node.ctx, ast.Del):
            self.bound.pop(node.id, None)
            self.deleted[node.id] = node.lineno

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._target(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self._target(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._read(node.target.id)
        self.visit(node.value)
        self._target(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.visit(node.target)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._target(target)

    def _target(self, node: ast.expr) -> None:
        """Visit an assignment target; for a subscript or an attribute, its root is mutated."""
        if isinstance(node, ast.Subscript | ast.Attribute):
            if (name := _root(node)) is not None:
                self.mutated.add(name)
            if (global_name := _in_globals(node)) is not None:
                self._bind(global_name, node.lineno)
        if isinstance(node, ast.Tuple | ast.List):
            for part in node.elts:
                self._target(part)
        else:
            self.visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            changes = call.func.attr in _MUTATING or any(word.arg == "inplace" for word in call.keywords)
            if changes and (name := _root(call.func)) is not None:
                self.mutated.add(name)
        elif isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "exec":
            self.opaque = "exec"
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        if _is_true(node.test):
            self.block(node.body)
            return
        under = f"if {_short(node.test)}:"
        branches = [self._branch(node.body, under), self._branch(node.orelse, f"{under} … else:")]
        self._branches(branches, complete=True)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        if _is_true(node.test):
            self.block(node.body)
        else:
            self._branches([self._branch(node.body, f"while {_short(node.test)}:")], complete=False)
        self.block(node.orelse)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)

        def once() -> None:
            self._target(node.target)
            self.block(node.body)

        self._branches([_Branch(once, f"for {_short(node.target)} in {_short(node.iter)}:")], complete=False)
        self.block(node.orelse)

    visit_AsyncFor = visit_For

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._target(item.optional_vars)
        suppressor = next((item for item in node.items if "suppress" in _short(item.context_expr)), None)
        if suppressor is None:
            self.block(node.body)
        else:
            self._branches(
                [self._branch(node.body, f"with {_short(suppressor.context_expr)}:")], complete=False
            )

    visit_AsyncWith = visit_With

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        guarded = any(
            handler.type is None or names_in(handler.type) & _CATCH_NAME_ERROR for handler in node.handlers
        )

        def tried() -> None:
            self._guarded += guarded
            self.block(node.body)
            self._guarded -= guarded
            self.block(node.orelse)

        if node.handlers:
            branches = [_Branch(tried, "try:", _leaves(node.body))]
            branches += [
                _Branch(self._handler(handler), "except", _leaves(handler.body)) for handler in node.handlers
            ]
            self._branches(branches, complete=True)
        else:
            tried()
        self.block(node.finalbody)

    visit_TryStar = visit_Try

    def _handler(self, handler: ast.ExceptHandler) -> Callable[[], None]:
        """Return the visit of a handler; its name is deleted at its end, so the cell does not bind it."""

        def caught() -> None:
            if handler.type is not None:
                self.visit(handler.type)
            names = {handler.name} if handler.name else set()
            for name in names:
                self.inner_names.setdefault(name, InnerName("except", "", handler.lineno))
            self._hidden.append(names)
            self.block(handler.body)
            self._hidden.pop()

        return caught

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        branches = [
            _Branch(self._case(case), f"case {_short(case.pattern)}:", _leaves(case.body))
            for case in node.cases
        ]
        last = node.cases[-1]
        catches_all = (
            isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
        )
        self._branches(branches, complete=catches_all)

    def _case(self, case: ast.match_case) -> Callable[[], None]:
        def taken() -> None:
            for part in ast.walk(case.pattern):
                name = part.rest if isinstance(part, ast.MatchMapping) else getattr(part, "name", None)
                if isinstance(name, str):
                    self._bind(name, getattr(part, "lineno", 1))
                elif isinstance(part, ast.Name):
                    self._read(part.id)
            if case.guard is not None:
                self.visit(case.guard)
            self.block(case.body)

        return taken

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._bind(alias.asname or alias.name.partition(".")[0], node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.star_imports.append("." * node.level + (node.module or ""))
            elif node.module != "__future__":
                self._bind(alias.asname or alias.name, node.lineno)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._hidden.append({part.name for part in getattr(node, "type_params", ())})
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._hidden.append({"__module__", "__qualname__"})
        self._in_class += 1
        self.block(node.body)
        self._in_class -= 1
        del self._hidden[-2:]
        self._bind(node.name, node.lineno)

    def visit_FunctionDef(self, node: Function) -> None:
        self._hidden.append({part.name for part in getattr(node, "type_params", ())})
        arguments = node.args
        notes = [parameter.annotation for parameter in parameters(node)]
        for part in (*node.decorator_list, *arguments.defaults, *arguments.kw_defaults, *notes, node.returns):
            if part is not None:
                self.visit(part)
        self._hidden.pop()
        self._bind(node.name, node.lineno)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for part in (*node.args.defaults, *node.args.kw_defaults):
            if part is not None:
                self.visit(part)

    def _comprehension(self, node: Comprehension) -> None:
        self.visit(node.generators[0].iter)
        self._hidden.append({name for clause in node.generators for name in names_in(clause.target)})
        for i, generator in enumerate(node.generators):
            for part in (*([generator.iter] if i else []), *generator.ifs):
                self.visit(part)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        self._hidden.pop()

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _branch(self, body: list[ast.stmt], under: str) -> _Branch:
        return _Branch(lambda: self.block(body), under, _leaves(body))


def _short(node: ast.AST) -> str:
    """Return the code of a node on one line, cut."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _TEXT_MAX_CHARS else text[: _TEXT_MAX_CHARS - 1] + "…"


def _root(node: ast.expr) -> str | None:
    """Return `df` for `df.loc[0].x`."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _in_globals(node: ast.expr) -> str | None:
    """Return `x` for `globals()["x"]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    name = node.slice.value
    return name if isinstance(name, str) and _short(node.value) in {"globals()", "locals()"} else None


def _is_true(test: ast.expr) -> bool:
    """Return whether a condition always holds in a notebook."""
    return _short(test) in {"True", "1", "__name__ == '__main__'"}


def _leaves(body: list[ast.stmt]) -> bool:
    """Return whether statements never go on to what follows them."""
    return bool(body) and isinstance(body[-1], Jump)


# Cell sources as plain Python, with magics blanked out
#
# IPython's own transformer turns a cell magic into a call with the cell's text as a string, which hides its names.
# Here, a line of magic is blanked and the lines keep their numbers. If a cell magic runs its body in the notebook's
# namespace (`%%time`), the body stays. This works without IPython.


#: Cell magics whose body is Python that runs in the notebook's own namespace.
_TRANSPARENT = frozenset(
    {"time", "capture", "prun", "debug", "memit", "mprun", "lprun", "snakeviz", "pyinstrument"}
)
#: Line magics that may define any name.
_OPAQUE = frozenset({"run", "pylab", "store", "load", "autoreload", "rerun", "recall", "macro"})
_LINE = re.compile(r"^(?P<indent>\s*)(?P<target>[\w ,.]+=\s*)?(?P<mark>%|!|\?)(?P<rest>.*)$")
_HELP = re.compile(r"^(?P<indent>\s*)[\w.%]+\?{1,2}\s*$")
_CELL = re.compile(r"^%%(?P<name>\w+)(?P<options>.*)$")
_CLEARING = re.compile(r"^\s*%(?P<magic>reset(?:_selective)?|xdel)\b(?P<options>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class CellSource:
    """Python part of a cell.

    tree: None if it does not parse.
    bound: Names that its magics bind, with their lines.
    opaque: A magic that may define any name, or an empty text.
    """

    code: str
    tree: ast.Module | None
    bound: dict[str, int] = field(default_factory=dict)
    opaque: str = ""


def read_cell(source: str) -> CellSource:
    """Return a cell's text with its magics blanked, and parsed; never raises."""
    lines = source.expandtabs(4).split("\n") if "\t" in source else source.split("\n")
    bound: dict[str, int] = {}
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if (match := _CELL.match(lines[first].strip())) is not None:
        if match["name"] not in _TRANSPARENT:
            return CellSource("", ast.Module([], []))
        if match["name"] == "capture":
            bound |= {word: first + 1 for word in match["options"].split() if word.isidentifier()}
        lines[first] = ""
    code = "\n".join(lines)
    if (tree := parsed(code)) is not None:
        return CellSource(code, tree, bound)
    opaque, blanked = "", []
    for line in lines:
        replaced, magic = _blanked(line)
        opaque = magic or opaque
        blanked.append(replaced)
    code = "\n".join(blanked)
    tree = parsed(code)
    if tree is None:
        code = textwrap.dedent(code)
        tree = parsed(code)
    return CellSource(code, tree, bound, opaque)


def clearing_magic(source: str, name: str) -> str:
    """Return the magic in a cell that deletes this name, such as `%reset -f`, or an empty text."""
    for match in _CLEARING.finditer(source):
        options = match["options"].split()
        if match["magic"] == "reset" or name in options:
            return f"%{match['magic']}{match['options'].rstrip()}"
        if match["magic"] == "reset_selective" and any(_finds(word, name) for word in options):
            return f"%{match['magic']}{match['options'].rstrip()}"
    return ""


def _finds(pattern: str, name: str) -> bool:
    try:
        return not pattern.startswith("-") and re.search(pattern, name) is not None
    except re.error:
        return False


def parsed(code: str) -> ast.Module | None:
    """Return the tree of a text; None if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python itself warns of a strange escape when the cell runs
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _blanked(line: str) -> tuple[str, str]:
    """Return the line as Python, and a magic in it that may define any name."""
    if (match := _LINE.match(line)) is not None and match["rest"].strip():
        words = match["rest"].split()
        name = words[0].lstrip("%")
        opaque = f"%{' '.join([name, *words[1:]])}" if match["mark"] == "%" and name in _OPAQUE else ""
        target = match["target"] or ""
        return f"{match['indent']}{target.strip()} None" if target else f"{match['indent']}pass", opaque
    if (match := _HELP.match(line)) is not None:
        return f"{match['indent']}pass", ""
    return line, ""
