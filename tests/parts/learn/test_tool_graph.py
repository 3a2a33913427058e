"""The graph of tools: its edges, questions and drawings."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from graph_samples import call, collect, stored, teach, trace

from healkit import Healkit
from healkit.core.contracts.execution import utc_now
from healkit.core.store.database import Database
from healkit.errors import UsageInvalid
from healkit.parts.learn.graph import stored_state
from healkit.parts.learn.tool_graph import ToolEdge, ToolGraph, wilson_least

LEARN_2 = pytest.mark.requirement("LEARN-2")

WEATHER = '''def weather(city: str):
    """Tell the temperature of a city."""
    found = mcp.host.find_station(city=city)
    return mcp.host.reading(station=found["station"])
'''
ORDER = '''def order(city: str):
    """Order an umbrella."""
    return mcp.vault.weather(city=city)
'''


def edges(database: Database) -> dict[tuple[str, str, str], int]:
    return {(one.source, one.target, one.kind): one.count for one in ToolGraph(database).edges()}


@LEARN_2
def test_executions_that_ran_become_a_graph(healkit: Healkit) -> None:
    healkit.provide(lambda city: {"station": f"station-{city}"}, "find_station")
    healkit.provide(lambda station: 20, "reading")
    healkit.vault.add("weather", WEATHER)
    healkit.vault.add("order", ORDER)
    for city in ("Lisbon", "Porto", "Faro"):
        assert healkit.execute("weather", arguments={"city": city}).ok
        assert healkit.execute("order", arguments={"city": city}).ok
    healkit.learning.catch_up()
    found = edges(healkit.database)
    assert found["weather", "host:find_station", "contains"] == 6
    assert found["host:find_station", "host:reading", "sequence"] == 6
    assert found["host:find_station", "host:reading", "provides"] == 6
    assert found["order", "weather", "contains"] == 3
    assert found["order", "weather", "dependency"] == 0, "M12: the code was read, and nothing counted"
    assert found["weather", "order", "sequence"] == 3
    assert found["order", "weather", "sequence"] == 2
    assert not [key for key in found if key[2] == "parallel"]
    assert [(e.source, e.target) for e in healkit.graph.path("order", "host:reading")] == [
        ("order", "weather"),
        ("weather", "host:reading"),
    ]
    incoming = healkit.graph.neighbours("weather", "contains", "in")
    assert [str(edge) for edge in incoming] == ["order → weather  contains, 3 seen"]


@LEARN_2
@pytest.mark.dialect
def test_calls_that_overlap_are_parallel_and_never_a_sequence(database: Database) -> None:
    collect(
        database,
        trace(
            "both", call("a:x", 0, 100), call("b:y", 50, 150), call("c:z", 160, 170), call("d:w", 100, 165)
        ),
    )
    teach(database)
    found = {key[:2]: key[2] for key in edges(database) if key[2] != "contains"}
    assert found == {
        ("a:x", "b:y"): "parallel",
        ("b:y", "d:w"): "parallel",
        ("c:z", "d:w"): "parallel",
        ("a:x", "d:w"): "sequence",
        ("b:y", "c:z"): "sequence",
    }


@LEARN_2
def test_overlapping_or_distant_executions_do_not_form_a_sequence(database: Database) -> None:
    collect(
        database,
        trace("first", at_s=0), trace("beside", at_s=0.2), trace("next", at_s=5), trace("later", at_s=4_000),
        trace("other", at_s=4_001, persona="ana"), trace("rerun", at_s=4_002, origin="rerun"),
    )  # fmt: skip
    teach(database)
    assert set(edges(database)) == {("beside", "first", "parallel"), ("beside", "next", "sequence")}


@LEARN_2
@pytest.mark.dialect
def test_a_value_that_flows_is_found_and_kept_nowhere(database: Database) -> None:
    secret, number = "order-4711-xyz", 8_812_345
    collect(
        database,
        trace(
            "sell",
            call("shop:find", 0, 10, result={"hits": [{"id": secret, "ok": True, "n": 3, "t": "ok"}], "at": number}),
            call("shop:pay", 20, 30, args={"order": secret, "n": 3, "ok": True, "t": "ok"}),
            call("shop:log", 40, 50, args={"n": 3, "ok": True, "t": "ok", "none": None, "empty": ""}),
            call("shop:stamp", 60, 70, args={"when": [number]}),
        ),
        trace("pick", at_s=10, result=json.dumps("parcel-99")), trace("send", at_s=12, arguments={"what": "parcel-99"}),
    )  # fmt: skip
    teach(database)
    found = {key[:2] for key in edges(database) if key[2] == "provides"}
    assert found == {("shop:find", "shop:pay"), ("shop:find", "shop:stamp"), ("pick", "send")}
    with database.read() as session:
        kept = json.dumps(stored(database), default=str) + json.dumps(stored_state(session))
    assert not [value for value in (secret, str(number), "parcel-99") if value in kept]


@LEARN_2
def test_what_is_learned_in_pieces_is_what_is_learned_at_once(database: Database) -> None:
    tools = ["find", "open", "read", "find", "close", "read", "open"]
    collect(
        database, *(trace(t, call("fs:stat", 0, 1), at_s=9 * n, intent=f"{t} a file") for n, t in enumerate(tools))
    )  # fmt: skip
    whole = teach(database)
    first = stored(database)
    assert all(first.values())
    pieces = teach(database, at_once=2)
    assert stored(database) == first
    assert pieces.ranker.weights == pytest.approx(whole.ranker.weights)


@LEARN_2
def test_confidence_and_weight_are_those_of_kind_and_count() -> None:
    now = utc_now()
    seen = [ToolEdge("a", "b", "contains", count, count, now, now) for count in (0, 2, 3)]
    assert [edge.confidence for edge in seen] == ["template", "inferred", "observed"]
    assert [edge.weight for edge in seen] == pytest.approx([0.4, 0.56, 0.8])
    assert [edge.cost for edge in seen] == pytest.approx([2.5, 1 / 0.56, 1.25])
    assert ToolEdge("a", "b", "parallel", 9).weight == 0
    assert wilson_least(9, 10) == pytest.approx(0.5958, abs=1e-4)
    assert (wilson_least(0, 0), wilson_least(0, 5)) == (0, 0)


@LEARN_2
def test_what_only_code_says_is_a_template(healkit: Healkit) -> None:
    healkit.vault.add("weather", WEATHER)
    healkit.vault.add("order", ORDER)
    (edge,) = healkit.graph.neighbours("order")
    assert (edge.target, edge.kind, edge.count, edge.confidence) == ("weather", "dependency", 0, "template")
    assert "-.->|dependency|" in healkit.graph.drawn().mermaid()


@LEARN_2
def test_a_path_takes_the_cheapest_edges(database: Database) -> None:
    collect(
        database,
        *(trace("a", call("b:b", 0, 1), call("c:c", 2, 3), at_s=n * 2_000) for n in range(3)),
        trace("a", call("c:c", 0, 1), call("d:d", 2, 3), at_s=9_000),
    )
    teach(database)
    graph = ToolGraph(database)
    way = graph.path("b:b", "d:d")
    assert [(edge.source, edge.target, edge.kind) for edge in way] == [
        ("b:b", "c:c", "sequence"),
        ("c:c", "d:d", "sequence"),
    ]
    assert way[0].cost < way[1].cost
    assert repr(graph.path("d:d", "a")) == "There is no path from d:d to a."
    assert repr(graph.path("a", "a")) == "It is the same tool."


@LEARN_2
def test_a_graph_goes_to_networkx_and_pandas(database: Database) -> None:
    collect(database, trace("a", call("b:b", 0, 1), call("c:c", 2, 3)))
    teach(database)
    graph = ToolGraph(database).to_networkx()
    assert sorted(graph.nodes) == ["a", "b:b", "c:c"]
    assert graph.edges["a", "b:b", "contains"]["count"] == 1
    frame = ToolGraph(database).to_pandas()
    assert list(frame["kind"]) == ["contains", "contains", "sequence"]
    assert frame["weight"].is_monotonic_decreasing


@LEARN_2
def test_without_networkx_an_error_says_what_to_install(
    healkit: Healkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(UsageInvalid) as raised:
        healkit.graph.to_networkx()
    assert "pip install 'healkit[learn]'" in raised.value.hint


@LEARN_2
def test_a_drawing_is_well_formed_whatever_tools_are_called(database: Database) -> None:
    odd = 'x:"]; <script>|a & b'
    collect(database, trace("end", call(odd, 0, 1), call("ü:ß", 2, 3)), trace("end", at_s=1))
    teach(database)
    drawn = ToolGraph(database).drawn()
    head, *lines = drawn.mermaid().splitlines()
    assert head == "flowchart LR"
    for line in lines:
        tool = line.removeprefix("  ").startswith("t") and "[" in line
        text = line[line.index('["') + 2 : line.rindex('"]')] if tool else line.split("|")[1]
        assert not set(text) & set('"<>[]|&'), line
    root = ET.fromstring(drawn.svg())
    assert odd in [element.text for element in root.iter() if element.tag.endswith("text")]
    shown: dict[str, Any] = drawn._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/vnd.mermaid", "image/svg+xml"}


@LEARN_2
def test_an_empty_graph_says_so(database: Database) -> None:
    graph = ToolGraph(database)
    assert repr(graph) == "No trace contains two tools yet."
    assert graph._repr_mimebundle_() == {"text/plain": repr(graph)}
    assert (graph.edges(), graph.tools(), len(graph.to_pandas())) == ([], [], 0)


@LEARN_2
def test_a_tool_that_is_not_known_is_an_error_with_near_names(database: Database) -> None:
    collect(database, trace("weather", call("host:station", 0, 1)))
    teach(database)
    graph = ToolGraph(database)
    with pytest.raises(UsageInvalid, match="Did you mean 'weather'"):
        graph.neighbours("wether")
    with pytest.raises(UsageInvalid, match="Did you mean 'host:station'"):
        graph.path("weather", "host:staton")
    with pytest.raises(UsageInvalid, match="Did you mean 'sequence'"):
        graph.neighbours("weather", "sequense")  # type: ignore[arg-type]  # what a user may type
