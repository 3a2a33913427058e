"""Runs written: whole lines, one writer, on failing disks."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from run_samples import Blackout, begin, checked, manifest, tell, written

from healkit import Config, __version__
from healkit.core.secrets.cleaner import Cleaner, Verbatim
from healkit.errors import RunExists, RunFolderError, RunLocked
from healkit.parts.runs import run_folders
from healkit.parts.runs.contract import ExecutionProfile, PolicyDefaults, RunManifest
from healkit.parts.runs.journal import RunJournal
from healkit.parts.runs.reader import in_order, validate_run
from healkit.parts.runs.run_folders import app_version, is_being_written, manifest_for, new_run_id
from healkit.parts.sanitizer.sanitizer import Sanitizer

sys.path.insert(0, str(Path(__file__).parents[2] / "core" / "store"))  # the store's samples
from store_samples import fill

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


@pytest.mark.requirement("RUN-1")
def test_a_second_process_on_a_run_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(Path(__file__).parent), str(tmp_path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "written\n"
    before = (tmp_path / "same" / "trace.jsonl").read_bytes()
    with pytest.raises(RunLocked, match="'same' is already being written"):
        begin(tmp_path, "same")
    holder.kill()
    holder.communicate()
    with pytest.raises(RunExists, match="'same' already exists"):
        begin(tmp_path, "same")
    assert (tmp_path / "same" / "trace.jsonl").read_bytes() == before
    assert not list((tmp_path / ".new").iterdir())
    run = validate_run(tmp_path / "same")
    assert [(problem.kind, problem.fault) for problem in run.problems] == [("unfinished", False)]


@pytest.mark.requirement("RUN-1")
def test_a_run_id_that_cannot_be_a_folder_name_is_refused(tmp_path: Path) -> None:
    names = [
        "",
        ".",
        "..",
        "a/b",
        "../a",
        "/tmp/a",
        ".hidden",
        "a\\b",
        "a\n",
        "a b",
        "last",
        "é",
        "x" * 129,
        3,
        None,
    ]
    for run_id in names:
        with pytest.raises(RunFolderError, match="cannot be a run's id"):
            begin(tmp_path / "runs", run_id)  # type: ignore[arg-type]  # some are not text
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
    assert len({item.path for item in run.evidence}) == 3  # both steps failed in the same way: one file
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
    "arguments", "message", "name", "output", "reason", "result", "text", "traceback", "value", "secret",
)  # fmt: skip


CONTRACT = (
    "code_hash", "count", "doc_hash", "file_ref", "log_id", "outcome", "policy", "report_ref", "revision", "state_key",
    "trace_id", "verdict",
)  # fmt: skip


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


@pytest.mark.requirement("RUN-2", "RUN-7")
def test_any_payload_gives_a_readable_line_and_file(tmp_path: Path, odd: dict[str, Any]) -> None:
    for kind, payload in odd.items():
        writer = begin(tmp_path, kind)
        writer.append("observation_captured", result={"payload": payload})
        writer.keep([("arguments", payload), ("stdout", str(payload) if kind != "raises" else "")])
        writer.finish({})
        run = checked(writer.folder)
        assert max(map(len, (writer.folder / "trace.jsonl").read_bytes().splitlines())) < 20_000
    assert {item.kind: item.truncated_from for item in run.evidence} == {
        "arguments": 50_000_000,
        "stdout": 50_000_000,
    }
    assert all(item.size_bytes <= (1 << 20) + 2 for item in run.evidence)  # two quotes in JSON


def test_durable_evidence_gives_the_same_run_and_a_run_has_one_writer(tmp_path: Path) -> None:
    writer = RunJournal(tmp_path, manifest("a"), Verbatim(), durable=True)
    tell(writer)
    with pytest.raises(RunLocked):  # in the same process too
        begin(tmp_path)
    writer.finish({})
    assert (writer.problem, is_being_written(writer.folder)) == ("", False)
    checked(writer.folder)


@pytest.mark.requirement("RUN-2", "RUN-7")
def test_lines_that_waited_for_a_full_disk_are_written_in_order(
    small_disk: Path,
) -> None:
    writer = begin(small_disk)
    tell(writer)
    filler = fill(small_disk)
    for _ in range(3):  # the page that the trace's last line is in may have room for some more
        tell(writer)
    assert "No space left on device" in writer.problem
    assert "events could not be written" in writer.problem
    assert validate_run(writer.folder).events[-1].seq < 14
    assert in_order(validate_run(writer.folder))
    filler.unlink()
    tell(writer)
    writer.finish({})
    assert "events" not in writer.problem
    assert "evidence could not be kept" in writer.problem  # it is not kept in memory, and that is said
    run = checked(writer.folder)
    assert [event.seq for event in run.events] == list(range(1, 18))
    assert any(event.metadata.get("not_kept") for event in run.events)


def test_a_full_disk_refuses_a_new_run(small_disk: Path) -> None:
    fill(small_disk)
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(RunFolderError, match="No space left on device"):
        begin(small_disk / "runs")
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert list((small_disk / "runs").glob("*/*")) == []


@pytest.mark.requirement("RUN-2")
def test_a_file_size_limit_ends_only_the_record(tmp_path: Path) -> None:
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[1])\nfrom pathlib import Path\n"
        "from run_samples import begin, tell\nwriter = begin(Path(sys.argv[2]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\ntell(writer, 20)\nwriter.finish({})\n"
        "print(writer.problem)\n"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "File too large" in done.stdout
    run = validate_run(tmp_path / "a")
    assert in_order(run)
    assert [event.seq for event in run.events] == list(range(1, len(run.events) + 1))
    assert (tmp_path / "a" / "trace.jsonl").stat().st_size <= 5000


@pytest.mark.requirement("RUN-2")
def test_a_removed_folder_is_a_problem_and_no_error(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    tell(writer)
    subprocess.run(["rm", "-r", str(writer.folder)], check=True)
    tell(writer)
    writer.finish({})
    assert "its folder was removed during the run" in writer.problem
    assert not writer.folder.exists()


def test_a_forked_child_does_not_write_to_its_parents_run(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    before = (writer.folder / "trace.jsonl").read_bytes()
    child = os.fork()
    if child == 0:
        tell(writer)
        writer.finish({})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (writer.folder / "trace.jsonl").read_bytes() == before
    assert is_being_written(writer.folder)
    tell(writer)
    writer.finish({})
    checked(writer.folder)


def test_unfinished_folders_of_dead_processes_are_swept_after_an_hour(tmp_path: Path) -> None:
    begin(tmp_path, "first").finish({})
    unborn = tmp_path / ".new" / "second-xyz"
    unborn.mkdir()
    begin(tmp_path, "third").finish({})
    assert unborn.exists()
    os.utime(unborn, (0, 0))
    begin(tmp_path, "fourth").finish({})
    assert not unborn.exists()


KILLED = """
import os, random, signal, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from run_samples import begin, tell
random.seed(int(sys.argv[3]))
for number in range(50):
    child = os.fork()
    if child == 0:
        # A forked child owns what it begins; it is killed in the middle of whatever it is at.
        n = 0
        while True:
            writer = begin(Path(sys.argv[2]), f"r{number}-{n}")
            tell(writer, random.randrange(60), n)
            writer.finish({})
            n += 1
    give_up = time.monotonic() + 20
    while not Path(sys.argv[2], f"r{number}-0").exists() and time.monotonic() < give_up:
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.slow
@pytest.mark.requirement("RUN-2", "RUN-7")
def test_runs_stay_readable_after_a_hundred_kills(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(tmp_path)]
    hosts = [subprocess.Popen([*command[:-1], str(tmp_path / seed), seed]) for seed in "12"]
    for host in hosts:
        assert host.wait(timeout=100) == 0
    folders = [path for seed in "12" for path in (tmp_path / seed).iterdir() if path.name != ".new"]
    unfinished = 0
    for folder in folders:
        run = validate_run(folder)
        faults = {problem.kind for problem in run.problems if problem.fault}
        assert faults <= {"torn_line"}, [str(problem) for problem in run.problems]
        assert run.manifest is not None
        assert run.events[0].event_type == "run_started"
        assert [event.seq for event in run.events] == list(range(1, len(run.events) + 1))
        unfinished += not run.finished
    assert len(folders) >= 100
    assert 40 <= unfinished <= 100


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def made(cleaner: Cleaner, config: Config | None = None) -> RunManifest:
    return manifest_for(
        "a", ExecutionProfile("lesson", {"level": 1}), config or Config(), cleaner, mode="live",
        policy=PolicyDefaults(), allow=["*"],
    )  # fmt: skip


