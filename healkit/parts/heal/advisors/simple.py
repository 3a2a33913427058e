"""Advisors that run nothing: rules, other code, a person.

The loop validates their proposals like any other patch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Literal

from healkit.core.contracts.patches import Edit, EditKind, apply_edits
from healkit.core.contracts.vault import VaultEntry
from healkit.core.pysource.nodes import Function
from healkit.core.pysource.shapes import read_shape
from healkit.core.store.sql_tools import MISSING_NAME
from healkit.errors import ToolShapeError, near_misses
from healkit.parts.explain.explanation import MatchedFailure
from healkit.parts.explain.fixes import proposals
from healkit.parts.explain.site import Site
from healkit.parts.explain.source import Source
from healkit.parts.explain.syntax_repair.draft import compiler_message
from healkit.parts.explain.syntax_repair.nearest_text import repairs
from healkit.parts.heal.advisor import Case, Peer, Workbench
from healkit.parts.heal.records import Attempt, Patch
from healkit.parts.heal.verdicts import is_provable

PATCHES_MAX = 12
#: Of those, at most so many that only keep the failure from happening.
_GUARDS_MAX = 2

_EQUALS_NULL = re.compile(r"(?P<sign>=|<>|!=)(?P<gap>\s*)(?P<null>NULL)\b", re.IGNORECASE)
_SQL_TEXT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_SQL_SET = re.compile(r"\bSET\b(?![^;]*\bWHERE\b)", re.IGNORECASE)


class RulesAdvisor:
    """Patches from the catalogue's fixes, in milliseconds; implements `healkit.parts.heal.advisor.Advisor`."""

    name = "rules"
    author: Literal["person", "rule", "search", "model", "agent"] = "rule"

    def propose(self, case: Case, bench: Workbench | None = None) -> Generator[Patch, Attempt | None, None]:
        """Yield at most `PATCHES_MAX` patches, likeliest first, without those already tried in this run."""
        if case.entry.type == "sql":
            yield from self._of_statement(case)
            return
        tried_codes = {case.entry.code, *(attempt.patch.code for attempt in case.attempts)}
        for patch in sorted(self._all(case), key=lambda patch: (patch.guard, -patch.rank)):
            if len(tried_codes) > PATCHES_MAX + len(case.attempts):
                return
            if patch.code not in tried_codes:
                tried_codes.add(patch.code)
                yield patch

    def _of_statement(self, case: Case) -> Generator[Patch, Attempt | None, None]:
        """Yield patches of a SQL statement; if the database then misses another name, that is corrected too."""
        failure, tried_texts = case.failure, {case.entry.code}
        names = [] if failure is None else [*failure.near, *failure.known]
        pending = [(case.entry.code, "" if failure is None else failure.evalue)]
        while pending:
            code, message = pending.pop(0)
            for text, reason in [*_known_to_database(code, message, names), *_compared_with_null(code)]:
                if text in tried_texts or len(tried_texts) > PATCHES_MAX:
                    continue
                tried_texts.add(text)
                attempt = yield self._patch(text, reason, 0.9 - 0.05 * len(tried_texts))
                failures = [] if attempt is None else [result.failure for result in attempt.results]
                pending += [(text, error) for error in failures if MISSING_NAME.search(error)][:1]

    def _all(self, case: Case) -> list[Patch]:
        code = case.entry.code
        if compiler_message(code, is_cell=case.given is not None) is not None:
            return [
                self._patch(text, reason, rank)
                for text, reason, rank in repairs(code, known=case.given or ())
            ]
        patches = [
            self._patch(
                text,
                proposal.reason,
                fix.priority - proposal.less,
                guard=proposal.guard,
                kind=proposal.kind or fix.kind,
            )
            for fix, proposal, text in proposals(site_of(case))
        ]
        guards = sorted((p for p in patches if p.guard), key=lambda patch: -patch.rank)[:_GUARDS_MAX]
        return [patch for patch in patches if not patch.guard] + guards

    def _patch(
        self,
        code: str,
        reason: str,
        rank: float,
        *,
        guard: bool = False,
        kind: EditKind | Literal[""] = "",
    ) -> Patch:
        return Patch(
            code=code,
            advisor=self.name,
            author=self.author,
            reason=reason,
            rank=round(rank, 3),
            guard=guard,
            kind=kind,
        )


def site_of(case: Case) -> Site:
    """Return the place of a case's failure; raises `SyntaxError` or `ValueError` if its code does not parse."""
    entry = case.entry
    evidence = case.checks, entry.grants.read, case.given, case.answers
    matched = None if case.failure is None else MatchedFailure(case.failure)
    return Site(Source(entry.code), entry.tool_name, matched, *evidence)


