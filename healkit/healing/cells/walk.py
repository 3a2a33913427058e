"""A walk through what runs when a cell runs.

In the order in which it runs: a name that is read before the cell gives it a value is needed from elsewhere, one that
is read after is not. Of branches each is walked on its own; what all of them bind is bound.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from healkit.healing.cells.nodes import in_globals, is_true, leaves, names_in, root, short

#: Methods that change what they are called on, where their result is thrown away.
_CHANGING = frozenset(
    {
        "append",
        "extend",
        "insert",
        "update",
        "add",
        "sort",
        "reverse",
        "setdefault",
        "pop",
        "popitem",
        "remove",
    }
    | {"discard", "clear", "appendleft", "extendleft", "fit", "partial_fit", "seed", "register", "rename"}
)
#: Handlers that catch a name's being missing, so that what is tried need not be there.
_SOFT = frozenset({"NameError", "Exception", "BaseException"})


@dataclass(frozen=True)
class Binding:
    """Where a cell gives a name its value; `under` is what that depends on (`if debug:`), empty where on nothing."""

    line: int
    under: str = ""


@dataclass(frozen=True)
class Inner:
    """A name that exists only inside: `kind` is function, class, comprehension or except; `owner` that one's name."""

    kind: str
    owner: str
    line: int


class _Way(NamedTuple):
    """One of several ways through a statement; `leaves`: it never comes out at the end."""

    walk: Callable[[], None]
    under: str
    leaves: bool = False


class Walk(ast.NodeVisitor):
    """Walks a cell's statements; what it found is in its attributes, which are those of `bindings.Names`."""

    def __init__(self) -> None:
        self.bound: dict[str, Binding] = {}
        self.needs: dict[str, None] = {}
        self.changed: set[str] = set()
        self.deleted: dict[str, int] = {}
        self.inner: dict[str, Inner] = {}
        self.stars: list[str] = []
        self.opaque = ""
        self._hidden: list[
            set[str]
        ] = []  # names of comprehensions, handlers and class bodies around this place
        self._in_class = 0
        self._soft = 0

    def block(self, body: list[ast.stmt]) -> None:
        """Statements one after the other."""
        for statement in body:
            self.visit(statement)

    def _read(self, name: str) -> None:
        hidden = any(name in names for names in self._hidden)
        if name not in self.bound and not hidden and not self._soft:
            self.needs[name] = None

    def _bind(self, name: str, line: int) -> None:
        if self._in_class:
            self._hidden[-1].add(name)
            return
        self.deleted.pop(name, None)
        if name not in self.bound or self.bound[name].under:
            self.bound[name] = Binding(line)

    def _ways(self, ways: list[_Way], *, whole: bool) -> None:
        """Ways of which at most one is gone; whole: whether one of them is gone in any case."""
        before, ends = dict(self.bound), []
        for way in ways:
            self.bound = dict(before)
            way.walk()
            ends.append(self.bound)
        lasting = [end for end, way in zip(ends, ways, strict=True) if not way.leaves]
        self.bound = {
            name: binding for name, binding in before.items() if all(name in end for end in lasting)
        }
        for end, way in zip(ends, ways, strict=True):
            for name, binding in end.items():
                sure = whole and all(name in other and not other[name].under for other in lasting)
                if name not in self.bound or (sure and self.bound[name].under):
                    self.bound[name] = Binding(binding.line, "" if sure else binding.under or way.under)

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
        """A target is stored into; with brackets or a dot, what stands before them is changed."""
        if isinstance(node, ast.Subscript | ast.Attribute):
            if (name := root(node)) is not None:
                self.changed.add(name)
            if (made := in_globals(node)) is not None:
                self._bind(made, node.lineno)
        if isinstance(node, ast.Tuple | ast.List):
            for part in node.elts:
                self._target(part)
        else:
            self.visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            changes = call.func.attr in _CHANGING or any(word.arg == "inplace" for word in call.keywords)
            if changes and (name := root(call.func)) is not None:
                self.changed.add(name)
        elif isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "exec":
            self.opaque = "exec"
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        if is_true(node.test):
            self.block(node.body)
            return
        under = f"if {short(node.test)}:"
        ways = [self._way(node.body, under), self._way(node.orelse, f"{under} … else:")]
        self._ways(ways, whole=True)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        if is_true(node.test):
            self.block(node.body)
        else:
            self._ways([self._way(node.body, f"while {short(node.test)}:")], whole=False)
        self.block(node.orelse)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)

        def once() -> None:
            self._target(node.target)
            self.block(node.body)

        self._ways([_Way(once, f"for {short(node.target)} in {short(node.iter)}:")], whole=False)
        self.block(node.orelse)

    visit_AsyncFor = visit_For

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._target(item.optional_vars)
        held = next((item for item in node.items if "suppress" in short(item.context_expr)), None)
        if held is None:
            self.block(node.body)
        else:
            self._ways([self._way(node.body, f"with {short(held.context_expr)}:")], whole=False)

    visit_AsyncWith = visit_With

    def visit_Try(self, node: Any) -> None:
        soft = any(one.type is None or names_in(one.type) & _SOFT for one in node.handlers)

        def tried() -> None:
            self._soft += soft
            self.block(node.body)
            self._soft -= soft
            self.block(node.orelse)

        if node.handlers:
            ways = [_Way(tried, "try:", leaves(node.body))]
            ways += [_Way(self._handler(one), "except", leaves(one.body)) for one in node.handlers]
            self._ways(ways, whole=True)
        else:
            tried()
        self.block(node.finalbody)

    visit_TryStar = visit_Try

    def _handler(self, handler: ast.ExceptHandler) -> Callable[[], None]:
        """The way through a handler; its name is gone again at its end, so it is nobody else's."""

        def caught() -> None:
            if handler.type is not None:
                self.visit(handler.type)
            own = {handler.name} if handler.name else set()
            for name in own:
                self.inner.setdefault(name, Inner("except", "", handler.lineno))
            self._hidden.append(own)
            self.block(handler.body)
            self._hidden.pop()

        return caught

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        ways = [
            _Way(self._case(case), f"case {short(case.pattern)}:", leaves(case.body)) for case in node.cases
        ]
        last = node.cases[-1]
        catches_all = (
            isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
        )
        self._ways(ways, whole=catches_all)

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
                self.stars.append("." * node.level + (node.module or ""))
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

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._hidden.append({part.name for part in getattr(node, "type_params", ())})
        arguments = node.args
        every = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ]
        notes = [one.annotation for one in every if one is not None]
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

    def _way(self, body: list[ast.stmt], under: str) -> _Way:
        return _Way(lambda: self.block(body), under, leaves(body))