def repository(root: Path, layout: str) -> Path:
    """Make a checkout with that commit, as git lays it out in files."""
    git = root / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    match layout:
        case "loose":
            (git / "refs" / "heads" / "main").write_text(f"{COMMIT}\n")
        case "packed":
            (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{'f' * 40} refs/heads/x\n{COMMIT} refs/heads/main\n")  # fmt: skip
        case "detached":
            (git / "HEAD").write_text(f"{COMMIT}\n")
        case "worktree":
            (git / "refs" / "heads" / "side").write_text(f"{COMMIT}\n")
            own = git / "worktrees" / "side"
            own.mkdir(parents=True)
            (own / "HEAD").write_text("ref: refs/heads/side\n")
            (own / "commondir").write_text("../..\n")
            root = root / "side"
            root.mkdir()
            (root / ".git").write_text(f"gitdir: {own}\n")
    return root


def test_the_commit_of_a_checkout_is_read_from_its_files(tmp_path: Path) -> None:
    for layout in ("loose", "packed", "detached", "worktree"):
        assert run_folders._checked_out_commit(repository(tmp_path / layout, layout)) == COMMIT, layout
    for root in (tmp_path, repository(tmp_path / "empty", "no commit yet")):
        assert run_folders._checked_out_commit(root) == ""
    assert app_version().partition("+g")[0] == __version__


@pytest.mark.requirement("RUN-1")
def test_the_manifest_names_the_rules_that_redact() -> None:
    """C6: the version of the rule set, and the rules of the user's own."""
    redaction = made(Sanitizer()).redaction_policy
    assert redaction.rule_set_version == made(Sanitizer()).redaction_policy.rule_set_version
    assert redaction.rule_set_version != made(Sanitizer(phone_region="DE")).redaction_policy.rule_set_version
    assert redaction.custom_rules == []
    raw = made(Verbatim(), Config(trace_raw=True)).redaction_policy
    assert (raw.payload, raw.rule_set_version, raw.custom_rules) == ("raw", None, [])


@pytest.mark.requirement("RUN-1")
def test_a_profile_has_the_limits_and_its_own_parameters() -> None:
    profile = made(Verbatim(), Config(timeout_s=7.0)).execution_profile
    assert profile.name == "lesson"
    assert profile.parameters == {
        "isolation": "auto", "timeout_s": 7.0, "cpu_s": 60, "memory_mb": 1024, "scratch_mb": 256, "level": 1,
    }  # fmt: skip
