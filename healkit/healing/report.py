"""Report of a healing, as text and as a card."""

from __future__ import annotations

import dataclasses
from typing import Any

from healkit.contracts.heal_report import HealReportData
from healkit.rendering import healing, html_of, text_of


@dataclasses.dataclass(frozen=True)
class HealReport(HealReportData):
    """Report of one healing from observation to revision; a notebook shows it as a card."""

    def __str__(self) -> str:
        return text_of(healing.card(self))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return html_of(healing.card(self))
