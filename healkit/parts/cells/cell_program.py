"""Program of a failing cell, to be tried in a worker.

A cell reads names that other cells bound. This module decides how a worker gets each of them. It imports modules,
copies the notebook's own functions and classes as source, and sends values with the snapshot. For anything else (a
connection, an object of the notebook's own class), it runs the statement that made the value again. A patch may change
the cell and own functions, but not the code that runs before them (`setup`).

If a value is not available, only the statements that need it are left out, and they are named.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import itertools
import sys
import textwrap
import tokenize
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from healkit.core.pysource.nodes import Function, first_line, own_nodes
from healkit.core.store.arguments import pack_arguments
from healkit.errors import ArgumentsInvalid, UsageInvalid, near_misses
from healkit.parts.cells.dataflow import dataflow_of, parsed, read_cell
from healkit.parts.cells.notebook_file import GIVEN, CellRun
from healkit.parts.post_mortem.previews import type_name

_SOURCES_MAX, _QUOTED_CHARS = 60, 60


@dataclass(frozen=True)
class RemoteValue:
    """Value of another process that was not sent along.

    kind: `library` for a module, or a function or class of one; `own` for a function or class of the notebook; `value`
        for a value that cannot cross.
    told: The import for `library`, the reason for `value`.
    """

    kind: Literal["library", "own", "value"]
    told: str = ""

    @classmethod
    def of(cls, name: str, value: object) -> RemoteValue | None:
        """Return a stand-in for a module, a function or a class; None for a value."""
        if isinstance(value, cls):
            return value
        if isinstance(value, types.ModuleType):
            return cls("library", _import_of(name, value.__name__))
        if (line := _library_import(name, value)) is not None:
            return cls("library", line)
        return cls("own") if is_own_code(value) else None


@dataclass(frozen=True)
class Segment:
    """Lines of a program that come from a cell.

    start: Its first line in the program, from 1.
    count: Number of lines.
    run: The cell.
    first: Its first line there.
    """

    start: int
    count: int
    run: CellRun
    first: int


@dataclass(frozen=True)
class CellProgram:
    """Cell as a program of its own.

    code: Own functions that it uses and statements that make values again, then the cell. `segments` say which cell
        each line comes from; the last segment is the failing cell.
    setup: The imports, which run first.
    needed: The names whose values go with it, with those values.
    given: All names that it finds defined.
    made_again: Names that statements of other cells make again, each with its cell.
    left_out: Lines of the cell that were left out, with the reason.
    why_not: Why the failing statement cannot run; empty if it can.
    later: Names that it keeps for the cells below.
    above: Cells that run completely before the failing one.
    """

    code: str
    setup: str
    segments: tuple[Segment, ...]
    needed: Mapping[str, Any]
    given: Mapping[str, Any] = field(default_factory=dict)
    made_again: Mapping[str, CellRun] = field(default_factory=dict)
    left_out: Mapping[int, str] = field(default_factory=dict)
    why_not: str = ""
    later: frozenset[str] = frozenset()
    above: tuple[CellRun, ...] = ()

    @property
    def texts(self) -> list[str]:
        """Texts in the code that may name files."""
        tree = parsed(self.code)
        nodes = ast.walk(tree) if tree is not None else ()
        return [
            node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]

    def cell_at(self, line: int) -> tuple[Segment, int] | None:
        """Return the segment of a line of the program, and its line in that cell; None if no cell has that line."""
        for segment in self.segments:
            if segment.start <= line < segment.start + segment.count:
                return segment, segment.first + line - segment.start
        return None

    def line_of(self, run: CellRun, line: int) -> int | None:
        """Return the line of the program for a line of a cell; None if the program does not contain it."""
        for segment in reversed(self.segments):
            if same_run(segment.run, run) and segment.first <= line < segment.first + segment.count:
                return segment.start + line - segment.first
        return None


def same_run(one: CellRun, other: CellRun) -> bool:
    """Return whether two runs are the same run."""
    return one.count == other.count and one.source == other.source


def program_of(
    failed: CellRun,
    namespace: Mapping[str, Any],
    before: Mapping[str, Any],
    history: Sequence[CellRun],
    *,
    cannot_cross: Mapping[str, str],
    left_out: Sequence[int] = (),
    near: Sequence[str] = (),
    later: Sequence[str] = (),
    above: Sequence[CellRun] = (),
) -> CellProgram | None:
    """Make the program of a failing cell; None if its text is not Python.

    namespace: The notebook's variables now.
    before: The values that changed names had before the cell ran.
    history: Runs of this kernel, oldest first.
    cannot_cross: Names whose values were refused, with the reason.
    left_out: Lines of the cell whose statements are left out because a worker cannot run them.
    near: Further names that a fix may read.
    later: Names that cells below read; their values go with it if possible.
    above: Cells that run completely before it, instead of the values that they made (`made_by`).
    """
    text = read_cell(failed.source)
    if text.tree is None or not text.tree.body:
        return None
    builder = _Builder(failed, namespace, before, history, cannot_cross, above)
    return builder.program(text.code, text.tree, left_out, near, later)


def made_by(
    cell: CellRun, history: Sequence[CellRun], namespace: Mapping[str, Any], also: Sequence[str] = ()
) -> list[CellRun]:
    """Return the runs that made the values that a cell reads, and the values these depend on, oldest first.

    also: Names of further values.

    Empty if one of the runs cannot be repeated: it failed, is not plain Python, or its start is not known.
    """
    data = {name for name, value in namespace.items() if RemoteValue.of(name, value) is None}
    wanted, changed, runs = data.intersection([*free_names(cell.source), *also]), set[str](), list[CellRun]()
    for run in reversed(history):
        flow, text = dataflow_of(run.source), read_cell(run.source)
        names = changed_in(run)
        changed |= names
        if wanted & names:
            if not run.ok or text.tree is None or text.code != run.source or flow.opaque:
                return []
            runs.insert(0, run)
            reads = set(free_names(run.source))
            wanted -= {name for name, bound in flow.bound.items() if not bound.under}
            wanted |= reads & (data | changed)
    return [] if wanted & changed else runs


def where_made(name: str, value: Any, cell: CellRun, history: Sequence[CellRun]) -> str:
    """Say which line above a cell made a value `None`, or set it; empty if no line surely did."""
    run = next(
        (
            candidate
            for candidate in reversed(history)
            if candidate.count != cell.count and name in changed_in(candidate)
        ),
        None,
    )
    if run is None or not run.ok or name in changed_in(cell):
        return ""
    statements = [statement for statement in _body(run) if name in dataflow_of(ast.unparse(statement)).bound]
    later = {*dataflow_of(run.source).mutated, *dataflow_of(run.source).deleted}
    if (
        not statements
        or name in later
        or (value is not None and name not in free_names(ast.unparse(statements[-1])))
    ):
        return ""
    text = ast.get_source_segment(run.source, statements[-1]) or ""
    quoted = f": `{text}`" if 0 < len(text) <= _QUOTED_CHARS and not {"`", "\n"} & {*text} else ""
    effect = "made it `None`" if value is None else f"gave `{name}` this value"
    return f"In [{run.count}], line {statements[-1].lineno} {effect}{quoted}."


def changed_in(run: CellRun) -> set[str]:
    """Return the names that a run may have changed."""
    flow = dataflow_of(run.source)
    return {*flow.bound, *flow.mutated, *flow.deleted}


class _Builder:
    """Sorts the names that a cell needs, and the names that those need."""

    def __init__(
        self,
        failed: CellRun,
        namespace: Mapping[str, Any],
        before: Mapping[str, Any],
        history: Sequence[CellRun],
        cannot_cross: Mapping[str, str],
        above: Sequence[CellRun],
    ) -> None:
        self._failed, self._namespace, self._before, self._above = failed, namespace, before, above
        self._history = [run for run in history if not same_run(run, failed)]
        self._cannot_cross = cannot_cross
        self._seen: set[str] = set()
        self.imports: dict[str, None] = {}
        self.sources: list[tuple[CellRun, int, int, str]] = []
        self.again: dict[str, CellRun] = {}
        self.needed: dict[str, Any] = {}
        self.refused: dict[str, str] = {}
        self.given: dict[str, Any] = {}

    def program(
        self,
        code: str,
        tree: ast.Module,
        left_out: Sequence[int],
        near: Sequence[str],
        later: Sequence[str],
    ) -> CellProgram:
        """Return the program; statements that need a refused value are left out."""
        read = free_names("\n".join([*(run.source for run in self._above), self._failed.source]))
        for name in (*read, *near, *self._similar(read)):
            self.require(name)
        for name in {name for run in self._above for name in dataflow_of(run.source).bound} & {
            *self._namespace
        }:
            self.given[name] = self._before.get(name, self._namespace[name])
        for name in [*self._modules()]:  # those of the values that are needed now
            self.require(name)
        required = set(self.given)
        had = frozenset(name for name in later if self._is_had_later(name))
        only_later = self.given.keys() - required
        lines = code.split("\n")
        gone = dict.fromkeys(left_out, "it cannot be run in a worker")
        out: dict[int, str] = {}
        failing = _statement_at(tree, self._failed.failed_line)
        why_not = ""
        for statement in tree.body:
            reason = self._why_left_out(statement, gone)
            if not reason:
                continue
            if statement is failing:
                why_not = reason
                continue
            first, last = first_line(statement), statement.end_lineno or statement.lineno
            out[first] = reason
            for number in range(first, last + 1):
                lines[number - 1] = ""
            lines[first - 1] = "pass"
            if failing is not None and statement.lineno < failing.lineno:
                for name in dataflow_of(ast.unparse(statement)).bound:
                    self.require(name, now=True)
        pieces: list[str] = []
        segments = []
        start = 1
        for run, first, last, source in self.sources:
            segments.append(Segment(start, last - first + 1, run, first))
            pieces += source.split("\n")
            start = len(pieces) + 1
        for run in self._above:
            segments.append(Segment(start, run.source.count("\n") + 1, run, 1))
            pieces += run.source.split("\n")
            start = len(pieces) + 1
        segments.append(Segment(start, len(lines), self._failed, 1))
        return CellProgram(
            "\n".join([*pieces, *lines]).rstrip("\n") + "\n",
            "\n".join(self.imports),
            tuple(segments),
            self.needed,
            {name: value for name, value in self.given.items() if name not in only_later},
            self.again,
            out,
            why_not,
            had,
            tuple(self._above),
        )

    def _is_had_later(self, name: str) -> bool:
        """Add a name that a cell below reads, if no statement must run again for it; return whether it was added."""
        if name in self._seen:
            return name in self.given
        value = self._before.get(name, self._namespace.get(name))
        if name not in self._namespace or name in self._cannot_cross:
            return False
        remote = RemoteValue.of(name, value)
        if remote is not None and remote.kind != "library":
            return False
        self.require(name)
        return True

    def _modules(self) -> Iterator[str]:
        """Yield names of modules of the notebook that a fix may need and that need no loading."""
        loaded = {type(value).__module__.partition(".")[0] for value in self.needed.values()}
        for name, value in self._namespace.items():
            if isinstance(value, types.ModuleType) and not name.startswith("_"):
                package = value.__name__.partition(".")[0]
                if package in sys.stdlib_module_names or package in loaded | {"numpy"}:
                    yield name

    def _similar(self, names: Sequence[str]) -> Iterator[str]:
        """Yield names of the notebook that may be meant by missing names."""
        candidates = [name for name in self._namespace if not name.startswith("_") and name not in GIVEN]
        for name in names:
            if name not in self._namespace and name not in self._before and not hasattr(builtins, name):
                yield from near_misses(name, candidates, 4)
                yield from (
                    candidate
                    for candidate in candidates
                    if set(candidate.split("_")) & set(name.split("_")) - {""}
                )
                yield from (
                    candidate
                    for candidate in candidates
                    if len(name) > 2 < len(candidate) and (name in candidate or candidate in name)
                )

    def _why_left_out(self, statement: ast.stmt, gone: Mapping[int, str]) -> str:
        for line, reason in gone.items():
            if first_line(statement) <= line <= (statement.end_lineno or line):
                return reason
        if not self.refused:
            return ""
        flow = dataflow_of(ast.unparse(statement))
        names = [*flow.reads, *flow.guarded_reads, *flow.deferred_reads]
        return next((self.refused[name] for name in names if name in self.refused), "")

    def require(self, name: str, *, now: bool = False) -> None:
        """Add one name and what it needs itself.

        now: Use its present value, whatever it was before the cell.
        """
        if name in self._seen and not now:
            return
        self._seen.add(name)
        if name in GIVEN or (hasattr(builtins, name) and name not in self._namespace):
            return
        if now or name not in self._before:
            if name not in self._namespace:
                return  # the missing name may be the failure
            value = self._namespace[name]
        else:
            value = self._before[name]
        self.given[name] = value
        remote = RemoteValue.of(name, value)
        if remote is None and name in self._cannot_cross:
            remote = RemoteValue("value", self._cannot_cross[name])
        match remote:
            case None:
                self.needed[name] = value
            case RemoteValue("library", line):
                self.imports[line] = None
            case RemoteValue("own"):
                if not self._source(name):
                    self._refuse(name, f"the source of `{name}` is not known")
            case RemoteValue("value", why):
                if not self._imported(name, value) and not self._made_again(name):
                    self._refuse(name, why)

    def _refuse(self, name: str, why: str) -> None:
        self.refused[name] = why
        self.given.pop(name, None)

    def _source(self, name: str) -> bool:
        """Copy the definition of an own function or class, with the names that it needs."""
        definition = self._definition(name, Function | ast.ClassDef | ast.Assign)
        if definition is None or len(self.sources) >= _SOURCES_MAX:
            return False
        run, node = definition
        for needed in free_names(ast.unparse(node)):
            self.require(needed)
        # A name that it binds for itself may be meant as the notebook's.
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self._namespace and isinstance(node, Function):
                self.require(part.id)
        self._copy(run, node)
        return True

    def _imported(self, name: str, value: object) -> bool:
        """Import an object of a library's module as the notebook did; return whether that gives the object."""
        match self._definition(name, ast.ImportFrom):
            case (_, ast.ImportFrom(module=str(module), names=names, level=0)):
                for alias in names:
                    same = getattr(sys.modules.get(module), alias.name, None) is value
                    if same and (alias.asname or alias.name) == name:
                        line = f"from {module} import {alias.name}"
                        self.imports[line + (f" as {name}" if alias.asname else "")] = None
                        return True
        return False

    def _copy(self, run: CellRun, node: ast.stmt) -> None:
        first, last = first_line(node), node.end_lineno or node.lineno
        lines = read_cell(run.source).code.split("\n")[first - 1 : last]
        if (run, first) not in [(copied_run, line) for copied_run, line, _, _ in self.sources]:
            self.sources.append((run, first, last, "\n".join(lines)))

    def _made_again(self, name: str) -> bool:
        """Run the statement that made a value again, and the statements of other cells that changed it since."""
        definition = self._definition(name, ast.Assign | ast.AnnAssign | ast.With | ast.AsyncWith, first=True)
        if definition is None:
            return False
        run, node = definition
        later = list(itertools.dropwhile(lambda one: one is not run, self._history))
        changes = [
            (later_run, statement)
            for later_run in later
            for statement in _body(later_run)
            if (later_run is not run or statement.lineno > node.lineno) and _changes(statement, name)
        ]
        refused = dict(self.refused)
        for needed in (
            free_name
            for part in (node, *(s for _, s in changes))
            for free_name in free_names(ast.unparse(part))
        ):
            if needed != name:
                self.require(needed)
        if self.refused != refused:
            return False
        for cell_run, statement in ((run, node), *changes):
            self._copy(cell_run, statement)
        self.again[name] = run
        return True

    def _definition(self, name: str, kinds: Any, *, first: bool = False) -> tuple[CellRun, ast.stmt] | None:
        """Return the newest top-level statement of a cell that binds a name, with its cell.

        first: A statement that does not also read the name.
        """
        for run in reversed(self._history):
            if name not in run.source:
                continue
            for statement in reversed(_body(run)):
                if not isinstance(statement, kinds):
                    continue
                flow = dataflow_of(ast.unparse(statement))
                if name in flow.bound and not (first and name in flow.reads):
                    ended = run.ok is not False or (run.failed_line or 0) > (statement.end_lineno or 0)
                    if ended:
                        return run, statement
        return None


