"""Pages on agents, executed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli_samples import call
from mcp import Client, StdioServerParameters
from mcp_types import ResourceTemplate, Tool

from healkit import Config
from healkit.config import settings
from healkit.faces.mcp_server import answers, clients, server, transports

DOCS = Path(__file__).parents[3] / "docs"
PAGE, CLIENTS_PAGE = ((DOCS / name).read_text() for name in ("agents.md", "agent_clients.md"))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE + CLIENTS_PAGE, re.MULTILINE | re.DOTALL)
PYTHON = [block for kind, block in BLOCKS if kind == "python"]
CONSOLE = [block for kind, block in BLOCKS if kind == "console"]

pytestmark = pytest.mark.requirement("FACE-5")


def commands(block: str) -> list[tuple[str, str]]:
    """Return each command of a console block, and the output shown under it."""
    found = (part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])
    return [(command, shown.strip()) for command, _, shown in found]


def folded(text: str) -> str:
    """Remove what differs from run to run: times, rows, durations, the machine's tier, padding."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<time>", text)
    text = re.sub(r"\d+(\.\d+)? m?s\b", "<duration>", text)
    text = re.sub(r"\b(namespaces|landlock)\b", "<tier>", text)
    text = re.sub(r"(?m)^\d+(?= +<time>)", "<row>", text)  # what a healing tried is on record too
    return re.sub(r" {2,}", "  ", text).strip()


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path):
    """Run a program in the folder that has the database, and return what it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def done(*words: str) -> str:
        ended = subprocess.run(
            words, cwd=tmp_path, env={**environment, "PATH": path}, capture_output=True, text=True,
            timeout=100, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return done


@pytest.mark.slow
def test_the_session_of_the_page_runs_and_is_on_record_as_the_page_shows(run) -> None:
    run(sys.executable, "-W", "error", "-c", PYTHON[0])
    ((command, shown),) = commands(next(block for block in CONSOLE if "healkit log" in block))
    assert folded(run("bash", "-c", command)) == folded(shown)


def test_the_patterns_of_the_policy_mean_what_the_page_says() -> None:
    exec(PYTHON[1], {})


def test_each_client_has_the_configuration_that_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    told = dict(re.findall(r"^\| `([\w-]+)` \| `?([^|`]+)`? \|$", CLIENTS_PAGE, re.MULTILINE))
    assert told == {client: where for client, (_, where) in clients.CLIENTS.items()}
    shown = dict(pair for block in CONSOLE for pair in commands(block) if "--print-config" in pair[0])
    assert len(shown) >= 2
    monkeypatch.setenv("HEALKIT_DB", "/srv/healkit.db")
    monkeypatch.setattr(sys, "executable", "/srv/venv/bin/python")
    for command, lines in shown.items():
        printed = call(*command.split()[1:])
        assert [printed.stdout.strip(), printed.stderr.strip()] == lines.splitlines(), command


@pytest.mark.slow
def test_the_server_over_http_answers_the_request_of_the_page(run) -> None:
    start, ask = (block for kind, block in BLOCKS if kind == "sh")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])  # that of the page may be taken
    script = f"""{start.rstrip().removesuffix("&")} 2> started.txt &
trap 'kill -INT $!; wait' EXIT
until grep -q 'Serving MCP' started.txt; do kill -0 $!; sleep 0.05; done
{ask}"""
    answered = run("bash", "-ec", script.replace("8009", port))
    told = json.loads(answered.partition("data: ")[2] or answered)
    assert told["result"]["serverInfo"]["name"] == "healkit"


def test_the_numbers_of_the_page_are_those_of_the_program() -> None:
    for name, default in re.findall(r"^\| `HEALKIT_(MCP_\w+)` \| (\d+) \|", PAGE, re.MULTILINE):
        assert getattr(Config(), name.lower()) == float(default)
    assert PAGE.count("| `HEALKIT_MCP_") == sum(setting.name.startswith("mcp_") for setting in settings())
    assert f"{clients._AT_ONCE_MAX} calls run at the same time" in PAGE
    assert f"{transports.MESSAGE_MAX_BYTES // 2**20} MiB" in PAGE
    assert f"more than {answers.TEXT_MAX_CHARS:,} characters" in PAGE
    assert f"first {answers.PRINTED_MAX_CHARS:,} characters" in PAGE
    assert f"up to {answers._IMAGES_MAX} images of up to {answers.IMAGE_MAX_BYTES // 2**20} MiB" in PAGE
    assert f"progress every {server.PROGRESS_EVERY_S:g} seconds" in PAGE


@pytest.mark.slow
def test_a_client_lists_the_tools_of_the_table_at_the_price_that_the_page_names(
    environment: dict[str, str],
) -> None:
    words = ["-m", "healkit", "mcp"]

    async def listed() -> tuple[list[Tool], str, list[ResourceTemplate]]:
        async with Client(
            StdioServerParameters(command=sys.executable, args=words, env=environment)
        ) as client:
            templates = await client.list_resource_templates()
            return (await client.list_tools()).tools, client.instructions or "", templates.resource_templates

    tools, instructions, templates = asyncio.run(asyncio.wait_for(listed(), 60))
    section = PAGE.partition("## Tools")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [tool.name for tool in tools]
    assert [one.uri_template for one in templates if one.uri_template.partition("{")[0] not in section] == []

    found = re.search(r"about ([\d,]+) characters. They are about ([\d,]+) tokens", PAGE)
    assert found is not None
    characters, tokens = (int(number.replace(",", "")) for number in found.groups())
    told = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]
    measured = len(json.dumps(told, ensure_ascii=False, separators=(",", ":"))) + len(instructions)
    # No tokenizer is at hand here; a few other words do not change how many characters one token has.
    assert measured == pytest.approx(characters, rel=0.05)
    assert tokens < 3000
