"""Passwords in a database's URL: on no face (audit R3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_samples import call
from postgres_samples import Server

from healkit import Healkit
from healkit.config import Config
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.core.store.database import Database
from healkit.errors import ConfigError, HealkitError
from healkit.parts.doctor import cards as doctor_cards
from healkit.parts.mcp_client.mcp_data import ServerSpec
from healkit.plain_text import shown_address, shown_url

PASSWORD = "h0rse-Battery"
REFUSED = [
    f"postgresql+psycopg://u:a@{PASSWORD}@nowhere/db", f"postgresql+psycopg://me@corp:{PASSWORD}@nowhere/db",
    f"postgresql+psycopg://u:{PASSWORD}@nowhere:port/db", f"postgresql+nodriver://u:{PASSWORD}@nowhere/db",
    f"nonsense://u:{PASSWORD}@nowhere/db", f"postgresql+psycopg://u:{PASSWORD}@/db?host=/nowhere",
    f"postgresql+psycopg://u@/db?host=/nowhere&password={PASSWORD}", f"sqlite:///file:x?password={PASSWORD}",
    f"nowhere/host=x password={PASSWORD}",
]  # fmt: skip


@pytest.fixture
def url(postgresql_server: Server) -> Iterator[str]:
    """Name a database by a URL with two passwords."""
    with postgresql_server.database() as plain:
        yield plain.replace("://healkit@", f"://healkit:{PASSWORD}@") + f"&sslpassword={PASSWORD}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql+psycopg://u:p@h:5432/d?sslmode=require", "postgresql+psycopg://u:***@h:5432/d?sslmode=require"),
        ("postgresql+psycopg://u:p@q/w@h/d", "postgresql+psycopg://u:***@h/d"),
        ("postgresql://u@/d?password=p%20q&host=/run", "postgresql://u@/d?password=***&host=/run"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("sqlite:////tmp/a@b.db", "sqlite:////tmp/a@b.db"),
        ("folder/healkit.db", "folder/healkit.db"),
    ],
)  # fmt: skip
def test_a_shown_url_keeps_all_but_the_password(url: str, shown: str) -> None:
    assert shown_url(url) == shown
    assert shown_address("https://u:p@h:8000/mcp?key=s") == "https://h:8000/mcp"


@pytest.mark.slow
def test_no_face_and_no_object_shows_the_password_of_the_database(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "HEALKIT_DB": url,
        "XDG_DATA_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    said = ""
    for words in ("seed", "status", "status --json", "doctor --json", "log", "log --json", "vault list",
                  "vault show nothing", "run nothing --json"):  # fmt: skip
        done = call(*words.split())
        said += done.stdout + done.stderr
    assert said.count("healkit:***@") >= 4
    with Healkit(url, config=Config(fork_server=False, spares=0)) as healkit:
        status = healkit.status()
        said += (
            text_of(doctor_cards.status_card(status))
            + html_of(doctor_cards.status_card(status))
            + json.dumps(status.url)
        )
        shown = (status, healkit, healkit.database, healkit.config, healkit.executor, healkit.database.where)
        assert PASSWORD not in said + repr(shown)
        assert healkit.url == url, "what opens the database again is not shown, but kept"


@pytest.mark.parametrize("given", REFUSED)
def test_no_error_shows_the_password(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HealkitError) as caught:
        Database(given)
    assert PASSWORD not in f"{caught.value} {caught.value!r} {caught.value.hint}"


def test_settings_and_servers_show_no_key_of_an_address() -> None:
    config = Config(sync_url=f"https://h/x?token={PASSWORD}")
    with pytest.raises(ConfigError) as wrong:
        Config(sync_url=f"ftp://h/x?token={PASSWORD}")
    server = ServerSpec("files", url=f"https://u:{PASSWORD}@h/mcp?key={PASSWORD}")
    with pytest.raises(ConfigError) as refused:
        ServerSpec("files", url=f"ftp://u:{PASSWORD}@h/mcp")
    shown = (config.shown(), config, str(server), server, str(wrong.value), str(refused.value))
    assert PASSWORD not in repr(shown)
