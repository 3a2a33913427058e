"""Fixes: what they propose for the failure at a site."""

from __future__ import annotations

import re
from collections.abc import Iterator

from healkit.contracts.healing import apply_edits
from healkit.failures import (
    attributes,
    calls,
    files,
    formats,
    general,
    imports,
    keys,
    lists,
    names,
    none_values,
    operands,
    tables,
    wrong_results,
)
from healkit.failures.catalogue import (
    NO_EXCEPTION,
    Fix,
    bare,
    matching,
    spared,
    subjects,
    told_edits,
    told_fixes,
)
from healkit.failures.site import Proposal, Propose, Site
from healkit.failures.syntax_repair.draft import compiler_message

#: The code of each fix, by the name of its row.
FIXES: dict[str, Propose] = {
    **tables.FIXES,
    **imports.FIXES,
    **names.FIXES,
    **attributes.FIXES,
    **calls.FIXES,
    **none_values.FIXES,
    **keys.FIXES,
    **operands.FIXES,
    **lists.FIXES,
    **formats.FIXES,
    **files.FIXES,
    **wrong_results.FIXES,
    **general.FIXES,
}
#: The match of a fix that goes with facts, whose names stand in the failure.
_ANY = next(re.finditer("", ""))
#: The row of each fix, by its name.
ROWS: dict[str, Fix] = {name: fix for subject in subjects().values() for name, fix in subject.fix.items()}


def proposals(site: Site) -> Iterator[tuple[Fix, Proposal, str]]:
    """Yield what the fixes propose at a site, each with its fix and the code that it makes.

    They come in the order of the catalogue; `priority` and `less` say which is likelier.
    """
    for name, match in fixes_for(site):
        yield from spared(((ROWS[name], *made) for made in proposals_of(name, match, site)), name)


def fixes_for(site: Site) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the fixes for the failure at a site, each with the match of its pattern."""
    failure = site.failure
    label, message = (NO_EXCEPTION, "") if failure is None else (bare(failure.ename), failure.evalue)
    found: dict[str, re.Match[str]] = {}
    for pattern, match in matching(label, message):
        for name in pattern.fixes:
            if re.search(ROWS[name].only, message, re.DOTALL):
                found.setdefault(name, match)
    if failure is not None:
        told = ["as_explained"] if any(told_edits(failure)) else []
        for name in (*told, *told_fixes(failure)):
            found.setdefault(name, _ANY)
    yield from found.items()


def proposals_of(name: str, match: re.Match[str], site: Site) -> Iterator[tuple[Proposal, str]]:
    """Yield what one fix proposes, with the code that it makes; nothing that does not parse."""
    text = site.source.text
    for proposal in FIXES[name](site, match):
        code = apply_edits(text, proposal.edits)
        if code != text and compiler_message(code, is_cell=site.is_cell) is None:
            yield proposal, code
