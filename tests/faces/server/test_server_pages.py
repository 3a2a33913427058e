"""Stand-alone page and its answers, in a real Jupyter server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_server_process import Jupyter
from page_samples import HOSTILE, MEAN, PRICES, SECRET, fill

from healkit import Healkit
from healkit.faces.pages.side_panel import SidePanelPages

PANELS, PAGE, TRUST = "/healkit/api/panels", "/healkit/", "/healkit/api/trust"

AUTHORIZER = """
from jupyter_server.auth import Authorizer

class Readers(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        with open("asked", "a") as asked:
            print(action, resource, file=asked)
        return resource != "healkit_log"
"""


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """Start a Jupyter server beside a database with something of all."""
    folder = tmp_path_factory.mktemp("pages")
    fill(folder / "healkit.db")
    server = Jupyter(folder)
    yield server
    server.stop()


def asked(server: Jupyter, op: str, **arguments: Any) -> Any:
    """Return the value that the server answers."""
    answer = server.client.post(PANELS, json={"op": op, "args": arguments})
    assert answer.status_code == 200, answer.text
    return answer.json()["value"]


def refused(server: Jupyter, question: Any) -> tuple[int, str]:
    """Return the status and the code that the server answers."""
    answer = server.client.post(PANELS, json=question)
    return answer.status_code, answer.json()["error"]["code"]


def test_without_login_nothing_is_shown_or_answered(jupyter: Jupyter) -> None:
    with httpx.Client(base_url=jupyter.url) as stranger:
        page = stranger.get(PAGE)
        assert page.status_code == 302
        assert "/login" in page.headers["Location"]
        assert stranger.get("/healkit/static/web.js").status_code == 302
        answer = stranger.post(PANELS, json={"op": "status", "args": {}})
        assert answer.status_code == 403
        assert "value" not in answer.text


def test_a_browsers_cookie_alone_does_not_ask(jupyter: Jupyter) -> None:
    with httpx.Client(base_url=jupyter.url) as browser:
        browser.get(PAGE, params={"token": jupyter.token})
        page = browser.get(PAGE)
        assert page.status_code == 200
        question = {"op": "news", "args": {}}
        assert browser.post(PANELS, json=question).status_code == 403
        token = {"X-XSRFToken": browser.cookies["_xsrf"]}
        assert "marks" in browser.post(PANELS, json=question, headers=token).json()["value"]
        elsewhere = {"Origin": "http://elsewhere.example", "X-XSRFToken": "2|guessed|guessed|1"}
        assert browser.post(PANELS, json=question, headers=elsewhere).status_code in {403, 404}


def test_the_page_holds_no_inline_script_and_its_policy_allows_none(jupyter: Jupyter) -> None:
    first, second = (jupyter.client.get(PAGE) for _ in range(2))
    policy = first.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    nonce = re.search(r"script-src 'nonce-([\w-]+)'", policy)
    assert nonce is not None
    assert f'nonce="{nonce[1]}"' in first.text
    assert nonce[1] not in second.text
    assert not re.search(r"<script[^>]*>[^<]|<style|\son\w+=|style=", first.text)
    moved = jupyter.client.get("/healkit")
    assert (moved.status_code, moved.headers["Location"]) == (302, "/user/ada/healkit/")
    script = jupyter.client.get("/healkit/static/web.js")
    assert script.headers["Content-Type"].startswith("text/javascript")
    for name in ("index.html", "pages.py", "..%2F__init__.py", "web.js.map"):
        assert jupyter.client.get(f"/healkit/static/{name}").status_code == 404, name


def test_nothing_is_opened_before_a_page_asks(tmp_path: Path) -> None:
    server = Jupyter(tmp_path)
    try:
        assert server.client.get("/api/status").status_code == 200
        assert not (tmp_path / "healkit.db").exists()
        assert asked(server, "page", filters={})["rows"] == []
        assert (tmp_path / "healkit.db").exists()
    finally:
        server.stop()


def test_an_unused_page_loads_no_database() -> None:
    program = "import sys, healkit.faces.server.pages; print([name for name in ('sqlalchemy', 'healkit.app') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_the_authorizer_is_asked_to_read_the_log(tmp_path: Path) -> None:
    (tmp_path / "readers.py").write_text(AUTHORIZER)
    server = Jupyter(
        tmp_path, "--ServerApp.authorizer_class=readers.Readers", PYTHONPATH=f"{tmp_path}:{Path.cwd()}"
    )
    try:
        for answer in (server.client.get(PAGE), server.client.post(PANELS, json={"op": "news"})):
            assert answer.status_code == 403
        assert set((tmp_path / "asked").read_text().splitlines()) == {"read healkit_log"}
        assert not (tmp_path / "healkit.db").exists()
    finally:
        server.stop()


def test_each_list_is_answered_from_the_database_alone(jupyter: Jupyter) -> None:
    groups = {group["tool"]: group for group in asked(jupyter, "groups", filters={})["groups"]}
    assert (groups["total"]["count"], groups["total"]["cured_by"]) == (2, None)
    assert (groups["mean"]["count"], groups["mean"]["cured_by"]) == (3, 2)

    page = asked(jupyter, "page", filters={"tool": "total"})
    assert [row["status"] for row in page["rows"]] == ["FAILURE", "FAILURE"]
    found = asked(jupyter, "page", filters={"text": "apple", "status": "FAILURE"})["rows"]
    assert {row["tool"] for row in found} == {"total"}
    failure = asked(jupyter, "execution", log_id=found[0]["log_id"])
    assert failure["failure"]["lineno"] == 3
    assert failure["may_heal"] is False

    tools = {row["tool"]: row for row in asked(jupyter, "tools")["rows"]}
    assert (tools["mean"]["revision"], tools["mean"]["failures"]) == (2, 3)
    assert [row["tool"] for row in asked(jupyter, "tools", text="BASKET")["rows"]] == ["total"]
    history = asked(jupyter, "history", tool="mean")
    assert [one["number"] for one in history] == [1, 2]
    assert asked(jupyter, "code", tool="mean", persona="default", revision=1) == MEAN

    runs = asked(jupyter, "runs")
    assert [row["profile"] for row in runs["rows"]] == ["decide", "heal"]
    assert runs["rows"][1]["tools"] == ["mean"]
    story = asked(jupyter, "story", run_id=runs["rows"][1]["run_id"])
    assert (story["tool"], story["teach"]) == ("mean", False)
    assert asked(jupyter, "runs", text="no such run") == {"rows": [], "older": None}

    (decision,) = asked(jupyter, "decisions")["rows"]
    assert decision["question"].startswith("What do Apple and Facebook cost?")
    panes = asked(jupyter, "audit_open", execution_id=decision["execution_id"])
    assert (panes["total"], panes["data"]["shape"]) == (decision["steps"], "2 rows × 2 columns")
    assert (
        asked(jupyter, "audit_steps", execution_id=decision["execution_id"], after=5)["steps"][0]["seq"] == 6
    )

    requests = asked(jupyter, "requests")
    assert (requests["waiting"], requests["rows"][0]["state"]) == (1, "pending")
    request = asked(jupyter, "request", number=requests["rows"][0]["number"])
    assert request["code"] != asked(
        jupyter, "code", tool="total", persona="default", revision=request["parent"]
    )


def test_what_a_tool_wrote_is_text_and_secrets_stay_hidden(jupyter: Jupyter) -> None:
    answers = [
        asked(jupyter, op, **arguments)
        for op, arguments in (
            ("page", {"filters": {}}),
            ("tools", {}),
            ("decisions", {}),
            ("groups", {"filters": {}}),
        )
    ]
    rows = asked(jupyter, "page", filters={"tool": "total"})["rows"]
    answers += [asked(jupyter, "execution", log_id=row["log_id"]) for row in rows]
    answers += [asked(jupyter, "report", log_id=row["log_id"]) for row in rows]
    text = json.dumps(answers)
    assert SECRET not in text
    assert json.dumps(HOSTILE)[1:-1] in text  # as it was written: the page makes text of it, and no markup


def test_the_state_names_tier_counts_and_what_waits(jupyter: Jupyter) -> None:
    status = asked(jupyter, "status")
    assert status["isolation"] in {"namespaces", "landlock", "process", "none"}
    assert (status["waiting"], status["tools"], status["running"]) == (1, 4, 0)
    assert status["executions"] > status["failures"] > 0


def test_news_is_another_mark_once_something_changed(tmp_path: Path) -> None:
    server = Jupyter(tmp_path)
    try:
        before = asked(server, "news")
        assert asked(server, "news") == before
        with Healkit(
            tmp_path / "healkit.db"
        ) as kernels:  # another process in earnest, another connection here
            kernels.vault.add("total", PRICES)
            added = asked(server, "news")
            kernels.execute("total", arguments={"prices": {}})
            ran = asked(server, "news")
            kernels.requests.add("total", PRICES.replace("+", "-"))
            waits = asked(server, "news")
    finally:
        server.stop()

    def changed(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
        return {name for name in old["marks"] if old["marks"][name] != new["marks"][name]}

    assert changed(before, added) == {"tools"}
    assert changed(added, ran) >= {"failures", "executions", "tools"}
    assert changed(ran, waits) == {"requests"}
    assert (before["waiting"], waits["waiting"]) == (0, 1)


def test_a_question_that_is_none_is_refused_in_one_sentence(jupyter: Jupyter) -> None:
    for question in (None, [], {"op": 7}, {"op": "page", "args": []}, {}):
        assert refused(jupyter, question) == (400, "USAGE_INVALID")
    assert jupyter.client.post(PANELS, content=b"\xff{").status_code == 400
    assert jupyter.client.post(PANELS, content=b"[" * 100_001).status_code == 413
    assert jupyter.client.post(PANELS, content=b"[" * 90_000).status_code == 400
    for op in ("rerun", "accept", "try_code", "heal_start", "audit_export", "export", "__init__", "remember"):
        assert refused(jupyter, {"op": op, "args": {}}) == (400, "USAGE_INVALID"), op
    assert refused(jupyter, {"op": "execution", "args": {"log_id": 10**30}}) == (400, "USAGE_INVALID")
    assert refused(jupyter, {"op": "execution", "args": {"log_id": 999_999}}) == (400, "USAGE_INVALID")
    half = rb'{"op": "page", "args": {"filters": {"status": "\ud800"}}}'
    assert jupyter.client.post(PANELS, content=half).status_code == 400
    for run_id in ("../../etc", "/etc", "..", ".", ""):
        assert refused(jupyter, {"op": "story", "args": {"run_id": run_id}})[0] == 400, run_id
    assert refused(jupyter, {"op": "audit_open", "args": {"execution_id": "no"}}) == (400, "AUDIT_NOT_FOUND")
    assert jupyter.client.get(PANELS).status_code == 405


def test_many_questions_at_once_are_answered_or_refused(jupyter: Jupyter) -> None:
    def ask(_: int) -> int:
        return httpx.post(
            f"{jupyter.url}{PANELS}",
            json={"op": "groups", "args": {"filters": {}}},
            headers={"Authorization": f"token {jupyter.token}"},
            timeout=60,
        ).status_code

    with ThreadPoolExecutor(100) as crowd:
        answers = list(crowd.map(ask, range(200)))
    assert set(answers) <= {200, 503}
    assert answers.count(200) >= 64
    assert asked(jupyter, "news")["waiting"] == 1


def test_rows_of_a_large_view_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "healkit.db")
    monkeypatch.setattr("healkit.faces.pages.audit_reading._VIEW_MAX_BYTES", 100)
    with Healkit(tmp_path / "healkit.db") as hk:
        pages = SidePanelPages(hk)
        (decision,) = pages.answer("decisions", {})["value"]["rows"]
        panes = pages.answer("audit_open", {"execution_id": decision["execution_id"]})["value"]
    assert (panes["data"]["shape"], panes["data"]["rows"]) == ("2 rows × 2 columns", [])
    assert re.fullmatch(r"Rows are not shown, because the view's file has [\d,]+ bytes\.", panes["notes"][0])


def test_the_page_of_the_documentation_names_each_question(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "log_page.md").read_text()
    named = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", page, re.MULTILINE)))
    with Healkit(tmp_path / "healkit.db") as hk:
        assert sorted(named) == sorted(SidePanelPages(hk).operations)


def test_a_poll_makes_no_database_where_healkit_was_never_used(tmp_path: Path) -> None:
    server = Jupyter(tmp_path)
    try:
        assert asked(server, "waiting") is None
        assert not (tmp_path / "healkit.db").exists()
        asked(server, "news")  # the side panel was opened
        assert (tmp_path / "healkit.db").exists()
        assert asked(server, "waiting")["waiting"] == 0
    finally:
        server.stop()


def test_the_poll_tells_what_the_status_does(jupyter: Jupyter) -> None:
    status, told = asked(jupyter, "status"), asked(jupyter, "waiting")
    assert told == {name: status[name] for name in ("isolation", "waiting")}
    assert told["waiting"] > 0


@pytest.mark.requirement("TRUST-2")
def test_only_the_database_that_was_shown_is_trusted(tmp_path: Path) -> None:
    Healkit(tmp_path / "theirs.db").close()
    shutil.copy(tmp_path / "theirs.db", tmp_path / "healkit.db")
    server = Jupyter(tmp_path)
    try:
        shown = asked(server, "waiting")["untrusted"]
        assert shown["place"] == str(tmp_path / "healkit.db")
        wrong = [{**shown, "identity": "0" * 64}, {**shown, "place": str(tmp_path / "theirs.db")}, {}, [1]]
        assert [server.client.post(TRUST, json=one).status_code for one in wrong] == [400] * 4
        with httpx.Client(base_url=server.url) as stranger:
            assert stranger.post(TRUST, json=shown).status_code == 403
        assert "untrusted" in asked(server, "waiting")
        assert server.client.post(TRUST, json=shown).status_code == 200
        assert "untrusted" not in asked(server, "waiting")
    finally:
        server.stop()
