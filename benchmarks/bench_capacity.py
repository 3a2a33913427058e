"""Capacity of one database and n hosts.

    python benchmarks/bench_capacity.py [--seconds 10] [--hosts 1 2 4] [--databases sqlite postgresql]

1. **Costs** of one host on its own database: processor time and bytes of an execution, a row, a trace, a view, a
   heartbeat. Other waits of the host are fitted, so that the simulated host is as fast as the real one. The slowdown of
   an execution that shares its core is measured with hosts on separate databases.
2. **Measurement**: as many processes as `--hosts` says execute a trivial tool in a loop on one database.
3. **Simulation** of the same with SimPy, only from the samples of the first step. The resources are the cores, which
   all processes share in turns of a millisecond; each host's interpreter, which runs one thread at a time; and SQLite's
   single writer. Each execution needs the host's own work, two commits and the worker's work. In parallel, the next
   worker is forked and the used one removed.

The load of other programs is measured during each run (runnable threads, weighted by niceness) and is part of the
simulation. Prints one JSON object; docs/capacity.md shows its `table`.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import psutil
import simpy

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

CODE = "def trivial(n):\n    return n + 1\n"
#: Duration of a turn on a core, and interval of the checks of other programs' load, in seconds.
QUANTUM_S, LOOK_S = 0.001, 0.05
PACED, PAUSE_S = 60, 0.15
#: Parent of the kernel's own threads; what these do, they do for the input and output of processes.
_KTHREADD = 2
_TICKS = os.sysconf("SC_CLK_TCK")


# One host.


class Watch:
    """Durations of watched functions, by name: (wall, processor) seconds of each call."""

    def __init__(self) -> None:
        self.times: dict[str, list[tuple[float, float]]] = {}

    def over(self, owner: Any, name: str, label: str) -> None:
        """Measure each call of a method."""
        method, found = getattr(owner, name), self.times.setdefault(label, [])

        @functools.wraps(method)
        def timed(*args: Any, **named: Any) -> Any:
            began, cpu = time.perf_counter(), time.thread_time()
            try:
                return method(*args, **named)
            finally:
                found.append((time.perf_counter() - began, time.thread_time() - cpu))

        setattr(owner, name, timed)


def tree_cpu_s(pid: int) -> float:
    """Return the processor time of a process and all below it, including ended and reaped ones, in seconds."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, stat[11:15])) / _TICKS
    return total


