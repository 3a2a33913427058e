"""Grants on the command line."""

from __future__ import annotations

import json

import pytest


@pytest.mark.requirement("WORK-2", "SAFE-1")
def test_grants_are_given_changed_shown_and_taken_back(fibonacci, tmp_path):
    (tmp_path / "data").mkdir()
    shown = fibonacci("vault", "grant", "fibonacci").stdout
    assert shown == "What fibonacci may do\n  none: sees only its scratch folder\n"
    flags = ["--read", str(tmp_path / "data"), "--memory", "64", "--cpu", "5", "--timeout", "2.5"]
    flags += ["--packages", "pandas,nh3", "--calls", "host.*", "--calls", "fs.read"]
    assert fibonacci("vault", "grant", "fibonacci", *flags).stdout.splitlines()[1:] == [
        f"  read {tmp_path}/data",
        "  memory 64 MiB",
        "  processor time 5 s",
        "  wall time 2.5 s",
        "  packages pandas, nh3 and what they need, besides the worker's own",
        "  calls host.*, fs.read",
    ]
    shown = fibonacci("vault", "show", "fibonacci").stdout
    assert f"  grants       read {tmp_path}/data\n               memory 64 MiB\n" in shown
    fibonacci("vault", "grant", "fibonacci", "--packages", "none", "--calls", "none", "--memory", "65")
    entry = json.loads(fibonacci("vault", "show", "fibonacci", "--json").stdout)
    assert entry["grants"] | {"read": []} == {
        "read": [], "memory_mb": 65, "cpu_s": 5, "timeout_s": 2.5, "packages": [], "calls": []
    }  # fmt: skip
    marked = fibonacci("vault", "grant", "fibonacci", "--own-grants", "yes").stdout
    assert "own grants: keeps all of this when another tool calls it" in marked
    assert "own grants" not in fibonacci("vault", "grant", "fibonacci", "--own-grants", "no").stdout
    cleared = fibonacci("vault", "grant", "fibonacci", "--clear", "--cpu", "7", "--json")
    assert json.loads(cleared.stdout)["grants"] == {"cpu_s": 7}


@pytest.mark.requirement("WORK-2")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--read", "data"], "is not an absolute path. Write it in full"),
        (["--write", "/nowhere/at/all"], "names nothing that exists"),
        (["--packages", "pandsa"], "Did you mean 'pandas'"),
        (["--memory", "0"], "must be greater than 0"),
    ],
)
def test_a_grant_that_cannot_be_kept_is_refused_and_changes_nothing(fibonacci, flags, said):
    refused = fibonacci("vault", "grant", "fibonacci", *flags)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "none: sees only" in fibonacci("vault", "grant", "fibonacci").stdout
