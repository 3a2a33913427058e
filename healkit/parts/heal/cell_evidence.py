"""Evidence on a cell's edits: their data, and cells below.

Each edit that runs is run once more. The parts that it changes are watched, and the cells below run after it. All of
that happens in a worker: no effect of it reaches the notebook.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from healkit.core.contracts.patches import Check, Edit, apply_edits
from healkit.core.pysource.nodes import called_name, read_names
from healkit.core.runtime import background
from healkit.core.runtime.recording import Recorder
from healkit.parts.cells.cell_program import CellProgram, free_names
from healkit.parts.cells.dataflow import dataflow_of, read_cell
from healkit.parts.cells.notebook_file import CellRun
from healkit.parts.cells.own_cells import FailingCell, prompt_of
from healkit.parts.explain.edit_kinds import is_misspelling
from healkit.parts.explain.source import Source
from healkit.parts.heal.context import CellCase
from healkit.parts.heal.records import Patch
from healkit.parts.trials.trials import Trial, Trials

#: Cells below that are run after a fix, the time for all of them in seconds, and the characters of an error quoted.
_BELOW_MAX, _BELOW_S, _QUOTED_CHARS, _SENTENCES_MAX = 6, 3.0, 120, 5
_SEEN = "__healkit_seen__"
_SETUP = f"from healkit.parts.trials.table_changes import Seen\n{_SEEN} = Seen()"
#: Expressions whose value an edit may work on.
_OPERANDS = ast.Name | ast.Attribute | ast.Subscript | ast.Call
#: The text of the cell's value, as a notebook saves it.
_SHOWN = "__import__('IPython.lib.pretty', fromlist=['pretty']).pretty(_)"
#: Runs the cells below; gives the number of those that ran, and the error of the one that did not.
_RUN_ON = """
import contextlib as __contextlib, io as __io, time as __time
__ran, __raised, __begun = 0, "", __time.monotonic()
for __text in {texts!r}:
    if __time.monotonic() - __begun > {limit_s}:
        break
    try:
        with __contextlib.redirect_stdout(__io.StringIO()), __contextlib.redirect_stderr(__io.StringIO()):
            exec(compile(__text, "<below>", "exec"), globals())
    except Exception as __error:
        __raised = f"{{type(__error).__name__}}: {{__error}}"
        break
    __ran += 1
[__ran, __raised]
"""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Measurements of an edit; empty without any.

    lost: Lost data, in sentences.
    unsure: Ambiguous dates.
    rows: Rows that are left out.
    gives_saved: Whether the cell's value is the one saved in the notebook.
    ran_on: Number of the cells below that ran after it.
    stops: How the next of them then fails, empty if none does.
    """

    lost: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    gives_saved: bool = False
    ran_on: int = 0
    stops: str = ""


@dataclasses.dataclass(frozen=True)
class Below:
    """Cells below the failing one that can be run after it: their texts as Python, and their labels."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names that they read and do not bind themselves."""
        return free_names("\n".join(self.texts))

    def after(self, program: CellProgram) -> Below:
        """Return those that find all names that they read, up to the first that does not."""
        last = program.segments[-1].run.source
        defined = (
            program.later | program.given.keys() | dataflow_of(last).bound.keys() | vars(builtins).keys()
        )
        for place, text in enumerate(self.texts):
            if not defined.issuperset(free_names(text)):
                return Below(self.texts[:place], self.labels[:place])
            defined |= dataflow_of(text).bound.keys()
        return self


def below(cell: FailingCell) -> Below:
    """Return the next cells below a failing one, up to the first that is not plain Python."""
    cells: list[tuple[str, str]] = []
    for source, label in cell.below[:_BELOW_MAX]:
        text = read_cell(source)
        if text.tree is None or text.code != source or _awaits(text.tree):
            break
        cells.append((source, label))
    return Below(tuple(source for source, _ in cells), tuple(label for _, label in cells))


