"""Healing of a notebook's own failing cell.

The cell becomes a program of its own (`cells.cell_program`), and the values that it needs go into a snapshot file,
which each trial maps. Then it is healed like a tool, by the same loop; the result is an edit of one cell. Nothing runs
in the user's kernel, and nothing in it changes.
"""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import functools
import itertools
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import Check, CheckResult, Observed
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing.values import CannotCross
from healkit.core.rendering import cleaning
from healkit.core.runtime import background
from healkit.core.secrets.cleaner import UNLIMITED, RecordCleaner, learn
from healkit.core.secrets.secret_names import named_secrets
from healkit.core.store.entries import code_hash
from healkit.core.workers.tiers import achieved_tier
from healkit.errors import HealError
from healkit.parts.cells import snapshot_file
from healkit.parts.cells.cell_program import (
    CellProgram,
    changed_in,
    free_names,
    is_own_code,
    made_by,
    program_of,
    why_refused,
)
from healkit.parts.cells.dataflow import dataflow_of
from healkit.parts.cells.notebook_file import CellRun
from healkit.parts.cells.own_cells import FailingCell, notebook_cells, prompt_of
from healkit.parts.explain.edit_kinds import (
    has_same_words,
    kind_of,
    may_be_a_fix,
    only_renames_attributes,
    worse,
)
from healkit.parts.explain.explanation import MatchedFailure, explain
from healkit.parts.explain.fixes import change_of
from healkit.parts.heal.advisor import Advisor, Case, advisors_for
from healkit.parts.heal.advisors.simple import RulesAdvisor
from healkit.parts.heal.cell_edits import edited_cell, in_cell
from healkit.parts.heal.cell_evidence import (
    Evidence,
    below,
    is_refuted,
    measured,
    misspelt_where_made,
    overwritten,
    renamed_where_made,
    sentences,
)
from healkit.parts.heal.context import CellCase, HealOptions
from healkit.parts.heal.loop import run_healing
from healkit.parts.heal.records import Attempt, CellFix, CellOutcome, CellPlace, Patch
from healkit.parts.heal.report import CellReport, HealReport
from healkit.parts.trials.trials import Fixture, Held, Trial, TrialResult, Trials
from healkit.parts.trials.trialserver import TrialServers

if TYPE_CHECKING:
    from healkit.config import Config
    from healkit.services import Services

#: Wall time of the cell as it is, of all healing, and how many statements may be left out one after the other.
_BASE_S, _LEFT_OUT_MAX = 20.0, 4
#: Mistakes in one cell that are looked for, one after the other.
_ROUNDS_MAX = 2
#: Number of fixes in a report, of files that a cell names, and of readings of a text that is not Python.
_FIXES_MAX, _FILES_MAX, _READINGS_MAX = 4, 20, 3
#: Edits by rules with the cells above that are run, and of assignments there.
_ABOVE_MAX = 4
#: Difference of ranks up to which a further edit is listed.
_AS_LIKELY = 0.02
#: Memory that a trial gets for what it makes of the values, by their size.
_MEMORY_TIMES = 3
#: Libraries that take long to import: a trial server has them ready. Of the others, the parts that the notebook uses.
_SLOW = ("pandas", "numpy", "matplotlib.pyplot", "polars", "pyarrow", "scipy", "sklearn")
_SLOW_PARTS = frozenset(
    ("sklearn", "scipy", "seaborn", "statsmodels", "plotly", "xarray", "networkx", "altair", "bokeh")
)
_PARTS_MAX = 12
#: Evaluated after the cell: what it gave, in words.
_GAVE = "__import__('healkit.parts.cells.snapshot_file', fromlist=['described']).described(_)"
#: The same, and the forms of names.
_FORMS = (
    "[" + _GAVE + ", *map(" + _GAVE.replace("described(_)", "form_of") + ", map(globals().get, {names!r}))]"
)
_LOAD = (
    "globals().update(__import__('healkit.parts.cells.snapshot_file', fromlist=['load_snapshot'])"
    ".load_snapshot({folder!r}, {files!r}))"
)
_SEARCH_TOO = "`%heal --with rules,search` also tries random small edits; check those carefully."
_FILE_FRAME = re.compile(r'File "<In \[(\d+)\]>", line (\d+)')


_Edit = tuple[Patch, CellFix]


@dataclasses.dataclass(frozen=True)
class _Ready:
    """Prepared cell: its program as a case, and its result without a patch."""

    program: CellProgram
    given: CellCase
    base: Observed


