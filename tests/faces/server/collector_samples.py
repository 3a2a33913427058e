"""Sample traces, and collectors in their own processes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
from side_by_side import ForkedCommand

from healkit.core.contracts.execution import new_trace_id, utc_now

WAIT_S = 60.0
TOKEN = "a-token-of-the-tests-alone"
CAPABILITY = "local.default.default.fibonacci.0123456789ab"


def now() -> str:
    return utc_now().isoformat().replace("+00:00", "Z")


def trace(**changes: Any) -> dict[str, Any]:
    """Make the trace of an execution in its wire form."""
    values: dict[str, Any] = {
        "id": new_trace_id(), "parentId": None, "capabilityId": CAPABILITY, "success": True, "error": None,
        "durationMs": 12.5, "timestamp": now(), "taskResults": [], "decisions": [],
        "metadata": {"tool": "fibonacci", "arguments": {"n": 10}, "result": 55},
    }  # fmt: skip
    return {**values, **changes}


def task(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Make a call of it."""
    values: dict[str, Any] = {
        "taskId": f"t{number}", "tool": "vault:square", "args": {"x": 2}, "result": 4, "durationMs": 0.5,
        "success": True, "timestamp": now(),
    }  # fmt: skip
    return {**values, **changes}


class Collecting:
    """`healkit collect` in a process of its own, on any free port; with `python`, in a Python of its own too."""

    process: subprocess.Popen[str] | ForkedCommand

    def __init__(self, db: object, *options: str, python: bool = False, **environ: str) -> None:
        env = {**os.environ, "HEALKIT_COLLECT_TOKEN": TOKEN, **environ}
        env = {name: value for name, value in env.items() if value}
        words = ["collect", "--port", "0", "--db", str(db), *options]
        if python:
            command = [sys.executable, "-m", "healkit", *words]
            self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
        else:
            self.process = ForkedCommand(*words, environ=env)
        self.lines: list[str] = []
        self._told: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.client = httpx.Client()
        try:
            self.url = self._wait_for(r"at (http://\S+)/api/traces")
        except BaseException:
            self.end(signal.SIGKILL)
            raise
        self.client.close()
        self.client = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=WAIT_S
        )

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            self._told.put(line)
        self._told.put("")

    def _wait_for(self, pattern: str) -> str:
        while line := self._told.get(timeout=WAIT_S):
            if match := re.search(pattern, line):
                return match[1]
        raise AssertionError("".join(self.lines))

    def post(self, *traces: object) -> httpx.Response:
        """Send these."""
        body = json.dumps(traces).encode()  # in ASCII, which can say what UTF-8 cannot
        return self.client.post("/api/traces", content=body, headers={"Content-Type": "application/json"})

    def stored(self) -> dict[str, dict[str, Any]]:
        """Read all traces page by page, by id."""
        return read_all(self.client)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Stop it with that signal; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        self.client.close()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


def read_all(client: httpx.Client, path: str = "/api/traces", **filters: str) -> dict[str, dict[str, Any]]:
    """Read all traces that meet the filters, by id; assert that no page repeats one."""
    found: dict[str, dict[str, Any]] = {}
    parameters = {"limit": "100", **filters}
    while True:
        answer = client.get(path, params=parameters)
        if answer.status_code == 429:
            time.sleep(float(answer.headers["Retry-After"]))
            continue
        assert answer.status_code == 200, answer.text
        page = answer.json()
        for each in page["traces"]:
            assert each["id"] not in found
            found[each["id"]] = each
        if page["next"] is None:
            return found
        parameters["cursor"] = page["next"]


@contextlib.contextmanager
def collecting(db: object, *options: str, python: bool = False, **environ: str) -> Iterator[Collecting]:
    """Run a collector until the end of the block."""
    server = Collecting(db, *options, python=python, **environ)
    try:
        yield server
    finally:
        server.end()
