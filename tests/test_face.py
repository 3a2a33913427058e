"""Face of `Healkit`: the methods of its parts."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from healkit import Healkit
from healkit.core.runtime.runner import Runner

#: Part → its methods that are the face's too.
PARTS = {
    "runner": ("execute", "aexecute", "execute_tool", "aexecute_tool", "rerun", "try_code"),
    "history": ("last_error", "last_error_report", "execution", "executions"),
    "trends": ("replay_of", "plot"),
    "host": ("provide", "withdraw"),
    "healing": ("heal", "aheal", "heal_cell", "check_notebook"),
    "decisions": ("decide", "adecide"),
    "mcp": ("connect", "connect_all", "disconnect", "servers"),
    "replays": ("replay", "export_cassette"),
    "runs": ("run",),
    "panels": ("browse", "patch_editor", "heal_panel", "timeline", "decide_panel", "audit_panel"),
    "suggester": ("suggest",),
}
#: Parts of the core: their methods are the class's own.
CORE = ("runner", "history", "host")
OWN = ("undo", "trust", "close")
#: Methods that a plug-in makes.
MADE = ("status", "doctor", "trials", "seed", "summarize", "regress")


def test_a_method_of_the_face_is_that_of_the_part(tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db") as healkit:
        for part, names in PARTS.items():
            for name in names:
                of_the_part = getattr(getattr(healkit, part), name)
                assert inspect.signature(getattr(healkit, name)) == inspect.signature(of_the_part), name
        for name in (*MADE, *(name for names in PARTS.values() for name in names)):
            assert name in dir(healkit)
            assert inspect.getdoc(getattr(healkit, name)), name


def test_the_face_has_no_other_methods_and_no_base_class() -> None:
    methods = {name for name, value in vars(Healkit).items() if callable(value) and not name.startswith("_")}
    assert methods == {name for part in CORE for name in PARTS[part]} | set(OWN)
    assert Healkit.__bases__ == (object,)
    assert inspect.unwrap(Healkit.execute) is Runner.execute


def test_what_no_part_adds_is_said_with_what_is_near(tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db") as healkit:
        with pytest.raises(
            AttributeError, match=r"Healkit has no attribute 'brows'\. Did you mean 'browse'\?"
        ):
            _ = healkit.brows
        assert not hasattr(healkit, "_repr_latex_")
        assert not hasattr(healkit.services, "nothing")


def test_panels_open_however_the_class_was_imported(tmp_path: Path) -> None:
    """A panel needed `from healkit import Healkit`: with `healkit.app` nothing had registered the panels."""
    script = (
        "import sys\nfrom healkit.app import Healkit\nprint(type(Healkit(sys.argv[1]).browse()).__name__)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "healkit.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "LogBrowser\n"


def test_a_healkit_shows_its_state(tmp_path: Path) -> None:
    """U8: `hk` was shown as `<healkit.app.Healkit object at 0x…>`."""
    with Healkit(tmp_path / "healkit.db") as healkit:
        assert repr(healkit) == f"<Healkit on '{tmp_path / 'healkit.db'}'>"
        shown = healkit._repr_mimebundle_()
        assert shown["text/plain"].startswith("database")
        assert "isolation" in shown["text/html"]
        assert "tools" in shown["text/html"]
    assert repr(healkit).endswith(", closed>")
    assert healkit._repr_mimebundle_() == {"text/plain": repr(healkit)}
