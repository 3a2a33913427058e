"""Hosts of one database that are killed at random moments.

Is any execution lost, doubled or left running?

Four hosts execute tools from two threads each (`--threads`). The database is locked now and then, so that records wait
in the spool. One host after the other is ended by SIGKILL, while it starts, works or stores waiting records, and
replaced. Each host notes its requests, its tools' actions and their ends in a file that a kill cannot change. At the
end, the log is compared with these notes. Prints one JSON object, with the seed that repeats the same moments, and with
the moments of an execution at which the kills came. Ends with 1 if something is wrong, or if no kill came at one of
these moments.

With `--audited`, the hosts heal tools and decide instead. At the end, each event of each run folder that makes an audit
entry must be an entry, once, and the audit must verify. Each killed decision is resumed: it must end in its view, and
no finished step may be executed again.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from healkit.core.store.spool import Spool

HERE = Path(__file__).resolve().parent

#: Threads of each host, unless --threads says otherwise.
THREADS = 2
#: Phase that a kill waits for before its random moment, and its longest delay in seconds. The host starts,
#: requests its first executions, has run a tool, or stores waiting records from the spool.
PHASES = (("", 3.0), ("ready", 3.0), ("working", 3.0), ("working", 1.0), ("ingesting", 0.005))

#: State of an execution when its host was killed; the last one is the state of the host.
MOMENTS = (
    "before RUNNING",
    "RUNNING, before the tool",
    "RUNNING, after the tool",
    "after the end",
    "ingesting",
)

#: How long a record waits for the database before it goes to the spool, how long the database is locked, and
#: how long it is unlocked at most, in seconds.
LOG_WAIT_S, LOCKED_S, FREE_S = 0.1, 0.4, 2.0

#: How long a kill waits for its host to store waiting records, in seconds.
INGESTING_WITHIN_S = 10.0

TOOLS = {
    "quick": "def quick(ticket):\n    return mcp.host.mark(ticket=ticket)",
    "fails": "def fails(ticket):\n    mcp.host.mark(ticket=ticket)\n    return 1 / 0",
    "slow": "import time\ndef slow(ticket):\n    mcp.host.mark(ticket=ticket)\n    time.sleep(0.2)\n    return ticket",
}

#: Longest time until a host that heals and decides is killed, after it is open, in seconds.
AUDITED_WITHIN_S = 8.0
AUDITED_TOOLS = {
    "totals": "def totals(df, mark):\n    name = df.columns[-1]\n"
    "    return df.groupby('region', as_index=False)[[name]].sum()",
    "as_csv": "def as_csv(df, mark):\n    return df.to_csv(index=False)",
}
#: Tool that is healed again and again, under other names.
BROKEN = "def share(total, parts):\n    return total / len(parts)"
EXAMPLES = [
    {"arguments": {"total": 9, "parts": []}, "result": 0.0},
    {"arguments": {"total": 8, "parts": [1, 2]}, "result": 4.0},
]


def host(url: str, notes: str, thread_count: str) -> None:
    """Execute tools until killed."""
    from healkit import Config, Healkit

    threading.Thread(target=end_with_parent, daemon=True).start()
    descriptor = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(*words: object) -> None:
        os.write(descriptor, (json.dumps(words) + "\n").encode())

    with Healkit(url, config=Config(start_timeout_s=120, log_wait_s=LOG_WAIT_S)) as healkit:
        working = threading.Event()

        @healkit.provide
        def mark(ticket: str) -> str:
            note("ran", ticket)
            if not working.is_set():
                working.set()
                print("working", flush=True)
            return ticket

        def work(thread: int) -> None:
            for number, tool in zip(itertools.count(), itertools.cycle(TOOLS)):
                token = f"{os.getpid()}-{time.time_ns()}-{thread}-{number}"
                note("asked", token)
                execution = healkit.execute(tool, arguments={"ticket": token})
                note("ended", token, "SUCCESS" if execution.ok else "FAILURE", execution.trace_id)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(int(thread_count))]
        print("ready", flush=True)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def audited_host(url: str, first: str) -> None:
    """Heal and decide in turns until killed; first: which of the two comes first, 0 or 1."""
    import pandas as pd

    from healkit import Config, Healkit
    from healkit.parts.decide import loop as _
    from healkit.parts.heal import loop as _  # noqa: F401, F811 - as above

    threading.Thread(target=end_with_parent, daemon=True).start()
    frame = pd.DataFrame({"region": ["North", "South"] * 200, "sales": range(400)})
    with Healkit(url, config=Config(start_timeout_s=120)) as healkit:
        healkit.execute("totals", arguments={"df": frame, "mark": ""})  # until a worker has pandas
        print("ready", flush=True)
        for number in itertools.count(int(first)):
            name = f"share_{os.getpid()}_{number}"
            if number % 2:
                healkit.vault.add(name, BROKEN.replace("share", name), examples=EXAMPLES)
                healkit.heal(name, auto=True, budget_s=10)
            else:
                plan = plan_of(name)
                healkit.decide("Which region?", {"sales": frame}, tools=["totals", "as_csv"], chooser=plan)


def plan_of(mark: str) -> list[dict[str, Any]]:
    """Return the choices of a decision; each execution's arguments name it and the step."""
    steps: list[dict[str, Any]] = []
    for number in range(3):
        params = {"df": "sales" if not number else f"v{number - 1}", "mark": f"{mark}.{number}"}
        steps.append(
            {"type": "execute_data_op", "tool": "totals", "params": params, "viewName": f"v{number}"}
        )
    params = {"df": "v2", "mark": f"{mark}.3"}
    return [
        *steps,
        {"type": "execute_output", "tool": "as_csv", "params": params},
        {"type": "finalize", "finalViewName": "v2"},
    ]


