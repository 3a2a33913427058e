"""What runs hook into.

The sink of each execution, and the audit chain.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import healkit.parts.views  # noqa: F401 - without that part, this one is left out
from healkit import hooks
from healkit.errors import HealkitError
from healkit.hooks import hookimpl, rows_of

if TYPE_CHECKING:
    from healkit.parts.runs.audit import Audit
    from healkit.parts.runs.contract import RunManifest
    from healkit.parts.runs.run_audit import Tell
    from healkit.parts.runs.runs import Runs
    from healkit.services import Services


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit trace`."""
    return rows_of("healkit.parts.runs.commands", "trace")


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`runs`, `run(…)`, `runs_dir` and `audit`."""
    return {
        "runs": _runs,
        "run": lambda services: services.runs.run,
        "runs_dir": lambda services: services.runs.runs_dir,
        "audit": _audit,
    }


@hookimpl
def steps(services: Services) -> Runs:
    """Return the runs of that database."""
    runs: Runs = services.runs
    return runs


@hookimpl
def record_folders(services: Services) -> tuple[Path]:
    """Return the folder of the run folders."""
    return (services.runs.runs_dir,)


@hookimpl
def opened(services: Services) -> None:
    """Append the audit's entries that killed processes left in run folders; `audit.verify` names missing ones."""
    from healkit.parts.runs import run_audit

    with contextlib.suppress(HealkitError):
        if not services.database.read_only:
            run_audit.recover(services.runs.runs_dir, lambda: services.audit, audit_steps)


@hookimpl
def closing(services: Services) -> None:
    """End the runs that are still open."""
    services.runs.close()
    if (audit := services.made("audit")) is not None:
        audit.close()


def _runs(services: Services) -> Runs:
    from healkit.parts.runs.run_folders import runs_folder
    from healkit.parts.runs.runs import Runs

    folder = runs_folder(services.config, services.database.path)
    return Runs(
        services.config, folder, lambda: services.cleaner.cleaner, lambda: services.audit, audit_steps
    )


def _audit(services: Services) -> Audit:
    from healkit.parts.runs.audit import Audit
    from healkit.parts.runs.run_audit import kept_faults
    from healkit.parts.runs.run_folders import anchored_heads

    runs_dir = services.runs.runs_dir
    return Audit(
        services.database,
        lambda: services.cleaner.sanitizer,
        lambda: anchored_heads(runs_dir),
        lambda mentioned: kept_faults(
            mentioned, runs_dir, services.audit, audit_steps, services.contents.fault
        ),
    )


def audit_steps(manifest: RunManifest) -> Tell | None:
    """Return a function that describes a run's events for the audit; None for a run that is not audited."""
    tell: Tell | None = hooks.first("audit_steps", manifest=manifest)
    return tell
