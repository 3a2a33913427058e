"""Rules advisor: fixes of the failure catalogue, in order.

It reads the failure and the code, and runs nothing. The loop validates what it proposes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from healkit.contracts.healing import Edit, Patch, apply_edits
from healkit.failures.compiler import compiler_message
from healkit.failures.lookup import proposals
from healkit.failures.site import Site
from healkit.failures.syntax_repair import repairs
from healkit.healing.advisor import Case, Workbench
from healkit.pysource.source import Source

PATCHES_MAX = 12
#: Of those, at most so many that only keep the failure from happening.
_GUARDS_MAX = 2

_EQUALS_NULL = re.compile(r"(?P<sign>=|<>|!=)(?P<gap>\s*)(?P<null>NULL)\b", re.IGNORECASE)
_SQL_TEXT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_SQL_SET = re.compile(r"\bSET\b(?![^;]*\bWHERE\b)", re.IGNORECASE)


class RulesAdvisor:
    """Patches from the catalogue's fixes, in milliseconds; implements `healkit.healing.advisor.Advisor`."""

    name = "rules"
    author: Literal["person", "rule", "search", "model", "agent"] = "rule"

    def propose(self, case: Case, bench: Workbench | None = None) -> Iterator[Patch]:
        """Yield at most `PATCHES_MAX` patches, likeliest first, without what was tried in this run already."""
        seen = {case.entry.code, *(attempt.patch.code for attempt in case.attempts)}
        for patch in sorted(self._all(case), key=lambda patch: (patch.guard, -patch.rank)):
            if len(seen) > PATCHES_MAX + len(case.attempts):
                return
            if patch.code not in seen:
                seen.add(patch.code)
                yield patch

    def _all(self, case: Case) -> list[Patch]:
        code = case.entry.code
        if case.entry.type == "sql":
            return [self._patch(text, reason, 0.9) for text, reason in _compared_with_null(code)]
        if compiler_message(code) is not None:
            return [self._patch(text, reason, rank) for text, reason, rank in repairs(code)]
        patches = [
            self._patch(text, proposal.reason, fix.priority - proposal.less, guard=proposal.guard)
            for fix, proposal, text in proposals(site_of(case))
        ]
        guards = sorted((p for p in patches if p.guard), key=lambda patch: -patch.rank)[:_GUARDS_MAX]
        return [patch for patch in patches if not patch.guard] + guards

    def _patch(self, code: str, reason: str, rank: float, *, guard: bool = False) -> Patch:
        return Patch(
            code=code, advisor=self.name, author=self.author, reason=reason, rank=round(rank, 3), guard=guard
        )


def site_of(case: Case) -> Site:
    """Return the place of a case's failure; raises `SyntaxError` or `ValueError` if its code does not parse."""
    entry = case.entry
    return Site(Source(entry.code), entry.tool_name, case.failure, case.checks, entry.grants.read)


def _compared_with_null(code: str) -> Iterator[tuple[str, str]]:
    """Yield a corrected SQL statement and what was changed: in SQL nothing equals NULL, not even NULL."""
    quoted = [match.span() for match in _SQL_TEXT.finditer(code)]
    edits = []
    for match in _EQUALS_NULL.finditer(code):
        start, end = match.span("sign")
        if any(a <= start < b for a, b in quoted) or _SQL_SET.search(code[:start]):
            continue
        word = "IS" if match["sign"] == "=" else "IS NOT"
        edits.append(Edit(start, end, f"{word}{'' if match['gap'] else ' '}"))
    if edits:
        yield apply_edits(code, edits), "In SQL, nothing equals NULL; use `IS NULL`."
