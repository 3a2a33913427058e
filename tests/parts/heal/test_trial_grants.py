"""Grants of code before a person has accepted it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from healing_samples import Idea
from model_server import SECRET_KEY, ModelServer, says

from healkit import Healkit
from healkit.errors import ToolNotFound
from healkit.parts.heal.report import HealReport

pytestmark = pytest.mark.requirement("TRUST-3")

CANARY = "kanarie7f3a9c51"
#: Reads `rates.txt`, and adds where it should multiply.
CODE = """def bill(n: int) -> int:
    rate = int(open(FOLDER + "/rates.txt").read())
    return rate + n
"""
EXAMPLES = [{"arguments": {"n": 3}, "result": 12}, {"arguments": {"n": 5}, "result": 20}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "granted"
    made.mkdir()
    (made / "rates.txt").write_text("4")
    (made / "secret.txt").write_text(CANARY)
    return made


@pytest.fixture
def hk(healkit: Healkit, folder: Path) -> Healkit:
    code = CODE.replace("FOLDER", repr(str(folder)))
    healkit.vault.add("bill", code, examples=EXAMPLES, grants={"read": [str(folder)]})
    return healkit


def code_of(hk: Healkit) -> str:
    return hk.vault.get("bill").code


def notes_on_grants(report: HealReport) -> list[str]:
    return [note for note in report.notes if "not decided for new code" in note]


def test_without_files_one_line_says_what_was_not_decided(hk: Healkit, folder: Path) -> None:
    right = code_of(hk).replace("rate + n", "rate * n")
    report = hk.heal("bill", advisors=[Idea(right)], auto=True)
    (attempt,) = report.attempts
    assert (report.outcome, attempt.verdict) == ("not_cured", "undecided")
    assert attempt.why.endswith(
        f"is unknown: '{folder}/rates.txt' is granted to the tool's accepted code only, so it was not read: "
        "name it in files=…"
    )
    line = (
        "2 checks of 2 not decided for new code, which does not have the tool's grants: "
        f"allow files=['{folder}']."
    )
    assert notes_on_grants(report) == [line]
    assert line in " ".join(str(report).split())
    # The tool's own code was accepted, so its result with the files is known.
    assert "gives 7, but 12 is right" in report.reason
    assert hk.vault.get("bill").revision == 1


@pytest.mark.slow
def test_with_files_a_patch_is_decided_as_any_other(hk: Healkit, folder: Path) -> None:
    right = Idea(code_of(hk).replace("rate + n", "rate * n"))
    for files in (str(folder), "*", str(folder / "rates.txt")):
        report = hk.heal("bill", advisors=[right], auto=True, files=[files], dry_run=files == "*")
        assert (report.outcome, report.verdict_code) == ("shown" if files == "*" else "kept", "cured"), files
        assert notes_on_grants(report) == []
        hk.vault.revert("bill", 1)


def test_files_name_granted_paths_only_and_a_link_leads_nowhere(
    hk: Healkit, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("4")
    (folder / "link.txt").symlink_to(outside)
    reads = "def bill(n: int) -> int:\n    return int(open({!r}).read()) * n\n"
    report = hk.heal(
        "bill",
        advisors=[Idea(reads.format(str(outside)), reads.format(str(folder / "link.txt")))],
        files=[str(outside), str(folder / "link.txt"), "/", "relative"],
    )
    assert [one.plausible for one in report.attempts] == [False, False]


def test_one_named_file_says_nothing_of_the_others(hk: Healkit, folder: Path) -> None:
    other = code_of(hk).replace("rates.txt", "secret.txt").replace("rate + n", "n")
    report = hk.heal("bill", advisors=[Idea(other)], files=[str(folder / "rates.txt")])
    assert report.attempts[0].verdict == "undecided"
    missing = code_of(hk).replace("rates.txt", "none.txt")
    report = hk.heal("bill", advisors=[Idea(missing)], files=[str(folder)])
    assert report.attempts[0].verdict == "not_cured"  # that file is not there, whoever asks
    assert "FileNotFoundError" in report.attempts[0].why


#: Bodies that ask for a file at PATH in another way than by `open`.
ASKING = (
    "import os\n    if not os.path.exists(PATH): raise ValueError('no rates')\n    return undefined * n",
    "import os\n    return os.stat(PATH).st_size and 4 + n",
    "try:\n        rate = int(open(PATH).read())\n    except BaseException:\n        rate = 0\n    return rate + n",
    "import pyarrow\n    return int(pyarrow.memory_map(PATH).read()) + n",
    "import sqlite3\n    sqlite3.connect('file:' + PATH + '?mode=ro', uri=True).execute('SELECT 1 FROM x'); return 0",
)


def test_code_that_asks_for_a_file_in_another_way_is_no_more_wrong(hk: Healkit, folder: Path) -> None:
    """Python tells of `open`; of `os.stat` and C code only the difference with and without the grants does."""
    for body in ASKING:
        code = f"def bill(n: int) -> int:\n    {body}\n".replace("PATH", repr(f"{folder}/rates.txt"))
        hk.vault.patch("bill", code)
        report = hk.heal("bill", advisors=[Idea(code.replace("n:", "n :"))], dry_run=True)
        assert [one.verdict for one in report.attempts] == ["undecided"], body


def test_a_patch_that_needs_no_file_is_decided_without(hk: Healkit) -> None:
    report = hk.heal("bill", advisors=[Idea("def bill(n: int) -> int:\n    return 4 * n\n")], dry_run=True)
    assert report.attempts[0].plausible
    assert notes_on_grants(report) == []


def test_what_a_person_writes_in_an_editor_has_the_tools_grants(hk: Healkit) -> None:
    right = code_of(hk).replace("rate + n", "rate * n")
    report = hk.heal("bill", advisors=[Idea(right, author="person")])
    assert (report.outcome, report.verdict_code) == ("kept", "cured")
    assert hk.try_code("bill", right, {"n": 3}).value == 12


def test_the_source_of_an_example_is_nobodys_accepted_code(healkit: Healkit, folder: Path) -> None:
    peeking = {"call": f"int(open({str(folder / 'secret.txt')!r}).read())", "result": 1}
    code = "def bill(n: int) -> int:\n    return n\n"
    healkit.vault.add("bill", code, examples=[peeking], grants={"read": [str(folder)]})
    report = healkit.heal("bill", advisors=["rules"])
    assert CANARY not in f"{report!r}{report}{report.folder.joinpath('trace.jsonl').read_text()}"


def test_a_nested_tool_that_reads_is_called_only_where_it_is_named(healkit: Healkit, folder: Path) -> None:
    rate = f"def rate(k: int) -> int:\n    return int(open({str(folder / 'rates.txt')!r}).read())\n"
    healkit.vault.add("rate", rate, grants={"read": [str(folder)], "own_grants": True})
    code = "def bill(n: int) -> int:\n    return mcp.vault.rate(k=0) + n\n"
    healkit.vault.add("bill", code, examples=EXAMPLES[:1])
    assert healkit.execute_tool("bill", arguments={"n": 3}) == 7
    right = code.replace("+ n", "* n * mcp.vault.rate(k=1) // 4")
    assert healkit.heal("bill", advisors=[Idea(right)]).attempts[0].verdict == "undecided"
    report = healkit.heal("bill", advisors=[Idea(right)], auto=True, live=["vault.rate"])
    assert report.best is not None
    assert (report.best.patch.code, report.calls_live) == (right, 1)


def test_a_sql_patch_reads_the_log_only_where_that_is_named(healkit: Healkit) -> None:
    healkit.vault.add("bill", "def bill(n: int) -> int:\n    return n\n")
    healkit.execute("bill", arguments={"n": 3})
    sql = "SELECT count(*) AS n FROM executionlog WHERE tool_name = :tool"
    examples = [
        {
            "arguments": {"tool": "bill"},
            "result": {"columns": ["n"], "rows": [[2]], "row_count": 1, "truncated": False},
        }
    ]
    healkit.vault.add("runs", sql, type="sql", examples=examples, grants={"calls": ["healkit.*"]})
    right = sql.replace("count(*)", "1 + count(*)")
    report = healkit.heal("runs", advisors=[Idea(right)])
    assert report.attempts[0].verdict == "undecided"
    assert "allow live=['healkit.sql']" in notes_on_grants(report)[0]
    assert healkit.heal("runs", advisors=[Idea(right)], live=["healkit.*"]).attempts[0].plausible


@pytest.mark.slow
def test_a_model_gets_no_value_that_its_patch_returned(
    server: ModelServer, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `files=` its code may read the file; what it read stays here, whatever way the code passes it on."""
    monkeypatch.setenv("HEALKIT_MODEL_KEY", SECRET_KEY)
    broken = "def bill(n: int) -> int:\n    return undefined\n"
    path = str(folder / "secret.txt")
    for files in ((), (str(folder),)):
        bodies = [
            f"return open({path!r}).read()",
            f"raise ValueError(open({path!r}).read())",
            f"raise type(open({path!r}).read(), (Exception,), {{}})",
            f"print(open({path!r}).read()); return [type(open({path!r}).read(), (list,), {{}})()]",
            f"open({str(folder)!r} + '/../' + open({path!r}).read())",
        ]
        answers = [f"A try.\n\n```python\ndef bill(n: int) -> int:\n    {body}\n```\n" for body in bodies]
        server.plan.extend(says(one) for one in answers)
        config: Any = server.config("openai", heal_model_attempts=len(bodies))
        with Healkit(tmp_path / f"{len(files)}.db", config=config) as hk:
            hk.vault.add("bill", broken, examples=EXAMPLES, grants={"read": [str(folder)]})
            assert hk.execute("bill", arguments={"n": 3}).failure is not None
            report = hk.heal("bill", advisors=["model"], files=files)
            assert len(report.attempts) == len(bodies)
    assert len(server.requests) == 2 * len(bodies)
    told = [json.dumps(request.body) for request in server.requests]
    assert [CANARY in one for one in told] == [False] * len(told)
    assert "gives a str of 15 characters, but an int is right" in told[-1]