@dataclasses.dataclass(frozen=True)
class _Weighed:
    """Edits by kind: fixes, readings that only a person can choose from, and edits that are not fixes."""

    fixes: list[CellFix] = dataclasses.field(default_factory=list)
    readings: list[CellFix] = dataclasses.field(default_factory=list)
    not_fixes: list[CellFix] = dataclasses.field(default_factory=list)


def _standing(kind: str, verdict: str | None) -> str:
    """Return the field of `_Weighed` for an edit of that kind and verdict."""
    if verdict == "silenced" or kind in ("invents", "discards"):
        return "not_fixes"
    return "readings" if kind == "assumes" else "fixes"


def _freed(fix: CellFix) -> set[str]:
    """Return the names that a cell no longer binds with an edit."""
    return dataflow_of(fix.before).bound.keys() - dataflow_of(fix.code).bound.keys()


def _with_evidence(fix: CellFix, seen: Evidence, support: tuple[str, ...]) -> CellFix:
    """Return an edit with its measurements: a loss of data makes it an edit that discards."""
    is_spelling = fix.kind == "renames" and only_renames_attributes(fix.before, fix.code)
    lost = seen.lost
    if is_spelling or has_same_words(fix.before, fix.code):  # what it does to the data, its author wrote
        lost, support = (), (*support, *seen.lost)
    if fix.kind == "migrates":  # what the successor fills in, the removed interface did
        lost = tuple(text for text in lost if not text.endswith("filled in."))
    kind = worse(fix.kind, "discards" if lost else "assumes" if seen.unsure else fix.kind)
    return dataclasses.replace(
        fix,
        kind=kind,
        lost=(*lost, *(seen.rows if kind == "discards" else ())),
        unknown=(*seen.unsure, *fix.unknown),
        support=support,
    )


