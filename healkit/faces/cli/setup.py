"""Command that loads healkit in every notebook: setup.

It writes one file into the startup folder of the user's IPython profile. Each kernel runs it, whatever starts the
kernel: JupyterLab, VS Code, nbclient. A line in the profile's `ipython_kernel_config.py` would do the same, but that
file belongs to the user. The line has no effect if a later one assigns `c.InteractiveShellApp.extensions`, and removing
it would mean editing the user's code.

https://ipython.readthedocs.io/en/stable/interactive/tutorial.html#startup-files

The file names the installations that it may load. A kernel has the notebook's folder on its path, so opening a notebook
could otherwise run a file `healkit.py` there. To load healkit in kernels of another environment, run `healkit setup`
there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from pathlib import Path
from typing import Annotated

from healkit.commands.options import Option
from healkit.commands.table import Answer, Command, wrong
from healkit.errors import UsageInvalid
from healkit.package import FOLDER

#: IPython runs the files in the folder in order of their names.
_FILE = "50-healkit.py"
#: The file has no effect in IPython's own terminal, leaves no name in the notebook, and never raises, because
#: it uses `run_cell`. After a startup file that raised, IPython runs no other.
_TEXT = """\
# Loads healkit in each notebook whose kernel has it. Written by `healkit setup`, deleted by `healkit setup --remove`.
def _healkit():
    import os, sys
    from importlib.util import find_spec

    path = sys.path[:]
    sys.path[:] = filter(os.path.isabs, path)  # the notebook's folder is ""
    try:
        found = find_spec("healkit")
        if found and os.path.realpath(found.origin or "") in {}:
            get_ipython().run_cell("%load_ext healkit", silent=True)
    finally:
        sys.path[:] = path

if hasattr(get_ipython(), "kernel"):
    _healkit()
del _healkit
"""
#: SHA-256 of the file's text before it named installations; that file loads anything that is called healkit.
_UNNAMED = "a61872a861bbd4eb8801bf7a89cc3ee9fc54c16d6ef4b3d8ce27584c6aa1bf6a"
#: This installation, in the form that the file uses.
_OWN = os.path.realpath(FOLDER / "__init__.py")
_WRITTEN = re.compile(re.escape(_TEXT).replace(r"\{\}", r"(\[.*\])"))


def setup(
    remove: Annotated[bool, Option("remove", "take it back")] = False,
    profile: Annotated[
        str, Option("profile", "the IPython profile of your kernels", default="default")
    ] = "default",
) -> Answer:
    """Load healkit in every notebook, wherever it is opened; --remove undoes this.

    It writes one file into the startup folder of your IPython profile. For kernels of another environment, run healkit
    setup there too.
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
        sentence = (
            "healkit is no longer loaded in every notebook. Removed: "
            if changed
            else "There was nothing to take back: no "
        )
    else:
        sentence = (
            "healkit is loaded in every notebook from now on, and "
            if changed
            else "healkit is loaded in every notebook already, "
        )
        sentence += "in running kernels after a restart. Written: " if changed else "by "
    return Answer(
        said=f"{sentence}{file}", data=lambda: {"path": str(file), "loads": not remove, "changed": changed}
    )


def _ipython_folder() -> Path:
    """Return IPython's folder; raise `UsageInvalid` if it is unusable, and IPython would use a temporary one."""
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


def _installations(file: Path) -> list[str]:
    """Return the installations that the file loads; empty without a file. Raises `UsageInvalid` for a foreign file."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    if hashlib.sha256(text.encode()).hexdigest() == _UNNAMED:
        return [""]
    if (match := _WRITTEN.fullmatch(text)) is None:
        wrong(
            f"{str(file)!r} holds something else than healkit setup writes.", "Move it, or edit it yourself."
        )
    named: list[str] = json.loads(match[1])
    return named


def _write(file: Path) -> bool:
    """Add this installation to it; return whether the file changed."""
    named = _installations(file)
    if _OWN in named:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with file.open("x", encoding="utf-8") as opened:  # never over a file or link made meanwhile
        opened.write(_TEXT.replace("{}", json.dumps([*filter(os.path.exists, named), _OWN])))
    return True


def _remove(file: Path) -> bool:
    """Remove the file, and its folder and the profile if they are then empty; return whether anything changed."""
    if not _installations(file):
        return False
    file.unlink()
    for folder in (file.parent, file.parent.parent):
        try:
            folder.rmdir()
        except OSError:  # not empty: IPython or the user has added files
            break
    return True


COMMANDS = {"setup": Command(setup)}
