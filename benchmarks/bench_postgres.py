"""Cost of an execution on PostgreSQL, compared to SQLite.

Both run in turns, on the same warm workers. The server has its default settings: each commit is on disk before it is
confirmed. Prints JSON: medians of rounds, in milliseconds per execution. `bound` is the limit of the requirement.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from postgres_samples import cluster

from healkit import Config, Healkit

ROUNDS, EXECUTIONS = 9, 25
CODE = "def double(n): return 2 * n"


def measured(hk: Healkit) -> tuple[float, float]:
    """Return wall and processor time of this process for one execution, in ms."""
    began, processor = time.perf_counter(), time.process_time()
    for n in range(EXECUTIONS):
        assert hk.execute("double", arguments={"n": n}).value == 2 * n
    return (
        (time.perf_counter() - began) / EXECUTIONS * 1000,
        (time.process_time() - processor) / EXECUTIONS * 1000,
    )


def main() -> None:
    """Measure and print."""
    times: dict[str, list[tuple[float, float]]] = {"sqlite": [], "postgresql": []}
    with tempfile.TemporaryDirectory() as folder, cluster() as server:
        server.stop()
        server.options = server.options.replace("fsync=off", "fsync=on")
        server.start()
        url = server.url
        # By default, the log on a server is cleaned; here both are.
        config = Config(sanitize_log=True)
        with (
            Healkit(f"{folder}/healkit.db", config=config) as file,
            Healkit(url, config=config) as other,
        ):
            hosts = {"sqlite": file, "postgresql": other}
            for hk in hosts.values():
                hk.vault.add("double", CODE)
                measured(hk)
            for _ in range(ROUNDS):
                for name, hk in hosts.items():
                    times[name].append(measured(hk))
    wall, processor = (
        {name: round(statistics.median(time[part] for time in each), 3) for name, each in times.items()}
        for part in (0, 1)
    )
    ratios = [there[0] / here[0] for here, there in zip(times["sqlite"], times["postgresql"], strict=True)]
    used = [there[1] / here[1] for here, there in zip(times["sqlite"], times["postgresql"], strict=True)]
    print(
        json.dumps(
            {
                "wall_ms": wall,
                "processor_ms": processor,
                "wall_ratio": round(statistics.median(ratios), 3),
                "processor_ratio": round(statistics.median(used), 3),
                "bound": 1.3,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