def killed_audited(url: str, rng: random.Random, env: dict[str, str]) -> None:
    """Start a host that heals and decides, and kill it at a random moment once it is open."""
    command = [sys.executable, __file__, "--audited-host", url, str(rng.randrange(2))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=env) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0, AUDITED_WITHIN_S))
        if process.poll() is not None:
            raise SystemExit(f"A host ended by itself, with {process.returncode}.")
        process.kill()


def audited_findings(url: str) -> dict[str, Any]:
    """Compare the run folders with the audit, then resume each killed decision."""
    from healkit import Healkit
    from healkit.errors import UsageInvalid
    from healkit.parts.runs.plugin import audit_steps
    from healkit.parts.runs.reader import read_run
    from healkit.parts.runs.run_folders import run_folders

    problems: dict[str, list[str]] = {
        "missing": [],
        "doubled": [],
        "not_resumed": [],
        "repeated": [],
        "verify": [],
    }
    counts = Counter[str]()
    with Healkit(url) as healkit:  # its start handles what the last hosts left
        runs = [read_run(folder) for folder in run_folders(healkit.runs_dir)]
        for run in runs:
            assert run.manifest is not None
            kind = run.manifest.execution_profile.name
            counts[f"{kind}: {'ended' if run.finished else 'killed'}"] += 1
            step_of = audit_steps(run.manifest)
            assert step_of is not None
            told = [event.seq for event in run.events if step_of(event) is not None]
            found = Counter(entry.event_seq for entry in healkit.audit.get(run.run_id))
            counts["events that are entries"] += len(told)
            problems["missing"] += [f"{run.run_id} event {seq}" for seq in told if not found[seq]]
            problems["doubled"] += [f"{run.run_id} event {seq}" for seq, times in found.items() if times > 1]
        fault = healkit.audit.verify().fault
        problems["verify"] += [] if fault is None else [fault.message]
        for run in runs:
            assert run.manifest is not None
            begun = any(event.metadata.get("kind") == "decision" for event in run.events)
            if run.manifest.execution_profile.name != "decide" or run.finished or not begun:
                continue
            done = [ref for event in run.events for ref in event.evidence_refs if ref.kind == "report"]
            try:
                decision = healkit.decide(resume=run.run_id)
            except UsageInvalid as error:  # killed between its last choice and its end
                finalized = [event for event in run.events if event.event_type == "trace.finalize"]
                problems["not_resumed"] += [] if finalized else [f"{run.run_id}: {error.message}"]
                counts["had their result already"] += bool(finalized)
                continue
            counts["resumed"] += 1
            counts["finished steps that were not taken again"] += len(done)
            if not decision.ok:
                problems["not_resumed"].append(f"{run.run_id}: {decision.reason}")
            if repeated := repeated_steps(healkit, run, len(done)):
                problems["repeated"].append(f"{run.run_id}: {repeated}")
        fault = healkit.audit.verify().fault
        problems["verify"] += [] if fault is None else [fault.message]
    if not counts["events that are entries"]:
        problems["nothing_compared"] = [
            "No kill came in a healing or a decision, or the run folders are elsewhere."
        ]
    return {
        **counts,
        **{name: len(found) for name, found in problems.items()},
        "first": {name: found[:3] for name, found in problems.items() if found},
    }


def repeated_steps(healkit: Any, run: Any, done: int) -> list[str]:
    """Return the finished steps of a killed decision that are in the log more than once."""
    marks = [
        step["params"]["mark"]
        for event in run.events
        for step in (event.metadata.get("plan") or ())
        if "params" in step
    ][:done]
    rows = healkit.database.fetch(
        "SELECT arguments FROM executionlog WHERE tool_name IN ('totals', 'as_csv')"
    )
    found = Counter(row["arguments"].get("mark") for row in rows)
    return [mark for mark in marks if found[mark] != 1]


