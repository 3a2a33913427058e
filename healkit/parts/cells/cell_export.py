"""Failing cell of another process: written there, read here.

A checked notebook runs in a restricted kernel. There, `watch` records each run. After a failure, `write_failing_cell`
writes what healing needs to know about the cell into a folder that the host granted. The host reads it with
`read_failing_cell` after the kernel has ended. It does not trust the content: it limits the size, checks it, and never
imports or runs it.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import MIB
from healkit.core import plain_files
from healkit.core.contracts.failure import Failure
from healkit.core.crossing.values import CannotCross
from healkit.core.runtime.outcomes import capped, with_own_secrets
from healkit.core.wire import claims
from healkit.parts.cells import snapshot_file
from healkit.parts.cells.advice import CellCase, advise
from healkit.parts.cells.cell_program import RemoteValue, why_refused
from healkit.parts.cells.dataflow import dataflow_of
from healkit.parts.cells.notebook_file import CellRun, NotebookFile
from healkit.parts.cells.own_cells import FailedCells, FailingCell

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult

#: Limits of a value that the cell may need, of one that it hardly needs, of all of them as they are read.
_VALUE_MAX_BYTES, _OTHER_MAX_BYTES, _ALL_MAX_BYTES = 512 * MIB, MIB, 1024 * MIB
_CELL_MAX_BYTES, _VALUES_MAX, _REASON_MAX_CHARS = 8 * MIB, 300, 500
_CELL = "cell.json"
_WORD = re.compile(r"[^\W\d]\w*")
_PROMPT = re.compile(r"<In \[(\d{1,9})\]>")

#: Number of its snapshot, name of a module, or what stands for it.
_Value = int | str | RemoteValue


class _Cell(msgspec.Struct, frozen=True):
    run: CellRun
    failure: Failure
    unknown: tuple[str, ...]
    history: list[CellRun]
    defined: list[str]
    namespace: dict[str, _Value]
    before: dict[str, _Value]


# In the kernel.

_watched: FailedCells | None = None


def watch(*, values: bool) -> None:
    """Record the runs of this kernel from now on; called in the kernel before its first cell.

    values: Keep values that a cell changes too, because healing needs them.
    """
    global _watched
    from IPython import get_ipython

    shell = get_ipython()
    cells = _watched = FailedCells(shell)

    def before_cell(info: ExecutionInfo) -> None:
        cells.values.remember(info.raw_cell or "")

    def after_cell(result: ExecutionResult) -> None:
        error, info = result.error_in_exec or result.error_before_exec, result.info
        if error is not None:
            cells.add(error, info.raw_cell or "", result.execution_count, info.cell_id)
        cells.runs.note(result)

    if values:
        shell.events.register("pre_run_cell", before_cell)
    shell.events.register("post_run_cell", after_cell)


def write_failing_cell(folder: str, *, values: bool) -> None:
    """Write the cell that failed last to that folder; called in its kernel, after it."""
    cell = _watched.find(None) if _watched is not None else None
    if cell is None:
        return
    cell_words = {*_WORD.findall(cell.run.source), *cell.failure.near}
    wanted = _mentioned(cell_words, cell.history) if values else cell_words
    candidates = [name for name in cell.namespace if values and not name.startswith("_")]
    names = sorted(candidates, key=lambda name: (name not in cell_words, name not in wanted))[:_VALUES_MAX]
    entries = [(name, cell.namespace[name], name in wanted) for name in names]
    entries += [(name, value, True) for name, value in cell.before.items()]
    written = [
        (name, _write(Path(folder, str(number)), name, value, needed=needed))
        for number, (name, value, needed) in enumerate(entries)
    ]
    record = _Cell(
        cell.run,
        cell.failure,
        cell.unknown,
        list(cell.history),
        list(cell.namespace),
        dict(written[: len(names)]),
        dict(written[len(names) :]),
    )
    Path(folder, _CELL).write_bytes(msgspec.json.encode(record))


def _write(place: Path, name: str, value: Any, *, needed: bool) -> _Value:
    """Write a value as its own snapshot: one value that cannot cross does not affect the others."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    if (remote := RemoteValue.of(name, value)) is not None:
        return remote
    place.mkdir()
    try:
        snapshot_file.write_snapshot(place, {name: value}, _VALUE_MAX_BYTES if needed else _OTHER_MAX_BYTES)
        return int(place.name)
    except CannotCross as error:
        why = error.why
    except Exception as error:  # noqa: BLE001 - larger than a file may be, or a stranger's own code
        why = getattr(error, "strerror", None) or type(error).__name__
    for file in place.iterdir():
        file.unlink()
    return RemoteValue("value", why_refused(name, value, why))


