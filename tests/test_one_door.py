"""No secret leaves by any exit.

Secrets are planted in all that an execution, a failure or a report holds. Then every exit that the package has is
walked: commands, tools of the MCP server, questions of pages and forms of cards are found, not listed. One that the
walk does not know how to call fails here, with what to add.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import inspect
import json
import os
import re
import sqlite3
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import nbformat
import pandas as pd
import pytest
from cli_samples import call
from IPython.lib import pretty
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from nbclient import NotebookClient

import healkit
from healkit import Healkit
from healkit.commands.options import Option
from healkit.commands.table import Command, row_of
from healkit.core.runtime.execution import Execution
from healkit.errors import HealkitError, ToolExecutionError
from healkit.faces.commands import rows
from healkit.faces.notebook.magic_parsers import PARSERS
from healkit.faces.pages.side_panel import SidePanelPages

pytestmark = [pytest.mark.requirement("TRUST-4"), pytest.mark.slow, pytest.mark.timeout(900)]

#: Where each secret is planted → the secret. No rule knows their form: only its place tells that one is a secret.
SECRETS = {
    "an argument": "Maple-kestrel-41",
    "a nested argument": "Onyx_harbor_52",
    "a URL": "Cedar7lantern",
    "a header": "Quartz-meadow-63",
    "passed on by position": "Willow-anchor-74",
    "a local variable": "Amber-falcon-85",
    "stdout": "Basalt-rocket-96",
    "stderr": "Coral-violin-17",
    "rich output": "Dune-pepper-28",
    "a column": "Ember-walnut-39",
    "a result": "Flint-parrot-40",
    "a call's argument": "Grove-tulip-51",
    "a call's answer": "Heron-saddle-62",
    "a branch": "Ivory-bamboo-73",
    "a cell's variable": "Jade-compass-84",
    "an attribute in a cell": "Krill-magnet-95",
    "a cause": "Lotus-pebble-16",
}


_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}")


def spelt(place: str) -> str:
    """Return source code whose value is that secret, but whose text is not: code is shown as it is."""
    return f"{SECRETS[place][::-1]!r}[::-1]"


LOGIN = f"""
import sys

import pandas as pd
from IPython.display import HTML, display


def connect(user, p, url, headers):
    raise ConnectionError(f"{{user}} was refused with {{p}} at {{url}}, {{headers}}")


def login(user: str, password: str, url: str, headers: dict, config: dict, people: pd.DataFrame):
    api_token = {spelt("a local variable")}
    print("password=" + {spelt("stdout")}, password, config["db"]["password"])
    print("api_key=" + {spelt("stderr")}, api_token, file=sys.stderr)
    display(HTML("<b>password=" + {spelt("rich output")} + "</b>"))
    trace.decision("which", "password=" + {spelt("a branch")}, "the user has " + password)
    answer = mcp.host.sign_in(user=user, password={spelt("a call's argument")})
    try:
        raise KeyError("password=" + {spelt("a cause")})
    except KeyError as cause:
        db_password = {spelt("passed on by position")}
        try:
            connect(user, db_password, url, headers)
        except ConnectionError as error:
            raise ValueError(f"{{error}}: {{password}}, {{config}}, {{api_token}}, {{answer}}, {{people.to_dict()}}") from cause
"""
LIST = f"""
import pandas as pd
from IPython.display import HTML, display


def listing(password: str, people: pd.DataFrame):
    print("password=" + {spelt("stdout")}, password)
    display(HTML("<b>password=" + {spelt("rich output")} + "</b>"))
    mcp.host.sign_in(user="ada", password={spelt("a call's argument")})
    return {{"api_key": {spelt("a result")}, "of": password, "people": people}}
