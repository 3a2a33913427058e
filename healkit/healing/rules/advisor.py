"""The advisor that knows the classic mistakes and asks nobody.

It reads the failure and the code and tries nothing: each rule is a row of a family's table, and what the rows propose
is put in one order. The loop validates.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from healkit.contracts.healing import Patch, apply_edits
from healkit.healing.advisor import Case, Workbench
from healkit.healing.rules import (
    attributes,
    calls,
    containers,
    documents,
    guards,
    imports,
    indexes,
    iteration,
    keys,
    names,
    operands,
    pitfalls,
    queries,
    results,
    sharing,
    unbound,
    values,
)
from healkit.healing.rules.records import Fix, Rule
from healkit.healing.rules.sites import Site
from healkit.healing.rules.syntax import mended as mended_syntax
from healkit.healing.rules.syntax.oracle import complaint

PATCHES_MAX = 12
#: Of those, at most so many that only keep the failure from happening.
_GUARDS_MAX = 2

#: The tables, by family.
FAMILIES: dict[str, tuple[Rule, ...]] = {
    "imports": imports.RULES,
    "names": names.RULES,
    "unbound": unbound.RULES,
    "attributes": attributes.RULES,
    "results": results.RULES,
    "keys": keys.RULES,
    "calls": calls.RULES,
    "operands": operands.RULES,
    "containers": containers.RULES,
    "iteration": iteration.RULES,
    "values": values.RULES,
    "documents": documents.RULES,
    "indexes": indexes.RULES,
    "pitfalls": pitfalls.RULES,
    "sharing": sharing.RULES,
    "guards": guards.RULES,
}


class RulesAdvisor:
    """Patches from tables, in milliseconds; implements `healkit.healing.advisor.Advisor`."""

    name = "rules"
    author: Literal["person", "rule", "search", "model", "agent"] = "rule"

    def propose(self, case: Case, bench: Workbench | None = None) -> Iterator[Patch]:
        """At most `PATCHES_MAX` patches, likeliest first; what was tried in this run already is left out."""
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
            return [self._patch(text, reason, 0.9) for text, reason in queries.mended(code)]
        if complaint(code) is not None:
            found = mended_syntax(code)
            return [self._patch(text, reason, rank) for text, reason, rank in found]
        site = Site(case, ast.parse(code))
        patches = [
            self._patch(text, fix.reason, rule.priority - fix.less, guard=fix.guard)
            for rule in (rule for family in FAMILIES.values() for rule in family)
            for fix, text in fixes(rule, site)
        ]
        guards = sorted((p for p in patches if p.guard), key=lambda patch: -patch.rank)[:_GUARDS_MAX]
        return [patch for patch in patches if not patch.guard] + guards

    def _patch(self, code: str, reason: str, rank: float, *, guard: bool = False) -> Patch:
        return Patch(
            code=code, advisor=self.name, author=self.author, reason=reason, rank=round(rank, 3), guard=guard
        )


def fixes(rule: Rule, site: Site) -> Iterator[tuple[Fix, str]]:
    """What one rule proposes for a case, with the code that it makes; nothing that does not parse."""
    match: re.Match[str] | None = rule.match(site.failure)
    if match is None:
        return
    for fix in rule.propose(site, match):
        text = apply_edits(site.source.text, fix.edits)
        if text != site.source.text and complaint(text) is None:
            yield fix, text
