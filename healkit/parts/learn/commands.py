"""Commands: graph, suggest, and what was learned."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from healkit.commands import options
from healkit.commands.options import word
from healkit.commands.table import Answer, Command, Group
from healkit.parts.learn import render
from healkit.parts.learn.answers import Answers, sentence_of
from healkit.plain_text import count

if TYPE_CHECKING:
    from healkit.services import Services


def _notes(answers: Answers[Any]) -> list[str]:
    """Take the sentence on waiting traces out of an answer, for stderr."""
    waiting, answers.waiting = answers.waiting, 0
    return [sentence_of(waiting)] if waiting else []


def graph(
    services: Services,
    tool: Annotated[str | None, word("a tool; shows only the tools that it is used with", "TOOL")] = None,
) -> Answer:
    """Show which tools go together: which calls which, which comes after which, whose result goes into which."""
    edges = services.graph.drawn(tool)
    notes = _notes(edges)
    return Answer(lambda: repr(edges), lambda: [edge.to_json() for edge in edges], clipped=True, notes=notes)


def suggest(
    services: Services,
    intent: Annotated[str | None, word("what you want to do, in words and in quotes", "INTENT")] = None,
    after: Annotated[list[str] | None, options.AFTER] = None,
    limit: Annotated[int, options.SUGGESTED] = options.SUGGESTED.default,
) -> Answer:
    """Suggest tools to call, for an intent or after other calls, and say why."""
    suggestions = services.suggest(intent, after=after or (), k=limit)
    rows: list[dict[str, Any]] = [
        {"tool": suggestion.tool, "share": suggestion.share, "why": suggestion.why}
        for suggestion in suggestions
    ]
    return Answer(lambda: repr(suggestions), lambda: rows, clipped=True, notes=_notes(suggestions))


def show_learned(services: Services) -> Answer:
    """Show what was learned: the runs that surprised most, and the fixes that are remembered."""
    surprising, executions = services.learning.surprising(), services.learning.count()
    fixes, waiting = services.learning.memory.show(), surprising.waiting

    def data() -> dict[str, Any]:
        return {
            "executions": executions,
            "waiting": waiting,
            "surprising": [dataclasses.asdict(row) for row in surprising],
            "fixes": fixes,
        }

    notes = _notes(surprising)
    return Answer(lambda: render.learned(executions, surprising, fixes), data, table=True, notes=notes)


def show_report(services: Services) -> Answer:
    """Show for each tool whether its failures can be foreseen, measured on its own record."""
    measurements = services.learning.report()
    return Answer(measurements.card, lambda: [dataclasses.asdict(row) for row in measurements], table=True)


def learn_the_rest(services: Services) -> Answer:
    """Learn from all traces that wait, and wait for that."""
    many = services.learning.catch_up()
    return Answer(said=f"learned from {count(many, 'trace')}", data=lambda: {"traces": many})


def learn_again(services: Services) -> Answer:
    """Forget what was learned from traces, and learn it again from the log; the same log gives the same numbers."""
    many = services.learning.rebuild()
    return Answer(said=f"learned again from {many:,} executions", data=lambda: {"executions": many})


def forget_fixes(services: Services) -> Answer:
    """Forget every fix so far, those of the vault and imported ones; the vault's history stays."""
    services.learning.memory.reset()
    return Answer(said="all fixes so far were forgotten", data=lambda: {"reset": True})


def export_fixes(services: Services, file: Annotated[Path, word("a new file", "FILE")]) -> Answer:
    """Write the remembered fixes to a file, as templates without your names and values."""
    many = services.learning.memory.export(file)
    return Answer(said=f"{file} written: {many:,} fixes", data=lambda: {"file": str(file), "fixes": many})


def import_fixes(
    services: Services, file: Annotated[Path, word("a file that `export` wrote", "FILE")]
) -> Answer:
    """Read fixes that another vault has exported; each is tried like any other before it is kept."""
    many = services.learning.memory.import_(file)
    return Answer(said=f"{many:,} fixes imported", data=lambda: {"file": str(file), "fixes": many})


GROUP = Group(
    "What healkit learned from traces; without a command, the most surprising runs and the remembered fixes.",
    {
        "show": Command(show_learned),
        "report": Command(show_report),
        "catch-up": Command(learn_the_rest),
        "rebuild": Command(learn_again),
        "reset": Command(forget_fixes),
        "export": Command(export_fixes),
        "import": Command(import_fixes),
    },
    alone="show",
)
COMMANDS = {"graph": Command(graph), "suggest": Command(suggest), "learn": GROUP}
