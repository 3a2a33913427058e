"""Dock where it cannot be, and what its page asks.

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


@pytest.mark.slow
def test_a_docked_panel_comes_to_the_front_when_its_page_asks(run: Any) -> None:
    ask = """
from healkit.notebook.widgets import panel as dock
commands, sent = dock._window.commands, []
commands.set_trait("_command_list", ["tabsmenu:activate-by-id"])  # as the page lists them
commands.send = lambda content, _=None: sent.append(content["payload"])
dock._docked["Executions"][1]._asked("front", {"tab": "its-tab"})
print(sent)"""
    book = run("%load_ext healkit", "%executions --dock", ask, allow_errors=False)
    (output,) = book.cells[2].outputs
    assert output.text.strip() == "[{'id': 'tabsmenu:activate-by-id', 'args': {'id': 'its-tab'}}]"
