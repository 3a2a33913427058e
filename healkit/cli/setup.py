"""Command that loads healkit in every notebook: setup.

It writes a file of its own into the startup folder of the user's IPython profile. Each kernel runs it, whoever starts
the kernel: JupyterLab, VS Code, nbclient. A line in the profile's `ipython_kernel_config.py` would do the same, but
that file is the user's: the line is lost where a later one assigns `c.InteractiveShellApp.extensions`, and to take it
back means to edit the user's code.
https://ipython.readthedocs.io/en/stable/interactive/tutorial.html#startup-files
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

from healkit.commands.table import Answer, Command, wrong
from healkit.errors import UsageInvalid
from healkit.options import Option

#: IPython runs what is in the folder in the order of the names.
_FILE = "50-healkit.py"
#: It is nothing to IPython's own terminal, leaves no name in the notebook, and never raises, as `run_cell` does not:
#: IPython runs no startup file after one that raised.
_TEXT = """\
# Loads healkit in each notebook whose kernel has it. Written by `healkit setup`, deleted by `healkit setup --remove`.
if hasattr(get_ipython(), "kernel") and __import__("importlib.util").util.find_spec("healkit"):
    get_ipython().run_cell("%load_ext healkit", silent=True)
"""


def setup(
    remove: Annotated[bool, Option("remove", "take it back")] = False,
    profile: Annotated[
        str, Option("profile", "the IPython profile of your kernels", default="default")
    ] = "default",
) -> Answer:
    """Load healkit in every notebook, wherever it is opened; --remove takes that back.

    It writes one file, into the startup folder of your IPython profile. Kernels without healkit stay as they are.
    """
    folder = _ipython_folder() / f"profile_{profile}"
    if profile != "default" and not folder.is_dir():
        wrong(
            f"There is no IPython profile {profile!r} at {str(folder)!r}.",
            "Leave --profile away for the one that kernels use, or make it with: ipython profile create",
        )
    file = folder / "startup" / _FILE
    try:
        changed = _remove(file) if remove else _write(file)
    except OSError as error:
        raise UsageInvalid(
            f"Cannot {'remove' if remove else 'write'} {str(file)!r}: {error.strerror}."
        ) from None
    if remove:
        said = (
            "healkit is no longer loaded in every notebook. Removed: "
            if changed
            else "There was nothing to take back: no "
        )
    else:
        said = (
            "healkit is loaded in every notebook from now on, and "
            if changed
            else "healkit is loaded in every notebook already, "
        )
        said += "in running kernels after a restart. Written: " if changed else "by "
    return Answer(
        said=f"{said}{file}", data=lambda: {"path": str(file), "loads": not remove, "changed": changed}
    )


COMMANDS = {"setup": Command(setup)}


def _ipython_folder() -> Path:
    """Return IPython's folder; raise `UsageInvalid` where it cannot be used, and IPython would take a temporary one."""
    from IPython.paths import get_ipython_dir

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            return Path(get_ipython_dir())
        except UserWarning as error:
            raise UsageInvalid(
                f"IPython's folder cannot be used: {error}",
                hint="Set IPYTHONDIR to a folder that you can write to.",
            ) from None


def _is_there(file: Path) -> bool:
    """Return whether the file is there as it was written; raise `UsageInvalid` where it is another."""
    try:
        found = file.read_bytes()
    except FileNotFoundError:
        return False
    if found != _TEXT.encode():
        wrong(
            f"{str(file)!r} holds something else than healkit setup writes.", "Move it, or edit it yourself."
        )
    return True


def _write(file: Path) -> bool:
    """Write it; return whether anything was changed."""
    if _is_there(file):
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x") as opened:  # never over a file, or a link, that has come meanwhile
        opened.write(_TEXT)
    return True


def _remove(file: Path) -> bool:
    """Remove it, and its folder and the profile where they are empty then; return whether anything was changed."""
    if not _is_there(file):
        return False
    file.unlink()
    for folder in (file.parent, file.parent.parent):
        try:
            folder.rmdir()
        except OSError:  # not empty: IPython has filled it, or the user
            break
    return True
