"""Client of the seed document, and a real collector."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import threading
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from collector_samples import TOKEN, WAIT_S, Collecting, collecting
from waiting import wait_until

from healkit import Healkit

TRACE_4 = pytest.mark.requirement("TRACE-4")
CLIENT = Path(__file__).parent / "seed_client.mjs"
#: The client's body, as node makes it of the document's types.
BODY: dict[str, Any] = {
    "toolId": "fs:read",
    "success": True,
    "durationMs": 3,
    "timestamp": 1764062400123,
    "taskResults": [
        {"tool": "fs:read", "args": {"path": "a"}, "result": "x", "success": True, "durationMs": 1.5, "timestamp": 1764062400124}
    ],
}  # fmt: skip


@pytest.mark.slow
@TRACE_4
def test_a_client_written_from_the_seed_document_delivers(tmp_path: Path) -> None:
    """C1: it was refused for its names, its times, and the ids that it does not have."""
    if (node := shutil.which("node")) is None:
        pytest.skip("node is not installed")
    with Healkit(tmp_path / "h.db") as healkit:
        entry = healkit.vault.add("read_notes", "def read_notes(): return 1")
    capability = f"local.default.default.read_notes.{entry.code_hash[:12]}"
    with collecting(tmp_path / "h.db") as collector:
        command = [node, str(CLIENT), collector.url, TOKEN, capability, "3"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        stored = collector.stored()
        first = collector.client.get(f"/api/traces/{answers[0]['ids'][0]}").json()
        failed = collector.client.get("/api/traces", params={"success": "false"}).json()["traces"]
    assert [(each["status"], each["stored"], each["errors"]) for each in answers] == [(200, 3, [])] * 3
    assert answers[0]["ids"] == answers[1]["ids"] == answers[2]["ids"]
    assert sorted(stored) == sorted(answers[0]["ids"])
    assert {uuid.UUID(each).version for each in stored} == {8}
    assert (first["capabilityId"], first["toolId"]) == (capability, 1)
    assert (first["parentId"], first["decisions"]) == (None, [])
    (call,) = first["taskResults"]
    assert (call["taskId"], call["tool"], call["args"], call["result"]) == (
        "t1", "fs:read_file", {"path": "notes.txt"}, "two words",
    )  # fmt: skip
    (other,) = failed
    assert (other["error"], other["toolId"]) == ("ENOENT: gone", None)
    assert other["taskResults"][0]["success"] is False


@pytest.mark.slow
@TRACE_4
def test_equal_traces_without_ids_of_one_batch_are_each_stored_and_once(collector: Collecting) -> None:
    changed = {**BODY, "durationMs": 4}
    first, again = (collector.post(BODY, BODY, changed).json() for _ in range(2))
    assert first == again
    assert len(set(first["ids"])) == 3
    assert set(first["ids"]) <= set(collector.stored())
    reordered = dict(reversed(BODY.items()))
    assert collector.post(reordered).json()["ids"] == first["ids"][:1]


@TRACE_4
def test_a_given_id_is_kept_and_a_new_one_is_returned(collector: Collecting) -> None:
    given = str(uuid.uuid4())
    wrong = {**BODY, "timestamp": 1764062400}
    answer = collector.post({**BODY, "id": given.upper()}, wrong, {**BODY, "durationMs": 5}).json()
    assert (answer["received"], answer["stored"]) == (3, 2)
    assert [(error["index"], error["id"], error["code"]) for error in answer["errors"]] == [
        (1, None, "TRACE_INVALID")
    ]
    assert answer["ids"][:2] == [given, None]
    child = collector.post({**BODY, "durationMs": 6, "parentTraceId": answer["ids"][2]}).json()["ids"][0]
    parent = collector.client.get(f"/api/traces/{answer['ids'][2]}").json()
    assert parent["children"] == [child]
    assert "ids" not in collector.post({**BODY, "id": given}).json()


@TRACE_4
def test_an_id_is_not_made_of_what_was_hidden(collector: Collecting) -> None:
    """Hashes of short secrets could be guessed back."""
    bodies = [{**BODY, "durationMs": 7, "metadata": {"arguments": {"password": word}}} for word in ("hunter2-aaaa", "hunter2-bbbb")]  # fmt: skip
    ids = [collector.post(body).json()["ids"] for body in bodies]
    assert ids[0] == ids[1]
    shown = json.dumps(collector.client.get(f"/api/traces/{ids[0][0]}").json())
    assert "hunter2" not in shown


@pytest.mark.slow
@TRACE_4
@pytest.mark.requirement("TRACE-3")
@pytest.mark.timeout(300)
def test_traces_without_ids_arrive_once_through_kills_of_the_collector(tmp_path: Path) -> None:
    """Each batch is sent until it is answered, and once more; the collector is killed under them four times."""
    batches = [
        [{**BODY, "timestamp": 1764062400000 + batch, "durationMs": number // 2} for number in range(10)]
        for batch in range(60)
    ]
    told: dict[int, list[str]] = {}
    address: list[str] = []

    def deliver(first: int) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(headers=headers, timeout=WAIT_S) as client:
            for number in range(first, len(batches), 3):
                answers: list[list[str]] = []
                while len(answers) < 2:
                    with contextlib.suppress(httpx.TransportError):
                        answer = client.post(f"{address[0]}/api/traces", json={"traces": batches[number]})
                        assert answer.json()["stored"] == 10
                        answers.append(answer.json()["ids"])
                assert answers[0] == answers[1]
                told[number] = answers[0]

    def start() -> Collecting:
        return Collecting(tmp_path / "h.db", HEALKIT_COLLECT_RATE_PER_S="10000")

    server = start()
    address.append(server.url)
    senders = [threading.Thread(target=deliver, args=(first,)) for first in range(3)]
    for sender in senders:
        sender.start()
    for kill in range(1, 5):
        wait_until(lambda kill=kill: len(told) >= 10 * kill)
        server.end(signal.SIGKILL)
        server = start()
        address[0] = server.url
    for sender in senders:
        sender.join(WAIT_S)
    stored = server.stored()
    server.end()
    assert sorted(told) == list(range(len(batches)))
    assert sorted(stored) == sorted(each for ids in told.values() for each in ids)
    assert len(stored) == 600
