"""Audit entries, and what a check of their chain finds.

The names on the wire are those of requirement DECIDE-3, in camelCase. An entry says what was chosen, with which tool,
and how it ended in counts, codes and durations; it contains no data.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from healkit.core.runtime.contents import MentionedView

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter


#: What an entry belongs to: a decision loop, a healing, a cell of a notebook, or a swarm, tree or chat of agents.
#: Agents append their own entries.
ExecutionType = Literal["decide", "heal", "notebook", "swarm", "tree", "chat"]
Count = Annotated[int, msgspec.Meta(ge=0)]
EventNumber = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
#: A choice of a decision loop (`gather_info`), or an event of a healing (`proposal_accepted`).
ChoiceType = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z_]{0,39}$")]
#: A run's id, where there is a run.
EXECUTION_ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
ExecutionId = Annotated[str, msgspec.Meta(pattern=EXECUTION_ID)]
HexDigest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class AuditMetadata(
    msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Facts on how a step ended; unknown facts are left out.

    `view_files` are the views that were read or made, by name, with their file names. A file name contains the SHA-256
    of the view's value and of its bytes. `run_files` are files of the run's folder with their SHA-256. `unique_values`
    counts distinct values by column. `error_message` is an error's code, and the column if there is one.
    `intended_state` and `actual_state` have the same keys in a decision; `asIntended` in the latter says whether they
    agree. `correction_applied` is true only if a retry reached the intended state, and false if it did not.
    """

    row_count: Count | None = None
    column_count: Count | None = None
    unique_values: dict[str, Count] | None = None
    error_message: str | None = None
    duration_ms: float | None = None
    success: bool | None = None
    intended_state: dict[str, Any] | None = None
    actual_state: dict[str, Any] | None = None
    correction_applied: bool | None = None
    view_files: dict[str, str] | None = None
    run_files: dict[str, str] | None = None


class AuditStep(msgspec.Struct, frozen=True):
    """Step to append; the store adds its number, its position in the chain and its hash.

    `run_id` and `event_seq` name the same event in a trace.jsonl. `timestamp` is now unless given. `is_clean`: It was
    already sanitised, as an event of a trace.jsonl is.
    """

    execution_id: ExecutionId
    execution_type: ExecutionType
    choice_type: ChoiceType
    tool_name: str = ""
    tool_params: Any = None
    metadata: AuditMetadata = AuditMetadata()
    description: str = ""
    run_id: str | None = None
    event_seq: EventNumber | None = None
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    is_clean: bool = False


class AuditEntry(msgspec.Struct, frozen=True, rename="camel"):
    """Entry of the audit. `seq` counts an execution's entries from 1, `position` those of the whole chain."""

    position: int
    execution_id: str
    execution_type: str
    seq: int
    timestamp: datetime
    choice_type: str
    tool_name: str
    tool_params: Any
    metadata: AuditMetadata
    description: str
    run_id: str | None
    event_seq: int | None
    previous_hash: str
    hash: str

    def __repr__(self) -> str:
        return f"<AuditEntry {self.seq} of {self.execution_id}: {self.description}>"


class AuditHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """End of the chain at one moment: how many entries it had, and the hash of the last.

    `chain` distinguishes the audits of different databases.
    """

    chain: HexDigest
    entries: Count
    hash: HexDigest


class AnchoredHead(msgspec.Struct, frozen=True):
    """Head that is also kept outside the database, in the manifest of that run."""

    run_id: str
    head: AuditHead


#: `changed`: an entry does not fit its hash. `missing`: entries were removed before it. `reordered`: it does not follow
#: the entry before it. `cut_off`: entries were removed at the end, or a run's folder has an event without one.
#: `rewritten`: a run's manifest has another chain. `file`: a file that an entry names is not as it was.
FaultKind = Literal["changed", "missing", "reordered", "cut_off", "rewritten", "file"]


@dataclasses.dataclass
class Mentioned:
    """Things outside the database that the checked entries name: runs, their events and files, and views.

    `runs` are those whose folders exist. `events` are the position and the time of an entry by run and number, `files`
    the SHA-256 and the entry's position by run and name. `last` is the position of the last entry.
    """

    runs: set[str]
    events: dict[str, dict[int, tuple[int, datetime]]] = dataclasses.field(default_factory=dict)
    files: dict[str, dict[str, tuple[str, int]]] = dataclasses.field(default_factory=dict)
    views: dict[tuple[str, str], MentionedView] = dataclasses.field(default_factory=dict)
    last: int = 0


class AuditFault(msgspec.Struct, frozen=True, rename="camel"):
    """First invalid entry of the chain; `execution_id` and `seq` are empty if the entry no longer exists."""

    kind: FaultKind
    position: int
    message: str
    execution_id: str | None = None
    seq: int | None = None


class AuditVerification(msgspec.Struct, frozen=True, rename="camel"):
    """Result of a check of the chain.

    `entries` were read. `anchors` is how many runs' manifests name a head of this chain; `foreign` counts manifests of
    other databases.
    """

    entries: int
    head: AuditHead | None
    anchors: int
    foreign: int
    fault: AuditFault | None = None

    @property
    def ok(self) -> bool:
        """True if all entries are valid."""
        return self.fault is None

    def __str__(self) -> str:
        if self.fault is not None:
            return f"✗ {self.fault.message}"
        return f"✓ No entry was changed or removed. Entries: {self.entries:,}, manifests: {self.anchors:,}"

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))


class AuditSummary(msgspec.Struct, frozen=True, rename="camel"):
    """Sums over the entries of one execution, or of all.

    `corrections` reached their intended state, `failed_corrections` did not. `duration_ms` is the sum of the steps'.
    """

    executions: int
    entries: int
    by_choice: dict[str, int]
    corrections: int
    failed_corrections: int
    failures: int
    duration_ms: float
    tools: list[str]
    first: datetime | None
    last: datetime | None

    def __repr__(self) -> str:
        choices = ", ".join(f"{choice} {number:,}" for choice, number in self.by_choice.items())
        return (
            f"<AuditSummary: executions {self.executions:,}, entries {self.entries:,} ({choices}), "
            f"corrections {self.corrections:,}, failed corrections {self.failed_corrections:,}, "
            f"failures {self.failures:,}>"
        )
