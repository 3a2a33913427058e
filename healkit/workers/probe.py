"""Tiers that this machine can really enforce.

Each sandbox is built, and a process inside it tries what must be impossible; no feature flags and no error texts are
trusted. A tier counts when everything it promises to stop was denied.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from healkit.config import Config
from healkit.errors import IsolationUnavailable, WorkerNotRestricted
from healkit.workers.folders import RunFolder, passing_folder
from healkit.workers.inside.probe_main import Report, Targets
from healkit.workers.process_status import not_in_force
from healkit.workers.sandbox import Sandbox, Tier

_TIMEOUT_S = 20.0

_NEVER_STOPPED = (
    "a bug in the Linux kernel itself",
    "reading the installed Python packages and system libraries",
    "learning about the machine: its kernel, processors, memory and load",
    "using up to its limits of memory and processor time beside you",
    "leaving anything in a folder that you let it write: links to elsewhere, programs, files with any content",
    "locking a file that it may read or write, which other programs may wait for",
    "filling the kernel's memory with locks of a file that you let it read or write",
    "holding up to 16 MiB of the kernel's memory in pipes, and 64 MiB in socket pairs",
    "sending a misleading result: what a tool returns is its own claim",
)
#: What each tier leaves open, in plain words; `healkit doctor` and docs/isolation.md say the same.
NOT_STOPPED: dict[Tier, tuple[str, ...]] = {
    "namespaces": (*_NEVER_STOPPED,),
    "landlock": (
        *_NEVER_STOPPED,
        "learning that files exist (their names' permissions, not their content), and the host's name",
        "writing more than its scratch folder may hold for the fifth of a second until the host counts again",
    ),
    "process": ("anything that your own user account may do: this tier is no boundary",),
}


@dataclasses.dataclass(frozen=True)
class TierReport:
    """Tier on this machine: whether it holds, what its process said, and why not if not."""

    tier: Tier
    holds: bool
    layers: dict[str, str]
    attempts: dict[str, str]
    problem: str = ""


@functools.cache
def probe(tier: Tier) -> TierReport:
    """Build that tier once and try it; about a tenth of a second, remembered for this process."""
    if sys.platform != "linux":
        return TierReport(
            tier, tier == "process", {}, {}, "only Linux has what the isolating tiers are made of"
        )
    with passing_folder() as root:
        return _try_tier(tier, root)


def achieved_tier(config: Config) -> Tier:
    """Return the tier that executions get; raises `IsolationUnavailable` where the one asked for cannot be had."""
    if config.isolation == "process":
        return "process"
    wanted: tuple[Tier, ...] = (
        ("namespaces", "landlock") if config.isolation == "auto" else (config.isolation,)
    )
    reports = [probe(tier) for tier in wanted]
    for report in reports:
        if report.holds:
            return report.tier
    found = "; ".join(f"{report.tier}: {report.problem}" for report in reports)
    raise IsolationUnavailable(
        f"This machine cannot restrict a worker ({found}), so no tool is run.",
        hint="`healkit doctor` shows what is missing. To run tools without a boundary all the same, set "
        "HEALKIT_ISOLATION=process; every result will say so.",
    )


#: Layers without which a tier does not hold.
_NEEDED: dict[Tier, tuple[str, ...]] = {
    "namespaces": ("seccomp", "rlimits"),
    "landlock": ("landlock", "seccomp", "rlimits"),
    "process": (),
}


def _missing(needed: Iterable[str], layers: dict[str, str]) -> list[str]:
    """Return those that were not reported to be in force, each with its report."""
    return [
        f"{name}: {layers.get(name, 'not reported')}"
        for name in needed
        if layers.get(name, "failed").startswith("failed")
    ]


def require_restricted(sandbox: Sandbox, layers: dict[str, str], pid: int) -> None:
    """Check a worker before any code is sent to it; raises `WorkerNotRestricted`.

    It must report every layer that the probe of its tier found in force, and the kernel must show what it can show.
    `pid` is that of the process that was started. To be called on a thread: it blocks for about a millisecond.
    """
    if sandbox.tier == "process":
        return
    found = probe(sandbox.tier).layers
    promised = dict.fromkeys(
        [*_NEEDED[sandbox.tier], *(n for n, said in found.items() if not said.startswith("failed"))]
    )
    lacking = [*_missing(promised, layers), *not_in_force(sandbox, pid)]
    if lacking:
        raise WorkerNotRestricted(
            f"A worker was ended before it got any code: it lacked a part of the {sandbox.tier!r} tier "
            f"({'; '.join(lacking)}).",
            hint="`healkit doctor` tries each layer. A memory shortage can be the cause: try again.",
        )


def _try_tier(tier: Tier, root: Path) -> TierReport:
    secret = root / "host" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("a file of the host's")
    sandbox = Sandbox(tier, RunFolder(root / "run").create())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, socket.socket() as unused:
        listener.bind(str(root / "host" / "socket"))
        listener.listen(1)
        targets = Targets(str(secret), str(secret.parent), str(root / "host" / "socket"), os.getpid())
        argument = msgspec.json.encode(targets).decode()
        try:
            done = subprocess.run(
                sandbox.command([sys.executable, "-m", "healkit.workers.inside.probe_main", argument]),
                env=sandbox.environment(unused.fileno()),
                cwd=sandbox.folder.scratch,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            report = msgspec.json.decode(done.stdout, type=Report)
        except (OSError, subprocess.TimeoutExpired) as error:
            return TierReport(tier, False, {}, {}, str(error))
        except msgspec.DecodeError:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            return TierReport(
                tier, False, {}, {}, said[-1] if said else f"it ended with status {done.returncode}"
            )
    return _judge(tier, report)


def _judge(tier: Tier, report: Report) -> TierReport:
    """Decide whether a tier holds: its own layers are in force, and nothing it promises to stop was possible."""
    failed = _missing(_NEEDED[tier], report.layers)
    open_doors = (
        [] if tier == "process" else [name for name, got in report.attempts.items() if got != "denied"]
    )
    problem = "; ".join([*failed, *(f"a worker could {name}" for name in open_doors)])
    return TierReport(tier, not problem, report.layers, report.attempts, problem)
