"""Cost of a card below a failed cell.

It measures explaining, reading the variables, drawing, and the extension's start.

`card_ms` is everything that the hook does after a failed cell. For a tool, this includes the questions to its kept
worker and to the log; for a cell, the reading of its traceback. `load_ext_ms` is measured in real kernels that have
just started and have run one empty cell, so it is the time that healkit adds. `load_ext_cpu_ms` is its processor time.
Each value is a median. The one with `_best` is the fastest, which is closer to the real cost on a machine that others
use too. Prints one JSON object.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

from healkit import Healkit
from healkit.faces.notebook import cards
from healkit.parts.cells.own_cells import FailedCells
from healkit.parts.explain.explanation import explain

ROUNDS = 100
LOADS = 9
TOOL = """
def busiest(sales: list):
    table = {row['region']: row for row in sales}
    total, names = 0, sorted(table)
    for name in names:
        total += table[name]['unit']
    return total
"""
LOAD = """
import json, time
began, used = time.perf_counter(), time.process_time()
get_ipython().run_line_magic("load_ext", "healkit")
print(json.dumps([(time.perf_counter() - began) * 1000, (time.process_time() - used) * 1000]))
"""


def timed(name: str, work: Callable[[], Any], rounds: int = ROUNDS) -> dict[str, float]:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000)
    return {f"{name}_ms": round(statistics.median(times), 2), f"{name}_best_ms": round(min(times), 2)}


def tool_card(folder: str) -> dict[str, Any]:
    with Healkit(Path(folder) / "healkit.db") as healkit:
        healkit.vault.add("busiest", TOOL)
        rows = [{"region": f"region {i}", "units": i} for i in range(50)]
        for _ in range(3):
            failed = healkit.execute("busiest", arguments={"sales": rows})
        shown = cards.of_tool(healkit, failed, "fix")
        assert failed.failure is not None
        return {
            **timed("tool_card", lambda: cards.of_tool(healkit, failed, "fix")),
            **timed("draw", failed.to_html),
            **timed("explain", lambda: explain(failed.failure)),
            "tool_card_bytes": len(json.dumps(shown._repr_mimebundle_())),
        }


def cell_card() -> dict[str, Any]:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    code = "import pandas as pd\nsales = pd.DataFrame({'region': list('NSN'), 'units': [1, 2, 3]})\nsales['unit'].sum()"
    with contextlib.redirect_stdout(io.StringIO()):
        result = shell.run_cell(code)
    failed = FailedCells(shell)

    def card() -> Any:
        return cards.of_cell(failed.add(result.error_in_exec, code, 1), "fix")

    shown = card()
    return {**timed("cell_card", card), "cell_card_bytes": len(json.dumps(shown._repr_mimebundle_()))}


def load_ext() -> dict[str, float]:
    walls, used = zip(*(load_once() for _ in range(LOADS)), strict=True)
    return {
        "load_ext_ms": round(statistics.median(walls), 1),
        "load_ext_best_ms": round(min(walls), 1),
        "load_ext_cpu_ms": round(statistics.median(used), 1),
    }


def load_once() -> list[float]:
    """Return wall and processor time of `%load_ext healkit` in a new kernel, in milliseconds."""
    manager, client = start_new_kernel(startup_timeout=60)
    try:
        said: list[str] = []
        for code in ("pass", LOAD):
            client.execute_interactive(
                code, timeout=60, output_hook=lambda message: said.append(message["content"].get("text", ""))
            )
        found: list[float] = json.loads("".join(said))
        return found
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYTHONDIR"] = str(Path(folder) / "ipython")
        os.environ["HEALKIT_DB"] = str(Path(folder) / "default.db")
        found = {**tool_card(folder), **cell_card(), **load_ext()}
    found |= {"limits": {"card_ms": 20, "load_ext_ms": 300, "card_bytes": 30_000}}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
