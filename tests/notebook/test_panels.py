"""Answers of panels, and what they leave in a notebook.

The page itself is in tests/browser.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from notebook_kernel import NotebookKernel
from notebook_samples import text_of
from waiting import wait_until

from healkit import Config, Healkit
from healkit.errors import ArgumentsInvalid, HealkitError, UsageInvalid
from healkit.notebook.widgets.heal_panel import HealPanel
from healkit.notebook.widgets.log_panels import LogBrowser, PostMortemPanel, TracebackView
from healkit.notebook.widgets.page_data import PageData
from healkit.notebook.widgets.patch_editor import PatchEditor, Patching
from healkit.runtime.background import Stop

BROKEN = "def mean_of(values: list):\n    return sum(values) / 0"
FIXED = "def mean_of(values: list):\n    return sum(values) / len(values)"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
WIDGET = "application/vnd.jupyter.widget-view+json"
CELLS = ("%load_ext healkit", f"%%tool mean_of\n{BROKEN}", "%run_tool mean_of values=[2,4]")


class Page:
    """Asks a panel in a kernel as the page does."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client
        self.asked = 0

    def run(self, code: str) -> str:
        """Run code, and what it printed."""
        reply = self.client.execute_interactive(code, timeout=60, output_hook=self._take)
        assert reply["content"]["status"] == "ok", reply["content"]
        printed, self.printed = self.printed, ""
        return printed

    printed = ""

    def _take(self, message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            self.printed += message["content"]["text"]

    def send(self, comm: str, content: dict[str, Any]) -> None:
        message = self.client.session.msg(
            "comm_msg", {"comm_id": comm, "data": {"method": "custom", "content": content}}
        )
        self.client.shell_channel.send(message)

    def ask(self, comm: str, op: str, **arguments: Any) -> dict[str, Any]:
        """Ask the panel; return the answer's content."""
        self.asked += 1
        self.send(comm, {"op": op, "id": str(self.asked), "args": arguments})
        return self.answer(str(self.asked))

    def answer(self, question: str, timeout_s: float = 60) -> dict[str, Any]:
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            message = self.client.get_iopub_msg(timeout=timeout_s)
            content = (
                message["content"].get("data", {}).get("content", {})
                if message["msg_type"] == "comm_msg"
                else {}
            )
            if content.get("id") == question:
                return content
        raise AssertionError(f"no answer to {question}")


@pytest.fixture
def page(database: Any, notebook_kernel: NotebookKernel) -> Iterator[Page]:
    opened = Page(notebook_kernel.client())
    yield opened
    opened.client.stop_channels()


@pytest.fixture
def patching(healkit: Healkit) -> Patching:
    healkit.vault.add("mean_of", BROKEN)
    return Patching(healkit, PageData(healkit))


@pytest.mark.requirement("FACE-3", "FACE-4")
def test_the_card_comes_first_and_the_live_panel_second_below_the_cells_own_error(run: Any) -> None:
    outputs = run(*CELLS).cells[-1].outputs
    assert [output.output_type for output in outputs] == ["error", "display_data", "display_data"]
    assert "text/html" in outputs[1].data
    assert WIDGET in outputs[2].data
    assert "text/html" not in outputs[2].data


@pytest.mark.slow
@pytest.mark.requirement("FACE-4")
def test_a_card_with_its_panel_adds_less_than_30_kb_to_a_saved_notebook(run: Any) -> None:
    def saved(cells: int) -> str:
        return json.dumps(run(*CELLS, *[CELLS[-1]] * cells))

    one, three = saved(0), saved(2)
    assert (len(three) - len(one)) / 2 < 30_000
    assert "EditorView" not in three  # the bundle travels, and is not saved


def test_panels_can_be_turned_off_and_a_terminal_shows_none(
    run: Any, shell: Any, capsys: Any, monkeypatch: Any
) -> None:
    for cell in CELLS[:2]:
        shell.run_cell(cell)
    shell.run_cell("%vault show mean_of")
    assert "anywidget" not in capsys.readouterr().out
    assert not [name for name in sys.modules if name == "healkit.notebook.widgets.panel" and _open_panels()]
    monkeypatch.setenv("HEALKIT_PANELS", "0")
    outputs = run(*CELLS).cells[-1].outputs
    assert [output.output_type for output in outputs] == ["error", "display_data"]


def _open_panels() -> int:
    from healkit.notebook.widgets import panel

    return len(panel._open)


def test_loading_the_extension_loads_no_panel() -> None:
    script = "import sys, IPython; from healkit.notebook import ipython_extension, magics; print('anywidget' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
@pytest.mark.requirement("FACE-4")
def test_every_question_is_answered_whatever_happens_to_it(page: Page) -> None:
    comm = page.run(
        "from healkit import Healkit\nhk = Healkit()\npanel = hk.browse()\n"
        "panel.operations |= {'fails': lambda: 1 / 0, 'odd': lambda: object(), 'stop': lambda: 0}\nprint(panel.model_id)"
    ).strip()
    assert page.ask(comm, "hello")["value"]["kind"] == "LogBrowser"
    assert page.ask(comm, "page", filters={})["value"]["rows"] == []
    assert page.ask(comm, "fails")["error"]["message"] == "ZeroDivisionError: division by zero"
    assert page.ask(comm, "odd")["error"]["code"] == "PANEL_ERROR"  # which is no JSON
    assert "'nothing'" in page.ask(comm, "nothing")["error"]["message"]
    assert "Not a status: 'ODD'" in page.ask(comm, "page", filters={"status": "ODD"})["error"]["message"]
    assert "'never' is unknown" in page.ask(comm, "page", filters={}, never="heard of")["error"]["message"]
    page.send(comm, {"op": "stop", "id": "of nothing"})
    page.ask(comm, "remember", key="draft", value={"code": "x"})
    assert page.ask(comm, "hello")["value"]["memory"] == {"draft": {"code": "x"}}


@pytest.mark.requirement("FACE-1")
def test_unloading_closes_the_panels_and_leaves_no_thread(page: Page) -> None:
    page.run("%load_ext healkit")
    page.run("from healkit.defaults import default_healkit\npanel = default_healkit().browse()")
    page.run("%unload_ext healkit")
    left = page.run(
        "import threading, time\n"
        "print(panel.comm, [t.name for t in threading.enumerate() if t.name.startswith('healkit')])"
    )
    assert left.strip() == "None []"


@pytest.mark.slow
def test_a_try_says_how_the_outcome_changed_and_saves_nothing(healkit: Healkit, patching: Patching) -> None:
    failed = healkit.execute("mean_of", arguments={"values": [2, 4]})
    opened = patching.edit("mean_of")
    assert opened["failing"] == {"revision": 1, "lineno": 2, "message": "ZeroDivisionError: division by zero"}
    assert json.loads(opened["arguments"]) == {"values": [2, 4]}
    came = patching.try_code("mean_of", "default", FIXED, opened["arguments"], failed.log_id)
    assert came["run"]["ok"]
    assert came["delta"]["before"] == "ZeroDivisionError: division by zero"
    assert came["delta"]["now"] == "3.0"
    assert len(healkit.vault.history("mean_of")) == 1
    saved = patching.accept("mean_of", "default", FIXED, parent=1, reason="count", log_id=failed.log_id)
    assert saved["label"] == "mean_of v2"
    revision = healkit.vault.history("mean_of")[-1]
    assert (revision.author, revision.reason, revision.motivating_log_id) == (
        "person",
        "count",
        failed.log_id,
    )
    assert failed.log_id is not None
    assert patching.rerun(failed.log_id)["run"]["label"] == "mean_of v2"


def test_a_patch_of_an_old_parent_is_answered_with_the_other_one(
    healkit: Healkit, patching: Patching
) -> None:
    healkit.vault.patch("mean_of", "def mean_of(values: list):\n    return 0")
    answer = patching.accept("mean_of", "default", FIXED, parent=1)
    assert answer["conflict"]["revision"] == 2
    assert answer["conflict"]["code"].endswith("return 0")
    assert len(healkit.vault.history("mean_of")) == 2


@pytest.mark.slow
def test_a_secret_argument_is_hidden_on_the_page_and_used_all_the_same(healkit: Healkit) -> None:
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


@pytest.mark.slow
@pytest.mark.requirement("LOG-10", "FACE-4")
def test_the_browser_leaves_trials_out_and_counts_them_unless_they_are_asked_for(healkit: Healkit) -> None:
    healkit.vault.add("mean_of", BROKEN)
    healkit.execute("mean_of", arguments={"values": [1]}, mode="subprocess")
    healkit.trials([(FIXED, {"values": [1]}), (BROKEN, {"values": [1]})])
    answers = healkit.browse().operations["page"]
    page = answers(filters={})
    assert [row["origin"] for row in page["rows"]] == ["python"]
    assert (page["left_out"], page["most_left_out"]) == (2, 1_000)
    asked = answers(filters={"tried": "yes"})
    assert [(row["origin"], row["tried"]) for row in asked["rows"]] == [
        ("trial", True), ("trial", True), ("python", False),
    ]  # fmt: skip
    assert asked["left_out"] == 0
    assert "2 trial runs" in healkit.browse().static_card().text
    assert "trial runs" not in healkit.browse(tried=True).static_card().text


def test_a_filter_that_there_is_not_is_named(healkit: Healkit) -> None:
    with pytest.raises(UsageInvalid, match="'colour'"):
        healkit.browse(colour="red")
    with pytest.raises(UsageInvalid, match="'ODD'"):
        healkit.browse(status="odd".upper())


@pytest.mark.slow
@pytest.mark.parametrize("early", [True, False])
def test_a_stop_from_another_thread_ends_the_worker_and_the_run_is_on_record(
    healkit: Healkit, early: bool
) -> None:
    healkit.vault.add("forever", "def forever():\n    while True: pass")
    stop, ended = Stop(), []

    def work() -> None:
        with stop.heard():
            ended.append(healkit.execute("forever", timeout=60))

    if early:
        stop.ask()
    thread = threading.Thread(target=work)
    thread.start()
    if not early:
        wait_until(healkit.log.running)
    stop.ask()
    thread.join(timeout=60)
    assert ended[0].failure.code == "TOOL_KILLED"
    assert healkit.executions(limit=1)[0].failure is not None


@pytest.mark.slow
def test_the_static_card_of_each_panel_reads_as_text(run: Any) -> None:
    book = run(
        *CELLS,
        "%executions",
        "%vault show mean_of",
        "from healkit import Healkit\nHealkit().patch_editor('mean_of')",
    )
    assert "ZeroDivisionError" in text_of(book.cells[3])
    for cell in book.cells[3:]:
        card, panel = cell.outputs if cell is not book.cells[3] else reversed(cell.outputs)
        assert "text/html" in card.data
        assert WIDGET in panel.data
    # Where the panel shows the same, it comes first.
    assert book.cells[3].outputs[1].data["text/html"].startswith("<details")


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
        PostMortemPanel(healkit, failed),
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
PLANTED = (PASSWORD, HEADER, URL_PASSWORD, PRINTED, RETURNED)
#: Named by their pieces, so that the tool's own code, which is edited and shown, holds none of them.
PAY = f"""%%tool s_pay --reason 'since password=Reason31Oak'
def s_pay(password: str, headers: dict):
    p = password
    print("access_token=" + {PRINTED[:6]!r} + {PRINTED[6:]!r})
    if p == "no":
        return {{"password": {RETURNED[:6]!r} + {RETURNED[6:]!r}}}
    raise RuntimeError("postgres://scott:" + {URL_PASSWORD[:5]!r} + {URL_PASSWORD[5:]!r} + "@db/db refused " + p)"""
CALL = f'%run_tool s_pay password="{PASSWORD}" headers={{"Authorization":"Bearer {HEADER}"}}'


def _seen(shown: Any) -> list[str]:
    text = json.dumps(shown).replace("&amp;", "&").replace("\\u0026", "&")
    return [secret for secret in (*PLANTED, "Reason31Oak") if secret in text]


@pytest.mark.slow
@pytest.mark.requirement("TRACE-2", "FACE-3")
def test_no_card_of_a_notebook_shows_a_planted_secret(run: Any) -> None:
    magics = ("%trace_last_error", "%trace_last_error --locals", "%executions", "%executions --group", "%vault list",
              "%vault history s_pay", "%trace_last_error --markdown", "%healkit status")  # fmt: skip
    cells = run("%load_ext healkit", PAY, CALL, *magics).cells[1:]
    cards = [
        [output.data for output in cell.outputs if output.output_type == "display_data"] for cell in cells
    ]
    assert "password=…" in json.dumps(cards[1], ensure_ascii=False)
    assert {cell.source: seen for cell, card in zip(cells, cards, strict=True) if (seen := _seen(card))} == {}


@pytest.mark.slow
@pytest.mark.requirement("TRACE-2", "FACE-4")
def test_no_message_to_a_page_holds_a_planted_secret(page: Page, healkit: Healkit) -> None:
    healkit.vault.add("s_pay", PAY.partition("\n")[2], reason="since password=Reason31Oak")
    given = {"password": PASSWORD, "headers": {"Authorization": f"Bearer {HEADER}"}}
    returned = healkit.execute("s_pay", arguments={"password": "no", "headers": {}}).log_id
    row = healkit.execute("s_pay", arguments=given).log_id
    names = page.run(
        "from healkit import Healkit\nhk = Healkit()\nfailed = hk.last_error()\n"
        "from healkit.notebook.widgets.log_panels import TracebackView\n"
        "panels = [hk.browse(), TracebackView(hk, failed), hk.patch_editor('s_pay')]\n"
        "print(*(panel.model_id for panel in panels))"
    )
    log, view, editor = names.split()
    answers = {
        "rows": page.ask(log, "page", filters={}),
        "groups": page.ask(log, "groups", filters={}),
        "row": page.ask(log, "execution", log_id=row),
        "returned": page.ask(log, "execution", log_id=returned),
        "view": page.ask(view, "hello"),
        "edit": page.ask(editor, "edit", tool="s_pay"),
        "history": page.ask(editor, "history", tool="s_pay"),
        "rerun": page.ask(editor, "rerun", log_id=row),
    }
    assert {name: answer["error"] for name, answer in answers.items() if "error" in answer} == {}
    assert {name: seen for name, answer in answers.items() if (seen := _seen(answer))} == {}
    code = page.ask(editor, "code", tool="s_pay", persona="default", revision=1)["value"]
    assert code == healkit.vault.get("s_pay").code


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
