"""Failing cells, and a model that is asked for an edit."""

from __future__ import annotations

import builtins
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import pytest
from failing_cells import fix_of, ran
from model_server import SECRET_KEY, ModelServer, model_server, says
from panel_page import Page

from healkit import Healkit
from healkit.faces.defaults import default_healkit
from healkit.faces.notebook.widgets.cell_order import CellFix as CellFixPanel
from healkit.parts.heal.advisors.model import _without_values

PEOPLE = """
import pandas as pd
people = pd.DataFrame({"name": ["Zelda", "Xaver"], "salary": ["73,519", "O'88 231"], "joined": ["2019-07-23", "x"]})
grade = pd.Categorical(["Wunderkind", "Zwerg"])
notes = {"Zelda": "promoted"}
"""


PAID = "from fractions import Fraction\ndef paid(frame):\n    return [Fraction(text) for text in frame['salary']]"


MEANT = (
    "The thousands have commas.\n```python\ndef paid(frame):\n"
    "    return [Fraction(''.join(filter(str.isdigit, text))) for text in frame['salary']]\n"
    "(sum(paid(people)), grade, notes)\n```"
)


#: Words of the rows; `salary` and the other columns' names are none.
OF_ROWS = ("Zelda", "Xaver", "73,519", "73", "519", "88", "231", "2019", "Wunderkind", "Zwerg", "promoted")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def settings_of(server: ModelServer, **more: Any) -> dict[str, Any]:
    made = server.config("openai")
    return {
        name: getattr(made, name) for name in ("heal_model", "heal_model_url", "heal_model_provider")
    } | more


@pytest.mark.requirement("MEAN-8")
@pytest.mark.requirement("HEAL-5", "FACE-11")
def test_a_model_gets_a_cell_and_metadata_and_its_answer_is_run_like_any_other_edit(
    shell: Any, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALKIT_MODEL_KEY", SECRET_KEY)
    ran(shell, PEOPLE, PAID, "(sum(paid(people)), grade, notes)")
    config = dataclasses.replace(default_healkit().config, **settings_of(server))
    with Healkit(default_healkit().url, config=config) as healkit:
        assert healkit.heal_cell().fix is None  # no one named the model
        assert server.requests == []
        server.plan += [says("It is a lost case."), says(MEANT)]
        report = healkit.heal_cell(advisors=["model"])
    fix = fix_of(report)
    assert (fix.cell, fix.advisor, fix.ran, fix.verdict) == ("In [3]", "model", True, "unproven")
    assert fix.reason == "The model says: “The thousands have commas.”"
    assert fix.gave == "a tuple of 3 items"
    first, second = (request.text for request in server.requests)
    for told in (first, second):
        assert not [word for word in OF_ROWS if re.search(rf"\b{word}\b", told)], told
    for told in ("def paid(frame):", "'salary' (", "shape (2, 3)", "Invalid literal for Fraction: …"):
        assert told in first
    assert "contains no fenced block of code" in second


@pytest.mark.requirement("HEAL-5")
def test_with_values_shared_a_model_gets_the_message_and_the_first_rows(
    shell: Any, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALKIT_MODEL_KEY", SECRET_KEY)
    ran(shell, PEOPLE, PAID, "sum(paid(people))")
    shared = settings_of(server, heal_model_values=True)
    config = dataclasses.replace(default_healkit().config, **shared)
    with Healkit(default_healkit().url, config=config) as healkit:
        server.plan.append(says("```python\nraise SystemExit\n```"))
        report = healkit.heal_cell(advisors=["model"])
    assert report.outcome == "not_cured"
    assert "Xaver" in server.requests[0].text
    assert "the whole program: 'paid' is missing" in server.requests[1].text


@pytest.mark.requirement("MEAN-8")
@pytest.mark.requirement("HEAL-5", "FACE-10")
def test_a_card_without_a_fix_offers_the_model_only_where_one_is_set_up(
    shell: Any, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(shell, PEOPLE, PAID, "sum(paid(people))")
    page = Page(CellFixPanel("<div></div>", 4))
    assert page.ask("about")["model"] == ""
    assert page.ask("heal")["askable"] is True
    for name, value in settings_of(server).items():
        monkeypatch.setenv(f"HEALKIT_{name.upper()}", str(value))
    default_healkit().close()  # the next one reads the environment
    assert page.ask("about")["model"] == "teacher-1"
    server.plan.append(says(MEANT.replace("(sum(paid(people)), grade, notes)", "sum(paid(people))")))
    (fix,) = page.ask("heal", ask=True)["fixes"]
    assert fix["said"] == "Runs, and gives a Fraction."
    default_healkit().close()
    monkeypatch.delenv("HEALKIT_HEAL_MODEL")
    assert page.ask("about")["model"] == ""


#: Message → what of it may be told.
MESSAGES = (
    ("could not convert string to float: '$36'", "could not convert string to float: …"),
    ('Unable to parse string "O\'Brien" at position 3', "Unable to parse string …"),
    (
        "Unknown datetime string format, unable to parse: Zelda, at position 2",
        "Unknown datetime string format, unable to parse…",
    ),
    ("name 'totl' is not defined", "name 'totl' is not defined"),
    (
        "Length of values (3) does not match length of index (4)",
        "Length of values … does not match length of index …",
    ),
    (
        "unsupported operand type(s) for +: 'int' and 'str'",
        "unsupported operand type(s) for +: 'int' and 'str'",
    ),
    ("first line\nZelda", "first line"),
    ("['Zelda', 'Xaver'] not in index", "[…"),
)


def test_a_message_is_cut_where_it_may_quote_a_value() -> None:
    names = {"totl", "total", "int", "str", *dir(builtins)}
    assert [_without_values(message, names) for message, _ in MESSAGES] == [told for _, told in MESSAGES]
