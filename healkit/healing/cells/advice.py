"""Cell order: what a failing cell of a notebook lacks, and which cells give it.

Two thirds of the NameErrors in real notebooks are cells run out of order, or after a cell that failed; spelling is the
matter in one of fifteen. So the notebook is asked first: which cell gives the name a value, and what became of it.
Modules that were not imported come next, and names like it last. Nothing here runs anything or asks IPython; what is
known is handed in, and what is advised is data.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from healkit.healing.cells import words
from healkit.healing.cells.bindings import function_reads, functions_of
from healkit.healing.cells.imports import has_attribute, import_for, installed
from healkit.healing.cells.plan import Plan, Planner
from healkit.healing.cells.records import CellRun, NotebookFile
from healkit.healing.cells.world import Known, World

#: `not_run`: the defining cell was not run in this kernel. `later`: it was not run, and stands further down. `failed`:
#: it failed before or at the definition. `edited`: what ran of it was an earlier text. `removed`: the name was deleted
#: since. `deleted`: the cell is no longer in the notebook. `conditional`: its definition was passed by. `own`: the
#: failing cell itself defines it, further down. `scope`: it exists only inside of something. `import`: an import is
#: missing. `star`: a `from … import *` that was not run may bring it. `near`: there is a name like it. `stale`: the
#: failing function is not the one that the notebook shows.
AdviceKind = Literal[
    "not_run", "later", "failed", "edited", "removed", "deleted", "conditional", "own", "scope", "import", "star",
    "near", "stale",
]  # fmt: skip
#: `sure`: it follows from what is known. `likely`: something that could not be seen may speak against it.
Confidence = Literal["sure", "likely", "guess"]


@dataclass(frozen=True)
class CellStep:
    """One cell to run: its text, why, and where it stands (`number` from 1, None where it is not in the file)."""

    source: str
    why: str
    label: str
    number: int | None = None
    cell_id: str = ""


@dataclass(frozen=True)
class CellAdvice:
    """What is the matter, in one sentence, and the cells that mend it, in the order in which they are to be run."""

    kind: AdviceKind
    name: str
    sentence: str
    steps: tuple[CellStep, ...] = ()
    confidence: Confidence = "sure"

    @property
    def todo(self) -> str:
        """`Run cells 2 and 3, then this cell again.`; empty where running something is no help."""
        return words.todo([step.label for step in self.steps])


@dataclass(frozen=True)
class CellCase:
    """All that is known of a failing cell.

    failed: the run that failed; `failed.missing` is the name that the notebook's namespace lacks, if it was that.
    history: the kernel's runs before it. defined: the names that the kernel has. frames: function and prompt number
    of the traceback's frames that are cells' own, innermost first. earlier: asks the sessions before this kernel for
    runs that mention a name. near: names like it.
    """

    failed: CellRun
    history: Sequence[CellRun] = ()
    notebook: NotebookFile | None = None
    defined: frozenset[str] = frozenset()
    frames: tuple[tuple[str, int], ...] = ()
    earlier: Callable[[str], Sequence[CellRun]] = lambda _: ()
    near: tuple[str, ...] = ()
    installed: Callable[[str], bool] = installed

    def has(self, name: str) -> bool:
        """Whether the kernel has the name."""
        return name in self.defined or hasattr(builtins, name)


def advise(case: CellCase) -> CellAdvice | None:
    """What to run, or what is the matter; None where nothing can be said that is likelier right than wrong."""
    world = World(case.failed, case.history, case.notebook)
    stale = _stale(case, world)
    name = case.failed.missing
    if not name or case.has(name):
        return stale
    if stale is not None and name not in function_reads(stale.steps[-1].source, stale.name):
        return stale  # the function as it is now does not ask for that name any more
    return _from_a_cell(case, world, name) or _from_elsewhere(case, world, name) or stale


def _from_a_cell(case: CellCase, world: World, name: str) -> CellAdvice | None:
    """Advice where a cell of the notebook, or of its history, gives the name a value."""
    planner = Planner(world, case.has)
    giver = planner.need(name, world.here, f"defines `{name}`")
    if giver is None:
        return None
    line = giver.names.bound[name].line
    kind, sentence, confidence = _told(world, name, giver, line)
    for other in world.here.names.needs:
        if case.has(other):
            planner.called(other, world.here)
        elif other != name:
            planner.need(other, world.here, f"defines `{other}`, which this cell reads too")
    steps, more = _runnable(case, planner.plan(), giver)
    if giver.names.bound[name].under or (more and steps):
        confidence = "likely"
    return CellAdvice(kind, name, f"{sentence}{more}", steps, confidence)


def _told(world: World, name: str, giver: Known, line: int) -> tuple[AdviceKind, str, Confidence]:
    """What became of the cell that gives the name, in one sentence."""
    where, run = giver.where(line), giver.run
    if giver.gone:
        return "deleted", words.deleted(name, where), "likely"
    if giver.state == "not_run":
        later = giver.place > world.here.place
        return ("later" if later else "not_run"), words.not_run(name, where, later=later), "sure"
    if giver.state == "edited":
        assert giver.older is not None
        return "edited", words.edited(name, where, giver.older), "sure" if giver.older.at else "likely"
    assert run is not None
    if giver.state == "unknown":
        return "failed", words.unwatched(name, where), "likely"
    if giver.state == "failed" and (run.failed_line is None or line >= run.failed_line):
        return "failed", words.failed(name, where, run), "sure"
    by = words.removal(world.history, name)
    return "removed", words.removed(name, where, by), "sure" if by else "likely"


def _runnable(case: CellCase, plan: Plan, giver: Known) -> tuple[tuple[CellStep, ...], str]:
    """The steps of a plan, and what is to be said of it; no steps where running them would only fail again."""
    steps = [CellStep(cell.source, why, cell.label, cell.number, cell.cell_id) for cell, why in plan.steps]
    if plan.blocked:
        return (), words.blocked(plan.blocked, giver)
    unknown = any(cell.names.stars or cell.names.opaque for cell, _ in plan.steps)
    imports = []
    for name, reader in plan.lacking.items():
        line = import_for(name, reader.source)
        if line is not None and case.installed(line):
            imports.append(CellStep(line, f"imports `{name}` for {reader.label}", f"`{line}`"))
        elif not unknown:
            return (), words.lacking(name, reader)
    return (*imports, *steps), ""


def _from_elsewhere(case: CellCase, world: World, name: str) -> CellAdvice | None:
    """Advice where no cell's run would give the name: the particular before the general."""
    line = case.failed.failed_line or 0
    own = world.here.names
    for cell in world.binders(name, world.here.place):
        passed_by = cell.names.bound[name]
        sentence = words.conditional(name, cell.where(passed_by.line), passed_by)
        return CellAdvice("conditional", name, sentence, (), "likely")
    binding = own.bound.get(name)
    if binding is not None and (binding.under or binding.line > line):
        say = words.own_later if binding.line > line else words.own_passed_by
        return CellAdvice("own", name, say(name, binding))
    if name in own.deleted and own.deleted[name] < line:
        return CellAdvice("removed", name, words.own_deleted(name, own.deleted[name]))
    for cell in reversed(world.cells):
        if words.seems_to_define(name, cell.source) and not cell.names.parsed:
            return CellAdvice("failed", name, words.unreadable(name, cell), (), "likely")
    for run in case.earlier(name):
        if (found := Known(run.source, 0, run=run).names.bound.get(name)) is not None:
            step = CellStep(run.source, f"defined `{name}` in an earlier kernel", "that text")
            text = Known(run.source, 0).line(found.line)
            return CellAdvice("deleted", name, words.from_earlier(name, text), (step,), "likely")
    return _star(world, name) or _import(case, name) or _inside(world, name) or _near(case, name)


