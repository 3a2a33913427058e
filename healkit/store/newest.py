"""The first page of the log, as it is looked at most: the newest executions, without trials and searches.

`Log.query` gives the same rows and all others; it needs SQLAlchemy, and this does not.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from healkit.contracts.records import TRIED_COUNTED_MAX
from healkit.store.database import Database
from healkit.store.statements import NEWEST, TRIED_SINCE


class Newest:
    """Reads that page. `refresh` is called before, to bring in what waits in the spool."""

    def __init__(self, database: Database, refresh: Callable[[], object]) -> None:
        self._database = database
        self._refresh = refresh

    def page(self, limit: int) -> tuple[list[Any], int]:
        """At most `limit` rows with the columns of `ExecutionLog`, and how many trials stand between them."""
        self._refresh()
        limit = max(1, limit)
        rows = [SimpleNamespace(**row) for row in self._database.fetch(NEWEST, limit=limit + 1)]
        more, rows = len(rows) > limit, rows[:limit]
        time, end = (rows[-1].timestamp, rows[-1].id) if more else (datetime.min.replace(tzinfo=UTC), 0)
        bounds = {"time": time, "end": end, "limit": TRIED_COUNTED_MAX}
        return rows, self._database.fetch(TRIED_SINCE, **bounds)[0]["count"]
