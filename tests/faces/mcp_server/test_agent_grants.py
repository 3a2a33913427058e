"""Reach of an agent's code before it is accepted."""

from __future__ import annotations

import base64
import contextlib
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agent_samples import data_of, error_of, in_process, run
from mcp.shared.exceptions import MCPError

from healkit import Healkit

pytestmark = pytest.mark.requirement("TRUST-3")

#: What is in the granted folder: in the texts of files, in names, and as the size of one.
CANARY, NAMED, SIZE = "kanarie7f3a9c51", "vogel2b8e6d", 48_271_903
READER = "def reader(path: str) -> int:\n    return len(open(path).read())\n"
#: Way to read → body of a function `reader(path)`; FOLDER is the granted folder, path a file in it.
WAYS = {
    "open, as its result": "return open(path).read()",
    "in a message": "raise ValueError(open(path).read())",
    "in an exception's name": "raise type(open(path).read().strip(), (Exception,), {})",
    "in a key": "return {}[open(path).read().strip()]",
    "printed": "print(open(path).read()); return 0",
    "in a note of an exception": "e = ValueError(); e.add_note(open(path).read()); raise e",
    "in a type's name": "return type(open(path).read().strip(), (), {})()",
    "os.open": "import os\n    return os.read(os.open(path, 0), 99).decode()",
    "pathlib": "import pathlib\n    return pathlib.Path(path).read_bytes().decode()",
    "os.listdir": "import os\n    return os.listdir(FOLDER)",
    "os.scandir": "import os\n    return [one.name for one in os.scandir(FOLDER)]",
    "os.walk": "import os\n    return list(os.walk(FOLDER))",
    "glob": "import glob\n    return glob.glob(FOLDER + '/*')",
    "pathlib.iterdir": "import pathlib\n    return [str(one) for one in pathlib.Path(FOLDER).iterdir()]",
    "codecs": "import codecs\n    return codecs.open(path).read()",
    "csv": "import csv\n    return list(csv.reader(open(path)))",
    "fileinput": "import fileinput\n    return list(fileinput.input(path))",
    "io.FileIO": "import io\n    return io.FileIO(path).read().decode()",
    "mmap": "import mmap\n    return mmap.mmap(open(path).fileno(), 0, access=mmap.ACCESS_READ)[:].decode()",
    "shutil": "import shutil\n    return open(shutil.copy(path, 'copy')).read()",
    "sqlite3": "import sqlite3\n    return sqlite3.connect(FOLDER + '/data.db').execute('SELECT * FROM t').fetchall()",
    "ATTACH": "import sqlite3\n    c = sqlite3.connect(':memory:')\n    c.execute('ATTACH ? AS a', [FOLDER + '/data.db'])\n"
    "    return c.execute('SELECT * FROM a.t').fetchall()",
    "pandas": "import pandas\n    return list(pandas.read_csv(path))",
    "numpy.fromfile": "import numpy\n    return numpy.fromfile(path, dtype='u1').tobytes().decode()",
    "numpy.load": "import numpy\n    return numpy.load(FOLDER + '/data.npy').tolist()",
    "linecache": "import linecache\n    return linecache.getline(path, 1)",
    "tokenize": "import tokenize\n    return tokenize.open(path).read()",
    "zipfile": "import zipfile\n    return zipfile.ZipFile(FOLDER + '/data.zip').read('x').decode()",
    "an import": "import sys\n    sys.path.insert(0, FOLDER)\n    import mine\n    return mine.VALUE",
    "runpy": "import runpy\n    return runpy.run_path(FOLDER + '/mine.py')['VALUE']",
    "a symlink": "import os\n    os.symlink(path, 'link')\n    return open('link').read()",
    "a hard link": "import os\n    os.link(path, 'link')\n    return open('link').read()",
    "another root": "return open('/proc/self/root' + path).read()",
    "a descriptor": "import os\n    return [open(f'/proc/self/fd/{n}').read() for n in os.listdir('/proc/self/fd')]",
    "C's open": "import ctypes\n    c = ctypes.CDLL(None)\n    b = ctypes.create_string_buffer(99)\n"
    "    c.read(c.open(path.encode(), 0), b, 99)\n    return b.value.decode()",
    "pyarrow": "import pyarrow\n    return pyarrow.memory_map(path).read().decode()",
    "its size": "import os\n    return os.path.getsize(FOLDER + '/sized')",
    "another program": "import subprocess\n    return subprocess.check_output(['cat', path], text=True)",
    "another tool's own grants": "return mcp.vault.owner(path=path)",
    "reading again what was caught": "import os\n    try:\n        return open(path).read()\n    except BaseException:\n"
    "        return os.read(os.open(path, 0), 99).decode()",
    "a doctest": "'''\n    >>> open(PATH).read()\n    0\n    '''\n    return 1",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "granted"
    made.mkdir()
    (made / "secret.txt").write_text(f"{CANARY}\n")
    (made / f"{NAMED}.txt").write_text("")
    with (made / "sized").open("wb") as sized:
        sized.truncate(SIZE)
    (made / "mine.py").write_text(f"VALUE = {CANARY!r}\n")
    np.save(made / "data.npy", np.array([CANARY]))
    with zipfile.ZipFile(made / "data.zip", "w") as packed:
        packed.writestr("x", CANARY)
    with sqlite3.connect(made / "data.db") as database:
        database.execute("CREATE TABLE t (x)")
        database.execute("INSERT INTO t VALUES (?)", [CANARY])
    database.close()
    return made


@pytest.fixture
def granted(beside: Healkit, folder: Path) -> Healkit:
    """A person's tools that read the folder, and a recorded run of one."""
    beside.vault.add("reader", READER, grants={"read": [str(folder)]})
    owner = "def owner(path: str) -> str:\n    return open(path).read()\n"
    beside.vault.add("owner", owner, grants={"read": [str(folder)], "own_grants": True})
    assert beside.execute_tool("reader", arguments={"path": str(folder / "secret.txt")}) == len(CANARY) + 1
    return beside


def code_of(body: str, folder: Path) -> str:
    body = body.replace("PATH", repr(str(folder / "secret.txt")))
    return f"def reader(path: str) -> int:\n    {body}\n".replace("FOLDER", repr(str(folder)))


def leaks(text: str) -> list[str]:
    """Return in which forms the text holds what is in the folder."""
    raw = CANARY.encode()
    forms = {
        "plain": CANARY, "a name": NAMED, "reversed": CANARY[::-1], "hex": raw.hex(), "base64": base64.b64encode(raw).decode(),
        "size": f"{SIZE:,}", "size in digits": str(SIZE),
    }  # fmt: skip
    return [name for name, form in forms.items() if form in text]


async def run_and_rows(client: Any, run_uri: str | None, rows: range) -> str:
    """Return what an agent can read of a run and of these rows of the log."""
    texts = [] if run_uri is None else [(await client.read_resource(run_uri)).model_dump_json()]
    for number in rows:
        texts.append((await client.call_tool("get_execution", {"log_id": number})).model_dump_json())
        with contextlib.suppress(MCPError):
            texts.append((await client.read_resource(f"healkit://executions/{number}")).model_dump_json())
    return "\n".join(texts)


async def lists(client: Any) -> str:
    """Return what lists of executions tell an agent."""
    asked = [{"origin": "trial", "limit": 50}, {"origin": "search"}, {"limit": 50}]
    told = [await client.call_tool("list_executions", one) for one in asked]
    return "\n".join(one.model_dump_json() for one in [*told, await client.call_tool("get_last_error", {})])


def test_no_way_of_an_unaccepted_patch_tells_a_byte_of_a_granted_file(
    db: Path, granted: Healkit, folder: Path
) -> None:
    found: dict[str, list[str]] = {}
    decided: dict[str, str] = {}

    async def work() -> None:
        async with in_process(db) as client:
            before = 0
            for name, body in WAYS.items():
                said: list[str | None] = []

                async def progress(
                    _done: float, _total: float | None, message: str | None, said: Any = said
                ) -> None:
                    said.append(message)

                asked = {"name": "reader", "code": code_of(body, folder), "reason": name}
                answer = await client.call_tool("propose_patch", asked, progress_callback=progress)
                assert answer.structured_content is not None, answer
                last = granted.log.query(tried=True, limit=1).rows[0].id or 0
                own = await run_and_rows(
                    client, answer.structured_content.get("run"), range(before + 1, last + 1)
                )
                before = last
                found[name] = leaks(f"{answer.model_dump_json()}{own}{said}")
                decided[name] = answer.structured_content["checks"][0]["outcome"]
            found["lists of executions"] = leaks(await lists(client))

    run(work)
    assert {name: one for name, one in found.items() if one} == {}
    assert len(found) >= 30
    # Code that asks for a file is neither right nor wrong.
    assert decided["open, as its result"] == decided["os.listdir"] == decided["ATTACH"] == "not_on_record"
    assert granted.vault.get("reader").code == READER


@pytest.mark.slow
def test_no_other_door_leads_an_agents_code_to_the_file(db: Path, granted: Healkit, folder: Path) -> None:
    path = str(folder / "secret.txt")
    reads = code_of("return open(path).read()", folder)
    told: list[Any] = []

    async def work() -> None:
        async with in_process(db) as client:
            # As a new tool, run at once; as code that is run once; as the source of an example.
            own = reads.replace("reader", "mine")
            told.append(await client.call_tool("write_tool", {"name": "mine", "code": own}))
            told.append(await client.call_tool("run_tool", {"name": "mine", "arguments": {"path": path}}))
            told.append(
                await client.call_tool(
                    "propose_patch", {"name": "mine", "code": own + "\n", "reason": "again"}
                )
            )
            told.append(await client.call_tool("run_code", {"code": f"open({path!r}).read()"}))
            told.append(await client.call_tool("run_code", {"code": f"mcp.vault.reader(path={path!r})"}))
            peeking = {"call": f"int(open({path!r}).read())", "result": 1}
            code = "def peeked(n: int) -> int:\n    return n\n"
            asked = {"name": "peeked", "code": code, "examples": [peeking]}
            told.append(await client.call_tool("write_tool", asked))
            data_of(told[-1])
            granted.vault.set_grants(
                "peeked", read=[str(folder)]
            )  # a person trusts the code, and has not seen that
            told.append(await client.call_tool("heal", {"name": "peeked"}))
            told.append(
                await client.call_tool("propose_patch", {"name": "peeked", "code": code + "\n", "reason": ""})
            )
            # As a draft that a person has saved of the agent's code: no revision that runs.
            granted.vault.patch("reader", reads, draft=True)
            told.append(await client.call_tool("run_tool", {"name": "reader", "arguments": {"path": path}}))
            told.append(await client.call_tool("heal", {"name": "reader"}))
            last = granted.log.query(tried=True, limit=1).rows[0].id or 0
            told.append(await run_and_rows(client, None, range(1, last + 1)))
            told.append(await lists(client))

    run(work)
    texts = [one if isinstance(one, str) else one.model_dump_json() for one in told]
    assert [leaks(text) for text in texts] == [[]] * len(texts)


def test_patches_that_ask_a_file_for_a_bit_get_the_same_answer(
    db: Path, granted: Healkit, folder: Path
) -> None:
    """By its outcome, its type, its size, its exception or its time, a check would tell what is in the file."""
    asking = [
        f"return {one} if open(path).read()[0] {sign} 'h' else {other}"
        for one, other in (("16", "'no'"), ("[0] * 7", "[0] * 9"), ("1 // 0", "[][0]"))
        for sign in "<>"
    ]
    told: list[Any] = []

    async def work() -> None:
        async with in_process(db) as client:
            for body in asking:
                asked = {"name": "reader", "code": code_of(body, folder), "reason": "a bit"}
                answer = (await client.call_tool("propose_patch", asked)).structured_content or {}
                told.append((answer["outcome"], answer.get("verdict"), answer["checks"], answer.get("notes")))

    run(work)
    assert [one == told[0] for one in told] == [True] * len(told)


def test_a_patch_whose_checks_need_a_grant_waits_for_a_person(
    db: Path, granted: Healkit, folder: Path
) -> None:
    code = READER.replace("len(open(path).read())", "sum(map(len, open(path)))")

    async def work() -> None:
        async with in_process(db) as client:
            answer = data_of(
                await client.call_tool("propose_patch", {"name": "reader", "code": code, "reason": "lines"})
            )
            assert answer["outcome"] == "pending"
            assert (
                f"1 check of 1 not decided for new code, which does not have the tool's grants: allow files=['{folder}']."
                in answer["notes"]
            )
            (check,) = answer["checks"]
            assert "a person has to allow (files=…)" in check["difference"]
            apply = {"request_id": answer["request_id"], "code_hash": answer["code_hash"]}
            assert error_of(await client.call_tool("apply_patch", apply))["code"] == "APPROVAL_NEEDED"
            granted.requests.accept(answer["request_id"])
            assert data_of(await client.call_tool("apply_patch", apply))["applied"]

    run(work)
    (request,) = granted.requests.list()
    assert request.verdict == "undecided"
    # A person sees what it does with the file before that, or after.
    report = granted.regress("reader", request.code, files=[folder])
    assert report.counts == {"same": 1}


def test_an_agent_gets_only_type_and_size_of_a_checks_result(db: Path, beside: Healkit) -> None:
    examples = [{"arguments": {"n": 2}, "result": [4, 5, 6]}, {"arguments": {"n": 777}, "result": "word"}]
    beside.vault.add("tool", "def tool(n: int):\n    return undefined\n", examples=examples)
    bodies = {
        "return [n, 91735]": "gives a list of 2 items, but a list of 3 items is right",
        "return [n, 91735, 1]": "gives another value, also a list of 3 items",
        "return 'x91735' * 20": "gives a str of 120 characters, but a list of 3 items is right",
        "raise ValueError('91735')": "raises ValueError, but a list of 3 items is right",
        "raise type('x91735', (Exception,), {})": "raises x91735, but a list of 3 items is right",
        "raise type(f'x{90000 + 1735}', (Exception,), {})": "raises an exception, but a list of 3 items is right",
    }

    async def work() -> None:
        async with in_process(db) as client:
            for body, told in bodies.items():
                asked = {"name": "tool", "code": f"def tool(n: int):\n    {body}\n", "reason": "a try"}
                answer = await client.call_tool("propose_patch", asked)
                assert answer.structured_content is not None
                assert answer.structured_content["checks"][0]["difference"] == told
                shown = answer.model_dump_json() + (
                    await run_and_rows(client, answer.structured_content["run"], range(0))
                )
                if "90000" in body:
                    assert "91735" not in shown

    run(work)


def test_a_tool_of_the_name_of_another_personas_becomes_a_request(db: Path, beside: Healkit) -> None:
    """The MCP server of a persona replaced the default tool for it, without anyone's consent."""
    code = "def price(n: int) -> int:\n    return n\n"
    beside.vault.add("price", code)
    beside.vault.add("cost", code.replace("price", "cost"))
    beside.vault.rename("cost", "costs")

    async def work() -> None:
        async with in_process(db, "--persona", "teacher") as client:
            for name in ("price", "cost"):
                other = code.replace("price", name).replace("return n", "return 0")
                answer = await client.call_tool("write_tool", {"name": name, "code": other})
                assert answer.is_error
                assert answer.structured_content is not None
                assert answer.structured_content["saved"] is False
                called = await client.call_tool("run_code", {"code": f"mcp.vault.{name}(n=3)"})
                assert data_of(called)["result"] == 3
            assert len(beside.requests.pending()) == 2
            mine = code.replace("price", "mine")
            assert (
                data_of(await client.call_tool("write_tool", {"name": "mine", "code": mine}))["persona"]
                == "teacher"
            )
            again = data_of(await client.call_tool("write_tool", {"name": "mine", "code": mine}))
            assert again["revision"] == 1

    run(work)
    assert {entry.tool_name for entry in beside.vault.list("teacher")} == {"mine"}
    request = beside.requests.pending("price")[0]
    assert (request.persona, request.author) == ("default", "agent")