def _mentioned(names: set[str], history: Sequence[CellRun]) -> set[str]:
    """Return these names and, recursively, the names in the texts of cells that bind one of them."""
    flows = [(dataflow_of(run.source), run.source) for run in history]
    while True:
        binding = [source for flow, source in flows if names & (flow.bound.keys() | flow.mutated)]
        more = names.union(*map(_WORD.findall, binding))
        if more == names:
            return names
        names = more


# In the host.


def read_failing_cell(
    folder: Path, sent: Mapping[int, str], notebook: NotebookFile, within: tuple[str, ...]
) -> FailingCell | None:
    """Return the failing cell that an ended kernel wrote; None if there is none that can be read.

    sent: The texts of the cells that the kernel got, by prompt; other texts are ignored.
    notebook: The notebook, with the ids of these cells.
    within: The folders where the cell's files may be; the first is the notebook's folder.
    """
    try:
        with plain_files.open_regular(folder, _CELL) as file:
            written = file.read(_CELL_MAX_BYTES + 1)
        record = claims.decode(written, msgspec.json.Decoder(_Cell).decode, max_bytes=_CELL_MAX_BYTES)
    except (OSError, ValueError):
        return None
    run, failure = (
        record.run,
        msgspec.structs.replace(with_own_secrets(capped(record.failure)), code="TOOL_EXCEPTION"),
    )
    if not _was_sent(run, sent):
        return None
    history = [
        earlier_run for earlier_run in record.history if earlier_run != run and _was_sent(earlier_run, sent)
    ]
    matches = ((frame.name, _PROMPT.fullmatch(frame.filename)) for frame in reversed(failure.frames))
    frames = tuple((name, int(place[1])) for name, place in matches if place and not name.startswith("<"))
    near = tuple(failure.near)
    case = CellCase(run, history, notebook, frozenset(record.defined), frames, near=near)
    here, *below = notebook.from_run(run) or (None,)
    return FailingCell(
        run,
        failure,
        advise(case) if run.missing or frames else None,
        _read_values(folder, record.namespace),
        _read_values(folder, record.before),
        record.unknown,
        history,
        [(lower_cell.source, f"Cell {lower_cell.number}") for lower_cell in below],
        here.result if here is not None else "",
        within[0],
        within,
    )


def _was_sent(run: CellRun, sent: Mapping[int, str]) -> bool:
    return run.count is not None and sent.get(run.count) == run.source


def _read_values(folder: Path, told: Mapping[str, _Value]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    left_bytes = _ALL_MAX_BYTES
    for name, value in told.items():
        if isinstance(value, str):
            values[name] = types.ModuleType(value)  # its name is all that is asked of it
        elif isinstance(value, RemoteValue):
            values[name] = RemoteValue(value.kind, value.told[:_REASON_MAX_CHARS])
        else:
            try:
                values[name], size = snapshot_file.load_claimed(folder, str(value), name, left_bytes)
                left_bytes -= size
            except (OSError, ValueError) as error:
                values[name] = RemoteValue("value", f"`{name}` cannot be read: {error}"[:_REASON_MAX_CHARS])
    return values
