"""Decoder of what workers send, and its limits.

Nothing but `BadClaim` comes out of it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import wait_until

from healkit.config import Config
from healkit.contracts import claims, post_mortem, rpc
from healkit.contracts.claims import BadClaim
from healkit.contracts.encoding import NOTE_MAX_CHARS, NOTES_MAX, to_jsonable
from healkit.runtime import calls
from healkit.workers import bridge as bridges
from healkit.workers.bridge import Bridge
from healkit.workers.process import ForkServer, Process
from healkit.workers.sandbox import RunFolder

value_of = msgspec.json.Decoder().decode

#: Texts that look like structure, to be repeated beyond the pieces that are counted together.
TRICKY = st.text(alphabet='\\"[]{},:é\U0001f600a', min_size=1, max_size=9)


@given(st.lists(st.tuples(TRICKY, st.integers(1, 20_000)), min_size=1, max_size=6))
def test_no_text_is_taken_for_structure_wherever_its_pieces_end(parts: list[tuple[str, int]]) -> None:
    texts = [unit * times for unit, times in parts]
    encoded = msgspec.json.encode({"texts": texts, "keys": {text[:100]: 1 for text in texts}})
    assert claims.decode(encoded, value_of)["texts"] == texts


@settings(max_examples=20)
@given(TRICKY, st.integers(0, 200_000))
def test_structure_behind_any_text_is_counted(unit: str, times: int) -> None:
    text = msgspec.json.encode(unit * times)
    with pytest.raises(BadClaim, match="elements"):
        claims.check(b"[" + text + b",[]" * (claims.MAX_ELEMENTS // 2) + b"]")
    with pytest.raises(BadClaim, match="levels"):
        claims.check(b"[" + text + b"," + b"[" * claims.MAX_DEPTH + b"]" * claims.MAX_DEPTH + b"]")


@pytest.mark.requirement("SAFE-2")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[" + b"[]," * 10_000_000 + b"[]]", "more than 400,000 elements"),
        (b'{"x":' * 101 + b"1" + b"}" * 101, "more than 100 levels"),
        (b"[" * 100_000 + b"]" * 100_000, "more than 100 levels"),
        (b"[" + b'"ab",' * 400_000 + b"1]", "more than 400,000 elements"),
        (b'"' + "\U0001f600".encode() + b"a" * claims.MAX_WIDE_BYTES + b'"', "U\\+FFFF"),
        (b'"' + b"a" * claims.MAX_WIDE_BYTES + b'\\ud83d\\ude00"', "U\\+FFFF"),
        (b'"' + b"a" * (claims.MAX_WIDE_BYTES | 0xFFFF - 2) + b'\\uD83D\\uDE00"', "U\\+FFFF"),
        (b"1" * 5000, "out of range"),
        (b"1e999999", "out of range"),
        (b"NaN", "malformed"),
        (b'"\xff\xfe"', "utf-8"),
        (b'"\\ud800 "', "DecodeError"),
        (b"", "truncated"),
        (b"[1,]", "malformed"),
    ],
    ids=lambda part: part[:12].decode(errors="replace") if isinstance(part, bytes) else "",
)
def test_what_breaks_a_limit_or_is_no_json_is_refused(data: bytes, said: str) -> None:
    """S2: 31 MB of empty lists became 0.9 GB, because nothing was counted before the objects were made."""
    with pytest.raises(BadClaim, match=said):
        claims.decode(data, value_of)


def test_up_to_the_limits_everything_is_decoded() -> None:
    elements = b"[" + b",".join([b"1"] * claims.MAX_ELEMENTS) + b"]"
    assert len(claims.decode(elements, value_of)) == claims.MAX_ELEMENTS
    levels = b"[" * claims.MAX_DEPTH + b"]" * claims.MAX_DEPTH
    assert claims.decode(levels, value_of) is not None
    assert claims.decode(b'{"a":1,"a":2}', value_of) == {"a": 2}
    assert claims.decode(b"9" * 4000, value_of) == int("9" * 4000)
    with pytest.raises(BadClaim, match="6 bytes; 5 are allowed"):
        claims.decode(b"[1234]", value_of, max_bytes=5)


#: What a field may hold besides what it should: JSON that some decoder falls over, and bytes that are none.
HOSTILE = st.sampled_from(
    [
        b"NaN", b"-Infinity", b"1e400", b"1e999999", b"-0", b"9" * 25, b"9" * 5000, b"-1", b"1.5", b"null", b"true", b"[]", b"{}",
        b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"', b"", b"[1,]", b"\x00", b'"x":1',
        b"[" * 90 + b"]" * 90, b"[" * 101 + b"]" * 101, b"[" * 3000, b'{"a":' * 3000, b'{"a":1,"a":2}', b'"' + b"x" * 3000 + b'"',
    ]
)  # fmt: skip
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
).map(msgspec.json.encode)
TEXT = st.text(max_size=12).map(msgspec.json.encode)
NUMBER = st.integers(-(2**65), 2**65).map(msgspec.json.encode)
FRAME = {"filename": TEXT, "lineno": NUMBER, "name": TEXT, "line": TEXT, "in_tool": JSON}


def record(**fields: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Objects with these fields, any of them hostile at times, missing, or there twice."""

    def encoded(drawn: dict[str, list[bytes]]) -> bytes:
        members = [b'"%s":%s' % (name.encode(), body) for name, bodies in drawn.items() for body in bodies]
        return b"{" + b",".join(members) + b"}"

    usual = {name: st.lists(field | HOSTILE, min_size=1, max_size=1) for name, field in fields.items()}
    odd = {name: st.lists(field | HOSTILE, max_size=2) for name, field in fields.items()}
    exact = {name: st.lists(field, min_size=1, max_size=1) for name, field in fields.items()}
    return (st.fixed_dictionaries(usual) | st.fixed_dictionaries(odd) | st.fixed_dictionaries(exact)).map(
        encoded
    )