def measured(
    given: CellCase, recorder: Recorder, codes: Sequence[str], following: Below, saved: str, left_s: float
) -> list[Evidence]:
    """Measure edits of a cell's program, each together with the cells below; one for each code.

    saved: The saved result of the cell in the notebook.
    left_s: Time for all of it.

    Raises as trials do.
    """
    (check,), before = given.case.checks, given.case.entry.code
    trials: list[tuple[int, Callable[[Any], dict[str, Any]], Trial]] = []
    limit_s = max(0.5, min(left_s, _BELOW_S + 2.0))
    for number, code in enumerate(codes):
        if (watched := watched_code(before, code)) is not None:
            call = f"{_SEEN}.sentences()"
            trials.append(
                (number, _changes, _trial(check, watched, call, f"{check.setup}\n{_SETUP}", limit_s))
            )
        if saved:
            trials.append(
                (
                    number,
                    lambda shown: {"gives_saved": shown == saved},
                    _trial(check, code, _SHOWN, check.setup, limit_s),
                )
            )
        if following.texts:
            call = _RUN_ON.format(texts=list(following.texts), limit_s=_BELOW_S)
            trials.append((number, _ran_on, _trial(check, code, call, check.setup, limit_s)))
    evidence = [Evidence() for _ in codes]
    if not trials:
        return evidence
    run = Trials(recorder, given.config).run([trial for *_, trial in trials], read=given.fixture.read)
    results = background.loop.wait_for(run)
    for (number, read, _), result in zip(trials, results, strict=True):
        if result.failure is None:
            evidence[number] = dataclasses.replace(evidence[number], **read(result.value))
    return evidence


def _trial(check: Check, code: str, call: str, setup: str, limit_s: float) -> Trial:
    return Trial(code, name=check.shown, timeout_s=limit_s, call=call, setup=setup)


def _changes(value: Any) -> dict[str, Any]:
    """Read the sentences on changes; a worker's report is not trusted."""
    claim = value if isinstance(value, dict) else {}
    lists = {name: claim.get(name) for name in ("lost", "unsure", "rows")}
    return {
        name: tuple(text[:_QUOTED_CHARS] for text in texts[:_SENTENCES_MAX] if isinstance(text, str))
        for name, texts in lists.items()
        if isinstance(texts, list)
    }


def _ran_on(value: Any) -> dict[str, Any]:
    match value:
        case [int(ran), str(raised)]:
            return {"ran_on": min(max(ran, 0), _BELOW_MAX), "stops": " ".join(raised.split())[:_QUOTED_CHARS]}
    return {}


def _awaits(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in ast.walk(tree))


# Names that are misspelt where they are made.


def misspelt_where_made(cell: FailingCell) -> tuple[str, CellRun, str] | None:
    """Return the name that an earlier cell bound instead of the missing one, that cell, and its corrected text.

    Only if cells below read the missing name, and no cell reads the other name or binds it again.
    """
    wanted, following = cell.run.missing, [text for text, _ in cell.below if text != cell.run.source]
    ran = [run for run in cell.history if run.ok and run.source != cell.run.source]
    if not wanted or not any(wanted in free_names(text) for text in following):
        return None
    trees = [read_cell(text).tree for text in (*following, *(run.source for run in ran))]
    read = {name for tree in trees if tree is not None for name in read_names(tree)}
    for run in reversed(ran):
        bound_here = dataflow_of(cell.run.source).bound.keys()
        for spelling in dataflow_of(run.source).bound.keys() - read - bound_here - {wanted}:
            text = re.sub(rf"(?<![\w.]){re.escape(spelling)}(?!\w)", wanted, run.source)
            near = is_misspelling(wanted, spelling) or _has_words_of(wanted, spelling)
            if near and spelling in cell.namespace and wanted in dataflow_of(text).bound:
                return spelling, run, text
    return None


def renamed_where_made(cell: FailingCell, program: CellProgram, given: str, run: CellRun, text: str) -> Patch:
    """Return the program with the corrected text of a cell above, in which the name is the missing one."""
    segment, lines = next(part for part in program.segments if part.run is run), program.code.split("\n")
    lines[segment.start - 1 : segment.start - 1 + segment.count] = text.split("\n")
    near = is_misspelling(cell.run.missing, given)
    return Patch(
        code="\n".join(lines),
        advisor="rules",
        author="rule",
        reason=f"{prompt_of(run)} writes `{cell.run.missing}` as `{given}`, which no other cell reads.",
        kind="renames" if near else "migrates",
    )


def _has_words_of(one: str, other: str) -> bool:
    """Return whether one name is the other with an additional word, such as `orders_clean`."""
    ours, theirs = set(one.split("_")), set(other.split("_"))
    return ours < theirs or theirs < ours


# Names that a cell above bound anew.


#: Drops one column of a table, and does nothing else.
_DROPS_ONE = re.compile(r"\w+\.drop\((columns=)?\[?'[^']*'\]?(, axis=(1|'columns'))?\)")


