"""Commands that start a Jupyter server: lab, page."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, NoReturn

from healkit.commands.options import Option, word
from healkit.commands.table import DB, Answer, Command, wrong
from healkit.errors import near_misses
from healkit.faces.cli.command import open_healkit, say
from healkit.package import FOLDER
from healkit.plain_text import count

if TYPE_CHECKING:
    from healkit.app import Healkit

#: Location of the lessons in a wheel.
_SHIPPED = FOLDER / "_notebooks"
#: Location of the lessons in a checkout.
_CHECKOUT = FOLDER.parent / "notebooks"
#: Sub-folder of your own folder to which they are copied.
LESSONS = "healkit-lessons"
_FIRST = "01_your_own_cells.ipynb"
#: Folder with Jupyter's configuration for this start only: it makes healkit's extension open the side panel,
#: once.
_CONFIG = Path(__file__).with_name("lab_config")


def lab(
    port: Annotated[int | None, Option("port", "the server's port", int)] = None,
    browser: Annotated[bool, Option("browser", "open a browser window", both=True)] = True,
    lessons: Annotated[bool, Option("lessons", "open the lessons alone")] = False,
    extra: Annotated[list[str] | None, word("any other option goes to JupyterLab")] = None,
    db: Annotated[str | None, DB] = None,
) -> Answer:
    """Start JupyterLab in this folder, with the lessons in healkit-lessons and healkit's side panel open.

    A vault without tools gets the tools of the lessons.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        wrong("JupyterLab is not installed.", "Install it with: pip install jupyterlab")
    _check_misspelt(extra or [])
    with open_healkit(db, create=True) as healkit:
        say(f"Database {healkit.database.shown_url}: {seeded(healkit)}")
        url = healkit.url
    place = lessons_alone() if lessons else own_folder(Path.cwd())
    say(f"{place.said} In a cell: %load_ext healkit")
    start_lab(url, lab_command(place, port=port, browser=browser, extra=extra or []))


def page(
    port: Annotated[int | None, Option("port", "the server's port", int)] = None,
    browser: Annotated[bool, Option("browser", "open a browser window", both=True)] = True,
    db: Annotated[str | None, DB] = None,
) -> Answer:
    """Show the log, the tools and the runs in a browser, with a server on this machine; Ctrl-C stops it."""
    if importlib.util.find_spec("jupyter_server") is None:
        wrong("Jupyter's server is not installed.", "Install it with: pip install jupyter-server")
    with open_healkit(db, create=False) as healkit:
        url = healkit.url
    become(url, page_command(port=port, browser=browser))


def _check_misspelt(extra: list[str]) -> None:
    """Refuse an option that resembles a healkit option and is unknown to JupyterLab, which silently accepts any."""
    for text in extra:
        name = text[2:].partition("=")[0] if text.startswith("--") else ""
        near = near_misses(name, ["port", "browser", "no-browser", "lessons", "db"], 1)
        if near and "." not in name:
            from jupyterlab.labapp import LabApp  # slow, and only needed for a doubtful option

            if name not in {*LabApp.aliases, *LabApp.flags}:
                wrong(f"JupyterLab has no option --{name}.", f"Did you mean --{near[0]}?")


#: Options that are not ours are JupyterLab's.
COMMANDS = {"lab": Command(lab, json=False, passes_on=True), "page": Command(page, json=False)}


def seeded(healkit: Healkit) -> str:
    """Add the lessons' tools to a vault without tools; return a sentence. A vault with tools is not changed."""
    if tool_count := len(healkit.vault.list()):
        return f"{count(tool_count, 'tool')}; healkit seed adds those of the lessons"
    return str(healkit.seed())


class Place(NamedTuple):
    """Place in which JupyterLab opens.

    first: The notebook to show; empty for none. said: Sentence about the place and the notebook.
    """

    root: Path
    first: str
    said: str