def tag(name: str) -> st.SearchStrategy[bytes]:
    return st.just(msgspec.json.encode(name))


def several(item: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.lists(item, max_size=3).map(lambda items: b"[" + b",".join(items) + b"]")


FAILURE = record(
    code=TEXT, ename=TEXT, evalue=TEXT, traceback=TEXT, frames=several(record(**FRAME)), hint=TEXT, near=several(TEXT)
)  # fmt: skip
MESSAGES = (
    record(type=tag("ready"), pid=NUMBER, layers=record(seccomp=TEXT))
    | record(type=tag("rpc_call"), id=NUMBER, server=TEXT, tool=TEXT, args=record(x=JSON))
    | record(
        type=tag("execution_complete"), value=JSON, failure=FAILURE, conversions=several(TEXT), shown=JSON, took_s=NUMBER
    )
    | record(type=tag("locals"), locals=several(record(name=TEXT, type=TEXT, repr=TEXT, shape=several(NUMBER))))
    | st.binary(max_size=200)
)  # fmt: skip


@pytest.mark.requirement("SAFE-2")
@given(MESSAGES)
def test_whatever_comes_is_a_message_or_a_bad_claim(body: bytes) -> None:
    for decode in (rpc.decode_from_worker, post_mortem.decode_answer):
        try:
            message: Any = decode(body)
        except BadClaim:
            continue
        for name in ("args", "value", "watched"):
            with_raw = getattr(message, name, None)
            if with_raw is not None:
                try:
                    msgspec.json.encode(claims.decode_checked(with_raw, value_of))
                except BadClaim:
                    pass
        msgspec.json.encode(message)


class Waiting:
    """Handler that answers no call until it is told to."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.go = threading.Event()

    def handle(self, call: rpc.RpcCall) -> rpc.RpcResult:
        self.calls.append(len(call.args))
        assert self.go.wait(60)
        return rpc.RpcResult(call.id, success=True)

    def ended(self, call: rpc.RpcCall, result: rpc.RpcResult, *, late: bool) -> None:
        pass

    def timed_out(self, call: rpc.RpcCall, error: rpc.RpcError) -> None:
        pass


@pytest.fixture
def served() -> Iterator[Callable[[bridges.CallHandler], socket.socket]]:
    """Make a bridge with this handler, and return the worker's end of it."""
    opened: list[tuple[Bridge, socket.socket]] = []

    def serve(handler: bridges.CallHandler) -> socket.socket:
        ours, theirs = socket.socketpair()
        bridge = Bridge(ours, lambda _: None, lambda _: None, rpc_timeout_s=60, max_in_flight=16)
        bridge.serve(handler)
        opened.append((bridge, theirs))
        return theirs

    yield serve
    for bridge, theirs in opened:
        bridge.close()
        theirs.close()


def call(number: int, size_bytes: int = 10) -> bytes:
    return rpc.encode_frame(
        rpc.RpcCall(number, "host", "f", msgspec.Raw(b'{"x":"%s"}' % (b"a" * size_bytes)))
    )


@pytest.mark.requirement("SAFE-2")
def test_a_worker_has_a_limited_number_of_bytes_under_way(served: Callable[..., socket.socket]) -> None:
    """S2: sixteen calls of 31 MB were all read and kept at once."""
    handler = Waiting()
    theirs = served(handler)
    sender = threading.Thread(
        target=lambda: [theirs.sendall(call(n, 9_000_000)) for n in range(6)], daemon=True
    )
    sender.start()
    wait_until(lambda: len(handler.calls) == 3)  # 27 of 32 MiB: the fourth waits
    sender.join(0.3)
    assert sender.is_alive()
    assert len(handler.calls) == 3
    handler.go.set()
    wait_until(lambda: len(handler.calls) == 6)
    sender.join(60)


@pytest.mark.requirement("SAFE-2")
def test_small_calls_are_answered_while_large_messages_wait_for_their_turn(
    served: Callable[..., socket.socket],
) -> None:
    """S2: one tool's large frames delayed another tool's calls from 6 ms to 6 s."""
    greedy, polite = Waiting(), Waiting()
    polite.go.set()
    large, small = served(greedy), served(polite)
    with claims._turn:  # as if a large message of a third worker were being decoded
        threading.Thread(target=large.sendall, args=(call(1, 9_000_000),), daemon=True).start()
        reader = rpc.FrameReader(small)
        for number in range(20):
            small.sendall(call(number))
            answer = reader.read()
            assert answer is not None
            assert rpc.decode_from_host(answer) == rpc.RpcResult(number, success=True)
        assert greedy.calls == []
    greedy.go.set()
    wait_until(lambda: greedy.calls)


@pytest.mark.requirement("SAFE-2")
def test_calls_that_time_out_are_answered_without_waiting_for_a_worker_that_does_not_read() -> None:
    """S2: the event loop waited in `expire` for a worker that read none of its answers, and the host hung for ever."""
    ours, theirs = socket.socketpair()
    bridge = Bridge(ours, lambda _: None, lambda _: None, rpc_timeout_s=0.0, max_in_flight=16)
    handler = Waiting()
    bridge.serve(handler)
    answer = rpc.RpcResult(0, success=True, result=rpc.raw("x" * 2_000_000))
    threading.Thread(target=bridge.send, args=(answer,), daemon=True).start()  # fills the socket, and waits
    theirs.sendall(call(1))
    wait_until(lambda: handler.calls)
    loop = threading.Thread(target=bridge.expire, daemon=True)
    loop.start()
    loop.join(30)
    assert not loop.is_alive()
    handler.go.set()
    bridge.close()
    theirs.close()


@pytest.mark.requirement("SAFE-2")
@pytest.mark.parametrize(
    "said", [b"{", b'{"type":"forked","id":7,"pid":1}', b'{"type":"exited","id":7,"status":0}']
)
def test_a_fork_server_that_says_what_cannot_be_is_ended(said: bytes, tmp_path: Path) -> None:
    """S2: such a message raised in a callback of the event loop, and whoever waited for a worker waited for ever."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)

    async def hear() -> int:
        with subprocess.Popen(["sleep", "10"]) as sleeper, theirs:  # noqa: ASYNC220 - as long as it takes to fork
            process = Process(sleeper.pid, os.pidfd_open(sleeper.pid), may_fork=False)
            server = ForkServer(process, ours, RunFolder(tmp_path / "run"), "process")
            theirs.send(said)
            server._receive()
            status = sleeper.wait(30)
            process.ended(status)
            await server.close()
            return status

    assert asyncio.run(hear()) == -9


def test_a_frame_in_pieces_arrives_whole_with_what_follows_it() -> None:
    wire = call(1, 200_000) + call(2) + call(3, 70_000)
    for step in (1 << 16, 12_345, len(wire)):
        frames, found = rpc.FrameBuffer(), []
        for start in range(0, len(wire), step):
            frames.feed(wire[start : start + step])
            while (frame := frames.take()) is not None:
                found.append(rpc.decode_from_worker(frame))
        assert [(message.id, len(message.args)) for message in found] == [(1, 200_008), (2, 18), (3, 70_008)]


def test_paths_of_conversions_stay_short_whatever_the_keys_are() -> None:
    nested: Any = {1, 2}
    for _, key in zip(range(30), itertools.cycle(["k" * 5000, "l"]), strict=False):
        nested = {key: nested}
    _, notes = to_jsonable(nested)
    assert [len(note) <= NOTE_MAX_CHARS for note in notes] == [True]
    assert notes[0].endswith("set shown as a list")


@pytest.mark.requirement("SAFE-2")
def test_the_page_on_isolation_names_the_limits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "isolation.md").read_text()
    section = page[page.index("## What a worker may send") : page.index("## How it is put together")]
    mib = {
        rpc.MAX_FRAME_BYTES: 32,
        claims.MAX_WIDE_BYTES: 5,
        bridges._IN_FLIGHT_MAX_BYTES: 32,
        Config().result_max_bytes: 10,
    }
    assert {size: size // 2**20 for size in mib} == mib
    rows = [
        f"items, keys and empty containers | {claims.MAX_ELEMENTS:,} |",
        f"levels of nesting | {claims.MAX_DEPTH} |",
        f"names of servers and tools | {rpc.NAME_MAX_CHARS} characters |",
        f"{NOTES_MAX} notes of {NOTE_MAX_CHARS:,} characters",
        f"{calls._TEXTS_MAX_CHARS:,} characters at full length, then {calls._SHORT_MAX_CHARS} of each",
        "what belongs to it | 32 MiB |",
        "`HEALKIT_RESULT_MAX_BYTES`, 10 MiB |",
        "bytes a character | 5 MiB |",
        "under way together | 32 MiB, or one call |",
    ]
    assert [row for row in rows if row not in section] == []
