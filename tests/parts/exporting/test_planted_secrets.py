"""Secrets in each field of a record, looked for in each face.

What may hold it is the log itself, from which a run is repeated, and the tool's own code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_samples import call

from healkit import Config, Healkit
from healkit.core.rendering import execution_card as rendered
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.faces.commands import cards
from healkit.parts.traces.otel import OtelExporter

TRACE_2 = pytest.mark.requirement("TRACE-2")
#: Field → the secret that is planted there. No two have a word in common.
PLANTED = {
    "argument": "correct horse battery",
    "header": "sk-" + "Zq8Lw3Rt6Yp1Xc5Vb9Nm2Kd7",
    "unnamed argument": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "URL in the message": "Tr0ub4dor&3x",
    "other name": "Falcon9Heavy",
    "line of code": "river-Stone-44",
    "last output": "Winter7Yellow",
    "call argument": "copper77lamp",
    "call result": "velvet88moon",
    "call error": "marble99fern",
    "decision": "amber55ridge",
    "result": "quartz66pine",
}
CODE = f'''\
def s_pay(password: str, headers: dict, note: str, db_password: str):
    """Pay."""
    p = password
    q = db_password
    trace.decision("route", "card", condition="api_key={PLANTED["decision"]!r}")
    mcp.host.charge(password={PLANTED["call argument"]!r})
    try:
        mcp.host.refuse()
    except Exception:
        pass
    print("access_token={PLANTED["last output"]}")
    connect("db", "scott", q, password={PLANTED["line of code"]!r})


def connect(host, user, secret_word, password):
    raise RuntimeError(f"postgres://scott:{PLANTED["URL in the message"]}@db/db refused {{secret_word}}")
'''
WORKS = f'''\
def s_ok(n: int):
    """Return a login."""
    return {{"password": {PLANTED["result"]!r}, "n": n}}
'''
GIVEN = {
    "password": PLANTED["argument"],
    "headers": {"Authorization": f"Bearer {PLANTED['header']}"},
    "note": f"use {PLANTED['unnamed argument']}",
    "db_password": PLANTED["other name"],
}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Healkit]:
    """Run both tools, with a run folder, in a database that the commands find."""
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "healkit.db"))
    with Healkit() as healkit:
        healkit.vault.add(
            "s_pay", CODE, description="Pay; password=Words47Elm", reason="since password=Reason31Oak"
        )
        healkit.vault.add("s_ok", WORKS)

        def charge(password: str) -> dict[str, str]:
            assert password == PLANTED["call argument"]
            return {"password": PLANTED["call result"]}

        def refuse() -> None:
            raise ValueError(f"password={PLANTED['call error']} is wrong")

        healkit.provide(charge, "charge")
        healkit.provide(refuse, "refuse")
        healkit.execute("s_ok", arguments={"n": 1})
        healkit.execute("s_pay", arguments=GIVEN, record=True)
        yield healkit


def found(shown: str) -> list[str]:
    """List the fields whose secret stands in a text, also as a page or JSON writes it."""
    text = shown.replace("&amp;", "&").replace("\\u0026", "&")
    return [field for field, secret in PLANTED.items() if secret in text]


@TRACE_2
@pytest.mark.requirement("FACE-2")
def test_no_card_and_no_list_shows_a_planted_secret(planted: Healkit) -> None:
    failed = planted.last_error()
    assert failed is not None
    assert len(found(repr(failed.uncleaned))) >= 8  # the record itself holds them
    rows = planted.executions()
    faces = {
        "card": failed.to_text(),
        "card as a page": failed.to_html(),
        "card in a terminal": text_of(rendered.card(failed, face="terminal")),
        "list": rows.to_text(),
        "list as a page": rows.to_html(),
        "success": text_of(rendered.card(rows[-1])) + html_of(rendered.success(rows[-1])),
        "report": planted.last_error_report(),
        "Markdown": failed.to_markdown(),
        "vault": text_of(cards.vault(planted.vault.list())),
        "tool": text_of(cards.entry(planted.vault.get("s_pay"))),
        "frames": str(failed.post_mortem().to_text()),
    }
    assert {face: fields for face, shown in faces.items() if (fields := found(shown))} == {}
    assert "Words47Elm" not in faces["vault"] + faces["tool"]
    history = text_of(cards.history_card("s_pay", planted.vault.history("s_pay")))
    assert "Reason31Oak" not in history


@TRACE_2
@pytest.mark.requirement("FACE-6")
@pytest.mark.slow
def test_no_command_prints_a_planted_secret(planted: Healkit, tmp_path: Path) -> None:
    run_id = planted.executions()[0].run_id
    book = tmp_path / "failure.ipynb"
    commands: list[tuple[str, ...]] = [
        ("errors",), ("errors", "--last"), ("errors", "--json"), ("errors", "--last", "--json"), ("errors", "--markdown"),
        ("errors", "--notebook", str(book)), ("log",), ("log", "--json"), ("log", "--group"), ("log", "--group", "--json"),
        ("run", "s_pay", "--args", json.dumps(GIVEN)), ("run", "s_pay", "--json", "--args", json.dumps(GIVEN)),
        ("vault", "show", "s_pay"), ("vault", "history", "s_pay", "--json"), ("trace", "show", str(run_id)),
        ("trace", "show", str(run_id), "--json"), ("audit", "list"),
    ]  # fmt: skip
    shown = {}
    for words in commands:
        done = call(*words)
        text = done.stdout + done.stderr
        if words[0] == "run":  # what the tool prints is its own answer to who ran it
            text = text.replace(f"access_token={PLANTED['last output']}\n", "", 1)
        if fields := found(text):
            shown[words] = fields
    assert shown == {}
    assert found(book.read_text()) == []


@TRACE_2
def test_no_trace_span_or_run_folder_holds_a_planted_secret(planted: Healkit) -> None:
    failed = planted.executions()[0]
    trace = planted.traces.get(failed.trace_id)
    assert trace is not None
    exporter = OtelExporter(Config(otel=True), lambda: planted.traces.tracer.sanitizer)
    try:
        spans = "".join(span.to_json() for span in exporter.spans(trace))
    finally:
        exporter.close()
    assert found(repr(trace)) == []
    assert found(spans) == []
    assert failed.run_id is not None
    files = [file for file in (planted.runs_dir / failed.run_id).rglob("*") if file.is_file()]
    left = {file.name: fields for file in files if (fields := found(file.read_text(errors="replace")))}
    assert left == {}


@TRACE_2
@pytest.mark.requirement("FACE-2")
def test_a_command_to_copy_names_a_hidden_argument_and_a_rerun_takes_it_from_the_log(
    planted: Healkit,
) -> None:
    failed = planted.last_error()
    assert failed is not None
    shown = failed.to_text()
    assert "password=… headers=…" in shown
    assert f"hk.rerun({failed.log_id})" in shown
    again = planted.rerun(failed.log_id or 0)
    assert again.failure is not None
    assert again.uncleaned.arguments == GIVEN


@TRACE_2
def test_a_log_that_is_cleaned_knows_the_arguments_when_it_writes_the_message(tmp_path: Path) -> None:
    config = Config(sanitize_log=True)
    with Healkit(tmp_path / "clean.db", config=config) as healkit:
        healkit.vault.add(
            "login", "def login(password: str):\n    p = password\n    raise ValueError(f'no user {p}')\n"
        )
        healkit.execute("login", arguments={"password": "Falcon9Heavy"})
        row: Any = healkit.log.last_error()
    assert "Falcon9Heavy" not in repr((row.arguments, row.evalue, row.error_traceback, row.failure))
