"""Every way out that we know of, tried from inside a worker.

Each is tried at each tier, as root and as an ordinary user.

The tries are made once for each tier and user (conftest.py); a test looks at all of them and names each that went wrong.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from escape_runs import RUNS
from probes import OPEN, PROBES

from healkit.core.rendering.outputs import safe_output
from healkit.core.workers.tiers import NOT_STOPPED

#: Six hosts share what cores there are; the first of these tests waits for its own.
pytestmark = pytest.mark.timeout(600)
Host, Facts = tuple[str, str], dict[str, Any]
PAGE = (Path(__file__).parents[3] / "docs" / "isolation.md").read_text()


def told(execution: dict[str, Any]) -> str:
    """All the text that an execution displayed."""
    return json.dumps(execution["outputs"])


def listed(wrong: dict[str, str]) -> str:
    """Write one line for each that went wrong."""
    return "".join(f"\n- {name}: {what}" for name, what in wrong.items())


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_every_probe_ends_as_its_tier_promises(host: Host, batch: Facts) -> None:
    tier = host[0]
    wrong = {
        probe.name: f"{batch[probe.name]} (expected: {probe.expected(tier)})"
        for probe in PROBES
        if batch[probe.name].partition(":")[0] != probe.expected(tier)
    }
    assert not wrong, listed(wrong)


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_nothing_that_the_probes_left_behind_has_rights_of_its_own(batch: Facts) -> None:
    assert batch["what was left"] == "denied"


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_the_host_decides_how_every_run_ends(host: Host, runs: Facts) -> None:
    wrong = {}
    for run in RUNS:
        execution = runs[run.name]
        expected = (run.expected(host[0]), run.value)
        if (execution["ending"], execution["value"]) != expected:
            wrong[run.name] = f"{execution!s:.4000} (expected: {expected})"
        elif execution["duration_ms"] >= run.within_s * 1000:
            wrong[run.name] = f"took {execution['duration_ms']:.0f} ms (allowed: {run.within_s:g} s)"
    assert not wrong, listed(wrong)


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_forged_messages_change_nothing_but_what_is_shown(runs: Facts) -> None:
    assert runs["forged error"]["outputs"] == []
    assert runs["forged display of another execution"]["outputs"] == []
    for name in ("message with a wrong signature", "message without a parent", "message that is no message"):
        assert "forged" not in told(runs[name])
        assert "real" in told(runs[name]), f"{name}: what came after it was lost"


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_no_script_of_a_tools_reaches_the_page(runs: Facts) -> None:
    outputs = runs["script in outputs"]["outputs"]
    assert len(outputs) == 5
    assert "<script" in json.dumps(outputs)
    shown = json.dumps([safe_output(output) for output in outputs]).lower()
    for active in ("<script", "onerror", "javascript:", "onload", "<iframe", "<svg", "widget-view"):
        assert active not in shown.replace("application/vnd.jupyter.widget-view+json; ", "")


@pytest.mark.slow
@pytest.mark.requirement("WORK-3")
def test_most_probes_succeed_without_a_boundary(unrestricted: list[Facts]) -> None:
    found = [facts["batch"] for facts in unrestricted]
    broken = {name: fact for batch in found for name, fact in batch.items() if fact.startswith("broken")}
    assert not broken, listed(broken)
    useless = {
        probe.name: str([batch[probe.name] for batch in found])
        for probe in PROBES
        if not probe.control and not any(batch[probe.name].startswith(OPEN) for batch in found)
    }
    assert not useless, listed(useless)


@pytest.mark.requirement("WORK-3")
def test_what_a_tier_does_not_stop_is_said() -> None:
    for probe in PROBES:
        for tier in ("namespaces", "landlock"):
            if probe.expected(tier) == OPEN:
                assert probe.said in NOT_STOPPED[tier], probe.name
    for run in RUNS:
        if run.said:
            assert run.said in NOT_STOPPED["landlock"], run.name


@pytest.mark.requirement("WORK-3")
def test_the_page_has_a_row_for_all_that_a_tier_does_not_stop() -> None:
    for said in {*NOT_STOPPED["namespaces"], *NOT_STOPPED["landlock"]}:
        (row,) = re.findall(rf"^\| {re.escape(said)} \|.*\| (.*?) ?\| (.*?) ?\|$", PAGE, re.MULTILINE)
        assert row == tuple("✓" * (said in NOT_STOPPED[tier]) for tier in ("namespaces", "landlock")), said


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own() -> None:
    names = [probe.name for probe in PROBES] + [run.name for run in RUNS]
    assert len(names) == len(set(names)) > 200
