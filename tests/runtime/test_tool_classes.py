"""Tools as classes, with and without a base.

These are the forms in which tools are written for other hosts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from healkit import Healkit
from healkit.config import Mode
from healkit.errors import ToolShapeError

CHAMELEON = """
from base import ChameleonTool

class FibonacciTool(ChameleonTool):
    def run(self, arguments):
        return arguments["n"] + 1
"""
ANY_BASE = """
import base

def helper(n):
    return n + 1

class Job(base.ChameleonTool):
    def run(self, arguments):
        return helper(arguments["n"])
"""
PLAIN = """
def helper(n):
    return n + 1

class Job:
    def run(self, arguments: dict) -> int:
        return helper(arguments["n"])
"""


@pytest.mark.requirement("VAULT-6")
@pytest.mark.parametrize("mode", ["worker", "subprocess"])
@pytest.mark.parametrize("code", [CHAMELEON, ANY_BASE, PLAIN], ids=["chameleon", "any-base", "plain"])
def test_a_class_with_run_is_a_tool_unchanged(healkit: Healkit, code: str, mode: Mode) -> None:
    """C5: `base` was not there, and a class without a base named `…Tool` was none."""
    healkit.vault.add("job", code)
    assert healkit.execute("job", arguments={"n": 2}, mode=mode).value == 3
    assert healkit.vault.get("job").input_schema == {"type": "object"}


@pytest.mark.requirement("VAULT-6")
def test_a_module_base_of_the_users_own_comes_first(healkit: Healkit, tmp_path: Path) -> None:
    """C5: healkit's is offered where no other is found."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "base.py").write_text("class ChameleonTool:\n    mine = True\n")
    code = f"import sys\nsys.path.append({str(folder)!r})\n{CHAMELEON}".replace(
        'arguments["n"] + 1', "self.mine"
    )
    healkit.vault.add("job", code, grants={"read": folder})
    assert healkit.execute_tool("job") is True


@pytest.mark.requirement("VAULT-6")
def test_of_several_classes_with_run_none_is_guessed(healkit: Healkit) -> None:
    """C5: two classes that could be the tool are refused; an abstract one cannot be."""
    two = PLAIN + "\nclass Other:\n    def run(self, arguments):\n        return 0\n"
    with pytest.raises(ToolShapeError, match="Job, Other all have run"):
        healkit.vault.add("job", two.replace("helper", "_helper"))
    abstract = two.replace("class Other:\n", "class Other:\n    @abc.abstractmethod\n")
    healkit.vault.add("job", f"import abc\n{abstract}")
    assert healkit.execute_tool("job", arguments={"n": 2}) == 3
