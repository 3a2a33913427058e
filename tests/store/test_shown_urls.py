"""Passwords in a database's URL: on no face (audit R3)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_samples import postgresql
from waiting import WITHIN_S

from healkit import Healkit
from healkit.config import Config
from healkit.errors import ConfigError, HealkitError
from healkit.plain_text import shown_address, shown_url
from healkit.rendering import listings
from healkit.rendering.to_html import html_of
from healkit.rendering.to_text import text_of
from healkit.runtime.mcp_data import ServerSpec
from healkit.store.database import Database

PASSWORD = "h0rse-Battery"
REFUSED = [
    f"postgresql+psycopg://u:a@{PASSWORD}@nowhere/db",
    f"postgresql+psycopg://me@corp:{PASSWORD}@nowhere/db",
    f"postgresql+psycopg://u:{PASSWORD}@nowhere:port/db",
    f"postgresql+nodriver://u:{PASSWORD}@nowhere/db",
    f"nonsense://u:{PASSWORD}@nowhere/db",
    f"postgresql+psycopg://u:{PASSWORD}@/db?host=/nowhere",
    f"postgresql+psycopg://u@/db?host=/nowhere&password={PASSWORD}",
    f"sqlite:///file:x?password={PASSWORD}",
    f"nowhere/host=x password={PASSWORD}",
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Start a server; name its database by a URL with two passwords."""
    with postgresql() as plain:
        yield plain.replace("://healkit@", f"://healkit:{PASSWORD}@") + f"&sslpassword={PASSWORD}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql+psycopg://u:p@h:5432/d?sslmode=require",
            "postgresql+psycopg://u:***@h:5432/d?sslmode=require",
        ),
        ("postgresql+psycopg://u:p@q/w@h/d", "postgresql+psycopg://u:***@h/d"),
        ("postgresql://u@/d?password=p%20q&host=/run", "postgresql://u@/d?password=***&host=/run"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("sqlite:////tmp/a@b.db", "sqlite:////tmp/a@b.db"),
        ("folder/healkit.db", "folder/healkit.db"),
    ],
)
def test_a_shown_url_keeps_all_but_the_password(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_a_shown_address_has_no_user_and_no_query() -> None:
    assert shown_address("https://u:p@h:8000/mcp?key=s") == "https://h:8000/mcp"
    assert shown_address("https://h/mcp") == "https://h/mcp"


@pytest.mark.slow
def test_no_face_shows_the_password_of_the_database(url: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "HEALKIT_DB": url,
        "XDG_DATA_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
    }
    commands = [
        "seed", "status", "status --json", "doctor", "doctor --json", "log", "log --json", "vault list",
        "vault show nothing", "run nothing --json", "lab --no-browser --version",
    ]  # fmt: skip
    said = ""
    for words in commands:
        done = subprocess.run(
            [sys.executable, "-m", "healkit", *words.split()],
            capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=WITHIN_S, check=False,
        )  # fmt: skip
        said += done.stdout + done.stderr
        assert "Traceback" not in said, words
    assert said.count("healkit:***@") >= 6
    assert PASSWORD not in said


@pytest.mark.slow
def test_no_object_shows_the_password_of_the_database(url: str) -> None:
    with Healkit(url, config=Config(fork_server=False, spares=0)) as healkit:
        status = healkit.status()
        shown = [
            repr(status),
            text_of(listings.status(status)),
            html_of(listings.status(status)),
            json.dumps(status.url),
        ]
        shown += map(repr, (healkit, healkit.database, healkit.config, healkit.executor))
        shown.append(healkit.database.where)
        assert PASSWORD not in " ".join(shown)
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
    shown = [
        str(config.shown()),
        repr(config),
        str(server),
        repr(server),
        str(wrong.value),
        str(refused.value),
    ]
    assert PASSWORD not in " ".join(shown)