"""
SHARE = '''
def share(password: str, values: list):
    """Divide, once one is logged in."""
    print("share for", password)
    if not values:
        raise ValueError("nothing for " + password)
    return sum(values) / len(value)
'''
CELLS = [
    f"class Settings: pass\nsettings = Settings()\nsettings.api_token = {spelt('an attribute in a cell')}",
    f"password = {spelt(chr(97) + ' cell' + chr(39) + 's variable')}\nprices = {{'apple': 2}}",
    "def ask(user, p, known):\n    return prices['aple ' + p + ' ' + known.api_token]\n",
    "print('asking with', password)\nask('scott', password, settings)",
]


def people() -> pd.DataFrame:
    return pd.DataFrame({"name": ["ada", "bob"], "password": [SECRETS["a column"], "Ember-walnut-40"]})


def sign_in(user: str, password: str) -> dict[str, str]:
    """Say who is there."""
    return {"user": user, "session_token": SECRETS["a call's answer"]}


def given() -> dict[str, Any]:
    return {
        "user": "scott",
        "password": SECRETS["an argument"],
        "url": f"postgresql://scott:{SECRETS['a URL']}@db.example/x",
        "headers": {"Authorization": f"Basic {SECRETS['a header']}"},
        "config": {"db": {"host": "db.example", "password": SECRETS["a nested argument"]}},
        "people": people(),
    }


def checked(shown: object, where: str) -> None:
    """Fail with the secrets that are in what an exit has shown."""
    text = shown if isinstance(shown, str) else repr(shown)
    for encoded in _BASE64.findall(text):  # a frame's bytes
        with contextlib.suppress(ValueError):
            text += base64.b64decode(encoded + "=" * (-len(encoded) % 4)).decode("latin-1")
    seen = {
        place: text[max(0, text.index(one) - 150) :][:300] for place, one in SECRETS.items() if one in text
    }
    assert not seen, f"{where} shows {seen}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a folder with a database that has a secret in all its records, and with files of each kind."""
    folder = tmp_path_factory.mktemp("door")
    with pytest.MonkeyPatch.context() as process:
        process.chdir(folder)
        process.setenv("HEALKIT_DB", str(folder / "healkit.db"))
        process.setenv("XDG_DATA_HOME", str(folder / "data"))
        process.setenv("COLUMNS", "200")
        with Healkit(folder / "healkit.db") as hk:
            plant(hk, folder)
        yield folder


#: Runs of a healing and of a decision.
RUNS: dict[str, str] = {}