def own_folder(folder: Path) -> Place:
    """Return your folder, with the lessons copied into a sub-folder if that is writable.

    Files in the sub-folder are never overwritten; a newer healkit adds missing ones. The first lesson is shown if the
    lessons are new there.
    """
    if (folder / _CHECKOUT.name / _FIRST).is_file():  # a checkout already has them
        sentence = f"Your folder {folder}, with the lessons in {_CHECKOUT.name}."
        return Place(folder, f"{_CHECKOUT.name}/{_FIRST}", sentence)
    lessons, source = folder / LESSONS, _source()
    if source is None:
        return Place(folder, "", f"Your folder {folder}.")
    new = not (lessons / _FIRST).exists()
    try:
        _copy(source, lessons)
    except OSError as error:
        why = error.strerror or error
        return Place(
            folder,
            "",
            f"Your folder {folder}, where the lessons cannot be copied to ({why}); healkit lab --lessons opens them.",
        )
    first = f"{LESSONS}/{_FIRST}" if new else ""
    return Place(folder, first, f"Your folder {folder}, with the lessons in {LESSONS}.")


def lessons_alone() -> Place:
    """Return the folder of the lessons: a checkout's own, else a copy in the user's data folder."""
    source = _source()
    if source is None:
        wrong("This installation has no lessons.", "Write healkit lab, which opens the folder you are in.")
    if source == _CHECKOUT:
        return Place(source, _FIRST, f"The lessons in {source}.")
    import platformdirs

    folder = Path(platformdirs.user_data_dir("healkit", appauthor=False)) / "notebooks"
    _copy(source, folder)
    return Place(folder, _FIRST, f"The lessons in {folder}.")


def _source() -> Path | None:
    return next((folder for folder in (_SHIPPED, _CHECKOUT) if folder.is_dir()), None)


def _copy(source: Path, folder: Path) -> None:
    """Copy the missing files."""
    for file in sorted(source.rglob("*")):
        target = folder / file.relative_to(source)
        if file.is_file() and not target.exists() and not _is_hidden(file.relative_to(source)):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") for part in file.parts)


def lab_command(place: Place, *, port: int | None, browser: bool, extra: list[str]) -> list[str]:
    """Return the command line of JupyterLab."""
    words = [sys.executable, "-P", "-m", "jupyterlab", f"--ServerApp.root_dir={place.root}"]
    words += [f"--LabApp.default_url=/lab/tree/{place.first}"] if place.first else []
    return [*words, *_of_server(port=port, browser=browser, extra=extra), *extra]


def page_command(*, port: int | None, browser: bool) -> list[str]:
    """Return the command line of Jupyter's server with the page, without terminals."""
    words = [
        sys.executable,
        "-P",
        "-m",
        "jupyter_server",
        "--ServerApp.jpserver_extensions=healkit.faces.server=True",
    ]
    words += [
        "--ServerApp.default_url=/healkit/",
        "--ServerApp.terminals_enabled=False",
        "--ServerApp.ip=127.0.0.1",
    ]
    return [*words, *_of_server(port=port, browser=browser, extra=[])]


def _of_server(*, port: int | None, browser: bool, extra: list[str]) -> list[str]:
    words = [] if port is None else [f"--port={port}"]
    words += [] if browser else ["--no-browser"]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in extra:
        say("You are root, as in a container: Jupyter is started with --allow-root.")
        words.append("--allow-root")
    return words


def start_lab(url: str, words: list[str]) -> NoReturn:
    """Replace this process by JupyterLab. It reads the user's configuration as usual; nothing is written to it."""
    previous = os.environ.get("JUPYTER_CONFIG_PATH")
    config = os.pathsep.join([previous, str(_CONFIG)] if previous else [str(_CONFIG)])
    become(url, words, JUPYTER_CONFIG_PATH=config)


def become(url: str, words: list[str], **more: str) -> NoReturn:
    """Replace this process by that program, with the database in HEALKIT_DB for it and all its kernels."""
    environment = {**os.environ, **more, "HEALKIT_DB": url}
    sys.stdout.flush()
    sys.stderr.flush()
    # Not a child process, so that Ctrl-C, signals and the exit code belong to JupyterLab.
    os.execve(sys.executable, words, environment)  # noqa: S606 - no shell is wanted
