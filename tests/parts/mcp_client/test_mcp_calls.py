"""Calls of real MCP servers, from inside restricted workers."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_samples import plain, state
from processes import has_ended
from waiting import wait_until

from healkit import Config, Healkit

pytestmark = pytest.mark.requirement("WORK-9")
Run = Callable[..., Any]


def test_a_restricted_worker_reads_a_file_through_a_server_and_the_host_records_it(
    healkit: Healkit, reached: dict[str, Any], run: Run
) -> None:
    assert "read_file" in [tool.name for tool in healkit.connect("shop", **reached)]
    execution = run("return [mcp.shop.read_file(path='note.txt'), mcp.shop.list_files()]")
    assert execution.failure is None, execution.failure.traceback
    assert execution.value == ["buy tea", ["note.txt"]]
    assert execution.isolation in {"namespaces", "landlock"}
    call = healkit.log.calls(execution.trace_id)[0]
    assert (call.server, call.tool, call.arguments) == ("shop", "read_file", {"path": "note.txt"})
    assert (call.success, call.result_summary) == (True, '"buy tea"')


@pytest.mark.requirement("WORK-7")
def test_a_servers_tool_looks_and_answers_as_a_function_does(
    healkit: Healkit, stdio: dict[str, Any], run: Run
) -> None:
    """C7: also for one dict, as the seed document writes; structured content is a value, and text stays text."""
    healkit.connect("shop", **stdio)
    healkit.connect("older", command=plain("ok"))
    execution = run(
        "import inspect\nshop = mcp.shop\nread, echo = shop.read_file, shop.echo\n"
        "return [read({'path': 'note.txt'}), shop.list_files({}), str(inspect.signature(echo)), echo.__doc__, echo('a', 2),\n"
        "        shop.measure(text='a b'), mcp.older.first(), shop.pixel()]",
        calls=("shop.*", "older.first"),
    )
    *values, image = execution.value
    assert values == [
        "buy tea", ["note.txt"], "(text: str, times: int = 1, **more)", "The text, so many times.", "a\na",
        {"characters": 3, "words": 2}, '{"called": "first"}',
    ]  # fmt: skip
    data = base64.b64decode(image["base64"])
    assert data.startswith(b"\x89PNG")
    assert (image["mime_type"], image["size_bytes"]) == ("image/png", len(data))


@pytest.mark.slow
@pytest.mark.requirement("WORK-8")
def test_several_calls_are_in_flight_on_one_connection(
    healkit: Healkit, reached: dict[str, Any], run: Run
) -> None:
    healkit.connect("shop", **reached)
    execution = run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(3) as pool:\n    return list(pool.map(lambda n: mcp.shop.meet(n=n), range(3)))"
    )
    assert execution.value == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.requirement("WORK-10")
def test_a_tool_that_fails_on_the_server_is_an_error_with_the_servers_words(
    healkit: Healkit, reached: dict[str, Any], run: Run
) -> None:
    healkit.connect("shop", **reached)
    execution = run(
        "try:\n    mcp.shop.read_file(path='../secret.txt')\n"
        "except Exception as error:\n    return [type(error).__name__, error.code, str(error)]"
    )
    name, code, text = execution.value
    assert (name, code) == ("ToolCallError", "MCP_ERROR")
    assert "'../secret.txt' is outside of the folder" in text
    call = healkit.log.calls(execution.trace_id)[0]
    assert (call.success, call.error_code) == (False, "MCP_ERROR")
    assert "outside of the folder" in call.error


def test_an_answer_that_breaks_the_protocol_is_an_error(healkit: Healkit, run: Run) -> None:
    healkit.connect("shop", command=plain("broken"))
    failure = run("mcp.shop.first()").failure
    assert failure.ename == "ToolCallError"
    assert "'shop' gave no valid answer" in failure.evalue


@pytest.mark.slow
@pytest.mark.requirement("WORK-4")
def test_a_slow_call_times_out_and_the_server_stops_it(
    tmp_path: Path, folder: Path, reached: dict[str, Any]
) -> None:
    with Healkit(tmp_path / "x.db", config=Config(rpc_timeout_s=1, start_timeout_s=30)) as healkit:
        healkit.connect("shop", **reached)
        healkit.vault.add(
            "impatient",
            "def impatient():\n    try:\n        mcp.shop.slow(seconds=60, mark='slow')\n"
            "    except Exception as error:\n        return [error.code, mcp.shop.measure(text='on')['words']]\n",
            grants={"calls": ["shop.*"]},
        )
        execution = healkit.execute("impatient")
        assert execution.value == ["CALL_TIMEOUT", 1]
        assert healkit.log.calls(execution.trace_id)[0].error_code == "CALL_TIMEOUT"
        wait_until((folder / "slow.stopped").exists)


@pytest.mark.slow
def test_a_call_that_the_server_dies_over_is_not_repeated_and_the_next_one_starts_it_again(
    healkit: Healkit, stdio: dict[str, Any], run: Run
) -> None:
    healkit.connect("shop", **stdio)
    execution = run(
        "before = mcp.shop.pid()\n"
        "try:\n    mcp.shop.die()\nexcept Exception as error:\n    told = [error.code, str(error)]\n"
        "return [*told, before != mcp.shop.pid()]"
    )
    code, text, is_another = execution.value
    assert code == "MCP_UNAVAILABLE"
    assert "ended before it had answered 'die'" in text
    assert "not repeated" in text
    assert is_another
    call = healkit.log.calls(execution.trace_id)[1]
    assert call.error_code == "MCP_UNAVAILABLE"
    assert "giving up" in call.error  # what it wrote on stderr is for the log
    assert "giving up" not in text


@pytest.mark.slow
def test_a_call_over_which_an_http_server_is_killed_is_not_repeated(
    healkit: Healkit, folder: Path, http: Any, run: Run
) -> None:
    healkit.connect("shop", url=http.url)
    healkit.provide(lambda: (wait_until((folder / "begun").exists), http.stop())[0], "kill")
    execution = run(
        "import threading\nthreading.Timer(0, mcp.host.kill).start()\n"
        "try:\n    mcp.shop.slow(seconds=60, mark='begun')\nexcept Exception as error:\n    return [error.code, str(error)]",
        calls=("shop.*", "host.*"),
    )
    assert execution.value[0] == "MCP_UNAVAILABLE"
    assert "not repeated" in execution.value[1]


@pytest.mark.slow
def test_a_server_that_died_between_calls_is_started_again_unnoticed(
    healkit: Healkit, stdio: dict[str, Any], run: Run
) -> None:
    healkit.connect("shop", **stdio)
    first = run("return mcp.shop.pid()").value
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: state(healkit) == "gone")
    again = run("return mcp.shop.pid()")
    assert again.failure is None, again.failure.traceback
    assert again.value != first
    assert has_ended(first)


@pytest.mark.slow
@pytest.mark.parametrize("age", ["http", "older_http"])
def test_an_http_server_that_was_restarted_is_reached_again_unnoticed(
    healkit: Healkit, request: pytest.FixtureRequest, run: Run, age: str
) -> None:
    server = request.getfixturevalue(age)
    healkit.connect("shop", url=server.url)
    assert run("return mcp.shop.read_file(path='note.txt')").value == "buy tea"
    server.stop()
    server.start()
    again = run("return mcp.shop.read_file(path='note.txt')")
    assert again.failure is None, again.failure.traceback


@pytest.mark.slow
def test_an_http_server_that_is_down_is_said_to_be_and_used_again_when_it_is_back(
    healkit: Healkit, http: Any, run: Run
) -> None:
    healkit.connect("shop", url=http.url)
    http.stop()
    execution = run("mcp.shop.read_file(path='note.txt')")
    assert "MCP server 'shop' is not available" in execution.failure.evalue
    assert "cannot connect" in healkit.log.calls(execution.trace_id)[0].error
    http.start()
    wait_until(lambda: run("return mcp.shop.read_file(path='note.txt')").ok)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stdio", "http", "older"])
def test_tools_that_a_server_adds_while_it_runs_are_there_for_the_next_execution(
    healkit: Healkit, request: pytest.FixtureRequest, run: Run, kind: str
) -> None:
    if kind == "older":
        tools, change = healkit.connect("shop", command=plain("ok")), "first"
    else:
        found = request.getfixturevalue(kind)
        tools = healkit.connect("shop", **(found if kind == "stdio" else {"url": found.url}))
        change = "grow"
    assert run(f"mcp.shop.{change}()").failure is None
    wait_until(lambda: len(healkit.executor.providers["shop"].definitions("default")) == len(tools) + 1)
    assert len(run("return dir(mcp.shop)").value) == len(tools) + 1


@pytest.mark.slow
@pytest.mark.requirement("WORK-8")
def test_a_tool_may_call_a_server_only_when_its_grants_name_it(
    healkit: Healkit, stdio: dict[str, Any], run: Run
) -> None:
    healkit.connect("shop", **stdio)
    healkit.vault.add("open", "def open():\n    return [dir(mcp), mcp.shop.pid()]\n")
    failure = healkit.execute("open").failure
    assert failure.ename == "AttributeError"
    assert "no server 'shop' that this tool may call" in failure.evalue
    execution = run("return dir(mcp.shop)", calls=("shop.read_file", "shop.p*"))
    assert execution.value == ["pid", "pixel", "read_file"]


@pytest.mark.slow
def test_a_server_does_not_inherit_the_hosts_secrets(
    healkit: Healkit, stdio: dict[str, Any], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    healkit.connect("shop", **stdio, env={"SHOP_KEY": "given"})
    environment = run("return mcp.shop.environment()").value
    assert environment["SHOP_KEY"] == "given"
    assert "SOME_TOKEN" not in environment
    assert "given" not in repr(healkit.servers())