def plant(hk: Healkit, folder: Path) -> None:
    hk.provide(sign_in)
    for name, code in (("login", LOGIN), ("listing", LIST), ("share", SHARE)):
        hk.vault.add(name, code)
    with hk.run():
        assert "ConnectionError" not in str(hk.execute("login", arguments=given()).value)
        listed = hk.execute("listing", arguments={"password": SECRETS["an argument"], "people": people()})
        assert listed.ok, listed
        for values in ([1, 2], [3], []):
            hk.execute("share", arguments={"password": SECRETS["an argument"], "values": values})
    RUNS["HEALED"] = hk.heal("share", advisors=["rules", "search"], budget_s=10).run_id
    hk.views.put(people(), "people")
    decision = hk.decide(
        "Who?", {"people": people()}, chooser=[{"type": "finalize", "finalViewName": "people"}]
    )
    RUNS["DECIDED"] = decision.run.run_id
    hk.execute("login", arguments=given())
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "asks.ipynb")
    people().to_csv(folder / "people.csv", index=False)
    password = SECRETS["an argument"]
    rows = [{"password": password, "values": [1]}, {"password": password, "wrong": password}]
    (folder / "secrets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


# The command line.

#: Command → the words that it is called with, each list a call. `ROW` is a failure of `login`, `DONE` a success.
CALLS: dict[str, list[list[str]]] = {
    "run": [
        ["listing", "--args", '{"password": "PASSWORD", "people": [{"name": "ada"}]}'],
        ["share", "password=PASSWORD", "values=[1]"],
        ["share", "password=PASSWORD", "values=[1]", "--record"],
        ["share", "password=PASSWORD", "wrong=PASSWORD"],
        ["share", "password=PASSWORD", "values=PASSWORD"],
    ],
    "map": [["share", "secrets.jsonl"], ["share", "secrets.jsonl", "--json"]],
    "heal": [["share", "--dry-run", "--budget", "8"], ["share", "--budget", "8"]],
    "check": [["asks.ipynb"], ["asks.ipynb", "--heal"]],
    "decide": [
        ["Who?", "--data", "people=people.csv", "--plan", '[{"type": "finalize", "finalViewName": "people"}]']
    ],
    "errors": [[], ["login"], ["--last"], ["--markdown"], ["login", "--notebook", "failure.ipynb"]],
    "doctor": [[]],
    "status": [[]],
    "db roles": [[]],
    "summarize": [["people.csv"]],
    "graph": [[], ["login"]],
    "suggest": [["log in"]],
    "log": [[], ["--group"], ["--summary"], ["--trials"]],
    "log show": [["ROW"], ["DONE"]],
    "log prometheus": [[]],
    "log export": [["row.cassette.json", "--cassette", "SHARE", "--force"]],
    "log replay": [["SHARE"]],
    "log prune": [["--keep", "1000"]],
    "vault show": [["share"], ["login"]],
    "vault list": [[], ["--removed"]],
    "vault history": [["share"]],
    "vault diff": [["share", "1", "1"]],
    "vault blame": [["share"]],
    "vault examples": [["share"], ["share", "--add", "ROW"]],
    "requests list": [[], ["--pending"]],
    "requests show": [["1"]],
    "views list": [[]],
    "views show": [["people"]],
    "audit": [[]],
    "audit verify": [[]],
    "audit head": [[]],
    "audit show": [["HEALED"], ["DECIDED"]],
    "audit summary": [["HEALED"], ["DECIDED"]],
    "trace list": [[]],
    "trace show": [["RUN"], ["last"], ["HEALED", "--story"], ["HEALED"], ["DECIDED"]],
    "trace validate": [["RUN"]],
    "trace diff": [["RUN", "RUN"]],
    "learn show": [[]],
    "learn report": [[]],
    "learn export": [["learnt.json"]],
}
#: Command → why it is not walked.
NOT_WALKED = {
    "demo": "plays a story of its own",
    "lab": "starts JupyterLab, whose pages are walked here",
    "page": "starts Jupyter's server, whose pages are walked below",
    "docs": "opens a page of the documentation",
    "setup": "writes a startup file",
    "seed": "adds healkit's own samples",
    "collect": "serves traces, which are cleaned before they are sent: tests/faces/server",
    "mcp": "serves agents: below",
    "kernelspec list": "knows no execution",
    "kernelspec install": "knows no execution",
    "kernelspec remove": "knows no execution",
    "log import": "prints how many rows it read",
    "learn import": "prints how many rows it read",
    "learn catch-up": "prints how many traces it read",
    "learn rebuild": "prints how many traces it read",
    "learn reset": "prints that it is done",
    "trust": "lists grants",
    "trace sync": "prints how many traces it sent",
    "views export": "writes the data that was asked for",
    "views remove": "prints a name",
    **dict.fromkeys(
        ("vault add", "vault patch", "vault grant", "vault switch", "vault revert", "vault undo", "vault rename",
         "vault remove", "vault restore", "requests accept", "requests decline"),
        "changes the vault, of which nothing is an execution's",
    ),
}  # fmt: skip


def commands() -> Iterator[tuple[str, Command]]:
    for name in rows.names():
        row = rows.find(name)
        if isinstance(row, Command):
            yield name, row
            continue
        assert row is not None
        if isinstance(row.alone, Command):
            yield name, row.alone
        yield from ((f"{name} {word}", command) for word, command in row.commands.items())


def forms(name: str, command: Command) -> Iterator[list[str]]:
    """Yield the options that change in which form a command prints."""
    yield []
    if command.json:
        yield ["--json"]
    for parameter, kind in command.parameters().values():
        row = row_of(kind)
        if isinstance(row, Option) and row.name == "format":
            read = inspect.getclosurevars(row.read).globals if row.read else {}
            values = next(value for key, value in read.items() if key.endswith("_FORMS"))
            yield from (["--format", value] for value in values if value != parameter.default)


NAMES = dict(commands())


@pytest.fixture(scope="module")
def words(home: Path) -> Mapping[str, str]:
    """Return what stands for a number or an id in the calls above."""
    with Healkit(home / "healkit.db") as hk:
        rows = {one.tool_name: one for one in reversed(hk.executions(limit=50))}
        failed = hk.executions(tool="login", limit=1)[0]
        assert failed.failure is not None
        return {
            **RUNS,
            "ROW": str(failed.log_id),
            "DONE": str(rows["listing"].log_id),
            "SHARE": str(rows["share"].log_id),
            "RUN": str(failed.run_id or next(one.run_id for one in hk.executions(limit=50) if one.run_id)),
        }


def test_the_walk_knows_every_command() -> None:
    new = sorted(NAMES.keys() - CALLS.keys() - NOT_WALKED.keys())
    assert not new, f"Say in CALLS how to call {new}, or in NOT_WALKED why they show nothing of an execution."
    assert not (CALLS.keys() | NOT_WALKED.keys()) - NAMES.keys()


@pytest.mark.parametrize("name", CALLS)
def test_no_command_prints_a_secret_in_any_of_its_forms(
    name: str, home: Path, words: Mapping[str, str]
) -> None:
    for typed in CALLS[name]:
        for form in forms(name, NAMES[name]):
            line = [words.get(word, word).replace("PASSWORD", SECRETS["an argument"]) for word in typed]
            done = call(*name.split(), *line, *form)
            assert done.returncode in (0, 1, 2), done
            assert "Traceback" not in done.stderr, done
            checked(done.stdout + done.stderr, f"healkit {name} {' '.join([*line, *form])}")
    for file in ("failure.ipynb", "row.cassette.json", "learnt.json"):
        with contextlib.suppress(FileNotFoundError):
            written = (home / file).read_text()
            (home / file).unlink()
            checked(written, file)


# The MCP server.

#: healkit's own tool → the arguments of each call of it. Reading ones come first: they see what was planted.
ASKED: dict[str, list[dict[str, Any]]] = {
    "get_last_error": [{}, {"name": "login"}, {"name": "share"}],
    "list_executions": [{"limit": 50}, {"status": "FAILURE"}],
    "get_execution": [{"log_id": "ROW"}, {"log_id": "DONE"}, {"log_id": "SHARE"}],
    "inspect_tool": [{"name": "share"}],
    "suggest_tools": [{"intent": "log in"}],
    "check_notebook": [{"path": "asks.ipynb"}, {"path": "asks.ipynb", "heal": True}],
    "run_tool": [
        {"name": "share", "arguments": {"password": "PASSWORD", "values": [1]}},
        {"name": "share", "arguments": {"password": "PASSWORD", "wrong": "PASSWORD"}},
        {"name": "listing", "arguments": {"password": "PASSWORD", "people": "healkit://views/people"}},
    ],
    "map_tool": [
        {
            "name": "share",
            "inputs": [
                {"password": "PASSWORD", "values": [1]},
                {"password": "PASSWORD", "wrong": "PASSWORD"},
            ],
        }
    ],
    "run_code": [
        {"code": f"password = {spelt('a cause')}\nprint('is', password)\nraise ValueError('no ' + password)"}
    ],
    "heal": [{"name": "share", "budget_s": 6}],
    "propose_patch": [
        {"name": "share", "code": SHARE.replace("(value)", "(values) - 1"), "reason": "a name"}
    ],
    "decide": [{"question": "Who?", "data": {"people": "healkit://views/people"}, "choices": []}],
    "write_tool": [{"name": "other", "code": "def other(password: str):\n    return password\n"}],
    "apply_patch": [{"request_id": 1, "code_hash": "?"}],
    "revert": [{"name": "share", "to_revision": 1}],
}


def test_no_answer_of_the_mcp_server_holds_a_secret(home: Path, words: Mapping[str, str]) -> None:
    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(one) for name, one in value.items()}
        if value in ("ROW", "DONE", "SHARE"):
            return int(words[value])
        return value.replace("PASSWORD", SECRETS["an argument"]) if isinstance(value, str) else value

    async def walk() -> None:
        command = [
            sys.executable,
            "-m",
            "healkit",
            "mcp",
            "--db",
            str(home / "healkit.db"),
            "--requests-only",
        ]
        server = StdioServerParameters(
            command=command[0], args=command[1:], env=dict(os.environ), cwd=str(home)
        )
        async with Client(stdio_client(server)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            known = ASKED.keys() | {"login", "listing", "share"}
            assert tools <= known, f"Say in ASKED how to call {tools - known}."
            assert ASKED.keys() <= tools
            for name in ASKED:
                for arguments in ASKED[name]:
                    answer = await client.call_tool(name, filled(arguments))
                    checked(answer.model_dump_json(), f"{name}({arguments})")
            answer = await client.call_tool("login", {**given(), "people": "healkit://views/people"})
            checked(answer.model_dump_json(), "login()")
            templates = (await client.list_resource_templates()).resource_templates
            for template in templates:
                kind = template.uri_template.partition("//")[2].partition("/")[0]
                names = {
                    "executions": ("ROW", "DONE", "SHARE"),
                    "tools": ("share",),
                    "views": ("people",),
                    "runs": ("RUN", "HEALED", "DECIDED"),
                }
                assert kind in names, f"Say what {template.uri_template} may be filled with."
                for name in names[kind]:
                    address = re.sub(r"\{\w+\}", words.get(name, name), template.uri_template)
                    try:
                        found = await client.read_resource(address)
                    except MCPError as error:
                        checked(str(error), address)
                    else:
                        checked(found.model_dump_json(), address)

    asyncio.run(walk())


# Pages and panels.

#: Question of a page → the arguments that it is asked with.
QUESTIONS: dict[str, list[dict[str, Any]]] = {
    "page": [{"filters": {}}],
    "groups": [{"filters": {}}],
    "names": [{}],
    "execution": [{"log_id": "ROW"}, {"log_id": "DONE"}, {"log_id": "SHARE"}],
    "active": [{"log_id": "ROW"}],
    "report": [{"log_id": "ROW"}, {"log_id": "SHARE"}],
    "tools": [{}],
    "history": [{"tool": "share"}],
    "code": [{"tool": "share", "persona": "default", "revision": 1}],
    "runs": [{}],
    "story": [{"run_id": "RUN"}, {"run_id": "HEALED"}],
    "decisions": [{}],
    "audit_open": [{"execution_id": "HEALED"}, {"execution_id": "DECIDED"}],
    "audit_steps": [{"execution_id": "HEALED", "after": 0}],
    "requests": [{}],
    "request": [{"number": 1}],
    "news": [{}],
    "status": [{}],
    "waiting": [{}],
}


def test_no_page_gets_a_secret(home: Path, words: Mapping[str, str]) -> None:
    with Healkit(home / "healkit.db") as hk:
        pages = SidePanelPages(hk)
        new = pages.operations.keys() - QUESTIONS.keys()
        assert not new, f"Say in QUESTIONS how to ask {sorted(new)}."
        for op, asked in QUESTIONS.items():
            for arguments in asked:
                filled = {
                    name: words.get(value, value) if isinstance(value, str) else value
                    for name, value in arguments.items()
                }
                filled |= {name: int(filled[name]) for name in filled.keys() & {"log_id"}}
                checked(json.dumps(pages.answer(op, filled)), f"{op}({arguments})")


# What Python is given.

#: Form of an object that shows itself: a method without arguments.
FORMS = ("__repr__", "__str__", "_repr_html_", "_repr_mimebundle_", "_repr_markdown_", "to_text", "to_html", "to_json",
         "to_markdown", "explain")  # fmt: skip


def shown(found: Any) -> Iterator[tuple[str, str]]:
    """Yield each form that an object has of itself, and what encodes it."""
    for form in FORMS:
        if callable(method := getattr(found, form, None)):
            try:
                yield form, str(method())
            except HealkitError as error:  # has no failure to explain
                yield form, str(error)
    yield "pretty", pretty.pretty(found)
    for encode in (msgspec.json.encode, lambda one: json.dumps(one, default=vars)):
        with contextlib.suppress(TypeError, ValueError):
            yield "encoded", str(encode(found))


def test_no_object_shows_a_secret_in_any_form(home: Path, words: Mapping[str, str]) -> None:
    row = int(words["ROW"])
    with Healkit(home / "healkit.db") as hk:
        objects: dict[str, Any] = {
            "execution(ROW)": hk.execution(row),
            "execution(DONE)": hk.execution(int(words["DONE"])),
            "last_error('share')": hk.last_error("share"),
            "last_error_report('login')": hk.last_error_report("login"),
            "executions()": hk.executions(limit=100, tried=True),
            "heal('share')": hk.heal("share", advisors=["rules"], budget_s=5, dry_run=True),
            "check_notebook()": hk.check_notebook("asks.ipynb", heal=True),
            "replay(SHARE)": hk.replay(int(words["SHARE"])),
            "rerun(SHARE)": hk.rerun(int(words["SHARE"])),
            "listing": hk.execute(
                "listing", arguments={"password": SECRETS["an argument"], "people": people()}
            ),
            "groups": hk.trends.shown_groups(hk.log.groups(limit=50).rows),
            "requests": hk.requests.list(limit=20),
            "timeline": hk.timeline(),
            "trials": hk.trials([(SHARE, {"password": SECRETS["an argument"], "values": []})]),
        }
        live = objects["rerun(SHARE)"]
        for name, found in objects.items():
            for form, text in shown(found):
                checked(text, f"{name} as {form}")
        for field in dataclasses.fields(Execution):
            if field.name != "value":
                checked(repr(getattr(objects["execution(ROW)"], field.name)), f"execution.{field.name}")
                checked(repr(getattr(objects["listing"], field.name)), f"execution.{field.name}")
        with pytest.raises(ToolExecutionError) as raised:
            hk.execute_tool("share", arguments={"password": SECRETS["an argument"], "values": []})
        checked(repr(raised.value) + str(raised.value), "the error of execute_tool")
        checked("".join(raised.value._render_traceback_()), "the error's traceback")
        checked("".join(traceback.format_exception(raised.value)), "the error's Python traceback")
        assert SECRETS["an argument"] in str(live.uncleaned.failure), "the record itself is whole"
        assert hk.executions(limit=1)[0].uncleaned.arguments["password"] == SECRETS["an argument"]


def test_what_lies_in_files_holds_no_secret(home: Path) -> None:
    """Run folders, with traces, evidence and manifests; what is sent or exported of the database is asked above."""
    with Healkit(home / "healkit.db") as hk:
        files = [file for file in hk.runs_dir.rglob("*") if file.is_file()]
    assert len(files) > 20
    for file in files:
        checked(file.read_text(errors="replace"), str(file.relative_to(home)))
    with contextlib.closing(sqlite3.connect(home / "healkit.db")) as database:
        for (wire,) in database.execute("select wire from executiontrace"):
            checked(wire, "a trace, as it is sent")


# Notebooks.


def test_no_cell_of_a_notebook_shows_a_secret(home: Path) -> None:
    """Magics, errors and cards, of tools and of cells, as they are saved in a file."""
    password = SECRETS["an argument"]
    sources = [
        "%load_ext healkit",
        f'%run_tool share --args \'{{"password": "{password}", "values": [1]}}\'',
        "%trace_last_error",
        "%trace_last_error --markdown",
        "%executions",
        "%heal share --budget 6",
        *CELLS,
        "%trace_last_error",
        "%heal",
        "import healkit\nhealkit.faces.defaults.default_healkit().last_error('login')",
    ]
    magics = {word.removeprefix("%").split()[0] for word in sources if word.startswith("%")}
    new = (
        PARSERS.keys()
        - magics
        - {"tool", "post_mortem", "vault", "summarize", "decide", "graph", "suggest", "views", "healkit"}
    )
    assert not new, (
        f"Say above how to call the magics {sorted(new)}, or why they show nothing of an execution."
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(
        book, timeout=120, allow_errors=True, resources={"metadata": {"path": str(home)}}
    ).execute()
    for cell in book.cells:
        for output in cell.outputs:
            # What a cell itself prints, and Python's own error of it, are not healkit's.
            if cell.source.startswith("%") or "healkit" in json.dumps(output.get("data", {})):
                checked(json.dumps(output), cell.source)


def test_no_face_reads_what_is_not_cleaned() -> None:
    """What was recorded is read by name alone, `uncleaned`, and below the faces."""
    package = Path(healkit.__file__).parent
    faces = [file for name in FACES for file in (package / name).rglob("*.py")]
    faces += [file for name in ("commands", "agent_tools") for file in package.glob(f"parts/*/{name}.py")]
    assert len(faces) > 80
    used = {str(one.relative_to(package)) for one in faces if ".uncleaned" in one.read_text()}
    assert used == set(COUNTED), "A face shows what it gets; see healkit/core/runtime/execution.py."


FACES = ("faces", "commands", "core/rendering")
#: Faces that compare or edit what was recorded, and show what `cleaning` gives them.
COUNTED = (
    "core/rendering/cleaning.py",
    "faces/commands/vault_edits.py",
    "faces/notebook/widgets/patch_editor.py",
    "faces/pages/page_data.py",
)