class CellHealing:
    """Healing of one failing cell."""

    def __init__(
        self,
        hk: Services,
        cell: FailingCell,
        *,
        advisors: Sequence[str | Advisor] | None,
        budget_s: float,
        progress: Callable[[str], None] | None,
        stop: threading.Event,
    ) -> None:
        self._hk, self._cell, self._advisors = hk, cell, advisors
        self._budget_s, self._progress, self._stop = budget_s, progress, stop
        self._started = time.monotonic()
        self._notes: list[str] = []
        self._folder = Path()
        self._below = below(cell)

    def report(self) -> CellReport:
        """Look for a fix, and return the report; called once. Raises `ConfigError` for bad options."""
        cell = self._cell
        advice = cell.advice
        if advice is not None and advice.reruns:
            cells = tuple(step.label for step in advice.steps)
            return self._report("rerun", f"{advice.sentence} {advice.todo}", cells=cells)
        is_mistake = cell.failure.facts.get("about") == "name_of_class"  # the name lacks its `self.`
        if advice is not None and advice.kind not in ("near", "import") and not is_mistake:
            return self._report("not_cured", advice.sentence)
        advisors_for(self._asked(), self._hk.config)  # an unknown name is an error, whatever comes below
        self._folder = background.loop.wait_for(self._snapshots()) / f"{time.time_ns():x}"
        self._folder.mkdir(mode=0o700)
        try:
            if cell.failure.ename in ("SyntaxError", "IndentationError", "TabError"):
                return self._reread()
            return self._heal()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _snapshots(self) -> Path:
        return background.pool_for(self._hk.config).snapshots()

    def _heal(self) -> CellReport:
        if self._has_nothing_to_try():
            weighed = self._above()
            if weighed.fixes or weighed.readings:
                return self._proposed(weighed)
            return self._not_cured("No fix found. Edits tried: 0.")
        ready = self._ready(self._cell.run)
        if isinstance(ready, str):
            return self._untried(None, ready)
        result = ready.base.result
        if result.outcome == "passed":
            why = "It does not fail in a worker, so the cause is something that a worker does not have."
            return self._untried(ready.program, why)
        if (
            not result.failure.startswith(f"{self._cell.failure.ename}:")
            and result.failure != self._cell.failure.ename
        ):
            return self._untried(
                ready.program, f"In a worker it fails with another error ({result.failure})."
            )
        report = self._healing(ready.given, result)
        self._note(ready.program)
        weighed = self._weighed(ready.program, ready.given, list(self._edits(ready.program, report.attempts)))
        if not weighed.fixes and not weighed.readings:
            further = self._further(ready, report.attempts)
            weighed = dataclasses.replace(weighed, fixes=further)
        if not weighed.fixes or misspelt_where_made(self._cell) is not None:
            known_not = [
                attempt
                for attempt in report.attempts
                if not attempt.plausible and not ready.program.made_again
            ]
            tried = (edited_cell(ready.program, attempt.patch.code) for attempt in known_not)
            above = self._above({edited[1] for edited in tried if edited is not None})
            codes_above = {fix.code for fix in (*above.fixes, *above.readings)}
            remaining = [fix for fix in (*weighed.fixes, *weighed.readings) if fix.code not in codes_above]
            if above.fixes or not weighed.fixes:
                weighed = _Weighed(above.fixes, [*above.readings, *remaining], weighed.not_fixes)
        if weighed.fixes or weighed.readings:
            return self._proposed(weighed, report=report)
        self._notes += [note for note in report.notes if note not in self._notes]
        reason = report.reason
        if report.outcome in ("not_cured", "shown"):
            reason = "No fix found." if not weighed.not_fixes else "No safe fix found."
            reason += f" Edits tried: {report.candidates_tried:,}."
        return self._not_cured(reason, not_fixes=tuple(weighed.not_fixes), report=report)

    def _not_cured(self, reason: str, **more: Any) -> CellReport:
        if self._advisors is None and "search" not in self._asked():
            self._notes.append(_SEARCH_TOO)
        return self._report("not_cured", reason, **more)

    def _has_nothing_to_try(self) -> bool:
        """Return whether only rules are used and they know no edit; that needs no worker."""
        if any(advisor.name != "rules" for advisor in advisors_for(self._asked(), self._hk.config)[0]):
            return False
        program = self._program_of(self._cell.run)
        if program is None or program.why_not:
            return False
        if any(is_own_code(type(value)) for value in program.needed.values()):
            return False  # the code of its class comes along once it is known that it cannot cross
        return next(RulesAdvisor().propose(self._case_of(program)), None) is None

    def _case_of(self, program: CellProgram, checks: tuple[Check, ...] = ()) -> Case:
        entry = VaultEntry(self._cell.label, "default", 0, program.code, code_hash(program.code))
        return Case(entry, self._failure_in(program), checks, given=program.given)

    def _healing(self, given: CellCase, base: CheckResult) -> HealReport:
        options = HealOptions(
            tool_name=self._cell.label,
            advisors=self._asked(),
            budget_s=max(1.0, self._budget_s - (time.monotonic() - self._started)),
            progress=self._tell,
            stop=self._stop,
            dry_run=True,
            cell=dataclasses.replace(given, case=dataclasses.replace(given.case, base=(base,))),
        )
        return run_healing(self._hk, options)

    def _further(self, ready: _Ready, attempts: Sequence[Attempt], round_: int = 1) -> list[CellFix]:
        """Heal the next failure, if an edit gets the cell past the failing line: it may have two mistakes."""
        base_failure, cell_case = ready.base.result.failure, ready.given
        for attempt in attempts:
            result = next(iter(attempt.results), None)
            rule = attempt.patch.author == "rule" and not attempt.patch.guard
            if not rule or result is None or result.outcome != "raised" or result.failure == base_failure:
                continue
            failure = self._failure_of(cell_case, attempt.patch.code)
            was = cell_case.case.failure.tool_frame if cell_case.case.failure is not None else None
            now = failure.tool_frame if failure is not None else None
            if failure is None or was is None or now is None or now.lineno <= was.lineno:
                continue
            code = attempt.patch.code
            entry = dataclasses.replace(cell_case.case.entry, code=code, code_hash=code_hash(code))
            case = dataclasses.replace(cell_case.case, entry=entry, failure=failure, base=())
            next_ = _Ready(ready.program, dataclasses.replace(cell_case, case=case), Observed(result=result))
            report = self._healing(next_.given, result)
            whole = dataclasses.replace(cell_case, case=dataclasses.replace(case, base=()))
            edits = list(self._edits(ready.program, report.attempts))
            fixes = self._weighed(ready.program, whole, edits).fixes
            if not fixes and round_ < _ROUNDS_MAX:
                fixes = self._further(next_, report.attempts, round_ + 1)
            reason = in_cell(ready.program, attempt.patch.reason)
            if not may_be_a_fix(attempt.patch.kind or "restructures"):
                continue
            return [dataclasses.replace(fix, reason=f"{reason} {fix.reason}") for fix in fixes]
        return []

    def _above(self, tried: Collection[str] = ()) -> _Weighed:
        """Return edits of the cells that made the values that this one reads, with which it runs.

        All of them run again completely, so their statements are edited like the cell's own.

        tried: Texts of cells that were tried without them.
        """
        cell = self._cell
        misspelt = misspelt_where_made(cell)
        above = made_by(cell.run, cell.history, cell.namespace, misspelt[:1] if misspelt else ())
        program = self._program_of(cell.run, above=above) if above else None
        if program is None or next(self._edits_above(program, tried), None) is None:
            return _Weighed()
        prepared = self._program(cell.run, (), above)
        if isinstance(prepared, str):
            return _Weighed()
        program, size = prepared
        cell_case = self._case(program, size)
        edits = list(itertools.islice(self._edits_above(program, tried), 2 * _ABOVE_MAX))
        names = [name for name in free_names(cell.run.source) if name in program.given]
        codes = [program.code, *(patch.code for patch, _ in edits)]
        base, *results = self._run(cell_case, codes, call=_FORMS.format(names=names))
        if base.failure is None or base.failure.ename != cell.failure.ename:
            return _Weighed()
        ran = []
        for (patch, fix), result in zip(edits, results, strict=True):
            gave, *forms = result.value if isinstance(result.value, list) else [""]
            formed, freed = dict(zip(names, forms, strict=False)), _freed(fix) & {*names}
            changed = all(formed.get(name) != snapshot_file.form_of(program.given[name]) for name in freed)
            if result.failure is None and changed:
                ran.append((patch, dataclasses.replace(fix, gave=str(gave), verdict="unproven")))
        return self._weighed(program, cell_case, ran)

    def _edits_above(self, program: CellProgram, tried: Collection[str]) -> Iterator[_Edit]:
        """Yield edits of a program with the cells above, except those tried without them."""
        rules = itertools.islice(RulesAdvisor().propose(self._case_of(program)), _ABOVE_MAX)
        misspelt = misspelt_where_made(self._cell)
        renames = [] if misspelt is None else [renamed_where_made(self._cell, program, *misspelt)]
        for patch in (*renames, *rules, *overwritten(self._cell, program)):
            fix = None if patch.guard else self._fix(program, patch, ran=True)
            if fix is not None and fix.code not in tried:
                yield patch, fix

    def _failure_of(self, given: CellCase, code: str) -> Failure | None:
        """Run a text in place of the cell, and return how it fails."""
        return self._run(given, [code])[0].failure

    def _run(self, given: CellCase, codes: Sequence[str], call: str = "") -> list[TrialResult]:
        (check,) = given.case.checks
        options: dict[str, Any] = {"name": self._cell.label, "timeout_s": _BASE_S, "setup": check.setup}
        trials = [Trial(code, call=call or check.call, **options) for code in codes]
        run = Trials(self._hk.recorder, given.config).run(trials, read=given.fixture.read)
        return background.loop.wait_for(run)

    def _asked(self) -> Sequence[str | Advisor]:
        """Return the advisors: by default no model, and the search only if the cell itself says what is right.

        Otherwise many small edits end without an error, and most of them are wrong. Data for a model leaves the
        notebook, so a model is used only on request.
        """
        if self._advisors is not None:
            return self._advisors
        names = [name for name in self._hk.config.heal_advisors if name not in ("memory", "peers", "model")]
        says = re.search(r"^\s*assert\b", self._cell.run.source, re.MULTILINE)
        return names if says else [name for name in names if name != "search"]

    # The case.

    def _ready(self, run: CellRun) -> _Ready | str:
        """Prepare a cell and run it without a patch; return why that is not possible, in a sentence."""
        left_out: list[int] = []
        while True:
            prepared = self._program(run, left_out)
            if isinstance(prepared, str):
                return prepared
            program, size = prepared
            cell_case = self._case(program, size)
            base = self._base(cell_case)
            if run is not self._cell.run:  # a reading of it, which may fail as it likes
                return _Ready(program, cell_case, base)
            is_different = base.result.failure and not base.result.failure.startswith(
                self._cell.failure.ename
            )
            place = program.cell_at(base.failed_lines[0]) if base.failed_lines else None
            if not is_different or place is None or len(left_out) >= _LEFT_OUT_MAX or place[1] in left_out:
                return _Ready(program, cell_case, base)
            segment, line = place
            if segment is not program.segments[-1] or line == run.failed_line:
                return _Ready(program, cell_case, base)
            left_out.append(line)

    def _program_of(self, run: CellRun, **more: Any) -> CellProgram | None:
        cell = self._cell
        options = {"cannot_cross": {}, "near": cell.failure.near, "later": self._below.names, **more}
        return program_of(run, cell.namespace, cell.before, cell.history, **options)

    def _program(
        self, run: CellRun, left_out: Sequence[int] = (), above: Sequence[CellRun] = ()
    ) -> tuple[CellProgram, int] | str:
        """Make the program, and write the snapshot; return it with the snapshot's size in bytes."""
        refused = dict[str, str]()
        while True:
            program = self._program_of(run, cannot_cross=refused, left_out=left_out, above=above)
            if program is None:
                return "Python cannot read the cell."
            if program.why_not:
                return f"{_sentence(program.why_not)} So the failing statement did not run."
            try:
                return program, snapshot_file.write_snapshot(self._folder, program.needed)
            except CannotCross as error:
                name = _name_in(error.path, program.needed)
                if name is None or name in refused:
                    return f"A value cannot be sent to a worker: {error}."
                refused[name] = why_refused(name, program.needed[name], error.why)
            except OSError as error:
                return f"The values could not be written for a worker: {error.strerror or error}."

    def _case(self, program: CellProgram, size: int) -> CellCase:
        cell, config = self._cell, self._hk.config
        files = self._files(program)
        setup = "\n".join([_LOAD.format(folder=str(self._folder), files=files), program.setup])
        check = Check(origin="failing", call=_GAVE, setup=setup, shown=cell.label)
        more_mb = _MEMORY_TIMES * size // 2**20
        config = dataclasses.replace(
            _with_libraries(config, cell.namespace), memory_mb=config.memory_mb + more_mb
        )
        case = self._case_of(program, (check,))
        fixture = Fixture(read=(str(self._folder.parent), *files.values()))
        return CellCase(case, fixture, config)

    def _base(self, given: CellCase) -> Observed:
        """Run the cell without a patch."""
        limit_s = min(_BASE_S, self._budget_s)
        case = given.case
        subject = Held(case.entry.ref, case.entry.code, case.checks, [limit_s], given.fixture)
        trials = Trials(self._hk.recorder, given.config)
        return background.loop.wait_for(trials.observe(subject, watch=False))[0]

    def _failure_in(self, program: CellProgram) -> Failure:
        """Return the failure with its places in the program."""
        failure, runs = self._cell.failure, {run.count: run for run in self._cell.history}
        runs[self._cell.run.count] = self._cell.run
        filename = f"<{self._cell.label}@0>"

        def placed(count: str, line: str) -> int | None:
            run = runs.get(int(count))
            return None if run is None else program.line_of(run, int(line))

        def renamed(match: re.Match[str]) -> str:
            line = placed(match[1], match[2])
            return match[0] if line is None else f'File "{filename}", line {line}'

        frames = []
        for frame in failure.frames:
            match = re.fullmatch(r"<In \[(\d+)\]>", frame.filename)
            line = placed(match[1], str(frame.lineno)) if match is not None else None
            if line is None:
                frames.append(msgspec.structs.replace(frame, in_tool=False))
            else:
                frames.append(msgspec.structs.replace(frame, filename=filename, lineno=line, in_tool=True))
        text = _FILE_FRAME.sub(renamed, failure.traceback)
        return msgspec.structs.replace(failure, frames=frames, traceback=text)

    def _files(self, program: CellProgram) -> dict[str, str]:
        """Return the files that the cell names, with their real paths."""
        texts = [*program.texts, *self._cell.failure.near]
        texts += [
            os.fspath(v) for v in program.needed.values() if isinstance(v, str | os.PathLike) and v != ""
        ]
        files: dict[str, str] = {}
        for text in dict.fromkeys(map(str, texts)):
            if len(files) < _FILES_MAX and 0 < len(text) < 1000 and "\n" not in text and "\0" not in text:
                path = Path(self._cell.folder, text)
                real = path.resolve()
                within = path.is_dir() and real.is_relative_to(Path(self._cell.folder).resolve())
                allowed = self._cell.within is None or any(map(real.is_relative_to, self._cell.within))
                if allowed and (path.is_file() or (within and text.strip("./"))):
                    files[text] = str(real)
        return files

    # The fixes.

    def _edits(self, program: CellProgram, attempts: Sequence[Attempt]) -> Iterator[_Edit]:
        """Yield the edits with which the cell runs, likeliest first: fixes, readings, and edits that lose data."""
        first: dict[str, float] = {}
        for attempt in attempts:
            patch = attempt.patch
            if not attempt.plausible or not attempt.results:
                continue
            if patch.author == "search" and attempt.verdict == "silenced":
                continue
            standing = _standing(patch.kind, attempt.verdict)
            if patch.rank < first.setdefault(standing, patch.rank) - _AS_LIKELY and standing == "fixes":
                continue  # most edits less likely than the first are wrong, but still run
            fix = self._fix(program, patch, ran=True)
            if fix is not None:
                gave = attempt.results[0].value if attempt.results else ""
                gave = gave if isinstance(gave, str) else ""
                yield patch, dataclasses.replace(fix, gave=gave, verdict=attempt.verdict)

    def _weighed(self, program: CellProgram, given: CellCase, edits: Sequence[_Edit]) -> _Weighed:
        """Measure the effects of the edits on the data, and sort them by it."""
        sides: dict[str, list[_Edit]] = {"fixes": [], "readings": [], "not_fixes": []}
        for patch, fix in edits:
            sides[_standing(fix.kind, fix.verdict)].append((patch, fix))
        chosen = [edit for side in sides.values() for edit in side[:_FIXES_MAX]]
        following = self._below.after(program)
        left_s = self._budget_s - (time.monotonic() - self._started)
        evidence = measured(
            given, self._hk.recorder, [patch.code for patch, _ in chosen], following, self._cell.saved, left_s
        )
        result = _Weighed()
        for (_, fix), measurement in sorted(
            zip(chosen, evidence, strict=True), key=lambda pair: (not pair[1].gives_saved, -pair[1].ran_on)
        ):
            refuted = is_refuted(measurement, following, self._cell)
            weighed = _with_evidence(
                fix, measurement, tuple(sentences(measurement, following, refuted=refuted))
            )
            below = {name for text, _ in self._cell.below for name in free_names(text)}
            missed = fix.cell == self._cell.label and _freed(fix) & below
            if missed or (refuted and measurement.ran_on < max(effect.ran_on for effect in evidence)):
                weighed = dataclasses.replace(weighed, kind=worse(weighed.kind, "assumes"))
            getattr(result, _standing(weighed.kind, fix.verdict)).append(weighed)
        return result

    def _proposed(self, found: _Weighed, **more: Any) -> CellReport:
        """Report fixes, or a question where only readings were found."""
        more["not_fixes"] = tuple(found.not_fixes)
        if found.fixes:
            return self._report("proposed", found.fixes[0].reason, found.fixes, **more)
        many = "One edit runs. Check that it is" if len(found.readings) == 1 else "Several edits run. Choose"
        reason = f"{many} what you mean."
        return self._report("question", reason, readings=found.readings, **more)

    def _fix(self, program: CellProgram, patch: Patch, *, ran: bool) -> CellFix | None:
        edited = edited_cell(program, patch.code)
        if edited is None:
            return None
        if self._cell.failure.ename == "AssertionError" and _asserts(patch.code) != _asserts(program.code):
            return None  # it says what is right
        run, code = edited
        unknown = [patch.doubt] if patch.doubt else []
        unknown += [
            f"The value of `{name}` before the cell ran is not known, so its current value was used."
            for name in self._cell.unknown
            if name in program.needed
        ]
        after: list[CellRun] = []
        if prompt_of(run) != self._cell.label:
            runs = (*program.made_again.values(), *program.above)
            later = {cell_run.count or 0: cell_run for cell_run in runs}
            after = [later[count] for count in sorted(later) if count > (run.count or 0)]
            after.append(self._cell.run)
        first = self._lost(run, code) if run in program.above else []
        if first is None:
            return None
        fix = CellFix(
            cell=prompt_of(run),
            code=code,
            before=run.source,
            reason=in_cell(program, patch.reason),
            advisor=patch.advisor,
            ran=ran,
            unknown=tuple(unknown),
            cell_id=run.cell_id,
            kind=kind_of(program.code, patch.code, patch.kind),
            then=tuple(map(_place, after)),
            first=tuple(map(_place, first)),
        )
        return dataclasses.replace(fix, unknown=(*unknown, fix.rerun)) if fix.rerun else fix

    def _lost(self, run: CellRun, code: str) -> list[CellRun] | None:
        """Return the runs that made lost values that an edited cell reads; None if one is unknown."""
        place = next(at for at, past_run in enumerate(self._cell.history) if past_run is run)
        since = {
            name
            for later_run in (*self._cell.history[place:], self._cell.run)
            for name in changed_in(later_run)
        }
        lost = {name: value for name, value in self._cell.namespace.items() if name in since}
        if not lost.keys() & set(free_names(code)):
            return []
        return made_by(dataclasses.replace(run, source=code), self._cell.history[:place], lost) or None

    def _untried(self, program: CellProgram | None, why: str) -> CellReport:
        """Report the catalogue's own edits, which did not run, and the reason."""
        program = program or self._program_of(self._cell.run)
        if program is None:
            return self._report("not_tried", why)
        patches = (patch for patch in RulesAdvisor().propose(self._case_of(program)) if not patch.guard)
        edits = [fix for patch in patches if (fix := self._fix(program, patch, ran=False)) is not None]
        self._notes.append(why)
        weighed = _Weighed()
        for fix in edits[:_FIXES_MAX]:
            getattr(weighed, _standing(fix.kind, None)).append(fix)
        if not weighed.fixes and not weighed.readings:
            return self._report("not_tried", f"No fix is known, and healkit did not look for one. {why}")
        return self._proposed(dataclasses.replace(weighed, not_fixes=[]))

    def _reread(self) -> CellReport:
        """Report readings of a text that Python cannot read, and their results."""
        cell = self._cell
        entry = VaultEntry(cell.label, "default", 0, cell.run.source, code_hash(cell.run.source))
        case = Case(entry, cell.failure, (), given=cell.namespace)
        patches = list(itertools.islice(RulesAdvisor().propose(case), _READINGS_MAX))
        fixes: list[CellFix] = []
        ended = ""
        for patch in patches:
            run = dataclasses.replace(cell.run, source=patch.code, failed_line=None)
            about = (cell.label, patch.code, cell.run.source, patch.reason, patch.advisor)
            fix = CellFix(*about, ran=False, cell_id=cell.run.cell_id)
            ready = self._ready(run)
            if not isinstance(ready, str):
                self._note(ready.program)
                result = ready.base.result
                if result.outcome == "passed":
                    gave = result.value if isinstance(result.value, str) else ""
                    fixes.insert(0, dataclasses.replace(fix, ran=True, gave=gave, verdict="unproven"))
                    break
                fixes += self._after_reading(fix, ready)
                ended = ended or f"{fix.reason} It then ends in {result.failure}."
                continue
            fixes.append(fix)
        if not fixes:
            return self._report("not_cured", ended or "No small change makes this text valid Python.")
        return self._report("proposed", fixes[0].reason, fixes)

    def _after_reading(self, fix: CellFix, ready: _Ready) -> list[CellFix]:
        """Heal the failure of a text that Python can now read."""
        failure = self._failure_of(ready.given, ready.given.case.entry.code)
        if failure is None:
            return []
        cell_case = dataclasses.replace(
            ready.given, case=dataclasses.replace(ready.given.case, failure=failure)
        )
        report = self._healing(cell_case, ready.base.result)
        edits = list(self._edits(ready.program, report.attempts))
        further_fixes = [
            further_fix
            for further_fix in self._weighed(ready.program, ready.given, edits).fixes
            if further_fix.cell == fix.cell
        ]
        return [
            dataclasses.replace(further_fix, before=fix.before, reason=f"{fix.reason} {further_fix.reason}")
            for further_fix in further_fixes
        ]

    # The report.

    def _note(self, program: CellProgram) -> None:
        """Record which values were used."""
        descriptions = [
            f"`{name}`: {snapshot_file.described(value) or 'None'}"
            for name, value in program.needed.items()
            if re.search(rf"\b{re.escape(name)}\b", self._cell.run.source)
        ]
        if descriptions:
            self._notes.append(
                f"Run on {', '.join(descriptions[:5])}{', …' if len(descriptions) > 5 else ''}."
            )
        if program.made_again:
            names = ", ".join(f"`{name}`" for name in program.made_again)
            self._notes.append(f"Created again in the worker: {names}.")
        for line, why in program.left_out.items():
            self._notes.append(f"Line {line} was left out: {why}.")

    def _report(
        self,
        outcome: CellOutcome,
        reason: str,
        fixes: Sequence[CellFix] = (),
        readings: Sequence[CellFix] = (),
        **more: Any,
    ) -> CellReport:
        fix, alternatives = (fixes[0], tuple(fixes[1:])) if fixes else (None, tuple(readings))
        failure = cleaning.failure(self._cell.failure, self._cleaner)
        refutes = outcome not in ("rerun", "not_tried") and self._refutes(fix, alternatives)
        report = CellReport(
            self._cell.label,
            outcome,
            _sentence(failure.summary if refutes else explain(failure).what),
            reason,
            fix,
            alternatives,
            notes=tuple(dict.fromkeys(self._notes)),
            duration_s=time.monotonic() - self._started,
            refutes=refutes,
            **more,
        )
        return cleaning.report(report, self._cleaner)

    def _refutes(self, fix: CellFix | None, others: Sequence[CellFix]) -> bool:
        """Return whether the card names a change that is not the first edit; for a question, not among its readings."""
        change = change_of(
            MatchedFailure(self._cell.failure), self._cell.run.source, self._cell.namespace.keys()
        )
        candidates = others if fix is None else [fix]
        if change is None:
            return False
        lines = {line.strip() for line in change.lines.split("\n")}
        return not any(
            lines <= {line.strip() for line in candidate.code.split("\n")} for candidate in candidates
        )

    @functools.cached_property
    def _cleaner(self) -> RecordCleaner:
        """Cleaner of all texts about it, which knows the notebook's secrets."""
        cleaner = cleaning.sanitizer().of_record()
        spaces = [self._cell.namespace, self._cell.before]
        cleaner.clean([{name: value} for name, value in named_secrets(spaces)], limit_bytes=UNLIMITED)
        learn(self._cell.failure, cleaner)
        return cleaner

    def _tell(self, sentence: str) -> None:
        if self._progress is not None:
            self._progress(cleaning.report(sentence, self._cleaner))


