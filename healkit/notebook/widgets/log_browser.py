"""The log browser: filter, search, group, page and watch the log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from healkit.app import Healkit
from healkit.contracts.records import TRIED_COUNTED_MAX
from healkit.errors import UsageInvalid
from healkit.notebook.cell_output import CellOutput, listed
from healkit.notebook.widgets.heal_panel import Healings
from healkit.notebook.widgets.panel import Panel
from healkit.notebook.widgets.traceback_view import Looking
from healkit.parsing import parse_since
from healkit.runtime.history import execution_of
from healkit.store.filters import STATUSES

#: What a filter may be called; the names are those of `Log.query`.
FILTERS = ("status", "tool", "persona", "since", "until", "text", "fingerprint", "run", "trace", "tried")
_GROUPED_BY = ("tool", "persona", "fingerprint", "since", "until")
PAGE_ROWS = 25
_GROUPS_MAX = 100


class LogBrowser(Panel):
    """The log of one Healkit, newest first; `filters` are those of `Log.query`.

    Raises `UsageInvalid` for a filter that there is not.
    """

    KIND = "LogBrowser"
    title = "Executions"

    def __init__(self, healkit: Healkit, **filters: Any) -> None:
        for name in filters:
            if name not in FILTERS:
                raise UsageInvalid(f"There is no filter {name!r}.", hint=f"Filters are {', '.join(FILTERS)}.")
        given = {
            name: str(value) for name, value in filters.items() if value is not None and value is not False
        }
        self._filters = _read(given)
        super().__init__(healkit, {"filters": given})
        self.operations |= Looking(healkit, self.recorded).operations
        healings = Healings(healkit, self.recorded, self._reply)
        self.operations |= healings.operations
        self.endings = (healings.close,)
        self.operations |= {"page": self._page, "groups": self._groups, "names": self._names}

    def static_card(self) -> CellOutput | None:
        """The first page as a table; where the browser is instead, once it is docked."""
        if self.is_docked:
            return super().static_card()
        return listed(self.healkit.executions(**self._filters, limit=20))

    def _page(
        self,
        filters: dict[str, Any],
        before_id: int | None = None,
        after_id: int | None = None,
    ) -> dict[str, Any]:
        page = self.healkit.log.query(
            **_read(filters), limit=PAGE_ROWS, before_id=before_id, after_id=after_id
        )
        return {
            "rows": self.recorded.rows([execution_of(row, []) for row in page]),
            "older": page.next_before_id,
            "newer": page.next_after_id,
            "left_out": page.left_out,
            "most_left_out": TRIED_COUNTED_MAX,
        }

    def _groups(self, filters: dict[str, Any]) -> dict[str, Any]:
        chosen = {name: value for name, value in _read(filters).items() if name in _GROUPED_BY}
        found = self.healkit.log.groups(**chosen, limit=_GROUPS_MAX)
        return {"groups": self.recorded.groups(found.rows), "most": _GROUPS_MAX}

    def _names(self) -> list[str]:
        """The tools to choose from: those in the vault, and those that failed and have left it."""
        return sorted({*self.healkit.vault.names(), *self.healkit.log.tools_with_errors()})


def _read(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Filters as the page has them; a day's `until` includes that day, as a person means it."""
    read: dict[str, Any] = {
        name: str(filters[name]).strip() for name in FILTERS if str(filters.get(name) or "").strip()
    }
    if "status" in read and read["status"].upper() not in STATUSES:
        raise UsageInvalid(
            f"There is no status {read['status']!r}.", hint=f"It is one of {', '.join(STATUSES)}."
        )
    read["tried"] = "tried" in read
    if "since" in read:
        read["since"] = parse_since(read["since"])
    if "until" in read:
        try:
            read["until"] = date.fromisoformat(read["until"]) + timedelta(days=1)
        except ValueError:
            read["until"] = parse_since(read["until"])
    return read
