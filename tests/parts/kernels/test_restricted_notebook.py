"""Notebook that runs as a whole in the restricted kernel."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from kernelspec_samples import FORBIDDEN, WAIT_S, Notebook, wait_until_nothing_is_left_of
from nbclient import NotebookClient
from programs import python
from waiting import wait_until

from healkit.errors import HealkitError

Start = Callable[..., Notebook]
Install = Callable[..., str]


def executed(cells: list[str], name: str, folder: Path) -> list[list[dict[str, object]]]:
    """Run a notebook with nbclient; the outputs of each cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(
        notebook,
        kernel_name=name,
        allow_errors=True,
        timeout=WAIT_S,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return [cell.outputs for cell in notebook.cells]


@pytest.mark.requirement("WORK-1", "WORK-2")
def test_nbclient_runs_a_notebook_whose_every_way_out_is_denied(
    tier: str, install: Install, tmp_path: Path
) -> None:
    where = "import os; print(os.environ['HOME'], end='')"
    *denied, (home,) = executed([*FORBIDDEN.values(), where], install(), tmp_path)
    for attempt, outputs in zip(FORBIDDEN, denied, strict=True):
        if attempt == "fork" and sys.version_info >= (3, 12):  # warns of a fork with threads, denied or not
            warned = outputs.pop(0)
            assert (warned["name"], "DeprecationWarning" in str(warned["text"])) == ("stderr", True)
        assert [output["output_type"] for output in outputs] == ["error"], attempt
        assert outputs[0]["ename"] in {"PermissionError", "FileNotFoundError", "OSError"}, attempt
    assert not Path("/usr/lib/healkit-was-here").exists()
    wait_until_nothing_is_left_of(Path(str(home["text"])).parent)


@pytest.mark.slow
def test_the_pages_example_holds(install: Install, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "restricted_notebooks.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    install()
    done = python(example, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.requirement("WORK-1")
def test_displays_plots_tables_widgets_and_magics_work(install: Install, tmp_path: Path) -> None:
    cells = [
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
        "import pandas as pd\npd.DataFrame({'a': [1]})",
        "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))",
        "import ipywidgets\nipywidgets.IntSlider(3)",
        "%time sum(range(10))",
        "%%writefile helper.py\nx = 42",
        "import helper; print(helper.x)",
        "import asyncio; await asyncio.sleep(0); print('awaited')",
    ]
    plot, table, html, widget, timed, _, imported, awaited = executed(cells, install(), tmp_path)
    assert "image/png" in plot[-1]["data"]
    assert "<table" in table[0]["data"]["text/html"]
    assert html[0]["data"]["text/html"] == "<b>x</b>"
    assert "application/vnd.jupyter.widget-view+json" in widget[0]["data"]
    assert "Wall time" in timed[0]["text"]
    assert imported[0]["text"] == "42\n"
    assert awaited[0]["text"] == "awaited\n"


@pytest.mark.requirement("WORK-2")
def test_the_notebooks_own_folder_is_out_of_reach_until_it_is_granted(without_grants: Notebook) -> None:
    path = without_grants.started_in / "data.csv"
    path.write_text("a,b\n")
    assert without_grants.run(f"open({str(path)!r})").status == "error"
    assert without_grants.run("import os; print(os.getcwd() == os.environ['HOME'])").text == "True\n"


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_granted_folders_are_reached_as_granted_and_no_further(
    tier: str, start: Start, tmp_path: Path
) -> None:
    """A granted folder is where the cells run; too much memory is an error of its cell, and the notebook goes on."""
    folder = tmp_path / "notebooks"
    (folder / "out").mkdir(parents=True)
    notebook = start(read=["."], write=["out"], memory_mb=200)
    (folder / "data.csv").write_text("a,b\n")
    assert notebook.run("print(open('data.csv').read(), end='')").text == "a,b\n"
    for denied in ("open('new.csv', 'w')", "open('data.csv', 'a')", f"open({str(tmp_path / 'y')!r}, 'w')"):
        assert notebook.run(denied).status == "error", denied
    assert (folder / "data.csv").read_text() == "a,b\n"
    assert notebook.run("open('out/x', 'w').write('done')").status == "ok"
    assert (folder / "out" / "x").read_text() == "done"
    notebook.run("kept = 1")
    assert notebook.run("x = bytearray(400 * 1024 * 1024)").ename == "MemoryError"
    assert notebook.run("print(kept)").text == "1\n"


@pytest.mark.requirement("WORK-2")
@pytest.mark.parametrize(
    ("name", "said"),
    [("nowhere", "grants 'nowhere', but there is no"), ("data", "grants 'data', but that leads to '/etc'")],
)
def test_a_grant_that_is_not_there_or_a_link_is_named_and_nothing_is_started(
    install: Install, tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "data").symlink_to("/etc")
    with pytest.raises(HealkitError, match=said):
        Notebook(install(read=[name]), tmp_path)


@pytest.mark.requirement("WORK-2", "WORK-3")
def test_without_a_boundary_it_does_not_start(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALKIT_ISOLATION", "process")
    with pytest.raises(HealkitError, match="is not a boundary"):
        Notebook(install(), tmp_path)


@pytest.mark.requirement("WORK-1")
@pytest.mark.parametrize(
    "cell", ["while True: pass", "import time; time.sleep(600)", "import asyncio; await asyncio.sleep(600)"]
)
def test_stop_raises_keyboard_interrupt_in_the_cell_and_keeps_the_rest(
    without_grants: Notebook, cell: str
) -> None:
    without_grants.run("kept = 1")
    reply = without_grants.run(f"print('begun', flush=True)\n{cell}", stop=True)
    assert reply.ename in {"KeyboardInterrupt", "CancelledError"}
    assert without_grants.run("print(kept)").text == "1\n"


@pytest.mark.requirement("WORK-1")
def test_a_question_reaches_the_frontend_and_its_answer_the_cell(without_grants: Notebook) -> None:
    reply = without_grants.run("print('you said', input('name? '))", answer="tea")
    assert reply.status == "ok"
    assert reply.text == "you said name? tea\n"


@pytest.mark.requirement("WORK-1")
def test_a_moved_slider_reaches_its_widget(without_grants: Notebook) -> None:
    view = without_grants.run(
        "import ipywidgets\nslider = ipywidgets.IntSlider(3)\nprint(slider.model_id, end='')"
    ).text
    content = {"comm_id": view, "data": {"method": "update", "state": {"value": 7}, "buffer_paths": []}}
    without_grants.client.shell_channel.send(without_grants.client.session.msg("comm_msg", content))
    assert without_grants.run("print(slider.value)").text == "7\n"


@pytest.mark.slow
def test_subshells_work_and_no_debugger_is_offered(without_grants: Notebook) -> None:
    notebook, client = without_grants, without_grants.client
    content = notebook.do(client.kernel_info(reply=True, timeout=WAIT_S))["content"]
    assert "debugger" not in content["supported_features"]
    assert not content.get("debugger")

    def asked(request: str, **content: object) -> dict[str, object]:
        client.control_channel.send(client.session.msg(f"{request}_subshell_request", content))
        answer: dict[str, object] = notebook.do(client.get_control_msg(timeout=WAIT_S))["content"]
        return answer

    made = asked("create")
    assert made["status"] == "ok"
    assert notebook.run("print(1)").text == "1\n"
    assert asked("delete", subshell_id=made["subshell_id"])["status"] == "ok"


@pytest.mark.slow
@pytest.mark.requirement("WORK-1")
def test_a_restart_forgets_names_and_files_and_keeps_the_connection(start: Start) -> None:
    notebook = start()
    notebook.run("kept = 1; open('left.txt', 'w').write('x')")
    notebook.do(notebook.manager.restart_kernel())
    notebook.ready()
    assert notebook.run("kept").ename == "NameError"
    assert notebook.run("open('left.txt')").ename == "FileNotFoundError"
    assert notebook.run("open('/etc/passwd')").status == "error"
    assert notebook.folder() == notebook.root


@pytest.mark.slow
@pytest.mark.requirement("WORK-1", "WORK-2")
def test_a_kernel_outlives_the_thread_that_started_it_and_leaves_nothing_when_it_is_killed(
    tier: str, install: Install, tmp_path: Path
) -> None:
    opened: list[Notebook] = []
    name = install()
    thread = threading.Thread(target=lambda: opened.append(Notebook(name, tmp_path)))
    thread.start()
    thread.join(WAIT_S)
    (notebook,) = opened
    try:
        assert notebook.run("print(1)").text == "1\n"
        assert notebook.do(notebook.manager.is_alive())
        notebook.client.execute("import os; os.kill(os.getpid(), 9)")
        wait_until(lambda: not notebook.do(notebook.manager.is_alive()))
    finally:
        notebook.close()
    wait_until_nothing_is_left_of(notebook.root)


@pytest.mark.slow
@pytest.mark.requirement("SAFE-3")
def test_a_notebook_that_writes_more_than_it_may_is_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3: nothing counted what the cells of a restricted notebook wrote at the landlock tier."""
    monkeypatch.setenv("HEALKIT_ISOLATION", "landlock")
    notebook = start(scratch_mb=8)
    notebook.client.execute(
        "for name in 'abc':\n    open(name, 'wb').write(bytes(6 << 20))\nimport time; time.sleep(600)"
    )
    wait_until(lambda: not notebook.do(notebook.manager.is_alive()))


@pytest.mark.slow
@pytest.mark.requirement("WORK-1")
def test_a_client_that_reads_no_output_holds_up_no_cell(without_grants: Notebook) -> None:
    """Several clients may be at a notebook; one that was suspended must not stop the kernel for the others."""
    code = "from IPython.display import display\nfor i in range(5000):\n    display(i)"
    for cell in (code, "1"):
        reply = without_grants.do(without_grants.client.execute(cell, reply=True, timeout=WAIT_S))
        assert reply["content"]["status"] == "ok"
