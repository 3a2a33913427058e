"""Writing of a run: whole lines, no gap, one writer.

It holds nothing that must not be read.
"""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from run_samples import Blackout, begin, checked, manifest, tell, written

from healkit.errors import RunExists, RunFolderError, RunLocked
from healkit.sanitizer.cleaner import Verbatim
from healkit.tracing import writer as writer_module
from healkit.tracing.reader import validate_run
from healkit.tracing.run_folders import is_being_written, new_run_id
from healkit.tracing.writer import RunWriter

HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from run_samples import begin, tell
writer = begin(Path(sys.argv[2]), "same")
tell(writer)
print("written", flush=True)
sys.stdin.read()
"""


@pytest.mark.requirement("RUN-1", "RUN-2")
def test_a_run_is_a_folder_with_two_manifests_a_trace_and_evidence(tmp_path: Path) -> None:
    folder = written(tmp_path / "runs", "mine")
    assert folder == tmp_path / "runs" / "mine"
    assert {p.name for p in folder.iterdir()} == {
        "run_manifest.json", "trace.jsonl", "evidence", "evidence_manifest.json",
    }  # fmt: skip
    manifest = msgspec.json.decode((folder / "run_manifest.json").read_bytes())
    assert set(manifest) >= {
        "run_id", "started_at", "execution_profile", "execution_mode", "policy_defaults", "app_version", "platform",
        "allowlist", "redaction_policy",
    }  # fmt: skip
    lines = [msgspec.json.decode(line) for line in (folder / "trace.jsonl").read_bytes().splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, 9))
    for line in lines:
        assert {"seq", "ts_utc", "run_id", "event_type", "step_id"} <= set(line)
        assert {"state_signature_before", "state_signature_after"} <= set(line)
        assert datetime.fromisoformat(line["ts_utc"]).utcoffset() == timedelta(0)
    assert lines[0]["step_id"] is None
    assert lines[0]["state_signature_before"] is None
    checked(folder)


@pytest.mark.requirement("RUN-2")
def test_events_from_many_threads_are_whole_lines_numbered_without_a_gap(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    threads = [threading.Thread(target=tell, args=(writer, 20, n)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.finish({})
    run = checked(writer.folder)
    assert [event.seq for event in run.events] == list(range(1, 2 + 8 * 60 + 1))


@pytest.mark.requirement("RUN-2")
def test_a_clock_set_back_breaks_no_numbering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Backwards(datetime):
        calls = 0

        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            cls.calls += 1
            return datetime(2025, 3, 1, tzinfo=UTC) - timedelta(hours=cls.calls)

    monkeypatch.setattr(writer_module, "datetime", Backwards)
    run = checked(written(tmp_path))
    times = [event.ts_utc for event in run.events]
    assert times == sorted(times, reverse=True)
    assert [event.seq for event in run.events] == list(range(1, 9))


@pytest.mark.requirement("RUN-1")
def test_a_second_process_on_a_run_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(Path(__file__).parent), str(tmp_path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "written\n"
    before = (tmp_path / "same" / "trace.jsonl").read_bytes()
    with pytest.raises(RunLocked, match="'same' is being written by another writer"):
        begin(tmp_path, "same")
    holder.kill()
    holder.communicate()
    with pytest.raises(RunExists, match="'same' is there already"):
        begin(tmp_path, "same")
    assert (tmp_path / "same" / "trace.jsonl").read_bytes() == before
    assert not list((tmp_path / ".new").iterdir())
    run = validate_run(tmp_path / "same")
    assert [(problem.kind, problem.fault) for problem in run.problems] == [("unfinished", False)]


def test_a_second_writer_in_one_process_is_refused(tmp_path: Path) -> None:
    first = begin(tmp_path)
    with pytest.raises(RunLocked):
        begin(tmp_path)
    first.finish({})
    assert not is_being_written(first.folder)


@pytest.mark.parametrize(
    "run_id", ["", ".", "..", "a/b", "../a", "/tmp/a", ".hidden", "a\\b", "a\n", "a b", "last", "é", "x" * 129, 3, None]
)  # fmt: skip
@pytest.mark.requirement("RUN-1")
def test_a_run_id_that_is_no_folder_name_is_refused(tmp_path: Path, run_id: Any) -> None:
    with pytest.raises(RunFolderError, match="cannot be a run's id"):
        begin(tmp_path / "runs", run_id)
    assert not (tmp_path / "runs").exists()


def test_ids_sort_by_time_and_differ_within_a_second() -> None:
    now = datetime(2025, 3, 1, 14, 2, 11, tzinfo=UTC)
    ids = [new_run_id(now + timedelta(seconds=i)) for i in range(100)]
    assert ids == sorted(ids)
    assert len({new_run_id(now) for _ in range(1000)}) == 1000


@pytest.mark.requirement("RUN-7")
def test_evidence_is_named_by_its_hash_and_listed(tmp_path: Path) -> None:
    run = checked(written(tmp_path, steps=2))
    assert len(run.evidence) == 4
    assert len({item.path for item in run.evidence}) == 3  # both steps failed alike: one file
    for item in run.evidence:
        content = run.read_evidence(item)
        assert hashlib.sha256(content).hexdigest() == item.sha256
        assert item.path.startswith(f"evidence/{item.sha256}.")
        assert item.size_bytes == len(content)
        assert item.step_id in {"step_1", "step_2"}
        assert item.created_at.tzinfo is not None
        assert item.redacted is False


@pytest.mark.requirement("RUN-9")
def test_only_payload_is_hidden_in_events(tmp_path: Path) -> None:
    open_run = checked(written(tmp_path, "open"))
    writer = begin(tmp_path, "dark", Blackout())
    tell(writer, steps=2)
    writer.append("run_finished", result={"outcome": "completed", "steps": 2, "secret": "payload"})
    writer.append("observation_captured", metadata={"count": 3, "remark": "payload"})
    writer.finish({})
    dark = validate_run(writer.folder)
    assert {problem.kind for problem in dark.problems} == {
        "wrong_order"
    }  # two endings, told on purpose above
    for left, right in zip(open_run.events[:-1], dark.events[:-3], strict=True):
        assert left.event_type == right.event_type
        assert left.state_signature_before == right.state_signature_before
        assert left.state_signature_after == right.state_signature_after
        if left.action_spec is not None and right.action_spec is not None:
            assert right.action_spec == msgspec.structs.replace(left.action_spec, arguments="[HIDDEN]")
        if left.error is not None and right.error is not None:
            assert right.error == msgspec.structs.replace(left.error, message="[HIDDEN]")
            assert right.metadata == {"hidden": {"all": 1}}
    told, remarked = dark.events[-3:-1]
    assert told.result == {"outcome": "completed", "steps": 2, "secret": "[HIDDEN]"}
    assert remarked.metadata == {"count": 3, "remark": "[HIDDEN]", "hidden": {"all": 1}}
    assert all(item.redacted and item.hidden == {"all": 1} for item in dark.evidence)
    assert "payload" not in (writer.folder / "trace.jsonl").read_text()


PAYLOAD = (
    "arguments",
    "message",
    "name",
    "output",
    "reason",
    "result",
    "text",
    "traceback",
    "value",
    "secret",
)
CONTRACT = (
    "code_hash",
    "count",
    "doc_hash",
    "file_ref",
    "log_id",
    "outcome",
    "policy",
    "report_ref",
    "revision",
    "state_key",
    "trace_id",
    "verdict",
)


@pytest.mark.requirement("RUN-9")
def test_each_payload_key_is_hidden_and_each_of_the_contract_stays(tmp_path: Path) -> None:
    """C7: as written to a run, wherever such a key may stand."""
    writer = begin(tmp_path, "dark", Blackout())
    said = dict.fromkeys((*PAYLOAD, *CONTRACT), "as it was")
    writer.append("observation_captured", result=said, metadata=said)
    writer.finish({})
    event = validate_run(writer.folder).events[1]
    expected = dict.fromkeys(PAYLOAD, "[HIDDEN]") | dict.fromkeys(CONTRACT, "as it was")
    assert event.result == expected
    assert event.metadata == expected | {"hidden": event.metadata["hidden"]}


@pytest.fixture
def odd() -> dict[str, Any]:
    """Make what JSON cannot hold, or a line should not."""

    class Raises:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    cyclic: list[Any] = []
    cyclic.append(cyclic)
    return {
        "nan": math.nan, "cyclic": cyclic, "bytes": b"\x00\xff" * 10, "surrogate": "a\ud800b", "keys": {1: 2, (3,): 4},
        "raises": Raises(), "big": "x" * 50_000_000,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["nan", "cyclic", "bytes", "surrogate", "keys", "raises", "big"])
@pytest.mark.requirement("RUN-2", "RUN-7")
def test_any_payload_gives_a_readable_line_and_file(tmp_path: Path, odd: dict[str, Any], kind: str) -> None:
    writer = begin(tmp_path)
    writer.append("observation_captured", result={"payload": odd[kind]})
    writer.keep([("arguments", odd[kind]), ("stdout", str(odd[kind]) if kind != "raises" else "")])
    writer.finish({})
    run = checked(writer.folder)
    assert max(map(len, (writer.folder / "trace.jsonl").read_bytes().splitlines())) < 20_000
    cut = {item.kind: item.truncated_from for item in run.evidence}
    if kind == "big":
        assert cut == {"arguments": 50_000_000, "stdout": 50_000_000}
        assert all(item.size_bytes <= (1 << 20) + 2 for item in run.evidence)  # two quotes in JSON


def test_durable_evidence_gives_the_same_run(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, manifest("a"), Verbatim(), durable=True)
    tell(writer)
    writer.finish({})
    assert writer.problem == ""
    checked(writer.folder)
