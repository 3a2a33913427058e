"""Run folders and manifests: how one begins, how it is found.

A folder is made under another name, with its manifest, its lock and its first event, and then renamed. So an existing
`runs/<run_id>` is a run that has begun. A run has only one writer, which holds a lock (flock) on trace.jsonl; the
system releases the lock if that writer dies. A second writer never continues a run, because two processes would give
two events one number.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import importlib.metadata
import json
import os
import platform
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from healkit.config import Config
from healkit.core import plain_files
from healkit.core.contracts.execution import utc_now
from healkit.core.secrets.cleaner import Cleaner
from healkit.core.wire.encoding import to_jsonable
from healkit.errors import RunExists, RunFolderError, RunLocked, RunNotFound, did_you_mean, named
from healkit.package import FOLDER, VERSION
from healkit.parts.runs.audit_records import AnchoredHead, AuditHead
from healkit.parts.runs.contract import (
    EVIDENCE,
    EVIDENCE_MANIFEST,
    RUN_MANIFEST,
    SCHEMA_VERSION,
    TRACE,
    ExecutionMode,
    ExecutionProfile,
    PolicyDefaults,
    RedactionPolicy,
    RunManifest,
    empty_evidence,
)

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
            hint="Use up to 128 letters, digits, dots, hyphens and underscores; begin with a letter or digit.",
        )
    return run_id


def begin_folder(runs_dir: Path, manifest: RunManifest) -> tuple[Path, int]:
    """Make a hidden folder with its trace.jsonl, open and locked; `publish` gives it its name.

    Raises `RunFolderError` with the system's reason if that fails.
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
    """Give the folder its name; if the name exists, remove the folder and raise `RunLocked` or `RunExists`."""
    target = runs_dir / run_id
    try:
        os.rename(folder, target)
    except OSError as error:
        discard(folder)
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise _unwritable(runs_dir, error) from error
        if is_being_written(target):
            raise RunLocked(
                f"Run {run_id!r} is already being written, in {str(target)!r}.",
                hint="Give this run another id, or no id. Otherwise, the two writers would overwrite each other.",
            ) from None
        raise RunExists(
            f"Run {run_id!r} already exists, in {str(target)!r}.",
            hint=(
                "Give this run another id, or none. A run that was cut off cannot be continued, because it "
                "is evidence."
            ),
        ) from None
    return target


def discard(folder: Path) -> None:
    """Remove a folder that was never published."""
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
    dated_folders = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(runs_dir):
            if entry.is_dir() and not entry.name.startswith("."):
                with contextlib.suppress(OSError):
                    dated_folders.append(
                        (os.stat(Path(entry.path) / RUN_MANIFEST).st_mtime_ns, Path(entry.path))
                    )
    return [path for _, path in sorted(dated_folders)]


def find_run(runs_dir: Path, name: str, is_own: Callable[[str], bool] | None = None) -> Path:
    """Find a run's folder by path, id, unique beginning of an id, or `last`; raise `RunNotFound`.

    is_own: Returns by its id whether a run is the database's own, because others may have theirs beside it; for `last`.
    """
    if not isinstance(name, str):
        raise RunNotFound(
            f"There is no run {named(name)}.", hint="Give its id, the beginning of one, a folder, or 'last'."
        )
    if os.sep in name or name in {".", ".."}:
        if Path(name).is_dir():
            return Path(name)
        raise RunNotFound(f"There is no folder {name!r}.")
    folders = run_folders(runs_dir)
    if name == LAST:
        candidates = (path for path in reversed(folders) if is_own is None or is_own(path.name))
        if (last := next(candidates, None)) is not None:
            return last
    exact = runs_dir / name
    if name and not name.startswith(".") and exact.is_dir():
        return exact
    matching = [path for path in folders if name and path.name.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    raise RunNotFound(
        f"{_miss(name, matching)} in {str(runs_dir)!r}.{_near(name, folders, matching)}",
        hint="`healkit trace list` shows all runs." if folders else _RECORDS,
    )


_RECORDS = "Record one with hk.run(), hk.execute(…, record=True) or `healkit run TOOL --record`."


def _miss(name: str, matching: list[Path]) -> str:
    if matching:
        return f"{len(matching)} runs begin with {name!r}"
    return "There are no runs yet" if name == LAST else f"There is no run {name!r}"


def _near(name: str, folders: Iterable[Path], matching: list[Path]) -> str:
    names = [path.name for path in folders]
    return (
        f" They are {', '.join(path.name for path in matching[:5])}."
        if matching
        else did_you_mean(name, names)
    )


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
        hint="Free some space, or choose another folder with HEALKIT_RUNS_DIR.",
    )


