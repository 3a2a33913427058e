"""Grants in a notebook."""

from __future__ import annotations

import pytest
from notebook_samples import text_of

from healkit.core.contracts.execution import Grants


@pytest.mark.slow
@pytest.mark.requirement("WORK-2", "FACE-2")
def test_a_tool_is_saved_with_grants_and_they_are_changed_and_shown(run, healkit, tmp_path):
    (tmp_path / "data").mkdir()
    flags = f"--read {tmp_path}/data --memory 64 --cpu 5 --timeout 9 --packages pandas,nh3 --calls host.* --own-grants yes"
    body = "def one():\n    return 1 / 0"
    book = run(
        "%load_ext healkit",
        f"folder = {str(tmp_path)!r}",
        f"%%tool one {flags}\n{body}",
        "%vault show one",
        "%run_tool one",
        "%vault grant one --packages none --read {folder}/data",
        f"%%tool one --cpu 6\n{body}",
        "%vault grant one --clear",
        "%vault show one",
        "%vault show one --memory 4",
    )
    *_, saved, shown, failed, granted, again, cleared, bare, wrong = map(text_of, book.cells)
    assert "one v1 saved" in saved
    assert f"grants       read {tmp_path}/data" in shown
    assert "calls host.*" in shown
    assert "own grants: keeps all of this when another tool calls it" in shown
    assert "grants     read" in failed
    assert "packages none, besides the worker's own" in granted
    assert "one v1 has other grants now" in again
    assert "none: sees only its scratch folder" in cleared
    assert "grants       none: sees only its scratch folder" in bare
    assert "Write %vault grant NAME" in wrong
    page = book.cells[3].outputs[0].data["text/html"]
    assert "memory 64 MiB" in page
    assert "processor time 5 s" in page
    assert healkit.executions()[0].grants == Grants(
        read=(f"{tmp_path}/data",),
        calls=("host.*",),
        memory_mb=64,
        cpu_s=5,
        timeout_s=9,
        packages=("pandas", "nh3"),
        own_grants=True,
    )
