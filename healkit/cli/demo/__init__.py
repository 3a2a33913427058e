"""Story of healkit on a terminal: a repair, then healing.

Everything is real: each tool runs in a restricted worker and fails there, and each step checks its own result before
the next one begins. Only times, ids and the isolation that this machine can enforce differ from run to run.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from healkit.cli.demo.chapter import StepFailed
from healkit.cli.demo.first_repair import FirstRepair
from healkit.cli.demo.self_healing import SelfHealing
from healkit.errors import HealkitError

if TYPE_CHECKING:
    from healkit.app import Healkit


def _typed() -> str:
    """Return the command as it was typed, such as `.venv/bin/healkit`."""
    command = Path(sys.argv[0])
    return sys.argv[0] if command.name == "healkit" and not shutil.which("healkit") else "healkit"


def run_demo(console: Console, healkit: Healkit) -> bool:
    """Play the story on `console`; return False if a step did not do what it says.

    healkit: opened on a database for this purpose, since the story adds tools and patches them.
    """
    unicode = console.encoding.lower().startswith("utf")
    tick, cross = ("✓", "✗") if unicode else ("ok:", "FAILED:")
    chapters = FirstRepair(console, healkit), SelfHealing(console, healkit)
    steps = [step for chapter in chapters for step in chapter.steps]
    for number, (title, step) in enumerate(steps, start=1):
        console.print()
        console.rule(Text(f"{number}. {title}", style="bold"), align="left", style="dim")
        try:
            said = step()
        except (StepFailed, HealkitError) as error:
            console.print(Text(f"{cross} Step {number} did not do what it says: {error}", style="bold red"))
            return False
        console.print(Text(f"{tick} {said}", style="green"))
    console.print()
    console.print(
        Text("The failures were recorded, found and fixed, and each fix was checked.", style="bold")
    )
    console.print(
        Text(f"Next: {_typed()} lab opens JupyterLab here, with the lessons. The demo has kept nothing.")
    )
    return True
