"""Collector on a real PostgreSQL server."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from collector_samples import WAIT_S, Collecting, collecting, read_all, task, trace
from postgres_samples import Server
from sqlalchemy import text
from waiting import wait_until

from healkit.core.store.database import Database
from healkit.core.store.vault import Vault
from healkit.parts.traces.outbox import CollectedTraces

TRACE_4 = pytest.mark.requirement("TRACE-4")


@pytest.fixture(scope="module")
def url(postgresql_server: Server) -> Iterator[str]:
    """Make an empty database."""
    with postgresql_server.database(empty=True) as found:
        yield found


@pytest.fixture(scope="module")
def server(url: str) -> Iterator[Collecting]:
    """`healkit collect` on it."""
    with collecting(url, HEALKIT_COLLECT_RATE_PER_S="10000") as found:
        yield found


@TRACE_4
def test_traces_are_stored_once_paged_and_linked(url: str, server: Collecting) -> None:
    database = Database(url)
    entry = Vault(database).add("paged", "def paged(): return 1")
    name = f"local.default.default.paged.{entry.code_hash[:12]}"
    sent = [trace(capabilityId=name, success=n % 3 > 0) for n in range(25)]
    odd = trace(metadata={"nul": "a\x00b", "half": "\ud800", "big": 10**40, "emoji": "💩"})
    assert server.post(*sent, *sent).json() == {"received": 50, "stored": 50, "errors": []}
    assert server.post(odd).json()["stored"] == 1
    found = read_all(server.client, tool="paged", limit="7")
    assert list(found) == [each["id"] for each in reversed(sent)]
    assert {each["toolId"] for each in found.values()} == {1}
    failed = read_all(server.client, tool="paged", success="false", since="1h")
    assert set(failed) == {each["id"] for each in sent if not each["success"]}
    back = server.client.get(f"/api/traces/{odd['id']}").json()["metadata"]
    assert back["nul"] == "a\x00b"
    database.close()


def stored_unless_busy(client: httpx.Client, batch: list[dict[str, Any]]) -> bool:
    """Send the batch; return False where the answer asks the client to try again."""
    answer = client.post("/api/traces", json=batch)
    if answer.status_code == 503:
        assert (answer.json()["error"]["code"], answer.headers["Retry-After"]) == ("STORE_UNAVAILABLE", "1")
        return False
    assert answer.json() == {"received": 10, "stored": 10, "errors": []}
    return True


@TRACE_4
def test_eight_clients_at_once_store_each_trace_once(server: Collecting) -> None:
    shared = [trace() for _ in range(60)]
    fuller: list[dict[str, Any]] = [{**each, "taskResults": [task()]} for each in shared]

    def send(number: int) -> int:
        with httpx.Client(base_url=server.url, headers=dict(server.client.headers), timeout=WAIT_S) as client:
            for n in range(0, 60, 10):
                batch = (shared if (n + number) % 20 else fuller)[n : n + 10]
                wait_until(lambda batch=batch: stored_unless_busy(client, batch))
        return number

    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        assert sorted(clients.map(send, range(8))) == list(range(8))
    server.post(*fuller)
    stored = server.stored()
    assert all(len(stored[each["id"]]["taskResults"]) == 1 for each in shared)


@TRACE_4
def test_a_locked_or_lost_database_stores_nothing(url: str, server: Collecting) -> None:
    database = Database(url)
    batch = [trace() for _ in range(3)]
    with database.write():  # holds the lock that stands for SQLite's
        answer = server.post(*batch)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "STORE_UNAVAILABLE")
    assert "postgres" not in answer.text
    with database.write() as session:
        others = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
        session.execute(text(others))
    assert server.post(*batch).json()["stored"] == 3  # a connection that is dead is replaced
    assert len(CollectedTraces(database).page(limit=1000).rows) >= 3
    database.close()
