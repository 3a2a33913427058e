"""Every way out that we know of, tried from inside a worker, at each tier, as root and as an ordinary user.

The tries are made once for each tier and user (conftest.py); a test looks at one of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from escape_runs import RUNS, Run
from probes import OPEN, PROBES, Probe

from healkit.rendering.outputs import safe_output
from healkit.workers.limits import RunFolder
from healkit.workers.probe import NOT_STOPPED

Facts = Callable[[str, str], dict[str, Any]]
PAGE = (Path(__file__).parent.parent.parent / "docs" / "isolation.md").read_text()


def told(execution: dict[str, Any]) -> str:
    """All the text that an execution displayed."""
    return json.dumps(execution["outputs"])


@pytest.mark.requirement("WORK-2")
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_a_tool_that_tries_to(probe: Probe, tier: str, user: str, facts: Facts) -> None:
    fact = facts(tier, user)["batch"][probe.name]
    assert fact.partition(":")[0] == probe.expected(tier), fact


@pytest.mark.requirement("WORK-2")
def test_nothing_that_the_probes_left_behind_has_rights_of_its_own(
    tier: str, user: str, facts: Facts
) -> None:
    assert facts(tier, user)["batch"]["what was left"] == "denied"


@pytest.mark.requirement("WORK-2")
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_host_decides_how_it_ends(run: Run, tier: str, user: str, facts: Facts) -> None:
    execution = facts(tier, user)["runs"][run.name]
    assert execution["ending"] == run.expected(tier), execution
    assert execution["value"] == run.value
    assert execution["duration_ms"] < run.within_s * 1000


@pytest.mark.requirement("WORK-2")
def test_forged_messages_change_nothing_but_what_is_shown(tier: str, user: str, facts: Facts) -> None:
    executions = facts(tier, user)["runs"]
    assert executions["forged error"]["outputs"] == []
    assert executions["forged display of another execution"]["outputs"] == []
    for name in ("message with a wrong signature", "message without a parent", "message that is no message"):
        assert "forged" not in told(executions[name])
        assert "real" in told(executions[name]), f"{name}: what came after it was lost"


@pytest.mark.requirement("WORK-2")
def test_no_script_of_a_tools_reaches_the_page(tier: str, user: str, facts: Facts) -> None:
    outputs = facts(tier, user)["runs"]["script in outputs"]["outputs"]
    assert len(outputs) == 5
    assert "<script" in json.dumps(outputs)
    shown = json.dumps([safe_output(output) for output in outputs]).lower()
    for active in ("<script", "onerror", "javascript:", "onload", "<iframe", "<svg", "widget-view"):
        assert active not in shown.replace("application/vnd.jupyter.widget-view+json; ", "")


@pytest.mark.requirement("WORK-3")
@pytest.mark.parametrize("user", ["any"])
def test_most_probes_succeed_without_a_boundary(user: str, facts: Facts, users: tuple[str, ...]) -> None:
    found = [facts("process", name)["batch"] for name in users]
    broken = {name: fact for batch in found for name, fact in batch.items() if fact.startswith("broken")}
    assert not broken
    useless = [
        (probe.name, [batch[probe.name] for batch in found])
        for probe in PROBES
        if not probe.control and not any(batch[probe.name].startswith(OPEN) for batch in found)
    ]
    assert not useless


@pytest.mark.requirement("WORK-3")
def test_what_a_tier_does_not_stop_is_said() -> None:
    for probe in PROBES:
        for tier in ("namespaces", "landlock"):
            if probe.expected(tier) == OPEN:
                assert probe.said in NOT_STOPPED[tier], probe.name
                assert f"- {probe.said}" in PAGE
    for run in RUNS:
        if run.said:
            assert run.said in NOT_STOPPED["landlock"], run.name
            assert f"- {run.said}" in PAGE


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own() -> None:
    names = [probe.name for probe in PROBES] + [run.name for run in RUNS]
    assert len(names) == len(set(names)) > 200


@pytest.mark.requirement("WORK-2")
def test_removing_a_workers_folder_does_not_follow_its_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("the host's")
    outside.chmod(0o640)
    folder = RunFolder(tmp_path / "run").create()
    shut = folder.scratch / "shut"
    shut.mkdir()
    (shut / "link").symlink_to(outside)
    shut.chmod(0o500)
    refused: list[object] = []

    def refuse_once(path: object, *args: Any, **kwargs: Any) -> None:
        # For root no folder is shut; for anybody else the first attempt fails like this.
        if os.fspath(path).endswith("link") and not refused:
            refused.append(path)
            raise PermissionError(13, "Permission denied", path)
        unlink(path, *args, **kwargs)

    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", refuse_once)
    folder.remove()
    assert refused
    assert outside.stat().st_mode & 0o777 == 0o640
    assert not folder.root.exists()
