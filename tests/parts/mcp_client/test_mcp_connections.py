"""Servers: started, told apart, found wanting, and ended."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from cli_samples import call
from mcp_samples import WORKSHOP, plain, state
from processes import has_ended, running
from programs import python
from waiting import wait_until

from healkit import Healkit
from healkit.core.runtime import background
from healkit.errors import ConfigError, McpError, McpUnavailable

pytestmark = pytest.mark.requirement("WORK-9")
Run = Callable[..., Any]


def closed_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"command": ["/nowhere/server"]}, "No such file or directory: '/nowhere/server'"),
        ({"command": plain("leaves")}, "it ended before it had answered. It wrote: no licence"),
        pytest.param(
            {"command": plain("mute"), "start_timeout_s": 1},
            "it did not answer within 1 s",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"command": plain("garbage"), "start_timeout_s": 3},  # time enough to print it
            "it prints text that is not a message: 'Welcome!'",
            marks=pytest.mark.slow,
        ),
        ({"url": f"http://127.0.0.1:{closed_port()}/mcp"}, "cannot connect"),
    ],
    ids=["missing", "leaves", "mute", "garbage", "nobody-listens"],
)
def test_a_server_that_cannot_be_started_is_one_clear_error_and_leaves_nothing(
    healkit: Healkit, how: dict[str, Any], expected: str
) -> None:
    before = set(psutil.Process().children())
    with pytest.raises(McpUnavailable) as caught:
        healkit.connect("shop", **how)
    assert expected in str(caught.value)
    assert caught.value.code == ("MCP_MISSING" if "No such file" in expected else "MCP_UNAVAILABLE")
    assert healkit.servers() == []
    assert not running(set(psutil.Process().children()) - before)


@pytest.mark.slow
def test_a_page_without_an_mcp_server_is_one_clear_error(healkit: Healkit, http: Any) -> None:
    with pytest.raises(McpUnavailable, match=r"cannot be used: .* \(HTTP 404 Not Found\)"):
        healkit.connect("shop", url=http.url.replace("/mcp", "/elsewhere"))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("clash", "two tools that would both be called mcp.shop.read_file: 'read-file' and 'read_file'"),
        ("endless", "lists its tools endlessly"),
    ],
)
def test_tools_that_cannot_be_told_apart_or_counted_are_refused(
    healkit: Healkit, mode: str, expected: str
) -> None:
    with pytest.raises(McpError, match=expected) as caught:
        healkit.connect("shop", command=plain(mode))
    assert caught.value.code == "MCP_ERROR"
    assert healkit.servers() == []


@pytest.mark.slow
@pytest.mark.requirement("WORK-7")
def test_tools_in_pages_are_all_there_under_names_that_python_can_write(healkit: Healkit, run: Run) -> None:
    tools = healkit.connect("shop", command=plain("chatty"))  # what it prints besides is passed over
    assert [tool.name for tool in tools] == ["first", "second_tool", "tool_3rd", "import_"]
    assert run("return mcp.shop.second_tool()").value == '{"called": "second-tool"}'
    assert run("return mcp.shop.import_(x=1)").value == '{"called": "import"}'


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("vault", {"command": ["x"]}, "healkit uses it"),
    ("two words", {"command": ["x"]}, "it is not an identifier"),
    ("_hidden", {"command": ["x"]}, "it is not an identifier"),
    ("shop", {}, "needs either"),
    ("shop", {"command": ["x"], "url": "http://x"}, "needs either"),
    ("shop", {"command": "npx -y server"}, r"use command=\['npx', '-y', 'server'\]"),
    ("shop", {"command": []}, "not a list of strings"),
    ("shop", {"command": ["x", 1]}, "not a list of strings"),
    ("shop", {"url": "ftp://x"}, "not an http:// or https:// address"),
    ("shop", {"command": ["x"], "start_timeout_s": 0}, "greater than 0"),
]


def test_what_could_not_work_is_refused_before_anything_is_started(healkit: Healkit) -> None:
    for name, how, expected in WRONG:
        with pytest.raises(ConfigError, match=expected):
            healkit.connect(name, **how)


@pytest.mark.slow
def test_the_same_cell_again_keeps_the_server_and_another_command_replaces_it(
    healkit: Healkit, stdio: dict[str, Any], run: Run
) -> None:
    healkit.connect("shop", **stdio)
    first = run("return mcp.shop.pid()").value
    healkit.connect("shop", **stdio)
    assert run("return mcp.shop.pid()").value == first
    healkit.connect("shop", command=plain("ok"))
    assert has_ended(first)
    assert run("return mcp.shop.first()").ok


@pytest.mark.slow
def test_a_disconnected_server_has_gone_and_so_have_its_tools(
    healkit: Healkit, stdio: dict[str, Any], run: Run
) -> None:
    healkit.connect("shop", **stdio)
    pid = run("return mcp.shop.pid()").value
    with pytest.raises(ConfigError, match="Did you mean 'shop'"):
        healkit.disconnect("shpo")
    healkit.disconnect("shop")
    assert has_ended(pid)
    assert healkit.servers() == []
    assert "mcp has no server 'shop'" in run("mcp.shop.pid()").failure.evalue
    with pytest.raises(ConfigError, match="No MCP server 'host'"):
        healkit.disconnect("host")


def write_config(path: Path, **servers: Any) -> Path:
    """Write a file as most MCP clients have one."""
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


@pytest.mark.slow
def test_the_servers_of_a_file_are_started_only_for_tools_that_may_call_them(
    healkit: Healkit, tmp_path: Path, folder: Path, run: Run
) -> None:
    config = write_config(
        tmp_path / "mcp.json",
        **{
            "the-shop": {"command": sys.executable, "args": [WORKSHOP, str(folder)], "autoApprove": ["x"]},
            "broken": {"type": "stdio", "command": "/nowhere/server", "env": {"KEY": "secret"}},
            "away": {"type": "http", "url": "http://127.0.0.1:1/mcp?key=secret", "headers": {"X": "secret"}},
            "off": {"command": "x", "disabled": True},
        },
    )
    assert healkit.connect_all(config) == ["the_shop", "broken", "away"]
    assert run("return mcp.the_shop.read_file(path='note.txt')", calls=("the_shop.*",)).value == "buy tea"
    assert [state(healkit, name) for name in ("the_shop", "broken", "away")] == ["running", "idle", "idle"]
    assert "secret" not in repr(healkit.servers())


@pytest.mark.slow
def test_a_tool_learns_that_its_server_is_unavailable_and_the_log_learns_why(
    healkit: Healkit, tmp_path: Path, run: Run
) -> None:
    healkit.connect_all(write_config(tmp_path / "mcp.json", shop={"command": "/nowhere/server"}))
    execution = run("shop = mcp.shop\nshop.buy('tea', number=2)")
    assert execution.failure.ename == "ToolCallError"
    assert "mcp.shop.buy: The MCP server 'shop' is not available" in execution.failure.evalue
    assert "/nowhere" not in execution.failure.traceback
    call = healkit.log.calls(execution.trace_id)[0]
    assert (call.success, call.error_code) == (False, "MCP_MISSING")
    assert "No such file or directory: '/nowhere/server'" in call.error
    assert state(healkit) == "failed"


WRONG_FILES = [
    ("{", "Cannot read MCP servers"),
    ("[]", "has no mcpServers object"),
    ('{"mcpServers": {"x": "npx"}}', "has no mcpServers object"),
    ('{"mcpServers": {"x": {"type": "sse", "url": "http://x"}}}', "'x' uses the transport 'sse'"),
    ('{"mcpServers": {"x": {"command": ["npx"]}}}', "needs a command .a string. and args"),
    ('{"mcpServers": {"x": {"command": "npx", "env": {"A": 1}}}}', "env of the MCP server 'x'"),
    ('{"mcpServers": {"a-b": {"command": "x"}, "a_b": {"command": "x"}}}', "would both be called mcp.a_b"),
    ('{"mcpServers": {"host": {"command": "x"}}}', "healkit uses it"),
]


def test_a_file_that_cannot_be_read_as_servers_is_refused(healkit: Healkit, tmp_path: Path) -> None:
    for text, expected in WRONG_FILES:
        (tmp_path / "mcp.json").write_text(text)
        with pytest.raises(ConfigError, match=expected):
            healkit.connect_all(tmp_path / "mcp.json")
        assert healkit.servers() == []


@pytest.mark.slow
def test_the_command_line_takes_the_same_file(healkit: Healkit, tmp_path: Path, folder: Path) -> None:
    config = write_config(
        tmp_path / "mcp.json", shop={"command": sys.executable, "args": [WORKSHOP, str(folder)]}
    )
    code = "def note():\n    return mcp.shop.read_file(path='note.txt')\n"
    healkit.vault.add("note", code, grants={"calls": ["shop.read_file"]})
    command = ["run", "note", "--db", str(healkit.path), "--mcp"]
    done = call(*command, str(config))
    assert (done.returncode, done.stdout) == (0, "buy tea\n"), done.stderr
    done = call(*command, str(tmp_path / "none.json"))
    assert done.returncode == 2
    assert done.stderr.startswith("Cannot read MCP servers from")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["ok", "stubborn"])
def test_closing_leaves_no_server_behind(tmp_path: Path, mode: str) -> None:
    before = set(psutil.Process().children())
    with Healkit(tmp_path / "x.db") as healkit:
        healkit.connect("shop", command=plain(mode))
        started = set(psutil.Process().children()) - before
        assert started
    assert not running(started)
    healkit.close()


@pytest.mark.slow
def test_a_stopped_event_loop_ends_the_servers_and_they_start_again_when_asked(
    healkit: Healkit, stdio: dict[str, Any], run: Run
) -> None:
    healkit.connect("shop", **stdio)
    pid = run("return mcp.shop.pid()").value
    background.shutdown()
    assert has_ended(pid)
    again = run("return mcp.shop.pid()")
    assert again.failure is None, again.failure.traceback
    assert again.value != pid


HOST = """
    import sys, threading
    from healkit import Healkit
    healkit = Healkit(sys.argv[1])
    healkit.connect("shop", command=sys.argv[3:])
    healkit.vault.add("pid", "def pid():\\n    return mcp.shop.pid()\\n", grants={"calls": ["shop.*"]})
    healkit.vault.add("slow", "def slow():\\n    mcp.shop.slow(seconds=60, mark='slow')\\n", grants={"calls": ["shop.*"]})
    print(healkit.execute_tool("pid"), flush=True)
    if sys.argv[2] == "killed":
        healkit.execute("slow")
    del healkit
