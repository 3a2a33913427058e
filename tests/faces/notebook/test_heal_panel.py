"""Heal panel's half in the kernel, with real healings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_server import SECRET_KEY, model_server, says
from notebook_samples import text_of
from waiting import wait_until

from healkit import Healkit
from healkit.errors import ToolNotFound, UsageInvalid
from healkit.faces.notebook.widgets.heal_panel import HealPanel

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
BROKEN = "def mean(values: list):\n    return sum(values) / len(value)\n"
EXAMPLES = [{"arguments": {"values": [2, 4, 6]}, "result": 4.0}]
STEP = "def step(items: int) -> int:\n    if items > 10:\n        return 20\n    return 0\n"
STEP_EXAMPLES = [
    {"arguments": {"items": 10}, "result": 20},
    {"arguments": {"items": 3}, "result": 0},
]
#: Nothing cures it, and there is much to try.
HOPELESS = (
    "def digest(text: str) -> str:\n    total = 7\n    for place, letter in enumerate(text):\n"
    "        total = (total * 31 + ord(letter) * place) % 1009\n    return str(total) + text[:2]\n"
)
HOPELESS_EXAMPLES = [{"arguments": {"text": "abc"}, "result": "what nobody can guess 4711"}]


class Asked:
    """Panel, asked as its page asks it."""

    def __init__(self, panel: HealPanel) -> None:
        self.panel = panel
        self.about = {"tool": panel.spec["tool"], "persona": panel.spec["persona"]}

    def ask(self, op: str, **more: Any) -> Any:
        return json.loads(json.dumps(self.panel.operations[op](**self.about, **more)))

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("heal_open")["state"]
        return found

    def start(self, *advisors: str, budget_s: float = 30.0) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("heal_start", advisors=list(advisors), budget_s=budget_s)
        return found

    def until(self, *phases: str, that: Callable[[dict[str, Any]], Any] = lambda _: True) -> dict[str, Any]:
        def come() -> dict[str, Any] | None:
            state = self.state()
            return state if state["phase"] in phases and that(state) else None

        found = wait_until(come)
        assert found is not None
        return found

    def past(self, question: dict[str, Any]) -> None:
        """Wait until that question is asked no longer."""
        self.until("working", "question", "consent", "done", that=lambda now: now["asked"] != question)


def broken_mean(healkit: Healkit) -> Asked:
    healkit.vault.add("mean", BROKEN, examples=EXAMPLES)
    healkit.execute("mean", arguments={"values": [1]})
    return Asked(healkit.heal_panel("mean"))


def broken_step(healkit: Healkit) -> Asked:
    healkit.vault.add("step", STEP, examples=STEP_EXAMPLES)
    return Asked(healkit.heal_panel("step"))


@pytest.mark.requirement("HEAL-4", "HEAL-8")
def test_consent_says_what_a_patch_reaches_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALKIT_MODEL_KEY", SECRET_KEY)
    code = BROKEN.replace("return", "len(values) == 777 and open('x')\n    return").replace(
        "(value)", "(values)"
    )
    with model_server() as server, Healkit(tmp_path / "healkit.db", config=server.config()) as healkit:
        server.plan.append(says(f"A name is misspelt.\n\n```python\n{code}```\n"))
        asked = broken_mean(healkit)
        asked.start("model")
        consent = asked.until("consent")["asked"]
        assert consent["means"].startswith("! Reaches further than the code it replaces: uses open\n")
        assert consent["reason"] == "The model says: “A name is misspelt.”"
        asked.ask("heal_decide", number=consent["number"], decision="later")
        report = asked.until("done")["report"]
        assert report["attempts"][0]["diff"].startswith(
            "! Reaches further than the code it replaces: uses open\n"
        )
        assert healkit.vault.get("mean").code == BROKEN


@pytest.mark.requirement("HEAL-1", "HEAL-3", "HEAL-4")
def test_a_patch_is_shown_kept_with_consent_and_taken_back(healkit: Healkit) -> None:
    asked = broken_mean(healkit)
    opened = asked.ask("heal_open")
    assert (opened["label"], opened["failure"]) == ("mean v1", "NameError: name 'value' is not defined")
    assert [one["name"] for one in opened["advisors"]][:5] == ["memory", "peers", "rules", "search", "model"]
    assert opened["state"]["phase"] == "idle"
    asked.start("rules")
    consent = asked.until("consent")["asked"]
    assert healkit.vault.get("mean").revision == 1
    assert (consent["words"], consent["held"]) == ("fixed, no regressions", "2 of 2 checks passed")
    assert "Verified against these examples only." in consent["means"]
    assert consent["code"] == BROKEN.replace("len(value)", "len(values)")
    asked.ask("heal_decide", number=consent["number"], decision="keep")
    report = asked.until("done")["report"]
    assert (report["outcome"], report["tone"]) == ("kept", "good")
    assert report["title"] == "mean v2 is active: fixed, no regressions"
    assert "+    return sum(values) / len(values)" in report["attempts"][0]["diff"]
    assert healkit.execute_tool("mean", arguments={"values": [2, 4]}) == 3.0
    story = asked.ask("heal_story")
    assert story["run_id"] == report["run_id"]
    assert "patch accepted" in story["steps"][-1]["title"]
    assert asked.ask("heal_undo") == "mean v3"
    assert healkit.vault.get("mean").code == BROKEN
    assert asked.state()["undone"] == "mean v3"
    assert asked.panel.static_card().text.endswith("Undone: mean v3 is active, with the previous code.")
    with pytest.raises(UsageInvalid, match="no patch of this healing"):
        asked.ask("heal_undo")


@pytest.mark.slow
def test_what_is_typed_is_a_value_or_an_exception_and_not_the_number_of_a_choice(healkit: Healkit) -> None:
    asked = broken_step(healkit)
    asked.start("search", budget_s=60.0)
    question = asked.until("question")["asked"]
    for answer, said in (
        ({"choice": 9}, "no choice 9"), ({"said": "  "}, "Nothing was typed"), ({"number": 7, "said": "1"}, "no longer open"),
    ):  # fmt: skip
        with pytest.raises(UsageInvalid, match=said):
            asked.ask("heal_answer", **{"number": question["number"], **answer})
    assert asked.state()["phase"] == "question"
    asked.ask("heal_answer", number=question["number"], said="1")
    asked.past(question)
    told = [f"{question['call']} is 1"]
    if (state := asked.state())["phase"] == "question":
        question = state["asked"]
        asked.ask("heal_answer", number=question["number"], said="raises ValueError")
        asked.past(question)
        told.append(f"{question['call']} is raises ValueError")
    asked.ask("heal_stop")
    facts = asked.until("done")["report"]["facts"]
    assert [value for name, value in facts if name == "asked"][: len(told)] == told


@pytest.mark.slow
@pytest.mark.requirement("HEAL-4")
def test_what_is_left_open_when_it_is_stopped_is_not_answered_and_waits(healkit: Healkit) -> None:
    asked = broken_step(healkit)
    asked.start("search", budget_s=60.0)
    asked.until("question")
    asked.ask("heal_stop")
    report = asked.until("done")["report"]
    assert report["outcome"] == "stopped"
    assert "not known" in dict(report["facts"])["asked"]
    assert healkit.requests.pending() == []
    mean = broken_mean(healkit)
    mean.start("rules")
    consent = mean.until("consent")["asked"]
    mean.panel.close()
    (request,) = healkit.requests.pending()
    assert (request.code, request.verdict) == (consent["code"], "cured")
    assert healkit.vault.get("mean").revision == 1


@pytest.mark.slow
@pytest.mark.requirement("HEAL-4")
@pytest.mark.parametrize(("decision", "outcome"), [("decline", "declined"), ("later", "pending")])
def test_a_patch_can_be_declined_or_left_for_later(healkit: Healkit, decision: str, outcome: str) -> None:
    asked = broken_mean(healkit)
    asked.start("rules")
    consent = asked.until("consent")["asked"]
    with pytest.raises(UsageInvalid, match="'perhaps' is not one of keep, decline, later"):
        asked.ask("heal_decide", number=consent["number"], decision="perhaps")
    asked.ask("heal_decide", number=consent["number"], decision=decision)
    report = asked.until("done")["report"]
    assert report["outcome"] == outcome
    assert [request.id for request in healkit.requests.pending()] == (
        [report["request_id"]] if outcome == "pending" else []
    )
    with pytest.raises(UsageInvalid, match="no longer asked"):
        asked.ask("heal_decide", number=consent["number"], decision="keep")
    assert healkit.vault.get("mean").revision == 1
    if outcome == "pending":
        assert asked.ask("heal_settle", decision="keep") == "Request 1 was accepted: v2 is active."
        assert healkit.vault.get("mean").code == consent["code"]
    with pytest.raises(UsageInvalid, match="no patch of this healing that waits"):
        asked.ask("heal_settle", decision="decline")


@pytest.mark.slow
@pytest.mark.requirement("HEAL-1")
def test_stop_ends_a_search_with_what_was_found_and_a_second_start_begins_no_second_one(
    healkit: Healkit,
) -> None:
    healkit.vault.add("digest", HOPELESS, examples=HOPELESS_EXAMPLES)
    first, second = Asked(healkit.heal_panel("digest")), Asked(healkit.heal_panel("digest"))
    first.start("search", budget_s=300.0)
    first.until("working", that=lambda now: now["tried"] > 100)
    for other in (first, second):  # whichever panel it is
        assert other.start("rules")["phase"] == "working"
    assert len(list(healkit.runs_dir.glob("2*"))) == 1
    state = second.state()
    assert (state["advisor"], state["budget_s"]) == ("search", 300.0)
    assert "Asking search." in state["sentences"]
    second.panel.close()  # the other one still shows it
    assert first.state()["phase"] == "working"
    first.ask("heal_stop")
    report = first.until("done")["report"]
    assert report["outcome"] == "stopped"
    assert first.start("rules")["phase"] == "working"
    assert first.until("done")["report"]["outcome"] == "not_cured"


@pytest.mark.slow
def test_what_cannot_be_healed_says_why_with_its_code_and_the_next_step(healkit: Healkit) -> None:
    healkit.vault.add("fine", "def fine(n: int):\n    return n")
    asked = Asked(healkit.heal_panel("fine", advisors=["ruls"]))
    assert asked.ask("heal_open")["advisors"][0] == {"name": "ruls", "chosen": True, "why_not": ""}
    asked.start("ruls")
    problem = asked.until("failed")["problem"]
    assert (problem["code"], "Did you mean 'rules'" in problem["message"]) == ("CONFIG_INVALID", True)
    asked.start("rules")
    problem = asked.until("failed", that=lambda now: now["problem"]["code"] == "HEAL_ERROR")["problem"]
    assert "There is no failure of fine v1 on record" in problem["message"]
    assert problem["hint"]
    assert "could not be healed: There is no failure of fine v1 on record" in asked.panel.static_card().text
    with pytest.raises(UsageInvalid, match="No advisor is chosen"):
        asked.start()
    for budget_s in (0, None, "soon"):
        with pytest.raises(UsageInvalid, match="number of seconds"):
            asked.start("rules", budget_s=budget_s)
    with pytest.raises(ToolNotFound):
        healkit.heal_panel("nothing")


@pytest.mark.slow
def test_what_comes_from_a_tool_is_sanitised_and_escaped(healkit: Healkit) -> None:
    code = f"def greet(name: str):\n    raise ValueError('<img src=x onerror=steal()> {SECRET}')\n"
    healkit.vault.add(
        "greet", code, examples=[{"arguments": {"name": f"<b>{SECRET}"}, "result": f"<i>{SECRET}"}]
    )
    healkit.execute("greet", arguments={"name": "<b>"})
    asked = Asked(healkit.heal_panel("greet"))
    told: list[str] = []
    asked.panel._session.join(lambda: told.append(json.dumps(asked.panel._session.state())))
    asked.start("rules", "search", budget_s=5.0)
    while (state := asked.until("consent", "question", "done"))["phase"] != "done":
        assert SECRET not in json.dumps({**state, "asked": {**state["asked"], "base": "", "code": ""}})
        asked.ask("heal_stop")
        asked.until("done")
    assert SECRET not in json.dumps(asked.state())
    card = asked.panel.static_card()
    assert SECRET not in card.html + card.text
    assert "<img" not in card.html
    assert SECRET not in asked.ask("heal_open")["failure"]
    assert told


@pytest.mark.slow
@pytest.mark.requirement("FACE-2", "FACE-4")
def test_the_magic_opens_the_panel_and_a_notebook_that_is_run_keeps_the_card(
    run: Any, healkit: Healkit
) -> None:
    healkit.vault.add("mean", BROKEN, examples=EXAMPLES)
    healkit.vault.add("average", BROKEN.replace("mean", "average"), examples=EXAMPLES)
    healkit.execute("mean", arguments={"values": [1]})
    heal = """
import threading, time
panel = hk.heal_panel("average")
panel.show()
about = {"tool": "average", "persona": "default"}
panel.operations["heal_start"](**about, advisors=["rules"], budget_s=30)
until = time.monotonic() + 60
while panel._session.phase != "consent" and time.monotonic() < until: time.sleep(0.05)
panel.operations["heal_decide"](**about, number=1, decision="keep")
while "healkit-heal" in [one.name for one in threading.enumerate()]: time.sleep(0.05)  # its last act is the card
"""
    magics = ("%heal --panel --with rules,person --budget 9", "%heal mean --panel --auto")
    book = run("%load_ext healkit", *magics, "from healkit import Healkit\nhk = Healkit()", heal)
    card, view = book.cells[1].outputs
    assert card.data["text/plain"].startswith("Healing of mean v1. The report stands here once there is one.")
    assert "button" not in card.data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in view.data
    assert "--auto cannot be combined with --panel." in text_of(book.cells[2])
    report, _ = book.cells[4].outputs
    assert "average v2 is active: fixed, no regressions" in report.data["text/plain"]
    assert "<ins" in report.data["text/html"]
    assert "stands here" not in report.data["text/html"]
