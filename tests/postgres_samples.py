"""PostgreSQL server of the tests' own.

A new cluster in a temporary folder, reached by a socket in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from healkit.core.store import trust
from healkit.core.store.database import Database
from healkit.plain_text import shown_url

_ROLE = "healkit"


def program(name: str) -> Path:
    """Find the program: where Debian keeps it, newest version first, or else wherever it is."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    found = places[0] if places else shutil.which(name)
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    return Path(found)


def _account() -> dict[str, Any]:
    """Return an account for PostgreSQL, which refuses to run as root: its own, or `nobody`."""
    if os.geteuid() != 0:
        return {}
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return {"user": "postgres" if "postgres" in names else "nobody"}


class Cluster:
    """Server in a folder, which can be stopped and started; `url` is that of an empty database.

    port: it also listens there, at 127.0.0.1: with TLS only, with a certificate of its own, and for passwords.
    """

    def __init__(self, folder: Path, port: int | None = None) -> None:
        account = _account()
        if account:
            shutil.chown(folder, account["user"])
        self.url = f"postgresql+psycopg://{_ROLE}@/postgres?host={folder}"
        self.folder, self._data = folder, folder / "data"
        self._run: dict[str, Any] = {
            **account,
            "check": True,
            "capture_output": True,
            "timeout": 60,
            "cwd": folder,
        }
        made = [program("initdb"), "-D", self._data, "-U", _ROLE, "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(made, **self._run)
        self.options = f"-k {self.folder} -c fsync=off"
        self.options += " -h ''" if port is None else f" -h 127.0.0.1 -p {port}"
        if port is not None:
            self.url += f"&port={port}"
            self._run |= {"env": {**os.environ, "PGPORT": str(port)}}
            self._use_tls()

    @property
    def certificate(self) -> Path:
        """Certificate that signs the server's own: its own, valid for 127.0.0.1."""
        return self._data / "server.crt"

    def psql(self, script: str, database: str = "postgres") -> str:
        """Run a script as the superuser, as `psql` does; what it prints."""
        command = [
            program("psql"),
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            self.folder,
            "-U",
            _ROLE,
            database,
        ]
        return str(subprocess.run(command, **self._run, input=script, text=True).stdout)

    def _use_tls(self) -> None:
        subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
        files = ["-keyout", self._data / "server.key", "-out", self.certificate]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *files], **self._run
        )
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write("ssl = on\n")
        (self._data / "pg_hba.conf").write_text(
            "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
        )

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        self._control("start", "-w", "-o", self.options, "-l", str(self.folder / "log"), check=True)

    def stop(self) -> None:
        """End it and its connections at once."""
        self._control("stop", "-m", "immediate", check=False)

    def _control(self, *words: str, check: bool) -> None:
        subprocess.run([program("pg_ctl"), *words, "-D", self._data], **{**self._run, "check": check})


@contextlib.contextmanager
def cluster(port: int | None = None) -> Iterator[Cluster]:
    """Start a server; it is gone at the end of the block. port: of `Cluster`."""
    with tempfile.TemporaryDirectory(prefix="healkit-pg-") as name:
        made = Cluster(Path(name), port)
        try:
            made.start()
            yield made
        finally:
            made.stop()


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Lend the URL of an empty database; the server is gone at the end of the block."""
    with cluster() as made:
        yield made.url


@dataclasses.dataclass
class Server:
    """Running server, whose databases are copies of one with current tables."""

    url: str
    _numbers: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    @contextlib.contextmanager
    def database(self, *, empty: bool = False) -> Iterator[str]:
        """Yield the URL of a new database, without tables if `empty`; it is gone at the end of the block."""
        name = f"test_{next(self._numbers)}"
        self._say("CREATE DATABASE {} TEMPLATE {}", name, "template1" if empty else "postgres")
        url = self.url.replace("/postgres?", f"/{name}?")
        if not empty:
            trust.trust(shown_url(url), "")
        try:
            yield url
        finally:
            self._say("DROP DATABASE {} WITH (FORCE)", name)

    def _say(self, statement: str, *names: str) -> None:
        plain = self.url.replace("+psycopg", "").replace("/postgres?", "/template1?")
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """Start a server; its database `postgres` gets current tables, to be copied."""
    with postgresql() as url:
        Database(url).close()
        yield Server(url)
