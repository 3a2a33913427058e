"""The fix of a tool, and the cells that define it."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import nbformat
import pytest

from healkit.errors import FixUndone
from healkit.faces.defaults import default_healkit

BROKEN = "def half(n: int):\n    return n / O\n"
FIXED = "def half(n: int):\n    return n / 2\n"


def ran(shell: Any, cell: str) -> Any:
    """Run a cell, and return its result; what it prints is left aside."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return shell.run_cell(cell, store_history=True)


@pytest.fixture
def loaded(shell: Any) -> Any:
    """Return a shell in which the broken tool was saved by a cell, and asks are taken note of."""
    ran(shell, "%load_ext healkit")
    ran(shell, f"%%tool half\n{BROKEN}")
    shell.asked = []
    shell.set_next_input = lambda text, replace=False: shell.asked.append((text, replace))
    yield shell
    del shell.set_next_input, shell.asked


def fixed_by(author: str) -> None:
    """Make the fix the active revision."""
    default_healkit().vault.patch("half", FIXED, author=author, reason="divide by 2")


@pytest.mark.requirement("FACE-10")
def test_an_old_cell_stops_before_it_undoes_a_fix(loaded):
    fixed_by("rule")
    raised = ran(loaded, f"%%tool half\n{BROKEN}").error_in_exec
    assert isinstance(raised, FixUndone)
    assert str(raised).startswith(
        "The vault has a healed half v2 that this cell does not have. The cell's code is that of v1; it was not saved."
    )
    assert default_healkit().vault.get("half").revision == 2


def test_the_fix_is_taken_into_the_cell_or_overwritten(loaded):
    fixed_by("search")
    ran(loaded, f"%%tool half --take\n{BROKEN}")
    assert loaded.asked == [(f"%%tool half\n{FIXED}", True)]
    assert default_healkit().vault.get("half").revision == 2
    ran(loaded, f"%%tool half --replace\n{BROKEN}")
    assert default_healkit().vault.get("half").code == BROKEN


def test_other_code_is_saved_as_always(loaded):
    fixed_by("rule")
    assert ran(loaded, f"%%tool half --draft\n{BROKEN}").success
    assert ran(loaded, f"%%tool half\n{FIXED}# by hand\n").success
    assert default_healkit().vault.get("half").revision == 4


def test_a_fix_is_not_lost_below_a_later_revision(loaded):
    fixed_by("rule")
    default_healkit().vault.patch("half", f"{FIXED}# in a program\n")
    raised = ran(loaded, f"%%tool half\n{BROKEN}").error_in_exec
    assert "a healed half v3 that this cell does not have" in str(raised)


@pytest.mark.parametrize(
    "change",
    [
        lambda vault: vault.patch("half", FIXED, author="seed"),
        lambda vault: vault.patch("half", FIXED),
        lambda vault: (fixed_by("rule"), vault.revert("half", 1), vault.patch("half", f"{FIXED}# again\n")),
    ],
    ids=["seed", "a person's edit", "a fix that was taken back"],
)
def test_a_revision_that_is_not_a_fix_does_not_stop_a_cell(loaded, change):
    change(default_healkit().vault)
    assert ran(loaded, f"%%tool half\n{BROKEN}").success
    assert default_healkit().vault.get("half").code == BROKEN


def test_a_cell_that_is_kept_again_undoes_no_fix(loaded):
    ran(loaded, "rate = 3")
    ran(loaded, "total = rate * amount")
    ran(loaded, "%healkit keep total_of")
    default_healkit().vault.patch("total_of", "def total_of(rate: int):\n    return rate\n", author="rule")
    raised = ran(loaded, "%healkit keep total_of").error_in_exec
    assert isinstance(raised, FixUndone)
    assert "%vault revert total_of 1" in str(raised)


def test_a_fix_by_hand_stops_the_cell_where_the_notebook_is_known_to_lack_it(loaded, tmp_path, monkeypatch):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"%%tool half\n{BROKEN}")])
    nbformat.write(book, tmp_path / "book.ipynb")
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "book.ipynb"))
    row = default_healkit().execute("half", arguments={"n": 4}).log_id
    default_healkit().vault.patch("half", FIXED, motivating_log_id=row)
    raised = ran(loaded, f"%%tool half\n{BROKEN}").error_in_exec
    assert "a fixed half v2 that this cell does not have" in str(raised)


def test_cells_that_hold_both_revisions_run_one_after_the_other_as_often_as_wanted(
    loaded, tmp_path, monkeypatch
):
    cells = [f"%%tool half\n{BROKEN}", f"%%tool half\n{FIXED}"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(book, tmp_path / "book.ipynb")
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "book.ipynb"))
    for _ in range(2):
        for cell in cells:
            ran(loaded, "%run_tool half n=4")
            assert ran(loaded, cell).success
    assert default_healkit().vault.get("half").code == FIXED


@pytest.mark.requirement("FACE-10")
def test_what_was_healed_is_put_into_the_cell_of_the_magic(loaded, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda prompt="": "y")
    default_healkit().vault.add("total", "def total(values: list):\n    return summ(values)\n")
    ran(loaded, "%run_tool total values=[1,2]")
    for line in ("%heal --apply", "%heal total --apply"):  # the second finds nothing that fails any more
        ran(loaded, line)
        assert loaded.asked.pop() == (
            "%%tool total\ndef total(values: list):\n    return sum(values)\n",
            True,
        )
    assert ran(loaded, "%heal total --apply --panel").error_in_exec is not None
