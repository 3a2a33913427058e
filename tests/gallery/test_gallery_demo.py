"""The story on the terminal: true, readable when piped, and honest when a step fails."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from healkit import Healkit
from healkit.cli.demo import run_demo
from healkit.store.database import Database
from healkit.store.vault import Vault


def tell(path) -> tuple[bool, str]:
    """The outcome and the text of the story as a pipe gets it."""
    console = Console(file=io.StringIO(), width=80)
    with Healkit(path) as healkit:
        outcome = run_demo(console, healkit)
    return outcome, console.file.getvalue()


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> tuple[bool, str]:
    """The whole story, told once."""
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
    assert "fibonacci@2 returned 55" in text
    assert "are cured and regression-free, with no model and no network." in text
    assert "What is right?" in text


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
