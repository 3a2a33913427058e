"""Tables of what the traces teach.

Everything except imported fixes is computed from the traces, and can be computed again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, Table, text
from sqlmodel import Field

from healkit.core.store.models import (
    TableBase,
    UtcDateTime,
    json_column,
    partial_index,
    table_of,
    text_column,
    time_column,
)


class LearningState(TableBase, table=True):
    """Fact about the learning as a whole, as JSON: its progress, weights of a regression."""

    __tablename__ = "learningstate"

    name: str = Field(primary_key=True, max_length=40)
    value: str = text_column()


class LearnedValue(TableBase, table=True):
    """Value of a state, a tool with its code's hash: how likely an execution there succeeds, 0 to 1."""

    __tablename__ = "learnedvalue"
    __table_args__ = ({"sqlite_with_rowid": False},)

    state: str = Field(primary_key=True)
    value: float
    visits: int


class LearnedTrace(TableBase, table=True):
    """Surprise of an execution, and of each call in it; `task_id` is empty for the execution itself.

    `predicted` is the expected value before it ran, `visits` how often its state was seen before. `slot` is its place
    for sampling (`learning.priority`), empty for a call.
    """

    __tablename__ = "learnedtrace"
    __table_args__ = (
        Index(
            "ix_learnedtrace_slot", "slot", unique=True,
            sqlite_where=text("slot IS NOT NULL"), postgresql_where=text("slot IS NOT NULL"),
        ),
        partial_index("ix_learnedtrace_tool", "tool_name", "slot", where="slot IS NOT NULL"),
        {"sqlite_with_rowid": False},
    )  # fmt: skip

    trace_id: str = Field(primary_key=True, max_length=36)
    task_id: str = Field(primary_key=True, max_length=16)
    tool_name: str
    timestamp: datetime = time_column()
    predicted: float
    succeeded: bool
    td_error: float
    priority: float
    visits: int
    model_version: int
    slot: int | None = Field(default=None, sa_type=BigInteger, nullable=True)


#: Places in a level of priority; a slot is `level * PLACES + place`, and both begin at 1.
PLACES = 1 << 40


class PriorityCount(TableBase, table=True):
    """Executions of one level of priority: places used so far, and those that still exist."""

    __tablename__ = "prioritycount"

    level: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    taken: int
    live: int


class ToolNode(TableBase, table=True):
    """Tool that was called: how often, how often successfully, and when."""

    __tablename__ = "toolnode"
    __table_args__ = ({"sqlite_with_rowid": False},)

    name: str = Field(primary_key=True)
    count: int
    successes: int
    first_seen: datetime = Field(sa_type=UtcDateTime)
    last_seen: datetime = Field(sa_type=UtcDateTime)


class ToolEdge(TableBase, table=True):
    """Two tools that go together: `kind` is `contains`, `provides`, `sequence` or `parallel` (`learning.graph`)."""

    __tablename__ = "tooledge"
    __table_args__ = ({"sqlite_with_rowid": False},)

    source: str = Field(primary_key=True)
    target: str = Field(primary_key=True)
    kind: str = Field(primary_key=True, max_length=16)
    count: int
    successes: int
    first_seen: datetime = Field(sa_type=UtcDateTime)
    last_seen: datetime = Field(sa_type=UtcDateTime)


class ToolSequence(TableBase, table=True):
    """Count of a tool after two others, the later one in `last`; both are empty at the beginning."""

    __tablename__ = "toolsequence"
    __table_args__ = ({"sqlite_with_rowid": False},)

    before: str = Field(primary_key=True)
    last: str = Field(primary_key=True)
    tool: str = Field(primary_key=True)
    count: int


class ToolWord(TableBase, table=True):
    """Count of intents with a word that a tool was used for; the word is empty for all intents."""

    __tablename__ = "toolword"
    __table_args__ = ({"sqlite_with_rowid": False},)

    word: str = Field(primary_key=True)
    tool: str = Field(primary_key=True)
    count: int


class FixMemoryRow(TableBase, table=True):
    """Imported template of fixes with its outcomes, of `kind` `import`; or of `reset`: own fixes count since then."""

    __tablename__ = "fixmemory"

    id: int | None = Field(default=None, primary_key=True)
    kind: str = Field(max_length=16)
    outcome: dict[str, Any] | None = json_column(nullable=True)
    created_at: datetime = time_column()


LEARNING: Table = table_of(LearningState)
VALUES: Table = table_of(LearnedValue)
LEARNED: Table = table_of(LearnedTrace)
PRIORITIES: Table = table_of(PriorityCount)
TOOL_NODES: Table = table_of(ToolNode)
TOOL_EDGES: Table = table_of(ToolEdge)
TOOL_SEQUENCES: Table = table_of(ToolSequence)
TOOL_WORDS: Table = table_of(ToolWord)
