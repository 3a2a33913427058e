"""Kernel that these tests share: new for each of them.

They take turns with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from notebook_kernel import NotebookKernel
from notebook_samples import BROKEN, text_of

LEAVES = (
    "%load_ext healkit",
    "%config HealkitMagics.explain = 'why'",
    BROKEN,
    "%run_tool fibonacci n=1",
    "import os, sys, ipywidgets\nos.environ['LEFT'] = 'x'\nos.chdir('/')\nslider = ipywidgets.IntSlider()",
    "open('{folder}/left.py', 'w').write('x = 1')\nsys.path.insert(0, '{folder}')\nimport left\nsys.path.pop(0)",
    "from healkit import Healkit\nhk = Healkit()\npanel = hk.browse()\nhk.heal_panel('fibonacci')\n1 / 0",
)
LOOKS = (
    "import gc, os, sys, IPython\nshell = IPython.get_ipython()\nprint('first')",
    "[name for name in ('slider', 'hk', 'panel') if name in globals()], len(In), dict(Out)",
    "'left' in sys.modules, os.environ.get('LEFT'), os.getcwd(), os.environ['HEALKIT_DB']",
    "getattr(sys, 'last_value', None), shell._last_traceback, shell.config.get('HealkitMagics')",
    "'run_tool' in shell.magics_manager.magics['line'], shell.Completer.custom_matchers, shell.custom_exceptions",
    "[str(hook) for hook in shell.events.callbacks['post_run_cell'] if 'healkit' in str(hook)]",
    "__import__('ipywidgets').widgets.widget._instances, __import__('comm').get_comm_manager().comms",
    "[healkit for healkit in __import__('healkit.app').app.open_healkits if not healkit.closed]",
    "{session for session, *_ in shell.history_manager.search('*')} - {shell.history_manager.session_number}",
    "%load_ext healkit",
    "%vault list",
    "%config HealkitMagics.explain",
)


def said(cell: Any) -> str:
    """Return what a cell shows, in one line."""
    return " ".join(text_of(cell).split())


@pytest.mark.slow
def test_nothing_of_a_notebook_is_there_for_the_next(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "other.db"))
    run(*(cell.replace("{folder}", str(tmp_path)) for cell in LEAVES))
    assert (tmp_path / "left.py").exists()
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "healkit.db"))
    cells = run(*LOOKS).cells
    assert [cell.execution_count for cell in cells] == list(range(1, len(LOOKS) + 1))
    _, names, process, *others, vault, config = (said(cell).replace(str(tmp_path), "…") for cell in cells)
    errors, magics, hooks, widgets, opened, history, _ = others
    assert names == "([], 3, {})"
    assert process == f"(False, None, {str(Path.cwd())!r}, '…/healkit.db')"
    assert errors == "(None, None, None)"
    assert magics == "(False, [], ())"
    assert hooks == opened == "[]"
    assert history == "set()"
    assert widgets == "({}, {})"
    assert "fibonacci" not in vault
    assert config == "'fix'"


@pytest.mark.slow
def test_what_cannot_be_undone_is_an_error_and_the_next_kernel_is_another(
    run: Any, notebook_kernel: NotebookKernel
) -> None:
    (cell,) = run("import os, sys\nsys.path.insert(0, '/left')\nos.getpid()").cells
    with pytest.raises(AssertionError, match=r"not as it was.*/left"):
        run("1")
    (other,) = run("import os\nos.getpid()").cells
    assert text_of(cell) != text_of(other)
