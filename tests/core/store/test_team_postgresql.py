"""A database that a team shares: roles, TLS, passwords."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from cli_samples import call
from postgres_samples import Cluster, cluster, program
from store_samples import dead_host, started

from healkit import Healkit
from healkit.core.store.database import Database
from healkit.errors import DatabaseError, DatabaseMissing, DatabaseReadOnly
from healkit.faces.pages.side_panel import SidePanelPages

pytestmark = pytest.mark.requirement("SCALE-1")

SECRET = "Maple-kestrel-41"
PEOPLE = "CREATE ROLE rita LOGIN IN ROLE team_reader; CREATE ROLE wim LOGIN IN ROLE team_writer;"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="module")
def tls() -> Iterator[Cluster]:
    """Start a server that takes TLS and passwords at 127.0.0.1."""
    with cluster(free_port()) as server:
        yield server


def roles() -> str:
    printed = call("db", "roles", "--name", "team")
    assert printed.returncode == 0, printed.stderr
    return printed.stdout


@pytest.fixture(scope="module")
def shared() -> Iterator[Callable[[str], str]]:
    """Make a database with the roles as the command's own comments say; the URL of a person there."""
    with cluster() as server:
        server.psql("CREATE DATABASE team")
        server.psql(roles() + PEOPLE, "team")

        def url_of(person: str) -> str:
            return server.url.replace("//healkit@/postgres", f"//{person}@/team")

        with contextlib.closing(Database(url_of("team_owner"))):
            pass
        server.psql(roles(), "team")
        yield url_of


def trusted(url: str) -> str:
    assert call("trust", url).returncode == 0
    return url


def test_only_the_owner_makes_and_changes_the_tables(shared: Callable[[str], str]) -> None:
    with cluster() as empty:
        empty.psql(roles() + PEOPLE)
        for person in ("rita", "wim"):
            with pytest.raises(DatabaseReadOnly, match="may not change them") as refused:
                Database(empty.url.replace("healkit@", f"{person}@"))
            assert "healkit db roles" in refused.value.hint
    for person in ("rita", "wim"):
        with psycopg.connect(shared(person).replace("+psycopg", ""), autocommit=True) as connection:
            for statement in (
                "CREATE TABLE mine (x int)",
                "CREATE TEMP TABLE mine (x int)",
                "ALTER TABLE executionlog ADD COLUMN x int",
                "ALTER TABLE executionlog DISABLE TRIGGER ALL",
                "DROP TABLE executionlog",
                "TRUNCATE executionlog",
                "UPDATE healkit_version SET version_num = 'r0001'",
                "DELETE FROM traceauditentry",
                "UPDATE traceauditchain SET chain = ''",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)


def test_a_writer_executes_heals_and_deletes(shared: Callable[[str], str], tmp_path: Path) -> None:
    with Healkit(trusted(shared("wim"))) as hk:
        assert not hk.database.read_only
        hk.vault.add(
            "share",
            "def share(total, parts):\n    return total / len(parts)",
            examples=[{"arguments": {"total": 9, "parts": []}, "result": 0}],
        )
        assert hk.execute("share", arguments={"total": 9, "parts": [1]}, record=True).value == 9
        assert hk.execute("share", arguments={"total": 9, "parts": []}).failure is not None
        assert hk.heal("share", advisors=["rules"], auto=True, budget_s=60).ok
        assert hk.audit.verify().ok
        assert hk.log.prune(keep=1, archive=tmp_path / "archive").deleted > 0
        assert hk.learning.report() is not None
        assert hk.services.problem == ""


