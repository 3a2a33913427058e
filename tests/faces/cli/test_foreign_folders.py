"""Folders from elsewhere, with files named as modules.

Each writes its name when it is run. What a plain kernel, without healkit, runs of them by itself is its own.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from mcp import Client, StdioServerParameters

from healkit.faces.commands import rows
from healkit.faces.notebook.cell_output import text_hash

WITHIN_S = 240
ROOT = Path(__file__).parents[3]
#: The code that JupyterLab's extension has a kernel run.
CALL = (ROOT / "js" / "lab" / "src" / "call.py").read_text()
#: Entry-point groups of healkit and its dependencies, in which a foreign plug-in may register.
GROUPS = (
    "healkit",
    "sqlalchemy.dialects",
    "opentelemetry_context",
    "jupyter_client.kernel_provisioners",
)
CONFIGURATIONS = (
    "jupyter_config", "jupyter_server_config", "jupyter_lab_config", "ipython_config", "ipython_kernel_config",
)  # fmt: skip
FAILING = "total = 5\ntotl + 1"
BIN = Path(sys.executable).parent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.requirement("TRUST-1")]


class Folder:
    """Folder from elsewhere."""

    def __init__(self, path: Path, home: Path) -> None:
        self.path, self._ran = path, home / "ran"
        self._ran.mkdir(parents=True)
        names = {name for name in importlib.metadata.packages_distributions() if name.isidentifier()}
        # Jupyter itself starts `python -m ipykernel_launcher` there, whatever is installed.
        for name in {"healkit", "evil", *names, *CONFIGURATIONS} - {"ipykernel_launcher"}:
            mark = self._ran / name
            (path / f"{name}.py").write_text(
                f"open({str(mark)!r}, 'w').close()\nraise ImportError('a trap')\n"
            )
        plugin = path / "evil-1.0.dist-info"
        plugin.mkdir()
        (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
        lines = (f"[{group}]\nrules2 = evil:make\ncontextvars_context = evil:make\n" for group in GROUPS)
        (plugin / "entry_points.txt").write_text("\n".join(lines))
        (path / "broken.py").write_text("def broken(n: int):\n    return n / O\n")
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1 / 0")])
        nbformat.write(book, path / "book.ipynb")
        (path / "orders.csv").write_text("region,revenue\na,1\nb,2\n")

    def ran(self) -> set[str]:
        """Return what was run since the last question."""
        names = {mark.name for mark in self._ran.iterdir()}
        for name in names:
            (self._ran / name).unlink()
        return names


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Keep all that Jupyter, IPython and healkit write below a folder of the test's own."""
    home = tmp_path / "home"
    for name in (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "IPYTHONDIR",
        "XDG_DATA_HOME",
    ):
        monkeypatch.setenv(name, str(home / name.lower()))
    monkeypatch.setenv("HEALKIT_DB", str(home / "healkit.db"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return dict(os.environ)


@pytest.fixture
def folder(tmp_path: Path, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Folder:
    path = tmp_path / "elsewhere"
    path.mkdir()
    monkeypatch.chdir(path)
    return Folder(path, tmp_path / "home")


class Kernel:
    """Kernel that was started in the folder, as Jupyter's server starts a notebook's."""

    def __init__(self, name: str = "python3") -> None:
        manager, client = start_new_kernel(kernel_name=name, startup_timeout=WITHIN_S)
        self.manager, self.client = manager, client

    def run(self, code: str, call: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], str]:
        """Run code, with a call of the page in the request's metadata; the reply, and what was displayed."""
        client: BlockingKernelClient = self.client
        content = {
            "code": code, "silent": False, "store_history": call is None, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": False,
        }  # fmt: skip
        metadata = {} if call is None else {"healkit": json.dumps(call)}
        asked = client.session.msg("execute_request", content, metadata=metadata)
        client.shell_channel.send(asked)
        shown = ""
        while True:
            message = client.get_iopub_msg(timeout=WITHIN_S)
            if message["parent_header"].get("msg_id") != asked["header"]["msg_id"]:
                continue
            content = message["content"]
            shown += content.get("text", "") + content.get("data", {}).get("text/plain", "")
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
        while (reply := client.get_shell_msg(timeout=WITHIN_S))["parent_header"]["msg_id"] != asked["header"][
            "msg_id"
        ]:
            pass
        return reply["content"], shown

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel() -> Iterator[Any]:
    opened: list[Kernel] = []

    def start(name: str = "python3") -> Kernel:
        opened.append(Kernel(name))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def healkit(*words: str, stdin: str = "", timeout_s: float = WITHIN_S) -> subprocess.CompletedProcess[str]:
    """Run the console script in the folder."""
    return subprocess.run(
        [BIN / "healkit", *words], input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def plain(kernel: Any, folder: Folder) -> set[str]:
    """Return what a kernel without healkit runs of the folder by itself: what IPython uses to print an error."""
    kernel().run(FAILING)
    return folder.ran()


def test_a_kernel_that_starts_there_after_setup_loads_the_installed_healkit(
    kernel: Any, folder: Folder
) -> None:
    own = plain(kernel, folder)
    assert healkit("setup").returncode == 0
    started = kernel()
    reply, shown = started.run(
        "import healkit; print(healkit.__file__, 'healkit' in get_ipython().extension_manager.loaded)"
    )
    assert reply["status"] == "ok"
    assert shown.endswith("/healkit/__init__.py True\n")
    assert folder.ran() - own == set()
    reply, shown = started.run(FAILING)
    assert "Did you mean" in shown
    for magic in ("%heal", "%executions", "%vault", "%run_tool nothing", "%views", "%healkit"):
        started.run(magic)
    started.run("%%tool half\ndef half(n: int):\n    return n / O")
    started.run("%run_tool half n=3")
    reply, shown = started.run("%heal half --with rules,rules2")
    assert folder.ran() - own == set()


def test_fix_in_a_kernel_that_has_not_loaded_healkit_imports_nothing_of_the_folder(
    kernel: Any, folder: Folder
) -> None:
    own = plain(kernel, folder)
    started = kernel()
    started.run(FAILING)
    call = {"call": "fix", "execution_count": 1, "source": text_hash(FAILING)}
    reply, shown = started.run(CALL, call)
    assert reply["status"] == "ok", reply
    assert "NameError" in shown
    reply, shown = started.run("%heal")
    assert "total" in shown
    assert folder.ran() - own == set()
    _, shown = started.run("import sys; print(sys.path.count(''), '_healkit_call' in globals())")
    assert shown == "1 False\n"
    # What the user's own cells import is as it was: here, the folder's.
    started.run("import networkx")
    assert folder.ran() - own == {"networkx"}


def test_the_restricted_kernel_that_starts_there_is_clean(kernel: Any, folder: Folder) -> None:
    assert healkit("kernelspec", "install", "--user").returncode == 0
    reply, _ = kernel("healkit-restricted").run("1")
    assert reply["status"] == "ok"
    assert folder.ran() == set()


def test_the_mcp_server_that_the_printed_line_starts_there_is_clean(folder: Folder) -> None:
    printed = json.loads(healkit("mcp", "--print-config", "cursor").stdout)["mcpServers"]["healkit"]

    async def used() -> list[str]:
        parameters = StdioServerParameters(
            command=printed["command"], args=printed["args"], env=dict(os.environ), cwd=str(folder.path)
        )
        async with Client(parameters) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            await client.call_tool("run_code", {"code": "1 / 0"})
            await client.call_tool("get_last_error", {})
            return tools

    assert "run_code" in asyncio.run(asyncio.wait_for(used(), WITHIN_S))
    assert folder.ran() == set()


#: Command → words after it; each is run in the folder, with an empty standard input.
COMMANDS: dict[str, tuple[str, ...]] = {
    "seed": (), "run": ("nothing",), "demo": ("--help",), "lab": ("--no-browser", "--version"), "page": ("--help",), "docs": ("--help",), "setup": (),
    "heal": ("broken", "--auto"), "check": ("book.ipynb",),
    "decide": ("Which region sells most?", "--data", "sales=orders.csv", "--chooser", "person"), "errors": (),
    "doctor": (), "collect": ("--port", "0"), "mcp": (), "status": (), "summarize": ("orders.csv",),
    "graph": (), "suggest": ("total",), "trust": ("--show",), "log": (), "vault": (), "requests": (), "views": (), "audit": (), "db": (), "map": ("--help",),
    "kernelspec": (), "trace": (), "learn": (),
}  # fmt: skip


def collect(*words: str) -> None:
    """Start the collector, and stop it once it listens."""
    command = [BIN / "healkit", "collect", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "Collecting" in process.stderr.readline()
        process.terminate()
        process.stderr.read()


def test_each_command_that_is_run_there_is_clean(folder: Folder) -> None:
    assert set(COMMANDS) == set(rows.names())
    assert healkit("vault", "add", "broken", "broken.py").returncode == 0
    assert healkit("run", "broken", "n=3").returncode == 1
    assert folder.ran() == set()
    ran = {}
    for name, words in COMMANDS.items():
        if name == "collect":
            collect(*words)
        else:
            done = healkit(name, *words)
            assert "Traceback" not in done.stderr, (name, done.stderr)
        ran[name] = folder.ran()
    assert {name: names for name, names in ran.items() if names} == {}
