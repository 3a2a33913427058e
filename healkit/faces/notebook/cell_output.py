"""Output of a magic: text, HTML, and a live panel below."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, get_args

from IPython import get_ipython
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.display import display

from healkit.config import Config, ExplainLevel
from healkit.core.rendering import listings, to_html
from healkit.core.rendering.document import Card, Document, Part
from healkit.core.rendering.to_html import Html, html_of
from healkit.core.rendering.to_text import text_of
from healkit.faces.notebook import panels
from healkit.faces.notebook.to_json import json_of

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from healkit.app import Healkit
    from healkit.commands.table import Answer
    from healkit.core.runtime.execution import Executions


class LivePanel(Protocol):
    """Panel below a card: the part of its interface that the card uses."""

    def show(self, *, card: bool = True) -> None:
        """Display it; called if a page can draw it."""


#: Type of a failure's card as data, which JupyterLab's extension draws; elsewhere, the HTML is shown.
FAILURE_TYPE = "application/vnd.healkit.failure+json"
#: Title of a folded card.
_SAME = "The same without a kernel"
#: Makes the panel when it is displayed, because most cards never need anywidget.
MakePanel = Callable[[], LivePanel]


def live_page() -> bool:
    """Tell if a page can draw panels here: not in a terminal's IPython, and not where output is captured."""
    shell = get_ipython()
    return hasattr(shell, "kernel") and not isinstance(shell.display_pub, CapturingDisplayPublisher)


def fixes_offered(config: Config) -> bool:
    """Tell if fixes may be offered here: the configuration or the notebook may limit explanations to a hint."""
    return explain_limit(config) == "fix"


def explain_limit(config: Config) -> ExplainLevel:
    """Return the lower of the two limits: the configuration's, and the notebook's `%config HealkitMagics.explain`."""
    shell = get_ipython()
    magics = None if shell is None else shell.magics_manager.registry.get("HealkitMagics")
    levels: tuple[ExplainLevel, ...] = get_args(ExplainLevel)
    return min(config.explain, config.explain if magics is None else magics.explain, key=levels.index)


@dataclass(frozen=True)
class CellOutput:
    """Text for a terminal and HTML for a notebook; the display chooses.

    `panel` makes the live panel, which is displayed as a second output if a page can draw it. The first output remains
    readable after the kernel has ended. If the panel shows the same content, it comes first, and this output is folded
    below it. `failure` is a failure's card as data.
    """

    text: str
    html: str
    panel: MakePanel | None = None
    panel_first: bool = False
    failure: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, document: Document, panel: MakePanel | None = None) -> CellOutput:
        """Return a document in both forms."""
        return cls(text_of(document), html_of(document), panel)

    @classmethod
    def of_failure(
        cls, document: Document, source: str, *, fixable: bool, panel: MakePanel | None = None
    ) -> CellOutput:
        """Return a failure's card, also as data.

        source: Text of the failed cell; its hash tells a page whether the cell has changed since.
        fixable: Whether a fix may be offered.
        """
        failure = {"version": 1, "source": text_hash(source), "fixable": fixable, "cards": json_of(document)}
        return dataclasses.replace(cls.of(document, panel), failure=failure)

    @classmethod
    def answered(cls, answer: Answer, healkit: Healkit | None = None) -> CellOutput:
        """Return the answer of a command that a terminal has too; `healkit` is needed for an answer with a panel."""
        if answer.said:
            return cls.done(answer.said)
        assert answer.shown is not None
        content = answer.shown()
        document = Card(parts=(content,)) if isinstance(content, str) else content
        return cls.of(document, panel_of(healkit, *answer.panel) if answer.panel and healkit else None)

    @classmethod
    def done(cls, said: str, *parts: Part) -> CellOutput:
        """Return one sentence that says what was done."""
        return cls.of(Card(said, "✓", "good", parts=parts))

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        """Return all forms; called by IPython's display formatter."""
        bundle: dict[str, object] = {"text/plain": self.text, "text/html": self.html}
        return bundle if self.failure is None else {**bundle, FAILURE_TYPE: self.failure}

    def show(self) -> None:
        """Display it below the running cell."""
        panel = self.panel() if self.panel is not None and live_page() else None
        if panel is not None and self.panel_first:
            panel.show(card=False)
            display(self.folded())
            return
        display(self)
        if panel is not None:
            panel.show(card=False)

    def folded(self) -> CellOutput:
        """Return a folded form, to be opened if there is no kernel for the panel above it."""
        return dataclasses.replace(self, html=to_html.fold(_SAME, Html(self.html)), panel=None, failure=None)


def text_hash(source: str) -> str:
    """Return a hash of a cell's text as pages compute it (js/lab/src/failing.ts): 16 hexadecimal digits of its SHA-256.

    It ignores empty lines at the end, which IPython's history drops.
    """
    return hashlib.sha256(source.rstrip("\n").encode("utf-8", "replace")).hexdigest()[:16]


def replace_cell(shell: InteractiveShell, text: str) -> None:
    """Replace the running cell's text after its end; the old text is one undo away."""
    shell.set_next_input(text, replace=True)


def listed(rows: Executions, live: MakePanel | None = None) -> CellOutput:
    """Return a page of the log, with a note on what is left out and the magic that lists it."""
    card = listings.executions(rows, left_out=rows.left_out, ask="%executions --trials")
    return dataclasses.replace(CellOutput.of(card, live), panel_first=True)


def panel_of(healkit: Healkit, kind: str, *about: object, **more: object) -> MakePanel | None:
    """Return a function that makes a live panel of that kind; None if the configuration turns panels off.

    The panel's module is imported when one is opened, so that a notebook without failures need not wait for it.
    """

    def make() -> LivePanel:
        panel: LivePanel = panels.panel_class(kind)(healkit, *about, **more)
        return panel

    return make if healkit.config.panels else None
