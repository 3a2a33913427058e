"""Failing cells of the user's own.

They ran in the user's kernel: without a worker, a restriction or a row in the log, which holds executions of tools
only. The last of them are kept in memory as executions, to be explained, exported and turned into tools. Their names,
such as `In [12]`, are those of the prompts.
"""

from __future__ import annotations

import dataclasses
import linecache
import os
import sysconfig
import traceback
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import Config
from healkit.contracts.execution import new_trace_id, utc_now
from healkit.contracts.failure import (
    Failure,
    Frame,
    Link,
    linked_to,
    message_of,
    read_traceback,
    text_of,
)
from healkit.notebook.kernel_history import KernelRuns

if TYPE_CHECKING:
    from healkit.cells import CellAdvice
    from healkit.contracts.post_mortem import Local
    from healkit.runtime.execution import Execution

CELLS_MAX, LOCALS_MAX = 20, 30
_FRAMES_MAX, _MESSAGE_MAX_CHARS, _TRACEBACK_MAX_CHARS = 200, 10_000, 100_000
_LIBRARIES = tuple(
    path + os.sep
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths()[name])
)
_FOREIGN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: What IPython puts into the user's namespace, and what is no data.
_GIVEN = {"In", "Out", "get_ipython", "exit", "quit", "open"}


@dataclasses.dataclass(frozen=True)
class FailedCell:
    """Failing cell, as an execution, with the innermost own frame's variables as they were.

    advice: which cells would give what it lacks, where that is known.
    """

    execution: Execution
    locals: tuple[Local, ...]
    number: int | None
    seen: int
    first_seen: Any
    advice: CellAdvice | None = None


class FailedCells:
    """Last failing cells of this kernel, newest last."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._kept: deque[FailedCell] = deque(maxlen=CELLS_MAX)
        self._counts: dict[str, tuple[int, Any]] = {}
        self.runs = KernelRuns(shell)

    def add(
        self, error: BaseException, code: str, number: int | None, cell_id: str | None = None
    ) -> FailedCell:
        """Take note of a cell that raised; called once the cell is over."""
        from healkit.contracts.failure import fingerprint  # most cells do not fail
        from healkit.notebook.cell_advice import advice_for
        from healkit.runtime.execution import Execution

        label = f"In [{number if number is not None else '*'}]"
        own = self._own(error)
        failure = self._failure(error, own)
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
        cell = FailedCell(execution, tuple(_locals(own)), number, count + 1, first, advice)
        self._kept.append(cell)
        return cell

    @property
    def last(self) -> FailedCell | None:
        """Newest of them; None while there is none."""
        return self._kept[-1] if self._kept else None

    def numbered(self, number: int) -> FailedCell | None:
        """Return the one with that prompt number."""
        return next((cell for cell in reversed(self._kept) if cell.number == number), None)

    def _own(self, error: BaseException) -> list[TracebackType]:
        return [
            entry
            for entry in _entries(error.__traceback__)
            if self._is_own(entry.tb_frame.f_code.co_filename)
        ]

    def _failure(self, error: BaseException, own: list[TracebackType], link: Link | None = None) -> Failure:
        summary = read_traceback(error)
        shown = [frame for frame in summary.stack if not _is_ipython(frame.filename)]
        summary.stack = traceback.StackSummary.from_list(
            [traceback.FrameSummary(self._name(f.filename), f.lineno, f.name, line=f.line) for f in shown]
        )
        frames = [
            Frame(self._name(f.filename), f.lineno or 0, f.name, f.line or "", self._is_own(f.filename))
            for f in shown
        ]
        message = message_of(error)
        if isinstance(error, SyntaxError) and error.filename and self._is_own(error.filename):
            place = self._name(error.filename)
            frames.append(Frame(place, error.lineno or 1, "<module>", error.text or "", in_tool=True))
            summary.filename = place
            message = f"{error.msg} ({place.strip('<>')}, line {error.lineno})"
        from healkit.facts import observe, suggestions  # most cells do not fail

        innermost = own[-1] if own else None
        near, known = suggestions(error, innermost)
        kind = type(error)
        prefix = "" if kind.__module__ in {"builtins", "__main__"} else f"{kind.__module__}."
        text = text_of(summary, message)
        linked = [
            msgspec.structs.replace(self._failure(one, self._own(one), link=link), traceback="", link=link)
            for link, one in (linked_to(error) if link is None else ())
        ]
        return Failure(
            "TOOL_EXCEPTION",
            prefix + kind.__qualname__,
            _plain(message, _MESSAGE_MAX_CHARS),
            _plain(text.rstrip(), _TRACEBACK_MAX_CHARS),
            frames[-_FRAMES_MAX:],
            near=near,
            known=known,
            facts=observe(error, innermost),
            linked=linked,
        )

    def _name(self, filename: str) -> str:
        """Return `<In [12]>` for a cell's own code, else the file's path."""
        found = self._shell.compile.format_code_name(filename)
        if found is None or not found[1].startswith("In["):
            return filename
        return f"<In {found[1].removeprefix('In')}>"

    def _is_own(self, filename: str) -> bool:
        """Tell if it is a cell or a file of the user's: neither installed nor Python's own."""
        if self._name(filename) != filename:
            return True
        is_file = not filename.startswith("<") and bool(linecache.getlines(filename))
        return (
            is_file and not filename.startswith(_LIBRARIES) and not any(part in filename for part in _FOREIGN)
        )


def _entries(told: TracebackType | None) -> Iterator[TracebackType]:
    while told is not None:
        if not _is_ipython(told.tb_frame.f_code.co_filename):
            yield told
        told = told.tb_next


def _is_ipython(filename: str) -> bool:
    return (
        f"{os.sep}IPython{os.sep}core{os.sep}" in filename
        or f"{os.sep}ipykernel{os.sep}" in filename.replace("ipykernel_", "")
    )


def _locals(own: list[TracebackType]) -> Iterator[Local]:
    """Yield the innermost own frame's variables; at a cell's top level, those that its code names."""
    if not own:
        return
    from healkit.contracts.post_mortem import preview

    frame = own[-1].tb_frame
    names = list(frame.f_locals)
    if frame.f_locals is frame.f_globals:
        named = set(frame.f_code.co_names)
        names = [name for name in names if name in named and name not in _GIVEN]
    shown = [name for name in names if not name.startswith(("__", ".")) and name != "_"]
    for name in shown[:LOCALS_MAX]:
        value = frame.f_locals[name]
        if type(value).__name__ not in {"module", "function", "type", "builtin_function_or_method"}:
            yield preview(name, value)


def _plain(text: str, limit: int) -> str:
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= limit else f"{text[: limit // 2]}\n…\n{text[-limit // 2 :]}"
