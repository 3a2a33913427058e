"""Checks of grants on this machine, before they are saved.

A missing path or a misspelt package would fail each execution, later and elsewhere; some grants would undo the
restriction itself. `check_grants` refuses both.
"""

from __future__ import annotations

import os
from pathlib import Path

import healkit
from healkit.contracts.execution import Grants
from healkit.errors import ConfigError
from healkit.workers.folders import private_base
from healkit.workers.interpreters import interpreter_of, package_paths

#: Kernel interfaces, not files; what a worker may see of them is fixed.
_KERNEL = ("/proc", "/sys", "/dev")


def check_grants(grants: Grants) -> None:
    """Raise `ConfigError` for a grant that could not be kept here, or that no tool should have."""
    if grants.python is not None and not (
        os.path.isfile(grants.python) and os.access(grants.python, os.X_OK)
    ):
        raise ConfigError(
            f"The grant python={grants.python!r} is no program.",
            hint="Name the interpreter's executable, such as /path/to/venv/bin/python.",
        )
    for name in ("read", "write"):
        for path in getattr(grants, name):
            _check_path(name, path)
    for path in grants.write:
        _check_code(path, grants.python)
    if grants.packages:
        package_paths(grants.packages, grants.python)
    elif grants.python is not None:
        interpreter_of(grants.python)


def _check_path(name: str, path: str) -> None:
    real = os.path.realpath(path)
    if real == "/":
        raise ConfigError(
            f"The grant {name}={path!r} is everything.", hint="Grant the folder the tool needs."
        )
    if any(_overlap(real, folder) for folder in _KERNEL):
        raise ConfigError(
            f"The grant {name}={path!r} is a view into the system, not a folder of files.",
            hint="Let the tool fetch what it needs from there through a function of yours: hk.provide.",
        )
    if not os.path.lexists(path):
        raise ConfigError(f"The grant {name}={path!r} names nothing that exists.", hint="Make it first.")
    if real != path:
        # A link can be made to lead elsewhere; what it leads to is what would be granted.
        raise ConfigError(f"The grant {name}={path!r} leads to {real!r}.", hint=f"Grant {real!r} itself.")
    if not (os.path.isdir(real) or os.path.isfile(real)):
        raise ConfigError(f"The grant {name}={path!r} is neither a file nor a folder.")
    if _overlap(real, os.path.realpath(private_base())):
        raise ConfigError(
            f"The grant {name}={path!r} holds the folders of other workers.", hint="Grant a folder inside it."
        )


def _check_code(path: str, python: str | None) -> None:
    """Refuse write access to the code that a tool is restricted by."""
    found = [interpreter_of(None), *([interpreter_of(python)] if python is not None else [])]
    own = [str(Path(healkit.__file__).parent)]
    for interpreter in found:
        executable, settings = Path(interpreter.executable), Path(interpreter.prefix) / "pyvenv.cfg"
        own += [str(executable.parent), str(executable.resolve().parent), str(settings)]
        own += [*interpreter.folders, *interpreter.sites]
    for place in map(os.path.realpath, own):
        if _overlap(path, place):
            raise ConfigError(
                f"The grant write={path!r} would let a tool change the code it is restricted by ({place!r}).",
                hint="Grant a folder that holds its data only.",
            )


def _overlap(a: str, b: str) -> bool:
    """Return whether one path is the other or lies in it."""
    return a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/")
