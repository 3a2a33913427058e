"""Chapters of the story, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

if TYPE_CHECKING:
    from healkit.app import Healkit


class StepFailed(Exception):
    """A step that did not do what it says."""


class Chapter:
    """Steps in order: each has a title and a function that does it and returns the result as a sentence."""

    def __init__(self, console: Console, healkit: Healkit) -> None:
        self.console = console
        self.healkit = healkit
        self.steps: list[tuple[str, Callable[[], str]]] = []

    def say(self, call: str) -> None:
        """Print the call that comes next, as you would type it."""
        self.console.print(Text(f">>> {call}", style="cyan"))

    def show(self, content: RenderableType, title: str, style: str = "dim") -> None:
        """Print something in a frame with a title."""
        self.console.print(Panel(content, title=title, title_align="left", border_style=style))


def check(holds: bool, otherwise: str) -> None:
    """Raise `StepFailed` unless it holds."""
    if not holds:
        raise StepFailed(otherwise)


def syntax(text: str, language: str) -> Syntax:
    """Return code or a diff, coloured where the terminal has colours."""
    return Syntax(
        text.rstrip("\n"), language, theme="ansi_dark", word_wrap=True, background_color="default",
        line_numbers=language == "python",
    )  # fmt: skip
