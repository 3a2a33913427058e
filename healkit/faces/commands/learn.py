"""Commands of what was learned from the traces."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from healkit.faces.commands.options import word
from healkit.faces.commands.table import Answer, Command, Group
from healkit.parts.learn import render

if TYPE_CHECKING:
    from healkit.app import Healkit


def show(healkit: Healkit) -> Answer:
    """Show what was learned: the runs that surprised most, and the fixes that are remembered."""
    count, surprising = healkit.learning.count(), healkit.learning.surprising()
    fixes = healkit.learning.memory.show()

    def data() -> dict[str, Any]:
        return {
            "executions": count,
            "surprising": [dataclasses.asdict(row) for row in surprising],
            "fixes": fixes,
        }

    return Answer(lambda: render.learned(count, surprising, fixes), data, table=True)


def report(healkit: Healkit) -> Answer:
    """Show for each tool whether its failures can be foreseen, measured on its own record."""
    measurements = healkit.learning.report()
    return Answer(measurements.card, lambda: [dataclasses.asdict(row) for row in measurements], table=True)


def rebuild(healkit: Healkit) -> Answer:
    """Forget what was learned from traces, and learn it again from the log; the same log gives the same numbers."""
    many = healkit.learning.rebuild()
    return Answer(said=f"learned again from {many:,} executions", data=lambda: {"executions": many})


def reset(healkit: Healkit) -> Answer:
    """Forget every fix so far, those of the vault and imported ones; the vault's history stays."""
    healkit.learning.memory.reset()
    return Answer(said="all fixes so far are forgotten", data=lambda: {"reset": True})


def export(healkit: Healkit, file: Annotated[Path, word("a new file", "FILE")]) -> Answer:
    """Write the remembered fixes to a file, as templates without your names and values."""
    many = healkit.learning.memory.export(file)
    return Answer(said=f"{file} written: {many:,} fixes", data=lambda: {"file": str(file), "fixes": many})


def import_(healkit: Healkit, file: Annotated[Path, word("a file that `export` wrote", "FILE")]) -> Answer:
    """Read fixes that another vault has exported; each is tried like any other before it is kept."""
    many = healkit.learning.memory.import_(file)
    return Answer(said=f"{many:,} fixes imported", data=lambda: {"file": str(file), "fixes": many})


GROUP = Group(
    "What was learned from the traces; without a command, the most surprising runs and the remembered fixes.",
    {
        "show": Command(show),
        "report": Command(report),
        "rebuild": Command(rebuild),
        "reset": Command(reset),
        "export": Command(export),
        "import": Command(import_),
    },
    alone="show",
)