# The manifest of a run: made as it begins, read for the audit.


#: Settings that a run's executions depend on, listed with its profile.
_PARAMETERS = ("isolation", "timeout_s", "cpu_s", "memory_mb", "scratch_mb")
#: What a run folder keeps of one piece of evidence: code, output, failure.
_EVIDENCE_MAX_BYTES = 1024 * 1024
#: Digits of a commit's hash; git's own default is shorter, and grows with the repository.
_COMMIT_DIGITS = 12


def manifest_for(
    run_id: str | None,
    profile: ExecutionProfile,
    config: Config,
    cleaner: Cleaner,
    *,
    mode: ExecutionMode,
    policy: PolicyDefaults,
    allow: Sequence[str],
) -> RunManifest:
    """Return the manifest of a run that begins now; its profile also gets the limits of `config`."""
    started_at = utc_now()
    limits = {name: getattr(config, name) for name in _PARAMETERS}
    return RunManifest(
        schema_version=SCHEMA_VERSION,
        run_id=new_run_id(started_at) if run_id is None else run_id,
        started_at=started_at,
        execution_profile=ExecutionProfile(
            to_jsonable(str(profile.name))[0], to_jsonable({**limits, **profile.parameters})[0]
        ),
        execution_mode=mode,
        policy_defaults=policy,
        app_version=app_version(),
        platform={
            "system": platform.system(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        },
        allowlist=to_jsonable([str(pattern) for pattern in allow])[0],
        redaction_policy=RedactionPolicy(
            "raw" if config.trace_raw else "sanitised",
            config.payload_max_bytes,
            _EVIDENCE_MAX_BYTES,
            cleaner.rule_set_version,
            list(cleaner.custom_rules),
        ),
    )


class _Anchor(msgspec.Struct):
    """Part of a manifest that the audit is checked against; an older one does not have it."""

    run_id: str
    audit: AuditHead | None = None


def anchored_heads(runs_dir: Path) -> Iterator[AnchoredHead]:
    """Yield the heads of the audit's chain that the manifests of runs name; damaged manifests are skipped."""
    for folder in run_folders(runs_dir):
        try:
            manifest = msgspec.json.decode(plain_files.read_file(folder, RUN_MANIFEST), type=_Anchor)
        except (OSError, msgspec.MsgspecError, ValueError):
            continue
        if manifest.audit is not None:
            yield AnchoredHead(manifest.run_id, manifest.audit)


@functools.cache
def app_version() -> str:
    """Return healkit's version; with `+g` and the commit if it runs from a checkout or was installed from one.

    The commit is read once per process. Uncommitted changes are not seen.
    """
    try:
        commit = _installed_commit() or _checked_out_commit(FOLDER.parent)
    except (OSError, ValueError):
        commit = ""
    return f"{VERSION}+g{commit[:_COMMIT_DIGITS]}" if commit else VERSION


def _installed_commit() -> str:
    """Return the commit that an installer recorded (PEP 610); empty if there was no repository."""
    try:
        noted = importlib.metadata.distribution("healkit").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return ""
    return str(json.loads(noted or "{}").get("vcs_info", {}).get("commit_id", ""))


def _checked_out_commit(root: Path) -> str:
    """Return the commit at HEAD of the repository at `root`, without git (gitrepository-layout(5)); else empty."""
    git = root / ".git"
    if git.is_file():  # a worktree of another repository
        git = root / git.read_text().removeprefix("gitdir:").strip()
    if not (git / "HEAD").is_file():
        return ""
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head
    ref = head.removeprefix("ref: ")
    common = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
    loose = next((path for path in (git / ref, common / ref) if path.is_file()), None)
    if loose is not None:
        return loose.read_text().strip()
    packed = (common / "packed-refs").read_text().splitlines() if (common / "packed-refs").is_file() else []
    return next((line.split()[0] for line in packed if line.endswith(f" {ref}")), "")
