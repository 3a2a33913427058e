"""Commands on the restricted kernel: install, remove."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from healkit.cli.command import HELP_OPTIONS, OK, JsonOption, alone, command, print_json, put, say, wrong

app = typer.Typer(
    help='The kernel "Python 3 (restricted)", for whole notebooks; without a command, the list.',
    context_settings=HELP_OPTIONS,
)

NameOption = Annotated[str, typer.Option("--name", help="The kernel's name for programs.")]
UserOption = Annotated[bool, typer.Option("--user", help="In your own Jupyter data folder.")]
SysPrefixOption = Annotated[
    bool, typer.Option("--sys-prefix", help="In healkit's own Python environment; the default.")
]
PrefixOption = Annotated[
    str | None, typer.Option("--prefix", metavar="P", help="In P/share/jupyter.", show_default=False)
]
ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="What notebooks may read; may be repeated. Relative: beside the notebook, so . is its folder.",
        show_default=False,
    ),
]
WriteOption = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="What they may read and write; the same.", show_default=False),
]
MemoryOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="MB", help="Memory of a notebook. [default: HEALKIT_MEMORY_MB, then 1024]"),
]
CpuOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="S", help="Processor time of a notebook.", show_default="no limit"),
]
#: The same as in `workers.kernelspec`; named here so that `--help` need not import Jupyter.
_NAME, _DISPLAY_NAME = "healkit-restricted", "Python 3 (restricted)"


def list_kernels(as_json: JsonOption = False) -> int:
    """List the restricted kernels that Jupyter finds here."""
    from healkit.workers import kernelspec

    found = kernelspec.installed()
    if as_json:
        print_json([{"name": folder.name, "path": str(folder)} for folder in found])
    elif found:
        put("\n".join(f"{folder.name}  {folder}" for folder in found))
    else:
        put("No restricted kernel is installed. healkit kernelspec install --user installs one.")
    return OK


def install(
    user: UserOption = False,
    sys_prefix: SysPrefixOption = False,
    prefix: PrefixOption = None,
    name: NameOption = _NAME,
    display_name: Annotated[str, typer.Option(help="Its name in a launcher.")] = _DISPLAY_NAME,
    read: ReadOption = None,
    write: WriteOption = None,
    memory: MemoryOption = None,
    cpu: CpuOption = None,
    as_json: JsonOption = False,
) -> int:
    """Let Jupyter, nbclient and papermill run whole notebooks restricted.

    They get no network, no files but what is granted here, and no other processes.
    """
    from healkit.workers import kernelspec

    given = {"read": _paths(read), "write": _paths(write), "memory_mb": memory, "cpu_s": cpu}
    grants = {key: value for key, value in given.items() if value}
    folder = _folder(user, sys_prefix, prefix) or kernelspec.kernels_folder()
    target = kernelspec.install(kernelspec.kernel_json(display_name, grants), name, folder)
    if as_json:
        print_json({"name": target.name, "path": str(target), "grants": grants})
    else:
        put(f"{display_name} installed as {target.name}")
        for key, value in grants.items():
            put(f"  {key}  {', '.join(map(_explained, value)) if isinstance(value, list) else value}")
    if not kernelspec.is_found(target):
        say(
            f"Jupyter does not take it from {target.parent} yet: put {target.parent.parent} into JUPYTER_PATH."
        )
    return OK


def remove(
    user: UserOption = False,
    sys_prefix: Annotated[bool, typer.Option("--sys-prefix", help="From healkit's own environment.")] = False,
    prefix: PrefixOption = None,
    name: NameOption = _NAME,
    as_json: JsonOption = False,
) -> int:
    """Remove it from that place, or else from where Jupyter finds it first."""
    from healkit.workers import kernelspec

    target = kernelspec.remove(name, _folder(user, sys_prefix, prefix))
    if as_json:
        print_json({"name": target.name, "path": str(target)})
    else:
        put(f"{target.name} removed")
    return OK


def _folder(user: bool, sys_prefix: bool, prefix: str | None) -> Path | None:
    """Return the folder that was named; None for none."""
    from healkit.workers import kernelspec

    if user + sys_prefix + (prefix is not None) > 1:
        wrong("--user, --sys-prefix and --prefix exclude each other.", "Name one of them.")
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


alone(app, list_kernels)
command(app, "list")(list_kernels)
command(app, "install")(install)
command(app, "remove")(remove)
