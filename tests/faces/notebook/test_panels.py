"""Answers of panels, and what they leave in a notebook."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import pytest
from panel_page import Page
from waiting import wait_until

from healkit import Config, Healkit
from healkit.errors import ArgumentsInvalid, HealkitError, UsageInvalid
from healkit.faces.notebook.widgets.heal_panel import HealPanel
from healkit.faces.notebook.widgets.log_panels import LogBrowser, TracebackView
from healkit.faces.notebook.widgets.patch_editor import PatchEditor, Patching
from healkit.faces.pages.page_data import PageData

BROKEN = "def mean_of(values: list):\n    return sum(values) / 0"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
WIDGET = "application/vnd.jupyter.widget-view+json"
CELLS = ("%load_ext healkit", f"%%tool mean_of\n{BROKEN}", "%run_tool mean_of values=[2,4]")


@pytest.mark.slow
@pytest.mark.requirement("FACE-3", "FACE-4")
def test_the_card_comes_first_and_the_live_panel_second_below_the_cells_own_error(run: Any) -> None:
    outputs = run(*CELLS).cells[-1].outputs
    assert [output.output_type for output in outputs] == ["error", "display_data", "display_data"]
    assert "text/html" in outputs[1].data
    assert WIDGET in outputs[2].data
    assert "text/html" not in outputs[2].data
    saved = json.dumps(outputs)
    assert len(saved) < 30_000
    assert "EditorView" not in saved  # the bundle travels, and is not saved


def test_panels_can_be_turned_off_and_a_terminal_shows_none(
    run: Any, shell: Any, capsys: Any, monkeypatch: Any
) -> None:
    for cell in CELLS[:2]:
        shell.run_cell(cell)
    shell.run_cell("%vault show mean_of")
    shell.run_cell("%executions --dock")
    shell.run_cell("%heal mean_of --panel")
    said = capsys.readouterr().out
    assert "anywidget" not in said
    assert "mean_of" in said
    assert "There is no page to open a panel in." in said
    monkeypatch.setenv("HEALKIT_PANELS", "0")
    outputs = run(*CELLS).cells[-1].outputs
    assert [output.output_type for output in outputs] == ["error", "display_data"]


def test_a_docked_panel_has_its_place_named_to_the_page_and_is_in_its_cell_elsewhere(run: Any) -> None:
    outputs = run("%load_ext healkit", "%executions --dock").cells[-1].outputs
    assert [WIDGET in output.data for output in outputs] == [True, False]  # the card is folded below


def test_a_question_asked_again_runs_once_and_each_goodbye_counts(healkit: Healkit) -> None:
    panel, calls = LogBrowser(healkit), list[str]()
    panel.operations |= {"ask": lambda: calls.append("ask"), "left": lambda: calls.append("left")}
    page = Page(panel)
    for _ in range(2):
        panel._received(None, {"op": "ask", "id": "7", "args": {}}, [])
        panel._received(None, {"op": "left", "id": "", "args": {}}, [])
        wait_until(lambda: not panel._running)
    assert page.came.keys() == {"7", ""}
    assert sorted(calls) == ["ask", "left", "left"]


def test_a_panel_says_if_it_is_docked_and_if_it_is_new(healkit: Healkit) -> None:
    page = Page(healkit.browse(dock=True))
    assert page.ask("hello")["place"] == {"title": "Executions", "docked": True, "new": True}
    assert page.ask("hello")["place"]["new"] is False
    assert Page(healkit.browse()).ask("hello")["place"]["docked"] is False


@pytest.mark.slow
def test_a_secret_argument_is_hidden_on_the_page_but_used(healkit: Healkit) -> None:
    code = "def login(token: str, times: int):\n    return len(token) * times"
    healkit.vault.add("login", code)
    patching = Patching(healkit, PageData(healkit))
    healkit.execute("login", arguments={"token": SECRET, "times": 1})
    opened = patching.edit("login")
    assert SECRET not in json.dumps(opened)
    assert opened["hidden"] == 1

    def tried(arguments: str) -> Any:
        return patching.try_code("login", "default", code, arguments)["run"]["value"]

    assert tried(opened["arguments"]) == "40"
    other = json.loads(opened["arguments"]) | {"times": 2}
    assert tried(json.dumps(other)) == "80"
    assert tried(json.dumps(other | {"token": "abc"})) == "6"
    with pytest.raises(ArgumentsInvalid, match="was hidden"):
        tried(json.dumps(other | {"token": other["token"] + "!"}))


def test_a_value_that_the_log_itself_did_not_keep_is_asked_for(database: Any) -> None:
    code = "def login(token: str):\n    return len(token)"
    with Healkit(config=Config(sanitize_log=True)) as healkit:
        healkit.vault.add("login", code)
        healkit.execute("login", arguments={"token": SECRET})
        patching = Patching(healkit, PageData(healkit))
        with pytest.raises(ArgumentsInvalid, match="Put the value itself in its place"):
            patching.try_code("login", "default", code, patching.edit("login")["arguments"])


def test_arguments_come_from_an_example_or_the_schema_before_a_tool_was_ever_run(healkit: Healkit) -> None:
    healkit.vault.add("shout", "def shout(text: str, times: int):\n    return text * times")
    healkit.vault.add(
        "hush", "def hush(text):\n    return text", examples=[{"arguments": {"text": "a"}, "result": "a"}]
    )
    patching = Patching(healkit, PageData(healkit))
    assert json.loads(patching.edit("shout")["arguments"]) == {"text": "", "times": 1}
    assert json.loads(patching.edit("hush")["arguments"]) == {"text": "a"}


def test_what_a_tool_displays_comes_back_cleaned(healkit: Healkit) -> None:
    code = (
        "def show():\n    from IPython.display import HTML, display\n"
        "    display(HTML('<b onclick=\"steal()\">bold</b><script>steal()</script>'))\n    return 1"
    )
    healkit.vault.add("show", code)
    came = Patching(healkit, PageData(healkit)).try_code("show", "default", code, "{}")
    assert [output["data"]["text/html"] for output in came["run"]["outputs"]] == ["<b>bold</b>"]


def test_a_filter_that_there_is_not_is_named(healkit: Healkit) -> None:
    with pytest.raises(UsageInvalid, match="'colour'"):
        healkit.browse(colour="red")
    with pytest.raises(UsageInvalid, match="'ODD'"):
        healkit.browse(status="odd".upper())


def test_the_saved_state_of_a_panel_holds_nothing_of_what_it_shows(healkit: Healkit) -> None:
    """S9: the base of all panels says so, since state is saved in the notebook."""
    healkit.vault.add(
        "marked", "def marked(text: str):\n    code_of_it = 1\n    raise ValueError(text * 2)\n"
    )
    failed = healkit.execute("marked", arguments={"text": "argument-of-it"})
    panels = [
        LogBrowser(healkit),
        PatchEditor(healkit, "marked"),
        TracebackView(healkit, failed),
        HealPanel(healkit, "marked"),
    ]
    for panel in panels:
        saved = json.dumps(
            {name: value for name, value in panel.get_state().items() if name != "_esm"}, default=str
        )
        for part in ("code_of_it", "argument-of-it", "ValueError"):
            assert part not in saved
        panel.close()


@pytest.mark.requirement("SAFE-4")
def test_a_panel_shows_no_control_characters(healkit: Healkit) -> None:
    """S8: a traceback, the last output and the lines of frames reached the page with what reorders their lines."""
    hostile = "A\x1b]52;c;QUJD\x07B\u202eC\u2066D\u061cE\x9bF"
    code = f"def marked():\n    print({hostile!a})\n    raise ValueError({hostile!a})  # \u202e\n"
    healkit.vault.add("marked", code)
    failed = healkit.execute("marked")
    shown = json.dumps(PageData(healkit).execution(failed), ensure_ascii=False)
    assert re.findall("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", shown) == []
    assert "\\u001b" not in shown
    assert "\\\\u202e" in shown


PASSWORD, HEADER = "correct horse battery", "sk-" + "Zq8Lw3Rt6Yp1Xc5Vb9Nm2Kd7"
URL_PASSWORD, PRINTED, RETURNED = "Tr0ub4dor&3x", "Winter7Yellow", "quartz66pine"
PLANTED = (PASSWORD, HEADER, URL_PASSWORD, PRINTED, RETURNED, "Reason31Oak")
#: Its code is edited and shown, so it has the secrets in pieces only.
PAY = f"""def s_pay(password: str, headers: dict):
    p = password
    print("access_token=" + {PRINTED[:6]!r} + {PRINTED[6:]!r})
    if p == "no":
        return {{"password": {RETURNED[:6]!r} + {RETURNED[6:]!r}}}
    raise RuntimeError("postgres://scott:" + {URL_PASSWORD[:5]!r} + {URL_PASSWORD[5:]!r} + "@db/db refused " + p)"""


@pytest.mark.slow
@pytest.mark.requirement("TRACE-2", "FACE-4")
def test_no_message_to_a_page_holds_a_planted_secret(healkit: Healkit) -> None:
    healkit.vault.add("s_pay", PAY, reason="since password=Reason31Oak")
    given = {"password": PASSWORD, "headers": {"Authorization": f"Bearer {HEADER}"}}
    returned = healkit.execute("s_pay", arguments={"password": "no", "headers": {}}).log_id
    failed = healkit.execute("s_pay", arguments=given)
    log, editor = Page(healkit.browse()), Page(healkit.patch_editor("s_pay"))
    answers = {
        "rows": log.ask("page", filters={}),
        "groups": log.ask("groups", filters={}),
        "row": log.ask("execution", log_id=failed.log_id),
        "returned": log.ask("execution", log_id=returned),
        "view": Page(TracebackView(healkit, failed)).ask("hello"),
        "edit": editor.ask("edit", tool="s_pay"),
        "history": editor.ask("history", tool="s_pay"),
        "rerun": editor.ask("rerun", log_id=failed.log_id),
    }
    for name, answer in answers.items():
        text = json.dumps(answer).replace("&amp;", "&").replace("\\u0026", "&")
        assert [secret for secret in PLANTED if secret in text] == [], name
    assert editor.ask("code", tool="s_pay", persona="default", revision=1) == PAY


def test_the_log_panel_shows_refused_calls_apart(healkit: Healkit) -> None:
    """D8: a mistyped name stood among the failures of code."""
    for name in ("mean_fo", "mean_of_all"):
        with contextlib.suppress(HealkitError):
            healkit.execute(name, arguments={})
    panel = LogBrowser(healkit)
    page, groups = panel.operations["page"], panel.operations["groups"]
    assert [(row["status"], row["refused"]) for row in page({})["rows"]] == [("FAILURE", True)] * 2
    assert len(page({"status": "REFUSED"})["rows"]) == 2
    found = groups({})
    assert (found["groups"], found["left_out"]) == ([], 2)
    assert len(groups({"status": "REFUSED"})["groups"]) == 2
    assert groups({"status": "SUCCESS"})["left_out"] == 2  # that of no failure chooses no groups
    panel.close()


def test_the_log_panel_shows_what_was_asked_for_in_one_way(healkit: Healkit) -> None:
    healkit.vault.add("one", "def one():\n    return 1\n")
    healkit.execute("one", origin="mcp")
    healkit.execute("one")
    panel = LogBrowser(healkit, origin="mcp")
    assert [row["origin"] for row in panel.operations["page"]({"origin": "mcp"})["rows"]] == ["mcp"]
    panel.close()
