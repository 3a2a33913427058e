"""Tools that the lab adds, and where it opens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from waiting import WITHIN_S, wait_until

from healkit import Healkit
from healkit.faces.cli import lab
from healkit.faces.cli.lab import seeded


def test_an_empty_vault_gets_the_lessons_and_one_with_tools_does_not(healkit: Healkit) -> None:
    """U8: `healkit lab` added 35 tools to the user's own vault."""
    healkit.vault.add("mine", "def mine():\n    return 1\n")
    assert seeded(healkit) == "1 tool; healkit seed adds those of the lessons"
    assert [entry.tool_name for entry in healkit.vault.list()] == ["mine"]
    healkit.vault.remove("mine")
    assert seeded(healkit)
    assert "fibonacci" in {entry.tool_name for entry in healkit.vault.list()}


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make lessons as a wheel has them."""
    folder = tmp_path / "shipped"
    (folder / "data").mkdir(parents=True)
    (folder / "01_your_own_cells.ipynb").write_text("shipped")
    (folder / "data" / "penguins.csv").write_text("species")
    monkeypatch.setattr(lab, "_SHIPPED", folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Make a folder with a notebook and data of the user's own."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "sales.csv").write_text("region")
    return folder


def test_your_own_folder_is_opened_with_the_lessons_below_it(shipped: Path, own: Path) -> None:
    """D9: it opened a hidden folder of lessons, from which your own files could not be reached."""
    place = lab.own_folder(own)
    words = lab.lab_command(place, port=None, browser=True, extra=["--LabApp.default_url=/lab"])
    assert f"--ServerApp.root_dir={own}" in words
    first = words.index("--LabApp.default_url=/lab/tree/healkit-lessons/01_your_own_cells.ipynb")
    assert first < words.index("--LabApp.default_url=/lab")  # what you say comes last, and counts
    assert (own / "healkit-lessons" / "data" / "penguins.csv").read_text() == "species"
    assert not lab.own_folder(own).first  # another time your work is what opens


def test_jupyter_reads_your_configuration_first_and_ours_is_for_this_start_alone(own: Path) -> None:
    script = "import os, healkit.faces.cli.lab as lab; lab.start_lab('sqlite:///x.db', [sys.executable, '-c', asked])"
    asked = (
        "from jupyterlab_server.config import get_page_config; print(get_page_config([])['healkitSidePanel'])"
    )
    program = f"import sys; asked = {asked!r}; {script}"
    (own / "labconfig").mkdir()

    def answer() -> str:
        environment = {**os.environ, "JUPYTER_CONFIG_PATH": str(own)}
        words = [sys.executable, "-c", program]
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=WITHIN_S, check=True
        )
        return done.stdout.strip()

    assert answer() == "open"
    (own / "labconfig" / "page_config.json").write_text('{"healkitSidePanel": "closed"}')
    assert answer() == "closed"


def test_what_you_changed_in_a_lesson_is_never_overwritten(shipped: Path, own: Path) -> None:
    lab.own_folder(own)
    (own / "healkit-lessons" / "01_your_own_cells.ipynb").write_text("changed by the user")
    (shipped / "02_your_failing_notebook.ipynb").write_text("new")
    lab.own_folder(own)
    assert (own / "healkit-lessons" / "01_your_own_cells.ipynb").read_text() == "changed by the user"
    assert (own / "healkit-lessons" / "02_your_failing_notebook.ipynb").read_text() == "new"


def test_a_folder_that_cannot_be_written_is_opened_without_lessons(shipped: Path, own: Path) -> None:
    (own / "healkit-lessons").write_text("a file in their place, which also root cannot write into")
    place = lab.own_folder(own)
    assert (place.root, place.first) == (own, "")
    assert "healkit lab --lessons opens them" in place.said
    assert sorted(path.name for path in own.iterdir()) == ["healkit-lessons", "sales.csv"]


def test_the_lessons_alone_are_a_copy_in_your_data_folder(shipped: Path, own: Path, tmp_path: Path) -> None:
    place = lab.lessons_alone()
    assert place.root == tmp_path / "home" / "healkit" / "notebooks"
    assert (place.root / place.first).read_text() == "shipped"
    (place.root / place.first).write_text("changed by the user")
    assert (lab.lessons_alone().root / place.first).read_text() == "changed by the user"


def test_a_checkout_has_its_lessons_already(shipped: Path, own: Path) -> None:
    (own / "notebooks").mkdir()
    (own / "notebooks" / "01_your_own_cells.ipynb").write_text("the checkout's")
    assert lab.own_folder(own).first == "notebooks/01_your_own_cells.ipynb"
    assert not (own / "healkit-lessons").exists()


@pytest.mark.requirement("FACE-6")
def test_the_page_comes_from_a_server_of_its_own(healkit: Healkit, tmp_path: Path) -> None:
    """M14: the page needed a server of Jupyter's that you had started yourself."""
    healkit.vault.add("mine", "def mine():\n    return 1\n")
    words = [
        sys.executable,
        "-m",
        "healkit",
        "page",
        "--no-browser",
        "--port",
        "0",
        "--db",
        str(healkit.path),
    ]
    environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"), "JUPYTER_TOKEN": "a-token"}
    process = subprocess.Popen(words, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: list((tmp_path / "runtime").glob("jpserver-*.json")))
        (file,) = (tmp_path / "runtime").glob("jpserver-*.json")
        wait_until(lambda: bool(file.read_text()))
        url = json.loads(file.read_text())["url"]
        with httpx.Client(
            base_url=url, headers={"Authorization": "token a-token"}, timeout=WITHIN_S
        ) as client:
            wait_until(lambda: _answers(client))
            assert "<title>healkit" in client.get("healkit/").text
            tools = client.post("healkit/api/panels", json={"op": "tools"}).json()["value"]
            assert "mine" in json.dumps(tools)
            assert httpx.get(f"{url}healkit/", timeout=WITHIN_S).status_code in {302, 403}, (
                "without its token"
            )
    finally:
        process.terminate()
        process.wait(WITHIN_S)


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("api").status_code == 200
    except httpx.TransportError:
        return False