def _import(case: CellCase, name: str) -> CellAdvice | None:
    line = import_for(name, case.failed.source)
    if line is None:
        return None
    there = case.installed(line)
    step = CellStep(line, f"imports `{name}`", f"`{line}`")
    return CellAdvice(
        "import", name, words.imported(name, line, there=there), (step,) if there else (), "likely"
    )


def _inside(world: World, name: str) -> CellAdvice | None:
    above = sorted(world.cells, key=lambda cell: (cell.gone, cell.place > world.here.place, -cell.place))
    for cell in [world.here, *above]:
        if name in cell.source and (inner := cell.names.inner.get(name)) is not None:
            label = "this cell" if cell is world.here else cell.label
            return CellAdvice("scope", name, words.inside(name, inner, label), (), "likely")
    return None


def _star(world: World, name: str) -> CellAdvice | None:
    """A cell that was not run and imports everything from a module that has the name."""
    for cell in world.cells:
        if cell.state not in {"not_run", "edited"} or cell.gone or "*" not in cell.source:
            continue
        module = next((one for one in cell.names.stars if has_attribute(one, name)), None)
        if module is not None:
            step = CellStep(
                cell.source, f"imports everything from `{module}`", cell.label, cell.number, cell.cell_id
            )
            return CellAdvice("star", name, words.star(name, module, cell), (step,), "likely")
    return None


def _near(case: CellCase, name: str) -> CellAdvice | None:
    near = [one for one in case.near if one in case.defined]
    return CellAdvice("near", name, words.near(name, near), (), "guess") if near else None


def _stale(case: CellCase, world: World) -> CellAdvice | None:
    """Advice where a function of the traceback is not what the notebook shows of it now."""
    for function, count in case.frames:
        run = world.run_numbered(count)
        if run is None or run.source == world.failed.source:
            continue
        before = functions_of(run.source).get(function)
        for cell in [world.cell_of(run), *world.cells]:
            now = functions_of(cell.source).get(function)
            if before is None or now is None or cell.gone or cell.state not in {"edited", "not_run"}:
                continue
            if now == before:
                break
            planner = Planner(world, case.has)
            planner.take(cell, f"defines `{function}` as it is now")
            steps, more = _runnable(case, planner.plan(), cell)
            if not steps:
                break
            steps = tuple(sorted(steps, key=lambda step: step.source == cell.source))
            return CellAdvice("stale", function, words.stale(function, count, cell) + more, steps)
    return None


__all__ = ["AdviceKind", "CellAdvice", "CellCase", "CellStep", "Confidence", "advise"]