def free_names(source: str) -> list[str]:
    """Return the names that code reads before it binds them; names that its functions look up come last."""
    flow = dataflow_of(source)
    return [*flow.reads, *flow.guarded_reads, *flow.deferred_reads]


def _body(run: CellRun) -> list[ast.stmt]:
    tree = read_cell(run.source).tree
    return [] if tree is None else tree.body


def _changes(statement: ast.stmt, name: str) -> bool:
    flow = dataflow_of(ast.unparse(statement))
    return name in flow.mutated or (name in flow.bound and name in flow.reads)


def _statement_at(tree: ast.Module, line: int | None) -> ast.stmt | None:
    if line is None:
        return None
    return next(
        (
            statement
            for statement in tree.body
            if first_line(statement) <= line <= (statement.end_lineno or line)
        ),
        None,
    )


def is_own_code(value: object) -> bool:
    """Return whether a value is a function or a class of the notebook's own."""
    kind = isinstance(value, types.FunctionType | type) or hasattr(value, "__wrapped__")
    return kind and getattr(value, "__module__", None) == "__main__"


def _library_import(name: str, value: Any) -> str | None:
    """Return the import that gives a function or a class of a library; None for anything else."""
    if not isinstance(value, types.FunctionType | type | types.BuiltinFunctionType) and not (
        callable(value) and hasattr(value, "__qualname__")
    ):
        return None
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not isinstance(module, str) or module == "__main__":
        return None
    if getattr(sys.modules.get(module), qualname, None) is not value:
        qualname = name
        if getattr(sys.modules.get(module), qualname, None) is not value:
            return None
    return f"from {module} import {qualname}" + ("" if qualname == name else f" as {name}")


