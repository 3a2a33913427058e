"""Cell order in a real kernel: the card and its button."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from notebook_kernel import NotebookKernel
from notebook_samples import text_of
from waiting import wait_until

WIDGET = "application/vnd.jupyter.widget-view+json"
LOAD = "%load_ext healkit"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"

RunSome = Callable[..., nbformat.NotebookNode]


@pytest.fixture
def run_some(
    database: Path, notebook_kernel: NotebookKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> RunSome:
    """Save these cells as a notebook, and run some of them by number from 1; the kernel knows its path."""

    def run(cells: list[str], order: list[int], name: str = "book.ipynb") -> nbformat.NotebookNode:
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        nbformat.write(book, tmp_path / name)
        monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "book.ipynb"))
        chosen = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cells[number - 1]) for number in order]
        )
        return notebook_kernel.run(chosen, allow_errors=True)

    return run


UNREADABLE = [
    "",
    "[]",
    '{"cells": 3}',
    '{"cells": [{"cell_type": "code"}]}',
    "{" * 10_000,
    "x" * 6_000_000,
    None,
]


@pytest.mark.slow
def test_a_file_that_cannot_be_read_costs_no_card(run: Any, tmp_path: Path) -> None:
    cells = [LOAD]
    for number, content in enumerate(UNREADABLE):
        path = tmp_path / str(number) / "broken.ipynb"  # with no other notebook beside it to be taken for it
        path.parent.mkdir()
        if content is not None:
            path.write_text(content)
        cells.append(f"import os\nos.environ['JPY_SESSION_NAME'] = {str(path)!r}\nsum(prices)")
    for cell in run(*cells).cells[1:]:
        assert [output.output_type for output in cell.outputs] == ["error", "display_data", "display_data"]
        assert "'prices' is not defined." in cell.outputs[1].data["text/plain"]


def test_a_setting_that_hides_the_fix_also_hides_its_button(run_some: RunSome, monkeypatch: Any) -> None:
    cells = [LOAD, "%config HealkitMagics.explain = 'why'", "prices = [1]", "sum(prices)"]
    outputs = run_some(cells, [1, 2, 4]).cells[2].outputs
    assert len(outputs) == 2
    assert "is defined in cell 3" in outputs[1].data["text/plain"]
    assert "Run cell 3" not in outputs[1].data["text/plain"]
    monkeypatch.setenv("HEALKIT_EXPLAIN", "what")
    outputs = run_some(cells, [1, 4]).cells[1].outputs
    assert len(outputs) == 2
    assert "cell 3" not in outputs[1].data["text/plain"]


@pytest.mark.requirement("FACE-4")
def test_a_secret_in_the_cell_that_is_named_does_not_come_onto_the_card(run_some: RunSome) -> None:
    executed = run_some([LOAD, f"prices = '{SECRET}'", "print(prices)"], [1, 3])
    assert "is defined in cell 2" in text_of(executed.cells[1])
    assert SECRET not in json.dumps(executed.cells[1].outputs)


class Kernel:
    """Kernel as a page has it: cells with ids, comms, and what comes back."""

    def __init__(self, client: BlockingKernelClient, path: Path, cells: list[str]) -> None:
        self.book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        nbformat.write(self.book, path)
        self.client = client
        self.asked = 0
        self.comms: list[str] = []
        self.subshells: list[str] = []

    def run(self, number: int) -> dict[str, Any]:
        """Run a cell of the notebook; the reply."""
        return self.wait(self.begin(number))

    def begin(self, number: int) -> str:
        cell = self.book.cells[number - 1]
        content = {"code": cell.source, "silent": False, "store_history": True, "allow_stdin": False}
        message = self.client.session.msg("execute_request", content, metadata={"cellId": cell.id})
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def wait(self, asked: str) -> dict[str, Any]:
        while True:
            reply = self.client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == asked:
                break
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if message["msg_type"] == "comm_open":
                self.comms.append(message["content"]["comm_id"])
            idle = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
            if idle and message["parent_header"].get("msg_id") == asked:
                return dict(reply["content"])

    def value(self, code: str) -> str:
        """Return the repr of an expression, asked without leaving a trace in the history."""
        reply = self.client.execute_interactive(
            "", user_expressions={"it": code}, store_history=False, timeout=60
        )
        return str(reply["content"]["user_expressions"]["it"]["data"]["text/plain"])

    def subshell(self) -> str:
        """Another shell of the kernel, in which JupyterLab sends what panels say while a cell runs."""
        self.client.control_channel.send(self.client.session.msg("create_subshell_request"))
        self.subshells.append(self.client.get_control_msg(timeout=60)["content"]["subshell_id"])
        return self.subshells[-1]

    def send(self, op: str, subshell: str | None = None, question: str = "", **arguments: Any) -> str:
        self.asked += 1
        content = {"op": op, "id": question or str(self.asked), "args": arguments}
        message = self.client.session.msg(
            "comm_msg", {"comm_id": self.comms[-1], "data": {"method": "custom", "content": content}}
        )
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        return str(self.asked)

    def answer(self, question: str) -> dict[str, Any]:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            message = self.client.get_iopub_msg(timeout=60)
            content = message["content"].get("data", {}) if message["msg_type"] == "comm_msg" else {}
            content = content.get("content", {}) if isinstance(content, dict) else {}
            if content.get("id") == question:
                return dict(content)
        raise AssertionError(f"no answer to {question}")

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        return self.answer(self.send(op, **arguments))

    def close(self) -> None:
        for subshell in self.subshells:
            content = {"subshell_id": subshell}
            self.client.control_channel.send(self.client.session.msg("delete_subshell_request", content))
            assert self.client.get_control_msg(timeout=60)["content"]["status"] == "ok"
        self.client.stop_channels()


@pytest.fixture
def kernel(
    database: Path, notebook_kernel: NotebookKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Kernel]]:
    """Start kernels for notebooks of given cells."""
    opened: list[Kernel] = []

    def start(*cells: str, name: str = "book.ipynb") -> Kernel:
        monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "book.ipynb"))
        opened.append(Kernel(notebook_kernel.client(), tmp_path / name, list(cells)))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.mark.requirement("FACE-4")
def test_the_button_runs_the_cells_in_the_users_kernel_and_nothing_does_before_it(kernel: Any) -> None:
    page = kernel(
        LOAD,
        "import sys\nbase = 2\nprint('one')\nbase\nprint('two', file=sys.stderr)\nbase + 1",
        "prices = [base, 5]",
        "sum(prices)",
    )
    page.run(1)
    assert page.run(4)["ename"] == "NameError"
    told = page.ask("advice")["value"]
    assert [step["label"] for step in told["steps"]] == ["cell 2", "cell 3"]
    assert page.value("'prices' in globals() or 'base' in globals()") == "False"
    done = [page.ask("run_cell", step=step)["value"] for step in range(2)]
    assert [(one["ok"], one["count"]) for one in done] == [(True, 3), (True, 4)]
    texts = [one.get("text") or one["data"]["text/plain"] for one in done[0]["outputs"]]
    assert texts == ["one\n", "two\n", "3"]
    assert page.value("(In[3][:10], Out[3], prices)") == "('import sys', 3, [2, 5])"
    again = page.run(4)
    assert (again["status"], again["execution_count"]) == ("ok", 5)
    assert "no step 7" in page.ask("run_cell", step=7)["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["the panel's Stop", "the notebook's own interrupt"])
def test_a_cell_under_the_button_is_interrupted_and_the_kernel_lives(
    kernel: Any, notebook_kernel: NotebookKernel, tmp_path: Path, by: str
) -> None:
    begun = tmp_path / "begun"
    slow = f"import time\nopen({str(begun)!r}, 'w').close()\ntime.sleep(60)\nprices = [1]"
    page = kernel(LOAD, slow, "sum(prices)", "40 + 2")
    page.run(1)
    page.run(3)
    subshell = page.subshell()
    page.answer(
        page.send("advice", subshell)
    )  # ipykernel sends what a page says to where it was last answered from
    question = page.send("run_cell", subshell, step=0)
    wait_until(begun.exists)
    if by == "the panel's Stop":
        page.send("stop", subshell, question=question)
    else:
        notebook_kernel.interrupt()
    done = page.answer(question)["value"]
    assert (done["ok"], done["failure"]) == (False, "KeyboardInterrupt")
    assert page.run(4)["status"] == "ok"


@pytest.mark.slow
def test_the_button_waits_for_the_cell_that_runs(kernel: Any) -> None:
    page = kernel(
        LOAD,
        "prices = [1]",
        "sum(prices)",
        "import asyncio\nawait asyncio.sleep(0.5)\nseen = 'prices' in globals()",
    )
    page.run(1)
    page.run(3)
    slow = page.begin(4)
    question = page.send("run_cell", step=0)
    assert page.answer(question)["value"]["ok"]
    page.client.get_shell_msg(timeout=60)
    assert slow
    assert page.value("seen") == "False"


def test_a_renamed_notebook_is_found_by_its_cells_and_one_that_awaits_is_left_to_its_page(
    kernel: Any,
) -> None:
    awaits = "import asyncio\nawait asyncio.sleep(0)\nprices = [1]"
    page = kernel(LOAD, awaits, "sum(prices)", name="renamed.ipynb")
    page.run(1)
    page.run(3)
    assert re.search("is defined in `?cell 2", page.ask("advice")["value"]["sentence"])
    assert "awaits" in page.ask("run_cell", step=0)["error"]["message"]


@pytest.mark.slow
def test_a_cell_that_was_deleted_before_the_restart_is_remembered(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "book.ipynb"
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    manager, client = start_new_kernel(startup_timeout=60)
    try:
        first = Kernel(client, path, [LOAD, "catalogue = {'apple': 3}", "print(catalogue['apple'])"])
        for number in (1, 2, 3):
            assert first.run(number)["status"] == "ok"
        client.stop_channels()  # what it has yet to read of the old kernel would pass for the new one's
        manager.restart_kernel()
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        second = Kernel(client, path, [LOAD, "print(catalogue['apple'])"])
        second.run(1)
        second.run(2)
        told = second.ask("advice")["value"]
        assert "Before the kernel restart, a cell did: `catalogue = {'apple': 3}`." in told["sentence"]
        assert second.ask("run_cell", step=0)["value"]["ok"]
        assert second.run(2)["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
