"""Host whose workers do not get the filter that they should.

The probe's process does get it.

`python weak_worker_host.py TIER FOLDER` starts workers in every way there is, with the package that it finds. It prints
one JSON object: way → result.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_client.connect import write_connection_file

from healkit import Config, Healkit
from healkit.core.contracts.execution import Grants
from healkit.core.runtime import background
from healkit.errors import HealkitError
from healkit.parts.kernels.provisioner import NotebookKernel
from healkit.parts.trials.trials import Trial


def main() -> None:
    """Start each kind of worker once."""
    tier, folder = sys.argv[1], Path(sys.argv[2])
    given = folder / "given"
    given.mkdir()
    config = Config(isolation=tier, start_timeout_s=60, timeout_s=30)
    found: dict[str, Any] = {}
    with Healkit(folder / "healkit.db", config=config) as healkit:
        code = f"def mark(name):\n    open({str(given)!r} + '/' + name, 'w').close()\n"
        healkit.vault.add("mark", code, grants=Grants(write=(str(given),)))
        narrow = Grants(write=(str(given),), packages=())
        healkit.vault.add("narrow", code.replace("mark(", "narrow("), grants=narrow)

        def run(name: str, tool: str = "mark", mode: str = "worker") -> str:
            return str(healkit.execute(tool, arguments={"name": name}, mode=mode).status)

        def attempt(name: str, action: Callable[[], object]) -> None:
            try:
                found[name] = f"ran: {action()}"
            except HealkitError as error:
                found[name] = f"{error.code}: {error.message}"

        attempt("cold kernel", lambda: run("cold kernel"))
        background.loop.submit(background.pool_for(config).warm_up(tier)).result(60)
        attempt("forked kernel", lambda: run("forked kernel"))
        attempt("subprocess", lambda: run("subprocess", mode="subprocess"))
        attempt("narrowed kernel", lambda: run("narrowed kernel", tool="narrow"))
        attempt("trials", lambda: healkit.trials([Trial("def f():\n    return 1\n", {}, "f")] * 3))
        attempt("notebook", lambda: asyncio.run(notebook(config, folder)))
    with contextlib.closing(sqlite3.connect(folder / "healkit.db")) as database:
        rows = database.execute("SELECT origin, isolation, error_code FROM executionlog").fetchall()
    found |= {"rows": rows, "marks": sorted(path.name for path in given.iterdir())}
    sys.stdout.write(json.dumps(found))


async def notebook(config: Config, folder: Path) -> str:
    """Start the kernel of a whole notebook."""
    kernel = NotebookKernel(config, Grants(), str(folder))
    try:
        kernel.prepare()
        file, _ = write_connection_file(str(folder / "connection.json"), ip=kernel.ip, transport="ipc")
        await kernel.start(["-f", file], {}, file)
        return "started"
    finally:
        kernel.close()


if __name__ == "__main__":
    main()
