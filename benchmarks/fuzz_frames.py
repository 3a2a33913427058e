"""Random messages of a worker, sent to the host.

No message may make the host raise, and its memory must stay constant.

Frames come from the protocol's own grammar, from a byte mutator over a corpus, and from both. The mutator flips bits,
cuts out, doubles and swaps pieces, and inserts hostile numbers and texts. Each takes the path of a real frame: through
the frame buffer in random pieces and the decoder. Then it reaches the router with a host function, or the conclusion of
an outcome. The same bytes are also read as a trial server's report, as a fork server's, as a retained worker's answer,
and as a kernel's message. Prints one JSON object; ends with status 1 after a wrong exception.

`python benchmarks/fuzz_frames.py [--frames 1000000] [--seed N] [--processes 2]`; the printed seed repeats a run.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import json
import os
import random
import struct
import sys
import time
import traceback
from collections import Counter
from typing import Any

import msgspec
from jupyter_client.session import Session

from healkit.core.contracts import rpc
from healkit.core.contracts.execution import Grants, new_trace_id
from healkit.core.contracts.rpc import Init
from healkit.core.contracts.tools import EntryRef
from healkit.core.runtime.calls import CallContext, CallRouter
from healkit.core.runtime.outcomes import conclude
from healkit.core.runtime.providers import HostFunctions
from healkit.core.wire import claims, framing
from healkit.core.workers import process as processes
from healkit.core.workers.kernel import OutputCollector, _decoded
from healkit.core.workers.worker import Outcome
from healkit.parts.post_mortem import questions
from healkit.parts.trials import trialserver
from healkit.parts.trials.messages import Results, TrialDone
from healkit.parts.trials.trials import observation_of, outcome_of

#: Number of calls that one router answers before the next replaces it, like an execution's budget.
CALLS_A_ROUTER = 500
#: Number of frames between two readings of memory.
BATCH = 10_000
INIT = Init(
    EntryRef("fuzz", "default", 1, ""),
    "def fuzz():\n    pass\n",
    msgspec.Raw(b"{}"),
    [],
    1.0,
    1.0,
    2**28,
    1,
    50_000,
    50_000,
)

#: Values on which a careless decoder fails, as JSON or nearly JSON.
HOSTILE = [
    b"NaN", b"Infinity", b"-0", b"1e400", b"1e999999", b"-1e-999999", b"9" * 25, b"9" * 5000, b"0" * 50, b"1.", b".5",
    b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"',
    b"[" * 90 + b"]" * 90, b"[" * 101 + b"]" * 101, b"[" * 3000, b'{"a":' * 3000, b"]" * 50 + b"[" * 50,
    b"[" + b"[]," * 300 + b"[]]", b'{"a":1,"a":2}', b'{"":{"":{"":[]}}}', b"null", b"true", b"[]", b"{}", b"\x00", b"",
    b'"' + "\U0001f600é中".encode() * 20 + b'"', b'"' + b"\\" * 999 + b'"', b'"' + b'\\"' * 99 + b'"', b"/**/", b"0x10",
    b"-9223372036854775809", b"9223372036854775808", b"18446744073709551616", b"1E+2", b'"2026-01-01"', b"[1,]", b"{,}",
]  # fmt: skip


def value(rng: random.Random, depth: int = 0) -> Any:
    """Return a JSON value of the protocol's grammar."""
    kind = rng.randrange(9 if depth < 4 else 6)
    if kind < 6:
        text = rng.choice('aé中\U0001f600\\"\n\x00') * rng.randrange(40)
        choices = [None, True, rng.randrange(-(2**70), 2**70), rng.gauss(0, 1e9), text, ""]
        return choices[kind]
    if kind < 8:
        return [value(rng, depth + 1) for _ in range(rng.randrange(5))]
    return {rng.choice("abcdefg") * rng.randrange(4): value(rng, depth + 1) for _ in range(rng.randrange(5))}


def failure(rng: random.Random) -> dict[str, Any]:
    """Return a failure as a worker reports it."""
    frame = {
        "filename": "fuzz@1",
        "lineno": rng.randrange(-5, 9),
        "name": "fuzz",
        "line": "pass",
        "in_tool": True,
    }
    return {
        "code": rng.choice(["TOOL_EXCEPTION", "VAULT_TAMPERED", ""]),
        "ename": "E",
        "evalue": "v" * rng.randrange(20),
        "traceback": "t",
        "frames": [frame] * rng.randrange(4),
        "hint": "h",
        "near": ["a"] * rng.randrange(3),
        "known": [],
    }


