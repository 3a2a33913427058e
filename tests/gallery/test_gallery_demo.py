"""Story on the terminal.

It is true, readable when piped, and honest when a step fails.
"""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from healkit import Healkit
from healkit.cli.demo import GALLERY, SelfHealing, run_demo
from healkit.store.database import Database
from healkit.store.vault import Vault


def tell(path) -> tuple[bool, str]:
    """Run the story; return its outcome and its text as a pipe gets it."""
    console = Console(file=io.StringIO(), width=80)
    with Healkit(path) as healkit:
        outcome = run_demo(console, healkit)
    return outcome, console.file.getvalue()


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> tuple[bool, str]:
    """Run the whole story once."""
    return tell(tmp_path_factory.mktemp("story") / "story.db")


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.requirement("HEAL-6", "LOG-9")
def test_the_steps_do_what_they_say(told):
    outcome, text = told
    assert outcome is True, text
    assert sum(line.startswith("✓ ") for line in text.splitlines()) == 9
    assert "ZeroDivisionError: division by zero" in text
    assert "-        growth = current / previous" in text
    assert "fibonacci v2 returned 55" in text
    assert "are fixed with no regressions, without a model or a network." in text
    assert "What is right?" in text
    assert "Next: healkit lab opens JupyterLab here" in text  # D9: it ended without a next command


class Watched(io.StringIO):
    """Terminal that notes which tools were in the vault when the line of a tool was written."""

    def __init__(self, healkit: Healkit) -> None:
        super().__init__()
        self._healkit = healkit
        self.known: dict[str, list[str]] = {}

    def write(self, text: str) -> int:
        for name in GALLERY:
            if name in text and "fixed, no regressions" in text:
                self.known[name] = [shown.tool_name for shown in self._healkit.vault.list()]
        return super().write(text)


@pytest.mark.slow
def test_each_healed_tool_has_its_line_before_the_next_one_is_begun(tmp_path):
    """Before, the step healed 24 tools and printed nothing until the last one, for minutes on a slow machine."""
    with Healkit(tmp_path / "story.db") as healkit:
        terminal = Watched(healkit)
        console = Console(file=terminal, width=80, force_terminal=True)
        SelfHealing(console, healkit).gallery()
    assert {name: sorted(known) for name, known in terminal.known.items()} == {
        name: sorted(GALLERY[: number + 1]) for number, name in enumerate(GALLERY)
    }
    for name in GALLERY:
        assert f"{name}: running it" in terminal.getvalue()  # what a terminal shows meanwhile
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).replace("\r", "\n")
    assert max(map(len, drawn.splitlines())) <= 80  # a longer one wraps, and part of it stays


@pytest.mark.slow
def test_piped_output_has_no_colour_codes_and_fits_a_terminal(told):
    _, text = told
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "step"),
    [
        ("fibonacci", "def fibonacci(n: int):\n    return 55\n", 1),
        ("get_last_error", "def get_last_error(tool_name=None):\n    return 'all is well'\n", 3),
    ],
)
def test_a_failing_step_is_named(tmp_path, name, code, step):
    database = Database(tmp_path / "story.db")
    vault = Vault(database)
    if name == "get_last_error":
        with Healkit(tmp_path / "story.db") as healkit:
            healkit.seed(debug_tools_only=True)
        vault.patch(name, code, reason="sabotage")
    else:
        vault.add(name, code)
    database.close()

    outcome, text = tell(tmp_path / "story.db")
    assert outcome is False
    assert f"✗ Step {step} did not do what it says" in text