def test_a_cassette_runs_without_grants_and_leaves_the_vault_as_it_is(
    hk: Healkit, folder: Path, tmp_path: Path
) -> None:
    ran = hk.execute("bill", arguments={"n": 3})
    assert ran.log_id is not None
    file, _ = hk.export_cassette(ran.log_id, tmp_path / "bill.json")
    assert hk.replay(ran.log_id).value == 7  # the person's own record, with the code that was accepted
    forged = json.loads(file.read_text())
    path = str(folder / "secret.txt")
    for name in ("bill", "unknown"):
        forged["tool_name"] = name
        forged["code"] = f"def {name}(n):\n    return open({path!r}).read()\n"
        file.write_text(json.dumps(forged))
        again = hk.replay(file)
        assert again.value is None
        assert again.failure is not None
        assert again.failure.ename in ("FileNotFoundError", "PermissionError")
        assert CANARY not in f"{again!r}{again.failure}"
    assert hk.vault.names() == ["bill"]
    assert hk.vault.get("bill").revision == 1
    with pytest.raises(ToolNotFound):
        hk.replay(file, active=True)


def test_code_that_was_only_tried_is_replayed_without_grants(hk: Healkit, folder: Path) -> None:
    """A row of a trial has the code of whoever proposed it, which a request keeps in the vault."""
    code = f"def bill(n: int) -> int:\n    return open({str(folder / 'secret.txt')!r}).read()\n"
    hk.requests.add("bill", code)
    tried = hk.try_code("bill", code, {"n": 3})
    assert tried.value == CANARY  # the person's own act
    assert tried.log_id is not None
    again = hk.replay(tried.log_id)
    assert again.failure is not None
    assert CANARY not in repr(again)