def heal_cell(
    hk: Services,
    number: int | None,
    *,
    advisors: Sequence[str | Advisor] | None,
    budget_s: float,
    progress: Callable[[str], None] | None,
    stop: threading.Event,
) -> CellReport:
    """Heal the failing cell of that prompt, the newest for None; raise `HealError` if there is none."""
    cell = notebook_cells.find(number)
    if cell is None:
        any_cell = "No cell of this notebook has failed."
        raise HealError(
            any_cell if number is None else f"healkit knows no failure of In [{number}].",
            hint="It knows only cells that ran after `%load_ext healkit`, and the last 20 failures.",
        )
    return CellHealing(hk, cell, advisors=advisors, budget_s=budget_s, progress=progress, stop=stop).report()


async def warm_up(config: Config, namespace: Mapping[str, Any]) -> None:
    """Start the server for the first edits, with the libraries of this kernel; raises as a trial does.

    namespace: The notebook's variables.
    """
    pool = background.pool_for(config)
    tier = await asyncio.to_thread(achieved_tier, config)
    servers, read = pool.companion(TrialServers), (str(pool.snapshots()),)
    servers.give_back(await servers.take(tier, _with_libraries(config, namespace), read))


def _with_libraries(config: Config, namespace: Mapping[str, Any]) -> Config:
    loaded = [name for name in _SLOW if name in sys.modules]
    parts = sorted(set(_parts_of(namespace)))[:_PARTS_MAX]
    return dataclasses.replace(config, preload=tuple(dict.fromkeys([*config.preload, *loaded, *parts])))


