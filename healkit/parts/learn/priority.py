"""Predictions, TD errors and priorities; prioritised replay.

A state is a tool with the hash of its code, so a healed tool starts again. Its value begins at 0.5. It is the
Beta-smoothed share of successful executions (Laplace), with a minimum step size so that it follows a change. An
execution is one step: its error is the outcome (1 or 0) minus the expected value. The calls in it are a longer walk to
the same end: δᵢ = rᵢ + γV(sᵢ₊₁) - V(sᵢ). Only the last call has a reward, the execution's outcome (TD(0), Sutton 1988).
A trace's priority is its own |δ|, from 0.01 to 1.

**Sampling** is proportional to priority^α, with importance weights (Schaul et al. 2016). Priorities are rounded to
hundredths, so that a hundred counts replace a sum tree: a level is drawn by its count, then a place in it. Both are one
number, `level * PLACES + place`, under a unique index, so a sample reads only what it returns.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete, insert, select, update

from healkit.core.store.database import Database
from healkit.core.store.models import upsert
from healkit.errors import UsageInvalid
from healkit.parts.learn.facts import Learned, node_of
from healkit.parts.learn.tables import LEARNED, PLACES, PRIORITIES, VALUES

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy.orm import Session

#: Another number computes everything anew: the next consumer begins at the first trace.
MODEL_VERSION = 3
DISCOUNT = 0.9
_COLD = 0.5
#: The least step of a value: it forgets what is more than about twenty runs old.
_STEP = 0.05
LEAST_PRIORITY = 0.01
_LEVELS = 100
#: How often a place is drawn that was deleted since, before those that are left are listed.
_ROUNDS = 20


@dataclasses.dataclass(frozen=True)
class Surprise:
    """Execution, or a call in it (`task_id`), with the expected outcome; its fields are the table's columns.

    predicted: How likely it was to succeed, 0 to 1; for a call discounted by the calls after it.
    visits: How often its state was seen before.
    model_version: The version of the calculation.
    """

    trace_id: str
    task_id: str
    tool_name: str
    timestamp: datetime
    predicted: float
    succeeded: bool
    td_error: float
    priority: float
    visits: int
    model_version: int

    def __str__(self) -> str:
        """Describe it in one line."""
        call = f" {self.task_id}" if self.task_id else ""
        ended = "succeeded" if self.succeeded else "failed"
        expected = f"expected to succeed at {self.predicted:.0%}"
        return f"{self.tool_name}{call} {ended}, {expected}: priority {self.priority:.2f}"


@dataclasses.dataclass(frozen=True, repr=False)
class Sampled(Surprise):
    """Execution that was drawn.

    probability: The chance of one draw to give it.
    weight: Its importance, 1/(N·P)^β divided by the largest of the sample; scale what is learned from it by this.
    """

    probability: float
    weight: float


class _Value(NamedTuple):
    value: float
    visits: int


class PriorityLearner:
    """Values of all states, and the priority of each execution and each call."""

    def __init__(self) -> None:
        self._values: dict[str, _Value] = {}
        self._changed: set[str] = set()
        self._taken: dict[int, int] = {}
        self._new: dict[int, int] = {}
        self._rows: list[dict[str, object]] = []

    def load(self, session: Session) -> None:
        """Forget the data in memory, and read the stored data."""
        self.__init__()  # type: ignore[misc]  # no subclass has another signature
        self._values = {row.state: _Value(row.value, row.visits) for row in session.execute(select(VALUES))}
        self._taken = {row.level: row.taken for row in session.execute(select(PRIORITIES))}

    def clear(self, session: Session) -> None:
        """Remove all stored data."""
        for table in (VALUES, LEARNED, PRIORITIES):
            session.execute(delete(table))

    def learn(self, traces: Sequence[Learned]) -> None:
        """Predict each execution and each of its calls, then learn from the outcome."""
        for learned in traces:
            self._walk(learned)
            state = f"{_source(learned)}{learned.tool}@{learned.code_hash}"
            target = float(learned.succeeded)
            error, before = self._step(state, target)
            level = max(1, round(_LEVELS * min(1.0, abs(error))))
            place = self._taken.get(level, 0) + 1
            self._taken[level] = place
            self._new[level] = self._new.get(level, 0) + 1
            self._keep(learned, "", learned.tool, learned.succeeded, error, before, level * PLACES + place)

    def store(self, session: Session) -> None:
        """Write the new rows and the changed values."""
        if self._rows:
            session.execute(insert(LEARNED), self._rows)
            kind = session.get_bind().dialect.name
            values = [{"state": state, **self._values[state]._asdict()} for state in self._changed]
            session.execute(upsert(kind, VALUES, ["state"]), values)
            counts = [{"level": at, "taken": self._taken[at], "live": new} for at, new in self._new.items()]
            session.execute(upsert(kind, PRIORITIES, ["level"], adding="live"), counts)
        self._rows, self._changed, self._new = [], set(), {}

    def _walk(self, learned: Learned) -> None:
        """Learn from the calls of an execution, each from the one after it."""
        calls = learned.trace.task_results
        states = [f"{_source(learned)}call {node_of(call.tool)}" for call in calls]
        for index, call in enumerate(calls):
            last = index == len(calls) - 1
            ahead = self._values.get(states[index + 1], _Value(_COLD, 0)).value if not last else 0.0
            target = float(learned.succeeded) if last else DISCOUNT * ahead
            error, before = self._step(states[index], target)
            self._keep(learned, call.task_id, node_of(call.tool), call.success, error, before, None)

    def _step(self, state: str, target: float) -> tuple[float, _Value]:
        """Move a state's value towards the target; return the error, and the value before."""
        before = self._values.get(state, _Value(_COLD, 0))
        error = target - before.value
        step = max(_STEP, 1 / (before.visits + 3))
        self._values[state] = _Value(before.value + step * error, before.visits + 1)
        self._changed.add(state)
        return error, before

    def _keep(
        self,
        learned: Learned,
        task_id: str,
        tool: str,
        succeeded: bool,
        error: float,
        before: _Value,
        slot: int | None,
    ) -> None:
        self._rows.append(
            {
                "trace_id": learned.trace.id, "task_id": task_id, "tool_name": tool,
                "timestamp": learned.trace.timestamp, "predicted": before.value, "succeeded": succeeded,
                "td_error": error, "priority": min(1.0, max(LEAST_PRIORITY, abs(error))),
                "visits": before.visits, "model_version": MODEL_VERSION, "slot": slot,
            }
        )  # fmt: skip


