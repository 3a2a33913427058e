"""Face of `Healkit`: the methods of its parts."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from healkit import Healkit
from healkit.core.runtime.runner import Runner

PARTS = {
    "runner": (
        "execute",
        "aexecute",
        "execute_tool",
        "aexecute_tool",
        "rerun",
        "replay",
        "try_code",
        "trials",
        "run",
    ),
    "history": ("last_error", "last_error_report", "execution", "executions", "replay_of", "plot"),
    "healing": ("heal", "aheal", "heal_cell", "check_notebook"),
    "decisions": ("decide", "adecide"),
    "host": ("provide", "withdraw"),
    "mcp": ("connect", "connect_all", "disconnect", "servers"),
    "panels": ("browse", "patch_editor", "heal_panel", "timeline", "decide_panel", "audit_panel"),
}
OWN = (
    "export_cassette",
    "regress",
    "undo",
    "seed",
    "suggest",
    "summarize",
    "status",
    "doctor",
    "trust",
    "close",
)


def test_a_method_of_the_face_is_that_of_the_part(tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db") as healkit:
        for part, names in PARTS.items():
            for name in names:
                of_the_part = getattr(getattr(healkit, part), name)
                assert inspect.signature(getattr(healkit, name)) == inspect.signature(of_the_part), name


def test_the_face_has_no_other_methods_and_no_base_class() -> None:
    methods = {name for name, value in vars(Healkit).items() if callable(value) and not name.startswith("_")}
    assert methods == {name for names in (*PARTS.values(), OWN) for name in names}
    assert Healkit.__bases__ == (object,)
    assert inspect.unwrap(Healkit.execute) is Runner.execute


@pytest.mark.slow
def test_panels_say_what_they_need_where_the_notebook_face_is_not_loaded(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom healkit.app import Healkit\nfrom healkit.errors import UsageInvalid\n"
        "try:\n    Healkit(sys.argv[1]).browse()\nexcept UsageInvalid as error:\n    print(error.message, error.hint)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "healkit.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (
        done.stdout
        == "Live panels need the notebook extension, which is not loaded. Run %load_ext healkit.\n"
    )


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