def _parts_of(namespace: Mapping[str, Any]) -> Iterator[str]:
    """Yield the modules of a notebook's values, for libraries whose parts take long to import."""
    for value in list(namespace.values()):
        kind = value if isinstance(value, type | FunctionType) else type(value)
        module = value.__name__ if isinstance(value, ModuleType) else kind.__module__
        if isinstance(module, str) and module.partition(".")[0] in _SLOW_PARTS & sys.modules.keys():
            yield ".".join(itertools.takewhile(lambda part: not part.startswith("_"), module.split(".")))


def _place(run: CellRun) -> CellPlace:
    return CellPlace(prompt_of(run), run.source, run.cell_id)


def _asserts(code: str) -> list[str]:
    return [ast.unparse(node) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Assert)]


def _name_in(path: str, needed: Mapping[str, Any]) -> str | None:
    """Return the name whose value contains the path of an encoding error."""
    match = re.match(r"\$\[(.+?)\](?=[\[.,{]|$)|\$\.(\w+)", path)
    name = None if match is None else (match[1] or match[2]).strip("'\"")
    return name if name in needed else None


def _sentence(text: str) -> str:
    flat = " ".join(text.split())
    flat = f"{flat[:1].upper()}{flat[1:]}" if not flat.startswith("`") else flat
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."
