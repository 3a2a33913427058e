"""Check of a notebook: its run, its failures, their fixes.

Each run has a fresh restricted kernel, which may read the notebook's folder and write nothing permanent. With healing,
the failing cell is healed as in a live notebook, from the data that its kernel wrote. Then the notebook runs again from
the top with the new text. That run is the evidence: a fix is dropped if the notebook does not get further with it.
Nothing is written to the notebook; `written_by` does that, on request.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.config import HEAL_BUDGET_S
from healkit.core.contracts.execution import Grants
from healkit.core.contracts.failure import Failure
from healkit.core.rendering import cleaning
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.core.runtime import background
from healkit.core.runtime.outcomes import capped
from healkit.core.workers.process import off_loop
from healkit.core.workers.sandbox import check_grants, passing_folder
from healkit.errors import HealError, UsageInvalid
from healkit.parts.cells import cell_export
from healkit.parts.cells.notebook_file import NotebookCell, NotebookFile, NotebookText
from healkit.parts.cells.notebook_state import order_remarks
from healkit.parts.cells.own_cells import FailingCell
from healkit.parts.heal.records import (
    CellEdit,
    CellReportData,
    CheckedCell,
    NotebookFailure,
    NotebookOutcome,
    NotebookReportData,
)
from healkit.parts.heal.render_check import notebook_card
from healkit.parts.kernels.notebook_session import NotebookSession
from healkit.parts.runs.run_folders import write_whole
from healkit.plain_text import visible

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

    from healkit.config import ExplainLevel
    from healkit.parts.cells.advice import CellAdvice
    from healkit.services import Services

#: Healings of one notebook, one after the other.
_HEALINGS_MAX = 5
#: Longest request of the host's own to the kernel.
_OWN_REQUEST_S = 60.0
_IN_KERNEL = "__import__('healkit.parts.cells.cell_export', fromlist=['watch'])"
#: How a cell ended that did not come to its end → code, name and words of its failure.
_ENDINGS = {
    "timeout": ("TOOL_TIMEOUT", "TimeoutError", "the {piece} was still running after {timeout:g} s"),
    "disk_limit": ("TOOL_DISK_LIMIT", "DiskLimit", "the {piece} wrote more than it may"),
    "died": ("TOOL_EXITED", "DeadKernel", "the kernel ended while the {piece} ran (exit status {status})"),
}


#: Messages of what the kernel's boundary refuses, and what is said of them.
_REFUSED = re.compile(
    r"Permission denied|not permitted|Read-only file system|name resolution|shell not found"
)
_LIMITS = " In a check, cells have no network, start no programs, read their file's folder and write to scratch only."


@dataclass(frozen=True)
class _Run:
    """Run of a notebook; for the failing cell, if any, its failure, and the data that its kernel wrote."""

    cells: tuple[CheckedCell, ...]
    cell: NotebookCell | None = None
    failure: Failure | None = None
    exported: FailingCell | None = None

    def is_beyond(self, other: _Run) -> bool:
        """Return whether it got further than another one, which failed."""
        if self.cell is None or self.failure is None:
            return True
        assert other.cell is not None
        assert other.failure is not None
        same = self.cell.number == other.cell.number
        return self.failure.summary != other.failure.summary if same else self.cell.number > other.cell.number


@dataclass(frozen=True)
class NotebookReport(NotebookReportData):
    """Report of a notebook's check; a notebook shows it as a card."""

    def __str__(self) -> str:
        return text_of(notebook_card(self))

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return html_of(notebook_card(self))


