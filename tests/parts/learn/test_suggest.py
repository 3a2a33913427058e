"""Suggestions, on each face."""

from __future__ import annotations

import json
import math

import pytest
from cli_samples import call as cli
from graph_samples import call, collect, trace

from healkit import Healkit
from healkit.errors import UsageInvalid
from healkit.parts.learn.ranking import START, Ranker, stems_of

LEARN_3 = pytest.mark.requirement("LEARN-3")

TOOLS = {
    "refund": "Pay the price of an order back to a customer.",
    "track": "Tell where a parcel is now.",
    "invoice": "Write an invoice as PDF.",
}


def add_tools(healkit: Healkit) -> None:
    for name, about in TOOLS.items():
        healkit.vault.add(name, f'def {name}(order: str):\n    """{about}"""\n    return order\n')


@LEARN_3
def test_with_nothing_at_all_there_is_a_sentence(healkit: Healkit) -> None:
    assert list(healkit.suggest()) == []
    assert repr(healkit.suggest("a refund")).startswith("There is nothing to suggest")


@LEARN_3
def test_without_traces_the_description_decides(healkit: Healkit) -> None:
    add_tools(healkit)
    best, *others = healkit.suggest("where are my parcels?")
    assert best.tool == "track"
    assert best.why == "Its description fits 'parcel'."
    assert {one.why for one in others} == {"It is in the vault, but was not called yet."}
    assert len(healkit.suggest("parcels", k=1)) == 1


@LEARN_3
def test_what_usually_comes_next_is_suggested_first(healkit: Healkit) -> None:
    add_tools(healkit)
    steps = ["track", "refund", "invoice"] * 3
    collect(healkit.database, *(trace(tool, at_s=5 * n) for n, tool in enumerate(steps)))
    assert healkit.suggest(after=["track"])[0].tool == "refund"
    best = healkit.suggest(after=["track", "refund"])[0]
    assert best.tool == "invoice"
    assert best.why == "It came after track and refund in 3 of 3 cases; 3 of its 3 calls succeeded."
    assert healkit.suggest(after="invoice")[0].tool == "track"
    assert sum(one.share for one in healkit.suggest()) == pytest.approx(1)


@LEARN_3
def test_a_persona_is_suggested_what_it_does_itself(healkit: Healkit) -> None:
    add_tools(healkit)
    habits = {"ana": ["track", "refund"], "ben": ["track", "invoice"]}
    steps = [(tool, persona) for _ in range(4) for persona, tools in habits.items() for tool in tools]
    collect(
        healkit.database,
        *(trace(tool, at_s=9 * n, persona=persona) for n, (tool, persona) in enumerate(steps)),
    )
    best = healkit.suggest(after="track", persona="ana")[0]
    assert best.tool == "refund"
    assert best.why == "It came after track for this persona in 4 of 4 cases; 4 of its 4 calls succeeded."
    assert healkit.suggest(after="track", persona="ben")[0].tool == "invoice"
    with Healkit(healkit.database.url) as again:  # as it was stored
        assert again.suggest(after="track", persona="ana")[0].tool == "refund"
    shares = {one.tool: one.share for one in healkit.suggest(after="track", persona="default")}
    assert shares["refund"] == pytest.approx(shares["invoice"], rel=0.2)


@LEARN_3
def test_an_intent_is_learned_from_what_was_run_for_it(healkit: Healkit) -> None:
    add_tools(healkit)
    asked = "my money, I want it"
    assert "money" not in healkit.suggest(asked)[0].why
    execution = healkit.execute("refund", arguments={"order": "4711"})
    found = healkit.traces.get(execution.trace_id)
    assert found.metadata["intent"] == asked
    assert (
        "intent"
        not in healkit.traces.get(healkit.execute("track", arguments={"order": "1"}).trace_id).metadata
    )
    healkit.suggest("where is my parcel?")
    healkit.execute("track", arguments={"order": "4711"})
    best = healkit.suggest("money")[0]
    assert (best.tool, best.why) == (
        "refund", "It was used once for an intent with 'money'; 1 of its 1 calls succeeded.",
    )  # fmt: skip


@LEARN_3
def test_an_intent_is_cleaned_like_every_text_of_a_trace(healkit: Healkit) -> None:
    add_tools(healkit)
    healkit.suggest("refund, my password is hunter2-9f8e7d6c")
    execution = healkit.execute("refund", arguments={"order": "4711"})
    assert "hunter2-9f8e7d6c" not in json.dumps(healkit.traces.get(execution.trace_id).metadata)


