"""Failing cells of the user's own.

They ran in the user's kernel: without a worker, without a restriction, and without a row in the log, which contains
only executions of tools. The last failing cells are kept in memory as executions. They can be explained, exported and
turned into tools. Their names are their prompts, such as `In [12]`.

IPython keeps the texts of cells, but not whether they failed, nor which cell of the notebook they were. This module
adds that after each cell, once the extension is loaded. Earlier cells are taken from IPython; it is unknown how they
ended.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import linecache
import os
import re
import sys
import sysconfig
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import new_trace_id, utc_now
from healkit.core.contracts.failure import SECRETS_MAX, Failure, Frame, Link
from healkit.core.pysource.tracebacks import (
    fingerprint,
    linked_to,
    message_of,
    read_traceback,
    traceback_text,
)
from healkit.core.secrets.secret_names import named_secrets
from healkit.parts.cells.notebook_file import GIVEN, CellRun

if TYPE_CHECKING:
    from datetime import datetime

    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

    from healkit.core.contracts.failure import Local
    from healkit.core.runtime.execution import Execution
    from healkit.parts.cells.advice import CellAdvice


CELLS_MAX, LOCALS_MAX = 20, 30
_FRAMES_MAX, _MESSAGE_MAX_CHARS, _TRACEBACK_MAX_CHARS = 200, 10_000, 100_000
_IN_CELL = re.compile(r"<In \[(\d+)\]>")
_LIBRARIES = tuple(
    path + os.sep
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths()[name])
)
_FOREIGN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@dataclasses.dataclass(frozen=True)
class FailedCell:
    """Failing cell, as an execution, with the variables of its innermost own frame.

    run: Its run.
    advice: Which cells would define what it lacks, if that is known.
    before: Changed values, as they were before it ran.
    unknown: Names that it changed in place, whose earlier values are not known.
    defined: The notebook's names.
    made: A sentence about the line of a cell above that set the failing value, if that line is the likely cause.
    """

    execution: Execution
    locals: tuple[Local, ...]
    number: int | None
    seen: int
    first_seen: datetime
    run: CellRun
    advice: CellAdvice | None = None
    before: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    defined: frozenset[str] = frozenset()
    made: str = ""


@dataclasses.dataclass(frozen=True)
class FailingCell:
    """Cell of the user's own that failed, and what is known of the notebook around it.

    run: The cell.
    failure: Its failure; the frames are named by their prompts.
    advice: On the order of the cells.
    namespace: The notebook's variables now.
    before: Changed values, as they were before it ran.
    unknown: Names that it changed in place, whose earlier values are not known.
    history: Runs of this kernel, oldest first.
    below: The texts and the labels of the code cells below it in the notebook.
    saved: The text of its result that is saved in the notebook.
    folder: The kernel's working directory.
    within: Folders for the files that it reads; None for anywhere.
    """

    run: CellRun
    failure: Failure
    advice: CellAdvice | None
    namespace: Mapping[str, Any]
    before: Mapping[str, Any]
    unknown: tuple[str, ...] = ()
    history: Sequence[CellRun] = ()
    below: Sequence[tuple[str, str]] = ()
    saved: str = ""
    folder: str = ""
    within: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        """Its prompt, `In [7]`."""
        return prompt_of(self.run)


def prompt_of(run: CellRun) -> str:
    """Return the prompt of a run: `In [7]`."""
    return f"In [{'*' if run.count is None else run.count}]"


#: Finds the failing cell of a prompt's number, the newest for None; returns None where there is none.
FindCell = Callable[[int | None], FailingCell | None]


@dataclasses.dataclass
class NotebookCells:
    """Finder of the failing cells of this process's notebook."""

    find: FindCell = dataclasses.field(default=lambda _number: None)


notebook_cells = NotebookCells()