def test_recorded_runs_are_run_again_with_other_code_without_grants(hk: Healkit, folder: Path) -> None:
    hk.execute("bill", arguments={"n": 3})
    assert hk.regress("bill").counts == {"same": 1}
    peeks = f"def bill(n: int) -> int:\n    return open({str(folder / 'secret.txt')!r}).read()\n"
    report = hk.regress("bill", peeks)
    assert report.counts == {"undecided": 1}
    assert CANARY not in str(report)
    assert hk.regress("bill", code_of(hk) + "\n", files=[folder]).counts == {"same": 1}


@pytest.mark.requirement("TRUST-2")
@pytest.mark.sqlite  # a copy of the file
def test_a_healing_in_an_untrusted_database_reads_nothing_that_it_grants(
    hk: Healkit, folder: Path, tmp_path: Path
) -> None:
    """A light trial asks no executor, and the note on granted files read them in this process."""
    hk.execute("bill", arguments={"n": 3})
    hk.close()
    ours = tmp_path / "ours"
    ours.mkdir()
    with Healkit(shutil.move(tmp_path / "healkit.db", ours / "healkit.db")) as foreign:
        report = foreign.heal("bill", advisors=["search"], files=["*"], budget_s=5)
    assert report.best is None
    assert not any("rates.txt" in note or "secret.txt" in note for note in report.notes)
