"""Log browser: filter, search, group, page and watch the log."""

from __future__ import annotations

from typing import Any

from healkit.app import Healkit
from healkit.contracts.execution import FILTER_NAMES, GROUP_FILTERS, TRIED_COUNTED_MAX
from healkit.errors import UsageInvalid
from healkit.notebook.cell_output import CellOutput, listed
from healkit.notebook.widgets.heal_panel import Healings
from healkit.notebook.widgets.panel import Panel
from healkit.notebook.widgets.traceback_view import ExecutionOperations
from healkit.parsing import read_filters
from healkit.runtime.execution import execution_of

#: The filters that the panel has fields for.
FILTERS = tuple(name for name in FILTER_NAMES if name not in {"origin", "refused"})
PAGE_ROWS = 25
_GROUPS_MAX = 100


class LogBrowser(Panel):
    """Log of one Healkit, newest first; `filters` are those of `Log.query`.

    Raises `UsageInvalid` for a filter that there is not.
    """

    KIND = "LogBrowser"
    SAME_AS_CARD = True
    title = "Executions"

    def __init__(self, healkit: Healkit, **filters: Any) -> None:
        for name in filters:
            if name not in FILTERS:
                raise UsageInvalid(f"There is no filter {name!r}.", hint=f"Filters are {', '.join(FILTERS)}.")
        given = {
            name: str(value) for name, value in filters.items() if value is not None and value is not False
        }
        self._filters = read_filters(given, whole_days=True)
        super().__init__(healkit, {"filters": given})
        self.operations |= ExecutionOperations(healkit, self.recorded).operations
        healings = Healings(healkit, self.recorded, self._reply)
        self.operations |= healings.operations
        self.endings = (healings.close,)
        self.operations |= {"page": self._page, "groups": self._groups, "names": self._names}

    def static_card(self) -> CellOutput | None:
        """Draw the first page as a table; where the browser is instead, once it is docked."""
        if self.is_docked:
            return super().static_card()
        return listed(self.healkit.executions(filters=self._filters, limit=20))

    def _page(
        self,
        filters: dict[str, Any],
        before_id: int | None = None,
        after_id: int | None = None,
    ) -> dict[str, Any]:
        wanted = read_filters(filters, whole_days=True)
        page = self.healkit.log.query(filters=wanted, limit=PAGE_ROWS, before_id=before_id, after_id=after_id)
        return {
            "rows": self.recorded.rows([execution_of(row, []) for row in page]),
            "older": page.next_before_id,
            "newer": page.next_after_id,
            "left_out": page.left_out,
            "most_left_out": TRIED_COUNTED_MAX,
        }

    def _groups(self, filters: dict[str, Any]) -> dict[str, Any]:
        given = read_filters(filters, whole_days=True).given
        chosen = {name: value for name, value in given.items() if name in GROUP_FILTERS}
        if chosen.get("status") not in {"FAILURE", "REFUSED"}:
            chosen.pop("status", None)
        found = self.healkit.log.groups(**chosen, limit=_GROUPS_MAX)
        return {"groups": self.recorded.groups(found.rows), "most": _GROUPS_MAX, "left_out": found.left_out}

    def _names(self) -> list[str]:
        """List the tools to choose from: those in the vault, and those that failed and have left it."""
        return sorted({*self.healkit.vault.names(), *self.healkit.log.tools_with_errors()})