class FailedCells:
    """Last failing cells of this kernel, newest last."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._kept: deque[FailedCell] = deque(maxlen=CELLS_MAX)
        self._counts: dict[str, tuple[int, datetime]] = {}
        self.runs = KernelRuns(shell)
        self.values = ValuesBefore(shell)

    def add(
        self, error: BaseException, code: str, number: int | None, cell_id: str | None = None
    ) -> FailedCell:
        """Record a cell that raised; called after the cell."""
        from healkit.core.runtime.execution import Execution  # most cells do not fail

        label = f"In [{number if number is not None else '*'}]"
        tracebacks = self._own(error)
        failure = self._failure(error, tracebacks)
        execution = Execution(
            tool_name=label,
            persona="default",
            arguments={},
            status="FAILURE",
            trace_id=new_trace_id(),
            timestamp=utc_now(),
            failure=failure,
            origin="cell",
            code=code,
            explained=Config.from_environment().explain,
        )
        mark = fingerprint(failure)
        count, first = self._counts.get(mark, (0, execution.timestamp))
        self._counts[mark] = (count + 1, first)
        run = self.runs.run_of(code, number, cell_id, error)
        advice = advice_for(self._shell, self.runs, error, run, failure.near)
        before, unknown = self.values.take()
        origin = self._made(failure, run)
        cell = FailedCell(
            execution,
            tuple(_locals(tracebacks)),
            number,
            count + 1,
            first,
            run,
            advice,
            before,
            unknown,
            frozenset(self._shell.user_ns),
            origin,
        )
        if self._kept and self._kept[-1].before:  # the values are kept of the newest failing cell only
            gone = tuple(self._kept[-1].before)
            self._kept[-1] = dataclasses.replace(self._kept[-1], before={}, unknown=gone)
        self._kept.append(cell)
        return cell

    def _made(self, failure: Failure, run: CellRun) -> str:
        name, space = failure.facts.get("owner", "").strip("`"), self._shell.user_ns
        if name not in space or failure.tool_frame is None or failure.tool_frame.name != "<module>":
            return ""
        from healkit.parts.cells.cell_program import where_made  # most cells do not fail

        return where_made(name, space[name], run, self.runs.history())

    def of(self, number: int | None) -> FailedCell | None:
        """Return the newest failure of a prompt's cell; None stands for any prompt."""
        return next((cell for cell in reversed(self._kept) if number in (None, cell.number)), None)

    def number_of(self, error: BaseException) -> int | None:
        """Return the prompt of the cell that raised an exception; None if no cell of this kernel did."""
        places = [entry.tb_frame.f_code.co_filename for entry in _entries(error.__traceback__)]
        if isinstance(error, SyntaxError) and error.filename:
            places.append(error.filename)
        in_cells = (_IN_CELL.fullmatch(self._name(place)) for place in places)
        return next((int(match[1]) for match in in_cells if match), None)

    def add_late(self, error: BaseException, number: int) -> FailedCell:
        """Record a cell that failed before healkit was loaded; the values that it changed were not kept."""
        from healkit.parts.cells.dataflow import names_changed

        cell = self.add(error, self._shell.history_manager.input_hist_raw[number], number)
        changed = (name for names in names_changed(cell.run.source) for name in names)
        self._kept[-1] = dataclasses.replace(cell, before={}, unknown=tuple(dict.fromkeys(changed)))
        return self._kept[-1]

    def find(self, number: int | None) -> FailingCell | None:
        """Return the newest failure of a prompt's cell, of any for None, in the form that healing needs."""
        from healkit.parts.cells.dataflow import names_changed
        from healkit.parts.cells.notebook_file import find_notebook

        cell = self.of(number)
        failure = None if cell is None else cell.execution.uncleaned.failure
        if cell is None or failure is None:
            return None
        history = self.runs.history()
        place = next((i for i, run in enumerate(history) if run.count == cell.number), len(history))
        later = (
            name for run in history[place + 1 :] for names in names_changed(run.source) for name in names
        )
        notebook = find_notebook(self._shell.user_ns, os.environ, [*history, cell.run])
        saved_cell, *below = (notebook.from_run(cell.run) if notebook is not None else ()) or (None,)
        return FailingCell(
            cell.run,
            failure,
            cell.advice,
            self._shell.user_ns,
            cell.before,
            tuple(dict.fromkeys([*cell.unknown, *(name for name in later if name not in cell.before)])),
            history[:place],
            [(lower_cell.source, f"Cell {lower_cell.number}") for lower_cell in below],
            saved_cell.result if saved_cell is not None else "",
            os.getcwd(),
        )

    def texts(self) -> list[str] | None:
        """Return the texts of the notebook's cells, from its file and from the runs here; None without a file."""
        from healkit.parts.cells.notebook_file import find_notebook

        runs = self.runs.history()
        notebook = find_notebook(self._shell.user_ns, os.environ, runs)
        if notebook is None:
            return None
        return [*(cell.source for cell in notebook.cells), *(run.source for run in runs)]

    @property
    def last(self) -> FailedCell | None:
        """Newest of them; None while there is none."""
        return self._kept[-1] if self._kept else None

    def _own(self, error: BaseException) -> list[TracebackType]:
        return [
            entry
            for entry in _entries(error.__traceback__)
            if self._is_own(entry.tb_frame.f_code.co_filename)
        ]

    def _failure(self, error: BaseException, own: list[TracebackType], link: Link | None = None) -> Failure:
        summary = read_traceback(error)
        visible_frames = [frame for frame in summary.stack if not _is_ipython(frame.filename)]
        frames = [
            Frame(self._name(f.filename), f.lineno or 0, f.name, f.line or "", self._is_own(f.filename))
            for f in visible_frames
        ]
        for frame, named in zip(visible_frames, frames, strict=True):
            frame.filename = named.filename  # after its line was read; the marks below that line stay
        summary.stack = traceback.StackSummary.from_list(visible_frames)
        message = message_of(error)
        if isinstance(error, SyntaxError) and error.filename and self._is_own(error.filename):
            place = self._name(error.filename)
            frames.append(Frame(place, error.lineno or 1, "<module>", error.text or "", in_tool=True))
            summary.filename = place
            message = f"{error.msg} ({place.strip('<>')}, line {error.lineno})"
        from healkit.parts.explain.facts.observers import observe, suggestions  # most cells do not fail

        innermost = own[-1] if own else None
        near, known_names = suggestions(error, innermost, self.runs.warned)
        kind = type(error)
        prefix = "" if kind.__module__ in {"builtins", "__main__"} else f"{kind.__module__}."
        text = traceback_text(summary, message)
        linked = [
            msgspec.structs.replace(
                self._failure(linked_error, self._own(linked_error), link=link), traceback="", link=link
            )
            for link, linked_error in (linked_to(error) if link is None else ())
        ]
        failure = Failure(
            "TOOL_EXCEPTION",
            prefix + kind.__qualname__,
            _plain(message, _MESSAGE_MAX_CHARS),
            _plain(text.rstrip(), _TRACEBACK_MAX_CHARS),
            frames[-_FRAMES_MAX:],
            near=near,
            known=known_names,
            facts=observe(error, innermost, self.runs.warned),
            linked=linked,
        )
        if link is not None:
            return failure
        frames_of = (entry.tb_frame.f_locals for entry in own[-_FRAMES_MAX:])
        secrets = named_secrets([*frames_of, self._shell.user_ns], failure.texts)
        return msgspec.structs.replace(failure, secrets=list(itertools.islice(secrets, SECRETS_MAX)))

    def _name(self, filename: str) -> str:
        """Return `<In [12]>` for a cell's own code, otherwise the file's path."""
        code_name = self._shell.compile.format_code_name(filename)
        if code_name is None or not code_name[1].startswith("In["):
            return filename
        return f"<In {code_name[1].removeprefix('In')}>"

    def _is_own(self, filename: str) -> bool:
        """Return whether it is a cell or a file of the user: neither installed nor part of Python."""
        if self._name(filename) != filename:
            return True
        # Compiled code names its files from the folder of the library, such as `pyarrow/error.pxi`.
        is_file = os.path.isfile(filename) and bool(linecache.getlines(filename))
        return (
            is_file and not filename.startswith(_LIBRARIES) and not any(part in filename for part in _FOREIGN)
        )


