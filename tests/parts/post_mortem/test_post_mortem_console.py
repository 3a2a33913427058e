"""Jupyter clients and consoles at a failed run's worker."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jupyter_client import BlockingKernelClient
from post_mortem_samples import NESTED
from waiting import wait_until

from healkit import Execution
from healkit.errors import PostMortemError


@pytest.mark.slow
@pytest.mark.requirement("WORK-5")
def test_any_jupyter_client_can_attach_and_debug_enters_the_failed_stack(
    failed: Callable[..., Execution],
) -> None:
    asked = failed(NESTED, "report", n=3).post_mortem()
    client = BlockingKernelClient(connection_file=str(asked.attach()))
    client.load_connection_file()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=20)
        printed: list[str] = []
        typed = iter(["p weights", "up", "p n", "q"])

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        def run(code: str) -> str:
            printed.clear()
            client.execute_interactive(
                code,
                timeout=20,
                allow_stdin=True,
                output_hook=hear,
                stdin_hook=lambda _: client.input(next(typed)),
            )
            return "".join(printed)

        assert run("print(table.shape, weights)") == "(3, 2) [0, 0, 0]\n"
        debugged = run("%debug")
        assert "[0, 0, 0]" in debugged
        assert debugged.rstrip().endswith("3")
        assert run("try:\n    open('/etc/passwd')\nexcept OSError as e:\n    print('denied')") == "denied\n"
        assert asked.eval("len(weights)").repr == "3"  # both at once
        shows = "from IPython.display import display\nfor i in range(5000):\n    display(i)"
        assert client.execute(shows, reply=True, timeout=60)["content"]["status"] == "ok"
        assert asked.eval("n", frame=0).repr == "3"  # nothing waits for a client that reads no output
    finally:
        client.stop_channels()


@pytest.mark.slow
@pytest.mark.requirement("WORK-5")
def test_the_console_opens_in_a_terminal_and_leaves_the_worker_to_be_asked(tmp_path: Path) -> None:
    script = f"""
from healkit import Healkit
hk = Healkit({str(tmp_path / "healkit.db")!r})
hk.vault.add("tool", "def tool(n):\\n    return 1 / n\\n")
asked = hk.execute("tool", arguments={{"n": 0}}).post_mortem()
asked.console()
print("back:", asked.eval("n + 41").repr)
"""
    leader, follower = pty.openpty()
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb", "JUPYTER_PLATFORM_DIRS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=follower, stdout=follower, stderr=follower, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    heard = ""

    def hears(text: str) -> bool:
        nonlocal heard
        if select.select([leader], [], [], 0)[0]:
            with contextlib.suppress(OSError):  # the other side has closed
                heard += os.read(leader, 65536).decode(errors="replace")
        return text in heard

    def types(line: str, answer: str) -> None:
        """Type a line, and once more at each prompt that comes without the answer.

        On a busy machine jupyter_console takes a slow kernel for a dead one, and asks for the next line at once.
        """
        while answer not in heard:
            prompts = heard.count("In [")
            os.write(leader, line.encode() + b"\r")
            wait_until(lambda: hears(answer) or heard.count("In [") > prompts)  # noqa: B023 - ends in this round

    try:
        wait_until(lambda: hears("In [1]:"))
        types("print('seen', n + 100)", answer="seen 100")
        types("quit(keep_kernel=True)", answer="back:")
        wait_until(lambda: hears("41"))
        process.wait(timeout=30)
    finally:
        print(heard)
        process.kill()
        process.wait()
        os.close(leader)


def test_where_no_console_can_open_the_error_says_what_to_type(
    failed: Callable[..., Execution], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    with pytest.raises(PostMortemError, match=r"jupyter console --existing \S+connection\.json"):
        asked.console()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PostMortemError, match=r"pip install 'healkit\[console\]'.*--existing"):
        asked.console()
