"""Batches that take long to clean: who is answered meanwhile."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from collector_samples import WAIT_S, Collecting, collecting, task, trace
from waiting import wait_until

from healkit.parts.collect.service import STORING_THREADS

RATE = {"HEALKIT_COLLECT_RATE_PER_S": "100000"}


def costly(seed: int, count: int) -> list[dict[str, object]]:
    """Make traces of 60,000 characters each, full of small secrets that all differ."""
    source = random.Random(seed)
    texts = (
        "".join(f"password{source.random()}=a{source.random()} " for _ in range(1300)) for _ in range(count)
    )
    return [trace(taskResults=[task(result=text)]) for text in texts]


def sent(server: Collecting, traces: list[dict[str, object]]) -> httpx.Response:
    """Send traces on a connection of their own, and wait long for the answer."""
    headers = dict(server.client.headers)
    return httpx.post(f"{server.url}/api/traces", json=traces, headers=headers, timeout=4 * WAIT_S)


def running(server: Collecting) -> int:
    """Return how many requests the collector works on, this one left out."""
    lines = server.client.get("/api/metrics").text.splitlines()
    return int(next(float(line.split()[-1]) for line in lines if line.startswith(IN_FLIGHT))) - 1


#: Processor seconds that the costliest request may take; on one free core it is about a second a megabyte.
WORK_S = 20
#: Traces of a batch; three times as many are near to the largest body that is taken.
COUNT = 8
IN_FLIGHT = "healkit_collect_requests_in_flight"


@pytest.mark.slow
@pytest.mark.requirement("TRACE-4")
def test_questions_are_answered_and_batches_stored_while_costly_ones_are_cleaned(tmp_path: Path) -> None:
    """R8: one authorised request took 35 s, and four held up every other."""
    bodies = [costly(seed, COUNT) for seed in range(STORING_THREADS)]
    with collecting(tmp_path / "h.db", **RATE) as server, ThreadPoolExecutor(STORING_THREADS) as clients:
        batch = clients.submit(sent, server, costly(9, 2 * COUNT))
        wait_until(lambda: running(server) == 1)
        for _ in range(5):
            assert server.post(trace()).json()["stored"] == 1
        assert not batch.done()
        assert batch.result().json()["stored"] == 2 * COUNT
        batches = [clients.submit(sent, server, body) for body in bodies]
        wait_until(lambda: running(server) == STORING_THREADS)
        for path in ("/api/health", "/api/traces", "/api/metrics", "/api/traces?limit=1"):
            assert server.client.get(path).status_code == 200
        assert not any(batch.done() for batch in batches)
        assert [batch.result().json()["stored"] for batch in batches] == [COUNT] * STORING_THREADS
        assert len(server.stored()) == (STORING_THREADS + 2) * COUNT + 5


def processor_s(server: Collecting) -> float:
    """Return the processor time that the collector has used."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
@pytest.mark.requirement("TRACE-4")
@pytest.mark.parametrize("pattern", ["sk-", "DB_PASS=ZPxzt8Mv "])
def test_a_request_full_of_prefixes_does_not_block_other_clients(tmp_path: Path, pattern: str) -> None:
    """R8: one authorised request of 4.8 MB of `sk-sk-…` took 35 s."""
    text = pattern * (96_000 // len(pattern))
    body = [trace(taskResults=[task(number, result=text) for number in range(1, 11)]) for _ in range(5)]
    with collecting(tmp_path / "h.db", **RATE) as server, ThreadPoolExecutor(1) as clients:
        assert server.post(trace()).status_code == 200
        before_s = processor_s(server)
        batch = clients.submit(sent, server, body)
        answered = 0
        while not batch.done():
            assert server.client.get("/api/health").status_code == 200
            assert server.post(trace()).json()["stored"] == 1
            answered += 1
        assert batch.result().json()["stored"] == len(body)
        assert answered >= 1
        assert processor_s(server) - before_s < WORK_S + answered * 0.1