def overwritten(cell: FailingCell, program: CellProgram) -> Iterator[Patch]:
    """Yield the program without an assignment above that overwrote a name that this cell reads.

    A name counts as overwritten only if its type, or its columns, changed, which is measured. If other cells read the
    new value as a whole, a person has to say which is meant.
    """
    wanted = set(free_names(cell.run.source))
    source = Source(program.code)
    for statement in reversed(source.tree.body):
        segment, line = program.cell_at(statement.lineno) or (program.segments[-1], 0)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if segment.run in program.above:
                text = ast.unparse(value)
                if name not in wanted.intersection(free_names(text)):
                    continue
                start = source.span(statement)[0]
                assignment = re.match(r"\w+\s*=\s*", source.text[start:])
                ends = line + (statement.end_lineno or 0) - statement.lineno
                rest = "\n".join(segment.run.source.split("\n")[ends:])
                later = [run.source for run in cell.history if (run.count or 0) > (segment.run.count or 0)]
                readers = [rest, *later, *(text for text, _ in cell.below if text != cell.run.source)]
                now, cell_source = program.given.get(name), cell.run.source
                often = hasattr(now, "columns") or len(re.findall(rf"\b{name}\b", cell_source)) > 1
                readers += [cell_source] if often and not _DROPS_ONE.fullmatch(text) else []
                unsure = now is not None and any(_reads_all(reader, name) for reader in readers)
                yield Patch(
                    code=apply_edits(source.text, [Edit(start, start + assignment.end(), "")])
                    if assignment
                    else "",
                    advisor="rules",
                    author="rule",
                    reason=f"This cell needs the value that `{name}` had before line {statement.lineno}.",
                    rank=0.9,
                    kind="assumes" if unsure else "restores",
                )


def _reads_all(text: str, name: str) -> bool:
    """Return whether code may read more of a table than the columns that it names."""
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)(?!\[\[?['\"])", text) is not None


# The code with its changed parts watched.


def watched_code(before: str, after: str) -> str | None:
    """Return the new code with the changed parts watched; None if the edit changes no expression."""
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError):
        return None
    expressions = {ast.dump(node) for node in ast.walk(old) if isinstance(node, ast.expr)}
    statements = {ast.dump(node) for node in ast.walk(old) if isinstance(node, ast.stmt)}
    changed = [
        node
        for node in ast.walk(new)
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and ast.dump(node) not in statements
    ]
    watcher = _Watcher(expressions)
    for statement in changed:
        watcher.visit(statement)
    if not watcher.results or not watcher.operands:
        return None
    try:
        return ast.unparse(ast.fix_missing_locations(new))
    except (ValueError, RecursionError):
        return None


class _Watcher(ast.NodeTransformer):
    """Puts a call around each new expression, and around the largest old ones in it."""

    def __init__(self, known: set[str]) -> None:
        self._known = known
        self.operands = self.results = 0

    def visit(self, node: ast.AST) -> Any:
        """Watch an expression that is read; called by `ast`."""
        if isinstance(node, ast.JoinedStr | ast.Lambda | ast.GeneratorExp | ast.ListComp):
            return node
        if not isinstance(node, _OPERANDS) or not isinstance(
            getattr(node, "ctx", None) or ast.Load(), ast.Load
        ):
            return self.generic_visit(node)
        if ast.dump(node) in self._known:
            self.operands += 1
            return _call("operand", ast.Constant(self.operands), node)
        if isinstance(node, ast.Name):
            return node
        if isinstance(node, ast.Call):  # the method itself is not a value
            if isinstance(node.func, ast.Attribute):
                node.func.value = self.visit(node.func.value)
            node.args, node.keywords = [*map(self.visit, node.args)], [*map(self.visit, node.keywords)]
        else:
            self.generic_visit(node)
        self.results += 1
        name = called_name(node) if isinstance(node, ast.Call) else ""
        return _call("result", node, ast.Constant(name))


def _call(method: str, *given: ast.expr) -> ast.Call:
    owner = ast.Attribute(ast.Name(_SEEN, ast.Load()), method, ast.Load())
    return ast.Call(owner, list(given), [])


def is_refuted(evidence: Evidence, following: Below, cell: FailingCell) -> bool:
    """Return whether the failing cell below reads a result of the healed cell."""
    if not evidence.stops or evidence.ran_on >= len(following.texts):
        return False
    text = following.texts[evidence.ran_on]
    dataflow = dataflow_of(cell.run.source)
    return bool((dataflow.bound.keys() | dataflow.mutated) & set(free_names(text)))


def sentences(evidence: Evidence, following: Below, *, refuted: bool) -> Iterator[str]:
    """Yield the evidence for an edit, in sentences.

    refuted: Evidence against it.
    """
    if evidence.gives_saved:
        yield "The notebook contains the same saved result."
    if evidence.ran_on:
        many = "The next cell runs" if evidence.ran_on == 1 else f"The next {evidence.ran_on} cells run"
        yield f"{many} too."
    if refuted:
        yield f"{following.labels[evidence.ran_on]} then fails: {evidence.stops}."
