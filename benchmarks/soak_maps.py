"""Maps whose host, workers and scheduler are killed at random.

Is any input lost, or does any have its effect twice?

Prints one JSON object; ends with 1 if something is wrong. Two maps run over many inputs. One uses a tool that only
calculates, on two workers of a Dask cluster. The other uses a tool that appends its number to a writable file, in
workers of this machine. Each is started, killed at a random moment and continued by its id, until it ends. A kill is a
SIGKILL to the host, to a worker or to the scheduler.

An input is lost if it has no end, or if a calculating tool has no result at the end. For the tool that writes, no
number may be in the file twice. An input that was killed in the middle is not run again, and is reported as a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from healkit import Healkit

TOOLS = {
    "square": "import time\ndef square(n: int):\n    time.sleep(0.02)\n    return n * n\n",
    "append": "def append(n: int):\n    with open({path!r}, 'a') as file:\n"
    "        file.write(f'{{n}}\\n')\n    return n\n",
}
#: Longest time between two kills, in seconds: all of them come while a map processes inputs.
WITHIN_S = {"square": 2.0, "append": 6.0}


def host(url: str, tool: str, inputs: int, run_id: str, address: str) -> None:
    """Map, or continue a map; print the map's id at once."""
    from healkit.errors import WorkerError

    told = False

    def tell(progress: Any) -> None:
        nonlocal told
        if not told:
            print(progress.run_id, flush=True)
        told = True

    executor = None
    if address:
        from distributed import Client

        executor = Client(address, timeout=20).get_executor()
    try:
        with Healkit(url) as healkit:
            report = healkit.map(tool, range(inputs), executor=executor, run_id=run_id or None, progress=tell)
            print(json.dumps({"done": report.done, "failed": report.failed}), flush=True)
    except WorkerError as error:  # the scheduler was killed
        print(f"ended: {error.message[:200]}", file=sys.stderr)
        os._exit(3)


class Cluster:
    """Dask scheduler and two workers, each a process that can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def restore(self) -> str:
        """Start what is missing; return the scheduler's address."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            for worker in self.workers:
                worker.kill()
            self.file.unlink(missing_ok=True)
            words = ["distributed.cli.dask_scheduler", "--port", "0", "--dashboard-address", ":0"]
            self.scheduler = self._start(*words, "--scheduler-file", str(self.file))
            while not self.file.exists() or not self.file.read_text().strip():
                time.sleep(0.05)
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < 2:
            words = [
                "distributed.cli.dask_worker",
                "--nthreads",
                "1",
                "--no-nanny",
                "--dashboard-address",
                ":0",
            ]
            self.workers.append(self._start(*words, "--scheduler-file", str(self.file)))
        return str(json.loads(self.file.read_text())["address"])

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", *words], env=self.environment, cwd=self.folder, stderr=subprocess.DEVNULL
        )

    def close(self) -> None:
        for process in (self.scheduler, *self.workers):
            if process is not None:
                process.kill()
                process.wait()


def soak(
    url: str, tool: str, inputs: int, kills: int, chance: random.Random, cluster: Cluster | None
) -> Counter[str]:
    """Map until it ends; return the kills."""
    run_id, killed = "", Counter[str]()
    while True:
        address = cluster.restore() if cluster is not None else ""
        command = [sys.executable, __file__, "--host", url, tool, str(inputs), run_id, address]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        run_id = first if first.startswith("map-") else run_id
        while first and sum(killed.values()) < kills:
            try:
                process.wait(chance.uniform(0, WITHIN_S[tool]))
                break
            except subprocess.TimeoutExpired:
                killed[kill_one(process, cluster, chance)] += 1
        rest = process.stdout.read()
        if process.wait() == 0 and rest.strip():
            return killed


def kill_one(process: subprocess.Popen[str], cluster: Cluster | None, chance: random.Random) -> str:
    """Kill the host, a worker or the scheduler; return which."""
    victim = chance.choice(["host", "worker", *(["scheduler"] if cluster is not None else [])])
    if victim == "host":
        process.kill()
        process.wait()
    elif cluster is None:
        kill_a_worker(process.pid, chance)
    elif victim == "worker":
        chance.choice(cluster.workers).kill()
        cluster.restore()
    elif cluster.scheduler is not None:
        cluster.scheduler.kill()
    return victim


def kill_a_worker(pid: int, chance: random.Random) -> None:
    """Kill one of the processes below a host."""
    try:
        below = psutil.Process(pid).children(recursive=True)
        if below:
            os.kill(chance.choice(below).pid, signal.SIGKILL)
    except (psutil.NoSuchProcess, ProcessLookupError):
        pass


def main() -> int:
    """Run both maps."""
    if sys.argv[1:2] == ["--host"]:
        url, tool, inputs, run_id, address = sys.argv[2:]
        host(url, tool, int(inputs), run_id, address)
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", default="")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    report: dict[str, Any] = {"seed": options.seed, "inputs": options.inputs}
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url, notes = options.database or f"sqlite:///{folder}/healkit.db", folder / "notes.txt"
        notes.touch()
        with Healkit(url) as healkit:
            healkit.vault.add("square", TOOLS["square"])
            code = TOOLS["append"].format(path=str(notes))
            healkit.vault.add("append", code, grants={"write": [str(notes)]}, side_effects=True)
        cluster = Cluster(folder)
        try:
            report["square"] = {"killed": soak(url, "square", options.inputs, options.kills, chance, cluster)}
        finally:
            cluster.close()
        report["append"] = {"killed": soak(url, "append", options.inputs, options.kills, chance, None)}
        with Healkit(url) as healkit:
            for tool in ("square", "append"):
                newest: dict[int, str] = {}
                page = healkit.log.query(tool=tool, limit=10**6)  # newest first
                for row in reversed(page.rows):
                    newest[row.arguments["n"]] = (
                        row.status if row.status != "FAILURE" else str(row.error_code)
                    )
                ends = Counter(newest.values())
                lost = options.inputs - len(newest) + ends["RUNNING"]
                lost += options.inputs - ends["SUCCESS"] if tool == "square" and not lost else 0
                report[tool] |= {"ends": ends, "rows": len(page.rows), "lost": lost}
                wrong += lost
        written = Counter(notes.read_text().split())
        twice = {number: times for number, times in written.items() if times > 1}
        report["append"] |= {"written": len(written), "twice": len(twice)}
        wrong += len(twice)
    print(json.dumps(report))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
