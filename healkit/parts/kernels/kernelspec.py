"""Kernel spec "Python 3 (restricted)" and its place.

A kernel spec is a folder with a `kernel.json` in one of the places where Jupyter looks:
https://jupyter-client.readthedocs.io/en/stable/kernels.html#kernel-specs
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_core.paths import jupyter_data_dir

from healkit.errors import UsageInvalid

DEFAULT_NAME = "healkit-restricted"
DEFAULT_DISPLAY_NAME = "Python 3 (restricted)"
_PROVISIONER = "healkit-restricted"
#: The icon in launchers, under the names that Jupyter looks for; own drawings.
_LOGOS = Path(__file__).with_name("logo")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def kernel_json(display_name: str, grants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec; `grants` are traits of `RestrictedProvisioner`.

    The interpreter is that of the Jupyter that starts the kernel: jupyter_client puts it in place of `python`.
    """
    return {
        "argv": ["python", "-m", "healkit.core.workers.inside", "-f", "{connection_file}"],
        "display_name": display_name,
        "language": "python",
        "interrupt_mode": "message",
        "metadata": {
            "debugger": False,
            "kernel_provisioner": {"provisioner_name": _PROVISIONER, "config": dict(grants)},
        },
    }


def kernels_folder(*, user: bool = False, prefix: str | None = None) -> Path:
    """Return its place: the user's data folder, or an environment's, by default this interpreter's own."""
    base = Path(jupyter_data_dir()) if user else Path(prefix or sys.prefix).absolute() / "share" / "jupyter"
    return base / "kernels"


def install_kernel(spec: Mapping[str, Any], name: str, folder: Path) -> Path:
    """Write it to `folder/name`, in place of an earlier one of healkit; returns that path.

    Raises `UsageInvalid` for a name that Jupyter does not accept, for a kernel of that name that is not healkit's, and
    for a folder that is not writable.
    """
    target = _target(name, folder)
    if target.exists() and not _is_ours(target):
        raise UsageInvalid(
            f"The kernel {name!r} at {str(target)!r} exists, but it is not healkit's.",
            hint="Choose another --name.",
        )
    try:
        with tempfile.TemporaryDirectory() as source:
            (Path(source) / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n")
            for logo in _LOGOS.iterdir():
                shutil.copyfile(logo, Path(source) / logo.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
    except OSError as error:
        raise UsageInvalid(
            f"Cannot write {str(target)!r}: {error.strerror}.",
            hint="Install it with --user, or with another --prefix.",
        ) from None
    return target


def remove_kernel(name: str, folder: Path | None) -> Path:
    """Delete one of healkit's kernels from that folder, or from where Jupyter finds it; returns its path.

    Raises `UsageInvalid` if there is none, or if it is not healkit's.
    """
    if folder is not None:
        target = _target(name, folder)
    else:
        target = Path(_found().get(name.lower(), _target(name, kernels_folder())))
    if not target.exists():
        raise UsageInvalid(
            f"No kernel {name!r} at {str(target)!r}.",
            hint="`healkit kernelspec` lists the installed kernels.",
        )
    if not _is_ours(target):
        raise UsageInvalid(f"The kernel {name!r} at {str(target)!r} is not healkit's, so it is left alone.")
    try:
        shutil.rmtree(target)
    except OSError as error:
        raise UsageInvalid(f"Cannot remove {str(target)!r}: {error.strerror}.") from None
    return target


def installed() -> list[Path]:
    """Return the folders of healkit's kernels that Jupyter finds."""
    return [Path(folder) for folder in _found().values() if _is_ours(Path(folder))]


def is_found(target: Path) -> bool:
    """Return whether Jupyter, in this environment, finds that kernel and loads it from there."""
    return os.path.realpath(_found().get(target.name, "")) == os.path.realpath(target)


def _found() -> dict[str, str]:
    specs: dict[str, str] = KernelSpecManager(ensure_native_kernel=False).find_kernel_specs()
    return specs


def _target(name: str, folder: Path) -> Path:
    if not _NAME.fullmatch(name) or not name.strip("."):
        raise UsageInvalid(
            f"--name {name!r} is not a name for a kernel.", hint="Use only ASCII letters, digits and - . _"
        )
    return folder / name.lower()


def _is_ours(target: Path) -> bool:
    try:
        metadata = json.loads((target / "kernel.json").read_text())["metadata"]
        return bool(metadata["kernel_provisioner"]["provisioner_name"] == _PROVISIONER)
    except (OSError, ValueError, KeyError, TypeError):
        return False
