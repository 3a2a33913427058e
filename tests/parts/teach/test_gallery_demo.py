"""Story on the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from healkit import Healkit
from healkit.core.store.database import Database
from healkit.core.store.vault import Vault
from healkit.faces.cli.demo import run_demo


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


@pytest.mark.slow
def test_piped_output_has_no_colour_codes_and_fits_a_terminal(told):
    _, text = told
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.slow
def test_a_failing_step_is_named(tmp_path):
    database = Database(tmp_path / "story.db")
    Vault(database).add("fibonacci", "def fibonacci(n: int):\n    return 55\n")
    database.close()
    outcome, text = tell(tmp_path / "story.db")
    assert outcome is False
    assert "✗ Step 1 did not do what it says" in text
