"""Cassette: recorded calls, played back instead of made.

Code that is only tried must repeat no effect, and needs to see what its calls gave. So a trial, a validation and a
replay make no calls: each is answered from the record of the executions that made them.

Used on both sides of the border: a trial is answered in its own process, a replay in a worker by the host.
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
    """Call that an execution made, and its answer: `result` in case of success, else the error that the tool got.

    Arguments and result are as they crossed: JSON, with tags for what JSON lacks (`healkit.core.crossing`). `lost`
    says why the answer is not on record whole; such a call answers nothing.
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
        """Name of what was called, `server.tool`."""
        return f"{self.server}.{self.tool}"

    def answer(self, call_id: int = 0) -> RpcResult:
        """Return the answer that the tool gets."""
        if self.success:
            return RpcResult(call_id, success=True, result=self.result)
        return RpcResult(call_id, success=False, error=RpcError(self.error_code, self.ename, self.message))

    def same_answer(self, other: RecordedCall) -> bool:
        """Return True where both had the same answer."""
        mine = self.success, bytes(self.result), self.error_code, self.ename, self.message
        return mine == (other.success, bytes(other.result), other.error_code, other.ename, other.message)


class Cassette(msgspec.Struct, frozen=True, omit_defaults=True):
    """Calls of some executions; `runs` has the places of each execution's own calls among them, in their order.

    definitions: the tools that code may call while it is played, as its `mcp` object shows them. listed: the servers of
    which those are all; what another server has besides is not known. live: names of those that may be called where
    they are not on record, `server.tool`; what other arguments gave is no answer for them.
    """

    definitions: list[ToolDefinition] = []
    listed: list[str] = []
    calls: list[RecordedCall] = []
    runs: dict[str, list[int]] = {}
    live: list[str] = []


_Name = tuple[str, str]
_Key = tuple[str, str, bytes]


class Tape:
    """Cassette made ready to be played many times."""

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
        #: A call that was answered in two ways in different executions answers no call.
        self._any: dict[_Key, RecordedCall | None] = {}
        for call in cassette.calls:
            key = key_of(call.server, call.tool, call.arguments)
            previous = self._any.setdefault(key, call)
            if previous is not None and not previous.same_answer(call):
                self._any[key] = None

    def answers(self) -> tuple[Any, ...]:
        """Return what the calls gave, as JSON, each once."""
        results = dict.fromkeys(bytes(call.result) for call in self.cassette.calls if call.success)
        return tuple(map(msgspec.json.decode, results))

    def play(self, run: str = "") -> Playback:
        """Begin one playback; run: the execution whose own calls come first, empty where there is none."""
        equal, placed = self._runs.get(run, ({}, {}))
        return Playback(equal, placed, self._any)


class RecordedAnswer(NamedTuple):
    """Recorded call that answers another; displaced: that one has other arguments."""

    call: RecordedCall
    displaced: bool = False


class Playback:
    """Answers the calls of one run of some code.

    A call is answered as one with equal arguments was: of the recorded run itself, each answer in its turn, else of any
    other. After that, as the run's call of the same tool at the same place, which had other arguments; `displaced`
    counts those, because what they say of the code is less. `missing` is the first call that is not on record.
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
        """Return the recorded call whose answer this one gets; None where it is not on record."""
        return self.take(f"{server}.{tool}", self.look_up(server, tool, arguments))

    def look_up(self, server: str, tool: str, arguments: bytes | msgspec.Raw) -> RecordedAnswer | None:
        """Return what is on record for the next call with these arguments; asked once for each call."""
        key, name = key_of(server, tool, arguments), (server, tool)
        turn, place = self._asked[key], self._asked[name]
        self._asked[key] += 1
        self._asked[name] += 1
        equal_calls = self._equal.get(key)
        call = self._others.get(key) if equal_calls is None else _in_turn(equal_calls, turn)
        displaced = False
        if call is None and equal_calls is None and place < len(placed := self._placed.get(name, ())):
            # An error that other arguments had says nothing of these.
            displaced = placed[place].success
            call = placed[place] if displaced else None
        if call is None or call.lost:
            self._lost = "" if call is None else call.lost
            return None
        return RecordedAnswer(call, displaced)

    def take(self, name: str, found: RecordedAnswer | None) -> RecordedCall | None:
        """Count a call that is answered so, or note that it is missing; name: `server.tool`."""
        if found is None:
            self.missing = self.missing or (f"{name}: {self._lost}" if self._lost else name)
            return None
        self.answered += 1
        self.displaced += found.displaced
        return found.call


#: Next step where a call is not on record.
NOT_ON_RECORD_HINT = "Allow the call by name (live=…), or run the tool once with it, so that it is on record."


def not_on_record(missing: str) -> str:
    """Say that a call was not made (`Playback.missing`)."""
    name, _, why = missing.partition(": ")
    return f"the call of mcp.{name} is not on record{f' ({why})' if why else ''}, so it was not made"


#: Next step where tried code would need a grant of the tool's.
NAME_IT_HINT = "Name it (files=…), or accept the code first."
_ACCEPTED_ONLY = "is granted to the tool's accepted code only"
#: What the two functions below say, to be read again.
LACKS = re.compile(rf"(?P<name>'[^\n]*'|\"[^\n]*\") {_ACCEPTED_ONLY}, so .*: name it in (?P<option>\w+)=…")


def not_read(path: str) -> str:
    """Say that a file was not read (`Withheld`)."""
    return f"{path!r} {_ACCEPTED_ONLY}, so it was not read: name it in files=…"


def not_run(what: str, name: str, option: str) -> str:
    """Say that nothing was run: the code needs a grant that has to be named in an option."""
    return f"{what} {name!r} {_ACCEPTED_ONLY}, so nothing was run: name it in {option}=…"


def key_of(server: str, tool: str, arguments: bytes | msgspec.Raw) -> _Key:
    """Return what equal calls share: the order of arguments and spaces does not count."""
    return server, tool, msgspec.json.encode(msgspec.json.decode(arguments), order="deterministic")


def _in_turn(calls: Sequence[RecordedCall], turn: int) -> RecordedCall | None:
    """Return the answer of a call that was made several times; after the last, only if all had the same answer."""
    if turn < len(calls):
        return calls[turn]
    return calls[0] if calls and all(map(calls[0].same_answer, calls)) else None