def newest_leaf_cpu_s() -> float | None:
    """Return the processor time of the spare worker in seconds, to the nanosecond; None if there is not exactly one."""
    leaves = [one for one in psutil.Process().children(recursive=True) if not one.children()]
    try:
        newest = max(leaves, key=lambda one: one.create_time())
        tasks = Path(f"/proc/{newest.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except (ValueError, OSError, psutil.NoSuchProcess):
        return None


def host(url: str, seconds: float, paced: bool) -> None:
    """Execute a trivial tool on a database until the time is over, and print the costs. Waits for a line first."""
    from healkit import Healkit
    from healkit.core.store.log_writer import LogWriter
    from healkit.parts.traces.trace_collector import TraceCollector

    watch = Watch()
    watch.over(LogWriter, "begin_in_order", "begin")
    watch.over(LogWriter, "finish", "finish")
    watch.over(TraceCollector, "conclude", "trace")
    with Healkit(url) as healkit:
        healkit.learning_thread.close()
        for n in range(8):
            assert healkit.execute("trivial", arguments={"n": n}).ok
        print("ready", flush=True)
        sys.stdin.readline()
        for times in watch.times.values():
            times.clear()
        walls, own, spares = [], [], []
        began, cpu, tree = time.perf_counter(), time.process_time(), tree_cpu_s(os.getpid())
        while (len(walls) < PACED) if paced else (time.perf_counter() - began < seconds):
            if paced:
                time.sleep(PAUSE_S)
                spares.append(newest_leaf_cpu_s())
            started, used = time.perf_counter(), time.process_time()
            assert healkit.execute("trivial", arguments={"n": len(walls)}).ok
            walls.append(time.perf_counter() - started)
            own.append(time.process_time() - used)
        took = time.perf_counter() - began
        if paced:
            time.sleep(PAUSE_S)
        print(
            json.dumps(
                {
                    "executions": len(walls),
                    "took_s": took,
                    "walls": walls,
                    "host_s": own,
                    "host_total_s": time.process_time() - cpu,
                    "tree_total_s": tree_cpu_s(os.getpid()) - tree,
                    "spares": [one for one in spares if one],
                    "times": watch.times,
                }
            ),
            flush=True,
        )


# Other load on the machine.


class Others:
    """Load of other programs in the block: the weight of their runnable threads, 1 for one of normal niceness.

    ours: the processes that do not count, with all that descend from them.
    """

    def __init__(self, ours: set[int]) -> None:
        self._ours, self._over = ours, threading.Event()
        self.weights: list[float] = []

    def __enter__(self) -> Others:
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def weight(self) -> float:
        return statistics.fmean(self.weights) if self.weights else 0.0

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            parents: dict[int, int] = {}
            runnable: dict[int, float] = {}
            for stat in Path("/proc").glob("[0-9]*/stat"):
                with contextlib.suppress(OSError, IndexError):
                    name, _, rest = stat.read_text().rpartition(")")
                    fields, pid = rest.split(), int(name.split()[0])
                    parents[pid] = int(fields[1])
                    if fields[0] == "R":
                        runnable[pid] = 1.25 ** -int(fields[16])
            self.weights.append(
                sum(
                    weight
                    for pid, weight in runnable.items()
                    if self._ours.isdisjoint(_lineage(pid, parents))
                )
            )


def _lineage(pid: int, parents: dict[int, int]) -> Iterator[int]:
    """Yield a process and those that it descends from."""
    while pid:
        yield pid
        pid = parents.get(pid, 0)


def run_hosts(
    urls: list[str], seconds: float, server: int | None = None, *, paced: bool = False
) -> dict[str, Any]:
    """Run a host on each URL at the same time; return their results, the other load, and the server's time."""
    more = ["--seconds", str(seconds), *(["--paced"] if paced else [])]
    hosts = [
        subprocess.Popen(
            [sys.executable, __file__, "--host", url, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for url in urls
    ]
    for one in hosts:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    before = tree_cpu_s(server) if server else 0.0
    ours = {os.getpid(), *(one.pid for one in hosts), *([server] if server else [])}
    with Others(ours | {_KTHREADD}) as others:
        for one in hosts:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        said = [json.loads(one.stdout.readline()) for one in hosts if one.stdout is not None]
    executions = sum(one["executions"] for one in said)
    for one in hosts:
        one.communicate(timeout=60)
    return {
        "hosts": said,
        "executions": executions,
        "rate": sum(one["executions"] / one["took_s"] for one in said),
        "others": others.weight,
        "cpu_s": sum(one["tree_total_s"] for one in said) / executions,
        "server_s": (tree_cpu_s(server) - before) / executions if server else 0.0,
    }


# The simulation.


class Model:
    """Samples of one host for the simulation, in seconds of processor time; `idle_s` is wall time.

    paced: Measured with pauses, so that a spare worker is always ready.
    alone: Measured in a loop.
    crowding: Slowdown of an execution that shares its core.
    share: Share of the time that the kernel leaves to these processes.
    """

    def __init__(self, paced: dict[str, Any], alone: dict[str, Any], crowding: float, share: float) -> None:
        (one,), (loop,) = paced["hosts"], alone["hosts"]
        many, ran = one["executions"], loop["executions"]
        self.execution_s, self.server_s = alone["cpu_s"], alone["server_s"]
        host_s = loop["host_total_s"] / ran
        workers_s = self.execution_s - host_s
        # After a pause, caches are cold, which takes longer than in a loop.
        warm = min(1.0, host_s / statistics.fmean(one["host_s"]))
        warm_workers = workers_s / ((one["tree_total_s"] - one["host_total_s"]) / many)
        self.own = [warm * seconds for seconds in one["host_s"]]
        self.begin, self.finish = loop["times"]["begin"], loop["times"]["finish"]
        self.fork = [min(1.0, warm_workers) * seconds for seconds in one["spares"]]
        #: Work of the host after an execution: the used worker's end.
        self.after_s = max(0.0, host_s - statistics.fmean(self.own))
        self.worker_s = max(0.0, workers_s - statistics.fmean(self.fork))
        self.crowding, self.share = crowding, share
        self.idle_s = 0.0

    def fit(self, rate: float, cores: int, others: float, *, one_writer: bool) -> None:
        """Find a host's other waits, besides processors and commits, so that it is as fast as the real one."""
        least, most = 0.0, 0.1
        for _ in range(12):
            self.idle_s = (least + most) / 2
            if simulated(self, 1, cores, others, one_writer=one_writer, seconds=10) > rate:
                least = self.idle_s
            else:
                most = self.idle_s


class Machine:
    """Cores that the hosts' processes and other programs share in turns."""

    def __init__(
        self, env: simpy.Environment, cores: int, others: float, crowding: float, share: float
    ) -> None:
        self.env, self.cores = env, simpy.Resource(env, cores)
        self.alone, self.crowded = 1 / share, crowding / share
        whole = int(others)
        for share in [1.0] * whole + [others - whole] * (others > whole):
            env.process(self._other(share))

    def _other(self, share: float) -> Generator[Any, Any, None]:
        while True:
            yield from self.work(QUANTUM_S * share)

    def work(self, seconds: float) -> Generator[Any, Any, None]:
        """Use a core for that time, in turns."""
        while seconds > 0:
            with self.cores.request() as turn:
                yield turn
                now = min(QUANTUM_S, seconds)
                yield self.env.timeout(now * (self.crowded if self.cores.queue else self.alone))
            seconds -= now


class Host:
    """Process that executes a tool in a loop."""

    def __init__(
        self, machine: Machine, model: Model, writer: simpy.Resource | None, dice: random.Random
    ) -> None:
        self.machine, self.model, self.writer, self.dice = machine, model, writer, dice
        self.interpreter = simpy.Resource(machine.env)
        self.spares, self.making, self.done = 1, 0, 0
        machine.env.process(self._loop())

    def _own(self, seconds: float) -> Generator[Any, Any, None]:
        with self.interpreter.request() as turn:
            yield turn
            yield from self.machine.work(seconds)

    def _commit(self, sample: tuple[float, float]) -> Generator[Any, Any, None]:
        wall, cpu = sample
        with contextlib.ExitStack() as held:
            if self.writer is not None:
                yield held.enter_context(self.writer.request())
            yield from self._own(cpu)
            if self.writer is None:
                yield from self.machine.work(self.model.server_s / 2)
            else:
                yield self.machine.env.timeout(max(0.0, min(wall, 0.005) - cpu))

    def _fork(self) -> Generator[Any, Any, None]:
        yield from self.machine.work(self.dice.choice(self.model.fork))
        self.making -= 1
        self.spares += 1

    def _loop(self) -> Generator[Any, Any, None]:
        model, dice = self.model, self.dice
        while True:
            begin, finish = dice.choice(model.begin), dice.choice(model.finish)
            own = max(0.0, dice.choice(model.own) - begin[1] - finish[1])
            yield from self._own(own / 2)
            yield from self._commit(begin)
            on_demand = self.spares == 0
            self.spares -= not on_demand
            if self.spares + self.making == 0:
                self.making += 1
                self.machine.env.process(self._fork())
            if on_demand:
                yield from self.machine.work(dice.choice(model.fork))
            yield from self.machine.work(model.worker_s)
            yield self.machine.env.timeout(model.idle_s)
            yield from self._own(own / 2)
            yield from self._commit(finish)
            self.done += 1
            self.machine.env.process(self._own(model.after_s))


def simulated(
    model: Model, many: int, cores: int, others: float, *, one_writer: bool, seconds: float = 30
) -> float:
    """Return the executions per second."""
    env = simpy.Environment()
    machine = Machine(env, cores, others, model.crowding, model.share)
    writer = simpy.Resource(env) if one_writer else None
    hosts = [Host(machine, model, writer, random.Random(number)) for number in range(many)]
    env.run(until=seconds)
    return sum(one.done for one in hosts) / seconds


# The whole benchmark.


@contextlib.contextmanager
def database(kind: str) -> Iterator[tuple[str, int | None, Callable[[], int]]]:
    """Make a database with the tool; yield its URL, the server's process, and a function for its size in bytes."""
    from healkit import Healkit

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        server = None
        if kind == "sqlite":
            url = f"sqlite:///{folder}/healkit.db"

            def size() -> int:
                return sum(file.stat().st_size for file in Path(folder).glob("healkit.db*"))

        else:
            from postgres_samples import cluster

            url = opened.enter_context(cluster()).url
            server = postmaster_of(url)

            def size() -> int:
                import psycopg

                with psycopg.connect(url.replace("+psycopg", "")) as connection:
                    row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
                    return int(row[0]) if row else 0

        with Healkit(url) as healkit:
            healkit.vault.add("trivial", CODE)
        yield url, server, size


def postmaster_of(url: str) -> int:
    import psycopg

    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return psutil.Process(connection.info.backend_pid).ppid()


def crowded(cores: int, seconds: float) -> float:
    """Return the slowdown of an execution when twice as many hosts run as there are cores.

    Each has its own database, so that they only share the machine.
    """
    with contextlib.ExitStack() as opened:
        urls = [opened.enter_context(database("sqlite"))[0] for _ in range(2 * cores)]
        alone, together, again = (run_hosts(some, seconds) for some in (urls[:1], urls, urls[:1]))
    return float(max(1.0, 2 * together["cpu_s"] / (alone["cpu_s"] + again["cpu_s"])))


def small_costs(url: str) -> dict[str, float]:
    """Return the milliseconds of a view of a thousand rows, and of a heartbeat if there are any."""
    import pandas as pd

    from healkit import Healkit
    from healkit.core.store.heartbeat import _BEAT, Heartbeat
    from healkit.core.store.log_writer import LogWriter

    found: dict[str, float] = {}
    with Healkit(url) as healkit:

        def view(number: int) -> None:
            healkit.views.put(pd.DataFrame({"n": range(number, number + 1_000)}), name=f"view_{number}")

        found["view_ms"] = median_ms(view, 40)
        if healkit.database.path is None:
            heart = Heartbeat(healkit.database, LogWriter(healkit.database), lambda: False, lambda: None)
            found["heartbeat_ms"] = median_ms(lambda _: heart._say(_BEAT), 100)
    return found


def median_ms(work: Callable[[int], object], times: int) -> float:
    taken = []
    for number in range(times):
        began = time.perf_counter()
        work(number)
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgresql"])
    parser.add_argument(
        "--realtime", action="store_true", help="go before all others, for root on a busy machine"
    )
    parser.add_argument("--host", help=argparse.SUPPRESS)
    parser.add_argument("--paced", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.host:
        host(given.host, given.seconds, given.paced)
        return
    share = 1.0
    if given.realtime:  # also for all its children, because niceness only counts within a session
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        runtime, period = (
            int(Path(f"/proc/sys/kernel/sched_rt_{name}_us").read_text()) for name in ("runtime", "period")
        )
        share = runtime / period if runtime > 0 else 1.0
    cores, rows, costs = os.cpu_count() or 1, [], {}
    crowding = crowded(cores, given.seconds)
    for kind in given.databases:
        with database(kind) as (url, server, size):
            before = size()
            paced = run_hosts([url], given.seconds, server, paced=True)
            alone = run_hosts([url], given.seconds, server)
            model = Model(paced, alone, crowding, share)
            model.fit(
                alone["rate"], cores, 0.0 if given.realtime else alone["others"], one_writer=kind == "sqlite"
            )
            times = paced["hosts"][0]["times"]
            row = times["begin"], times["finish"]
            ran = sum(one["executions"] for one in (paced, alone))
            costs[kind] = {
                "execution_cpu_ms": 1000 * model.execution_s,
                "host_cpu_ms": 1000 * statistics.fmean(model.own),
                "fork_cpu_ms": 1000 * statistics.fmean(model.fork),
                "worker_cpu_ms": 1000 * model.worker_s,
                "server_cpu_ms": 1000 * model.server_s,
                "idle_ms": 1000 * model.idle_s,
                "row_ms": 1000 * sum(statistics.median(wall for wall, _ in commits) for commits in row),
                "row_cpu_ms": 1000 * sum(statistics.fmean(cpu for _, cpu in commits) for commits in row),
                "trace_cpu_ms": 1000 * statistics.fmean(cpu for _, cpu in times["trace"]),
                "bytes": (size() - before) / (ran + 16),
                **small_costs(url),
            }
            for many in given.hosts:
                measured = run_hosts([url] * many, given.seconds, server)
                others = 0.0 if given.realtime else measured["others"]
                rate = simulated(model, many, cores, others, one_writer=kind == "sqlite")
                rows.append(
                    {
                        "database": kind,
                        "hosts": many,
                        "measured_per_s": measured["rate"],
                        "simulated_per_s": rate,
                        "off": rate / measured["rate"] - 1,
                        "others": measured["others"],
                        "cpu_ms": 1000 * (measured["cpu_s"] + measured["server_s"]),
                    }
                )
                print(json.dumps(rows[-1]), file=sys.stderr)
    print(
        json.dumps(
            {"cores": cores, "load": os.getloadavg(), "crowding": crowding, "costs": costs, "table": rows},
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
