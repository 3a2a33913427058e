"""Trust in databases."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from postgres_samples import Server
from trusted import trusted_copy

from healkit import Config, Healkit
from healkit.core.contracts.execution import Grants
from healkit.core.contracts.vault import UNTRUSTED_GRANTS
from healkit.core.store import trust
from healkit.core.store.database import Database
from healkit.core.store.locations import choice, resolve_url
from healkit.errors import ConfigError, DatabaseError, DatabaseNotTrusted, VaultError
from healkit.faces.commands import cards
from healkit.faces.commands.trust import COMMANDS
from healkit.faces.mcp_server.server import AgentServer
from healkit.parts.doctor.doctor import trust_report

pytestmark = pytest.mark.requirement("TRUST-2")

READS = "def tool(path: str):\n    return open(path).read()\n"
#: Columns of a tool's row that a hostile database sets by hand, past every check of the vault.
SET = "UPDATE toolregistry SET grants = ? WHERE tool_name = 'tool'"


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a private file of the user's, in a folder of its own."""
    file = tmp_path / "private" / "key.txt"
    file.parent.mkdir()
    file.write_text("S3CR3T")
    return file


@pytest.fixture
def foreign(tmp_path: Path, empty_database: Path) -> Callable[..., Path]:
    """Make a database elsewhere: a tool with that code and those grants, and what the statements change by hand."""

    def made(grants: Grants | dict[str, object] | None = None, *statements: str, code: str = READS) -> Path:
        path = tmp_path / "theirs" / "healkit.db"
        path.parent.mkdir(exist_ok=True)
        with Healkit(trusted_copy(empty_database, path)) as theirs:
            theirs.vault.add("tool", code)
        Database(path).close()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            if grants is not None:
                connection.execute(SET, (msgspec.json.encode(grants).decode(),))
            for statement in statements:
                connection.execute(statement)
        ours = tmp_path / "ours" / "healkit.db"
        ours.parent.mkdir(exist_ok=True)
        return Path(shutil.move(path, ours))

    return made