def _import_of(name: str, module: str) -> str:
    """Return the import that binds a module to a name."""
    if name == module:
        return f"import {module}"
    package, _, last = module.rpartition(".")
    return f"from {package} import {last}" if package and last == name else f"import {module} as {name}"


def why_refused(name: str, value: object, why: str = "") -> str:
    """Say why a value cannot be sent to a worker."""
    return f"`{name}` is a {type_name(value)}, which cannot go to a worker{f' ({why})' if why else ''}"


# A cell as a tool's function
#
# A tool gets everything as arguments. Names that the cell reads before it binds them become parameters if a tool can be
# given their values: plain data, arrays, frames. Modules become imports, and the notebook's own functions are copied as
# source. Any other name is refused before anything is saved. The cell's text stays as it was typed, comments included;
# its last expression becomes the function's result.


#: Types that a parameter is annotated with; the input schema is read off the annotations.
_ANNOTATED = (int, float, str, bool, list, dict, tuple)


@dataclass(frozen=True)
class ExtractedFunction:
    """Tool made of a cell: its code, and the notebook's variables that are its arguments."""

    code: str
    arguments: tuple[str, ...]


def extract_function(name: str, cell: str, namespace: Mapping[str, Any]) -> ExtractedFunction:
    """Make a cell the code of a tool of that name; raises `UsageInvalid` if that is not possible.

    namespace: The notebook's variables; their values decide which names become arguments.
    """
    tree = _plain_cell(cell)
    parts = _Requirements(namespace)
    for free in free_names(cell):
        parts.require(free)
    arguments = {argument: namespace[argument] for argument in parts.arguments}
    _check_can_be_given(name, arguments)
    parameters = ", ".join(f"{argument}{_annotation(value)}" for argument, value in arguments.items())
    prefix = "async def" if _awaits(tree) else "def"
    body = _indented(_returning(cell, tree))
    pieces = [*parts.imports, *([""] if parts.imports else []), *(f"{source}\n" for source in parts.sources)]
    code = "\n".join([*pieces, f"{prefix} {name}({parameters}):", body, ""])
    ast.parse(code)
    return ExtractedFunction(code, tuple(parts.arguments))


