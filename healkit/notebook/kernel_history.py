"""History of this kernel: what ran, cell by cell.

IPython keeps the texts of cells, but not whether they failed, nor which cell of the notebook they were. This module
adds that after each cell, once the extension is loaded. Earlier cells are taken from IPython; how they ended is
unknown.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from healkit.cells import CellRun

_RUNS_MAX, _SOURCE_MAX_CHARS = 2000, 200_000
#: Sessions before this kernel's that are looked through, and how many of their texts.
_SESSIONS_MAX, _FOUND_MAX = 3, 30
#: Shorter texts are in many notebooks, and do not identify one.
_TELLING_CHARS = 20


class KernelRuns:
    """Runs of this kernel, oldest first."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._noted: deque[CellRun] = deque(maxlen=_RUNS_MAX)

    def note(self, result: Any) -> None:
        """Take note of a cell that has ended; called by the `post_run_cell` hook."""
        info = getattr(result, "info", None)
        if info is None or not info.store_history or len(info.raw_cell or "") > _SOURCE_MAX_CHARS:
            return
        error = result.error_in_exec or result.error_before_exec
        self._noted.append(self.run_of(info.raw_cell or "", result.execution_count, info.cell_id, error))

    def run_of(
        self, source: str, count: int | None, cell_id: str | None, error: BaseException | None
    ) -> CellRun:
        """Describe a run that has ended just now."""
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
        """Return what asks IPython's own history for runs of a name before this kernel, in this notebook's sessions.

        texts: the notebook's; a session in which none of them ran was another notebook's, and is not looked at.
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
        known: dict[int, bool] = {}
        for session, _, text in reversed(rows):
            if session == manager.session_number or (session not in known and len(known) >= _SESSIONS_MAX):
                continue
            if session not in known:
                ran = {row[2].strip() for row in manager.get_range(session, raw=True)}
                known[session] = bool(ran & telling)
            if known[session] and text.strip() not in texts:
                yield CellRun(text, None, None)

    def _missing(self, error: BaseException | None) -> str:
        """Return the name that the notebook's namespace lacks; empty where the failure is about something else."""
        if not isinstance(error, NameError) or isinstance(error, UnboundLocalError):
            return ""
        from healkit.failures.names import NOT_DEFINED  # read with the first failure only

        match, last = re.match(NOT_DEFINED, str(error)), _last(error.__traceback__)
        space = self._shell.user_ns
        if match is None or last is None or last.tb_frame.f_globals is not self._shell.user_global_ns:
            return ""
        return "" if match[1] in space else match[1]

    def _failed_line(self, error: BaseException, count: int | None) -> int | None:
        """Return the line of the cell itself that failed."""
        if isinstance(error, SyntaxError):
            return error.lineno
        for told in _entries(error.__traceback__):
            code = told.tb_frame.f_code
            name = self._shell.compile.format_code_name(code.co_filename)
            if code.co_name == "<module>" and name is not None and name[1] == f"In[{count}]":
                return told.tb_lineno
        return None

    def functions_in(self, error: BaseException) -> tuple[tuple[str, int], ...]:
        """List the cells' functions that the traceback passes through, innermost first, with their cell's prompt."""
        found = []
        for told in _entries(error.__traceback__):
            code = told.tb_frame.f_code
            name = self._shell.compile.format_code_name(code.co_filename)
            if name is not None and not code.co_name.startswith("<"):
                match = re.fullmatch(r"In\[(\d+)\]", name[1])
                found += [(code.co_name, int(match[1]))] if match is not None else []
        return tuple(dict.fromkeys(reversed(found)))


def _entries(told: TracebackType | None) -> Iterator[TracebackType]:
    while told is not None:
        yield told
        told = told.tb_next


def _last(told: TracebackType | None) -> TracebackType | None:
    last = None
    for last in _entries(told):  # noqa: B007 - the last one is what is wanted
        pass
    return last
