"""Calls of JupyterLab's extension in a kernel."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from notebook_kernel import WITHIN_S, NotebookKernel

from healkit.config import Config
from healkit.faces.notebook.cell_output import text_hash
from healkit.faces.notebook.page_calls import Settings

#: What the extension has a kernel run.
CALL = (Path(__file__).parents[3] / "js" / "lab" / "src" / "call.py").read_text()
CELL = "total = 5\ntotl + 1"
#: Ask with the metadata of the request; the reply.
Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


@pytest.mark.requirement("FACE-9")
def test_settings_are_applied_and_what_is_not_set_stays(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEALKIT_PANELS", "HEALKIT_HEAL_ADVISORS"):
        monkeypatch.setenv(name, "1" if name == "HEALKIT_PANELS" else "rules")
    names = set(shell.user_ns)
    Settings().run()
    magics = shell.magics_manager.registry["HealkitMagics"]
    assert (magics.explain, magics.cards) == ("fix", True)
    assert os.environ["HEALKIT_HEAL_ADVISORS"] == "rules"
    Settings(explain="hint", cards=False, panels=False, advisors=["rules", "search"]).run()
    assert (magics.explain, magics.cards) == ("hint", False)
    config = Config.from_environment()
    assert (config.panels, config.heal_advisors) == (False, ("rules", "search"))
    assert set(shell.user_ns) == names


@pytest.fixture
def ask(database: Path, notebook_kernel: NotebookKernel) -> Iterator[Ask]:
    """Run code in a kernel as a page does, with metadata beside it."""
    client: BlockingKernelClient = notebook_kernel.client()

    def asked(code: str, metadata: dict[str, Any]) -> dict[str, Any]:
        content = {
            "code": code,
            "silent": not metadata,
            "store_history": not metadata,
            "user_expressions": {},
            "stop_on_error": False,
        }
        sent = client.session.msg("execute_request", content, metadata=metadata)
        client.shell_channel.send(sent)
        while (reply := client.get_shell_msg(timeout=WITHIN_S))["parent_header"]["msg_id"] != sent["msg_id"]:
            pass
        answer: dict[str, Any] = reply["content"]
        return answer

    yield asked
    client.stop_channels()


FIX = {"call": "fix", "execution_count": 1, "source": text_hash(CELL)}


@pytest.mark.requirement("TRUST-1")
def test_a_kernel_takes_a_call_as_json_that_fits_and_nothing_else(ask: Ask, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    forged: list[Any] = [
        {**FIX, "execution_count": f"1, '') or {code} or (0"},
        {**FIX, "execution_count": True},
        {**FIX, "execution_count": 1.5},
        {**FIX, "execution_count": 0},
        {**FIX, "source": f"') or {code} or ('"},
        {**FIX, "source": f"{text_hash(CELL)}\n"},
        {**FIX, "more": code},
        {"call": "__class__", "code": code},
        {"call": "settings", "explain": code},
        {"call": "settings", "advisors": code},
        [FIX],
        code,
        None,
    ]
    for call in forged:
        reply = ask(CALL, {"healkit": json.dumps(call)})
        assert (reply["status"], reply["ename"]) == ("error", "UsageInvalid"), call
    for metadata in ({"healkit": FIX}, {"healkit": code}, {"healkit": None}, {"other": code}):
        assert ask(CALL, metadata)["ename"] == "UsageInvalid", metadata
    assert not mark.exists()
    assert ask(CALL, {"healkit": json.dumps(FIX)})["status"] == "ok"
    assert ask("assert '_healkit_call' not in globals()", {})["status"] == "ok"
