"""Answers to an agent's calls, over stdio."""

from __future__ import annotations

import asyncio
import base64
import json
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from agent_samples import FIXED, MEAN, connected, data_of, error_of, in_process, run, text_of
from cli_samples import call

from healkit import Healkit
from healkit.faces.mcp_server.clients import CLIENTS
from healkit.faces.mcp_server.own_tools import own_tools
from healkit.faces.mcp_server.server import INSTRUCTIONS, exposed_names

pytestmark = pytest.mark.requirement("FACE-5")


@pytest.mark.slow
def test_values_come_as_they_are_and_what_json_lacks_is_said(db: Path) -> None:
    async def work() -> None:
        async with connected(db) as client:
            plain = await client.call_tool("run_code", {"code": "{'a': [1, 2.5, None, 'ü']}"})
            assert data_of(plain)["result"] == {"a": [1, 2.5, None, "ü"]}
            assert json.loads(text_of(plain)) == {"a": [1, 2.5, None, "ü"]}
            odd = await client.call_tool("run_code", {"code": "print('seen')\n{1, 2}"})
            assert data_of(odd)["result"] == [1, 2]
            assert "set" in " ".join(data_of(odd)["notes"])
            assert "Printed:\nseen" in text_of(odd)
            nothing = await client.call_tool("run_code", {"code": "x = None"})
            assert data_of(nothing)["result"] is None

    run(work)


