"""What a magic shows: one thing in text and in HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from IPython.display import display


@dataclass(frozen=True)
class Shown:
    """Text for a terminal and HTML for a notebook, chosen by whoever displays it."""

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Called by IPython's display formatter."""
        return {"text/plain": self.text, "text/html": self.html}

    def show(self) -> None:
        """Display it below the running cell."""
        display(self)
