"""Run folders: how one is begun, and how one is found.

A folder is made under another name, with its manifest, its lock and its first event, and then renamed: whoever sees
`runs/<run_id>` sees a run that has begun. A run has one writer in its life, which holds a lock (flock) on trace.jsonl;
the system releases it if that writer dies. A run is not continued by a second writer: two processes that both went on
would give two events one number.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from healkit.config import Config
from healkit.contracts.runs import (
    EVIDENCE,
    EVIDENCE_MANIFEST,
    RUN_MANIFEST,
    TRACE,
    RunManifest,
    empty_evidence,
)
from healkit.errors import RunExists, RunFolderError, RunLocked, RunNotFound, did_you_mean, named

#: Place of folders that have not begun, and the age at which one is left over from a dead process.
_UNBORN, _UNBORN_MAX_AGE_S = ".new", 3600.0
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
#: Name for the newest run.
LAST = "last"


def runs_folder(config: Config, database: Path | None) -> Path:
    """Return the parent of run folders: as configured, beside the database's file, or in the user's data folder."""
    if config.runs_dir:
        return Path(config.runs_dir).expanduser().absolute()
    if database is not None:
        return database.parent / "runs"
    import platformdirs

    return Path(platformdirs.user_data_dir("healkit", appauthor=False)) / "runs"


def new_run_id(now: datetime) -> str:
    """Make an id such as `20261120T120341Z-5f3a9c1e`: sortable to the second, and unique by chance."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def check_run_id(run_id: str) -> str:
    """Return the id; raise `RunFolderError` for one that cannot be a folder's plain name."""
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id) or run_id == LAST:
        raise RunFolderError(
            f"{run_id!r} cannot be a run's id.",
            hint="Use up to 128 letters, digits, dots, hyphens and underscores, a letter or digit first.",
        )
    return run_id


def begin_folder(runs_dir: Path, manifest: RunManifest) -> tuple[Path, int]:
    """Make a hidden folder with its trace.jsonl, open and locked; `publish` gives it its name.

    Raises `RunFolderError` with the system's reason where it cannot be made.
    """
    check_run_id(manifest.run_id)
    with contextlib.ExitStack() as undo:
        try:
            unborn = runs_dir / _UNBORN
            unborn.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sweep(unborn)
            folder = Path(tempfile.mkdtemp(prefix=f"{manifest.run_id[:40]}-", dir=unborn))
            undo.callback(discard, folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            descriptor = os.open(folder / TRACE, flags, 0o600)
            undo.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / EVIDENCE).mkdir(mode=0o700)
            for name, content in (
                (RUN_MANIFEST, manifest),
                (EVIDENCE_MANIFEST, empty_evidence(manifest.run_id)),
            ):
                (folder / name).write_bytes(manifest_bytes(content))
        except OSError as error:
            raise _unwritable(runs_dir, error) from error
        undo.pop_all()
    return folder, descriptor


def manifest_bytes(content: msgspec.Struct) -> bytes:
    """Return the text of a manifest's file."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def publish(folder: Path, runs_dir: Path, run_id: str) -> Path:
    """Give the folder its name; where the name is taken, remove the folder and raise `RunLocked` or `RunExists`."""
    target = runs_dir / run_id
    try:
        os.rename(folder, target)
    except OSError as error:
        discard(folder)
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise _unwritable(runs_dir, error) from error
        if is_being_written(target):
            raise RunLocked(
                f"Run {run_id!r} is being written by another writer, in {str(target)!r}.",
                hint="Give this run another id, or none; the two would overwrite each other's numbers.",
            ) from None
        raise RunExists(
            f"Run {run_id!r} is there already, in {str(target)!r}.",
            hint="Give this run another id, or none. A run that was cut off is not continued: it is evidence.",
        ) from None
    return target


def discard(folder: Path) -> None:
    """Remove a folder that was begun and never published."""
    shutil.rmtree(folder, ignore_errors=True)


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file: a reader sees the old one or the new one. Raise `OSError`."""
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)  # a link of that name would lead anywhere
    with beside.open("xb") as file:
        file.write(content)
    os.replace(beside, path)


def is_being_written(folder: Path) -> bool:
    """Return True while a living writer holds that run."""
    try:
        descriptor = os.open(folder / TRACE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def run_folders(runs_dir: Path) -> list[Path]:
    """List the runs of a folder, the oldest beginning first."""
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(runs_dir):
            if entry.is_dir() and not entry.name.startswith("."):
                with contextlib.suppress(OSError):
                    found.append((os.stat(Path(entry.path) / RUN_MANIFEST).st_mtime_ns, Path(entry.path)))
    return [path for _, path in sorted(found)]


def find_run(runs_dir: Path, name: str) -> Path:
    """Find a run's folder by path, id, unique beginning of an id, or `last`; raise `RunNotFound`."""
    if not isinstance(name, str):
        raise RunNotFound(
            f"There is no run {named(name)}.", hint="Give its id, the beginning of one, a folder, or 'last'."
        )
    if os.sep in name or name in {".", ".."}:
        if Path(name).is_dir():
            return Path(name)
        raise RunNotFound(f"There is no folder {name!r}.")
    folders = run_folders(runs_dir)
    if name == LAST and folders:
        return folders[-1]
    exact = runs_dir / name
    if name and not name.startswith(".") and exact.is_dir():
        return exact
    alike = [path for path in folders if name and path.name.startswith(name)]
    if len(alike) == 1:
        return alike[0]
    raise RunNotFound(
        f"{_miss(name, alike)} in {str(runs_dir)!r}.{_near(name, folders, alike)}",
        hint="`healkit trace list` shows those that there are." if folders else _RECORDS,
    )


_RECORDS = "Record one with hk.run(), hk.execute(…, record=True) or `healkit run TOOL --record`."


def _miss(name: str, alike: list[Path]) -> str:
    if alike:
        return f"{len(alike)} runs begin with {name!r}"
    return "There is no run yet" if name == LAST else f"There is no run {name!r}"


def _near(name: str, folders: Iterable[Path], alike: list[Path]) -> str:
    names = [path.name for path in folders]
    return f" They are {', '.join(path.name for path in alike[:5])}." if alike else did_you_mean(name, names)


def _sweep(unborn: Path) -> None:
    """Remove folders of processes that died before their run had begun."""
    for entry in os.scandir(unborn):
        with contextlib.suppress(OSError):
            old = time.time() - entry.stat().st_mtime > _UNBORN_MAX_AGE_S
            if old and not is_being_written(Path(entry.path)):
                shutil.rmtree(entry.path)


def _unwritable(runs_dir: Path, error: OSError) -> RunFolderError:
    return RunFolderError(
        f"No run can be recorded in {str(runs_dir)!r}: {error.strerror or error}.",
        hint="Free some space, or name another folder with HEALKIT_RUNS_DIR.",
    )
