"""Cassette: recorded calls, replayed instead of made.

Code on trial must not repeat an effect, yet it needs the answers of its calls. So a trial, a validation and a replay
make no calls: each call gets the recorded answer of an earlier execution.

The module is used on both sides of the border. A trial is answered in its own process; a replay runs in a worker, and
the host answers it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from healkit.core.contracts.rpc import RpcError, RpcResult
from healkit.core.contracts.tools import ToolDefinition


class RecordedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """Call that an execution made, and its answer: `result` on success, else the error that the tool got.

    Arguments and result are encoded as they crossed: JSON, with tags for what JSON lacks (`healkit.core.crossing`).
    `lost` says why the record of the answer is incomplete; such a call cannot answer another.
    """

    server: str
    tool: str
    arguments: msgspec.Raw
    success: bool = False
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: str = ""
    ename: str = ""
    message: str = ""
    trace_id: str = ""
    lost: str = ""

    @property
    def name(self) -> str:
        """Name of the called tool, `server.tool`."""
        return f"{self.server}.{self.tool}"

    def answer(self, call_id: int = 0) -> RpcResult:
        """Return the answer for the tool."""
        if self.success:
            return RpcResult(call_id, success=True, result=self.result)
        return RpcResult(call_id, success=False, error=RpcError(self.error_code, self.ename, self.message))

    def same_answer(self, other: RecordedCall) -> bool:
        """Return True if both calls had the same answer."""
        mine = self.success, bytes(self.result), self.error_code, self.ename, self.message
        return mine == (other.success, bytes(other.result), other.error_code, other.ename, other.message)


class Cassette(msgspec.Struct, frozen=True, omit_defaults=True):
    """Calls of several executions.

    runs: For each execution, the indices of its calls in `calls`, in order.
    definitions: Tools that the code may call during playback; its `mcp` object shows them.
    listed: Servers whose tools `definitions` lists completely. Other tools of other servers are unknown.
    live: Names, as `server.tool`, of tools that may really be called if no recorded call matches. Their calls are never
        answered with a recorded call that has other arguments.
    """

    definitions: list[ToolDefinition] = []
    listed: list[str] = []
    calls: list[RecordedCall] = []
    runs: dict[str, list[int]] = {}
    live: list[str] = []


_Name = tuple[str, str]
_Key = tuple[str, str, bytes]


class Tape:
    """Cassette, prepared to be played many times."""

    def __init__(self, cassette: Cassette) -> None:
        self.cassette = cassette
        self._runs: dict[str, tuple[dict[_Key, list[RecordedCall]], dict[_Name, list[RecordedCall]]]] = {}
        for run, places in cassette.runs.items():
            equal: dict[_Key, list[RecordedCall]] = defaultdict(list)
            placed: dict[_Name, list[RecordedCall]] = defaultdict(list)
            for call in (cassette.calls[place] for place in places):
                equal[key_of(call.server, call.tool, call.arguments)].append(call)
                if call.name not in cassette.live:
                    placed[call.server, call.tool].append(call)
            self._runs[run] = dict(equal), dict(placed)
        #: None for a call that had different answers in different executions: it answers no call.
        self._any: dict[_Key, RecordedCall | None] = {}
        for call in cassette.calls:
            key = key_of(call.server, call.tool, call.arguments)
            previous = self._any.setdefault(key, call)
            if previous is not None and not previous.same_answer(call):
                self._any[key] = None

    def answers(self) -> tuple[Any, ...]:
        """Return the distinct results of the calls, as JSON values."""
        results = dict.fromkeys(bytes(call.result) for call in self.cassette.calls if call.success)
        return tuple(map(msgspec.json.decode, results))

    def play(self, run: str = "") -> Playback:
        """Begin one playback. run: The execution whose own calls are used first; empty if there is none."""
        equal, placed = self._runs.get(run, ({}, {}))
        return Playback(equal, placed, self._any)


class RecordedAnswer(NamedTuple):
    """Recorded call that answers another. displaced: It has other arguments."""

    call: RecordedCall
    displaced: bool = False


class Playback:
    """Answers for the calls of one run of some code.

    A call gets the answer of a recorded call with equal arguments. Calls of the recorded run itself come first, each
    answer in turn, then calls of other executions. Failing that, the call gets the answer at the same position among
    the run's calls of that tool, although its arguments differ. `displaced` counts such answers, because they say less
    about the code. `missing` is the first call without a recorded answer.
    """

    def __init__(
        self, equal: dict[_Key, list[RecordedCall]], placed: dict[_Name, list[RecordedCall]],
        others: dict[_Key, RecordedCall | None],
    ) -> None:  # fmt: skip
        self._equal, self._placed, self._others = equal, placed, others
        self._asked: Counter[object] = Counter()
        self._lost = ""
        self.answered = self.displaced = 0
        self.missing = ""

    def answer(self, server: str, tool: str, arguments: bytes | msgspec.Raw) -> RecordedCall | None:
        """Return the recorded call whose answer this call gets; None if there is no such record."""
        return self.take(f"{server}.{tool}", self.look_up(server, tool, arguments))

    def look_up(self, server: str, tool: str, arguments: bytes | msgspec.Raw) -> RecordedAnswer | None:
        """Return the recorded answer for the next call with these arguments; call it once for each call."""
        key, name = key_of(server, tool, arguments), (server, tool)
        turn, place = self._asked[key], self._asked[name]
        self._asked[key] += 1
        self._asked[name] += 1
        equal_calls = self._equal.get(key)
        call = self._others.get(key) if equal_calls is None else _in_turn(equal_calls, turn)
        displaced = False
        if call is None and equal_calls is None and place < len(placed := self._placed.get(name, ())):
            # An error for other arguments says nothing about these.
            displaced = placed[place].success
            call = placed[place] if displaced else None
        if call is None or call.lost:
            self._lost = "" if call is None else call.lost
            return None
        return RecordedAnswer(call, displaced)

    def take(self, name: str, found: RecordedAnswer | None) -> RecordedCall | None:
        """Count an answered call, or note a missing one; name: `server.tool`."""
        if found is None:
            self.missing = self.missing or (f"{name}: {self._lost}" if self._lost else name)
            return None
        self.answered += 1
        self.displaced += found.displaced
        return found.call


#: Next step if a call has no record.
NOT_ON_RECORD_HINT = "Allow the call by name (live=…), or run the tool once with it, so that it is on record."


def not_on_record(missing: str) -> str:
    """Say that a call was not made; missing: `Playback.missing`."""
    name, _, why = missing.partition(": ")
    return f"the call of mcp.{name} is not on record{f' ({why})' if why else ''}, so it was not made"


#: Next step if code on trial needs a grant of the tool.
NAME_IT_HINT = "Name it (files=…), or accept the code first."
_ACCEPTED_ONLY = "is granted to the tool's accepted code only"
#: Pattern that recognises the messages of the two functions below.
LACKS = re.compile(rf"(?P<name>'[^\n]*'|\"[^\n]*\") {_ACCEPTED_ONLY}, so .*: name it in (?P<option>\w+)=…")


def not_read(path: str) -> str:
    """Say that a withheld file was not read (`Withheld`)."""
    return f"{path!r} {_ACCEPTED_ONLY}, so it was not read: name it in files=…"


def not_run(what: str, name: str, option: str) -> str:
    """Say that nothing was run: the code needs a grant that the user has to name in an option."""
    return f"{what} {name!r} {_ACCEPTED_ONLY}, so nothing was run: name it in {option}=…"


def key_of(server: str, tool: str, arguments: bytes | msgspec.Raw) -> _Key:
    """Return a key that equal calls share: the order of arguments and spaces do not count."""
    return server, tool, msgspec.json.encode(msgspec.json.decode(arguments), order="deterministic")


def _in_turn(calls: Sequence[RecordedCall], turn: int) -> RecordedCall | None:
    """Return the call for this turn; after the last one, a call only if all had the same answer."""
    if turn < len(calls):
        return calls[turn]
    return calls[0] if calls and all(map(calls[0].same_answer, calls)) else None
