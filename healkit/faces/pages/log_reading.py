"""Log for pages: lists, groups, one execution."""

from __future__ import annotations

import contextlib
from typing import Any

from healkit.commands.parsing import read_filters
from healkit.core.contracts.execution import GROUP_FILTERS, TRIED_COUNTED_MAX
from healkit.core.runtime.execution import Execution, execution_of
from healkit.errors import UsageInvalid, VaultError
from healkit.faces.pages.operations import Operations

PAGE_ROWS = 25
_GROUPS_MAX = 100


class LogReading(Operations):
    """Rows and groups of failures, newest first; the filters are those of `Log.query`, as texts."""

    NAMES: tuple[str, ...] = ("page", "groups", "names")

    def page(
        self, filters: dict[str, Any], before_id: int | None = None, after_id: int | None = None
    ) -> dict[str, Any]:
        """Return a page of executions, and the beginnings of the adjacent pages."""
        wanted = read_filters(filters, whole_days=True)
        page = self._healkit.log.query(
            filters=wanted, limit=PAGE_ROWS, before_id=before_id, after_id=after_id
        )
        return {
            "rows": self._recorded.rows([execution_of(row, []) for row in page]),
            "older": page.next_before_id,
            "newer": page.next_after_id,
            "left_out": page.left_out,
            "most_left_out": TRIED_COUNTED_MAX,
        }

    def groups(self, filters: dict[str, Any]) -> dict[str, Any]:
        """Return the latest groups of similar failures."""
        parsed_filters = read_filters(filters, whole_days=True).given
        chosen = {name: value for name, value in parsed_filters.items() if name in GROUP_FILTERS}
        if chosen.get("status") not in {"FAILURE", "REFUSED"}:
            chosen.pop("status", None)
        page = self._healkit.log.groups(**chosen, limit=_GROUPS_MAX)
        return {
            "groups": self._recorded.groups(page.rows),
            "most": _GROUPS_MAX,
            "left_out": page.left_out,
        }

    def names(self) -> list[str]:
        """List the tools to choose from: those in the vault, and failed ones that are no longer there."""
        return sorted({*self._healkit.vault.names(), *self._healkit.log.tools_with_errors()})


class ExecutionReading(Operations):
    """Execution in full."""

    NAMES: tuple[str, ...] = ("execution", "active", "report")

    def execution(self, log_id: int) -> dict[str, Any]:
        """Return this execution; raise `UsageInvalid` if there is none."""
        return self._recorded.execution(self._row(log_id))

    def active(self, log_id: int) -> int | None:
        """Return the active revision of that row's tool; None if the tool no longer exists."""
        row = self._row(log_id)
        with contextlib.suppress(VaultError):
            return self._healkit.vault.get(row.tool_name, row.persona).revision
        return None

    def report(self, log_id: int) -> str:
        """Return that failure as a bug report in Markdown, with secrets hidden; raise `UsageInvalid`."""
        return self._row(log_id).to_markdown()

    def _row(self, log_id: int) -> Execution:
        execution = self._healkit.execution(log_id)
        if execution is None:
            raise UsageInvalid(f"There is no log row {log_id!r}.", hint="It may have been pruned.")
        return execution
