"""What a decision is asked for, and the views that it holds."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from healkit.core.contracts.vault import VaultEntry
from healkit.core.secrets.cleaner import Cleaner
from healkit.parts.decide.choosers import Chooser
from healkit.parts.decide.records import EntityQuestion, Origin, Resumed, ToolFacts, Turn, ViewFacts
from healkit.parts.runs.contract import PolicyDefaults

if TYPE_CHECKING:
    import pandas as pd

#: Gets the question which value is meant; returns one of its candidates, or None.
Ask = Callable[[EntityQuestion], Any]


#: Consent to healing: False, True for cures that pass every check, or a function that is asked about each patch.
HealConsent = bool | Callable[..., Any]


class Analyst(Protocol):
    """Writes the analysis of a result."""

    #: Name in the record of the decision.
    name: str

    def write(self, turn: Turn) -> str:
        """Return a text with references in place of numbers; called once, after the decision is finalized."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecideOptions:
    """Arguments of `hk.decide`, unchanged."""

    question: str | None
    data: Mapping[str, Any] | None
    chooser: Chooser | Sequence[Mapping[str, Any]] | str | None
    resume: str | None
    tools: Sequence[str] | None
    persona: str
    share: Sequence[str]
    aliases: Mapping[str, Sequence[str]] | None
    heal: HealConsent
    ask: Ask | None
    analyst: Analyst | str | None
    policy: PolicyDefaults | None
    timeout: float | None
    stop: threading.Event


@dataclasses.dataclass(frozen=True)
class HeldView:
    """View of a decision: its value, its name in `hk.views`, and its facts.

    told: Labels that the chooser gets unchanged.
    texts: The texts of a view of texts; its frame has one row for each.
    file_name: The name of its file in `hk.views`, which contains the hash of its content.
    """

    value: object
    frame: pd.DataFrame
    kept_as: str
    facts: ViewFacts
    origin: Origin
    told: frozenset[str]
    file_name: str
    texts: Sequence[str] | None = None

    @property
    def hidden(self) -> set[str]:
        """Labels that the chooser does not get."""
        return {label for label in self.frame.columns if isinstance(label, str)} - self.told


class Shared(NamedTuple):
    """Column of the caller's data that is shared, or a text: then `column` is None."""

    view: str
    column: str | None


class Given(NamedTuple):
    """Data of the caller: its value, as a frame, its texts, and its view, if it already is one."""

    value: object
    frame: pd.DataFrame
    texts: Sequence[str] | None = None
    kept_as: str | None = None

    @property
    def kept(self) -> Any:
        """Value that is kept as a view."""
        return self.value if self.texts is None else self.frame


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
    """Request for a decision, after checks.

    question: Cleaned.
    tools: Vault entries by name.
    offered: The descriptions of the tools for the chooser.
    shared: Columns and texts whose values the chooser gets.
    share: The same in the caller's words.
    files: Files of an earlier run of the decision.
    options: The arguments, unchanged.
    """

    question: str
    chooser: Chooser
    analyst: Analyst | None
    tools: Mapping[str, VaultEntry]
    offered: list[ToolFacts]
    data: Mapping[str, Given]
    shared: Sequence[Shared]
    share: tuple[str, ...]
    aliases: Mapping[str, Sequence[str]]
    cleaner: Cleaner
    resumed: Resumed | None
    files: Sequence[Path]
    options: DecideOptions

    @property
    def persona(self) -> str:
        """Persona of the tools."""
        return self.options.persona
