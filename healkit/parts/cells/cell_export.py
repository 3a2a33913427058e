"""Failing cell of another process: written there, read here.

A notebook that is checked runs in a restricted kernel. There `watch` takes note of each run, and after a failure
`write_failing_cell` writes what healing needs to know of the cell into a folder that the host granted. The host reads
it with `read_failing_cell`, once the kernel has ended. What it finds there is a claim: bounded in size, checked, and
never imported or run.

The examples of a doctest are cells of such a kernel too: `watch_examples` makes them print as in doctest and writes the
outcome of each, which the host reads with `read_outcome`.
"""

from __future__ import annotations

import asyncio
import doctest
import importlib
import io
import re
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
_Record = TypeVar("_Record")
_WORD = re.compile(r"[^\W\d]\w*")
_OUTPUT_MAX_CHARS = 1_000_000
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


class ExampleOutcome(msgspec.Struct, frozen=True):
    """What an example of a doctest printed, and how it failed."""

    output: str
    failure: Failure | None


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


def watch_examples(folder: str, paths: Sequence[str]) -> None:
    """Run this kernel's cells as examples of doctests from now on; called in it before the first.

    Each expression prints its `repr`, and there are no magics. folder: where the outcomes are written, by prompt.
    paths: where the modules of the examples are.
    """
    from IPython import get_ipython

    shell = get_ipython()
    cells, kept = FailedCells(shell), list[Any]()
    sys.path[:0] = paths
    shell.ast_node_interactivity, shell.autoawait = "all", False
    shell.display_trap.hook = sys.__displayhook__
    inputs = shell.input_transformer_manager
    inputs.cleanup_transforms, inputs.line_transforms, inputs.token_transformers = [], [], []

    def before_example(_info: ExecutionInfo) -> None:
        kept[:] = sys.stdout, io.StringIO(), asyncio._get_running_loop()
        sys.stdout = kept[1]
        asyncio._set_running_loop(None)  # an example may call `asyncio.run`, which a cell may not

    def after_example(result: ExecutionResult) -> None:
        sys.stdout, output, loop = kept
        asyncio._set_running_loop(loop)
        error, count = result.error_in_exec or result.error_before_exec, result.execution_count
        cell = cells.add(error, result.info.raw_cell or "", count) if error is not None else None
        text = output.getvalue()[:_OUTPUT_MAX_CHARS].encode(errors="backslashreplace").decode()
        outcome = ExampleOutcome(text, cell.execution.uncleaned.failure if cell is not None else None)
        Path(folder, f"{count}.json").write_bytes(msgspec.json.encode(outcome))

    shell.events.register("pre_run_cell", before_example)
    shell.events.register("post_run_cell", after_example)


def begin_examples(module: str, modules: Mapping[str, str]) -> None:
    """Give the next examples names of their own: those of a module, where one is named, and `modules` by name."""
    from IPython import get_ipython

    names = {"__name__": "__main__"} | (vars(importlib.import_module(module)) if module else {})
    shell = get_ipython()
    shell.user_ns.clear()
    shell.user_ns.update(names, **{name: importlib.import_module(path) for name, path in modules.items()})
    shell.compile.reset_compiler_flags()
    shell.compile.flags |= vars(doctest)["_extract_future_flags"](names)


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
    record = _read(folder, _CELL, _Cell)
    if record is None:
        return None
    run, failure = record.run, _claimed(record.failure)
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


def read_outcome(folder: Path, prompt: int) -> ExampleOutcome | None:
    """Return the outcome of an example by its prompt; None where there is none that can be read."""
    outcome = _read(folder, f"{prompt}.json", ExampleOutcome)
    if outcome is None or outcome.failure is None:
        return outcome
    return msgspec.structs.replace(outcome, failure=_claimed(outcome.failure))


def _read(folder: Path, name: str, kind: type[_Record]) -> _Record | None:
    try:
        with plain_files.open_regular(folder, name) as file:
            written = file.read(_CELL_MAX_BYTES + 1)
        return claims.decode(written, msgspec.json.Decoder(kind).decode, max_bytes=_CELL_MAX_BYTES)
    except (OSError, ValueError):
        return None


def _claimed(failure: Failure) -> Failure:
    return msgspec.structs.replace(with_own_secrets(capped(failure)), code="TOOL_EXCEPTION")


def _was_sent(run: CellRun, sent: Mapping[int, str]) -> bool:
    return run.count is not None and sent.get(run.count) == run.source


def _read_values(folder: Path, listed: Mapping[str, _Value]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    left_bytes = _ALL_MAX_BYTES
    for name, value in listed.items():
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
