"""Commands, each on a real database with real workers."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from waiting import WITHIN_S, wait_until

from healkit import Healkit

FIXED = "def fibonacci(n: int):\n    print('working on', n)\n    return {'n': n, 'text': 'é'}\n"
OUTCOME = ["status", "value", "log_id", "trace_id", "duration_ms", "isolation", "error"]


@pytest.mark.requirement("FACE-6", "LOG-1", "VAULT-4")
def test_a_tool_fails_is_found_is_patched_and_works(fibonacci, cli_process):
    failed = fibonacci("run", "fibonacci", "--args", '{"n": 10}')
    assert failed.returncode == 1
    assert failed.stdout == "working on 10\n"
    assert failed.stderr.startswith("✗ fibonacci v1 failed: ZeroDivisionError: division by zero")
    assert "healkit run fibonacci --args '{\"n\": 10}'" in failed.stderr

    last = fibonacci("errors", "fibonacci", "--last")
    assert 'File "<fibonacci@1>", line 3, in fibonacci' in last.stdout

    patched = fibonacci("vault", "patch", "fibonacci", "-", "--reason", "no zero", stdin=FIXED)
    assert patched.stdout == "fibonacci v2 saved (patched from v1)\n"

    # A process of its own, with streams that are the operating system's.
    worked = cli_process("run", "fibonacci", "--args", '{"n": 10}')
    assert worked.returncode == 0
    assert worked.stdout.startswith("working on 10\n")
    assert json.loads(worked.stdout.partition("\n")[2]) == {"n": 10, "text": "é"}
    assert "✓ fibonacci v2 · log row 2" in worked.stderr

    rows = json.loads(fibonacci("log", "--json", "--since", "1h").stdout)
    assert [(row["status"], row["revision"], row["origin"]) for row in rows] == [
        ("SUCCESS", 2, "cli"),
        ("FAILURE", 1, "cli"),
    ]
    history = json.loads(fibonacci("vault", "history", "fibonacci", "--json").stdout)
    assert [(r["number"], r["runs"], r["failures"], r["motivating_log_id"]) for r in history] == [
        (1, 1, 1, None),
        (2, 1, 0, 1),
    ]


@pytest.mark.requirement("FACE-6", "LOG-8")
def test_json_of_a_run_is_exactly_the_outcome(fibonacci):
    failed = fibonacci("run", "fibonacci", "--args", '{"n": 10}', "--json")
    outcome = json.loads(failed.stdout)
    assert failed.returncode == 1
    assert list(outcome) == OUTCOME
    assert list(outcome["error"]) == ["code", "ename", "evalue", "traceback"]
    assert (outcome["status"], outcome["error"]["code"]) == ("FAILURE", "TOOL_EXCEPTION")
    assert "<fibonacci@1>" in outcome["error"]["traceback"]
    assert failed.stderr == "working on 10\n"

    fibonacci("vault", "patch", "fibonacci", "-", stdin=FIXED)
    outcome = json.loads(fibonacci("run", "fibonacci", "--args", '{"n": 1}', "--json").stdout)
    assert list(outcome) == OUTCOME
    assert (outcome["status"], outcome["value"], outcome["error"]) == ("SUCCESS", {"n": 1, "text": "é"}, None)
    assert outcome["isolation"] in {"namespaces", "landlock", "process"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "fibonaci"], "TOOL_NOT_FOUND", "Did you mean 'fibonacci'?"),
        (["run", "fibonacci", "--args", '{"n": }'], "ARGUMENTS_INVALID", "column 7"),
        (["run", "fibonacci", "--args", "[1]"], "ARGUMENTS_INVALID", "must be a JSON object"),
        (["run", "fibonacci", "--args", '{"n": "x"}'], "ARGUMENTS_INVALID", "'n' must be integer"),
        (
            ["run", "fibonacci", "--args", '{"n": 1}', "--timeout", "-1"],
            "CONFIG_INVALID",
            "must be greater than 0",
        ),
        (["run", "fibonacci"], "ARGUMENTS_INVALID", "It takes: n. Write healkit run fibonacci n=1\n"),
        (["run", "fibonacci@1"], "USAGE_INVALID", "Run 'fibonacci'"),
        (["vault", "show", "fibonacci@9"], "REVISION_NOT_FOUND", "has no revision 9"),
        (["vault", "revert", "fibonacci", "two"], "USAGE_INVALID", "Not a revision: 'two'"),
        (["vault", "add", "other", "nowhere.py"], "USAGE_INVALID", "Cannot read 'nowhere.py'"),
        (["log", "--since", "yesterday"], "USAGE_INVALID", "Not a valid time: 'yesterday'"),
        (["log", "--status", "broken"], "USAGE_INVALID", "Write SUCCESS"),
    ],
)
@pytest.mark.requirement("FACE-6")
def test_a_wrong_call_exits_2_and_says_the_way_out(fibonacci, words, code, said):
    plain = fibonacci(*words)
    assert plain.returncode == 2
    assert plain.stdout == ""
    assert code not in plain.stderr  # it is in --json
    assert said in plain.stderr
    assert "Traceback" not in plain.stderr
    told = fibonacci(*words, "--json")
    assert told.returncode == 2
    error = json.loads(told.stdout)
    assert error["error"]["code"] == code
    assert words[0] != "run" or list(error) == OUTCOME


@pytest.mark.requirement("FACE-6")
def test_arguments_are_typed_as_the_magic_takes_them(cli):
    """`healkit run ratio wins=3 games=2` was "Got unexpected extra argument(s)"."""
    cli(
        "vault",
        "add",
        "said",
        "-",
        stdin="def said(n, text, on=None, items=()):\n    return [n, text, on, items]\n",
    )
    typed = ("n=3", "text=Ada L", "on=true", "items=[1, 'b']")
    assert json.loads(cli("run", "said", *typed, "--json").stdout)["value"] == [3, "Ada L", True, [1, "b"]]
    both = cli("run", "said", "n=3", "--args", '{"text": "x"}', "--json")
    assert json.loads(both.stdout)["value"] == [3, "x", None, []]
    twice = cli("run", "said", "n=3", "--args", '{"n": 4}')
    assert (twice.returncode, "'n' is given twice" in twice.stderr) == (2, True)
    dashed = cli("run", "said", "--text", "x")
    assert "without dashes: healkit run TOOL text=VALUE" in dashed.stderr
    bare = cli("run", "said", "3", "x y")
    assert bare.stderr == (
        "Arguments need names: healkit run said n=3 text='x y'. Or give --args with a JSON object.\n"
    )
    assert "Arguments need names: healkit run said text=x n=3." in cli("run", "said", "n=3", "x").stderr
    file = cli("run", "said.py")
    assert (
        file.returncode,
        "'said.py' is a file, not a tool. Add it: healkit vault add said said.py" in file.stderr,
    ) == (
        2,
        True,
    )


@pytest.mark.requirement("LOG-8")
def test_a_row_of_the_log_is_shown_in_full_and_a_failed_run_names_it(fibonacci):
    """`run` printed "log row 3", and no command showed it."""
    failed = fibonacci("run", "fibonacci", "n=10")
    assert failed.stderr.endswith("\n             healkit log show 1\n")
    fibonacci("vault", "patch", "fibonacci", "-", stdin=FIXED)
    fibonacci("run", "fibonacci", "n=10")
    shown = fibonacci("log", "show", "1")
    assert (shown.returncode, shown.stdout) == (0, fibonacci("log", "1").stdout)
    assert "✗ fibonacci v1 failed: ZeroDivisionError" in shown.stdout
    assert 'File "<fibonacci@1>", line 3, in fibonacci' in shown.stdout
    assert 'returned {"n":10,"text":"é"}' in fibonacci("log", "2").stdout
    assert json.loads(fibonacci("log", "2", "--json").stdout)["revision"] == 2
    none = fibonacci("log", "show", "9")
    assert (none.returncode, none.stderr) == (2, "There is no log row 9. healkit log lists the newest.\n")


@pytest.mark.requirement("VAULT-8")
def test_code_that_does_not_parse_is_refused_unless_it_is_a_draft(cli):
    refused = cli("vault", "add", "f", "-", stdin="def f(:\n")
    assert refused.returncode == 2
    assert "line 1, column 7" in refused.stderr
    assert "--draft" in refused.stderr
    assert "as a draft" in cli("vault", "add", "f", "-", "--draft", stdin="def f(:\n").stdout


@pytest.mark.parametrize(
    "words",
    [["log"], ["errors"], ["run", "x"], ["vault", "list"], ["vault", "show", "x"], ["vault", "history", "x"],
     ["vault", "diff", "x"], ["vault", "patch", "x", "-"], ["vault", "revert", "x", "1"]],
)  # fmt: skip
def test_what_only_reads_never_makes_a_database(cli, tmp_path, words):
    done = cli(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("There is no database at ")
    for way in ("healkit demo", "healkit seed", "healkit vault add NAME FILE"):
        assert way in done.stderr
    assert not (tmp_path / "healkit.db").exists()


def test_every_command_takes_the_database(cli, tmp_path):
    elsewhere = tmp_path / "elsewhere.db"
    (tmp_path / "one.sql").write_text("SELECT 1 AS n")
    added = cli("vault", "add", "one", "one.sql", "--db", str(elsewhere))
    assert added.returncode == 0
    assert elsewhere.exists()
    assert json.loads(cli("run", "one", "--db", str(elsewhere)).stdout)["rows"] == [[1]]
    assert not (tmp_path / "healkit.db").exists()


def test_the_vault_is_listed_shown_compared_and_reverted(fibonacci, tmp_path):
    """U8: `vault diff` had no `--json`, and a revision could not be typed as it is shown."""
    fibonacci("vault", "patch", "fibonacci", "-", stdin=FIXED)
    for command in ("add", "patch"):  # it said "saved", and nothing was
        same = fibonacci("vault", command, "fibonacci", "-", stdin=FIXED)
        assert same.stdout == "fibonacci v2 unchanged (the vault already has this code)\n"
    late = fibonacci(
        "vault", "patch", "fibonacci", "-", "--parent", "1", stdin="def fibonacci(n):\n    return 1\n"
    )
    assert (late.returncode, "--parent 2" in late.stderr) == (2, True)
    assert "fibonacci" in fibonacci("vault", "list").stdout
    assert json.loads(fibonacci("vault", "list", "--json").stdout)[0]["label"] == "fibonacci@2"
    assert fibonacci("vault", "show", "fibonacci", "--code").stdout == FIXED
    assert json.loads(fibonacci("vault", "show", "fibonacci@1", "--json").stdout)["revision"] == 1
    assert "-    return n / 0" in fibonacci("vault", "diff", "fibonacci").stdout
    assert fibonacci("vault", "diff", "fibonacci", "2", "2").stdout == "fibonacci: no difference.\n"
    compared = json.loads(fibonacci("vault", "diff", "fibonacci", "v1", "v2", "--json").stdout)
    assert (compared["tool_name"], compared["from"], compared["to"]) == ("fibonacci", 1, 2)
    assert compared["diff"].startswith("--- fibonacci v1\n+++ fibonacci v2\n")
    assert (
        fibonacci("vault", "revert", "fibonacci", "@1").stdout
        == "fibonacci v3 saved (the code of v1 again)\n"
    )
    assert "no such failure" in fibonacci("vault", "blame", "fibonacci").stdout


@pytest.mark.slow
def test_a_tool_is_renamed_removed_and_restored(cli):
    """C4: in a terminal, with a tool that calls it by the old name."""
    cli("vault", "add", "price", "-", stdin="def run(n):\n    return n\n")
    cli("vault", "add", "bill", "-", stdin="def run(n):\n    return mcp.vault.price(n=n)\n")
    assert cli("vault", "rename", "price", "cost").stdout == (
        "price is called cost now, with its revisions and runs. The old name still means it. mcp.vault.price is called "
        "by bill v1: their code is not changed.\n"
    )
    assert json.loads(cli("run", "price", "--args", '{"n": 3}', "--json").stdout)["value"] == 3
    assert cli("vault", "remove", "cost", "--reason", "unused").stdout == (
        "cost removed; its code, revisions and runs are kept, and healkit vault restore cost brings it back.\n"
    )
    assert cli("vault", "remove", "cost").stdout == "cost was removed already.\n"
    refused = cli("run", "cost", "--args", '{"n": 3}')
    assert (refused.returncode, "was removed on" in refused.stderr) == (2, True)
    assert [entry["label"] for entry in json.loads(cli("vault", "list", "--removed", "--json").stdout)] == [
        "cost@1"
    ]
    assert "removed" in cli("vault", "show", "cost").stdout
    assert cli("vault", "restore", "cost").stdout == "cost v1 is back\n"
    again = cli("vault", "restore", "cost")  # it said that it was back, of a tool that was never removed too
    assert (again.returncode, again.stdout) == (0, "cost v1 was not removed; nothing has changed\n")
    taken = cli("vault", "rename", "bill", "price")
    assert (taken.returncode, "'price'" in taken.stderr) == (2, True)


@pytest.mark.requirement("LOG-9")
def test_no_errors_is_said_in_words(fibonacci, environment):
    assert fibonacci("errors", "--last").stdout.startswith("No errors found")
    assert fibonacci("errors", "--last", "--json").stdout == "null\n"
    assert fibonacci("errors", "--json").stdout == "[]\n"
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        healkit.execute("fibonacci", arguments={"n": 1})
    assert "Did you mean 'fibonacci'?" in fibonacci("errors", "fibonaci").stdout
    assert "ZeroDivisionError" in fibonacci("errors").stdout


@pytest.mark.requirement("LOG-15", "VAULT-7")
def test_seeding_twice_changes_nothing(cli):
    first = json.loads(cli("seed", "--json").stdout)
    again = json.loads(cli("seed", "--json").stdout)
    assert sorted(first["tools_added"]) == sorted(again["tools_kept"])
    assert again["tools_added"] == []


@pytest.mark.requirement("WORK-3")
def test_the_doctor_says_what_is_in_force(cli):
    report = json.loads(cli("doctor", "--json").stdout)
    assert report["tier"] in {"namespaces", "landlock", "process", ""}
    assert {"name", "ok", "detail", "fix"} == report["checks"][0].keys()
    text = cli("doctor")
    assert text.stdout.startswith("Isolation tier: ")
    assert "There is no database at" in text.stdout
    assert text.returncode == (0 if report["ok"] else 1)


@pytest.mark.slow
@pytest.mark.requirement("WORK-4")
def test_ctrl_c_stops_the_tool_and_exits_130(cli, environment, tmp_path):
    code = "import time\ndef slow():\n    print('started', flush=True)\n    time.sleep(60)\n"
    cli("vault", "add", "slow", "-", stdin=code)
    process = subprocess.Popen([sys.executable, "-m", "healkit", "run", "slow"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, told
    assert "Traceback" not in told
    (row,) = json.loads(cli("log", "--json").stdout)
    assert (row["status"], row["error"]["code"]) == ("FAILURE", "TOOL_KILLED")


@pytest.mark.slow
def test_the_lab_opens_the_current_folder_with_the_seeded_database(cli, environment, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["lab", "--no-browser", "--port", str(port), "--ServerApp.token=t", "--LabApp.news_url=None"]
    environment = {
        **environment,
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "run"),
    }
    process = subprocess.Popen([sys.executable, "-m", "healkit", *words], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)  # fmt: skip
    try:
        assert "version" in wait_until(lambda: _fetched(f"http://127.0.0.1:{port}/api", process))
        listed = json.loads(_fetched(f"http://127.0.0.1:{port}/api/contents?token=t", process))
        assert "healkit-lessons" in [entry["name"] for entry in listed["content"]]
    finally:
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=WITHIN_S)
    assert "tools added" in told
    assert "fibonacci" in cli("vault", "list").stdout


def _fetched(url: str, process: subprocess.Popen[str]) -> str:
    """Return the answer, empty while the server is not up."""
    assert process.poll() is None, "the server ended"
    try:
        with urllib.request.urlopen(url, timeout=WITHIN_S) as answer:
            return answer.read().decode()
    except OSError:
        return ""


@pytest.mark.requirement("FACE-5")
@pytest.mark.parametrize(
    "words", [["log", "--bogus"], ["summarize"], ["vault", "show"], ["log", "--limit", "many"], ["nothing"]]
)
def test_a_line_that_cannot_be_read_is_json_too_where_json_is_asked_for(cli, words):
    """It printed nothing on stdout, where a program looks."""
    done = cli(*words, "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "USAGE_INVALID"
    assert error["evalue"] in done.stderr
    assert cli(*words).stdout == ""


@pytest.mark.requirement("FACE-12")
def test_a_card_on_a_terminal_names_a_command_that_can_be_typed_there(cli, tmp_path):
    (tmp_path / "save.py").write_text("def save(path: str) -> int:\n    return open(path, 'w').write('x')\n")
    cli("vault", "add", "save", "save.py")
    done = cli("run", "save", "path=/usr/share/out.txt")
    assert done.returncode == 1
    assert "healkit vault grant save --write PATH" in done.stderr
    assert "%vault" not in done.stderr
    cli("vault", "add", "save", "save.py", "--persona", "teacher")
    theirs = cli("run", "save", "path=/usr/share/out.txt", "--persona", "teacher")
    assert "healkit vault grant save --persona teacher --write PATH" in theirs.stderr
    nested = "def keep(path):\n    try:\n        open(path, 'w')\n    except OSError as error:\n        raise ValueError('not kept') from error\n"
    (tmp_path / "keep.py").write_text(nested)
    cli("vault", "add", "keep", "keep.py")
    caused = cli("run", "keep", "path=/usr/share/out.txt")
    assert "healkit vault grant keep --write PATH" in caused.stderr
    assert "%vault" not in caused.stderr