@LEARN_3
def test_a_tool_that_mostly_fails_says_so(healkit: Healkit) -> None:
    add_tools(healkit)
    collect(healkit.database, *(trace("refund", at_s=9 * n, success=n == 0) for n in range(9)))
    (refund,) = [one for one in healkit.suggest("refund") if one.tool == "refund"]
    assert refund.why.endswith("; but 8 of its 9 calls failed.")


@LEARN_3
def test_only_tools_that_can_be_run_are_suggested(healkit: Healkit) -> None:
    add_tools(healkit)
    healkit.vault.add("ana_only", "def ana_only(x):\n    return x\n", persona="ana")
    collect(healkit.database, trace("track", call("mail:send", 0, 1)))
    assert "mail:send" in {one.tool for one in healkit.suggest()}
    assert {one.tool for one in healkit.suggest(persona="default")} == set(TOOLS)
    assert {one.tool for one in healkit.suggest(persona="ana")} == {*TOOLS, "ana_only"}
    healkit.vault.remove("track")
    healkit.vault.rename("refund", "pay_back")
    assert {one.tool for one in healkit.suggest(persona="default")} == {"pay_back", "invoice"}


@LEARN_3
def test_wrong_questions_are_errors_that_help(healkit: Healkit) -> None:
    add_tools(healkit)
    with pytest.raises(UsageInvalid, match="Did you mean 'track'"):
        healkit.suggest(after=["trak"])
    with pytest.raises(UsageInvalid, match="k must be from 1"):
        healkit.suggest(k=0)


@LEARN_3
def test_kneser_ney_gives_probabilities_and_counts_contexts() -> None:
    ranker = Ranker()
    for before, last, tool, times in (
        ("", "", "a", 5), ("", "a", "b", 3), ("a", "b", "a", 2), ("a", "b", "c", 1), ("b", "a", "b", 2), ("x", "a", "b", 1),
    ):  # fmt: skip
        ranker.count((before, last), tool, times)
    one, two = (ranker.signals(("a", "b"))[:, at] for at in (0, 1))
    assert sum(map(math.exp, one)) == pytest.approx(1)
    assert sum(map(math.exp, two)) == pytest.approx(1)
    # c follows b in one of three cases: 0.25 / 3, and its part of the discounts, by the contexts that it was seen in.
    ways = {"a": 2.5, "b": 1.5, "c": 1.5}  # contexts, and a half
    expected = (1 - 0.75) / 3 + 0.75 * 2 / 3 * ways["c"] / sum(ways.values())
    assert math.exp(one[ranker.tools.index("c")]) == pytest.approx(expected)


@LEARN_3
def test_each_call_is_predicted_before_it_is_learned() -> None:
    ranker = Ranker()
    ranker.describe({f"t{n}": f"t{n} does thing {'abcdefgh'[n] * 3}" for n in range(8)})
    before = ranker.weights.copy()
    for _ in range(30):
        for n in range(8):
            ranker.learn(START, f"t{n}", [f"{'abcdefgh'[n] * 3}"])
    assert ranker.learned == 240
    assert (ranker.weights[1] != before[1]).any()
    assert (ranker.weights[0] == before[0]).all()  # no call was without an intent
    assert ranker.tools[ranker.scores(START, ["ccc"]).argmax()] == "t2"


def test_words_are_split_and_cut_to_their_stems() -> None:
    assert stems_of("get_openOrders of the classes, 3 PARCELS tracking") == [
        "open", "order", "class", "parcel", "track",
    ]  # fmt: skip


@LEARN_3
def test_the_command_line_shows_graph_and_suggestions(healkit: Healkit) -> None:
    add_tools(healkit)
    collect(healkit.database, trace("track", call("mail:send", 0, 1)))
    db = ("--db", healkit.database.url)
    assert "track → mail:send  contains, 1 seen" in cli("graph", *db).stdout
    (edge,) = json.loads(cli("graph", "track", "--json", *db).stdout)
    assert (edge["source"], edge["target"], edge["confidence"]) == ("track", "mail:send", "inferred")
    assert cli("suggest", "where is my parcel", *db).stdout.startswith("track")
    rows = json.loads(cli("suggest", "--after", "track", "--limit", "2", "--json", *db).stdout)
    assert [set(row) for row in rows] == [{"tool", "share", "why"}] * 2
