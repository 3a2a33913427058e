"""Advisors: what they get, what they give, and their names.

An advisor gets a `Case`, with everything known, and a `Workbench`, on which it may try code: restricted,
recorded, and within the rest of the budget. It yields patches, likeliest first. The loop validates each patch, whoever
made it, and stops when it has enough. Plug-ins add advisors (`hooks.Specs.advisors`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from healkit import hooks
from healkit.config import Config
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import Check, CheckResult, Edit, Observed
from healkit.core.contracts.vault import VaultEntry
from healkit.core.pysource.tracebacks import fingerprint
from healkit.errors import ConfigError, HealkitError, did_you_mean
from healkit.parts.heal.records import Attempt, Patch


@dataclasses.dataclass(frozen=True)
class Peer:
    """Other code for the same purpose: an earlier revision, another persona's version, a tool with the same schema.

    `label` names it on screen; `same_tool` is True for a version of the same tool.
    """

    label: str
    code: str
    same_tool: bool


@dataclasses.dataclass(frozen=True)
class Case:
    """Facts about a failing tool.

    entry: Its active revision (or its draft, if not even that parses).
    failure: The newest on record, None for a wrong result.
    checks: What a patch has to do, in the order in which they run.
    attempts: The patches tried before in this run, and why they failed.
    trace_id: The execution of the failure, whose worker may still be retained; empty without one.
    untried: No check has the input of the recorded failure.
    base: Each check's result with the unpatched code; empty until it was run.
    answers: The answers of the recorded executions' calls, as JSON, each once.
    given: Names that a notebook cell finds defined, name → value; None for a tool.
    discreet: An agent gets the texts, so no sentence contains the result of a check.
    """

    entry: VaultEntry
    failure: Failure | None
    checks: tuple[Check, ...]
    attempts: tuple[Attempt, ...] = ()
    peers: tuple[Peer, ...] = ()
    trace_id: str = ""
    untried: bool = False
    base: tuple[CheckResult, ...] = ()
    answers: tuple[Any, ...] = ()
    given: Mapping[str, Any] | None = None
    discreet: bool = False

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the failure, empty without one."""
        return "" if self.failure is None else fingerprint(self.failure)

    @property
    def failing(self) -> tuple[Check, ...]:
        """Checks of the recorded failure."""
        return tuple(check for check in self.checks if check.origin == "failing")


class Workbench(Protocol):
    """Bench on which code is tried; every method raises `BudgetSpent` if time is up or Stop was pressed."""

    @property
    def left_s(self) -> float:
        """Rest of the budget, in seconds; 0 once Stop was pressed."""
        ...

    @property
    def may_call(self) -> bool:
        """True where the validation of a patch may make calls that are not on record."""
        ...

    def off_the_clock(self) -> AbstractContextManager[None]:
        """Return a context whose time does not count against the budget, for waiting for a person."""
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
        """Run many variants of a code by the thousand; yield (position, outcomes) as they end, in no order.

        Candidates are drawn when they are needed, so a generator may look at earlier outcomes. The outcomes have one
        letter per check: `.` passed, `w` wrong, `e` raised, `t` timed out, `d` died, `n` made a call that is not on
        record, `-` not run. A candidate that does not compile is all `-`.

        every: Continue after the first check that fails.
        slow: Ten times the time for each check, for promising candidates that timed out.
        as_code: If a check's right answer is unknown, the code's own result (a value or an exception) is right. If the
            code does not end, any value is right.
        limit_s: Each check's time, instead of one measured with the unpatched code.
        """
        ...

    def observe(self, code: str, checks: Sequence[Check]) -> list[Observed]:
        """Run the code once for each check, with its lines and types observed."""
        ...

    def values(self, code: str, checks: Sequence[Check], limit_s: float) -> list[CheckResult]:
        """Return the code's result for each check, without watching; all of it is one line of the record."""
        ...

    def run(
        self,
        codes: Sequence[str],
        checks: Sequence[Check],
        *,
        limit_s: float | None = None,
        accepted: bool = True,
    ) -> list[list[CheckResult]]:
        """Run each code with each check, every pair in a fresh restricted process, and return the values.

        limit_s: As in `score`.
        accepted: False runs the tool's own code without its grants, as any other.
        """
        ...


class Advisor(Protocol):
    """Source of patches.

    The loop also uses these, if an advisor has them. `unavailable` says why it cannot be used. `prepare(services,
    persona)` is called before the search and returns False if there is nothing to ask (only what that persona may see
    counts, None: everything). `listen(say)` is called before the advisor starts, so that it can report progress in
    sentences. `final` is False if another advisor may propose its patches again. `remarks` are sentences for the
    report. `unclaimed` is a cost that no patch carries.
    """

    @property
    def name(self) -> str:
        """Name by which it is requested and shown."""
        ...

    @property
    def author(self) -> Literal["person", "rule", "search", "model", "agent"]:
        """Author of a revision with its patch."""
        ...

    def propose(self, case: Case, bench: Workbench) -> Iterator[Patch]:
        """Yield patches for the case, likeliest first; called by the loop, which may stop drawing at any time."""
        ...


def advisor_names() -> list[str]:
    """Return the names of all advisors, cheapest first: healkit's own, then those of other packages."""
    return [*_makers()]


def _makers() -> dict[str, Callable[[Config], Advisor]]:
    """Return what makes each advisor; of two with one name, healkit's own."""
    makers: dict[str, Callable[[Config], Advisor]] = {}
    for registry in reversed(hooks.every("advisors")):  # the last registered comes first
        makers |= {name: make for name, make in registry.items() if name not in makers}
    return makers


def advisors_for(names: Sequence[str | Advisor], config: Config) -> tuple[list[Advisor], list[str]]:
    """Return the advisors of those names, and a note for each that cannot be used.

    A name may also be an advisor itself, such as one that needs a person's editor. Raises `ConfigError` for an unknown
    name, except for one of healkit's own whose part was removed.
    """
    advisors: list[Advisor] = []
    notes: list[str] = []
    names = [name for name in names if name not in Config.heal_advisors or name in _makers()]
    for name in dict.fromkeys(names):
        try:
            advisor = _named(name, config) if isinstance(name, str) else name
        except HealkitError:
            raise
        except Exception as error:  # noqa: BLE001 - another package's code; the other advisors are asked as usual
            notes.append(f"{name}: this advisor cannot be loaded: {type(error).__name__}: {error}")
            continue
        missing = getattr(advisor, "unavailable", "")
        if missing:
            notes.append(f"{advisor.name}: {missing}")
        else:
            advisors.append(advisor)
    return advisors, notes


def _named(name: str, config: Config) -> Advisor:
    makers = _makers()
    if name not in makers:
        raise ConfigError(
            f"There is no advisor {name!r}.{did_you_mean(name, makers)}",
            hint=f"There are {', '.join(makers)}.",
        )
    return makers[name](config)