#: Longer containers and larger arrays are not copied before a cell that changes them runs.
_ITEMS_MAX, _ARRAY_MAX_BYTES = 100_000, 8 * 1024 * 1024


class ValuesBefore:
    """Values that the running cell may change, as they were before it ran.

    A name that the cell binds again costs a reference; a value that it changes in place costs a shallow copy. Values
    that are too large for a copy are only named.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._values: dict[str, Any] = {}
        self._unknown: list[str] = []

    def remember(self, source: str) -> None:
        """Keep the values that a cell's text changes; called before it runs. Never raises."""
        self._values, self._unknown = {}, []
        bound, mutated = list[str](), list[str]()
        if not source.strip() or len(source) > _SOURCE_MAX_CHARS:
            return
        from healkit.parts.cells.dataflow import names_changed  # late: the extension loads without it

        try:
            bound, mutated = names_changed(source)
            for name in bound:
                if name in self._shell.user_ns and name not in mutated:
                    self._values[name] = self._shell.user_ns[name]
            for name in mutated:
                if name in self._shell.user_ns:
                    self._copy(name, self._shell.user_ns[name])
        except Exception:  # noqa: BLE001 - a stranger's `copy`; what is not kept is said to be unknown
            self._unknown = [name for name in (*bound, *mutated) if name not in self._values]

    def take(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the kept values, and the names of those that could not be kept; then forget them here."""
        result = self._values, tuple(self._unknown)
        self._values, self._unknown = {}, []
        return result

    def _copy(self, name: str, value: Any) -> None:
        package = type(value).__module__.partition(".")[0]
        small = isinstance(value, list | dict | set | bytearray) and len(value) <= _ITEMS_MAX
        if small or (
            package == "numpy" and getattr(value, "nbytes", _ARRAY_MAX_BYTES + 1) <= _ARRAY_MAX_BYTES
        ):
            self._values[name] = copy.copy(value)
        elif package == "pandas" and hasattr(value, "copy"):
            # Since pandas 3 a shallow copy is one: what is written to either is written to that one alone.
            shares = int(sys.modules["pandas"].__version__.partition(".")[0]) < 3
            if not shares:
                self._values[name] = value.copy(deep=False)
            elif value.size * 8 <= _ARRAY_MAX_BYTES:
                self._values[name] = value.copy()
            else:
                self._unknown.append(name)
        elif not isinstance(value, str | int | float | tuple | frozenset | bytes | ModuleType):
            self._unknown.append(name)


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        if not _is_ipython(entry.tb_frame.f_code.co_filename):
            yield entry
        entry = entry.tb_next


def _is_ipython(filename: str) -> bool:
    return (
        f"{os.sep}IPython{os.sep}core{os.sep}" in filename
        or f"{os.sep}ipykernel{os.sep}" in filename.replace("ipykernel_", "")
    )


def _locals(own: list[TracebackType]) -> Iterator[Local]:
    """Yield the variables of the innermost own frame; at a cell's top level, those that its code names."""
    if not own:
        return
    from healkit.parts.post_mortem.previews import preview

    frame = own[-1].tb_frame
    names = list(frame.f_locals)
    if frame.f_locals is frame.f_globals:
        named = set(frame.f_code.co_names)
        names = [name for name in names if name in named and name not in GIVEN]
    visible = [name for name in names if not name.startswith(("__", ".")) and name != "_"]
    for name in visible[:LOCALS_MAX]:
        value = frame.f_locals[name]
        if type(value).__name__ not in {"module", "function", "type", "builtin_function_or_method"}:
            yield preview(name, value)


def _plain(text: str, limit: int) -> str:
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= limit else f"{text[: limit // 2]}\n…\n{text[-limit // 2 :]}"


_RUNS_MAX, _WARNINGS_MAX, _SOURCE_MAX_CHARS = 2000, 200, 200_000
#: Sessions before this kernel's that are looked through, and how many of their texts.
_SESSIONS_MAX, _FOUND_MAX = 3, 30
#: Shorter texts are in many notebooks, and do not identify one.
_TELLING_CHARS = 20


class KernelRuns:
    """Runs of this kernel, oldest first."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._noted: deque[CellRun] = deque(maxlen=_RUNS_MAX)
        #: Warnings of the last cells, as Python notes them; IPython forgets them before each cell.
        self.warned: deque[Any] = deque(maxlen=_WARNINGS_MAX)

    def note(self, result: ExecutionResult | None) -> None:
        """Record a cell that has ended; called by the `post_run_cell` hook."""
        info = getattr(result, "info", None)
        if (
            result is None
            or info is None
            or not info.store_history
            or len(info.raw_cell or "") > _SOURCE_MAX_CHARS
        ):
            return
        self.warned.extend(self._shell.user_ns.get("__warningregistry__", ()))
        error = result.error_in_exec or result.error_before_exec
        self._noted.append(self.run_of(info.raw_cell or "", result.execution_count, info.cell_id, error))

    def run_of(
        self, source: str, count: int | None, cell_id: str | None, error: BaseException | None
    ) -> CellRun:
        """Describe a run that has just ended."""
        return CellRun(
            source,
            count,
            error is None,
            cell_id or "",
            time.time(),
            self._failed_line(error, count) if error is not None else None,
            type(error).__name__ if error is not None else "",
            self._missing(error),
        )

    def history(self) -> list[CellRun]:
        """List all runs so far; those before the extension was loaded have an unknown ending."""
        counts = {run.count for run in self._noted}
        typed = enumerate(self._shell.history_manager.input_hist_raw)
        before = [
            CellRun(text, count, None)
            for count, text in typed
            if count and count not in counts and count < self._shell.execution_count and text
        ]
        return sorted([*before, *self._noted], key=lambda run: run.count or 0) if before else [*self._noted]

    def earlier(self, texts: Sequence[str]) -> Callable[[str], list[CellRun]]:
        """Return a function that searches IPython's history for runs of a name before this kernel, in this notebook.

        texts: The notebook's texts. A session that ran no text of them belongs to another notebook and is skipped.
        """

        def found(name: str) -> list[CellRun]:
            try:
                return list(self._earlier(name, {text.strip() for text in texts}))
            except Exception:  # noqa: BLE001 - a history that cannot be read is none
                return []

        return found

    def _earlier(self, name: str, texts: set[str]) -> Iterator[CellRun]:
        manager = self._shell.history_manager
        telling = {text for text in texts if len(text) >= _TELLING_CHARS}
        rows = list(manager.search(f"*{name}*", raw=True, output=False, n=_FOUND_MAX))
        session_matches: dict[int, bool] = {}
        for session, _, text in reversed(rows):
            if session == manager.session_number or (
                session not in session_matches and len(session_matches) >= _SESSIONS_MAX
            ):
                continue
            if session not in session_matches:
                ran = {row[2].strip() for row in manager.get_range(session, raw=True)}
                session_matches[session] = bool(ran & telling)
            if session_matches[session] and text.strip() not in texts:
                yield CellRun(text, None, None)

    def _missing(self, error: BaseException | None) -> str:
        """Return the name that the notebook's namespace lacks; empty if the failure is about something else."""
        if not isinstance(error, NameError) or isinstance(error, UnboundLocalError):
            return ""
        from healkit.parts.explain.catalogue import NOT_DEFINED  # read with the first failure only

        match, frames = re.match(NOT_DEFINED, str(error)), [*traceback.walk_tb(error.__traceback__)]
        space = self._shell.user_ns
        if match is None or not frames or frames[-1][0].f_globals is not self._shell.user_global_ns:
            return ""
        return "" if match[1] in space else match[1]

    def _failed_line(self, error: BaseException, count: int | None) -> int | None:
        """Return the line of the cell itself that failed."""
        if isinstance(error, SyntaxError):
            return error.lineno
        for frame, line in traceback.walk_tb(error.__traceback__):
            name = self._shell.compile.format_code_name(frame.f_code.co_filename)
            if frame.f_code.co_name == "<module>" and name is not None and name[1] == f"In[{count}]":
                return line
        return None

    def functions_in(self, error: BaseException) -> tuple[tuple[str, int], ...]:
        """List the cells' functions that the traceback passes through, innermost first, with their cell's prompt."""
        functions = []
        for frame, _ in traceback.walk_tb(error.__traceback__):
            code = frame.f_code
            name = self._shell.compile.format_code_name(code.co_filename)
            if name is not None and not code.co_name.startswith("<"):
                match = re.fullmatch(r"In\[(\d+)\]", name[1])
                functions += [(code.co_name, int(match[1]))] if match is not None else []
        return tuple(dict.fromkeys(reversed(functions)))


def advice_for(
    shell: InteractiveShell, runs: KernelRuns, error: BaseException, failed: CellRun, near: list[str]
) -> CellAdvice | None:
    """Find which cells to run, or what is wrong; None if nothing is known, or if the search failed."""
    from healkit.parts.cells.advice import CellCase, advise  # most cells do not fail
    from healkit.parts.cells.notebook_file import find_notebook

    try:
        frames = runs.functions_in(error)
        if not failed.missing and not frames:
            return None
        history = runs.history()
        notebook = find_notebook(shell.user_ns, os.environ, [*history, failed])
        cells = notebook.cells if notebook is not None else ()
        case = CellCase(
            failed,
            history,
            notebook,
            frozenset(shell.user_ns),
            frames,
            runs.earlier([*(cell.source for cell in cells), failed.source]),
            tuple(near),
        )
        return advise(case)
    except Exception:  # noqa: BLE001 - skip a guess that fails
        return None