def soak_audited(url: str, folder: Path, kills: int, hosts: int, seed: int) -> dict[str, Any]:
    """Kill hosts that heal and decide that often, then compare their run folders with the audit."""
    from healkit import Healkit

    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "XDG_DATA_HOME": str(folder / "data")}
    os.environ.update(env)
    with Healkit(url) as healkit:
        for name, code in AUDITED_TOOLS.items():
            healkit.vault.add(name, code)
    turns, troubles = itertools.count(), list[BaseException]()

    def one_after_the_other(number: int) -> None:
        rng = random.Random(f"{seed}-{number}")
        try:
            while next(turns) < kills and not troubles:
                killed_audited(url, rng, env)
        except BaseException as trouble:
            troubles.append(trouble)

    threads = [
        threading.Thread(target=one_after_the_other, args=(number,), daemon=True) for number in range(hosts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]
    return audited_findings(url)


def end_with_parent() -> None:
    """End this host when the soak itself has ended, since nothing else would."""
    sys.stdin.read()
    os._exit(1)


def ingests(pid: int, locks: set[int]) -> bool:
    """Return True while that process holds one of these locks (by inode), like a process that reads a spool."""
    held = (line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" not in line)
    return any(int(lock[4]) == pid and int(lock[5].split(":")[2]) in locks for lock in held)


def wait_for_ingesting(process: subprocess.Popen[bytes], spool: Spool) -> None:
    """Wait until the host stores waiting records from the spool, up to a time limit."""
    give_up = time.monotonic() + INGESTING_WITHIN_S
    while time.monotonic() < give_up and process.poll() is None:
        files = [folder / "drain.lock" for folder in spool.folders]
        if ingests(process.pid, {file.stat().st_ino for file in files if file.exists()}):
            return
        time.sleep(0.001)


def killed(url: str, notes: Path, thread_count: int, rng: random.Random, env: dict[str, str]) -> bool:
    """Start a host and kill it at a random moment; return True if it was storing waiting records then."""
    spool = Spool(url)
    command = [sys.executable, __file__, "--host", url, str(notes), str(thread_count)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=env) as process:
        assert process.stdout is not None
        phase, within_s = rng.choice(PHASES)
        awaited = "working" if phase == "ingesting" else phase
        said = ""
        while awaited not in said:
            if not (line := process.stdout.readline()):
                break
            said = line.decode()
        if phase == "ingesting":
            wait_for_ingesting(process, spool)
        time.sleep(rng.uniform(0, within_s))
        if process.poll() is not None:
            raise SystemExit(f"A host ended by itself, with {process.returncode}.")
        process.send_signal(signal.SIGSTOP)  # it keeps its locks until they are checked
        locks = {file.stat().st_ino for folder in spool.folders if (file := folder / "drain.lock").exists()}
        ingesting = ingests(process.pid, locks)
        process.kill()
        return ingesting


def lock_now_and_then(url: str, rng: random.Random, over: threading.Event) -> None:
    """Block all other writers for a moment, again and again, so that their records go to the spool."""
    from healkit.core.store.database import Database

    with contextlib.closing(Database(url, wait_s=60)) as database:
        lock = "LOCK TABLE executionlog, executioncall IN EXCLUSIVE MODE"
        begin = ["BEGIN IMMEDIATE"] if database.path else ["BEGIN", lock]
        with contextlib.closing(database.detached_connection()) as connection:
            while not over.wait(rng.uniform(0, FREE_S)):
                with contextlib.closing(connection.cursor()) as cursor:
                    for statement in begin:
                        cursor.execute(statement)
                    over.wait(rng.uniform(0, LOCKED_S))
                    cursor.execute("ROLLBACK")


def soak(
    url: str, folder: Path, kills: int, hosts: int, seed: int, thread_count: int, seconds: float
) -> dict[str, Any]:
    """Kill hosts of the database that often, or for that long, then compare its log with their notes."""
    from healkit import Healkit

    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "XDG_DATA_HOME": str(folder / "data")}
    os.environ.update(env)
    with Healkit(url) as healkit:
        for name, code in TOOLS.items():
            healkit.vault.add(name, code)
    turns, until_s = itertools.count(), time.monotonic() + seconds
    troubles: list[BaseException] = []
    ingesting: list[bool] = []
    over = threading.Event()

    def lock() -> None:
        try:
            lock_now_and_then(url, random.Random(seed), over)
        except BaseException as trouble:
            troubles.append(trouble)

    locker = threading.Thread(target=lock, daemon=True)
    locker.start()

    def one_after_the_other(number: int) -> None:
        rng = random.Random(f"{seed}-{number}")
        try:
            while next(turns) < kills and not troubles and time.monotonic() < until_s:
                ingesting.append(killed(url, folder / f"notes-{number}", thread_count, rng, env))
        except BaseException as trouble:
            troubles.append(trouble)

    threads = [
        threading.Thread(target=one_after_the_other, args=(number,), daemon=True) for number in range(hosts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    locker.join()
    if troubles:
        raise troubles[0]
    with Healkit(url) as healkit:  # its start ends the rows of the last killed hosts
        return compared(healkit, folder, sum(ingesting))


def moments_of(
    asked: set[str], ran: Counter[str], ended: dict[str, Any], rows: dict[str, Any]
) -> Counter[str]:
    """Count the states of executions whose end their host did not see."""
    found = Counter(dict.fromkeys(MOMENTS, 0))
    for token in asked - set(ended):
        (row,) = rows.get(token, [None])[:1]
        if row is None:
            found["before RUNNING"] += 1
        elif row["error_code"] == "HOST_DIED":
            found["RUNNING, after the tool" if ran[token] else "RUNNING, before the tool"] += 1
        else:
            found["after the end"] += 1
    return found


def compared(healkit: Any, folder: Path, ingesting: int) -> dict[str, Any]:
    """Compare the log with the hosts' notes; ingesting: number of kills of a host that was storing waiting records."""
    rows = healkit.database.fetch("SELECT id, trace_id, arguments, status, error_code FROM executionlog")
    calls = healkit.database.fetch("SELECT trace_id FROM executioncall")
    traced = {row["trace_id"] for row in healkit.database.fetch("SELECT trace_id FROM executiontrace")}
    by_token: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_token.setdefault(row["arguments"]["ticket"], []).append(row)
    calls_of = Counter(row["trace_id"] for row in calls)
    asked, ran, ended = set(), Counter[str](), {}
    for notes in folder.glob("notes-*"):
        for line in notes.read_bytes().splitlines(keepends=True):
            with contextlib.suppress(ValueError):  # the last line of a host may be incomplete
                what, token, *rest = json.loads(line)
                if what == "asked":
                    asked.add(token)
                elif what == "ran":
                    ran[token] += 1
                else:
                    ended[token] = rest
    lost = [token for token in {*ran, *ended} if token not in by_token]
    lost += [f"call of {t}" for t in ran if t in by_token and not calls_of[by_token[t][0]["trace_id"]]]
    lost += [
        f"trace of {r['trace_id']}" for r in rows if r["status"] != "RUNNING" and r["trace_id"] not in traced
    ]
    doubled = [token for token, found in by_token.items() if len(found) > 1]
    doubled += [f"run of {token}" for token, count in ran.items() if count > 1]
    doubled += [f"call of {trace_id}" for trace_id, count in calls_of.items() if count > 1]
    told = {token: [found[0]["status"], found[0]["trace_id"]] for token, found in by_token.items()}
    wrong = [token for token, said in ended.items() if token in told and told[token] != said]
    running = [row["trace_id"] for row in rows if row["status"] == "RUNNING"]
    moments = moments_of(asked, ran, ended, by_token) | Counter(ingesting=ingesting)
    problems = {"lost": lost, "doubled": doubled, "left_running": running, "other_than_told": wrong}
    return {
        "asked": len(asked),
        "ran": len(ran),
        "ended": len(ended),
        "rows": len(rows),
        "host_died": sum(row["error_code"] == "HOST_DIED" for row in rows),
        "moments": dict(moments),
        "no_kill_at": [moment for moment in MOMENTS if not moments[moment]],
        "waits": healkit.recorder.problem,
        **{name: len(found) for name, found in problems.items()},
        "first": {name: found[:3] for name, found in problems.items() if found},
    }


@contextlib.contextmanager
def database(kind: str, folder: Path) -> Any:
    """Yield the URL of an empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'healkit.db'}"
        return
    sys.path.insert(0, str(HERE.parent / "tests"))
    from postgres_samples import postgresql

    with postgresql() as url:
        yield url


def main() -> int:
    if sys.argv[1:2] == ["--host"]:
        host(*sys.argv[2:])
        return 0
    if sys.argv[1:2] == ["--audited-host"]:
        audited_host(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--audited", action="store_true", help="kill healings and decisions")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--threads", type=int, default=THREADS, help="of each host")
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after so long")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as name, database(chosen.database, Path(name)) as url:
        began = time.monotonic()
        common = url, Path(name), chosen.kills, chosen.hosts, chosen.seed
        found = soak_audited(*common) if chosen.audited else soak(*common, chosen.threads, chosen.seconds)
        report = {**vars(chosen), "took_s": round(time.monotonic() - began), **found}
    json.dump(report, sys.stdout, indent=2)
    print()
    return int(bool(report["first"] or report.get("waits") or report.get("no_kill_at")))


if __name__ == "__main__":
    sys.exit(main())