def bridge_message(rng: random.Random) -> dict[str, Any]:
    """Return a message of a worker on the bridge, by the grammar."""
    kind = rng.randrange(8)
    if kind == 0:
        return {"type": "ready", "pid": rng.randrange(2**33), "layers": {"seccomp": "on"}}
    if kind < 4:
        server = rng.choice(["host", "host", "host", "vault", "nowhere", ""])
        tool = rng.choice(["echo", "echo", "echo", "nothing", "__class__"])
        number = rng.choice([rng.randrange(100), rng.randrange(2**65)])
        return {"type": "rpc_call", "id": number, "server": server, "tool": tool, "args": {"x": value(rng)}}
    if kind == 4:
        said = {"node": "n", "outcome": "o", "condition": rng.choice(["", value(rng)])}
        return {"type": "rpc_call", "id": 1, "server": rpc.DECISIONS_SERVER, "tool": "decision", "args": said}
    if kind == 5:
        return {"type": "execution_complete", "failure": failure(rng), "shown": False}
    complete = {"type": "execution_complete", "value": value(rng), "took_s": rng.random()}
    if kind == 6:
        complete |= {"conversions": ["$: a set"] * rng.randrange(40), "watched": {"lines": [1, 2]}}
    return complete


def other_message(rng: random.Random) -> dict[str, Any]:
    """Return a message of a trial server, a fork server, a retained worker or a kernel, by the grammar."""
    local = {"name": "a", "type": "int", "repr": "1", "shape": [2, rng.randrange(2**65)]}
    frame = {"number": 0, "filename": "f", "lineno": 1, "name": "n", "line": "", "in_tool": True}
    shown = {
        "data": {"text/plain": value(rng)},
        "metadata": value(rng),
        "name": value(rng),
        "text": value(rng),
    }
    done = {
        "status": rng.randrange(-70, 300),
        "ending": rng.choice(["", "timeout"]),
        "claim": "",
        "printed": "eA==",
    }
    choices: list[dict[str, Any]] = [
        {"type": "results", "trials": [done] * rng.randrange(3), "last": rng.random() < 0.1},
        {"type": "results", "letters": [".w-"] * rng.randrange(5), "setup_s": rng.random()},
        {"type": "forked", "id": rng.randrange(9), "pid": rng.randrange(2**31)},
        {"type": "exited", "id": rng.randrange(9), "status": -9},
        {"type": "preloaded", "modules": 200},
        {"type": "locals", "locals": [local] * rng.randrange(4)},
        {"type": "frames", "frames": [frame] * rng.randrange(3)},
        shown,
        {"content": shown},
    ]
    return rng.choice(choices)


def message(rng: random.Random) -> dict[str, Any]:
    """Return a message of the grammar."""
    return bridge_message(rng) if rng.random() < 0.7 else other_message(rng)


def mutated(rng: random.Random, body: bytes, corpus: list[bytes]) -> bytes:
    """Return the bytes with a few changes that a worker could make."""
    data = bytearray(body)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, length = rng.randrange(len(data) + 1), rng.randrange(1, 30)
        kind = rng.choice((0, 1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6, 7))
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = data[at : at + length] * rng.randrange(1, 20)
        elif kind == 3:
            data[at : at + rng.randrange(3)] = rng.choice(HOSTILE)
        elif kind == 4:
            other = rng.choice(corpus)
            start = rng.randrange(len(other) + 1)
            data[at:at] = other[start : start + length]
        elif kind == 5:
            data[at : at + length] = rng.randbytes(length)
        elif kind == 6:  # a value in place of another
            colon = data.find(b":", at)
            end = min(
                (found for mark in b",}]" if (found := data.find(mark, colon + 1)) > 0), default=len(data)
            )
            data[colon + 1 : end] = rng.choice(HOSTILE)
        else:
            data[at : at + 1] = rng.choice([b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":"])
    return bytes(data[:60_000])


