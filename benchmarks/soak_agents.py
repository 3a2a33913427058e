"""Small calls of an agent beside large results, over stdio.

Limits: a small call is answered within a second while sixteen results of 9 MB wait, and after forty cancelled calls.
Memory grows by at most four times the size of the tools' results. Prints one JSON object; ends with 1 beyond a limit.
"""

from __future__ import annotations

import itertools
import json
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from healkit import Healkit

SIZE, MANY, CANCELLED, BOUND_S, BOUND_MEMORY = 9_000_000, 16, 40, 1.0, 4.0
TOOLS = {
    "small": "def small(n: int):\n    return n + 1",
    # Personal data in each line takes the sanitiser longest.
    "report": (
        "def report(size: int, seed: int):\n"
        "    row = ''.join(f'{i},Anna Muster,anna{i}@mail.example,+49 30 1234{i:04d}\\n' for i in range(1000))\n"
        "    return (f'{seed},' + row * (size // len(row) + 1))[:size]"
    ),
}


class Agent:
    """Client of a server in a separate process."""

    def __init__(self, db: Path) -> None:
        words = [sys.executable, "-m", "healkit", "mcp", "--db", str(db)]
        self._server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=db.parent)
        self._numbers = itertools.count()
        self._waiting: dict[int, queue.Queue[Any]] = {}
        threading.Thread(target=self._read, daemon=True).start()
        info = {"name": "soak", "version": "1"}
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        self.ask("initialize", asked)[1].get(timeout=60)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> tuple[int, queue.Queue[Any]]:
        number, answer = next(self._numbers), queue.Queue()
        self._waiting[number] = answer
        self._send({"id": number, "method": method, "params": params})
        return number, answer

    def call(self, tool: str, **arguments: Any) -> tuple[int, queue.Queue[Any]]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def cancel(self, number: int) -> None:
        self._send({"method": "notifications/cancelled", "params": {"requestId": number, "reason": "soak"}})

    def small_s(self) -> float:
        """Return the duration of a small call, in seconds."""
        began = time.monotonic()
        answer = self.call("small", n=1)[1].get(timeout=300)
        assert answer["result"]["structuredContent"]["result"] == 2, answer
        return time.monotonic() - began

    def memory_bytes(self, name: str) -> int:
        lines = Path(f"/proc/{self._server.pid}/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait(60)

    def _send(self, message: dict[str, Any]) -> None:
        self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._server.stdin.flush()

    def _read(self) -> None:
        for line in self._server.stdout:
            message = json.loads(line)
            if message.get("id") in self._waiting and "method" not in message:
                self._waiting.pop(message["id"]).put(message)


def measured(agent: Agent) -> dict[str, Any]:
    """Measure one server; its first calls are not counted."""
    while agent.small_s() > BOUND_S / 4:
        pass
    before, began = agent.memory_bytes("VmRSS"), time.monotonic()
    large = [agent.call("report", size=SIZE, seed=seed)[1] for seed in range(MANY)]
    beside = []
    while any(answer.empty() for answer in large):
        beside.append(agent.small_s())
    took_s = time.monotonic() - began
    grown = agent.memory_bytes("VmHWM") - before
    began = time.monotonic()
    link = large[0].get()["result"]["structuredContent"]["resource"]
    agent.ask("resources/read", {"uri": link})[1].get(timeout=600)
    read_s = time.monotonic() - began
    for seed in range(CANCELLED):
        number, _ = agent.call("report", size=SIZE, seed=seed)
        time.sleep(0.1 * (seed % 3))  # before, during and after its tool's run
        agent.cancel(number)
    return {
        "large": MANY, "large_took_s": round(took_s, 2), "small_calls": len(beside),
        "small_beside_max_s": round(max(beside), 2), "small_beside_median_s": round(statistics.median(beside), 2),
        "small_after_cancelled_s": round(agent.small_s(), 2), "first_part_s": round(read_s, 2),
        "memory_grown_mb": round(grown / 1e6), "memory_times": round(grown / (MANY * SIZE), 2),
    }  # fmt: skip


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "healkit.db"
        with Healkit(db) as healkit:
            for name, code in TOOLS.items():
                healkit.vault.add(name, code)
        agent = Agent(db)
        report = measured(agent)
        agent.close()
    json.dump(report, sys.stdout, indent=2)
    print()
    slowest = max(report["small_beside_max_s"], report["small_after_cancelled_s"])
    return int(slowest > BOUND_S or report["memory_times"] > BOUND_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
