"""Advice on a failing cell: which cells define what it lacks.

In real notebooks, two thirds of the NameErrors come from cells that ran out of order, or after a failed cell. One in
fifteen is a misspelling. So the notebook is searched first: which cell defines the name, and did it run? Missing
imports come next, similar names last. Nothing here runs code or calls IPython: facts go in, advice comes out as data.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from healkit.parts.cells import messages
from healkit.parts.cells.dataflow import dataflow_of, function_reads, functions_of, read_cell
from healkit.parts.cells.notebook_file import CellRun, NotebookFile
from healkit.parts.cells.notebook_state import Cell, NotebookState, RerunPlan, RerunPlanner

#: `not_run`: the defining cell was not run in this kernel. `later`: it was not run, and is further down. `failed`: it
#: failed before or at the definition. `edited`: an earlier text of it was run. `removed`: the name was deleted since.
#: `deleted`: the cell is no longer in the notebook. `conditional`: its definition was skipped. `own`: the failing cell
#: defines it itself, further down. `scope`: it exists only inside of a function, class or block. `import`: an import is
#: missing. `star`: a `from … import *` that was not run may define it. `near`: there is a similar name. `stale`: the
#: failing function is an older one than the notebook shows.
AdviceKind = Literal[
    "not_run", "later", "failed", "edited", "removed", "deleted", "conditional", "own", "scope", "import", "star",
    "near", "stale",
]  # fmt: skip
#: `sure`: it follows from the known facts. `likely`: something that healkit cannot see may contradict it.
Confidence = Literal["sure", "likely", "guess"]


@dataclass(frozen=True)
class CellStep:
    """Cell to run: its text, the reason, and its number (from 1; None if it is not in the file)."""

    source: str
    why: str
    label: str
    number: int | None = None
    cell_id: str = ""


@dataclass(frozen=True)
class CellAdvice:
    """Cause of a failure in one sentence, and the cells to run, in order.

    moves: The cells below the failing cell that may be moved above it, so that Run All works too.
    """

    kind: AdviceKind
    name: str
    sentence: str
    steps: tuple[CellStep, ...] = ()
    confidence: Confidence = "sure"
    moves: tuple[CellStep, ...] = ()

    @property
    def reruns(self) -> bool:
        """True if cells of the notebook must run; a missing import is an edit of this cell instead."""
        return bool(self.steps) and self.kind != "import"

    @property
    def todo(self) -> str:
        """`Run cells 2 and 3, then this cell again.`; empty if running cells does not help."""
        message = messages.todo([step.label for step in self.steps])
        return f"{message} {messages.move([step.label for step in self.moves])}".rstrip()


@dataclass(frozen=True)
class CellCase:
    """Known facts about a failing cell.

    failed: The failed run; `failed.missing` is the missing name, if the failure was about one.
    history: The kernel's earlier runs.
    defined: The names that the kernel has.
    frames: Function and prompt number of the traceback's own cells, innermost first.
    earlier: Searches the sessions before this kernel for runs that mention a name.
    near: Similar names.
    """

    failed: CellRun
    history: Sequence[CellRun] = ()
    notebook: NotebookFile | None = None
    defined: frozenset[str] = frozenset()
    frames: tuple[tuple[str, int], ...] = ()
    earlier: Callable[[str], Sequence[CellRun]] = lambda _: ()
    near: tuple[str, ...] = ()
    installed: Callable[[str], bool] = field(default_factory=lambda: installed)

    def has(self, name: str) -> bool:
        """Return whether the kernel has the name."""
        return name in self.defined or hasattr(builtins, name)


def advise(case: CellCase) -> CellAdvice | None:
    """Return which cells to run, or the cause; None if no advice is more likely right than wrong."""
    state = NotebookState(case.failed, case.history, case.notebook)
    stale = _stale(case, state)
    name = case.failed.missing
    if not name or case.has(name):
        return stale
    if stale is not None and name not in function_reads(stale.steps[-1].source, stale.name):
        return stale  # the function's present text does not read that name
    return _from_a_cell(case, state, name) or _from_elsewhere(case, state, name) or stale


def _from_a_cell(case: CellCase, state: NotebookState, name: str) -> CellAdvice | None:
    """Return advice if a cell of the notebook or its history binds the name."""
    planner = RerunPlanner(state, case.has)
    definer = planner.require(name, state.failed_cell, f"defines `{name}`")
    if definer is None:
        return None
    line = definer.flow.bound[name].line
    kind, sentence, confidence = _cause(state, name, definer, line)
    for read_name in state.failed_cell.flow.reads:
        if case.has(read_name):
            planner.require_deferred(read_name, state.failed_cell)
        elif read_name != name:
            planner.require(read_name, state.failed_cell, f"defines `{read_name}`, which this cell reads too")
    plan = planner.plan()
    steps, more = _runnable(case, plan, definer)
    if definer.flow.bound[name].under or (more and steps):
        confidence = "likely"
    below = _movable(state, plan) if steps else []
    moves = tuple(step for step in steps if any(step.source == cell.source for cell in below))
    return CellAdvice(kind, name, f"{sentence}{more}", steps, confidence, moves)


def _movable(state: NotebookState, plan: RerunPlan) -> list[Cell]:
    """Return the cells of a plan below the failing one; none if moving them above it would change another cell."""
    here = state.failed_cell.position
    below = [cell for cell, _ in plan.steps if cell.position > here and not cell.deleted]
    remaining = [cell for cell in state.cells if cell not in below and not cell.deleted]
    lowest = max((cell.position for cell in below), default=here)
    between = [cell.flow for cell in remaining if here < cell.position < lowest]
    if any(cell.number is None or cell.flow.opaque for cell in below) or any(flow.opaque for flow in between):
        return []
    above = {name for cell in remaining if cell.position < here for name in cell.flow.bound}
    defined = {name for cell in below for name in (*cell.flow.bound, *cell.flow.mutated)}
    used = defined | {name for cell in below for name in (*cell.flow.reads, *cell.flow.deferred_reads)}
    changed = {name for flow in between for name in (*flow.bound, *flow.mutated)}
    return [] if defined & above or used & (changed | state.failed_cell.flow.bound.keys()) else below


def _cause(state: NotebookState, name: str, definer: Cell, line: int) -> tuple[AdviceKind, str, Confidence]:
    """Return what happened to the cell that binds the name, in one sentence."""
    where, run = definer.where(line), definer.run
    if definer.deleted:
        return "deleted", messages.deleted(name, where), "likely"
    if definer.state == "not_run":
        later = definer.position > state.failed_cell.position
        return ("later" if later else "not_run"), messages.not_run(name, where, later=later), "sure"
    if definer.state == "edited":
        assert definer.older is not None
        return "edited", messages.edited(name, where, definer.older), "sure" if definer.older.at else "likely"
    assert run is not None
    if definer.state == "unknown":
        return "failed", messages.unwatched(name, where), "likely"
    if definer.state == "failed" and (run.failed_line is None or line >= run.failed_line):
        return "failed", messages.failed(name, where, run), "sure"
    by = messages.removal(state.history, name)
    return "removed", messages.removed(name, where, by), "sure" if by else "likely"


def _runnable(case: CellCase, plan: RerunPlan, definer: Cell) -> tuple[tuple[CellStep, ...], str]:
    """Return the steps of a plan and a sentence about it; no steps if they would fail again."""
    steps = [CellStep(cell.source, why, cell.label, cell.number, cell.cell_id) for cell, why in plan.steps]
    if plan.blocked:
        return (), messages.blocked(plan.blocked, definer)
    unknown = any(cell.flow.star_imports or cell.flow.opaque for cell, _ in plan.steps)
    imports = []
    for name, reader in plan.lacking.items():
        line = import_for(name, reader.source)
        if line is not None and case.installed(line):
            imports.append(CellStep(line, f"imports `{name}` for {reader.label}", f"`{line}`"))
        elif not unknown:
            return (), messages.lacking(name, reader)
    return (*imports, *steps), ""


def _from_elsewhere(case: CellCase, state: NotebookState, name: str) -> CellAdvice | None:
    """Return advice if running a cell would not bind the name; specific causes first."""
    line = case.failed.failed_line or 0
    flow = state.failed_cell.flow
    for cell in state.cells_binding(name, state.failed_cell.position):
        passed_by = cell.flow.bound[name]
        if not passed_by.under:
            continue  # it reads the name first
        sentence = messages.conditional(name, cell.where(passed_by.line), passed_by)
        return CellAdvice("conditional", name, sentence, (), "likely")
    binding = flow.bound.get(name)
    if binding is not None and (binding.under or binding.line > line):
        say = messages.own_later if binding.line > line else messages.own_passed_by
        return CellAdvice("own", name, say(name, binding))
    if name in flow.deleted and flow.deleted[name] < line:
        return CellAdvice("removed", name, messages.own_deleted(name, flow.deleted[name]))
    for cell in reversed(state.cells):
        if messages.seems_to_define(name, cell.source) and not cell.flow.parsed:
            return CellAdvice("failed", name, messages.unreadable(name, cell), (), "likely")
    for run in case.earlier(name):
        if (earlier_binding := Cell(run.source, 0, run=run).flow.bound.get(name)) is not None:
            step = CellStep(run.source, f"defined `{name}` in an earlier kernel", "that text")
            text = Cell(run.source, 0).line(earlier_binding.line)
            return CellAdvice("deleted", name, messages.from_earlier(name, text), (step,), "likely")
    return _star(state, name) or _import(case, name) or _inside(state, name) or _near(case, name)


def _import(case: CellCase, name: str) -> CellAdvice | None:
    line = import_for(name, case.failed.source)
    if line is None:
        return None
    there = case.installed(line)
    step = CellStep(line, f"imports `{name}`", f"`{line}`")
    return CellAdvice(
        "import", name, messages.imported(name, line, there=there), (step,) if there else (), "likely"
    )


def _inside(state: NotebookState, name: str) -> CellAdvice | None:
    here = state.failed_cell.position
    above = sorted(
        state.cells,
        key=lambda cell: (cell.deleted, cell.position > here, -cell.position),
    )
    for cell in [state.failed_cell, *above]:
        if name in cell.source and (inner := cell.flow.inner_names.get(name)) is not None:
            label = "this cell" if cell is state.failed_cell else cell.label
            return CellAdvice("scope", name, messages.inside(name, inner, label), (), "likely")
    return None


def _star(state: NotebookState, name: str) -> CellAdvice | None:
    """Return advice if an unrun cell imports everything from a module that has the name."""
    for cell in state.cells:
        if cell.state not in {"not_run", "edited"} or cell.deleted or "*" not in cell.source:
            continue
        module = next(
            (candidate for candidate in cell.flow.star_imports if has_attribute(candidate, name)), None
        )
        if module is not None:
            step = CellStep(
                cell.source, f"imports everything from `{module}`", cell.label, cell.number, cell.cell_id
            )
            return CellAdvice("star", name, messages.star(name, module, cell), (step,), "likely")
    return None


def _near(case: CellCase, name: str) -> CellAdvice | None:
    near = [candidate for candidate in case.near if candidate in case.defined]
    return CellAdvice("near", name, messages.near(name, near), (), "guess") if near else None


def _stale(case: CellCase, state: NotebookState) -> CellAdvice | None:
    """Return advice if a function of the traceback is older than the text in the notebook.

    That text belongs to the cell that ran, or to a cell between it and the failing one. Definitions further down do not
    count.
    """
    here = state.failed_cell.position
    for function, count in case.frames:
        run = state.run_with_count(count)
        if run is None or run.source == state.failed_run.source:
            continue
        before, run_cell = functions_of(run.source).get(function), state.cell_of(run)
        first = -1.0 if run_cell.deleted else run_cell.position
        for cell in [run_cell, *(cell for cell in state.cells if first < cell.position < here)]:
            now = functions_of(cell.source).get(function)
            if before is None or now is None or cell.deleted or cell.state not in {"edited", "not_run"}:
                continue
            if now == before:
                break
            planner = RerunPlanner(state, case.has)
            planner.add(cell, f"defines `{function}` as it is now")
            steps, more = _runnable(case, planner.plan(), cell)
            if not steps:
                break
            steps = tuple(sorted(steps, key=lambda step: step.source == cell.source))
            return CellAdvice("stale", function, messages.stale(function, count, cell) + more, steps)
    return None


# Import lines for names that a cell lacks
#
# Many module names are ordinary variable names in notebooks (`code`, `test`, `string`). So the use of the name decides:
# the cell reads an attribute that the module has, or calls the class or function. The table is short on purpose. The
# rules for tools have a larger one, but it belongs to their advisor, which takes too long to load for a card.


#: Conventional aliases in notebooks.
ALIASES = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "mpl": "import matplotlib as mpl",
    "sns": "import seaborn as sns",
    "px": "import plotly.express as px",
    "tf": "import tensorflow as tf",
    "nx": "import networkx as nx",
    "sp": "import scipy as sp",
    "dt": "import datetime as dt",
    "ET": "import xml.etree.ElementTree as ET",
}
MODULES = frozenset(
    {"numpy", "pandas", "scipy", "matplotlib", "seaborn", "sklearn", "requests", "sympy", "networkx", "torch"}
)
_HOMES = {
    "collections": "Counter defaultdict OrderedDict deque namedtuple ChainMap",
    "dataclasses": "dataclass asdict",
    "datetime": "datetime timedelta date timezone",
    "decimal": "Decimal",
    "enum": "Enum IntEnum",
    "fractions": "Fraction",
    "functools": "reduce partial lru_cache",
    "io": "StringIO BytesIO",
    "itertools": "chain combinations permutations product accumulate groupby islice zip_longest",
    "math": "sqrt ceil floor pi inf factorial log log10 sin cos tan exp",
    "operator": "itemgetter attrgetter",
    "pathlib": "Path",
    "pprint": "pprint",
    "random": "randint choice shuffle uniform",
    "copy": "deepcopy",
    "statistics": "mean median stdev",
    "time": "sleep perf_counter",
    "types": "SimpleNamespace",
    "typing": "Any Callable Dict List Optional Tuple Union Literal NamedTuple",
    "urllib.request": "urlopen",
}
HOMES = {name: module for module, names in _HOMES.items() for name in names.split()}
#: Names of `HOMES` that are plain values, which a cell reads without calling them.
_VALUES = frozenset({"pi", "inf"})
_SOURCE_MAX_BYTES = 2_000_000


def import_for(name: str, source: str) -> str | None:
    """Return the line that imports a name, if the cell uses it in the usual way; otherwise None."""
    uses = set(_uses(name, source))
    attributes = {use for use in uses if use not in {"()", ""}}
    if name in ALIASES:
        return ALIASES[name] if attributes or not uses else None
    if name in HOMES:
        home = HOMES[name]
        if name in MODULES and attributes and all(has_attribute(name, attribute) for attribute in attributes):
            return f"import {name}"
        called = "()" in uses or name in _VALUES or (name[:1].isupper() and bool(uses))
        if called or (attributes and name[:1].isupper()) or name == "datetime":
            return f"from {home} import {name}"
        return None
    if (name in MODULES or name in sys.stdlib_module_names) and attributes and uses == attributes:
        return f"import {name}" if all(has_attribute(name, attribute) for attribute in attributes) else None
    return None


def installed(line: str) -> bool:
    """Return whether the module of an import line is installed; imports nothing."""
    tree = ast.parse(line).body[0]
    assert isinstance(tree, ast.Import | ast.ImportFrom)
    module = tree.module if isinstance(tree, ast.ImportFrom) else tree.names[0].name
    root = (module or "").partition(".")[0]
    try:
        return root in sys.modules or importlib.util.find_spec(root) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _uses(name: str, source: str) -> Iterator[str]:
    """Yield how a cell uses a name: `()` for a call, an attribute's name, or an empty text."""
    tree = read_cell(source).tree
    for node in ast.walk(tree) if tree is not None else ():
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name) and child.id == name and isinstance(child.ctx, ast.Load):
                if isinstance(node, ast.Attribute):
                    yield node.attr
                else:
                    yield "()" if isinstance(node, ast.Call) and node.func is child else ""


def has_attribute(module: str, attribute: str) -> bool:
    """Return whether a module has an attribute, as far as its source shows; imports nothing."""
    if (loaded := sys.modules.get(module)) is not None:
        return attribute in vars(loaded)
    try:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return spec is not None
        file = Path(spec.origin)
        if file.stat().st_size > _SOURCE_MAX_BYTES:
            return True
        flow = dataflow_of(file.read_text("utf-8"))
    except (ImportError, ValueError, AttributeError, OSError):
        return False
    return attribute in flow.bound or bool(flow.star_imports) or "__getattr__" in flow.bound
