"""Vault for pages: tools, revisions, code."""

from __future__ import annotations

from typing import Any

from healkit.core.rendering import plain
from healkit.faces.pages.operations import Operations

_TOOLS_MAX = 100


class ToolReading(Operations):
    """Tools of the vault with their executions, and each revision of one."""

    NAMES: tuple[str, ...] = ("tools", "history", "code")

    def tools(self, text: str = "") -> dict[str, Any]:
        """Return the tools whose name, group or description contains all words, and the number of further ones."""
        sums = {
            (summary.tool_name, summary.persona): summary
            for summary in self._healkit.log.summary(by=["persona"])
        }
        entries, number = self._healkit.vault.search(text, limit=_TOOLS_MAX)
        rows = []
        for entry in entries:
            ran = sums.get((entry.tool_name, entry.persona))
            rows.append(
                {
                    "tool": entry.tool_name,
                    "persona": entry.persona,
                    "label": entry.label,
                    "revision": entry.revision,
                    "type": entry.type,
                    "draft": entry.draft,
                    "group": entry.group,
                    "about": plain.one_line(entry.description, 200),
                    "runs": 0 if ran is None else ran.runs,
                    "failures": 0 if ran is None else ran.failures,
                }
            )
        return {"rows": rows, "more": number - len(entries)}

    def history(self, tool: str, persona: str = "default") -> list[dict[str, Any]]:
        """List every revision with its runs and failures."""
        entry = self._healkit.vault.get(tool, persona)
        return self._recorded.history(entry.tool_name, entry.persona)

    def code(self, tool: str, persona: str, revision: int) -> str:
        """Return the code of any revision."""
        return self._healkit.vault.get(tool, persona, revision).code
