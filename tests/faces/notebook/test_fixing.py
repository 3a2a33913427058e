"""Card and panel of a failing cell, shown again."""

from __future__ import annotations

import contextlib
import hashlib
import io
from typing import Any

import pytest

from healkit.faces.notebook.fixing import show_fix

WIDGET = "application/vnd.jupyter.widget-view+json"
CELL = "total = 5\nx = totl + 3"
SHOW = "from healkit.faces.notebook.fixing import show_fix; show_fix({})"
TOOL = "%%tool half\ndef half(n: int):\n    return n / O"


def shown(outputs: list[Any]) -> tuple[list[str], str]:
    """Return the kinds of the outputs, and the text of the first."""
    kinds = ["panel" if WIDGET in output.data else "card" for output in outputs]
    return kinds, outputs[0].data["text/plain"]


@pytest.mark.requirement("FACE-10")
@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(["%load_ext healkit", "%healkit off", CELL], id="cards are off"),
        pytest.param(["1", "2", CELL], id="healkit was not loaded"),
        pytest.param(["def f():\n    return totl", "2", "f()"], id="a function of another cell"),
    ],
)
def test_the_failing_cell_gets_its_card_and_panel(run: Any, cells: list[str]) -> None:
    kinds, said = shown(run(*cells, SHOW.format(3)).cells[-1].outputs)
    assert kinds == ["card", "panel"]
    assert "NameError" in said
    assert "totl" in said


@pytest.mark.slow
@pytest.mark.requirement("FACE-10")
def test_a_text_that_python_cannot_read_and_a_failing_tool_get_theirs(run: Any) -> None:
    book = run("print('a'", SHOW.format(1), TOOL, "%run_tool half n=3", SHOW.format(4))
    kinds, said = shown(book.cells[1].outputs)
    assert (kinds, "SyntaxError" in said) == (["card", "panel"], True)
    kinds, said = shown(book.cells[-1].outputs)
    assert (kinds, "half v1" in said) == (["card", "panel"], True)


@pytest.mark.requirement("FACE-10")
def test_a_tool_that_failed_before_healkit_was_loaded_is_known_too(run: Any) -> None:
    program = (
        "from healkit import Healkit\nhk = Healkit()\nhk.vault.add('half', 'def half(n):\\n    return n / O')"
    )
    kinds, said = shown(
        run(program, "hk.execute_tool('half', arguments={'n': 1})", SHOW.format(2)).cells[-1].outputs
    )
    assert (kinds, "half v1" in said) == (["card", "panel"], True)


@pytest.mark.requirement("FACE-10")
def test_what_this_kernel_does_not_know_is_said_in_a_sentence(shell: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        shell.reset()
        shell.run_cell(f"{CELL}\n\n", store_history=True)  # as in a page's cell that ends in empty lines
    known = hashlib.sha256(CELL.encode()).hexdigest()[:16]

    def said(number: int | None, source_hash: str = "") -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            show_fix(number, source_hash)
        return out.getvalue()

    restarted = "The kernel was restarted. Run the cells above, then this one."
    assert restarted in said(7)
    assert restarted in said(None)
    assert restarted in said(1, "0" * 16)  # another kernel had another cell with that prompt
    assert "NameError" in said(1, known)
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_cell("1", store_history=True)
    passed = "This kernel has no record of how In [2] failed. Run the cell again, then press Fix."
    assert passed in said(2, hashlib.sha256(b"1").hexdigest()[:16])
    assert "'x'" not in said(1)


@pytest.mark.requirement("FACE-10")
def test_where_explanations_are_limited_it_says_why_no_fix_is_shown(shell: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        shell.reset()
        shell.run_cell("%load_ext healkit\n%config HealkitMagics.explain = 'what'", store_history=True)
        shell.run_cell(CELL, store_history=True)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        show_fix(2)
    assert "NameError" in out.getvalue()
    assert "No fixes are shown here, because explanations are limited to 'what'." in out.getvalue()