def _known_to_database(code: str, said: str, known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the statement with a known name in place of the unknown one, and a description of the change."""
    match = MISSING_NAME.search(said)
    if match is None:
        return
    wrong = (match["name"] or match["which"]).rpartition(".")[2]
    quoted = [match.span() for match in _SQL_TEXT.finditer(code)]
    places = [
        occurrence.span()
        for occurrence in re.finditer(rf"(?<![\w$:]){re.escape(wrong)}(?![\w$])", code, re.IGNORECASE)
        if not any(start <= occurrence.start() < end for start, end in quoted)
    ]
    for right in near_misses(wrong, known, 3) if places else ():
        written = right if re.fullmatch(r"[A-Za-z_]\w*", right) else '"' + right.replace('"', '""') + '"'
        edits = [Edit(*place, written) for place in places]
        yield apply_edits(code, edits), f"The database has no `{wrong}`; it has `{right}`."


def _compared_with_null(code: str) -> Iterator[tuple[str, str]]:
    """Yield a corrected SQL statement and a description of the change: in SQL nothing equals NULL, not even NULL."""
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


# Code that has worked before. Correct peers are how the best repairers of student programs work: Gulwani, Radiček and
# Zuleger, "Automated Clustering and Program Repair for Introductory Programming Assignments", PLDI 2018.


class PeersAdvisor:
    """Advisor that proposes other versions of the tool, newest first, then tools with the same arguments.

    Another tool is proposed only if some check says what is right for a failing input; otherwise any program would
    pass.
    """

    name = "peers"
    author: Literal["rule"] = "rule"

    def propose(self, case: Case, bench: Workbench) -> Iterator[Patch]:
        """Yield each peer as a patch; called by the loop."""
        if case.entry.type != "python":
            return
        for place, peer in enumerate(case.peers):
            if not peer.same_tool and not is_provable(case):
                continue
            code = peer.code if peer.same_tool else _as_this_tool(peer, case.entry)
            if code is None:
                continue
            reason, doubt = f"Go back to {peer.label}.", ""
            if not peer.same_tool:
                reason = f"Replace the tool by {peer.label}, which is another program."
                doubt = (
                    f"It does what {peer.label} does; it is not known whether this tool should do the same."
                )
            yield Patch(
                code=code, advisor=self.name, author=self.author, reason=reason, rank=-place, doubt=doubt
            )


def _as_this_tool(peer: Peer, entry: VaultEntry) -> str | None:
    """Return the other tool's code with this tool's signature; None if it is not a plain function."""
    try:
        tree = ast.parse(peer.code)
        shape = read_shape(tree, peer.label.partition(" ")[0])
    except (SyntaxError, ToolShapeError):
        return None
    if shape.kind != "function":
        return None
    if shape.entry in ("run", entry.tool_name):
        return peer.code
    name = entry.tool_name if entry.tool_name.isidentifier() else "run"
    names = list(entry.input_schema.get("properties", {}))
    defined = {node.name for node in tree.body if isinstance(node, Function | ast.ClassDef)}
    if shape.takes_dict or name in defined or not all(map(str.isidentifier, names)):
        return None
    imports, signature = _head(entry) or ("", ", ".join(names))
    passed = ", ".join(f"{name}={name}" for name in names)
    call = f"def {name}({signature}):\n    return {shape.entry}({passed})\n"
    return f"{peer.code.rstrip()}\n\n\n{imports}{call}"


def _head(entry: VaultEntry) -> tuple[str, str] | None:
    """Return the tool's imports and its parameters from its code; None if they cannot be read or kept."""
    try:
        tree = ast.parse(entry.code)
        entry_name = read_shape(tree, entry.tool_name).entry
    except (SyntaxError, ToolShapeError):
        return None
    function = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == entry_name), None)
    if function is None or function.args.posonlyargs or function.args.vararg or function.args.kwarg:
        return None
    imports = [
        node
        for node in tree.body
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
    ]
    return "".join(f"{ast.unparse(node)}\n" for node in imports), ast.unparse(function.args)


# A person with an editor, who sees why a patch fails and may try again.

#: Lets a person edit the code. It gets the case, the text so far, and the problem of the last try (empty at first). It
#: returns the edited code, or None to end.
AskEdit = Callable[[Case, str, str], "str | None"]


class PersonAdvisor:
    """Advisor that asks until the patch passes, or the person stops."""

    name = "person"
    author: Literal["person"] = "person"

    def __init__(self, edit: AskEdit) -> None:
        self._edit = edit

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        """Yield one patch a round; the loop sends back its attempt."""
        code, problem = case.entry.code, ""
        while (edited := self._edited(case, code, problem, bench)) is not None and edited != code:
            attempt = yield Patch(
                code=edited, advisor=self.name, author=self.author, reason="Edited by hand."
            )
            if attempt is None or attempt.verdict == "cured":
                return
            code, problem = edited, attempt.why or "it passes, but no example says what is right"

    def _edited(self, case: Case, code: str, problem: str, bench: Workbench) -> str | None:
        with bench.off_the_clock():
            return self._edit(case, code, problem)
