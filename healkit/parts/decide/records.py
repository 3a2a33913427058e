"""Decisions: choices, and the metadata a chooser gets.

`Turn` and its parts are a closed set of types: names, types, counts, codes and durations. Only two fields can contain a
cell's value: `values`, of a column that the caller shares, and `most_frequent`, of a shared text. No field contains the
text of an exception. The chooser gets the words of its own choices back unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec

from healkit.parts.runs.audit_records import AuditEntry, AuditSummary
from healkit.parts.runs.contract import Count
from healkit.parts.views.view_records import DataView, FirstRows

if TYPE_CHECKING:
    from healkit.parts.views.view_records import DataView, FirstRows

#: Ending of a decision.
DecisionOutcome = Literal["finalized", "halted", "asked", "stopped"]
ToolName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
#: Name of a view within a decision, by which choices refer to it.
ViewName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Entity = str | int | float
_Words = Annotated[list[Entity], msgspec.Meta(max_length=1000)]


#: `given` by the caller; `made` by a tool; `free`: made by a query that the chooser wrote, or of such a view.
Origin = Literal["given", "made", "free"]


class Intended(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """State that a step should reach; code compares it with the actual one.

    rows: The number of rows.
    columns: Names that must exist.
    entities: Values that must exist, by column, or in any column of text.
    ranges: The least and the greatest value of a column; null for any.
    """

    rows: Count | None = None
    columns: list[str] | None = None
    entities: dict[str, _Words] | _Words | None = None
    ranges: dict[str, tuple[float | None, float | None]] | None = None


class _Chosen(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="type",
    rename="camel",
):
    """Choice of a tool; `params` are JSON values, or names of views if the tool takes a frame."""

    tool: ToolName
    params: dict[str, Any] = {}


class GatherInfo(_Chosen, frozen=True, tag="gather_info"):
    """Choice to run a tool for the facts about its result; nothing is kept as a view."""


class ExecuteDataOp(_Chosen, frozen=True, kw_only=True, tag="execute_data_op"):
    """Choice to run a tool whose frame becomes the view `viewName`."""

    view_name: ViewName
    intended: Intended | None = None


class ExecuteOutput(_Chosen, frozen=True, tag="execute_output"):
    """Choice to run a tool whose text or bytes become a file in the run's folder."""


class Finalize(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="finalize", rename="camel"
):
    """Choice to end, with a view as the result."""

    final_view_name: ViewName


Choice = GatherInfo | ExecuteDataOp | ExecuteOutput | Finalize


class ColumnFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Column of a view: counts, and a type from a closed list.

    `name` is the column's own, or `VIEW#NUMBER` if `numbered`: its own name looks like data. `distinct` is null if
    values cannot be compared. Both counts are null if the chooser does not get them. `values` are the distinct values
    of a shared column.
    """

    name: str
    dtype: str
    nulls: Count | None
    distinct: Count | None
    numbered: bool = False
    values: list[Any] | None = None


class TextFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text, or texts, of a view, in counts: those of `hk.summarize`, entities and citations by kind.

    `most_frequent` are words, n-grams and entities by kind, of a text that the caller shares.
    """

    texts: Count
    characters: Count
    words: Count
    distinct_words: Count
    sentences: Count
    paragraphs: Count
    numbers: Count
    urls: Count
    entities: dict[str, Count] = {}
    citations: dict[str, Count] = {}
    most_frequent: dict[str, list[str]] | None = None


class ViewFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """View as a chooser sees it; `columns_left_out` are those beyond the listed ones.

    `rounded`: Its counts are rounded to one digit, and ten stands for one to ten. `text` is set for a view of texts.
    """

    name: str
    row_count: Count
    column_count: Count
    columns: list[ColumnFacts]
    columns_left_out: Count = 0
    columns_numbered: Count = 0
    rounded: bool = False
    text: TextFacts | None = None


class ToolFacts(msgspec.Struct, frozen=True):
    """Tool that may be chosen, as its author described it."""

    name: str
    description: str
    input_schema: dict[str, Any]


