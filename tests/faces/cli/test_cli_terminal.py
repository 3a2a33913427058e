"""Terminal: wrong lines, Ctrl-C, colours, completion."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys

import pytest
from waiting import WITHIN_S

HEALABLE = "import time\ndef slow(n: int) -> int:\n    time.sleep(0.2)\n    return sum(i * i for i in range(n * 1000)) - 1\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'? healkit --help shows what there is."),
        (
            ["vault", "shwo"],
            "No such command 'shwo'. Did you mean 'show'? healkit vault --help shows what there is.",
        ),
        (
            ["run"],
            "TOOL is missing (the tool's name). Write healkit run TOOL; healkit vault list lists what there is.",
        ),
        (
            ["vault", "rename", "a b"],
            "NEW is missing (the name it gets). Write healkit vault rename 'a b' NEW; healkit vault lists what there "
            "is.",
        ),
        (
            ["trace", "20251125"],
            "No such command '20251125'. Write healkit trace show 20251125, or healkit trace --help for what there is.",
        ),
        (["seed", "--bogus"], "No such option: --bogus. healkit seed --help shows what it takes."),
        (
            ["vault", "show", "xyz"],
            "No tool named 'xyz' in the vault. It has fibonacci. healkit vault list lists them all.",
        ),
        (["heal", "fibonacci", "--log-id", "99"], "There is no log row 99. healkit log lists the newest."),
        (["demo", "x"], "Got unexpected extra argument(s) (x). healkit demo --help shows what it takes."),
    ],
)
def test_a_line_that_cannot_be_read_is_one_line_with_the_next_step(fibonacci, words, said):
    """It was a box of six lines; then the code came before the sentence."""
    done = fibonacci(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{said}\n")


def test_a_group_without_a_command_shows_what_there_is(fibonacci):
    """It printed its help and exited 2, of which only some groups were an exception."""
    assert "fibonacci" in fibonacci("vault").stdout
    for group in ("log", "requests", "views", "audit", "kernelspec", "trace"):
        done = fibonacci(group)
        assert (done.returncode, done.stderr) == (0, ""), group
        assert done.stdout


def test_options_before_a_subcommand_are_refused_and_not_dropped(fibonacci, tmp_path):
    """`healkit requests --db other.db accept 1` decided on a request of the default database."""
    for group, subcommand in (("vault", "list"), ("requests", "list"), ("views", "list"), ("trace", "list")):
        done = fibonacci(group, "--db", str(tmp_path / "other.db"), subcommand)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Move --db to the end." in done.stderr


@pytest.mark.slow
def test_ctrl_c_ends_a_healing_with_130_and_leaves_no_row_running(cli, environment, tmp_path):
    cli("vault", "add", "slow", "-", "--example", '{"arguments": {"n": 3}, "result": 5}', stdin=HEALABLE)
    cli("run", "slow", "--args", '{"n": 3}')
    process = subprocess.Popen([sys.executable, "-m", "healkit", "heal", "slow", "--auto"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "search" in line:
            break
    process.send_signal(signal.SIGINT)
    shown, told = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, told
    assert "It was stopped; nothing was changed." in shown
    assert "Traceback" not in told
    assert json.loads(cli("log", "--trials", "--status", "RUNNING", "--json").stdout) == []
    assert json.loads(cli("vault", "list", "--json").stdout)[0]["label"] == "slow@1"


def at_a_terminal(environment: dict[str, str], *words: str) -> str:
    """Return what a command writes on a terminal."""
    host, terminal = pty.openpty()
    command = [sys.executable, "-m", "healkit", *words]
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(host, 65536):
            shown += piece
    except OSError:  # how Linux says that the other end was closed
        pass
    os.close(host)
    assert process.wait(WITHIN_S) == 0, shown
    return shown.decode()


@pytest.mark.slow
def test_a_diff_is_coloured_on_a_terminal_only_and_not_under_no_color(fibonacci, environment):
    """U8: there was no colour in a terminal."""
    fibonacci("vault", "patch", "fibonacci", "-", stdin="def fibonacci(n: int):\n    return n\n")
    words = ("vault", "diff", "fibonacci")
    colourful = {**environment, "TERM": "xterm-256color"}
    colourful.pop("NO_COLOR", None)
    shown = at_a_terminal(colourful, *words)
    assert "\x1b[32m+    return n\x1b[0m" in shown
    assert "\x1b[31m-    return n / 0\x1b[0m" in shown
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in at_a_terminal({**colourful, **plain}, *words)
    assert "\x1b" not in fibonacci(*words).stdout


@pytest.mark.slow
def test_a_shell_completes_commands_and_options(environment):
    """U8: there was no completion."""
    for line, offered in (
        ("healkit he", "heal"),
        ("healkit vault his", "history"),
        ("healkit heal --dr", "--dry-run"),
    ):
        words = line.split()
        asked = {"_HEALKIT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        done = subprocess.run([sys.executable, "-m", "healkit"], env={**environment, **asked}, text=True,
                              capture_output=True, timeout=WITHIN_S, check=False)  # fmt: skip
        assert done.stdout.split() == [offered], done.stderr