def _source(learned: Learned) -> str:
    """Keep a client's report apart: the order of two sources must not change a value."""
    return "collected " if learned.collected else ""


class Sample(tuple[Sampled, ...]):
    """Executions that were drawn, with replacement, in the order of the draw.

    waiting: Traces that were not learned yet.
    """

    waiting = 0

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each."""
        import pandas as pd

        names = [field.name for field in dataclasses.fields(Sampled)]
        return pd.DataFrame([dataclasses.astuple(row) for row in self], columns=names)


def sample(
    database: Database,
    count: int,
    *,
    alpha: float = 0.6,
    beta: float = 0.4,
    seed: int | None = None,
    tool: str | None = None,
) -> Sample:
    """Draw executions, likelier the more surprising they were: P ∝ priority^alpha; a draw may repeat.

    beta: How far the weights correct for that, 1 for completely. The paper raises it from 0.4 to 1 during the work.
    seed: The same seed and log give the same sample.
    """
    if not (isinstance(count, int) and 0 <= count <= _MOST and alpha >= 0 and 0 <= beta <= 1):
        raise UsageInvalid(
            f"A sample has 0 to {_MOST:,} executions, alpha is at least 0, and beta is from 0 to 1.",
            hint="For example: hk.learning.sample(100, alpha=0.6, beta=0.4)",
        )
    dice = random.Random(seed)  # noqa: S311 - a sample, and no secret
    with database.read() as session:
        bins = _bins(session, tool)
        drawn = _draw(session, bins, count, alpha, dice) if bins else []
    total = sum(level_bin.live * level_bin.level**alpha for level_bin in bins)
    many = sum(level_bin.live for level_bin in bins)
    chances = [(row.slot // PLACES) ** alpha / total for row in drawn]
    weights = [(many * chance) ** -beta for chance in chances]
    most = max(weights, default=1.0)
    return Sample(
        Sampled(*(*row[:-1], chance, weight / most))
        for row, chance, weight in zip(drawn, chances, weights, strict=True)
    )


def steps(database: Database, trace_id: str) -> list[Surprise]:
    """Return an execution's row, then those of its calls; empty if nothing was learned from it."""
    with database.read() as session:
        rows = session.execute(select(LEARNED).where(LEARNED.c.trace_id == trace_id)).all()
    return sorted((Surprise(*row[:-1]) for row in rows), key=lambda row: int(row.task_id[1:] or 0))


