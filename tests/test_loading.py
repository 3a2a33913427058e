"""Packages that `import healkit` and `healkit run` load.

These two are done most.

Each costs its time at every start. A package that is really needed there is added to the list, on purpose.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from healkit import Healkit

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
#: Prints the names of all loaded modules to a file when the interpreter ends.
LISTED = """
import atexit, json, sys
from pathlib import Path
atexit.register(lambda: Path(sys.argv[-1]).write_text(json.dumps(sorted(sys.modules))))
"""
RUN = """
file = sys.argv.pop()
atexit.register(lambda: sys.argv.append(file))
from healkit.faces.cli import main
main()
"""
#: What a run has a use for: the kernel protocol, the command line, JSON.
NEEDED = {"jupyter_client", "zmq", "typer", "msgspec"}
#: What it has none for, and what is large or loads much.
UNWANTED = {
    "IPython", "alembic", "anywidget", "cryptography", "google", "httpx", "ipykernel", "ipywidgets", "jupyter_server",
    "jupyterlab", "jsonschema", "keyring", "matplotlib", "mcp", "nbclient", "nbformat", "numpy", "opentelemetry", "packaging", "pandas",
    "phonenumbers", "prometheus_client", "psutil", "psycopg", "pyarrow", "requests", "rich", "sqlalchemy", "sqlglot", "sqlmodel",
    "stdnum",
}  # fmt: skip
#: Parts of healkit that a run has no use for.
UNWANTED_PARTS = ("parts.doctor.doctor", "faces.cli.demo", "faces.notebook.magics", "faces.notebook.widgets", "faces.server",
                  "parts.explain.catalogue", "parts.explain.facts", "parts.heal.advisors", "parts.heal.loop",
                  "parts.models")  # fmt: skip


def loaded(tmp_path: Path, program: str, *arguments: str) -> set[str]:
    """Return the modules that an interpreter of its own has loaded at the end of the program."""
    file = tmp_path / "modules.json"
    command = [sys.executable, "-c", LISTED + program, *arguments, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return set(json.loads(file.read_text()))


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.fixture(scope="module")
def of_a_run(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return what `healkit run` loads for a tool whose result looks like no number or address of a person."""
    folder = tmp_path_factory.mktemp("run")
    with Healkit(folder / "healkit.db") as healkit:
        healkit.vault.add("double", "def double(n):\n    return 2 * n\n")
    return loaded(folder, RUN, "run", "double", "--args", '{"n": 4}', "--db", str(folder / "healkit.db"))


def test_the_package_itself_loads_nothing_but_the_standard_library(tmp_path: Path) -> None:
    alone = loaded(tmp_path, "")
    with_healkit = loaded(tmp_path, "import healkit")
    assert packages(with_healkit - alone) - set(sys.stdlib_module_names) == {"healkit"}
    assert {name for name in with_healkit if name.startswith("healkit")} == {
        "healkit",
        "healkit.core",
        "healkit.core.own_imports",
        "healkit.package",
    }


def test_the_class_and_the_log_load_no_database_toolkit_and_no_worker_side(tmp_path: Path) -> None:
    unwanted = (UNWANTED | {"jupyter_client", "zmq"}) - {"rich"}
    assert packages(loaded(tmp_path, "import healkit; healkit.Healkit")) & (unwanted | {"pydantic"}) == set()
    with Healkit(tmp_path / "healkit.db") as healkit:
        healkit.vault.add("double", "def double(n):\n    return 2 * n\n")
        healkit.execute("double", arguments={"n": 2})
    assert packages(loaded(tmp_path, RUN, "log", "--db", str(tmp_path / "healkit.db"))) & unwanted == set()


@pytest.mark.slow
def test_a_run_loads_no_package_that_it_has_no_use_for(of_a_run: set[str]) -> None:
    assert packages(of_a_run) & UNWANTED == set()
    assert packages(of_a_run) >= NEEDED, "then the list above is wrong"


def test_a_run_loads_no_part_of_healkit_that_it_has_no_use_for(of_a_run: set[str]) -> None:
    unwanted = tuple(f"healkit.{part}" for part in UNWANTED_PARTS)
    assert [name for name in sorted(of_a_run) if name.startswith(unwanted)] == []


@pytest.mark.parametrize(
    "module", ["core.workers.inside.kernel_main", "core.workers.inside.tool_runner", "faces.notebook.magics"]
)
def test_what_explains_a_failure_is_loaded_with_the_first_failure(tmp_path: Path, module: str) -> None:
    modules = loaded(tmp_path, f"import healkit.{module}")
    assert [
        name
        for name in modules
        if name.startswith(("healkit.parts.explain.facts", "healkit.parts.explain.catalogue"))
    ] == []


def test_a_benchmark_imports_only_what_healkit_has() -> None:
    for file in sorted(BENCHMARKS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "healkit":
                module = importlib.import_module(node.module)
                for name in node.names:
                    there = hasattr(module, name.name) or importlib.util.find_spec(
                        f"{node.module}.{name.name}"
                    )
                    assert there, f"{file.name}: {node.module} has no {name.name}"