def _check_can_be_given(tool: str, arguments: Mapping[str, Any]) -> None:
    """Raise `UsageInvalid` for a value that cannot reach a worker unchanged."""
    try:
        changed = [note.removeprefix("$.") for note in pack_arguments(tool, arguments).notes]
    except ArgumentsInvalid as error:
        raise UsageInvalid(f"This cell cannot be a tool yet. {error.message}", hint=error.hint) from None
    if changed:
        raise UsageInvalid(
            f"This cell cannot be a tool yet. In a worker, {'; '.join(changed)}.",
            hint="Make that value in the cell itself.",
        )


def _annotation(value: object) -> str:
    if type(value) in _ANNOTATED:
        return f": {type(value).__name__}"
    return f': "{type_name(value)}"' if type(value).__name__ == "DataFrame" else ""


def _plain_cell(cell: str) -> ast.Module:
    try:
        tree = ast.parse(cell)
    except SyntaxError as error:
        reason = "it holds a magic or a shell command" if _has_magic(cell) else str(error.msg)
        raise UsageInvalid(
            f"This cell is not plain Python: {reason}.",
            hint="Correct it, or save it with %%tool NAME --draft.",
        ) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            raise UsageInvalid(
                f"'from {node.module} import *' does not work in a function.",
                hint="Import each name instead.",
            )
    if not tree.body:
        raise UsageInvalid("This cell is empty.")
    return tree