"""


@pytest.mark.slow
@pytest.mark.requirement("WORK-4")
@pytest.mark.parametrize("end", ["not closed", "killed"])
def test_a_host_that_ends_leaves_no_server_behind_not_even_in_a_call(
    tmp_path: Path, folder: Path, end: str
) -> None:
    words = [str(tmp_path / "host.db"), end, sys.executable, WORKSHOP, str(folder)]
    command = [sys.executable, "-c", textwrap.dedent(HOST), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        pid = int(host.stdout.readline())
        if end == "killed":
            wait_until((folder / "slow").exists)
            host.kill()
        host.wait(timeout=60)
    wait_until(lambda: has_ended(pid))


@pytest.mark.slow
def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys\nsys.modules['mcp'] = None\n"
        "from healkit import Healkit\n"
        "with Healkit(sys.argv[1]) as healkit:\n"
        "    try:\n        healkit.connect('shop', command=['x'])\n"
        "    except Exception as error:\n        print(error.code, error)\n"
    )
    done = python(code, tmp_path / "x.db")
    assert done.stdout.startswith("MCP_MISSING MCP servers need the package 'mcp'")
    assert "pip install 'healkit[mcp]'" in done.stdout


@pytest.mark.published
@pytest.mark.timeout(300)
def test_a_published_server_works_as_it_is(healkit: Healkit, tmp_path: Path, run: Run) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [tmp_path / "venv" / "bin" / "pip", "install", "--quiet", "mcp-server-time"]
    subprocess.run(pip, check=True)
    tools = healkit.connect("time", command=[tmp_path / "venv" / "bin" / "mcp-server-time"])
    assert {tool.name for tool in tools} == {"get_current_time", "convert_time"}
    execution = run(
        "return mcp.time.convert_time('Asia/Tokyo', '12:00', 'UTC')['target']['datetime'][11:16]",
        calls=("time.convert_time",),
    )
    assert execution.value == "03:00", execution.failure
