"""`map_tool`: an agent's many inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_samples import data_of, error_of, in_process, run

pytestmark = pytest.mark.requirement("SCALE-4", "FACE-5")

INVERSE = "def inverse(n: int):\n    return 1 / n\n"


def test_an_agent_maps_a_tool_and_goes_on(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            data_of(await client.call_tool("write_tool", {"name": "inverse", "code": INVERSE}))
            inputs = [{"n": 1}, {"n": 0}, {"n": 4}]
            told = data_of(await client.call_tool("map_tool", {"name": "inverse", "inputs": inputs}))
            assert (told["done"], told["failed"]) == (3, 1)
            assert [row.get("result") for row in told["results"]] == [1.0, None, 0.25]
            (group,) = told["failures"]
            assert group["execution"] == f"healkit://executions/{group['log_id']}"
            shown = data_of(await client.call_tool("get_execution", {"log_id": group["log_id"]}))
            assert (shown["origin"], shown["arguments"]) == ("map", {"n": 0})
            again = {"name": "inverse", "inputs": inputs, "run_id": told["run_id"]}
            assert data_of(await client.call_tool("map_tool", again))["earlier"] == 3
            other = await client.call_tool("map_tool", {"name": "inverse", "inputs": [{"n": 1}] * 1001})
            assert "several calls" in error_of(other)["next"]
            wrong = await client.call_tool("map_tool", {"name": "inverse", "inputs": 3})
            assert error_of(wrong)["code"] == "ARGUMENTS_INVALID"

    run(work)


def test_a_map_of_another_persona_cannot_be_read(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            data_of(await client.call_tool("write_tool", {"name": "inverse", "code": INVERSE}))
            told = data_of(await client.call_tool("map_tool", {"name": "inverse", "inputs": [{"n": 1}]}))
        async with in_process(db, "--persona", "other") as client:
            given = {"name": "inverse", "inputs": [{"n": 1}], "run_id": told["run_id"]}
            assert error_of(await client.call_tool("map_tool", given))["code"] == "USAGE_INVALID"

    run(work)
