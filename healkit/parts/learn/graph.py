"""Graph of tools, learned from traces.

`GraphLearner` counts, `ToolGraph` answers. A call comes after the last call that had ended when it began. Overlapping
calls are parallel, so neither comes after the other. This applies to the calls in one execution. It also applies to
executions of one process, persona and origin that begin within ten minutes of each other. If the process is not known,
only the calls in one execution count. A `provides` edge means that a value of a result was an argument later. Values
are compared by a hash, and only if they hardly occur by chance. No value is kept, only the hashes of the last results
in the newest sessions.

The same calls, in the same order, teach `ranking.Ranker`; it is stored here.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Table, delete, select

from healkit.core.store.models import TOOLS, upsert
from healkit.parts.learn.facts import Learned, node_of
from healkit.parts.learn.ranking import START, Context, Ranker, habit_of, stems_of
from healkit.parts.learn.tables import LEARNING, TOOL_EDGES, TOOL_NODES, TOOL_SEQUENCES, TOOL_WORDS

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

#: A call's beginning is read off one clock and its duration off another, which may differ by as much.
_CLOCKS = timedelta(milliseconds=1)
#: An execution that begins later than this after another one ended does not belong to the same session.
_SESSION = timedelta(minutes=10)
#: Calls that are looked back at, and sessions that are remembered.
_RECENT_MAX, _SESSIONS_MAX = 16, 200
#: Values of a result, or of arguments, that are compared, and that are looked at.
_VALUES_MAX, _LOOKED_AT_MAX = 50, 1_000
#: Shortest text, and least whole number, that hardly occurs in two places by chance.
_TEXT_MIN_CHARS, _NUMBER_MIN = 4, 1_000
_COMMON_TEXTS = frozenset(
    ["true", "false", "none", "null", "success", "error", "failed", "pending", "active"]
)
#: Origins whose executions never count as a next step.
_NO_STEPS = frozenset({"heal", "rerun", "try", "answered"})
#: What the first call inside a tool comes after; no tool is called so.
_INSIDE = "inside {}"
_STATE = "graph"
_NAME_MAX_CHARS = 200


class _Step(NamedTuple):
    """Call that a later one may come after; `before` is the tool before it."""

    tool: str
    before: str
    began: datetime
    ended: datetime
    values: frozenset[int]


class _Call(NamedTuple):
    """Call to learn from; `given` and `made` are the hashes of its values, `words` those of its intent.

    persona: The persona whose habit it is; empty for a call inside a tool, which depends on the code.
    """

    tool: str
    began: datetime
    ended: datetime
    succeeded: bool
    given: frozenset[int]
    made: frozenset[int]
    words: Sequence[str] = ()
    persona: str = ""


@dataclass
class _Count:
    """Count of a node or an edge, with the names of its columns."""

    count: int
    successes: int
    first_seen: datetime
    last_seen: datetime


@dataclass
class GraphLearner:
    """Nodes, edges and the ranker's counts of one database; implements `learning.facts.Learner`.

    Hold `lock` while they change, or while reading `ranker`.
    """

    ranker: Ranker = field(default_factory=Ranker)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _nodes: dict[str, _Count] = field(default_factory=dict)
    _edges: dict[tuple[str, str, str], _Count] = field(default_factory=dict)
    #: Session → its last executions, the newest last.
    _sessions: dict[str, list[_Step]] = field(default_factory=dict)
    #: Table and key of each row that has changed.
    _changed: set[tuple[Table, Any]] = field(default_factory=set)

    def load(self, session: Session) -> None:
        """Forget the data in memory, and read the stored data and the vault's texts."""
        with self.lock:
            self.ranker, self._changed = Ranker(), set()
            self._nodes = {row.name: _Count(*row[1:]) for row in session.execute(select(TOOL_NODES))}
            self._edges = {tuple(row[:3]): _Count(*row[3:]) for row in session.execute(select(TOOL_EDGES))}
            for before, last, tool, count in session.execute(select(TOOL_SEQUENCES)):
                self.ranker.count((before, last), tool, count)
            for word, tool, count in session.execute(select(TOOL_WORDS)):
                (self.ranker.by_word[word] if word else self.ranker.intents)[tool] = count
            stored = stored_state(session)
            self._sessions = {key: [*map(_read, steps)] for key, steps in stored.get("sessions", {}).items()}
            if "ranker" in stored:
                self.ranker.set_state(stored["ranker"])
            self.ranker.describe(documents_of(session))

    def learn(self, traces: Sequence[Learned]) -> None:
        """Learn from traces, in their order."""
        with self.lock:
            for learned in traces:
                self._learn(learned)

    def _learn(self, learned: Learned) -> None:
        trace, tool = learned.trace, _name(learned.tool)
        ended = _end(trace.timestamp, trace.duration_ms)
        self._count(TOOL_NODES, self._nodes, tool, learned.succeeded, trace.timestamp)
        recent: list[_Step] = []
        for task in sorted(trace.task_results, key=lambda call: call.timestamp):
            called, began = _name(node_of(task.tool)), task.timestamp
            # A call that had no answer lasted until the execution's end.
            over = max(ended, began) if task.duration_ms is None else _end(began, task.duration_ms)
            self._edge(tool, called, "contains", task.success, began)
            if called == task.tool:  # what the vault runs has a trace of its own
                self._count(TOOL_NODES, self._nodes, called, task.success, began)
            result_hashes = _hashes(task.result) if task.success else frozenset()
            call = _Call(called, began, over, task.success, _hashes(task.args), result_hashes)
            self._step(recent, call, ("", _INSIDE.format(tool)))
        metadata = trace.metadata
        if learned.process and trace.parent_id is None and metadata.get("origin") not in _NO_STEPS:
            where = trace.capability_id.rsplit(".", 2)[0]
            what = (learned.collected, learned.process, where, learned.persona, metadata.get("origin"))
            key = " ".join(map(str, (*what, metadata.get("runId"))))
            session_steps = self._sessions.pop(key, ())
            steps = [step for step in session_steps if trace.timestamp - step.ended <= _SESSION]
            result_hashes = _hashes(_parsed(metadata.get("result"))) if learned.succeeded else frozenset()
            argument_hashes, intent = _hashes(_parsed(metadata.get("arguments"))), metadata.get("intent")
            words = stems_of(intent) if isinstance(intent, str) else ()
            whose = _name(learned.persona)
            call = _Call(
                tool, trace.timestamp, ended, learned.succeeded, argument_hashes, result_hashes, words, whose
            )
            self._step(steps, call, START)
            self._sessions[key] = steps
            if len(self._sessions) > _SESSIONS_MAX:
                del self._sessions[next(iter(self._sessions))]

    def _step(self, recent: list[_Step], call: _Call, beginning: Context) -> None:
        """Learn from a call: what it came after, what ran beside it and its inputs; then add it to `recent`."""
        tool, began, well = call.tool, call.began, call.succeeded
        over = [step for step in recent if step.ended <= began + _CLOCKS]
        for step in recent:
            if step.ended > began + _CLOCKS and step.began < call.ended:
                self._edge(min(step.tool, tool), max(step.tool, tool), "parallel", well, began)
        previous = max(over, key=lambda step: step.ended, default=None)
        if previous is not None:
            self._edge(previous.tool, tool, "sequence", well, began)
        if call.given:
            for source in {step.tool for step in over if not step.values.isdisjoint(call.given)}:
                self._edge(source, tool, "provides", well, began)
        context = beginning if previous is None else (previous.before, previous.tool)
        habit = habit_of(call.persona, context[1]) if call.persona else None
        counted_words = self.ranker.learn(context, tool, call.words, habit)
        self._changed.update((TOOL_SEQUENCES, (*key, tool)) for key in (context, habit) if key)
        self._changed.update((TOOL_WORDS, (word, tool)) for word in (counted_words and ("", *counted_words)))
        recent.append(_Step(tool, context[1], began, call.ended, call.made))
        del recent[:-_RECENT_MAX]

    def _edge(self, source: str, target: str, kind: str, succeeded: bool, at: datetime) -> None:
        self._count(TOOL_EDGES, self._edges, (source, target, kind), succeeded, at)

    def _count(
        self, table: Table, counts: dict[Any, _Count], key: Any, succeeded: bool, at: datetime
    ) -> None:
        tally = counts.get(key)
        if tally is None:
            tally = counts[key] = _Count(0, 0, at, at)
        tally.count += 1
        tally.successes += succeeded
        tally.first_seen, tally.last_seen = min(tally.first_seen, at), max(tally.last_seen, at)
        self._changed.add((table, key))

    def store(self, session: Session) -> None:
        """Write the changed counts, and the state of each session."""
        with self.lock:
            if not self._changed:
                return
            rows: dict[Table, list[dict[str, Any]]] = {}
            for table, key in self._changed:
                rows.setdefault(table, []).append(self._row(table, key))
            state = {
                "ranker": self.ranker.state(),
                "sessions": {key: [*map(_written, steps)] for key, steps in self._sessions.items()},
            }
            rows[LEARNING] = [{"name": _STATE, "value": json.dumps(state)}]
            dialect = session.get_bind().dialect.name
            for table, values in rows.items():
                session.execute(upsert(dialect, table, [key.name for key in table.primary_key]), values)
            self._changed = set()

    def _row(self, table: Table, key: Any) -> dict[str, Any]:
        """Return the current row of a table."""
        if table is TOOL_NODES:
            return {"name": key, **vars(self._nodes[key])}
        if table is TOOL_EDGES:
            return {
                "source": key[0],
                "target": key[1],
                "kind": key[2],
                **vars(self._edges[key]),
            }
        if table is TOOL_SEQUENCES:
            before, last, tool = key
            count = self.ranker.counts((before, last))[tool]
            return {"before": before, "last": last, "tool": tool, "count": count}
        word, tool = key
        count = (self.ranker.by_word[word] if word else self.ranker.intents)[tool]
        return {"word": word, "tool": tool, "count": count}

    def clear(self, session: Session) -> None:
        """Remove all stored data, before everything is learned again."""
        for table in (TOOL_NODES, TOOL_EDGES, TOOL_SEQUENCES, TOOL_WORDS):
            session.execute(delete(table))
        session.execute(delete(LEARNING).where(LEARNING.c.name == _STATE))


