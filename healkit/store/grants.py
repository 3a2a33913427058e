"""Checks of grants: their form, and what no tool may have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from healkit.contracts.execution import Grants
from healkit.errors import ConfigError
from healkit.store.spool import Spool

#: Suffixes of the files that SQLite keeps beside the database.
_BESIDE = ("", "-wal", "-shm", "-journal")
#: A grant, and those that it can make impossible: the packages that exist depend on the interpreter.
_DEPENDENTS = {"python": ("packages", "write"), "packages": ("python",), "write": ("python",)}


def make_grants(given: Grants | Mapping[str, Any]) -> Grants:
    """Check grants and return them; raise `ConfigError` for an unknown field, a wrong type or a relative path."""
    fields = msgspec.to_builtins(given) if isinstance(given, Grants) else dict(given)
    for name in ("read", "write", "packages", "calls"):
        if isinstance(fields.get(name), str | Path):
            fields[name] = [fields[name]]
    for name in ("read", "write"):
        if name in fields:
            fields[name] = [_full_path(name, path) for path in fields[name] or ()]
    if fields.get("own_grants", False) is None:
        del fields["own_grants"]
    if fields.get("python") is not None:
        fields["python"] = _full_path("python", fields["python"])
    unknown = sorted(set(fields) - set(Grants.__struct_fields__))
    if unknown:
        known = ", ".join(Grants.__struct_fields__)
        raise ConfigError(f"There is no grant {unknown[0]!r}.", hint=f"The grants are {known}.")
    try:
        grants = msgspec.convert(fields, Grants)
    except msgspec.ValidationError as error:
        raise ConfigError(f"These grants are not valid: {error}.") from None
    for name in ("memory_mb", "cpu_s", "timeout_s"):
        limit = getattr(grants, name)
        if limit is not None and not limit > 0:
            raise ConfigError(f"The grant {name}={limit!r} must be greater than 0.")
    return grants


def checked_grants(changes: Mapping[str, Any], stored: Grants, database: Path | None, url: str) -> Grants:
    """Check changed grants, together with those stored ones whose validity depends on them; raise `ConfigError`.

    The other stored grants are left out: one that has gone stale must not block a change.
    """
    beside = {n: getattr(stored, n) for name in changes for n in _DEPENDENTS.get(name, ())}
    grants = make_grants({**beside, **changes})
    keep_records_apart(grants, database, Spool(database or url).folders)
    return grants


def keep_records_apart(grants: Grants, database: Path | None, folders: Iterable[Path]) -> None:
    """Refuse to grant the database, its side files, or a folder with any of them; raise `ConfigError`.

    A tool that reads the vault and the log reads the arguments of all tools; one that writes there passes every check.
    folders: where records wait for their database.
    """
    files = [] if database is None else [Path(f"{database}{suffix}") for suffix in _BESIDE]
    kept = {os.path.realpath(path): path for path in (*files, *folders)}
    for name in ("read", "write"):
        for path in getattr(grants, name):
            real = os.path.realpath(path)
            for own_real, own in kept.items():
                is_it = real == own_real or real.startswith(f"{own_real}/") or _same_file(own_real, real)
                if is_it or own_real.startswith(f"{real.rstrip('/')}/"):
                    raise ConfigError(
                        f"The grant {name}={path!r} {'is' if is_it else 'holds'} what healkit keeps its records in "
                        f"({str(own)!r}), which no tool may see.",
                        hint="Grant a folder without it; HEALKIT_DB can name another place for the database.",
                    )


def _full_path(name: str, path: Any) -> str:
    if not isinstance(path, str | Path):
        raise ConfigError(f"The grant {name}={path!r} is not a path.")
    if not Path(path).is_absolute():
        full = os.path.abspath(os.path.expanduser(path))
        raise ConfigError(
            f"The grant {name}={str(path)!r} is not an absolute path.", hint=f"Write it in full: {full!r}."
        )
    return str(Path(path))


def _same_file(a: str, b: str) -> bool:
    """Return True for two names of one file, as hard links are."""
    try:
        return os.path.samefile(a, b)
    except OSError:
        return False
