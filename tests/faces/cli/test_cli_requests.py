"""Patch requests and undo on the command line."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from healkit import Healkit

FIXED = "def fibonacci(n: int):\n    return n\n"


@pytest.fixture
def asked(fibonacci, environment: dict[str, str]) -> tuple[int, int]:
    """Two requests for fibonacci, older first."""
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        one = healkit.requests.add("fibonacci", FIXED, author="search", verdict="cured", reason="no zero")
        two = healkit.requests.add("fibonacci", FIXED.replace("n\n", "0\n"), author="agent", advisor="claude")
    return one.id, two.id


@pytest.mark.requirement("HEAL-4")
def test_requests_are_listed_shown_accepted_and_declined(cli, asked):
    one, two = asked
    header, *rows = cli("requests").stdout.splitlines()
    assert header.split() == ["request", "state", "tool", "author", "verdict", "when", "reason"]
    assert [row.split()[0] for row in rows] == [str(two), str(one)]
    assert "agent (claude)  not validated" in rows[0]
    assert "2 waiting for your approval" in cli("status").stdout
    shown = cli("requests", "show", str(one)).stdout
    assert "verdict    fixed, no regressions" in shown
    assert "-    return n / 0" in shown
    assert f"accept     healkit requests accept {one}" in shown
    assert cli("requests", "accept", str(one)).stdout == f"Request {one} accepted: it is fibonacci v2\n"
    assert cli("vault", "show", "fibonacci", "--code").stdout == FIXED
    cli("vault", "undo", "fibonacci")
    again = f"Request {one} accepted: it is fibonacci v2; fibonacci v3 is active by now\n"
    assert cli("requests", "accept", str(one)).stdout == again
    assert cli("requests", "decline", str(two), "--reason", "no").stdout == f"Request {two} declined\n"
    assert "waiting" not in cli("status").stdout.replace("traces", "")


@pytest.mark.requirement("HEAL-4", "HEAL-8")
def test_what_a_patch_reaches_further_is_listed_and_shown(cli, asked, environment: dict[str, str]):
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        further = healkit.requests.add("fibonacci", FIXED.replace("return", "open('x')\n    return"))
    line = "! Reaches further than the code it replaces: uses open"
    assert line in cli("requests").stdout
    assert f"\n{line}\n---" in cli("requests", "show", str(further.id)).stdout
    assert line not in cli("requests", "show", str(asked[0])).stdout


@pytest.mark.requirement("HEAL-4")
def test_wrong_decisions_exit_2_and_say_why(cli, asked):
    one, two = asked
    cli("requests", "accept", str(one))
    conflict = cli("requests", "accept", str(two))
    assert (conflict.returncode, conflict.stdout) == (2, "")
    assert conflict.stderr.startswith("fibonacci v2 is the active revision by now")
    turned = cli("requests", "decline", str(one))
    assert turned.returncode == 2
    assert "was already accepted by 'person' and is fibonacci v2" in turned.stderr
    assert cli("requests", "show", "9").returncode == 2
    assert cli("requests", "accept", "x").returncode == 2


def test_json_is_whole_and_the_list_can_be_narrowed(cli, asked):
    one, two = asked
    found = json.loads(cli("requests", "list", "--json").stdout)
    assert [request["id"] for request in found] == [two, one]
    assert (found[1]["label"], found[1]["verdict"], found[1]["code"]) == ("fibonacci@1", "cured", FIXED)
    done = json.loads(cli("requests", "accept", str(one), "--json").stdout)
    assert (done["state"], done["revision"]) == ("accepted", 2)
    assert [r["id"] for r in json.loads(cli("requests", "list", "--pending", "--json").stdout)] == [two]
    assert cli("requests", "list", "--tool", "other").stdout == "No patch requests.\n"
    assert json.loads(cli("status", "--json").stdout)["requests"] == 1


@pytest.mark.slow
def test_examples_are_given_with_the_code_added_listed_and_read_off_the_docstring(cli, fibonacci):
    assert cli("vault", "examples", "fibonacci").stdout == "fibonacci has no examples.\n"
    one, two = '{"arguments": {"n": 1}, "result": 1}', '{"arguments": {"n": -1}, "raises": "ValueError"}'
    documented = 'def fibonacci(n: int):\n    """\n    >>> fibonacci(0)\n    0\n    """\n    return n\n'
    cli("vault", "patch", "fibonacci", "-", "--example", one, stdin=FIXED)
    assert cli("vault", "examples", "fibonacci", "--add", two).stdout == f"{one}\n{two}\n"
    wrong = cli("vault", "patch", "fibonacci", "-", "--example", '{"n": 1}', stdin=documented)
    assert (wrong.returncode, wrong.stderr.split(",")[0]) == (2, "Example 1")
    assert "fibonacci v2" in cli("vault", "show", "fibonacci").stdout
    cli("vault", "patch", "fibonacci", "-", stdin=documented)
    assert json.loads(cli("vault", "examples", "fibonacci", "--json").stdout) == [
        json.loads(one),
        json.loads(two),
    ]
    found = cli("vault", "examples", "fibonacci", "--docstring").stdout
    assert found == '{"arguments": {"n": 0}, "result": 0}\n'
    assert found.strip() in cli("vault", "show", "fibonacci").stdout
    assert "no examples" in cli("vault", "examples", "fibonacci", "--clear").stdout


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
def test_an_example_with_a_frame_is_listed_readably_and_can_be_copied(cli, fibonacci, environment):
    """DATA-5: what `--json` writes is the exact form, which `--add` takes for another tool."""
    frame = pd.DataFrame({"city": ["Bern"], "units": [1]})
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        healkit.vault.add("count", "def count(df):\n    return len(df)\n")
        healkit.vault.add_example("count", {"arguments": {"df": frame}, "result": 1})
        healkit.vault.add("size", "def size(df):\n    return len(df)\n")
    shown = cli("vault", "examples", "count").stdout
    assert shown == """{"arguments": {"df": "DataFrame({'city': ['Bern'], 'units': [1]})"}, "result": 1}\n"""
    assert "DataFrame({'city': ['Bern'], 'units': [1]})" in cli("vault", "show", "count").stdout
    (exact,) = json.loads(cli("vault", "examples", "count", "--json").stdout)
    assert cli("vault", "examples", "size", "--add", json.dumps(exact)).stdout == shown
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        assert healkit.vault.get("size").examples == healkit.vault.get("count").examples
