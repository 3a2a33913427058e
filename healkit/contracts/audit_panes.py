"""Contents of a card or a panel on one audited execution.

Three outputs, kept apart: the audit, the data, the analysis. A healing has the first only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from healkit.contracts.audit import AuditEntry, AuditSummary
from healkit.contracts.data_views import DataView
from healkit.contracts.decisions import EntityQuestion

#: Label of every analysis, wherever it is shown.
ANALYSIS_LABEL = "⚡ AI analysis, may be wrong, not deterministic"


@dataclass(frozen=True, slots=True)
class FirstRows:
    """First rows of the first columns of a view, with a word in the place of what is secret."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class AuditPanes:
    """Audit of one execution, and for a decision its data and its analysis.

    kind: `decide`, `heal` or `notebook`. outcome: a decision's, empty where it has none yet. view: the result, and
    `first` its first rows; each None where there is none. notes: sentences that must be read, such as a step that does
    not have its intended state. views: names of the decision's views → their names in `hk.views`. analysis: empty where
    no model wrote one; None where its text is not there any more.
    """

    execution_id: str
    kind: str
    entries: Sequence[AuditEntry]
    summary: AuditSummary
    question: str = ""
    outcome: str = ""
    reason: str = ""
    notes: Sequence[str] = ()
    view: DataView | None = None
    first: FirstRows | None = None
    views: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[Path] = ()
    asked: EntityQuestion | None = None
    analysis: str | None = ""
