"""Stand-alone page and side panel over a long log.

Prints one JSON object. It measures how long a real Jupyter server takes to answer each list's first page over HTTP, in
ms. The log has 1,000,000 executions (or the given number), 2,000 tools, 2,000 runs and 10,000 audit entries. The first
answer of a server imports healkit and opens the database; it is reported separately. The target is 200 ms for a first
page.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from log_samples import long_log

from healkit import Healkit
from healkit.parts.runs.audit_records import AuditStep

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
from jupyter_server_process import Jupyter  # noqa: E402 - a server as in the tests

ROWS, TOOLS, RUNS, ENTRIES = 1_000_000, 2_000, 2_000, 10_000
ROUNDS, TARGET_MS = 15, 200.0
FIRST_PAGES = {
    "failures": ("groups", {"filters": {}}),
    "executions": ("page", {"filters": {}}),
    "executions that failed": ("page", {"filters": {"status": "FAILURE"}}),
    "executions with a word": ("page", {"filters": {"text": "needle"}}),
    "tools": ("tools", {}),
    "runs": ("runs", {}),
    "decisions": ("decisions", {}),
    "requests": ("requests", {}),
    "news": ("news", {}),
    "status": ("status", {}),
}


def fill(folder: Path, rows: int) -> None:
    """Make the database, and copies of one real run."""
    database = folder / "healkit.db"
    long_log(database, rows)
    with Healkit(database) as hk:
        for number in range(TOOLS):
            hk.vault.add(f"tool_{number:04d}", f"def tool_{number:04d}(n: int):\n    return n + {number}\n")
        with hk.run("bench") as run:
            hk.execute("tool_0000", arguments={"n": 1})
        for start in range(0, ENTRIES, 1_000):
            ids = (f"decision-{number // 100}" for number in range(start, start + 1_000))
            hk.audit.extend([AuditStep(each, "decide", "gather_info") for each in ids])
    for number in range(1, RUNS):
        shutil.copytree(run.folder, run.folder.with_name(f"copy-{number:05d}"))


def timed(server: Jupyter, op: str, arguments: dict[str, object]) -> tuple[float, int]:
    """Return the time of an answer in ms, and its size in bytes."""
    begun = time.perf_counter()
    answer = server.client.post("/healkit/api/panels", json={"op": op, "args": arguments})
    took = (time.perf_counter() - begun) * 1e3
    answer.raise_for_status()
    return took, len(answer.content)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as name:
        fill(Path(name), rows)
        server = Jupyter(Path(name))
        try:
            first_ms, _ = timed(server, *FIRST_PAGES["failures"])
            found = {}
            for what, question in FIRST_PAGES.items():
                answers = [timed(server, *question) for _ in range(ROUNDS)]
                times = sorted(took for took, _ in answers)
                found[what] = {
                    "p50_ms": round(statistics.median(times), 1),
                    "max_ms": round(times[-1], 1),
                    "bytes": answers[0][1],
                    "ok": statistics.median(times) <= TARGET_MS,
                }
        finally:
            server.stop()
    print(
        json.dumps(
            {"rows": rows, "first answer of the server, ms": round(first_ms), "lists": found}, indent=1
        )
    )


if __name__ == "__main__":
    main()