class StateGap(msgspec.Struct, frozen=True, omit_defaults=True):
    """Difference between the intended state and the actual one, in counts and in names that the chooser gave."""

    rows: tuple[int, int] | None = None
    columns_missing: list[str] = []
    entities_missing: Count = 0
    entities_intended: Count = 0
    ranges_missed: list[str] = []

    def __bool__(self) -> bool:
        """Return True if there is a difference."""
        return bool(self.rows or self.columns_missing or self.entities_missing or self.ranges_missed)


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """Value that a step found; `name` stands for it in later choices, or is the chooser's own word for it.

    `method` says how it was found: `same`, `normalised`, `alias`, `initials` or `near`.
    """

    name: Entity
    method: str | None = None


class FoundEntities(msgspec.Struct, frozen=True, omit_defaults=True):
    """Names that the chooser asked for: how many of them a step found, and which are missing.

    `candidates` are other values that were found.
    """

    requested: Count
    found: Count
    missing: list[Entity] = []
    candidates: list[Candidate] = []


class StepFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Finished step: the chooser's own choice, and its result.

    `error_code` is from the catalogue, `error_type` is the name of a built-in exception. `error_column` is a name that
    the chooser already knows. `result` is the kind of the tool's result. `corrected` is set if code corrected the step:
    true only if the step then reached the intended state. `found` says which of the requested names exist.
    """

    number: int
    choice: dict[str, Any]
    success: bool
    duration_ms: float
    error_code: str | None = None
    error_type: str | None = None
    error_column: str | None = None
    result: str | None = None
    row_count: Count | None = None
    column_count: Count | None = None
    differs: StateGap | None = None
    corrected: bool | None = None
    found: FoundEntities | None = None


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """Metadata for a chooser before a choice; it gets nothing else.

    `problem` says why the last choice was invalid; there is one more chance then. `shared` names the columns whose
    distinct values are in `views`.
    """

    question: str
    number: int
    views: list[ViewFacts]
    tools: list[ToolFacts]
    steps: list[StepFacts]
    problem: str | None = None
    shared: list[str] = []


class EntityQuestion(msgspec.Struct, frozen=True):
    """Question to a person: which value of the data does `entity` mean? No chooser gets it."""

    entity: Entity
    column: str | None
    candidates: list[Any]


# A card or a panel on one audited execution has three outputs, kept apart: the audit, the data, the analysis. A
# healing has the first only.


#: Label of every analysis, wherever it is shown.
ANALYSIS_LABEL = "⚡ AI analysis, may be wrong, not deterministic"


@dataclass(frozen=True, slots=True)
class AuditPanes:
    """Audit of one execution, and for a decision its data and its analysis.

    kind: `decide`, `heal` or `notebook`.
    outcome: A decision's outcome, empty if it has not ended yet.
    view: The result, and `first` its first rows; None if there is none.
    notes: Important sentences, such as a step without its intended state.
    views: Names of the decision's views → their names in `hk.views`.
    analysis: Empty if no model wrote one; None if its text no longer exists.
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


#: How a view of texts is had again: one text, or several; empty for a table.
TextForm = Literal["", "text", "texts"]


class DoneStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="step", tag_field="kind"):
    """Finished step: its facts for later turns, the name in `hk.views` of its view, and its file.

    `file` is the path from the folder of the runs; `sha256` is that of its content. `placeholders` names the view of
    the values behind the step's placeholders.
    """

    step: StepFacts
    view: str | None = None
    texts: TextForm = ""
    file: str | None = None
    sha256: str | None = None
    placeholders: str | None = msgspec.field(default=None, name="stand_ins")


class Resumed(NamedTuple):
    """State of a killed decision; `turns` are the answered ones, `problem` is why the last choice was refused.

    `views` are the caller's data by name, as names in `hk.views`. `plan` is None if the chooser was not a plan.
    """

    run_id: str
    question: str
    chooser: str
    plan: list[Any] | None
    persona: str
    tools: list[str]
    shared: list[str]
    views: dict[str, str]
    texts: dict[str, TextForm]
    turns: list[Turn]
    done: list[DoneStep]
    problem: str | None