@dataclass
class NotebookCheck:
    """Check of one notebook; the options are those of `hk.check_notebook`.

    Making it reads the notebook; raises `UsageInvalid` for an invalid one, `ConfigError` for paths that cannot be
    granted.
    """

    hk: Services
    path: str | Path
    heal: bool = False
    timeout: float = 600.0
    read: Sequence[str | Path] = ()
    progress: Callable[[str], None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        explained = self.hk.config.explain
        if self.timeout <= 0:
            raise UsageInvalid(f"timeout={self.timeout:g}: a cell needs more than 0 s.")
        if self.heal and explained != "fix":
            raise HealError(
                f"No fix is suggested here: failures are explained up to {explained!r}.",
                hint="HEALKIT_EXPLAIN has set that; 'fix' turns healing on again.",
            )
        self._book = NotebookText(Path(self.path))
        self._folder = Path(self.path).resolve().parent
        paths = (os.path.realpath(os.path.expanduser(path)) for path in self.read)
        self._read = tuple(dict.fromkeys([str(self._folder), *paths]))
        check_grants(Grants(read=self._read))

    def report(self) -> NotebookReport:
        """Run the notebook, and return the report; called once. Raises `HealkitError` if there is no boundary."""
        started = time.monotonic()
        cells = self._book.cells
        texts = {cell.number: cell.source for cell in cells}
        failures, runs, edit = list[NotebookFailure](), list[_Run](), dict[int, str]()
        while not runs or (edit and not self.stop.is_set()):
            with passing_folder() as folder:
                run = background.loop.wait_for(self._run(folder, texts | edit))
                if runs and (self.stop.is_set() or not run.is_beyond(runs[-1])):
                    break
                runs.append(run)
                if edit:
                    failures[-1], texts = replace(failures[-1], fixed=True), texts | edit
                edit = {}
                if run.failure is not None:
                    report = self._healed(run) if len(failures) < _HEALINGS_MAX else None
                    failures.append(self._failure(run, run.failure, report))
                    edit = self._edit(run, texts, report)
        outcome: NotebookOutcome = "failed"
        if self.stop.is_set():
            outcome = "stopped"
        elif all(failure.fixed for failure in failures):
            outcome = "healed" if failures else "passed"
        edits = [CellEdit(book_cell.number, book_cell.source, texts[book_cell.number]) for book_cell in cells]
        return NotebookReport(
            path=str(self.path),
            outcome=outcome,
            cells=runs[-1].cells,
            failures=tuple(failures),
            edits=tuple(cell_edit for cell_edit in edits if cell_edit.before != cell_edit.code),
            remarks=order_remarks(cells),
            duration_s=time.monotonic() - started,
        )

    async def _run(self, folder: Path, texts: Mapping[int, str]) -> _Run:
        """Run all cells with these texts, up to the first that fails."""
        cells = [replace(cell, source=texts[cell.number]) for cell in self._book.cells]
        done = [CheckedCell(cell.number) for cell in cells]
        if not cells:
            return _Run(())
        exchange = folder / "exchange"
        exchange.mkdir(mode=0o700)
        grants = {"read": list(self._read), "memory_mb": self.hk.config.memory_mb}
        async with NotebookSession(self._folder, grants, exchange, folder, self.stop) as session:
            watch = f"{_IN_KERNEL}.watch(values={self.heal})"
            await session.run(watch, timeout_s=_OWN_REQUEST_S, silent=True)
            for prompt, cell in enumerate(cells, 1):
                self._tell(f"cell {prompt} of {len(cells)}")
                began = time.monotonic()
                reply = await session.run(cell.source, timeout_s=self.timeout, cell_id=cell.cell_id)
                status = reply.get("status")
                if status == "stopped":
                    return _Run(tuple(done))
                ran = status == "ok" or (status == "error" and cell.number in self._book.may_fail)
                duration_s = time.monotonic() - began
                done[prompt - 1] = CheckedCell(cell.number, "passed" if ran else "failed", prompt, duration_s)
                if not ran:
                    export = f"{_IN_KERNEL}.write_failing_cell({str(exchange)!r}, values={self.heal})"
                    await session.run(export, timeout_s=_OWN_REQUEST_S, silent=True)
                    break
            else:
                return _Run(tuple(done))
        sent = {number: sent_cell.source for number, sent_cell in enumerate(cells[:prompt], 1)}
        failing_cell = await off_loop(
            cell_export.read_failing_cell, exchange, sent, NotebookFile(tuple(cells)), self._read
        )
        exported = failing_cell if failing_cell is not None and failing_cell.run.count == prompt else None
        written = exported.failure if exported is not None else None
        return _Run(tuple(done), cell, failure_of(reply, written, self.timeout), exported)

    def _healed(self, run: _Run) -> CellReportData | None:
        cell, failure = run.exported, run.failure
        if not self.heal or cell is None or failure is None:
            return None
        if failure.code != "TOOL_EXCEPTION" or _REFUSED.search(failure.evalue):
            return None
        from healkit.parts.heal.cell_healing import CellHealing  # late: most notebooks run

        self._tell(f"healing {cell.label}")
        healing = CellHealing(
            self.hk, cell, advisors=None, budget_s=HEAL_BUDGET_S, progress=self._tell, stop=self.stop
        )
        return replace(healing.report(), report=None)

    def _failure(self, run: _Run, failure: Failure, report: CellReportData | None) -> NotebookFailure:
        assert run.cell is not None
        record = cleaning.sanitizer().of_record()
        for (
            cell
        ) in self._book.cells:  # a password that a cell writes down may be in the message of another one
            record.text(cell.source)
        failure = cleaning.failure(failure, record)
        prompt = next(cell.prompt or 0 for cell in run.cells if cell.state == "failed")
        line_numbers = (frame.lineno for frame in failure.frames if frame.filename == f"<In [{prompt}]>")
        line = (run.exported.run.failed_line if run.exported is not None else None) or next(line_numbers, 0)
        line = min(max(line, 0), run.cell.source.count("\n") + 1)
        advice = run.exported.advice if run.exported is not None else None
        explanation, why = explained(failure, self.hk.config.explain, advice)
        place = self._book.line_of(run.cell.number, line)
        notebook_failure = NotebookFailure(
            run.cell.number, prompt, line, place, failure, explanation, report, why=why
        )
        return cleaning.report(notebook_failure, record)

    def _edit(self, run: _Run, texts: Mapping[int, str], report: CellReportData | None) -> dict[int, str]:
        """Return the new text that a healing proposes, by the number of its cell."""
        fix = report.fix if report is not None else None
        if fix is None or fix.verdict == "silenced":
            return {}
        numbers = (cell.number for cell in run.cells if fix.cell == f"In [{cell.prompt}]")
        return {number: fix.code for number in numbers if texts[number] == fix.before}

    def _tell(self, sentence: str) -> None:
        if self.progress is not None:
            self.progress(sentence)


def failure_of(
    reply: Mapping[str, Any], written: Failure | None, timeout_s: float, piece: str = "cell"
) -> Failure:
    """Return the failure of a cell: as its kernel wrote it (`written`), or as the host has seen it.

    reply: the reply to it, of `NotebookSession.run`. piece: what the cell is to its reader.
    """
    if reply.get("status") in _ENDINGS:
        code, ename, words = _ENDINGS[reply["status"]]
        evalue = words.format(piece=piece, timeout=timeout_s, status=reply.get("exit_status"))
        return Failure(
            code, ename, evalue, f"{ename}: {evalue}", written.frames if written is not None else []
        )
    if written is not None:
        return written
    trace = visible("\n".join(map(str, reply.get("traceback") or ())))
    ename, evalue = str(reply.get("ename") or "Error"), str(reply.get("evalue") or "")
    return capped(Failure("TOOL_EXCEPTION", ename, evalue, trace))


def explained(failure: Failure, level: ExplainLevel, advice: CellAdvice | None = None) -> tuple[str, str]:
    """Return what a cell's failure is, with the next step, and why it happened; empty where nothing is known.

    advice: on the order of the cells; it comes first.
    """
    from healkit.parts.explain.explanation import explain  # late: most notebooks run

    if failure.code != "TOOL_EXCEPTION":
        return f"{failure.evalue[:1].upper()}{failure.evalue[1:]}.", ""
    if advice is not None and advice.kind != "near" and level != "off":
        return advice.sentence, ""
    refused = level != "off" and _REFUSED.search(failure.evalue)  # its fixes are those of a tool
    limited = explain(failure).of_cell().at("what" if refused else level)
    return replace(limited, where="", why="", linked=()).in_one_line + (
        _LIMITS if refused else ""
    ), limited.why


def check_notebook(hk: Services, path: str | Path, **options: Any) -> NotebookReport:
    """Check one notebook; the options are those of `hk.check_notebook`."""
    return NotebookCheck(hk, path, **options).report()


def written_by(report: NotebookReport) -> bool:
    """Write the edits of a check into its notebook, and return whether there were any.

    Only the texts of these cells are written, no other byte. Raises `UsageInvalid` if the notebook has changed since,
    or is not writable.
    """
    if not report.edits:
        return False
    path = Path(report.path).resolve()
    book = NotebookText(path)
    now = {cell.number: cell.source for cell in book.cells}
    if any(now.get(edit.number) != edit.before for edit in report.edits):
        raise UsageInvalid(f"{report.path!r} was changed while it was checked.", hint="Check it again.")
    text = book.edited({edit.number: edit.code for edit in report.edits})
    try:
        mode = path.stat().st_mode
        # Half a surrogate pair is an escape in JSON.
        write_whole(path, text.encode("utf-8", "backslashreplace"))
        path.chmod(mode)
    except OSError as error:
        raise UsageInvalid(f"Cannot write {report.path!r}: {error.strerror}.") from None
    return True
