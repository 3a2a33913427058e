"""Cost of a call over MCP, compared to the call in Python.

The SDK's own client calls one server over stdio. It measures `run_tool` and `hk.execute` in turns, in executions per
second, and the list of a thousand tools. It also measures the time from the process's start to the first answer,
compared to the smallest possible server of the SDK. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client

from healkit import Healkit

CALLS, PAUSE_S, TOOLS, STARTS = 60, 0.12, 1000, 5
TOOL = "def add(n: int) -> int:\n    return n + 1\n"
SMALLEST = """
import asyncio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

async def serve():
    server = Server("smallest")
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

asyncio.run(serve())
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "b", "version": "0"},
    },
}


def median_ms(times: list[float]) -> float:
    return round(1000 * statistics.median(times), 2)


def first_answer_s(words: list[str]) -> float:
    """Return the time from a server's start to its answer to `initialize`."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *words], stdin=-1, stdout=-1, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        took_s = time.perf_counter() - begun
        process.stdin.close()
    return took_s


async def calls(client: Client, healkit: Healkit) -> dict[str, float]:
    plain, over = list[float](), list[float]()
    for number in range(CALLS):
        await asyncio.sleep(PAUSE_S)  # until there is a warm worker again
        begun = time.perf_counter()
        await asyncio.to_thread(healkit.execute, "add", arguments={"n": number})
        plain.append(time.perf_counter() - begun)
        await asyncio.sleep(PAUSE_S)
        begun = time.perf_counter()
        await client.call_tool("run_tool", {"name": "add", "arguments": {"n": number}})
        over.append(time.perf_counter() - begun)
    begun = time.perf_counter()
    for number in range(CALLS):
        await client.call_tool("add", {"n": number})
    a_second = CALLS / (time.perf_counter() - begun)
    added = median_ms(over) - median_ms(plain)
    return {
        "execute_p50_ms": median_ms(plain),
        "run_tool_p50_ms": median_ms(over),
        "added_p50_ms": round(added, 2),
        "executions_per_s": round(a_second, 1),
    }


async def listing(client: Client, healkit: Healkit) -> dict[str, float]:
    for number in range(TOOLS):
        healkit.vault.add(f"tool{number}", TOOL.replace("add", f"tool{number}"), description="Adds one.")
    times = []
    gc.disable()  # the client's own; a list is tens of thousands of objects there
    for _ in range(10):
        begun = time.perf_counter()
        found = await client.list_tools(cache_mode="bypass")
        times.append(time.perf_counter() - begun)
    gc.enable()
    assert len(found.tools) > TOOLS
    return {"list_after_a_change_ms": round(1000 * times[0], 1), "list_p50_ms": median_ms(times[1:])}


async def measured(folder: Path) -> dict[str, object]:
    db = folder / "healkit.db"
    words = ["-m", "healkit", "mcp", "--db", str(db)]
    environment = {**os.environ, "HEALKIT_MCP_RATE_PER_S": "100000"}
    server = StdioServerParameters(command=sys.executable, args=words, env=environment)
    with Healkit(db) as healkit:
        healkit.vault.add("add", TOOL)
        healkit.execute("add", arguments={"n": 0})
        async with Client(stdio_client(server)) as client:
            await client.call_tool("add", {"n": 0})
            found: dict[str, object] = {**await calls(client, healkit), **await listing(client, healkit)}
    smallest, ours = list[float](), list[float]()
    for _ in range(STARTS):
        smallest.append(first_answer_s(["-c", SMALLEST]))
        ours.append(first_answer_s(words))
    found["first_answer_s"] = round(statistics.median(ours), 3)
    found["first_answer_over_the_smallest"] = round(statistics.median(ours) / statistics.median(smallest), 2)
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(measured(Path(folder))), indent=2))
