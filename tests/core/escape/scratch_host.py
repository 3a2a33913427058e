"""Host for the ways to write past the limit.

It is a process of its own, so that it can run as any user.

`python scratch_host.py TIER FOLDER AT_A_TIME` tries each way in a worker of its own, AT_A_TIME of them at once, and
prints one JSON object: way → how it ended.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from scratch_ways import LIMIT_MB, WAYS, source_of

from healkit import Config, Healkit
from healkit.core.runtime import background
from healkit.errors import HealkitError


def main() -> None:
    """Try each way once, and look at what stays."""
    tier, folder, at_a_time = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    config = Config(isolation=tier, start_timeout_s=60, timeout_s=90, scratch_mb=LIMIT_MB, memory_mb=512)
    with Healkit(folder / "healkit.db", config=config) as healkit:
        names = {way: f"way_{number}" for number, way in enumerate(WAYS)}
        for way, name in names.items():
            healkit.vault.add(name, source_of(way).replace("def attempt", f"def {name}"))

        def one(way: str) -> dict[str, Any]:
            try:
                execution = healkit.execute(names[way])
            except HealkitError as error:
                return {"ending": error.code, "value": None, "told": str(error)}
            failure = execution.failure
            if failure is None:
                return {"ending": "SUCCESS", "value": execution.value, "told": ""}
            return {"ending": failure.code, "value": None, "told": f"{failure.ename}: {failure.evalue}"}

        with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
            found: dict[str, Any] = dict(zip(WAYS, pool.map(one, WAYS), strict=True))
    background.loop.submit(settled()).result(300)
    background.shutdown()
    base = Path(os.environ["TMPDIR"], f"healkit-{os.getuid()}")
    left = [str(path) for path in base.rglob("*")] if base.exists() else []
    sys.stdout.write(json.dumps({"ways": found, "left": left}))


async def settled() -> None:
    """Wait until the folders of the ways have been removed: there are some hundred thousand files."""
    for pool in background._pools.values():
        while pool._tasks:
            await asyncio.gather(*pool._tasks, return_exceptions=True)


if __name__ == "__main__":
    main()