@pytest.fixture
def opened() -> Iterator[Callable[[Path], Healkit]]:
    """Open Healkits that are closed at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda path: stack.enter_context(Healkit(path))


def test_a_database_that_healkit_makes_is_trusted_by_who_makes_it(tmp_path: Path) -> None:
    with Healkit(tmp_path / "mine.db") as mine:
        assert mine.database.trusted
        assert mine.status().trust.startswith("made by you")
    with Healkit(tmp_path / "mine.db") as again:
        assert again.database.trusted


def test_a_copy_a_move_and_another_database_at_that_place_are_not_trusted(tmp_path: Path) -> None:
    Database(tmp_path / "mine.db").close()
    shutil.copy(tmp_path / "mine.db", tmp_path / "copy.db")
    Database(tmp_path / "other.db").close()
    assert not Database(tmp_path / "copy.db").trusted
    shutil.move(tmp_path / "other.db", tmp_path / "mine.db")
    assert not Database(tmp_path / "mine.db").trusted


def test_an_untrusted_database_runs_its_tools_without_grants_until_it_is_trusted(
    foreign: Callable[..., Path], opened: Callable[[Path], Healkit], secret: Path
) -> None:
    healkit = opened(foreign({"read": [str(secret.parent)]}))
    execution = healkit.execute("tool", arguments={"path": str(secret)})
    assert execution.failure is not None
    assert execution.grants == UNTRUSTED_GRANTS
    assert any("not trusted" in warning and "healkit trust" in warning for warning in execution.warnings)
    assert healkit.vault.get("tool").grants.read == (str(secret.parent),)  # it is shown as it is stored
    healkit.trust()
    execution = healkit.execute("tool", arguments={"path": str(secret)})
    assert execution.value == "S3CR3T"
    assert not execution.warnings


def test_trust_given_elsewhere_is_seen_by_an_open_one(
    foreign: Callable[..., Path], opened: Callable[[Path], Healkit], secret: Path
) -> None:
    path = foreign({"read": [str(secret.parent)]})
    healkit = opened(path)
    assert not healkit.execute("tool", arguments={"path": str(secret)}).ok
    Database(path, only_read=True).trust()
    assert healkit.execute("tool", arguments={"path": str(secret)}).value == "S3CR3T"


#: Grants that a hostile database holds, and code that uses them. {secret} and {made} are filled in.
HOSTILE_GRANTS: list[tuple[dict[str, object], str]] = [
    ({"read": ["/"]}, READS),
    ({"read": ["{folder}"]}, READS),
    ({"read": ["{secret}"]}, READS),
    ({"read": ["{folder}/../private"]}, READS),
    ({"read": ["/proc"]}, "def tool(path):\n    return open('/proc/1/root' + path).read()\n"),
    ({"write": ["{folder}"]}, READS),
    ({"write": ["{folder}"]}, "def tool(path):\n    open(path, 'w').write('gone')\n"),
    ({"write": ["/"]}, "def tool(path):\n    open(path, 'w').write('gone')\n"),
    ({"write": ["{folder}"]}, "import os\ndef tool(path):\n    os.unlink(path)\n"),
    ({"write": ["{folder}"]}, "import os\ndef tool(path):\n    os.rename(path, path + '.gone')\n"),
    ({"write": ["{folder}"]}, "def tool(path):\n    open(path + '.planted', 'w').write('x')\n"),
    ({"calls": ["host.*"]}, "def tool(path):\n    return mcp.host.peek(path=path)\n"),
    ({}, "def tool(path):\n    return mcp.host.peek(path=path)\n"),
    ({"calls": ["*"], "own_grants": True}, "def tool(path):\n    return mcp.host.peek(path=path)\n"),
    (
        {"calls": ["healkit.*"], "own_grants": True},
        "def tool(path):\n    return mcp.healkit.get_last_error()\n",
    ),
    ({"memory_mb": 1_000_000, "read": ["{secret}"]}, READS),
    ({"timeout_s": 1e9, "cpu_s": 10**9, "read": ["{secret}"]}, READS),
    ({"read": ["/"], "write": ["/"], "own_grants": True}, READS),
]
#: Those of the quick tier: one that reads, one that writes, one that calls.
QUICK = {0, 6, 13}


@pytest.mark.parametrize(
    "number",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in range(len(HOSTILE_GRANTS))],
)
def test_a_hostile_database_reads_writes_and_calls_nothing(
    number: int, foreign: Callable[..., Path], opened: Callable[[Path], Healkit], secret: Path
) -> None:
    grants, code = HOSTILE_GRANTS[number]
    text = msgspec.json.encode(grants).decode()
    filled = msgspec.json.decode(
        text.replace("{secret}", str(secret)).replace("{folder}", str(secret.parent))
    )
    healkit = opened(foreign(filled, code=code))
    peeked: list[str] = []
    healkit.provide(lambda path: peeked.append(path) or Path(path).read_text(), "peek")
    execution = healkit.execute("tool", arguments={"path": str(secret)})
    assert execution.failure is not None
    assert "S3CR3T" not in str(execution.failure.traceback) + str(execution.outputs)
    assert not peeked
    assert [file.read_text() for file in secret.parent.iterdir()] == ["S3CR3T"]


@pytest.mark.parametrize("trusted", [False, True])
def test_a_tool_with_a_removed_grant_is_shown_and_not_run(
    trusted: bool, foreign: Callable[..., Path], opened: Callable[[Path], Healkit], tmp_path: Path
) -> None:
    """`python=` named a program that was started; a tool that has it would now run in another environment."""
    program = tmp_path / "evil"
    program.write_text(f'#!/bin/sh\ntouch {tmp_path}/STARTED\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    code = "def tool(n: int = 1) -> int:\n    return n\n"
    healkit = opened(foreign({"python": str(program), "memory_mb": 64}, code=code))
    if trusted:
        healkit.trust()
    healkit.vault.rename("tool", "tally")
    said = f"tally v1 has a grant that healkit no longer has: python={str(program)!r}. Nothing was run."
    for name in ("tool", "tally"):  # by its former name too
        for run in (healkit.execute, healkit.heal):
            with pytest.raises(VaultError) as caught:
                run(name)
            assert (caught.value.code, caught.value.message) == ("VAULT_ERROR", said)
            assert "healkit vault grant tally --clear" in caught.value.hint
    with pytest.raises(VaultError, match="no longer has"):
        healkit.try_code("tally", code, {})
    assert {(row.status, row.error_code) for row in healkit.log.query(tool="tally").rows} == {
        ("FAILURE", "VAULT_ERROR")
    }
    entry = healkit.vault.get("tally")
    assert entry.grants == healkit.vault.list()[0].grants == Grants(memory_mb=64)
    assert f"python {program}: removed, so it is not run" in repr(cards.grants(entry))
    with pytest.raises(ConfigError, match=r"no grant 'python'.*--clear"):
        healkit.vault.set_grants("tally", cpu_s=9)
    assert healkit.vault.set_grants("tally", clear=True, cpu_s=9).grants == Grants(cpu_s=9)
    assert healkit.execute("tally", arguments={"n": 3}).value == 3
    assert not (tmp_path / "STARTED").exists()


def test_a_call_of_a_tool_with_a_removed_grant_is_refused(healkit: Healkit) -> None:
    healkit.vault.add("tool", "def tool() -> int:\n    return 1\n")
    healkit.vault.add("caller", "def caller() -> int:\n    return mcp.vault.tool()\n")
    with contextlib.closing(sqlite3.connect(healkit.path, isolation_level=None)) as connection:
        connection.execute(SET, ['{"python":"/opt/other/bin/python"}'])
    execution = healkit.execute("caller")
    assert execution.failure is not None
    assert "no longer has: python='/opt/other/bin/python'" in execution.failure.evalue
    (call,) = healkit.log.calls(execution.trace_id)
    assert (call.tool, call.success, call.error_code) == ("tool", False, "VAULT_ERROR")
    assert healkit.vault.patch("tool", "def tool() -> int:\n    return 2\n").revision == 2


def test_a_log_row_with_a_removed_grant_is_read(healkit: Healkit) -> None:
    healkit.vault.add("tool", "def tool(n: int) -> int:\n    return n\n")
    log_id = healkit.execute("tool", arguments={"n": 3}).log_id
    with contextlib.closing(sqlite3.connect(healkit.path, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE executionlog SET grants = ?", ['{"python":"/opt/other/bin/python","cpu_s":9}']
        )
    assert healkit.log.get(log_id).grants == {"python": "/opt/other/bin/python", "cpu_s": 9}
    (shown,) = healkit.executions()
    assert (shown.ok, shown.arguments, shown.grants) == (True, {"n": 3}, Grants(cpu_s=9))
    assert healkit.rerun(log_id).value == 3


#: What a hostile database has besides healkit's own parts, or in their place.
ENDLESS = "(WITH RECURSIVE endless(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless) SELECT count(*) FROM endless)"
STRANGE = [
    (f"CREATE TRIGGER slow BEFORE INSERT ON executionlog BEGIN SELECT {ENDLESS}; END", "the trigger 'slow'"),
    ("CREATE TRIGGER slow AFTER UPDATE ON toolregistry BEGIN DELETE FROM codevault; END", "the trigger 'slow'"),
    ("CREATE TRIGGER on_view AFTER DELETE ON patchrequest BEGIN SELECT 1; END", "the trigger 'on_view'"),
    ("CREATE INDEX slow ON executionlog (length(hex(tool_name)))", "the index 'slow'"),
]  # fmt: skip
REPLACED = [
    ("DROP TABLE toolregistry", f"CREATE VIEW toolregistry AS SELECT {ENDLESS} AS tool_name"),
    ("DROP TABLE traceauditchain", f"CREATE VIEW traceauditchain AS SELECT {ENDLESS} AS chain"),
    ("DROP TABLE codevault", "CREATE VIEW codevault AS SELECT 1 AS hash"),
    ("DROP TABLE patchrequest", "CREATE TABLE patchrequest (id INTEGER PRIMARY KEY CHECK (length(randomblob(9)) > 0))"),
    ("ALTER TABLE toolregistry ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(zeroblob(9))) VIRTUAL",),
    ("DROP TRIGGER executionlog_inserted",),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "named"), STRANGE)
def test_an_untrusted_database_with_a_trigger_or_index_of_its_own_is_not_opened(
    foreign: Callable[..., Path], statement: str, named: str
) -> None:
    path = foreign(None, statement)
    before = path.read_bytes()
    with pytest.raises(DatabaseNotTrusted, match=named):
        Database(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("statements", REPLACED, ids=lambda one: one[0])
def test_an_untrusted_database_with_a_replaced_table_is_not_opened(
    foreign: Callable[..., Path], statements: tuple[str, ...]
) -> None:
    path = foreign(None, "PRAGMA foreign_keys = OFF", *statements)
    with pytest.raises(DatabaseNotTrusted, match="changed"):
        Database(path)


def test_tables_and_views_of_other_programs_are_left_alone(foreign: Callable[..., Path]) -> None:
    path = foreign(None, "CREATE TABLE orders (n INTEGER)", f"CREATE VIEW slow AS SELECT {ENDLESS} AS n")
    assert Database(path).strange_parts() == []


def test_a_trusted_database_may_have_triggers_of_its_user(foreign: Callable[..., Path]) -> None:
    path = foreign(None, "CREATE TRIGGER mine AFTER INSERT ON executionlog BEGIN SELECT 1; END")
    Database(path, only_read=True).trust()
    assert Database(path).strange_parts() == ["the trigger 'mine'"]


def test_what_would_be_granted_is_shown_without_running_anything(
    foreign: Callable[..., Path], opened: Callable[[Path], Healkit], secret: Path
) -> None:
    path = foreign({"read": [str(secret)]}, "UPDATE toolregistry SET flags = '{\"side_effects\": true}'")
    healkit = opened(path)
    healkit.requests.add("tool", "def tool(path: str):\n    return 1\n")
    report = trust_report(Database(path, only_read=True))
    assert report.grants == {"tool v1": Grants(read=(str(secret),))}
    assert report.acting == report.requests == ("tool v1",)
    assert not report.why
    assert not report.strange


def test_no_request_of_an_untrusted_database_can_be_accepted(
    foreign: Callable[..., Path], opened: Callable[[Path], Healkit]
) -> None:
    healkit = opened(foreign())
    asked = healkit.requests.add("tool", "def tool(path: str):\n    return 1\n")
    with pytest.raises(DatabaseNotTrusted, match="Request 1 cannot be accepted"):
        healkit.requests.accept(asked.id)
    assert healkit.vault.get("tool").revision == 1
    healkit.requests.decline(asked.id)


def test_agents_are_not_served_an_untrusted_database(
    foreign: Callable[..., Path], opened: Callable[[Path], Healkit]
) -> None:
    healkit = opened(foreign())
    with pytest.raises(DatabaseNotTrusted, match="Agents cannot be served"):
        AgentServer(lambda: healkit, healkit.config)._open()


def test_traces_of_an_untrusted_database_are_not_sent(foreign: Callable[..., Path]) -> None:
    with (
        Healkit(foreign(), config=Config(sync_url="http://127.0.0.1:9/api/traces")) as healkit,
        pytest.raises(DatabaseNotTrusted, match="traces cannot be sent"),
    ):
        healkit.traces.sync()


@pytest.mark.parametrize(
    "grants",
    [{"read": ["/"]}, {"write": ["/proc"]}, {"read": ["relative"]}, {"memory_mb": -1}, {"read": ["LINK"]}],
)
def test_grants_are_checked_where_they_are_used(
    foreign: Callable[..., Path], opened: Callable[[Path], Healkit], grants: dict[str, object], tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to("/etc")
    changed = msgspec.json.decode(msgspec.json.encode(grants).decode().replace("LINK", str(link)))
    healkit = opened(foreign(changed))
    healkit.trust()
    with pytest.raises(ConfigError, match="The grant"):
        healkit.execute("tool", arguments={"path": "/etc/passwd"})


@pytest.mark.parametrize("stored", ["'[1]'", "'{\"read\": 3}'", "'{\"unknown\": 1'"])
def test_the_error_names_grants_that_cannot_be_read(
    foreign: Callable[..., Path], opened: Callable[[Path], Healkit], stored: str
) -> None:
    healkit = opened(foreign(None, f"UPDATE toolregistry SET grants = {stored}"))
    with pytest.raises(DatabaseError, match="'grants'"):
        healkit.execute("tool", arguments={"path": "/etc/passwd"})


def test_no_tool_may_write_where_trust_is_kept(tmp_path: Path) -> None:
    with Healkit(tmp_path / "mine.db") as mine:
        for granted in (trust.trusted_folder(), trust.trusted_folder().parent):
            with pytest.raises(ConfigError, match="keeps its records in"):
                mine.vault.add("tool", READS, grants={"write": [str(granted)]})


def test_trust_is_taken_back(foreign: Callable[..., Path]) -> None:
    path = foreign()
    command = COMMANDS["trust"].function
    assert command(str(path)).said.endswith("is trusted")
    assert command(str(path)).said.endswith("is already trusted")
    assert Database(path).trusted
    assert command(str(path), remove=True).said.endswith("is not trusted any more")
    assert command(str(path), remove=True).said.endswith("is not trusted")
    assert not Database(path).trusted


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.dialect
def test_a_database_on_a_server_is_trusted_by_its_url(postgresql_server: Server) -> None:
    with postgresql_server.database() as url:
        with Healkit(url, config=Config()) as made:
            made.vault.add("tool", READS)
            assert made.database.trusted
            trust.distrust(made.database.place)
        with Healkit(url) as again:
            assert again.execute("tool", arguments={"path": "/etc/hostname"}).grants == UNTRUSTED_GRANTS
            again.trust()
            with contextlib.closing(Database(url, only_read=True)) as looked_at:
                assert trust_report(looked_at).tools == 1
    with postgresql_server.database(empty=True) as url, Healkit(url) as own:
        assert own.database.trusted


def test_discovery_stops_at_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    project = home / "project" / "deep"
    project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("HEALKIT_DB", raising=False)
    (tmp_path / "healkit.db").touch()
    url, why = choice(cwd=project)
    assert url == f"sqlite:///{tmp_path}/data/healkit/healkit.db"
    assert "yours" in why
    (home / "healkit.db").touch()
    assert resolve_url(cwd=project) == f"sqlite:///{home}/healkit.db"


def test_discovery_stops_at_a_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving a folder away takes root")
    theirs = tmp_path / "theirs"
    project = theirs / "project"
    project.mkdir(parents=True)
    monkeypatch.delenv("HEALKIT_DB", raising=False)
    (theirs / "healkit.db").touch()
    assert resolve_url(cwd=project) == f"sqlite:///{theirs}/healkit.db"
    os.chown(theirs, 12345, 12345)
    assert resolve_url(cwd=project) == f"sqlite:///{tmp_path}/data/healkit/healkit.db"
    (project / "healkit.db").touch()
    os.chown(project, 12345, 12345)
    assert resolve_url(cwd=project) == f"sqlite:///{project}/healkit.db"  # where one stands is looked at