def stored_state(session: Session) -> dict[str, Any]:
    """Return the stored data other than counts: sessions, and the state of the ranker."""
    state = session.scalar(select(LEARNING.c.value).where(LEARNING.c.name == _STATE))
    return {} if state is None else dict(json.loads(state))


def documents_of(session: Session) -> dict[str, str]:
    """Return the text of each tool of the vault: name, description and schema, of all its personas."""
    documents: dict[str, str] = {}
    for name, about, schema in session.execute(
        select(TOOLS.c.tool_name, TOOLS.c.description, TOOLS.c.input_schema).where(
            TOOLS.c.removed_at.is_(None)
        )
    ):
        documents[name] = f"{documents.get(name, '')} {name} {about} {json.dumps(schema)}"
    return documents


def _name(name: str) -> str:
    return name.replace("\0", "")[:_NAME_MAX_CHARS]


def _end(began: datetime, duration_ms: float) -> datetime:
    try:
        return began + timedelta(milliseconds=duration_ms)
    except OverflowError:
        return began


def _written(step: _Step) -> list[Any]:
    """Return a step as JSON data; `_read` reads it."""
    return [step.tool, step.before, step.began.isoformat(), step.ended.isoformat(), sorted(step.values)]


def _read(written: Sequence[Any]) -> _Step:
    tool, before, began, ended, values = written
    return _Step(
        tool, before, datetime.fromisoformat(began), datetime.fromisoformat(ended), frozenset(values)
    )


def _parsed(payload: Any) -> Any:
    """Read a payload that is JSON as a text; a trace of another client has it as data."""
    if not isinstance(payload, str):
        return payload
    try:
        return json.loads(payload)
    except ValueError:
        return payload


def _hashes(value: Any) -> frozenset[int]:
    """Return the hashes of the values in it that hardly occur twice by chance."""
    return frozenset(
        int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=6).digest())
        for text in itertools.islice(_telling(value), _VALUES_MAX)
    )


def _telling(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value, without booleans, small numbers and short or common texts."""
    waiting = [value]
    for _ in range(_LOOKED_AT_MAX):
        if not waiting:
            return
        part = waiting.pop()
        if isinstance(part, str):
            text = part.strip()
            # What the sanitiser hid is equal wherever it hid something.
            if (
                len(text) >= _TEXT_MIN_CHARS
                and text.casefold() not in _COMMON_TEXTS
                and "[REDACTED" not in text
            ):
                yield text
        elif isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, int | float) and (
            abs(part) >= _NUMBER_MIN or (part % 1 and len(repr(part)) > _TEXT_MIN_CHARS)
        ):
            yield repr(part)