def _has_magic(cell: str) -> bool:
    return any(line.lstrip().startswith(("%", "!", "?")) for line in cell.splitlines())


def _awaits(tree: ast.Module) -> bool:
    """Return whether the cell itself awaits, not a function in it."""
    return any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in own_nodes(tree))


@dataclass
class _Requirements:
    """Names that a cell needs from the notebook, sorted by how a tool can get them."""

    namespace: Mapping[str, Any]
    arguments: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def require(self, name: str) -> None:
        """Take in one name and what it needs itself."""
        if name in self._seen or (hasattr(builtins, name) and name not in self.namespace):
            return
        self._seen.add(name)
        if name not in self.namespace:
            return  # the missing name may be the failure that the tool reproduces
        value = self.namespace[name]
        match RemoteValue.of(name, value):
            case RemoteValue("library", line):
                self.imports.append(line)
            case RemoteValue("own"):
                self._copy(name, value)
            case _:
                self.arguments.append(name)

    def _copy(self, name: str, value: Any) -> None:
        try:
            source = textwrap.dedent(inspect.getsource(value))
        except (OSError, TypeError):
            raise UsageInvalid(
                f"This cell cannot be a tool yet. The source of `{name}` is not known.",
                hint=f"Define {name} in a cell, and run that.",
            ) from None
        for free in free_names(source):
            self.require(free)
        self.sources.append(source)


def _returning(cell: str, tree: ast.Module) -> str:
    """Return the cell with a `return` of its last expression, or of the name that it assigns last."""
    last = tree.body[-1]
    lines = cell.rstrip().splitlines()
    if isinstance(last, ast.Expr):
        line = lines[last.lineno - 1].encode()
        start = last.col_offset
        lines[last.lineno - 1] = (line[:start] + b"return " + line[start:]).decode()
        text = "\n".join(lines)
        return text.rstrip().removesuffix(";") if text.rstrip().endswith(";") else text
    if isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], ast.Name):
        lines.append(f"return {last.targets[0].id}")
    return "\n".join(lines)


def _indented(code: str) -> str:
    """Return the code indented, except lines that begin inside of a string."""
    inside: set[int] = set()
    middle = getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_END", -1)
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.STRING:
            inside |= set(range(token.start[0] + 1, token.end[0] + 1))
        elif token.type == middle[0]:
            starts.append(token.start[0])
        elif token.type == middle[1]:
            inside |= set(range(starts.pop() + 1, token.end[0] + 1))
    lines = code.splitlines()
    return "\n".join(
        line if number in inside or not line else f"    {line}" for number, line in enumerate(lines, 1)
    )
