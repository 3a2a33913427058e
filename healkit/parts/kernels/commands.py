"""Commands on the restricted kernel: install, remove."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from healkit.commands.options import Option
from healkit.commands.table import Answer, Command, Group, wrong

#: The same as in `workers.kernelspec`; named here so that `--help` need not import Jupyter.
_NAME, _DISPLAY_NAME = "healkit-restricted", "Python 3 (restricted)"


Name = Annotated[str, Option("name", "the kernel's name for programs", default=_NAME)]
User = Annotated[bool, Option("user", "in your own Jupyter data folder")]
Prefix = Annotated[str | None, Option("prefix", "in P/share/jupyter", metavar="P")]
SysPrefix = Annotated[bool, Option("sys_prefix", "in healkit's own Python environment; the default")]
_FROM_SYS_PREFIX = Option("sys_prefix", "from healkit's own environment")
_DISPLAYED = Option("display_name", "its name in a launcher", default=_DISPLAY_NAME)
_READ = Option(
    "read",
    "what notebooks may read; may be repeated. Relative paths start at the notebook's folder",
    metavar="PATH",
)
_WRITE = Option("write", "what they may read and write; the same", metavar="PATH")
_MEMORY = Option(
    "memory", "memory of a notebook. [default: HEALKIT_MEMORY_MB, then 1024]", int, metavar="MB", least=1
)
_CPU = Option("cpu", "processor time of a notebook", int, metavar="S", least=1, default_help="no limit")


def list_kernels() -> Answer:
    """List the restricted kernels that Jupyter finds here."""
    from healkit.parts.kernels import kernelspec

    folders = kernelspec.installed()
    return Answer(
        said="\n".join(f"{folder.name}  {folder}" for folder in folders)
        or "No restricted kernel is installed. healkit kernelspec install --user installs one.",
        data=lambda: [{"name": folder.name, "path": str(folder)} for folder in folders],
    )


def install(
    user: User = False,
    sys_prefix: SysPrefix = False,
    prefix: Prefix = None,
    name: Name = _NAME,
    display_name: Annotated[str, _DISPLAYED] = _DISPLAY_NAME,
    read: Annotated[list[str] | None, _READ] = None,
    write: Annotated[list[str] | None, _WRITE] = None,
    memory: Annotated[int | None, _MEMORY] = None,
    cpu: Annotated[int | None, _CPU] = None,
) -> Answer:
    """Let Jupyter, nbclient and papermill run whole notebooks restricted.

    They get no network, no files except those granted here, and no other processes.
    """
    from healkit.parts.kernels import kernelspec

    options = {"read": _paths(read), "write": _paths(write), "memory_mb": memory, "cpu_s": cpu}
    grants = {key: value for key, value in options.items() if value}
    folder = _folder(user, sys_prefix, prefix) or kernelspec.kernels_folder()
    target = kernelspec.install_kernel(kernelspec.kernel_json(display_name, grants), name, folder)
    lines = [
        f"  {key}  {', '.join(map(_explained, value)) if isinstance(value, list) else value}"
        for key, value in grants.items()
    ]
    unseen = f"Jupyter does not look in {target.parent} yet: add {target.parent.parent} to JUPYTER_PATH."
    return Answer(
        said="\n".join([f"{display_name} installed as {target.name}", *lines]),
        data=lambda: {"name": target.name, "path": str(target), "grants": grants},
        notes=() if kernelspec.is_found(target) else [unseen],
    )


def remove(
    user: User = False,
    sys_prefix: Annotated[bool, _FROM_SYS_PREFIX] = False,
    prefix: Prefix = None,
    name: Name = _NAME,
) -> Answer:
    """Remove it from that place, or otherwise from the first place where Jupyter finds it."""
    from healkit.parts.kernels import kernelspec

    target = kernelspec.remove_kernel(name, _folder(user, sys_prefix, prefix))
    return Answer(said=f"{target.name} removed", data=lambda: {"name": target.name, "path": str(target)})


def _folder(user: bool, sys_prefix: bool, prefix: str | None) -> Path | None:
    """Return the named folder; None for none."""
    from healkit.parts.kernels import kernelspec

    if user + sys_prefix + (prefix is not None) > 1:
        wrong("--user, --sys-prefix and --prefix cannot be combined.", "Give one of them.")
    return (
        kernelspec.kernels_folder(user=user, prefix=prefix)
        if user or sys_prefix or prefix is not None
        else None
    )


def _paths(paths: list[str] | None) -> list[str]:
    """Resolve `~` and links, which could change later; relative paths stay relative to the notebook."""
    words = [os.path.normpath(os.path.expanduser(path)) for path in paths or []]
    return [os.path.realpath(path) if os.path.isabs(path) else path for path in words]


def _explained(path: str) -> str:
    if os.path.isabs(path):
        return path
    return "the notebook's folder" if path == "." else f"{path} beside the notebook"


GROUP = Group(
    'The kernel "Python 3 (restricted)", for whole notebooks; without a command, the list.',
    {"list": Command(list_kernels), "install": Command(install), "remove": Command(remove)},
)
COMMANDS = {"kernelspec": GROUP}
