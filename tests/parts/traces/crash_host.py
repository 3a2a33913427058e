"""Host that runs tools and sends their traces, killed often.

`python crash_host.py DATABASE COLLECTOR PROMISES KILLS SEED`. One process has everything imported and forks a host for
each kill, so that a host is at work within milliseconds of its birth and dies in the midst of it. Whatever a host has
been told is on record, it writes to PROMISES with one system call.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
import threading
import time
from typing import NoReturn

import httpx  # noqa: F401 - so that no host has to import it

from healkit import Config, Healkit
from healkit.core.store.arguments import validate_arguments
from healkit.parts.sanitizer.sanitizer import Sanitizer
from healkit.parts.traces import delivery

SLEEPS = """
import time
def sleeps(n: int):
    trace.decision("asleep", "soon", f"n = {n}")
    mcp.host.about_to_sleep(n=n)
    time.sleep(60)
"""


def config(url: str) -> Config:
    delivery.PACE = delivery.Pace(request_s=20.0, backoff_s=0.05, backoff_max_s=0.5)
    return Config(
        isolation="process", fork_server=False, spares=0, start_timeout_s=60.0, log_wait_s=5.0,
        sync_url=url, sync_token=os.environ["HEALKIT_COLLECT_TOKEN"], sync_interval_s=0.02,
    )  # fmt: skip


def host(database: str, url: str, promises: int, opened: int, number: int, *, sleeps: bool) -> NoReturn:
    """Be one host, which never ends by itself.

    It writes to `opened` when it has opened its database, and when its tool sleeps.
    """
    healkit = Healkit(database, config=config(url))
    os.write(opened, b"x")
    healkit.provide(lambda n: os.write(opened, b"s"), "about_to_sleep")

    def keep_running(tool: str) -> None:
        while True:
            execution = healkit.execute(tool, arguments={"n": number})
            if (
                execution.log_id is not None
            ):  # else it waits in the spool, which is a promise too, but not this one
                os.write(promises, f"{execution.trace_id} {execution.status}\n".encode())

    if sleeps:
        threading.Thread(
            target=healkit.execute,
            args=("sleeps",),
            kwargs={"arguments": {"n": number}, "mode": "subprocess"},
        ).start()
    threading.Thread(target=keep_running, args=("fails",)).start()
    keep_running("counts")
    os._exit(1)


def wait_for(reading: int, byte: bytes) -> None:
    """Until the host has written that."""
    while select.select([reading], [], [], 60)[0] and os.read(reading, 1) not in (byte, b""):
        pass


def main() -> None:
    database, url, promises_file, kills, seed = sys.argv[1:]
    promises = os.open(promises_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    Sanitizer.from_config(config(url)).clean("warm")
    with Healkit(
        f"{database}.warm", config=Config()
    ) as warm:  # loads what a host would, and starts no thread
        warm.vault.add("warm", "SELECT :n", type="sql")
        validate_arguments(warm.vault.lookup("warm", "default"), {"n": 1})
    luck = random.Random(seed)
    for number in range(int(kills)):
        sleeps = (int(kills) - number) % 12 == 1  # every twelfth, and the last one
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            host(database, url, promises, writing, number, sleeps=sleeps)
        if sleeps:
            wait_for(reading, b"s")
        elif number % 5:  # the fifth is killed wherever it is, most likely while it opens the database
            wait_for(reading, b"x")
        time.sleep(luck.uniform(0.02, 0.2))
        os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(reading)
        os.close(writing)
        if status != -signal.SIGKILL:
            raise SystemExit(f"host {number} ended by itself, with {status}")


if __name__ == "__main__":
    main()
