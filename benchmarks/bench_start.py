"""Cost of a start: the class, one run, one look at the log.

Each is measured in a separate process, and so is the time to a first row.

Values are processor time (user and system, including all processes that it waited for), because it is the same on a
busy machine. The first row is wall time, from the call of `execute` to the commit of its RUNNING row. Its process has
opened the database. The lower bounds are measured in turns with them: an empty interpreter, SQLAlchemy and
jupyter_client alone. An uncounted first round creates the compiled modules. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from healkit import Healkit

ROUNDS = 11
TARGETS = {"healkit_class_s": 0.35, "healkit_run_s": 0.6, "healkit_log_s": 0.4, "first_row_ms": 100}

#: Another thread looks for the row during the call, and reports when it first exists.
FIRST_ROW = """
import sqlite3, sys, threading, time
from healkit import Healkit
found = []
def look():
    log = sqlite3.connect(sys.argv[1], isolation_level=None)
    while not log.execute("SELECT 1 FROM executionlog WHERE status = 'RUNNING'").fetchone():
        time.sleep(0.0005)
    found.append(time.perf_counter())
with Healkit(sys.argv[1]) as healkit:
    looking = threading.Thread(target=look)
    looking.start()
    begun = time.perf_counter()
    healkit.execute("double", arguments={"n": 4})
    looking.join()
print((found[0] - begun) * 1000)
"""


def environment() -> dict[str, str]:
    """Return this process's environment, but with compiled modules enabled, as for an installed package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def processor_s(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_row_ms(db: str) -> float:
    command = [sys.executable, "-c", FIRST_ROW, db]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment())
    return float(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        db = str(Path(folder) / "healkit.db")
        with Healkit(db) as healkit:
            healkit.vault.add("double", "def double(n: int):\n    return 2 * n\n")
        cli = ("-m", "healkit")
        asked = {
            "python_pass_s": ("-c", "pass"),
            "import_sqlalchemy_s": ("-c", "import sqlalchemy"),
            "import_jupyter_client_s": ("-c", "import jupyter_client"),
            "healkit_class_s": ("-c", "import healkit; healkit.Healkit"),
            "healkit_run_s": (*cli, "run", "double", "--args", '{"n": 4}', "--db", db),
            "healkit_log_s": (*cli, "log", "--db", db),
        }
        found: dict[str, list[float]] = {name: [] for name in (*asked, "first_row_ms")}
        for _ in range(ROUNDS + 1):
            for name, arguments in asked.items():
                found[name].append(processor_s(*arguments))
            found["first_row_ms"].append(first_row_ms(db))
    medians = {name: round(statistics.median(values[1:]), 3) for name, values in found.items()}
    json.dump({"rounds": ROUNDS, **medians, "targets": TARGETS}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
