"""Failing cell of another, perhaps hostile, process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from healkit.core.contracts.failure import Failure
from healkit.parts.cells import cell_export
from healkit.parts.cells.cell_program import RemoteValue
from healkit.parts.cells.notebook_file import CellRun, NotebookCell, NotebookFile
from healkit.parts.cells.own_cells import FailingCell

FIRST, FAILING = CellRun("rows = [1]", 1), CellRun("rows.appendd(2)", 2, ok=False, failed_line=1)
SENT = {1: FIRST.source, 2: FAILING.source}
FAILED = Failure("TOOL_EXCEPTION", "AttributeError", "no 'appendd'", "AttributeError: no 'appendd'")
#: File or folder that the kernel wrote; how it is changed; whether the cell can still be read.
Tampering = tuple[str, Callable[[Path], object], bool]


def replaced(**fields: Any) -> Callable[[Path], object]:
    """Put other fields into the record of the cell."""
    return lambda file: file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def elsewhere(target: str) -> Callable[[Path], object]:
    """Put a link in its place."""

    def link(place: Path) -> None:
        place.rename(place.with_suffix(".old"))
        place.symlink_to(target)

    return link


def run(source: str, count: int) -> dict[str, Any]:
    return {"source": source, "count": count}


TAMPERINGS: dict[str, Tampering] = {
    "untouched": ("cell.json", lambda _: None, True),
    "deep": ("cell.json", lambda file: file.write_text("[" * 100_000), False),
    "a link": ("cell.json", elsewhere("/etc/passwd"), False),
    "a folder": ("cell.json", lambda file: (file.unlink(), file.mkdir()), False),
    "gone": ("cell.json", lambda file: file.unlink(), False),
    "too large": ("cell.json", lambda file: os.truncate(file, 200_000_000), False),
    "another cell": ("cell.json", replaced(run=run("rows.add(2)", 2)), False),
    "no frames": ("cell.json", replaced(failure={"frames": 3}), False),
    "another history": ("cell.json", replaced(history=[run("rows = 2", 1)]), True),
    "a value that was not written": ("cell.json", replaced(namespace={"rows": 10**6}), True),
    "deep values": ("0/values.json", lambda file: file.write_text("{" * 100_000), True),
    "large contents": ("0/contents", lambda file: os.truncate(file, 200_000_000), True),
    "a value that is a link": ("0", elsewhere("/etc"), True),
}


@pytest.mark.requirement("FACE-13")
def test_what_a_hostile_kernel_leaves_for_the_host_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = FailingCell(FAILING, FAILED, None, {"rows": [1]}, {}, (), [FIRST])
    monkeypatch.setattr(cell_export, "_watched", SimpleNamespace(find=lambda _number: cell))
    notebook = NotebookFile((NotebookCell(1, FIRST.source), NotebookCell(2, FAILING.source)))
    wrong = []
    for kind, (place, tamper, is_read) in TAMPERINGS.items():
        folder = tmp_path / kind
        folder.mkdir()
        cell_export.write_failing_cell(str(folder), values=True)
        tamper(folder / place)
        found = cell_export.read_failing_cell(folder, SENT, notebook, (str(tmp_path),))
        if (found is not None) != is_read:
            wrong.append(kind)
        if found is None:
            continue
        value = found.namespace["rows"]
        honest = kind in ("untouched", "another history", "large contents")
        if (value != [1]) if honest else not (isinstance(value, RemoteValue) and value.kind == "value"):
            wrong.append(f"{kind}: {value!r}")
        if (list(found.history) == [FIRST]) == (kind == "another history"):
            wrong.append(f"{kind}: {found.history!r}")
    assert wrong == []


def test_an_outcome_of_an_example_is_bounded_and_read_from_a_regular_file_only(tmp_path: Path) -> None:
    outcome = {
        "output": "3\n",
        "failure": {"code": "TOOL_TIMEOUT", "ename": "E", "evalue": "e" * 10**6, "traceback": ""},
    }
    (tmp_path / "1.json").write_text(json.dumps(outcome))
    (tmp_path / "2.json").symlink_to(tmp_path / "1.json")
    (tmp_path / "3.json").write_text("[" * 100_000)
    os.mkfifo(tmp_path / "4.json")
    found = [cell_export.read_outcome(tmp_path, prompt) for prompt in range(6)]
    assert [outcome is not None for outcome in found] == [False, True, False, False, False, False]
    assert found[1] is not None
    assert found[1].failure is not None
    assert found[1].failure.code == "TOOL_EXCEPTION"
    assert len(found[1].failure.evalue) < 10**6