def test_a_failure_is_an_error_with_the_tools_own_line_and_the_next_step(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            data_of(await client.call_tool("write_tool", {"name": "mean", "code": MEAN}))
            failed = await client.call_tool("mean", {"xs": [1, 2]})
            error = error_of(failed)
            assert (error["code"], error["type"]) == ("TOOL_EXCEPTION", "NameError")
            assert error["frames"] == [{"line": 2, "function": "mean", "source": "return sum(xs) / len(x)"}]
            assert "propose_patch(name='mean'" in error["next"]
            assert error["log_id"] == 1
            report = text_of(await client.call_tool("get_last_error", {"name": "mean"}))
            assert report.startswith("Last error for tool 'mean':")
            assert "NameError: name 'x' is not defined" in report
            shown = data_of(await client.call_tool("get_execution", {"log_id": 1}))
            assert shown["client"] == "tester 1.2, session " + shown["client"][-8:]
            assert (shown["origin"], shown["arguments"]) == ("mcp", {"xs": [1, 2]})
            bad = error_of(await client.call_tool("mean", {"xs": "no list"}))
            assert bad["code"] == "ARGUMENTS_INVALID"

    run(work)


def test_a_patch_is_validated_before_it_is_offered_and_applied_only_with_consent(
    db: Path, beside: Healkit
) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            example = {"arguments": {"xs": [1, 3]}, "result": 2}
            await client.call_tool("write_tool", {"name": "mean", "code": MEAN, "examples": [example]})
            error_of(await client.call_tool("mean", {"xs": [1, 2]}))
            wrong = FIXED.replace("sum(xs)", "min(xs)")
            refused = await client.call_tool(
                "propose_patch", {"name": "mean", "code": wrong, "reason": "a guess"}
            )
            assert refused.is_error
            assert refused.structured_content is not None
            (failing,) = [one for one in refused.structured_content["checks"] if one["outcome"] != "passed"]
            assert failing["difference"] == "gives another number"
            assert beside.requests.pending() == []
            asked = {"name": "mean", "code": FIXED, "reason": "the name is xs"}
            proposed = data_of(await client.call_tool("propose_patch", asked))
            assert proposed["verdict"] == "fixed, no regressions"
            assert all(one["outcome"] == "passed" for one in proposed["checks"])
            apply = {"request_id": proposed["request_id"], "code_hash": proposed["code_hash"]}
            waits = error_of(await client.call_tool("apply_patch", apply))
            assert waits["code"] == "APPROVAL_NEEDED"
            assert beside.vault.get("mean").revision == 1
            other = error_of(await client.call_tool("apply_patch", {**apply, "code_hash": "0" * 64}))
            assert other["code"] == "AGENT_REFUSED"
            (request,) = beside.requests.pending()
            assert (request.advisor, request.author, request.reason) == ("tester", "agent", "the name is xs")
            beside.requests.accept(request.id)
            runs = len(beside.executions(tried=True, limit=500))
            applied = data_of(await client.call_tool("apply_patch", apply))
            assert (applied["applied"], applied["revision"]) == (True, 2)
            assert data_of(await client.call_tool("apply_patch", apply))["revision"] == 2
            assert len(beside.executions(tried=True, limit=500)) == runs  # to approve runs nothing
            assert data_of(await client.call_tool("mean", {"xs": [1, 2]}))["result"] == 1.5

    run(work)


@pytest.mark.slow
@pytest.mark.requirement("MEAN-2", "MEAN-5")
def test_an_agent_gets_the_loss_of_its_patch_in_numbers(db: Path, beside: Healkit) -> None:
    code = "import pandas as pd\ndef clean(df):\n    return df.assign(units=df['units'].astype(int))\n"
    lake, rows = pd.DataFrame({"units": ["1"]}), pd.DataFrame({"units": ["1", "secret", "3"]})
    examples = [{"arguments": {"df": lake}, "result": lake.assign(units=[1])}]
    beside.vault.add("clean", code, examples=examples)
    assert beside.execute("clean", arguments={"df": rows}).failure is not None
    lossy = code.replace("df['units'].astype(int)", "pd.to_numeric(df['units'], errors='coerce')")

    async def work() -> None:
        async with in_process(db) as client:
            asked = {"name": "clean", "code": lossy, "reason": "texts become numbers"}
            proposed = (await client.call_tool("propose_patch", asked)).structured_content
            assert proposed is not None
            assert proposed["lost"] == "1 of 3 values become missing."
            assert "fixed" not in proposed["verdict"]

    run(work)


def test_a_tool_that_works_can_be_patched_and_its_recorded_runs_still_count(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            code = "def double(n: int) -> int:\n    return n + n\n"
            await client.call_tool("write_tool", {"name": "double", "code": code})
            assert data_of(await client.call_tool("double", {"n": 4}))["result"] == 8
            ask = {
                "name": "double",
                "reason": "shorter",
                "code": "def double(n: int) -> int:\n    return n ** 2\n",
            }
            broken = await client.call_tool("propose_patch", ask)
            assert broken.is_error, broken
            ask["code"] = "def double(n: int) -> int:\n    return 2 * n\n"
            same = data_of(await client.call_tool("propose_patch", ask))
            assert same["outcome"] == "pending"
            assert same["request_id"]

    run(work)


def test_tables_are_views_that_an_argument_can_name(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            made = await client.call_tool(
                "run_code", {"code": "import pandas as pd\npd.DataFrame({'a': range(5000), 'token': 'x'})"}
            )
            (link,) = [block for block in made.content if block.type == "resource_link"]
            assert "DataFrame of shape (5000, 2) with a: int64" in (link.description or "")
            view = json.loads((await client.read_resource(link.uri)).contents[0].text)  # type: ignore[union-attr]  # a text
            assert view["shape"] == [5000, 2]
            assert view["preview"]["first"][0][0] == 0
            code = "import pandas as pd\ndef total(frame: pd.DataFrame) -> int:\n    return int(frame['a'].sum())\n"
            await client.call_tool("write_tool", {"name": "total", "code": code})
            summed = await client.call_tool("total", {"frame": link.uri})
            assert data_of(summed)["result"] == sum(range(5000))
            gone = error_of(await client.call_tool("total", {"frame": "healkit://views/none_such"}))
            assert gone["code"] == "VIEW_NOT_FOUND"

    run(work)


def test_pictures_are_images_and_what_is_long_is_cut_with_where_to_read_on(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
            drawn = await client.call_tool("run_code", {"code": plot})
            (picture,) = [block for block in drawn.content if block.type == "image"]
            assert base64.b64decode(picture.data).startswith(b"\x89PNG")
            long = await client.call_tool("run_code", {"code": "print('p' * 9000)\n'x' * 50_000"})
            assert data_of(long)["cut"] is True
            assert "[cut: 20,000 of 50,000 characters; the rest: healkit://executions/2/result]" in text_of(
                long
            )
            rest = (await client.read_resource("healkit://executions/2/result")).contents[0]
            assert rest.text == "x" * 50_000  # type: ignore[union-attr]  # a text
            assert "[cut: 4,000 of 9,000 characters]" in text_of(long)

    run(work)


def test_secrets_are_hidden_in_all_that_an_agent_reads(db: Path) -> None:
    secret = "ghp_" + "a1B2" * 9

    async def work() -> None:
        async with in_process(db) as client:
            calls = [
                await client.call_tool("run_code", {"code": f"print('{secret}')\n'{secret}'"}),
                await client.call_tool("run_code", {"code": f"raise ValueError('{secret}')"}),
                await client.call_tool("get_last_error", {}),
                await client.call_tool("get_execution", {"log_id": 1}),
            ]
            row = await client.read_resource("healkit://executions/2")
            told = json.dumps([one.model_dump(mode="json") for one in (*calls, row)])
            assert secret not in told
            assert "REDACTED" in told

    run(work)


def test_a_persona_has_its_own_rows_views_and_tools_only(db: Path, beside: Healkit) -> None:
    beside.vault.add("leak", "def leak():\n    raise ValueError('theirs')\n")
    beside.vault.add("only", "def only():\n    return 'mine'\n", persona="agent")
    beside.vault.add("other", "def other():\n    return 'not yours'\n", persona="teacher")
    theirs = beside.execute("leak")
    assert theirs.log_id == 1

    async def work() -> None:
        async with in_process(db, "--persona", "agent") as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert {"leak", "only"} <= names
            assert "other" not in names
            assert error_of(await client.call_tool("get_execution", {"log_id": 1}))["code"] == "USAGE_INVALID"
            assert "theirs" not in text_of(await client.call_tool("get_last_error", {}))
            assert data_of(await client.call_tool("list_executions", {}))["executions"] == []
            with pytest.raises(Exception, match="no log row 1"):
                await client.read_resource("healkit://executions/1")
            extra = error_of(await client.call_tool("run_tool", {"name": "only", "persona": "teacher"}))
            assert extra["code"] == "ARGUMENTS_INVALID"
            assert error_of(await client.call_tool("run_tool", {"name": "other"}))["code"] == "TOOL_NOT_FOUND"

    run(work)


def test_a_change_of_the_vault_changes_the_tools_and_notifies_clients(db: Path, beside: Healkit) -> None:
    async def work(mode: str) -> None:
        told = asyncio.Event()

        async def heard(message: Any) -> None:
            if "ToolListChanged" in type(message).__name__ or "list_changed" in repr(message):
                told.set()

        async with in_process(db, mode=mode, message_handler=heard) as client:
            assert len((await client.list_tools()).tools) == len(own_tools())
            beside.vault.add(f"new_{mode}", "def run():\n    return 1\n", description="Gives one.")
            if mode == "legacy":
                async with asyncio.timeout(10):
                    await told.wait()
            names = [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]
            assert f"new_{mode}" in names
            beside.vault.remove(f"new_{mode}")

    for mode in ("legacy", "auto"):
        run(lambda mode=mode: work(mode))


def test_annotations_say_what_a_tool_may_do(db: Path, beside: Healkit) -> None:
    beside.vault.add("reads", "def reads(n: int = 1):\n    return n\n")
    beside.vault.add("acts", "def acts():\n    return mcp.host.send()\n", side_effects=True)
    beside.vault.add("above", "def above():\n    return mcp.vault.acts()\n")

    async def work() -> None:
        async with in_process(db) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            hints = {name: tools[name].annotations for name in ("reads", "acts", "above")}
            assert [one and one.read_only_hint for one in hints.values()] == [True, False, False]
            assert [one and one.destructive_hint for one in hints.values()] == [False, True, True]
            assert tools["reads"].input_schema["properties"] == {"n": {"type": "integer", "default": 1}}

    run(work)


def test_names_never_clash_with_healkits_own() -> None:
    own = {tool.name for tool in own_tools()}
    names = exposed_names(["heal", "vault_heal", "a b", "a_b", "x" * 90, "run_tool"], own)
    assert not own & set(names)
    assert sorted(names.values()) == sorted(["heal", "vault_heal", "a b", "a_b", "x" * 90, "run_tool"])
    assert all(len(name) <= 64 for name in names)


def test_all_of_it_costs_an_agent_little() -> None:
    tools = [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in own_tools()]
    assert len(json.dumps(tools)) + len(INSTRUCTIONS) < 7500  # in tokens: docs/agents.md


@pytest.mark.parametrize("client", CLIENTS)
def test_a_clients_configuration_is_valid_and_names_this_healkit(client: str, db: Path) -> None:
    done = call("mcp", "--print-config", client, "--persona", "agent", "--db", str(db))
    line = done.stdout.strip()
    assert done.returncode == 0
    assert "\n" not in line
    if client == "claude-code":
        assert line.startswith("claude mcp add healkit -- ")
        assert line.endswith("--persona agent")
        return
    found = tomllib.loads(line) if client == "codex" else json.loads(line)
    (servers,) = found.values()
    entry = servers["healkit"]
    assert entry["args"][:4] == ["-P", "-m", "healkit", "mcp"]  # an editor starts it in the project's folder
    assert entry["args"][-2:] == ["--persona", "agent"]


def test_the_prompt_walks_from_the_failure_to_the_fix(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            (prompt,) = (await client.list_prompts()).prompts
            found = await client.get_prompt(prompt.name, {"name": "mean"})
            text = found.messages[0].content.text  # type: ignore[union-attr]  # a text
            steps = ("Observe", "Diagnose", "Propose", "Validate", "Apply")
            assert sorted(steps, key=text.index) == list(steps)
            templates = (await client.list_resource_templates()).resource_templates
            assert len(templates) == 5
            with pytest.raises(Exception, match="There are healkit://executions"):
                await client.read_resource("healkit://nothing/1")

    run(work)


def test_what_has_no_value_to_cross_is_shown_as_a_notebook_shows_it(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            shown = data_of(await client.call_tool("run_code", {"code": "object()"}))
            assert shown["result"] == "<object object>"
            assert "shown as text" in shown["notes"][0]
            for arguments in ({"log_id": 10**30}, {"log_id": -(10**30)}):
                error = error_of(await client.call_tool("get_execution", arguments))
                assert error["code"] == "ARGUMENTS_INVALID"
            with pytest.raises(Exception, match="not the number of a log row"):
                await client.read_resource(f"healkit://executions/{10**30}")

    run(work)


def test_a_session_learns_nothing_of_what_another_persona_has(db: Path, beside: Healkit) -> None:
    frame = "import pandas as pd\ndef user():\n    return pd.DataFrame({'secret_plan': range(3000)})\n"
    beside.vault.add("user", frame, persona="teacher")
    made = beside.execute("user", "teacher")
    (theirs,) = beside.views.used(made.trace_id)["result"]
    beside.views.put(made.value.head(100), "given")

    async def work() -> None:
        async with in_process(db) as client:
            for name in (theirs.name, "zzz"):
                with pytest.raises(Exception, match="There is no data view") as told:
                    await client.read_resource(f"healkit://views/{name}")
                assert theirs.name not in str(told.value).replace(f"'{name}'", "")
            for name in ("user", "usr"):
                error = error_of(await client.call_tool("run_tool", {"name": name}))
                assert error["code"] == "TOOL_NOT_FOUND"
                assert "teacher" not in json.dumps(error)
                assert "Did you mean" not in error["message"]

    run(work)


def test_a_patch_without_a_change_is_refused(db: Path) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            await client.call_tool("write_tool", {"name": "mean", "code": MEAN})
            again = {"name": "mean", "code": MEAN, "reason": "none"}
            error = error_of(await client.call_tool("propose_patch", again))
            assert "already has this code" in error["message"]
            there = error_of(await client.call_tool("write_tool", {"name": "mean", "code": FIXED}))
            assert (there["code"], "propose_patch" in there["next"]) == ("TOOL_EXISTS", True)

    run(work)


@pytest.mark.slow
def test_a_notebook_is_checked_below_the_servers_folder_only(db: Path) -> None:
    cells = ["import pandas as pd\nsales = pd.DataFrame({'amount': [1, 2]})", "sales['amuont'].sum()"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    file = db.parent / "book.ipynb"
    nbformat.write(book, file)
    before = file.read_bytes()

    async def work() -> None:
        async with connected(db) as client:
            checked = await client.call_tool("check_notebook", {"path": "book.ipynb", "heal": True})
            assert checked.is_error
            assert checked.structured_content is not None
            report = checked.structured_content["report"]
            assert report["outcome"] == "healed"
            assert "+sales['amount'].sum()" in report["failures"][0]["report"]["fix"]["diff"]
            outside = error_of(await client.call_tool("check_notebook", {"path": "/etc/passwd"}))
            assert outside["code"] == "AGENT_REFUSED"

    run(work)
    assert file.read_bytes() == before


def test_a_patch_is_one_of_the_tool_that_was_named_whatever_failed_in_it(db: Path, beside: Healkit) -> None:
    async def work() -> None:
        async with in_process(db) as client:
            inner = "def run(xs):\n    return xs[0]\n"
            outer = "def run(xs):\n    return mcp.vault.inner(xs=xs) + 1\n"
            for name, code in (("inner", inner), ("outer", outer)):
                await client.call_tool("write_tool", {"name": name, "code": code})
            error_of(await client.call_tool("outer", {"xs": []}))
            asked = {"name": "outer", "code": "def run(xs):\n    return 1\n", "reason": "no call for nothing"}
            await client.call_tool("propose_patch", asked)
            assert {request.tool_name for request in beside.requests.pending()} <= {"outer"}
            assert beside.requests.pending()

    run(work)


def test_a_proposal_tells_nothing_of_another_personas_runs(db: Path, beside: Healkit) -> None:
    beside.vault.add("mean", MEAN)
    beside.vault.add("mean", FIXED.replace("sum(xs)", "float(sum(xs))"), persona="teacher")
    beside.execute("mean", "teacher", {"xs": [777]})
    beside.execute("mean", "default", {"xs": [888]})

    async def work() -> None:
        async with in_process(db, "--persona", "agent") as client:
            asked = {"name": "mean", "code": FIXED, "reason": "the name is xs"}
            told = [
                await client.call_tool("propose_patch", asked),
                await client.call_tool("heal", {"name": "mean"}),
            ]
            text = json.dumps([one.model_dump(mode="json") for one in told])
            assert "777" not in text
            assert "888" not in text
            assert "float(sum" not in text

    run(work)


def test_a_table_with_any_name_is_passed_by_its_address(db: Path, beside: Healkit) -> None:
    beside.views.put(pd.DataFrame({"a": range(4)}), "my table/1")
    beside.vault.add(
        "rows", "import pandas as pd\ndef rows(frame: pd.DataFrame) -> int:\n    return len(frame)\n"
    )

    async def work() -> None:
        async with in_process(db) as client:
            address = "healkit://views/my%20table%2F1"
            told = json.loads((await client.read_resource(address)).contents[0].text)  # type: ignore[union-attr]  # a text
            assert told["pass_as"] == address
            assert data_of(await client.call_tool("rows", {"frame": address}))["result"] == 4

    run(work)


def test_what_is_too_long_is_cut_text_by_text_and_can_still_be_read(db: Path, beside: Healkit) -> None:
    beside.vault.add("long", "def long(text: str) -> None:\n    raise ValueError(text)\n")
    beside.execute("long", arguments={"text": "word " * 6000})

    async def work() -> None:
        async with in_process(db) as client:
            told = data_of(await client.call_tool("get_execution", {"log_id": 1}))
            assert told["error"]["code"] == "TOOL_EXCEPTION"
            assert "[cut: 4,000 of " in told["error"]["evalue"]

    run(work)


@pytest.mark.requirement("LEARN-3")
def test_an_agent_is_suggested_tools_with_what_it_needs_to_call_them(db: Path, beside: Healkit) -> None:
    beside.vault.add("track", 'def track(order: str):\n    """Tell where a parcel is."""\n    return order\n')
    beside.vault.add("refund", 'def refund(order: str):\n    """Pay an order back."""\n    return order\n')
    beside.vault.add("hidden", "def hidden():\n    return 1\n", persona="ana")

    async def work() -> None:
        async with in_process(db) as client:
            asked = {"intent": "where is the parcel of order 4711", "limit": 9}
            found = data_of(await client.call_tool("suggest_tools", asked))["tools"]
            assert [one["name"] for one in found] == ["track", "refund"]
            assert found[0]["why"].startswith("Its description fits ")
            assert found[0]["input_schema"]["required"] == ["order"]
            await client.call_tool("run_tool", {"name": "track", "arguments": {"order": "4711"}})
            wrong = error_of(await client.call_tool("suggest_tools", {"after": ["trak"]}))
            assert "Did you mean 'track'" in wrong["message"]

    run(work)
    (execution,) = beside.executions(tool="track")
    assert beside.traces.get(execution.trace_id).metadata["intent"] == "where is the parcel of order 4711"


def test_the_seeds_own_call_works_and_a_debug_tool_is_there_once(db: Path) -> None:
    """M2: `get_last_error(tool_name=…)` was refused, and the seeded tool stood beside as `vault_get_last_error`."""

    async def work() -> None:
        async with in_process(db, "--demo") as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {"fibonacci", "get_last_error", "list_tools"} <= set(names)
            assert not [name for name in names if name.startswith("vault_")]
            failed = error_of(await client.call_tool("fibonacci", {"n": 10}))
            report = text_of(await client.call_tool("get_last_error", {"tool_name": "fibonacci"}))
            assert report.startswith("Last error for tool 'fibonacci':")
            assert failed["type"] in report
            rows = data_of(await client.call_tool("list_executions", {"tool_name": "fibonacci"}))[
                "executions"
            ]
            assert [row["status"] for row in rows] == ["FAILURE"]
            shown = data_of(await client.call_tool("inspect_tool", {"tool_name": "fibonacci"}))
            assert shown["code"].startswith("def fibonacci")

    run(work)
