"""Restrictions of a worker, at each tier."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.contracts.execution import Grants
from healkit.core.workers.tiers import probe
from healkit.errors import IsolationUnavailable

TIERS = ("namespaces", "landlock")


@pytest.fixture(params=TIERS)
def restricted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Healkit]:
    """Return a Healkit at one tier; the test fails where the tier is missing, since that would prove nothing."""
    assert probe(request.param).holds, probe(request.param).problem
    with Healkit(
        tmp_path / "healkit.db", config=Config(isolation=request.param, start_timeout_s=30)
    ) as opened:
        yield opened


@pytest.mark.requirement("WORK-2", "WORK-3")
@pytest.mark.parametrize("tier", TIERS)
def test_the_probe_tried_every_forbidden_thing_and_was_denied(tier: str) -> None:
    report = probe(tier)
    assert report.holds, report.problem
    assert len(report.attempts) >= 7
    assert set(report.attempts.values()) == {"denied"}


@pytest.mark.requirement("WORK-3")
def test_the_probe_can_fail_where_nothing_is_in_force() -> None:
    assert "ALLOWED" in probe("process").attempts.values()


@pytest.mark.requirement("WORK-2")
def test_the_hosts_environment_stays_outside(restricted: Healkit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    restricted.vault.add("env", "import os\ndef env():\n    return dict(os.environ)\n")
    seen = restricted.execute_tool("env")
    assert "SOME_API_KEY" not in seen
    assert "HEALKIT_WORKER_POLICY" not in seen


@pytest.mark.requirement("WORK-3")
def test_no_tool_is_in_a_process_group_or_session_outside(restricted: Healkit) -> None:
    """A signal to its own group would reach them. In a process namespace, a group outside has the number 0."""
    code = "import os\ndef group():\n    return os.getpgrp(), os.getsid(0)\n"
    restricted.vault.add("group", code)
    seen = [restricted.execute("group", mode=mode).value for mode in ("worker", "worker", "subprocess")]
    seen += [result.value for result in restricted.trials([(code, {})])]
    assert len(seen) == 4
    namespaces = restricted.config.isolation == "namespaces"
    outside = (0, 0) if namespaces else (os.getpgrp(), os.getsid(0))
    assert not any(own == other for pair in seen for own, other in zip(pair, outside, strict=True)), seen


@pytest.mark.requirement("WORK-2")
def test_the_scratch_folder_is_there_private_and_gone_afterwards(restricted: Healkit) -> None:
    restricted.vault.add(
        "scratch",
        "import os, tempfile\ndef scratch():\n    open('a.txt', 'w').write('kept?')\n"
        "    with tempfile.NamedTemporaryFile() as f:\n        inside = os.path.dirname(f.name)\n"
        "    return [os.getcwd(), inside, os.listdir('.')]\n",
    )
    first = restricted.execute_tool("scratch")
    second = restricted.execute_tool("scratch")
    assert first[0] == first[1]
    assert first[0] != second[0]
    assert "a.txt" in second[2]
    wait_until(lambda: not Path(first[0]).exists())


@pytest.mark.requirement("WORK-2", "WORK-3")
def test_grants_open_exactly_what_they_name_and_are_recorded(restricted: Healkit, tmp_path: Path) -> None:
    readable, writable = tmp_path / "in", tmp_path / "out"
    readable.mkdir()
    writable.mkdir()
    (readable / "data.txt").write_text("given")
    code = (
        "import os\n"
        "def copy(source: str, target: str) -> str:\n"
        "    text = open(os.path.join(source, 'data.txt')).read()\n"
        "    open(os.path.join(target, 'copy.txt'), 'w').write(text)\n"
        "    try:\n        open(os.path.join(source, 'no.txt'), 'w')\n    except OSError:\n        return text\n"
    )
    grants = Grants(read=(str(readable),), write=(str(writable),))
    restricted.vault.add("copy", code, grants=grants)
    execution = restricted.execute("copy", arguments={"source": str(readable), "target": str(writable)})
    assert (execution.value, execution.isolation) == ("given", restricted.config.isolation)
    assert (writable / "copy.txt").read_text() == "given"
    row = restricted.log.get(execution.log_id)
    assert (row.grants["read"], row.isolation) == ([str(readable)], restricted.config.isolation)


@pytest.mark.slow
@pytest.mark.requirement("WORK-3")
def test_without_a_boundary_nothing_runs_unless_the_user_opts_out_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from healkit.core.workers import sandbox
    from healkit.core.workers import tiers as probing

    # A machine without bubblewrap, asked for nothing less: the probe itself finds out by trying.
    monkeypatch.setattr(sandbox, "bubblewrap_path", lambda: None)
    probing.probe.cache_clear()
    try:
        with Healkit(tmp_path / "x.db", config=Config(isolation="namespaces")) as healkit:
            healkit.vault.add("one", "def one():\n    return 1\n")
            with pytest.raises(IsolationUnavailable, match="HEALKIT_ISOLATION=process") as caught:
                healkit.execute("one")
            assert healkit.log.get(caught.value.log_id).error_code == "ISOLATION_UNAVAILABLE"
    finally:
        probing.probe.cache_clear()
    with Healkit(tmp_path / "x.db", config=Config(isolation="process", start_timeout_s=30)) as healkit:
        execution = healkit.execute("one")
        assert execution.value == 1
        assert execution.isolation == "process"
        assert any("without isolation" in warning for warning in execution.warnings)
