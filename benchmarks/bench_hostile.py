"""Cost of hostile frames for the host.

It measures the memory for each, and how long they delay other tools.

Memory: a tool writes one frame of each shape, or six at once, to its end of the bridge. The host's peak comes from the
system (`VmHWM`), and its growth is divided by the frame's bytes. Delay: a tool makes small calls of a host function
while another one sends its largest frames from sixteen threads; the slowest reply counts. Prints one JSON object.
"""

from __future__ import annotations

import ctypes
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from healkit import Healkit

LARGE = 31_000_000
#: Code with which a tool writes frames by itself.
PRELUDE = """
import gc, json, struct, threading, time

def send(*bodies):
    sock = next(o._sock for o in gc.get_objects() if type(o).__name__ == "Endpoint")
    sock.sendall(b"".join(struct.pack(">I", len(body)) + body for body in bodies))

def call(number, args):
    return b'{"type":"rpc_call","id":%d,"server":"host","tool":"take","args":{"x":%s}}' % (number, args)

def complete(value):
    return b'{"type":"execution_complete","value":%s}' % value
"""
#: Shapes of a value, as Python for a worker; `n` is the number of bytes to make.
SHAPES = {
    "empty lists": "b'[' + b'[],' * (n // 3) + b'[]]'",
    "deep nesting": "b'[' * (n // 2) + b']' * (n // 2)",
    "small objects": "b'[' + b'{\"a\":0},' * (n // 8) + b'0]'",
    "many keys": "b'{' + b','.join(b'\"%07x\":0' % i for i in range(n // 12)) + b'}'",
    "many numbers": "b'[' + b'1.5,' * (n // 4) + b'1]'",
    "most elements": "b'[' + b','.join([b'[]' + b' ' * (n // 199_000 - 3)] * 199_000) + b']'",
    "most numbers": "b'[' + b','.join([b'1' * (n // 399_000 - 3) + b'.5'] * 399_000) + b']'",
    "long text": "b'\"' + b'a' * n + b'\"'",
    "escaped text": "b'\"' + b'\\\\n' * (n // 2) + b'\"'",
    "escaped quotes": "b'\"' + b'\\\\\"' * (n // 2) + b'\"'",
    "text with U+4E2D": "b'\"' + '中'.encode() + b'a' * n + b'\"'",
    "text with U+1F600": "b'\"' + '\U0001f600'.encode() + b'a' * n + b'\"'",
}
CALLS_S = 6.0
WELL_BEHAVED = """
import time
def polite(seconds):
    times, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until:
        begun = time.perf_counter()
        mcp.host.answer(a=1)
        times.append((time.perf_counter() - begun) * 1000)
        time.sleep(0.002)
    return sorted(times)
"""
#: A tool that sends calls of 9 MB from sixteen threads, as long as it may.
GREEDY = """
import threading, time
def greedy(shape, seconds):
    data = {
        "text": "a" * 9_000_000,
        "wide text": "\\U0001f600" + "a" * 5_000_000,
        "numbers": [1234567890123456789.5] * 399_000,
        "lists": [[0.5, "abcdefghijklmnopqrstuvwxyz abcdef"]] * 130_000,
    }[shape]
    until = time.time() + seconds
    def send():
        while time.time() < until:
            try:
                mcp.host.take(x=data)
            except Exception:
                return
    threads = [threading.Thread(target=send) for _ in range(16)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def take(x: Any) -> int:
    """Return the size of the argument."""
    return len(x)


def memory_kb(field: str) -> int:
    """Return a field of this process's status, in kB."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{field}:")[1].split()[0])


def growth(hk: Healkit, tool: str, sent: int) -> dict[str, Any]:
    """Run a tool once and return the growth of memory above its level before, divided by the sent bytes."""
    ctypes.CDLL(None).malloc_trim(0)  # else freed memory would be reused, uncounted
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_kb("VmRSS")
    execution = hk.execute(tool, timeout=60)
    grown = (memory_kb("VmHWM") - before) * 1024
    code = execution.failure.code if execution.failure else "SUCCESS"
    return {"mb": round(grown / 1e6, 1), "ratio": round(grown / sent, 2), "ending": code}


def memory(hk: Healkit) -> dict[str, Any]:
    """Return the cost of each shape: as one call's arguments, as six calls at once, and as a result of 10 MB."""
    found: dict[str, Any] = {}
    ways = {
        "one call": (LARGE, "send(call(7, value)); time.sleep(3)"),
        "six calls": (6 * LARGE, "send(*(call(i, value) for i in range(6))); time.sleep(6)"),
        "result": (10_000_000, "send(complete(value)); time.sleep(3)"),
    }
    for shape, source in SHAPES.items():
        for way, (sent, work) in ways.items():
            size = sent // 6 if way == "six calls" else sent
            tool = f"hostile_{len(found)}"
            code = f"{PRELUDE}\ndef {tool}():\n    n = {size - 200}\n    value = {source}\n    {work}\n"
            hk.vault.add(tool, code, grants={"memory_mb": 2048})
            found[f"{shape}, {way}"] = growth(hk, tool, sent)
    return found


def waiting(hk: Healkit) -> dict[str, Any]:
    """Return the slowest and the median reply, in milliseconds, alone and during each kind of large frame."""
    hk.vault.add("polite", WELL_BEHAVED)
    hk.vault.add("greedy", GREEDY, grants={"memory_mb": 4096, "cpu_s": 60})
    found: dict[str, Any] = {}
    for shape in ("nothing", "text", "wide text", "numbers", "lists"):
        other = None
        if shape != "nothing":
            arguments = {"shape": shape, "seconds": CALLS_S + 1}
            other = threading.Thread(target=hk.execute, args=("greedy", "default", arguments))
            other.start()
            time.sleep(1)
        execution = hk.execute("polite", "default", {"seconds": CALLS_S}, timeout=60)
        assert execution.failure is None, execution.failure.traceback
        times = execution.value
        found[shape] = {
            "calls": len(times),
            "p50_ms": round(times[len(times) // 2], 2),
            "slowest_ms": round(times[-1], 1),
        }
        if other is not None:
            other.join()
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Healkit(Path(folder) / "healkit.db") as hk:
        hk.provide(take)
        hk.provide(lambda a: a, "answer")
        hk.vault.add("warm", "def warm():\n    return mcp.host.answer(a=1)\n")
        assert hk.execute("warm").ok
        report = {"memory": memory(hk), "waiting": waiting(hk), "target": {"ratio": 4, "slowest_ms": 250}}
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