class Host:
    """Readers of the host, each with its real objects."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kinds: Counter[str] = Counter()
        self.session = Session(key=b"fuzz")
        self.calls = 0
        self.router = self._router()

    def _router(self) -> CallRouter:
        functions = HostFunctions()
        functions.provide(lambda **given: given, "echo")
        context = CallContext(new_trace_id(), "default", 0, 10.0)
        return CallRouter(context, {"host": functions}, Grants(), lambda _: None, CALLS_A_ROUTER // 2)

    async def take(self, body: bytes) -> None:
        """Read one frame in every way; any exception here is a fault."""
        try:
            said = framing.decode_from_worker(self._framed(body))
        except claims.BadClaim:
            self.kinds["refused"] += 1
        else:
            await self._act(said)
        for decode in (trialserver._decode, processes._decode):
            try:
                other = claims.decode(body, decode)
            except claims.BadClaim:
                continue
            if isinstance(other, Results):
                for done in other.trials:
                    await conclude(outcome_of(done, INIT), INIT)
            self.kinds[type(other).__name__] += 1
        try:
            questions.decode_answer(body)
        except claims.BadClaim:
            pass
        await conclude(outcome_of(TrialDone(claim=body), INIT), INIT)
        self._display(body)

    async def _act(self, said: rpc.FromWorker) -> None:
        self.kinds[type(said).__name__] += 1
        if isinstance(said, rpc.RpcCall):
            result = self.router.handle(said)
            framing.encode_frame(result)
            self.router.ended(said, result, late=False)
            self.kinds["answered" if result.success else "call refused"] += 1
            self.calls += 1
            if self.calls % CALLS_A_ROUTER == 0:
                self.router = self._router()
        elif isinstance(said, rpc.ExecutionComplete):
            found, ended = await conclude(Outcome("complete", said), INIT)
            msgspec.json.encode(found)
            msgspec.json.encode(ended)
            observation_of(said.watched)
            self.kinds["value" if ended is None else ended.code] += 1

    def _framed(self, body: bytes) -> bytes | memoryview:
        """Send it through the frame buffer, in pieces."""
        frames, wire = framing.FrameBuffer(), struct.pack(">I", len(body)) + body
        cuts = sorted(self.rng.randrange(len(wire) + 1) for _ in range(self.rng.randrange(3)))
        for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
            frames.feed(wire[start:end])
        frame = frames.take()
        assert frame is not None
        assert frames.take() is None
        return frame

    def _display(self, body: bytes) -> None:
        """Read it as the content of a kernel's message, and as an invalid message."""
        header = self.session.msg_header("display_data")
        pieces = [json.dumps(header, default=str).encode(), b'{"msg_id":"run"}', b"{}", body]
        self.session.digest_history.clear()
        for parts in ([b"<IDS|MSG>", self.session.sign(pieces), *pieces], [b"<IDS|MSG>", body], [body] * 5):
            collector = OutputCollector(50_000, None)
            try:
                found = _decoded(self.session, parts)
            except claims.BadClaim:
                continue
            for kind in ("stream", "display_data", "clear_output") if found is not None else ():
                collector._take(kind, found["content"])
                self.kinds["displayed"] += 1


def rss_mb() -> float:
    """Return this process's memory, in MB."""
    with open("/proc/self/statm") as file:
        return round(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


async def run(frames: int, seed: int) -> dict[str, Any]:
    """Send that many frames; never raises."""
    rng = random.Random(seed)
    host, corpus, faults, memory = Host(rng), [msgspec.json.encode(message(rng)) for _ in range(500)], [], []
    start_mb = rss_mb()
    began, sent_bytes = time.perf_counter(), 0
    for number in range(frames):
        body = msgspec.json.encode(message(rng)) if rng.random() < 0.3 else rng.choice(corpus)
        if rng.random() < 0.7:
            body = mutated(rng, body, corpus)
        sent_bytes += len(body)
        try:
            await host.take(body)
        except BaseException as error:  # this is what the fuzzer searches for
            faults.append(
                {"frame": repr(body[:300]), "error": "".join(traceback.format_exception(error))[-1500:]}
            )
            if len(faults) > 20:
                break
        if number % BATCH == BATCH - 1:
            memory.append(rss_mb())
            corpus[rng.randrange(len(corpus))] = body[:2000]
    steady = memory[len(memory) // 10] if memory else rss_mb()
    return {
        "seed": seed,
        "frames": number + 1,
        "sent_mb": round(sent_bytes / 1e6),
        "seconds": round(time.perf_counter() - began, 1),
        "rss_mb": {
            "start": start_mb,
            "after a tenth": steady,
            "end": rss_mb(),
            "highest": max(memory, default=rss_mb()),
        },
        "kinds": dict(host.kinds),
        "faults": faults,
    }


def process(frames: int, seed: int) -> dict[str, Any]:
    """Run in a separate process."""
    return asyncio.run(run(frames, seed))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", file=sys.stderr, flush=True)
    each = -(-chosen.frames // chosen.processes)
    with concurrent.futures.ProcessPoolExecutor(chosen.processes) as pool:
        runs = [pool.submit(process, each, chosen.seed + number) for number in range(chosen.processes)]
        parts = [one.result() for one in runs]
    faults = sum(len(part["faults"]) for part in parts)
    report = {
        "seed": chosen.seed,
        "frames": sum(part["frames"] for part in parts),
        "faults": faults,
        "runs": parts,
    }
    json.dump(report, sys.stdout, indent=2)
    print()
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
