"""The seam between the healing loop and who proposes patches.

An advisor gets a `Case`, which is everything known, and a `Workbench`, on which it may try things: restricted,
recorded, and bounded by what is left of the budget. It yields patches, likeliest first; the loop validates each,
whoever made it, and stops asking when it has what it wants. Other packages add advisors under the entry point
`healkit.advisors`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from healkit.contracts.failure import Failure
from healkit.contracts.healing import Attempt, Check, CheckResult, Edit, Observed, Patch
from healkit.store.entries import VaultEntry


@dataclasses.dataclass(frozen=True)
class Peer:
    """Other code for the same purpose: an earlier revision, another persona's version, a tool with the same schema.

    `label` names it on screen; `same_tool` is whether it is the same tool's.
    """

    label: str
    code: str
    same_tool: bool


@dataclasses.dataclass(frozen=True)
class Case:
    """What is known of a failing tool.

    entry: its active revision (or its draft, where not even that parses). failure: the newest on record, None where it
    returned something wrong. checks: what a patch has to do, in the order in which they are run. attempts: what was
    tried before in this run, and why it would not do. trace_id: the execution of the failure, whose worker may still be
    kept; empty where it is none.
    """

    entry: VaultEntry
    failure: Failure | None
    checks: tuple[Check, ...]
    attempts: tuple[Attempt, ...] = ()
    peers: tuple[Peer, ...] = ()
    trace_id: str = ""

    @property
    def failing(self) -> tuple[Check, ...]:
        """The checks of the recorded failure."""
        return tuple(check for check in self.checks if check.origin == "failing")


class Workbench(Protocol):
    """Where code is tried; every method raises `BudgetSpent` when time is up or somebody pressed Stop."""

    @property
    def left_s(self) -> float:
        """What is left of the budget, in seconds; 0 once Stop was pressed."""
        ...

    def off_the_clock(self) -> AbstractContextManager[None]:
        """A block whose time is on nobody's budget: a person thinks in it, and nothing is tried."""
        ...

    def score(
        self,
        code: str,
        candidates: Iterable[Sequence[Edit]],
        checks: Sequence[Check],
        *,
        every: bool = False,
        slow: bool = False,
        as_code: bool = False,
        limit_s: float | None = None,
    ) -> Iterator[tuple[int, str]]:
        """Run many variants of a code by the thousand; yields (position, outcomes) as they end, in no order.

        Candidates are drawn as they are needed, so a generator may look at earlier outcomes. The outcomes have one
        letter a check: `.` passed, `w` wrong, `e` raised, `t` timed out, `d` died, `-` not run; a candidate that does
        not compile is all `-`. every: go on after the first check that is not passed. slow: ten times the time for
        each check, for promising candidates that timed out. as_code: of a check of which nothing is known, what the
        code itself does there is right, a value or an exception; where it does not end, any value is. limit_s: each
        check's time, where it is not to be found out by running the code as it is.
        """
        ...

    def observe(self, code: str, checks: Sequence[Check]) -> list[Observed]:
        """Run the code once for each check, with its lines and types watched."""
        ...

    def values(self, code: str, checks: Sequence[Check], limit_s: float) -> list[CheckResult]:
        """What the code gives for each check, unwatched; all of it is one line of the record."""
        ...

    def run(
        self, codes: Sequence[str], checks: Sequence[Check], *, limit_s: float | None = None
    ) -> list[list[CheckResult]]:
        """Each code with each check, every pair in a fresh restricted process; the values come back.

        limit_s: as in `score`.
        """
        ...


class Advisor(Protocol):
    """Somebody who proposes patches.

    Where it has them, the loop also uses: `unavailable`, a text that says why it cannot be asked; `listen(say)`, called
    before it is asked, so that it can tell progress in sentences; `remarks`, sentences for the report; `unclaimed`, a
    cost that no patch carries.
    """

    @property
    def name(self) -> str:
        """What it is asked for by, and shown as."""
        ...

    @property
    def author(self) -> Literal["person", "rule", "search", "model", "agent"]:
        """Whose a revision with its patch is."""
        ...

    def propose(self, case: Case, bench: Workbench) -> Iterator[Patch]:
        """Patches for the case, likeliest first; called by the loop, which may stop drawing at any time."""
        ...
