"""The static card of a healing: how it stands, for whoever reads the notebook without its kernel.

It has no numbers that go on: a card is written again only where something has happened that a reader must know.
"""

from __future__ import annotations

from typing import Any

from healkit.contracts.entries import VaultEntry
from healkit.healing.report import HealReport
from healkit.notebook.cell_output import CellOutput
from healkit.rendering import healing
from healkit.rendering.document import Card, Line, Only, Span, Tone

#: What is said of a healing that goes on; a kernel that ends then can say nothing more.
_GOES_ON = "It goes on. The report stands here once there is one; when the kernel ends, so does the healing."
_KEEPING = "The patch was accepted, and is run once more. The report stands here once there is one."


def heal_card(state: dict[str, Any], report: HealReport | None, entry: VaultEntry) -> CellOutput:
    """The report where there is one, else what goes on, what is asked, or what the panel is for.

    state: as `HealSession.state` has it, without secrets. report: the same, cleaned.
    """
    if report is not None:
        return _reported(state, report)
    if (problem := state["problem"]) is not None:
        said = f"{entry.label} could not be healed: {problem['message']}"
        return CellOutput.of(Card(said, "✗", "bad", parts=(problem["hint"],)))
    said, phase, asked = f"Healing of {entry.label}", state["phase"], state["asked"]
    if phase == "question":
        lines = (
            "It has a question. What is right for",
            asked["call"],
            "? The panel takes the answer; without one the healing goes by what it knows.",
        )
        return _going_on(said, lines, "warn")
    if phase == "consent":
        words = f"A patch waits for your word: {asked['words']}. The panel shows it; when the kernel ends,"
        lines = (f"{words} it waits as a request:", "%healkit requests", "")
        return _going_on(said, lines, "warn")
    if phase in ("working", "keeping"):
        words = _KEEPING if phase == "keeping" else _GOES_ON
        return _going_on(said, (words, "", ""), "info")
    flag = "" if entry.persona == "default" else f" --persona {entry.persona}"
    command = f"%heal {entry.tool_name}{flag}"
    lines = ("The report stands here once there is one.", command, "does the same in a cell.")
    return _going_on(said, lines, "info")


def _reported(state: dict[str, Any], report: HealReport) -> CellOutput:
    since = state["settled"]
    if state["undone"]:
        since = f"Undone: {state['undone']} is active, with the code from before."
    card = healing.card(report)
    return CellOutput.of((card, Card(tone="warn", parts=(since,))) if since else card)


def _going_on(said: str, lines: tuple[str, str, str], tone: Tone) -> CellOutput:
    """A card of one sentence, with the code in the middle of it, if there is any."""
    before, code, after = lines
    sentence = (f"{before} ", Span(code, "code", tone), f" {after}") if code else before
    text = " ".join(part for part in (f"{said}.", before, code, after) if part)
    return CellOutput.of(Card(said, tone=tone, parts=(Only("html", Line(sentence)),), line=text))
