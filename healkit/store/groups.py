"""Failures grouped by their fingerprint: how often, since when, which revision, and whether cured.

A group is one fingerprint of one tool and persona, because revisions are numbered for each of those; its row is
kept by triggers (migration 0002), so that listing groups costs the same however many failures there are. It tells
of the rows on record: what retention deleted is not counted any more.

A group is cured by the first revision after the last one that failed so that has a success on record: the same rule as
`vault.blame`. A success of another persona counts where both are served by the same entry of the vault.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, select
from sqlalchemy.orm import Session

from healkit.contracts.filters import Filters
from healkit.contracts.stats import GroupInfo
from healkit.store.columns import table_of
from healkit.store.filters import moment
from healkit.store.models import ToolRegistry
from healkit.store.rows import LOG
from healkit.store.tallies import DAYS, GROUPS

if TYPE_CHECKING:
    import pandas as pd

_TOOLS: Table = table_of(ToolRegistry)

DEFAULT_PERSONA = "default"


@dataclasses.dataclass(frozen=True)
class Groups:
    """Groups of failures, the one seen last first."""

    rows: list[GroupInfo]

    def __iter__(self) -> Iterator[GroupInfo]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """One row a group, indexed by fingerprint."""
        import pandas as pd

        names = [field.name for field in dataclasses.fields(GroupInfo)]
        records = [dataclasses.astuple(row) for row in self.rows]
        return pd.DataFrame(records, columns=names).set_index("fingerprint")


def read_groups(session: Session, filters: Filters, limit: int) -> Groups:
    """At most `limit` groups; `since` and `until` are about when each was last seen."""
    first, last = LOG.alias("first"), LOG.alias("last")
    statement = (
        select(
            *GROUPS.c,
            first.c.revision.label("first_revision"),
            last.c.revision.label("last_revision"),
            last.c.ename,
            last.c.evalue,
        )
        .join(first, first.c.id == GROUPS.c.first_log_id)
        .join(last, last.c.id == GROUPS.c.last_log_id)
        .order_by(GROUPS.c.last_seen.desc(), GROUPS.c.last_log_id.desc())
        .limit(max(1, limit))
    )
    for column, value in (
        (GROUPS.c.tool_name, filters.tool),
        (GROUPS.c.persona, filters.persona),
        (GROUPS.c.fingerprint, filters.fingerprint),
    ):
        if value is not None:
            statement = statement.where(column == value)
    if filters.since is not None:
        statement = statement.where(GROUPS.c.last_seen >= moment(filters.since))
    if filters.until is not None:
        statement = statement.where(GROUPS.c.last_seen < moment(filters.until))
    found = session.execute(statement).all()
    healthy = _Healthy(session, {row.tool_name for row in found})
    return Groups([_info(row, healthy) for row in found])


def _info(row: Any, healthy: _Healthy) -> GroupInfo:
    return GroupInfo(
        fingerprint=row.fingerprint,
        tool_name=row.tool_name,
        persona=row.persona,
        count=row.failures,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        first_log_id=row.first_log_id,
        last_log_id=row.last_log_id,
        first_revision=row.first_revision,
        last_revision=row.last_revision,
        cured_by=healthy.after(row.tool_name, row.persona, row.last_revision),
        ename=row.ename or "",
        evalue=row.evalue or "",
    )


class _Healthy:
    """Which revisions of some tools have a success on record, by the vault entry that was run."""

    def __init__(self, session: Session, tools: Collection[str]) -> None:
        entries = select(_TOOLS.c.tool_name, _TOOLS.c.target_persona).where(_TOOLS.c.tool_name.in_(tools))
        self._entries = {(tool, persona) for tool, persona in session.execute(entries)}
        succeeded = (
            select(DAYS.c.tool_name, DAYS.c.persona, DAYS.c.revision)
            .where(DAYS.c.tool_name.in_(tools), DAYS.c.runs > DAYS.c.failures, DAYS.c.revision > 0)
            .distinct()
        )
        self._revisions: dict[tuple[str, str], set[int]] = {}
        for tool, persona, revision in session.execute(succeeded):
            self._revisions.setdefault(self._entry(tool, persona), set()).add(revision)

    def after(self, tool: str, persona: str, revision: int | None) -> int | None:
        """The first one after that revision."""
        numbers = self._revisions.get(self._entry(tool, persona), set())
        return None if revision is None else min((n for n in numbers if n > revision), default=None)

    def _entry(self, tool: str, persona: str) -> tuple[str, str]:
        """A persona without an entry of its own is served by the default one."""
        return (tool, persona if (tool, persona) in self._entries else DEFAULT_PERSONA)
