"""Visitor that follows a cell's code in the order it runs.

A name that is read before the cell binds it has to come from elsewhere; one that is read after does not. Each branch is
followed on its own; what all of them bind is bound.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from healkit.pysource.nodes import Function, Jump, parameters
from healkit.pysource.scope import names_in

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
    """Path through a statement; `leaves`: it does not go on to the next statement."""

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
        """Follow branches of which at most one is taken; complete: one of them is taken in any case."""
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
                sure = complete and all(name in other and not other[name].under for other in lasting)
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
            if (made := _in_globals(node)) is not None:
                self._bind(made, node.lineno)
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
        held = next((item for item in node.items if "suppress" in _short(item.context_expr)), None)
        if held is None:
            self.block(node.body)
        else:
            self._branches([self._branch(node.body, f"with {_short(held.context_expr)}:")], complete=False)

    visit_AsyncWith = visit_With

    def visit_Try(self, node: Any) -> None:
        guarded = any(one.type is None or names_in(one.type) & _CATCH_NAME_ERROR for one in node.handlers)

        def tried() -> None:
            self._guarded += guarded
            self.block(node.body)
            self._guarded -= guarded
            self.block(node.orelse)

        if node.handlers:
            branches = [_Branch(tried, "try:", _leaves(node.body))]
            branches += [_Branch(self._handler(one), "except", _leaves(one.body)) for one in node.handlers]
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
            own = {handler.name} if handler.name else set()
            for name in own:
                self.inner_names.setdefault(name, InnerName("except", "", handler.lineno))
            self._hidden.append(own)
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
        notes = [one.annotation for one in parameters(node)]
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

    def _comprehension(self, node: Any) -> None:
        self.visit(node.generators[0].iter)
        self._hidden.append({name for one in node.generators for name in names_in(one.target)})
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
