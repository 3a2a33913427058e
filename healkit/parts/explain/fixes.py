"""Fixes: what they propose for the failure at a site."""

from __future__ import annotations

import ast
import dataclasses
import re
import textwrap
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher

from healkit.core.contracts.explanation import Explanation
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import Edit, apply_edits
from healkit.parts.explain import (
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
    removed,
    tables,
    wrong_results,
)
from healkit.parts.explain.catalogue import (
    NO_EXCEPTION,
    FixRow,
    bare,
    facts_text,
    matching,
    searched,
    spared,
    subjects,
)
from healkit.parts.explain.edit_kinds import kind_of, may_be_a_fix
from healkit.parts.explain.explanation import MatchedFailure, explanation_of
from healkit.parts.explain.site import Proposal, Propose, Site
from healkit.parts.explain.source import Source
from healkit.parts.explain.syntax_repair.draft import compiler_message


def as_explained(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Change the failing statement as its explanation says."""
    if site.matched is None or site.statement is None:
        return
    start, end = site.source.span(site.statement)
    marked = site.marked or (start, end)
    for place, suggestion in enumerate(site.matched.edits):
        text, imported = site.with_module(suggestion.text)
        number = place + 2 * len(imported)  # what the code has already reaches no further
        if not suggestion.piece:
            edits = site.source.insert_before(site.statement, text)
            yield Proposal(suggestion.reason, edits + imported, less=0.05 * number, kind=suggestion.kind)
            continue
        places = [m.span() for m in _written(suggestion.piece).finditer(site.source.text, start, end)]
        texts = [
            site.source.span(node)
            for node in site.nodes(ast.Constant, near=False)
            if isinstance(node.value, str)
        ]
        places = [place for place in places if not any(a < place[0] and place[1] < b for a, b in texts)]
        places.sort(key=lambda place: place[1] <= marked[0] or place[0] >= marked[1])
        for further, (at, stop) in enumerate(places[:2]):
            edits = [Edit(at, stop, text), *imported]
            yield Proposal(suggestion.reason, edits, less=0.05 * (number + further), kind=suggestion.kind)


def _written(piece: str) -> re.Pattern[str]:
    """Return a pattern that finds a piece of code with any quotation marks and white space."""
    parts = [
        r"\s*" if part.isspace() else "['\"]" if part in "'\"" else re.escape(part)
        for part in re.split(r"(\s+|['\"])", piece)
        if part
    ]
    lookbehind, right = (
        (r"(?<![\w.])" if piece[0].isidentifier() else ""),
        (r"(?!\w)" if piece[-1].isalnum() else ""),
    )
    return re.compile(f"{lookbehind}{''.join(parts)}{right}")


#: The row of each fix, by its name.
ROWS: dict[str, FixRow] = {name: fix for subject in subjects().values() for name, fix in subject.fix.items()}
_MODULES = (tables, removed, imports, names, attributes, calls, none_values, keys, operands, lists, formats, files,
            wrong_results, general)  # fmt: skip
#: The code of each fix: the function of its row's name.
FIXES: dict[str, Propose] = {"as_explained": as_explained} | {
    name: code for name in ROWS for module in _MODULES if (code := vars(module).get(name)) is not None
}
#: The match of a fix that goes with facts, whose names stand in the failure.
_ANY = next(re.finditer("", ""))


def proposals(site: Site) -> Iterator[tuple[FixRow, Proposal, str]]:
    """Yield what the fixes propose at a site, each with its fix and the code that it makes.

    They come in the order of the catalogue; `priority` and `less` say which is likelier.
    """
    for name, match in fixes_for(site):
        yield from spared(((ROWS[name], *result) for result in proposals_of(name, match, site)), name)


def fixes_for(site: Site) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the fixes for the failure at a site, each with the match of its pattern."""
    matched, failure = site.matched, site.failure
    label, message = (NO_EXCEPTION, "") if failure is None else (bare(failure.ename), failure.evalue)
    matches: dict[str, re.Match[str]] = {}
    for pattern, match in matching(label, message):
        for name in pattern.fixes:
            if searched(ROWS[name].only, message):
                matches.setdefault(name, match)
    if matched is not None:
        observed = facts_text(matched.failure)
        for name in (*(["as_explained"] if matched.edits else []), *(observed.fixes if observed else ())):
            matches.setdefault(name, _ANY)
    yield from matches.items()


def proposals_of(name: str, match: re.Match[str], site: Site) -> Iterator[tuple[Proposal, str]]:
    """Yield the proposals of one fix, each with its code; only code that parses."""
    text = site.source.text
    for proposal in FIXES[name](site, match):
        code = apply_edits(text, proposal.edits)
        if code == text:
            continue
        wrong = compiler_message(code, is_cell=site.is_cell)
        # A line that is known alone may `return` outside of a function.
        if wrong is None or wrong.message == getattr(
            compiler_message(text, is_cell=site.is_cell), "message", None
        ):
            yield proposal, code


# Code that an explanation ends in

_SHOWN_MAX_LINES, _SHOWN_MAX_CHARS = 6, 600
#: A proposal that is less likely than this is a guess, and not shown.
_GUESS = 0.25
#: Line of a cell that IPython reads itself.
_MAGIC = re.compile(r"^([ \t]*)[%!?]", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class SuggestedChange:
    """Change that an explanation names: the whole code with it, its new lines, and the reason."""

    code: str
    lines: str
    reason: str


def explained(
    failure: Failure, where: str = "", code: str = "", defined: Collection[str] = ()
) -> Explanation:
    """Explain a failure, with its fix as code if there is one.

    code: The code that ran, if it is known.
    defined: Names that need no import where it ran.
    """
    matched = MatchedFailure(failure)
    explanation, change = explanation_of(matched, where), change_of(matched, code, defined)
    return explanation if change is None else dataclasses.replace(explanation, code=change.lines)


def change_of(
    matched: MatchedFailure, code: str = "", defined: Collection[str] = ()
) -> SuggestedChange | None:
    """Return the change of a failure's explanation that healing would try first; None if there is none.

    code: The code that ran; without it, the failing line alone is used.
    defined: Names that need no import where it ran.
    """
    failure, row = matched.failure, matched.shown
    if bare(failure.ename) in _UNREADABLE:
        return _repaired(failure, code)
    if row is None or matched.called is not None or failure.tool_frame is None:
        return None  # the code of another tool, or none
    text = row[0]
    if len(failure.near) > 1 and text.near:
        return None  # a choice of names
    reasons = {edit.reason for edit in matched.edits if edit.rule == text.name}
    names = [*(["as_explained"] if reasons else []), *text.fixes]
    place = _site(matched, code) if names else None
    if place is None:
        return None
    before, site = place
    matches = dict(fixes_for(site))
    for name in filter(matches.__contains__, names):
        for proposal, _ in spared(proposals_of(name, matches[name], site), name):
            if name == "as_explained" and proposal.reason not in reasons:
                continue
            if proposal.guard or proposal.less >= _GUESS:
                break
            changed = _without_imports(before, apply_edits(before, proposal.edits), defined)
            kind = kind_of(before, changed, proposal.kind or ROWS[name].kind)
            if kind == "assumes":
                break  # less likely than a question, so not shown
            if not may_be_a_fix(kind):
                continue
            if lines := _new_lines(before, changed):
                return SuggestedChange(changed, lines, proposal.reason)
            break
    return None


def _without_imports(before: str, after: str, defined: Collection[str]) -> str:
    """Return changed code without imports of names that are already defined."""
    old, lines = set(before.split("\n")), []
    for line in after.split("\n"):
        name = re.fullmatch(r"import (?:[\w.]+ as )?(\w+)|from [\w.]+ import (\w+)", line)
        if line in old or name is None or (name[1] or name[2]) not in defined:
            lines.append(line)
    return "\n".join(lines)


_UNREADABLE = frozenset(("SyntaxError", "IndentationError", "TabError"))
#: A repair that costs more is a guess; so is one that costs hardly less than the next.
_SURE_COST, _SURE_LEAD = 0.75, 0.15
#: Messages after which what is right depends on what is meant, though a text near by can be read.
_UNSURE = re.compile("^cannot (?:assign|delete)|^f-string")


def _repaired(failure: Failure, code: str) -> SuggestedChange | None:
    """Return the repair of code that Python cannot read; None if more than one is likely."""
    # Late: most failures are of code that can be read.
    from healkit.parts.explain.syntax_repair.nearest_text import nearest

    masked = _MAGIC.sub(r"\1#", code)
    if not code or _UNSURE.search(failure.evalue) or compiler_message(masked, is_cell=True) is None:
        return None
    repairs = list(nearest(masked, 2))
    if (
        not repairs
        or repairs[0].cost > _SURE_COST
        or (repairs[1:] and repairs[1].cost - repairs[0].cost < _SURE_LEAD)
    ):
        return None
    typed = dict(zip(masked.split("\n"), code.split("\n"), strict=True))
    text = "\n".join(typed.get(line, line) for line in repairs[0].text.split("\n"))
    lines = _new_lines(code, text)
    return (
        SuggestedChange(text, lines, f"Python can read it now: {', and '.join(repairs[0].done)}.")
        if lines
        else None
    )


def _site(matched: MatchedFailure, code: str) -> tuple[str, Site] | None:
    """Return the code that ran, and its place in a form that Python can read; otherwise those of the failing line."""
    frame = matched.failure.tool_frame
    assert frame is not None
    line = frame.line.strip()
    for before, text in ((code, code), (code, _MAGIC.sub(r"\1#", code)), (line, line), (f"{line} pass",) * 2):
        try:
            site = Site(Source(text), "", matched)
        except (SyntaxError, ValueError):
            continue
        if before != code or site.statement is not None:
            return before, site
    return None


def _new_lines(before: str, after: str) -> str:
    """Return the lines that a change adds or rewrites, without their common indentation; empty for too many."""
    old, new = before.splitlines(), after.splitlines()
    groups = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    added = [
        textwrap.dedent("\n".join(new[i:j])).strip("\n")
        for tag, _, _, i, j in groups
        if tag in {"replace", "insert"}
    ]
    text = "\n".join(filter(str.strip, added))
    if text.count("\n") >= _SHOWN_MAX_LINES or len(text) > _SHOWN_MAX_CHARS:
        return ""
    return text.removesuffix(" pass") if before.endswith(": pass") else text
