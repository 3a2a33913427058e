"""Dock where it cannot be.

The places where it can be are in tests/browser.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from healkit import Healkit
from healkit.errors import DockUnavailable


def test_without_ipylab_the_dock_says_what_to_install(
    healkit: Healkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipylab", None)
    with pytest.raises(DockUnavailable) as refused:
        healkit.browse(dock=True)
    assert "pip install 'healkit[dock]'" in refused.value.hint
    assert refused.value.code == "DOCK_UNAVAILABLE"


def test_a_terminal_has_no_window_to_dock_in(shell: Any, capsys: Any) -> None:
    shell.run_cell("%load_ext healkit")
    shell.run_cell("%executions --dock")
    out = capsys.readouterr().out
    assert "There is no window to dock a panel in." in out, out
    shell.run_cell("%executions --dock --group")
    assert "--group cannot be combined with --dock." in capsys.readouterr().out


@pytest.mark.slow
def test_a_docked_log_leaves_no_widget_in_the_cell_and_goes_when_the_extension_does(run: Any) -> None:
    left = "import ipywidgets\nprint(len(ipywidgets.widgets.widget._instances))"
    book = run("%load_ext healkit", left, "%executions --dock", left, "%unload_ext healkit", left)
    before, docked, after = (book.cells[number].outputs[-1].text.strip() for number in (1, 3, 5))
    assert int(docked) > int(before) == int(after)
    (output,) = book.cells[2].outputs
    assert "application/vnd.jupyter.widget-view+json" not in output.data
    assert output.data["text/plain"] == "Executions: open at the right-hand side of the window"
