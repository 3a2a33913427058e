"""Decoder of what workers send, and its limits."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import python
from waiting import wait_until

from healkit.config import Config
from healkit.core.contracts import rpc
from healkit.core.contracts.rpc import NOTE_MAX_CHARS, NOTES_MAX
from healkit.core.runtime import calls
from healkit.core.wire import claims, framing
from healkit.core.wire.claims import BadClaim
from healkit.core.workers import bridge as bridges
from healkit.core.workers.bridge import Bridge
from healkit.core.workers.process import ForkServer, Process
from healkit.core.workers.sandbox import RunFolder

value_of = msgspec.json.Decoder().decode

#: Texts that look like structure, to be repeated beyond the pieces that are counted together.
TRICKY = st.text(alphabet='\\"[]{},:é\U0001f600a', min_size=1, max_size=9)


@settings(max_examples=30)
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
        claims.check_claim(b"[" + text + b",[]" * (claims.MAX_ELEMENTS // 2) + b"]")
    with pytest.raises(BadClaim, match="levels"):
        claims.check_claim(b"[" + text + b"," + b"[" * claims.MAX_DEPTH + b"]" * claims.MAX_DEPTH + b"]")


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
        (b'"\xff\xfe"', "(?i)utf-8"),  # msgspec 0.23 words it anew
        (b'"\\ud800 "', "DecodeError"),
        (b"", "truncated"),
        (b"[1,]", "malformed"),
    ],
    ids=lambda part: part[:12].decode(errors="replace") if isinstance(part, bytes) else "",
)
def test_a_claim_over_a_limit_or_not_in_json_is_refused(data: bytes, said: str) -> None:
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


@pytest.mark.requirement("SAFE-2")
def test_whatever_comes_is_a_message_or_a_bad_claim() -> None:
    """A few of the million random frames of `make fuzz`; another seed each time, which the failure names."""
    fuzz = Path(__file__).parents[3] / "benchmarks" / "fuzz_frames.py"
    done = python(
        f"import runpy; runpy.run_path({str(fuzz)!r}, run_name='__main__')",
        "--frames",
        1000,
        "--processes",
        1,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"refused", "RpcCall", "ExecutionComplete", "Results"} <= {
        *json.loads(done.stdout)["runs"][0]["kinds"]
    }


class Waiting:
    """Handler that answers no call before `go` is set."""

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
    return framing.encode_frame(
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
        reader = framing.FrameReader(small)
        for number in range(20):
            small.sendall(call(number))
            answer = reader.read()
            assert answer is not None
            assert framing.decode_from_host(answer) == rpc.RpcResult(number, success=True)
        assert greedy.calls == []
    greedy.go.set()
    wait_until(lambda: greedy.calls)


@pytest.mark.requirement("SAFE-2")
def test_calls_that_time_out_are_answered_without_waiting_for_a_worker_that_does_not_read() -> None:
    """S2: the event loop waited in `expire` for a worker that did not read its answers, and the host hung for ever."""
    ours, theirs = socket.socketpair()
    bridge = Bridge(ours, lambda _: None, lambda _: None, rpc_timeout_s=0.0, max_in_flight=16)
    handler = Waiting()
    bridge.serve(handler)
    answer = rpc.RpcResult(0, success=True, result=framing.raw("x" * 2_000_000))
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


@pytest.mark.requirement("SAFE-2")
def test_the_page_on_isolation_names_the_limits() -> None:
    page = (Path(__file__).parents[3] / "docs" / "isolation.md").read_text()
    section = page[page.index("## Limits of messages") : page.index("## Trials")]
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
