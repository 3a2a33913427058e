"""Runs read, damaged and strange, compared, and their schemas."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from run_samples import begin, tell, written

from healkit import errors
from healkit.core.contracts.execution import utc_now
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.errors import RETRYABLE, RunNotFound, catalogue, is_retryable
from healkit.parts.heal import timeline
from healkit.parts.runs import render_runs as runs
from healkit.parts.runs.contract import SCHEMA_VERSION, error_object
from healkit.parts.runs.reader import diff_runs, in_order, read_run, schemas, validate_run
from healkit.parts.runs.run_folders import find_run, run_folders

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
    ("a line that is no object", change_line(4, lambda _: b"[1]\n"), "damaged_line", 4, "is not an event"),
    ("a flipped byte", change_line(4, lambda line: line.replace(b'"seq"', b'"sex"')), "damaged_line", 4, "is not an event"),
    ("an unknown event type", change_field(4, "event_type", "made_up"), "damaged_line", 4, "event_type"),
    ("an unknown field", change_field(4, "made_up", 1), "damaged_line", 4, "made_up"),
    ("a time without a zone", change_field(4, "ts_utc", "2025-03-01T00:00:00"), "damaged_line", 4, "ts_utc"),
    ("a line of five megabytes", change_line(4, lambda _: b"x" * 5_000_000 + b"\n"), "damaged_line", 4, "longer than"),
    ("nesting that ends the stack", change_line(4, lambda _: b"[" * 100_000 + b"\n"), "damaged_line", 4, ""),
    ("a gap", lambda f: write_lines(f, lines_of(f)[:3] + lines_of(f)[4:]), "seq_gap", 4, "has seq 5, but 4 is missing"),
    ("a wide gap", lambda f: write_lines(f, lines_of(f)[:3] + lines_of(f)[6:]), "seq_gap", 4, "4 to 6 is missing"),
    ("a repeated line", lambda f: write_lines(f, lines_of(f)[:3] + lines_of(f)[2:]), "seq_repeated", 4, "repeats seq 3"),
    ("another run's line", change_field(4, "run_id", "other"), "wrong_run_id", 4, "belongs to run 'other'"),
    ("no beginning", lambda f: write_lines(f, lines_of(f)[1:]), "wrong_order", 1, "is not run_started"),
    ("a line after the end", lambda f: write_lines(
        f, [*lines_of(f), lines_of(f)[1].replace(b'"seq":2', b'"seq":9')]), "wrong_order", 9, "after run_finished"),
    ("an error nobody knows", change_field(3, "error.error_code", "MADE_UP"), "unknown_code", 3, "'MADE_UP'"),
    ("a state key that does not fit", change_field(2, "state_signature_before.state_key", "0" * 32),
     "wrong_signature", 2, "does not match its parts"),
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
    ("missing evidence", lambda f: first_evidence(f).unlink(), "evidence_missing", None, "the file does not exist"),
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
def test_damage_is_named_by_line_and_the_rest_is_read(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole")
    for number, (name, damage, kind, line, said) in enumerate(DAMAGES):
        folder = shutil.copytree(whole, tmp_path / str(number) / "a")
        damage(folder)
        run = validate_run(folder)
        problem = next((problem for problem in run.problems if problem.kind == kind), None)
        assert problem is not None, (name, run.problems)
        assert (problem.line, problem.fault, in_order(run)) == (line, True, False), name
        assert said in problem.message, name
        if line is not None:
            assert str(problem).startswith(f"trace.jsonl, line {line}: "), name
        least = 5 if line is not None else 0 if kind == "trace_missing" else 8
        assert len(run.events) >= least, name


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
        "import sys; from healkit.parts.runs.reader import read_run; run = read_run(sys.argv[1])\n"
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
    with pytest.raises(RunNotFound, match="There are no runs yet"):
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


def changed(folder: Path, number: int, **fields: Any) -> Path:
    """Replace fields of one line of the run."""
    lines = (folder / "trace.jsonl").read_bytes().splitlines()
    lines[number - 1] = msgspec.json.encode({**msgspec.json.decode(lines[number - 1]), **fields})
    (folder / "trace.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return folder


def changed_last(folder: Path, **fields: Any) -> Path:
    return changed(folder, len((folder / "trace.jsonl").read_bytes().splitlines()), **fields)


STRANGE: dict[str, Callable[[Path], Path]] = {
    "steps are no number": lambda folder: changed_last(folder, result={"outcome": [], "steps": "many", "failures": {}}),
    "checks are no truths": lambda folder: changed(folder, 2, metadata={"checks": {"arguments": [], "isolation": {}}}),
    "a duration without end": lambda folder: changed(folder, 2, metadata={"duration_ms": 1e308}),
    "a moment before all": lambda folder: changed(folder, 1, ts_utc="0001-01-01T00:00:00+14:00"),
    "a moment after all": lambda folder: changed_last(folder, ts_utc="9999-12-31T23:59:59-14:00"),
    "a kind that is a list": lambda folder: changed(folder, 2, event_type="inspection_finished", result={"sentence": {}, "line": 10**15}),
    "a patch by nobody": lambda folder: changed(folder, 2, event_type="proposal_accepted", metadata={"action": [], "verdict": {}, "revision": []}),
}  # fmt: skip


@pytest.mark.requirement("RUN-8")
def test_a_strange_event_costs_itself_only(tmp_path: Path) -> None:
    """Audit R2."""
    healthy = written(tmp_path, "healthy")
    other = read_run(healthy)
    for number, (name, damage) in enumerate(STRANGE.items()):
        run = validate_run(damage(shutil.copytree(healthy, tmp_path / f"strange-{number}")))
        for document in (
            runs.run_card(run),
            runs.run_list([run, other]),
            runs.run_diff(diff_runs(run, other)),
            timeline.timeline_card(timeline.story_of(run)),
        ):
            assert html_of(document), name
            assert text_of(document), name
        assert "healthy" in text_of(runs.run_list([run, other])), name
        assert len(timeline.story_of(run)["steps"]) > 0, name


@pytest.mark.requirement("RUN-8")
def test_two_equal_runs_do_not_differ_in_times_and_ids(tmp_path: Path) -> None:
    found = diff_runs(read_run(written(tmp_path, "a")), read_run(written(tmp_path, "b")))
    assert found.differences == []
    assert found.same == 8
    assert "✓ no difference, 8 events the same" in text_of(runs.run_diff(found))


@pytest.mark.requirement("RUN-8")
def test_a_changed_argument_is_named_by_path_with_both_values(tmp_path: Path) -> None:
    found = diff_runs(read_run(written(tmp_path, "a", n=1)), read_run(written(tmp_path, "b", n=2)))
    changed = next(d for d in found.differences if "action_spec.arguments.n" in d.fields)
    assert changed.fields["action_spec.arguments.n"] == (1, 2)
    assert "state_signature_before.arguments" in changed.fields
    assert "state_signature_before.tool" not in changed.fields
    text = text_of(runs.run_diff(found))
    assert "action_spec.arguments.n: 1 → 2" in text
    assert "state before: arguments differ" in text
    assert "evidence: stdout differ" in text


@pytest.mark.requirement("RUN-8")
def test_an_extra_event_in_the_middle_is_one_difference(tmp_path: Path) -> None:
    plain = read_run(written(tmp_path, "a", steps=3))
    writer = begin(tmp_path, "b")
    tell(writer, 1)
    writer.append("inspection_started", step_id="step_1")
    for step in ("step_2", "step_3"):
        for event in plain.events:
            if event.step_id == step and event.event_type != "evidence_captured":
                writer.append(
                    event.event_type, step_id=step, before=event.state_signature_before,
                    after=event.state_signature_after, action_spec=event.action_spec, error=event.error,
                )  # fmt: skip
            elif event.step_id == step:
                number = step.removeprefix("step_")
                writer.keep(
                    [("stdout", f"step {number}, n = 0"), ("failure", {"ename": "ValueError"})], step_id=step,
                    before=event.state_signature_before, after=event.state_signature_after,
                )  # fmt: skip
    writer.finish({"outcome": "completed", "steps": 3, "failures": 3})
    (only,) = diff_runs(plain, read_run(writer.folder)).differences
    assert only.left is None
    assert only.right.event_type == "inspection_started"


DOCS = Path(__file__).parents[3] / "docs" / "schemas"


@pytest.mark.requirement("RUN-1", "RUN-2", "RUN-4", "RUN-5")
def test_the_schemas_in_the_docs_are_the_codes() -> None:
    """HEALKIT_REGENERATE=1 writes them anew; the diff is then reviewed."""
    found = schemas()
    assert set(found) == {"trace_event", "run_manifest", "evidence_manifest"}
    for name, schema in found.items():
        file = DOCS / f"{name}.json"
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        if os.environ.get("HEALKIT_REGENERATE"):
            file.write_text(text)
        assert file.read_text() == text
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.requirement("RUN-1", "RUN-2")
def test_written_files_fit_their_schemas(tmp_path: Path) -> None:
    folder = written(tmp_path)
    found = schemas()
    line_schema = jsonschema.Draft202012Validator(found["trace_event"])
    for line in (folder / "trace.jsonl").read_text().splitlines():
        line_schema.validate(json.loads(line))
    for name in ("run_manifest", "evidence_manifest"):
        content = json.loads((folder / f"{name}.json").read_text())
        jsonschema.Draft202012Validator(found[name]).validate(content)


@pytest.mark.requirement("RUN-4")
def test_the_catalogue_holds_every_code_that_can_occur() -> None:
    codes = set(catalogue())
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    classes = [kind for kind in kinds if issubclass(kind, errors.HealkitError)]
    assert {kind.code for kind in classes} <= codes
    assert set(errors.TOOL_CODES) <= codes
    assert "POLICY_HALT" in codes
    assert codes >= RETRYABLE
    assert all(meaning for meaning in catalogue().values())
    enum = schemas()["trace_event"]["$defs"]["ErrorObject"]["properties"]["error_code"]["enum"]
    assert set(enum) == codes


@pytest.mark.requirement("RUN-4")
def test_an_error_object_takes_retryable_from_the_catalogue() -> None:
    for code in catalogue():
        error = error_object(code, "action", "m", utc_now())
        assert error.retryable is is_retryable(code)
        assert error.schema_version == SCHEMA_VERSION
    assert error_object("WORKER_LOST", "action", "m", utc_now()).retryable
    for code in ("TOOL_EXCEPTION", "TOOL_TIMEOUT", "HOST_DIED", "ARGUMENTS_INVALID", "POLICY_HALT"):
        assert not is_retryable(code), f"{code} would be the same again, or its harm would be done twice"