def test_a_reader_reads_pages_and_changes_nothing(shared: Callable[[str], str]) -> None:
    with Healkit(trusted(shared("wim"))) as hk:
        hk.vault.add("fails", "def fails(): return 1 / 0")
        failed = hk.execute("fails")
        hk.services.recorder.open_row(started(host=dead_host()))  # not a reader's to end
    with Healkit(trusted(shared("rita"))) as hk:
        assert hk.database.read_only
        assert hk.services.problem == ""
        assert hk.last_error("fails").log_id == failed.log_id  # type: ignore[union-attr]  # it failed
        pages = SidePanelPages(hk)
        for op in ("groups", "waiting"):
            assert "value" in pages.answer(op, {"filters": {}} if op == "groups" else {})
        assert "fails" in [entry.tool_name for entry in hk.vault.list()]
        assert hk.status().running == 1
        with pytest.raises(DatabaseReadOnly, match="can only be read") as refused:
            hk.vault.add("more", "def more(): return 1")
        assert "Let the URL's user write there" in refused.value.hint
        tried = hk.execute("fails")
        assert "can only be read" in " ".join(tried.warnings)
        rows = hk.log.count()
    with psycopg.connect(shared("rita").replace("+psycopg", ""), autocommit=True) as connection:
        for statement in ("DELETE FROM executionlog", "UPDATE toolregistry SET grants = '{}'"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
        assert connection.execute("SELECT count(*) FROM executionlog").fetchone() == (rows,)


def test_the_server_is_known_by_its_certificate(tls: Cluster, tmp_path: Path) -> None:
    tls.psql(f"ALTER ROLE healkit PASSWORD '{SECRET}'")
    root = tmp_path / "root.crt"
    shutil.copy(tls.certificate, root)
    port = tls.url.rpartition("=")[2]
    url = f"postgresql+psycopg://healkit:{SECRET}@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert={root}"
    with contextlib.closing(Database(url)) as database, database.engine.connect() as connection:
        used = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert connection.exec_driver_sql(used).scalar_one() is True
        assert SECRET not in repr(database)
        assert SECRET not in database.where
    stranger = tmp_path / "stranger.crt"
    shutil.copy(pytest.importorskip("certifi").where(), stranger)
    for changed, said in (
        (url.replace(str(root), str(stranger)), "certificate verify failed"),
        (url.replace("127.0.0.1", "localhost"), "does not match host name"),
        (url.replace("verify-full", "disable").replace(f"&sslrootcert={root}", ""), "no encryption"),
        (url.replace(SECRET, f"{SECRET}-not"), "password authentication failed"),
    ):
        with pytest.raises(DatabaseError, match=said) as refused:
            Database(changed)
        assert isinstance(refused.value, DatabaseMissing)
        assert SECRET not in f"{refused.value}{refused.value.hint}"


def test_no_command_shows_the_password(tls: Cluster, tmp_path: Path) -> None:
    tls.psql(f"ALTER ROLE healkit PASSWORD '{SECRET}'")
    port = tls.url.rpartition("=")[2]
    url = f"postgresql+psycopg://healkit:{SECRET}@127.0.0.1:{port}/postgres?sslmode=require"
    for words in (("seed",), ("trust", url), ("status",), ("status", "--json"), ("log",), ("doctor",)):
        done = call(*words, *(() if words[0] in {"trust", "doctor"} else ("--db", url)))
        assert SECRET not in done.stdout + done.stderr, words
    assert json.loads(call("status", "--json", "--db", url).stdout)


def test_the_docs_page_runs(tmp_path: Path) -> None:
    """A team in ten minutes: the page's commands, in its order, against a server with TLS and passwords."""
    page = (Path(__file__).parents[3] / "docs" / "team.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    texts = {kind: [block for form, block in blocks if form == kind] for kind in ("sql", "text", "python")}
    passwords = dict(re.findall(r"ROLE (\w+) (?:LOGIN )?PASSWORD '([^']+)'", texts["sql"][0]))
    assert texts["text"][1] == f"db.example.org:5432:healkit:ana:{passwords['ana']}\n"
    (tmp_path / "people.sql").write_text(texts["sql"][0])
    (tmp_path / "share.py").write_text(texts["python"][0])
    with cluster(port := free_port()) as server:
        shutil.copy(server.certificate, tmp_path / "root.crt")
        known = tmp_path / ".pgpass"
        known.write_text(
            "".join(f"127.0.0.1:{port}:healkit:{who}:{word}\n" for who, word in passwords.items())
        )
        known.chmod(0o600)
        places = [str(Path(sys.executable).parent), str(program("psql").parent), os.environ["PATH"]]
        environment = {
            **os.environ,
            "PATH": os.pathsep.join(places), "HOME": str(tmp_path), "PGPASSFILE": str(known),
            "PGHOST": str(server.folder), "PGPORT": str(port), "PGUSER": "healkit",
        }  # fmt: skip
        lines = [
            line.removeprefix("$ ").replace("db.example.org:5432", f"127.0.0.1:{port}")
            for form, block in blocks
            if form == "console"
            for line in block.splitlines()
        ]
        assert len(lines) > 10
        script = "set -euo pipefail\n" + "\n".join(lines)
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "2.0" in done.stdout
        assert "share" in done.stdout.partition("2.0")[2]  # the reader's log
        assert not any(word in done.stdout + done.stderr for word in passwords.values())
        with (
            psycopg.connect(
                server.url.replace("+psycopg", "").replace("/postgres?", "/healkit?")
            ) as connection,
            pytest.raises(psycopg.errors.FeatureNotSupported, match=texts["text"][2].strip()),
        ):
            connection.execute(texts["sql"][1])
