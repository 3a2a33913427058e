"""Command that starts JupyterLab on healkit's notebooks: lab."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import healkit
from healkit.cli.command import DbOption, open_healkit, say, wrong
from healkit.plain_text import count

if TYPE_CHECKING:
    from healkit.app import Healkit

#: Where the wheel has them.
_SHIPPED = Path(healkit.__file__).parent / "_notebooks"
#: Where a checkout has them.
_CHECKOUT = Path(healkit.__file__).parent.parent / "notebooks"
_FIRST = "01_first_repair.ipynb"
#: Options that are not ours are JupyterLab's.
REGISTRATION = {"lab": {"context": {"ignore_unknown_options": True, "allow_extra_args": True}}}


def lab(
    port: Annotated[int | None, typer.Option(help="The server's port.", show_default=False)] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser window.")] = True,
    extra: Annotated[list[str] | None, typer.Argument(help="Any other option goes to JupyterLab.")] = None,
    db: DbOption = None,
) -> int:
    """Start JupyterLab on the lessons; a vault without tools gets the lessons' own."""
    with open_healkit(db, create=True) as healkit:
        say(f"Database {healkit.database.shown_url}: {seeded(healkit)}")
        url = healkit.url
    return start_lab(url, port=port, browser=browser, extra=extra or [])


def seeded(healkit: Healkit) -> str:
    """Seed a vault that has no tools; return what was done, in words. Your own vault is not filled with lessons."""
    if own := len(healkit.vault.list()):
        return f"{count(own, 'tool')}; healkit seed adds those of the lessons"
    return str(healkit.seed())


def notebooks_folder() -> Path:
    """Return a folder with healkit's notebooks that the user may write to.

    A checkout's own; else a copy of the shipped ones in the user's data folder, where a newer healkit adds what is
    missing and leaves alone what the user may have changed.
    """
    if not _SHIPPED.is_dir():
        return _CHECKOUT if _CHECKOUT.is_dir() else Path.cwd()
    import platformdirs

    folder = Path(platformdirs.user_data_dir("healkit", appauthor=False)) / "notebooks"
    for source in sorted(_SHIPPED.rglob("*")):
        target = folder / source.relative_to(_SHIPPED)
        if source.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return folder


def lab_command(folder: Path, *, port: int | None, browser: bool, extra: list[str]) -> list[str]:
    """Return the command line of JupyterLab."""
    words = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    if (folder / _FIRST).is_file():  # and not on an empty launcher
        words.append(f"--LabApp.default_url=/lab/tree/{_FIRST}")
    words += [] if port is None else [f"--port={port}"]
    words += [] if browser else ["--no-browser"]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in extra:
        say("You are root, as in a container: JupyterLab is started with --allow-root.")
        words.append("--allow-root")
    return [*words, *extra]


def start_lab(url: str, *, port: int | None, browser: bool, extra: list[str]) -> int:
    """Become JupyterLab, with the database in HEALKIT_DB for every kernel it starts; returns only if it cannot."""
    if importlib.util.find_spec("jupyterlab") is None:
        wrong("JupyterLab is not installed.", "Install it with: pip install jupyterlab")
    folder = notebooks_folder()
    say(f"Notebooks in {folder}; in a cell: %load_ext healkit")
    words = lab_command(folder, port=port, browser=browser, extra=extra)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not a child: Ctrl-C, signals and the exit code are then JupyterLab's own.
    os.execve(sys.executable, words, {**os.environ, "HEALKIT_DB": url})  # noqa: S606 - no shell is wanted
