"""Results that are too large for one answer, over stdio."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest
from agent_samples import RawClient, data_of, error_of, in_process, run, text_of
from mcp import Client
from processes import found_below
from waiting import wait_until

from healkit import Healkit

pytestmark = pytest.mark.requirement("FACE-5")

#: Tool whose text has personal data in each line, which takes the sanitiser longest.
REPORT = """def report(size: int, seed: int = 0):
    lines = "".join(f"{seed},Anna Muster,anna{i}@mail.example,+49 30 1234{i:04d}\\n" for i in range(1000))
    return (lines * (size // len(lines) + 1))[:size]
"""
SIZE, MANY = 9_000_000, 16


async def read_whole(client: Client, address: str) -> str:
    """Read a large result in parts, by what each part says of the next."""
    texts, following = [], address
    while following:
        part, note = (await client.read_resource(following)).contents
        texts.append(part.text)
        assert len(part.text.encode()) <= 256 * 1024 + 3
        assert f"[part {len(texts)} of " in note.text
        following = note.text.partition("the next: ")[2].rstrip("]")
    return "".join(texts)


def link_of(answer: Any) -> Any:
    (link,) = [one for one in answer.content if one.type == "resource_link"]
    return link


def test_a_large_text_is_a_preview_and_a_link_and_is_read_in_parts(db: Path) -> None:
    code = "'token hunter2xY!9 ü€' + '\\nline of a report' * 40_000 + '\\npassword: hunter2xY!9\\nend'"

    async def work() -> None:
        async with in_process(db) as client:
            answer = await client.call_tool("run_code", {"code": code})
            assert len(text_of(answer)) < 5_000
            assert data_of(answer)["cut"] is True
            link = link_of(answer)
            assert link.uri == data_of(answer)["resource"] == "healkit://executions/1/result"
            assert link.size > 640_000
            whole = await read_whole(client, link.uri)
            assert whole.endswith("end")
            assert whole.count("line of a report") == 40_000
            # What is learned to be a secret at the end is one at the beginning too.
            assert "hunter2" not in whole
            assert "ü€" in whole
            third = (await client.read_resource(f"{link.uri}/3")).contents[0]
            assert third.text in whole
            with pytest.raises(Exception, match="There are the parts 1 to 3"):
                await client.read_resource(f"{link.uri}/4")

    run(work)


def test_large_json_is_cleaned_by_its_keys_and_its_parts_are_the_whole_value(db: Path) -> None:
    code = "[{'id': i, 'name': 'ü' * 20, 'password': f'hunter-{i}-xyz'} for i in range(9_000)]"

    async def work() -> None:
        async with in_process(db) as client:
            answer = await client.call_tool("run_code", {"code": code})
            assert "hunter" not in text_of(answer) + json.dumps(data_of(answer))
            rows = json.loads(await read_whole(client, link_of(answer).uri))
            assert [row["id"] for row in rows] == list(range(9_000))
            assert rows[8]["name"] == "ü" * 20
            assert not any("hunter" in row["password"] for row in rows)

    run(work)


@pytest.mark.slow
def test_what_fits_into_an_answer_is_there_whole_and_has_no_link(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            answer = await client.call_tool("run_code", {"code": "['x' * 100] * 2_000"})
            assert data_of(answer)["cut"] is True  # the text of it; longer than 20,000 characters
            assert [one.type for one in answer.content] == ["text"]
            short = await client.call_tool("run_code", {"code": "list(range(3_000))"})
            assert data_of(short)["result"] == list(range(3_000))
            # What a tool prints is cleaned as far as it is shown, also where it fails.
            failed = await client.call_tool(
                "run_code", {"code": "print('mail anna@mail.example ' * 200_000)\n1 / 0"}
            )
            assert error_of(failed)["type"] == "ZeroDivisionError"
            assert "anna@mail" not in text_of(failed)
            assert "Printed:\nmail [EMAIL]" in text_of(failed)

    run(work)


def memory_mb(client: RawClient, name: str) -> float:
    """Return a line of the server's /proc/PID/status, in MB."""
    lines = Path(f"/proc/{client.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024 / 1e6


@pytest.mark.slow
def test_small_calls_are_answered_while_sixteen_large_results_wait(db: Path, beside: Healkit) -> None:
    beside.vault.add("report", REPORT)
    with RawClient(db) as client:
        client.initialize()
        client.call("first", "run_code", code="1")
        client.answer("first")
        before_mb = memory_mb(client, "VmRSS")
        for number in range(MANY):
            client.call(number, "report", size=SIZE, seed=number)
        client.call("small", "run_code", code="6 * 7")
        order, links = [], {}
        for message in client.lines():
            if "id" in message and "method" not in message:
                order.append(message["id"])
                links[message["id"]] = message["result"]["content"][-1].get("uri")
            if len(order) == MANY + 1:
                break
        assert order.index("small") <= 4, order
        assert all(str(links[number]).endswith("/result") for number in range(MANY))
        # In MB: what the tools have returned, of which a client can read all.
        assert memory_mb(client, "VmHWM") - before_mb < 4 * MANY * SIZE / 1e6


@pytest.mark.slow
def test_cancelled_calls_and_reads_leave_nothing_running(db: Path, beside: Healkit) -> None:
    beside.vault.add("report", REPORT)

    def cancel(client: RawClient, number: int | str) -> None:
        told = {"requestId": number, "reason": "enough"}
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": told})

    def cleaning(client: RawClient) -> list[psutil.Process]:
        return found_below("large_results", client.process.pid)

    with RawClient(db) as client:
        client.initialize()
        client.call("first", "report", size=SIZE)
        (link,) = [
            one for one in client.answer("first")["result"]["content"] if one["type"] == "resource_link"
        ]
        client.ask("read", "resources/read", {"uri": link["uri"]})
        wait_until(lambda: cleaning(client))
        cancel(client, "read")
        wait_until(lambda: not cleaning(client))
        for number in range(40):
            client.call(number, "report", size=SIZE, seed=number)
            wait_until(lambda number=number: number % 4 or len(beside.executions(limit=100)) > number // 8)
            cancel(client, number)
        client.call("small", "run_code", code="6 * 7")
        assert client.answer("small")["result"]["structuredContent"]["result"] == 42
        wait_until(lambda: all(one.status != "RUNNING" for one in beside.executions(limit=100)))
        # The result is there still, for one that reads it again.
        client.ask("again", "resources/read", {"uri": f"{link['uri']}/2"})
        assert "[EMAIL]" in client.answer("again")["result"]["contents"][0]["text"]
    assert not [name for name in os.listdir(db.parent) if name.startswith("healkit-")]