def surprising(database: Database, count: int, tool: str | None = None) -> list[Surprise]:
    """Return the executions with the highest priority; of equal ones, the one that was learned last comes first."""
    chosen = select(LEARNED).where(LEARNED.c.slot.is_not(None)).order_by(LEARNED.c.slot.desc()).limit(count)
    if tool is not None:
        chosen = chosen.where(LEARNED.c.tool_name == tool)
    with database.read() as session:
        return [Surprise(*row[:-1]) for row in session.execute(chosen)]


def priorities(database: Database, trace_ids: Sequence[str]) -> dict[str, float]:
    """Return how surprising the traces were, by id, 0.01 to 1, without those that nothing was learned from."""
    chosen = select(LEARNED.c.trace_id, LEARNED.c.priority).where(
        LEARNED.c.trace_id.in_(trace_ids), LEARNED.c.task_id == ""
    )
    with database.read() as session:
        return {row.trace_id: row.priority for row in session.execute(chosen)}


def forget(session: Session, trace_ids: Sequence[str]) -> None:
    """Delete the data learned from these traces, and subtract them from the counts of their levels."""
    theirs = LEARNED.c.trace_id.in_(trace_ids)
    slots = select(LEARNED.c.slot).where(theirs, LEARNED.c.slot.is_not(None))
    for level, gone in Counter(slot // PLACES for slot in session.scalars(slots)).items():
        fewer = update(PRIORITIES).where(PRIORITIES.c.level == level)
        session.execute(fewer.values(live=PRIORITIES.c.live - gone))
    session.execute(delete(LEARNED).where(theirs))


#: The largest sample.
_MOST = 100_000


class _Bin(NamedTuple):
    """Level of priority: its count, and the slots to draw from, or None for 1 to `taken`."""

    level: int
    live: int
    taken: int
    slots: tuple[int, ...] | None = None


def _bins(session: Session, tool: str | None) -> list[_Bin]:
    """Return the non-empty levels; those of one tool are listed, because it may have few of many."""
    if tool is None:
        counts = session.execute(select(PRIORITIES).where(PRIORITIES.c.live > 0).order_by(PRIORITIES.c.level))
        return [_Bin(row.level, row.live, row.taken) for row in counts]
    tool_slots = select(LEARNED.c.slot).where(LEARNED.c.tool_name == tool, LEARNED.c.slot.is_not(None))
    levels: dict[int, list[int]] = {}
    for slot in session.scalars(tool_slots.order_by(LEARNED.c.slot)):
        levels.setdefault(slot // PLACES, []).append(slot)
    return [_Bin(level, len(slots), len(slots), tuple(slots)) for level, slots in levels.items()]


def _draw(session: Session, bins: Sequence[_Bin], count: int, alpha: float, dice: random.Random) -> list[Any]:
    """Draw rows: a level, then a place in it; repeat if retention has emptied that place."""
    drawn: list[Any] = []
    chosen = dice.choices(bins, [level_bin.live * level_bin.level**alpha for level_bin in bins], k=count)
    for round_ in range(_ROUNDS):
        tried = [_place(level_bin, dice) for level_bin in chosen]
        there = {
            row.slot: row for row in session.execute(select(LEARNED).where(LEARNED.c.slot.in_(set(tried))))
        }
        drawn += [there[slot] for slot in tried if slot in there]
        chosen = [level_bin for level_bin, slot in zip(chosen, tried, strict=True) if slot not in there]
        if round_ == _ROUNDS - 2:  # levels that are nearly empty: list what is left
            remaining_bins = {level_bin.level: _listed(session, level_bin) for level_bin in set(chosen)}
            chosen = [
                remaining_bins[level_bin.level]
                for level_bin in chosen
                if remaining_bins[level_bin.level].slots
            ]
        if not chosen:
            break
    return drawn


def _place(held: _Bin, dice: random.Random) -> int:
    if held.slots is not None:
        return dice.choice(held.slots)
    return held.level * PLACES + dice.randint(1, held.taken)


def _listed(session: Session, held: _Bin) -> _Bin:
    first = held.level * PLACES
    within = LEARNED.c.slot.between(first, first + PLACES - 1)
    return held._replace(slots=tuple(session.scalars(select(LEARNED.c.slot).where(within))))
