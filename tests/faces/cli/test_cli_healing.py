"""`healkit heal`, with and without a person at the terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from healkit import Healkit

BROKEN = "def mean(values: list):\n    return sum(values) / len(value)\n"
EXAMPLE = {"arguments": {"values": [2, 4, 6]}, "result": 4.0}


@pytest.fixture
def mean(cli, environment):
    """Add `mean`, which has failed once and has an example of the right result."""
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        healkit.vault.add("mean", BROKEN, examples=[EXAMPLE])
        assert healkit.execute("mean", arguments={"values": [1, 2, 6]}).failure is not None
    return cli


@pytest.fixture
def terminal(environment: dict[str, str], tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run `healkit WORDS…` on a terminal of its own and answer what it asks, each prompt as often as it comes."""

    def run(words: list[str], *answers: tuple[str, str], **more: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "healkit", *words],
            stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, **more}, cwd=tmp_path,
        )  # fmt: skip
        os.close(theirs)
        seen, answered, give_up = "", set[str](), time.monotonic() + 100
        while time.monotonic() < give_up:
            if not select.select([ours], [], [], 0.1)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                seen += os.read(ours, 4096).decode(errors="replace")
            except OSError:  # its end is closed
                break
            for prompt, answer in answers:
                if seen.rstrip().endswith(prompt):
                    answered.add(prompt)
                    os.write(ours, answer.encode() + b"\n")
        os.close(ours)
        assert answered == {prompt for prompt, _ in answers}, seen
        return process.wait(timeout=30), seen.replace("\r\n", "\n")

    return run


@pytest.mark.requirement("HEAL-1", "HEAL-4", "FACE-6")
def test_without_anybody_to_ask_the_patch_waits(mean, environment):
    done = mean("heal", "mean", "--with", "rules", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["outcome"], told["verdict"]) == (1, "pending", "cured")
    assert "+    return sum(values) / len(values)" in told["diff"]
    assert mean("requests", "accept", str(told["request_id"])).returncode == 0
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        assert healkit.execute_tool("mean", arguments={"values": [1, 2, 6]}) == 3.0
    run = mean("trace", "show", told["run_id"])
    assert run.returncode == 0
    assert "proposal_accepted" in run.stdout


@pytest.mark.requirement("HEAL-4", "FACE-6")
def test_a_dry_run_changes_nothing_auto_keeps_a_cure_and_says_how_to_take_it_back(mean):
    shown = mean("heal", "mean", "--with", "rules", "--dry-run", "--auto")
    assert "patch found, not applied" in shown.stdout
    assert mean("vault", "show", "mean", "--code").stdout == BROKEN
    done = mean("heal", "mean", "--with", "rules", "--auto")
    assert done.returncode == 0, done.stderr
    assert "✓ mean v2 is active: fixed, no regressions" in done.stdout
    assert "undo       healkit vault undo mean" in done.stdout
    assert "· Asking rules." in done.stderr
    healthy = mean("heal", "mean")
    assert (healthy.returncode, "nothing fails any more" in healthy.stdout) == (0, True)
    assert mean("vault", "undo", "mean").returncode == 0
    assert mean("vault", "show", "mean", "--code").stdout == BROKEN


def test_wrong_calls_are_one_line(mean):
    for words, said in (
        (["mean", "--with", "ruls"], "There is no advisor 'ruls'. Did you mean 'rules'"),
        (["mean", "--with", "person"], "This terminal is not interactive"),
        (["nothing"], "No tool named 'nothing'"),
        (["mean", "--budget", "-1"], "budget_s=-1.0"),
        (["mean", "--log-id", "77"], "There is no log row 77"),
    ):
        done = mean("heal", *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert said in done.stderr


@pytest.mark.slow
@pytest.mark.requirement("HEAL-4", "FACE-6")
def test_the_terminal_shows_the_patch_and_asks(mean, terminal):
    code, seen = terminal(["heal", "mean", "--with", "rules"], ("ater [l]:", "y"))
    assert code == 0, seen
    assert "+    return sum(values) / len(values)" in seen
    assert "Verdict: fixed, no regressions." in seen
    assert "mean v2 is active" in seen


@pytest.mark.slow
@pytest.mark.requirement("HEAL-1", "HEAL-4")
def test_where_patches_disagree_the_terminal_is_asked_what_is_right(cli, terminal):
    code = "def discount(items: int) -> int:\n    if items > 10:\n        return 20\n    return 0\n"
    examples = ['{"arguments": {"items": 10}, "result": 20}', '{"arguments": {"items": 3}, "result": 0}']
    cli("vault", "add", "discount", "-", "--example", examples[0], "--example", examples[1], stdin=code)
    ended, seen = terminal(
        ["heal", "discount", "--with", "search", "--auto", "--budget", "30"],
        ("(empty: not known):", "1"),
    )
    assert ended == 0, seen
    assert "The plausible patches give different results. What is the right result of discount(items=" in seen
    assert "asked      discount(items=" in seen


@pytest.mark.slow
@pytest.mark.requirement("HEAL-2")
def test_a_person_edits_until_it_passes(mean, terminal, tmp_path):
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nif grep -q "len(value)" "$1"; then sed -i "s/len(value)/2/" "$1"\n'
                      'else sed -i "s|/ 2|/ len(values)|" "$1"; fi\n')  # fmt: skip
    editor.chmod(0o755)
    mean("run", "mean", "--args", '{"values": [9]}')
    # Who has written it has thereby consented to it.
    code, seen = terminal(
        ["heal", "mean", "--with", "person"], ("Edit again? [Y/n]:", "y"), EDITOR=str(editor)
    )
    assert code == 0, seen
    assert mean("vault", "history", "mean").stdout.count("person") == 2


@pytest.mark.requirement("HEAL-4")
def test_patches_that_only_hide_the_error_are_one_line_with_a_count(cli):
    """Seven lines said so, then the same six below "also tried", with a sign for a line's end in their code."""
    code = "def ratio(wins: int, games: int) -> float:\n    return round(wins / games, 2)\n"
    cli("vault", "add", "ratio", "-", stdin=code)
    cli("run", "ratio", "wins=3", "games=0")
    done = cli("heal", "ratio", "--auto", "--with", "rules,search", "--budget", "20")
    assert re.findall(r"(\w+): (\d+) patches only hide the error\.", done.stderr)
    assert "Only hides the error" not in done.stderr
    assert done.stdout.count("patches that only hide the error") <= 1
    assert "⏎" not in done.stdout + done.stderr
    assert "Before any patch, the check fails." in done.stderr
