"""Vault entries as a notebook shows them."""

from __future__ import annotations

import dataclasses
from typing import Any

from healkit.contracts.vault import VaultEntry
from healkit.rendering import html_of, listings, text_of


@dataclasses.dataclass(frozen=True, repr=False)
class ShownVaultEntry(VaultEntry):
    """Vault entry that a notebook shows as a card; `hk.vault` returns these."""

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Print the card as text, or within a list the short form; called by IPython for the value of a cell."""
        printer.text(text_of(listings.saved(self)) if printer.indentation == 0 else repr(self))

    def _repr_html_(self) -> str:
        """Return the card as HTML; called by a notebook that shows the entry."""
        return html_of(listings.saved(self))
