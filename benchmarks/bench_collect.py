"""Intake of a collector, in traces per second.

The baseline is plain sqlite3 inserts of the same bytes.

Prints one JSON object. `intake` is one thread without HTTP: reading, cleaning and storing batches of 100 traces, small
ones and ones of about 5 KB. `http` is `healkit collect` with four concurrent clients. `bare` is `executemany` of the
same JSON texts into one table, with a commit for each batch. Values are traces per second; compare the ratios.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from healkit.config import Config
from healkit.core.contracts.execution import new_trace_id, utc_now
from healkit.core.secrets.cleaner import Verbatim
from healkit.core.store.database import Database
from healkit.parts.collect.service import Ingest
from healkit.parts.sanitizer.sanitizer import Sanitizer
from healkit.parts.traces.outbox import CollectedTraces

BATCH, BATCHES, CLIENTS = 100, 20, 4
TOKEN = "a-token-of-the-benchmark"
_TEXT = "The quick brown fox jumps over the lazy dog, again and again. "


def trace(tasks: int, text: str) -> dict[str, Any]:
    now = utc_now().isoformat()
    call = {
        "tool": "vault:square", "args": {"x": 2, "text": text}, "result": text, "durationMs": 0.5,
        "success": True, "timestamp": now,
    }  # fmt: skip
    return {
        "id": new_trace_id(), "parentId": None, "capabilityId": "local.default.default.bench.0123456789ab",
        "success": True, "error": None, "durationMs": 12.5, "timestamp": now,
        "taskResults": [{"taskId": f"t{n + 1}", **call} for n in range(tasks)], "decisions": [],
        "metadata": {"arguments": {"n": 10}, "result": 55},
    }  # fmt: skip


def batches(tasks: int, text: str) -> list[bytes]:
    return [json.dumps([trace(tasks, text) for _ in range(BATCH)]).encode() for _ in range(BATCHES)]


def rate(work: Callable[[], object]) -> int:
    begun = time.perf_counter()
    work()
    return round(BATCH * BATCHES / (time.perf_counter() - begun))


def bare(folder: Path, bodies: list[bytes]) -> int:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE IF NOT EXISTS traces (id TEXT PRIMARY KEY, wire TEXT)")
    rows = [[(one["id"], json.dumps(one)) for one in json.loads(body)] for body in bodies]

    def work() -> None:
        for batch in rows:
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO traces VALUES (?, ?)", batch)
            connection.execute("COMMIT")

    found = rate(work)
    connection.close()
    return found


def intake(folder: Path, bodies: list[bytes], cleaner: Any, name: str) -> int:
    database = Database(folder / f"{name}.db")
    taker = Ingest(CollectedTraces(database), cleaner, Config().payload_max_bytes)
    found = rate(lambda: [taker.store(body) for body in bodies])
    database.close()
    return found


def over_http(folder: Path, bodies: list[bytes]) -> int:
    env = {**os.environ, "HEALKIT_COLLECT_TOKEN": TOKEN, "HEALKIT_COLLECT_RATE_PER_S": "100000"}
    words = [sys.executable, "-m", "healkit", "collect", "--port", "0", "--db", str(folder / "http.db")]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env) as server:
        assert server.stderr is not None
        match = re.search(r"http://(\S+)/api/traces", server.stderr.readline())
        assert match is not None

        def send(part: list[bytes]) -> None:
            connection = http.client.HTTPConnection(match[1])
            for body in part:
                headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
                connection.request("POST", "/api/traces", body, headers)
                assert json.load(connection.getresponse())["stored"] == BATCH
            connection.close()

        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
            parts = [bodies[n::CLIENTS] for n in range(CLIENTS)]
            found = rate(lambda: list(clients.map(send, parts)))
        server.terminate()
        server.wait(30)
    return found


def main() -> None:
    result: dict[str, Any] = {}
    sanitizer = Sanitizer.from_config(Config())
    sanitizer.clean("warm")
    for size, tasks, text in (("small", 0, ""), ("5_kb", 4, _TEXT * 8)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            floor = bare(folder, batches(tasks, text))
            cleaned = intake(folder, batches(tasks, text), sanitizer, "cleaned")
            verbatim = intake(folder, batches(tasks, text), Verbatim(), "verbatim")
            http_rate = over_http(folder, batches(tasks, text))
        result[size] = {
            "bytes_per_trace": len(batches(tasks, text)[0]) // BATCH,
            "bare_per_s": floor,
            "intake_verbatim_per_s": verbatim,
            "intake_per_s": cleaned,
            "http_per_s": http_rate,
            "bare_over_http": round(floor / http_rate, 1),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
