"""Reading of damaged runs.

Each damage is named with its line, and the rest is there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from run_samples import begin, tell, written

from healkit.contracts.runs import Run
from healkit.errors import RunNotFound
from healkit.tracing import reader
from healkit.tracing.reader import in_order, read_run, validate_run
from healkit.tracing.run_folders import find_run, run_folders

Damage = Callable[[Path], None]


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "trace.jsonl").read_bytes().splitlines(keepends=True)


def write_lines(folder: Path, lines: list[bytes]) -> None:
    (folder / "trace.jsonl").write_bytes(b"".join(lines))


def change_line(number: int, change: Callable[[bytes], bytes]) -> Damage:
    """Damage to one line, counted from 1."""

    def damage(folder: Path) -> None:
        lines = lines_of(folder)
        lines[number - 1] = change(lines[number - 1])
        write_lines(folder, lines)

    return damage


def change_field(number: int, field: str, value: object) -> Damage:
    """Damage to one field of one event; `field` is dotted."""

    def change(line: bytes) -> bytes:
        event = msgspec.json.decode(line)
        *path, last = field.split(".")
        target = event
        for name in path:
            target = target[name]
        target[last] = value
        return msgspec.json.encode(event) + b"\n"

    return change_line(number, change)


def change_manifest(name: str, change: Callable[[dict], None]) -> Damage:
    def damage(folder: Path) -> None:
        content = msgspec.json.decode((folder / name).read_bytes())
        change(content)
        (folder / name).write_bytes(msgspec.json.encode(content))

    return damage


def remove(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def first_evidence(folder: Path) -> Path:
    return folder / msgspec.json.decode((folder / "evidence_manifest.json").read_bytes())["items"][0]["path"]


DAMAGES: list[tuple[str, Damage, str, int | None, str]] = [
    ("torn last line", change_line(8, lambda line: line[:20]), "torn_line", 8, "ends after 20 bytes"),
    ("a line of rubbish", change_line(4, lambda _: b"\x00\xff rubbish\n"), "damaged_line", 4, "is not JSON"),
    ("an empty line", change_line(4, lambda _: b"\n"), "damaged_line", 4, "is not JSON"),
    ("half a line in the middle", change_line(4, lambda line: line[:50] + b"\n"), "damaged_line", 4, "is not JSON"),
    ("a line that is no object", change_line(4, lambda _: b"[1]\n"), "damaged_line", 4, "is no event"),
    ("a flipped byte", change_line(4, lambda line: line.replace(b'"seq"', b'"sex"')), "damaged_line", 4, "is no event"),
    ("an unknown event type", change_field(4, "event_type", "made_up"), "damaged_line", 4, "event_type"),
    ("an unknown field", change_field(4, "made_up", 1), "damaged_line", 4, "made_up"),
    ("a time without a zone", change_field(4, "ts_utc", "2025-03-01T00:00:00"), "damaged_line", 4, "ts_utc"),
    ("a line of five megabytes", change_line(4, lambda _: b"x" * 5_000_000 + b"\n"), "damaged_line", 4, "longer than"),
    ("nesting that ends the stack", change_line(4, lambda _: b"[" * 100_000 + b"\n"), "damaged_line", 4, ""),
    ("a gap", lambda f: write_lines(f, lines_of(f)[:3] + lines_of(f)[4:]), "seq_gap", 4, "has seq 5, and 4 is missing"),
    ("a wide gap", lambda f: write_lines(f, lines_of(f)[:3] + lines_of(f)[6:]), "seq_gap", 4, "4 to 6 is missing"),
    ("a repeated line", lambda f: write_lines(f, lines_of(f)[:3] + lines_of(f)[2:]), "seq_repeated", 4, "repeats seq 3"),
    ("another run's line", change_field(4, "run_id", "other"), "wrong_run_id", 4, "is of run 'other'"),
    ("no beginning", lambda f: write_lines(f, lines_of(f)[1:]), "wrong_order", 1, "is no run_started"),
    ("a line after the end", lambda f: write_lines(
        f, [*lines_of(f), lines_of(f)[1].replace(b'"seq":2', b'"seq":9')]), "wrong_order", 9, "after run_finished"),
    ("an error nobody knows", change_field(3, "error.error_code", "MADE_UP"), "unknown_code", 3, "'MADE_UP'"),
    ("a state key that does not fit", change_field(2, "state_signature_before.state_key", "0" * 32),
     "wrong_signature", 2, "does not fit its parts"),
    ("another algorithm", change_field(2, "state_signature_before.algorithm", "md5/9"),
     "wrong_signature", 2, "md5/9"),
    ("a reference to nothing", change_field(4, "evidence_refs", [
        {"kind": "stdout", "uri": f"evidence/{'0' * 64}.txt", "sha256": "0" * 64}]),
     "unlisted_reference", 4, "does not list"),
    ("a reference out of the folder", change_field(4, "evidence_refs", [
        {"kind": "stdout", "uri": "evidence/../../../etc/passwd", "sha256": "0" * 64}]), "damaged_line", 4, "uri"),
    ("no manifest", remove("run_manifest.json"), "manifest_missing", None, "cannot be read"),
    ("a damaged manifest", lambda f: (f / "run_manifest.json").write_text("{"), "manifest_damaged", None, ""),
    ("a manifest of tomorrow", change_manifest("run_manifest.json", lambda m: m.update(schema_version="v4")),
     "unknown_version", None, "schema version 'v4'"),
    ("no trace", remove("trace.jsonl"), "trace_missing", None, "cannot be read"),
    ("no evidence manifest", remove("evidence_manifest.json"), "manifest_missing", None, "cannot be read"),
    ("missing evidence", lambda f: first_evidence(f).unlink(), "evidence_missing", None, "there is no such file"),
    ("changed evidence", lambda f: first_evidence(f).write_text("other"), "evidence_changed", None, "its SHA-256 is"),
    ("evidence that is a link", lambda f: (first_evidence(f).unlink(), first_evidence(f).symlink_to("/etc/passwd")),
     "evidence_missing", None, "it is a link"),
    ("a wrong hash in the manifest", change_manifest(
        "evidence_manifest.json", lambda m: m["items"][0].update(sha256="0" * 64)),
     "evidence_changed", None, "the manifest says 000000000000"),
    ("a wrong size in the manifest", change_manifest(
        "evidence_manifest.json", lambda m: m["items"][0].update(size_bytes=1)),
     "evidence_changed", None, "the manifest says 1"),
    ("evidence that nobody listed", lambda f: (f / "evidence" / "extra.txt").write_text("x"),
     "evidence_extra", None, "does not list it"),
]  # fmt: skip


@pytest.mark.requirement("RUN-2", "RUN-7")
@pytest.mark.parametrize(
    ("damage", "kind", "line", "said"), [row[1:] for row in DAMAGES], ids=[row[0] for row in DAMAGES]
)
def test_damage_is_named_by_line_and_the_rest_is_read(
    tmp_path: Path, damage: Damage, kind: str, line: int | None, said: str
) -> None:
    folder = written(tmp_path)
    damage(folder)
    run = validate_run(folder)
    found = [problem for problem in run.problems if problem.kind == kind]
    assert found, [str(problem) for problem in run.problems]
    assert found[0].line == line
    assert said in found[0].message
    assert found[0].fault
    assert not in_order(run)
    if line is not None:
        assert str(found[0]).startswith(f"trace.jsonl, line {line}: ")
        assert len(run.events) >= 5
    elif kind != "trace_missing":
        assert len(run.events) == 8


@pytest.mark.slow
def test_a_trace_cut_at_any_byte_is_readable(tmp_path: Path) -> None:
    folder = written(tmp_path, steps=1)
    whole = (folder / "trace.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for cut in range(0, len(whole), 7):
        (folder / "trace.jsonl").write_bytes(whole[:cut])
        run = read_run(folder)
        assert len(run.events) == sum(end <= cut for end in ends)
        assert [problem.kind for problem in run.problems] == ([] if cut in (0, *ends) else ["torn_line"])


def test_an_unfinished_run_is_read_up_to_its_last_event(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    tell(writer)
    run = validate_run(writer.folder)
    assert len(run.events) == 4
    assert [(problem.kind, problem.fault) for problem in run.problems] == [("in_progress", False)]
    writer.finish({})
    assert validate_run(writer.folder).problems == []


@pytest.mark.requirement("RUN-8")
def test_a_copied_folder_reads_offline_and_notes_its_other_name(tmp_path: Path) -> None:
    folder = written(tmp_path)
    copy = shutil.copytree(folder, tmp_path / "elsewhere" / "renamed")
    shutil.rmtree(folder)
    code = (
        "import sys; from healkit.tracing.reader import read_run; run = read_run(sys.argv[1])\n"
        "assert not {'sqlalchemy', 'jupyter_client', 'pandas'} & set(sys.modules)\n"
        "print(run.run_id, len(run.events), [run.read_evidence(i)[:6].decode() for i in run.evidence][0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(copy)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "a 8 step 1\n", done.stderr
    run = validate_run(copy)
    assert [(problem.kind, problem.fault) for problem in run.problems] == [("wrong_run_id", False)]
    assert in_order(run)


def test_unlisted_evidence_of_a_dead_writer_is_a_note(tmp_path: Path) -> None:
    """Evidence is there, but the manifest does not list it: a crash between the two leaves such a run."""
    folder = written(tmp_path)
    manifest = msgspec.json.decode((folder / "evidence_manifest.json").read_bytes())
    dropped = {item["path"] for item in manifest["items"]}
    manifest["items"] = []
    (folder / "evidence_manifest.json").write_bytes(msgspec.json.encode(manifest))
    write_lines(folder, lines_of(folder)[:3])  # nor was it referred to
    (folder / "evidence" / f"{'0' * 64}.txt.new").write_text("half")
    run = validate_run(folder)
    assert in_order(run)
    kinds = [problem.kind for problem in run.problems]
    assert kinds.count("evidence_extra") == len(dropped)
    assert kinds.count("leftover") == 1


def test_a_run_is_found_by_path_id_prefix_or_last(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="There is no run yet"):
        find_run(tmp_path, "last")
    for run_id in ("march-1", "march-2", "may-1"):
        written(tmp_path, run_id)
    assert [path.name for path in run_folders(tmp_path)] == ["march-1", "march-2", "may-1"]
    assert find_run(tmp_path, "last").name == "may-1"
    assert find_run(tmp_path, "march-2").name == "march-2"
    assert find_run(tmp_path, "may").name == "may-1"
    assert find_run(tmp_path / "nowhere", str(tmp_path / "may-1")).name == "may-1"
    with pytest.raises(RunNotFound, match="2 runs begin with 'mar'"):
        find_run(tmp_path, "mar")
    with pytest.raises(RunNotFound, match="Did you mean 'march-1'"):
        find_run(tmp_path, "marsh-1")
    for name in ("", "../etc", ".new", "/nowhere"):
        with pytest.raises(RunNotFound):
            find_run(tmp_path, name)


def test_the_reader_skips_an_overlong_line_without_holding_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "LINE_MAX_BYTES", 10_000)
    folder = written(tmp_path)
    write_lines(folder, [*lines_of(folder)[:2], b"x" * 95_000 + b"\n", *lines_of(folder)[2:]])
    run: Run = read_run(folder)
    assert len(run.events) == 8
    assert [(problem.kind, problem.line) for problem in run.problems] == [("damaged_line", 3)]
    assert run.lines == [1, 2, 4, 5, 6, 7, 8, 9]
