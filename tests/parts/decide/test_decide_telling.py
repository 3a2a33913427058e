"""Telling of counts, names and values, by who chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from decide_samples import Scripted, end, look, op

from healkit import Healkit
from healkit.core.contracts.execution import Grants
from healkit.errors import UsageInvalid, ViewNotFound
from healkit.parts.decide import told
from healkit.parts.decide.choosers import Plan
from healkit.parts.decide.decision import Decision
from healkit.parts.decide.records import Candidate, FoundEntities
from healkit.parts.decide.telling import rounded

pytestmark = pytest.mark.requirement("DECIDE-1")

STAFF = pd.DataFrame(
    {
        "patient": [
            "Smith",
            "Jones",
            "Weiss",
            "Smith",
            "Ng",
            "Brown",
            "Diaz",
            "Okoye",
            "Kim",
            "Rossi",
            "Ito",
            "Sato",
        ],
        "region": ["North", "South"] * 6,
        "salary": [87_213, 51_234, 99_999, 3, *range(40_000, 47_000, 1_000), None],
    }
)
LETTER = "Ann Lee met Bob Ray in Basel on 5 March 2024. Ann Lee paid $5 for 3 maps. See https://example.com/maps for more."


@pytest.fixture
def hk(deciding: Healkit) -> Healkit:
    return deciding


def decided(hk: Healkit, *choices: Any, data: Any = None, plan: bool = False, **more: Any) -> Decision:
    chooser = Plan(choices) if plan else Scripted(*choices)
    return hk.decide("Who?", {"staff": STAFF} if data is None else data, chooser=chooser, **more)


def test_counts_are_rounded_to_one_digit_and_small_ones_to_ten() -> None:
    counts = (0, 1, 9, 10, 14, 15, 94, 95, 949, 87_213, 2_500_000)
    assert [rounded(count) for count in counts] == [0, 10, 10, 10, 10, 20, 90, 100, 900, 90_000, 3_000_000]


def test_a_plan_gets_exact_counts_and_a_stranger_rounded_ones(hk: Healkit) -> None:
    steps = [op("filter_rows", "few", data="staff", column="salary", operator=">", value=44_500), end("few")]
    for_plan = decided(hk, *steps, plan=True).sent[-1]
    for_stranger = decided(hk, *steps).sent[-1]
    given, few = for_stranger.views
    assert (given, for_plan.views[0]) == (for_plan.views[0], given)
    assert (given.row_count, for_plan.views[1].row_count, few.row_count, few.rounded) == (12, 5, 10, True)
    assert {(column.nulls, column.distinct) for column in few.columns} == {(0, 10)}
    assert (for_plan.steps[0].row_count, for_stranger.steps[0].row_count) == (5, 10)


def test_a_stranger_gets_no_sql_unless_it_is_named_and_then_no_counts_of_columns(hk: Healkit) -> None:
    offered = [tool.name for tool in decided(hk, end("staff")).sent[0].tools]
    assert "view_sql" not in offered
    assert "view_sql" in [tool.name for tool in decided(hk, end("staff"), plan=True).sent[0].tools]
    most = "SELECT 1 AS one FROM range((SELECT max(salary)::BIGINT FROM staff))"
    spelled = "SELECT CASE WHEN i < (SELECT ascii(min(patient)) FROM staff) THEN NULL ELSE 1 END AS c FROM range(300) t(i)"
    turn = decided(
        hk,
        op("view_sql", "most", query=most, staff="staff"),
        op("view_sql", "spelled", query=spelled, staff="staff"),
        op("drop_duplicates", "again", data="spelled"),
        end("staff"),
        tools=["view_sql", "drop_duplicates"],
    ).sent[-1]
    assert [view.row_count for view in turn.views[1:]] == [100_000, 300, 10]
    assert {column.nulls for view in turn.views[1:] for column in view.columns} == {None}
    assert {column.distinct for view in turn.views[1:] for column in view.columns} == {None}
    assert ("99999" in told(turn), "66" in told(turn).replace("0.66", "")) == (False, False)


def test_a_column_is_shared_as_the_callers_own_and_not_by_its_name(hk: Healkit) -> None:
    renamed = op("select_columns", "renamed", data="staff", columns=["patient"], rename={"patient": "region"})
    query = op("view_sql", "queried", query="SELECT patient AS region FROM staff", staff="staff")
    sums = {"sum": {"column": "salary", "function": "sum"}}
    grouped = op("group_rows", "grouped", data="staff", by=["region"], aggregates=sums)
    tools = ["select_columns", "view_sql", "group_rows"]
    decision = decided(hk, renamed, query, grouped, end("staff"), tools=tools, share=["region"])
    assert decision.ok, decision
    values = {
        view.name: [column.values for column in view.columns if column.name == "region"]
        for view in decision.sent[-1].views
    }
    both = ["North", "South"]
    assert values == {"staff": [both], "renamed": [None], "queried": [None], "grouped": [both]}
    assert "Smith" not in told(decision.sent[-1])


def test_a_shared_column_may_be_named_with_its_data(hk: Healkit) -> None:
    data = {"one": STAFF, "two": STAFF.assign(region="West")}
    views = decided(hk, end("one"), data=data, share=["two.region"]).sent[0].views
    assert [[column.values for column in view.columns if column.values] for view in views] == [[], [["West"]]]
    with pytest.raises(UsageInvalid):
        decided(hk, end("one"), data=data, share=["two.none"])


ROWS = STAFF.head(4).assign(listed=[["Alpha"], ["Beta"], None, None])
NAMES_MADE_OF_CELLS: dict[str, dict[str, pd.DataFrame]] = {
    "a crosstab": {"wide": pd.crosstab(ROWS["region"], ROWS["patient"]).reset_index()},
    "a pivot": {"wide": ROWS.pivot_table(index="region", columns="patient", values="salary").reset_index()},
    "a pivot without a name": {
        "wide": ROWS.pivot_table(index="region", columns="patient", values="salary")
        .rename_axis(columns=None)
        .reset_index()
    },
    "an unstacked frame without a name": {
        "wide": ROWS.groupby(["region", "patient"])["salary"]
        .sum()
        .unstack()
        .rename_axis(columns=None)
        .reset_index()
    },
    "a transposed frame without a name": {
        "wide": ROWS.groupby("patient")[["salary"]].sum().T.rename_axis(columns=None).reset_index()
    },
    "dummies": {"wide": pd.get_dummies(ROWS[["patient"]])},
    "dummies without a prefix": {"wide": pd.get_dummies(ROWS["patient"])},
    "a transposed frame": {"wide": ROWS.groupby("patient")[["salary"]].sum().T},
    "a transposed frame of labels": {
        "wide": pd.DataFrame({"salary": [1, 2]}, index=["Smith", "Jones"]).T.convert_dtypes()
    },
    "a cell in capitals": {"rows": ROWS, "wide": pd.DataFrame({"SMITH": [1], "JoNeS": [2]})},
    "a cell in a list": {"rows": ROWS, "wide": pd.DataFrame({"Alpha": [1], "BETA": [2]})},
    "a label of a row": {
        "rows": ROWS.set_index("patient"),
        "wide": pd.DataFrame({"Smith": [1], "Weiß": [2]}),
        "more": pd.DataFrame({"w": [1]}, index=pd.Index(["Weiß"], name="x")),
    },
}


def test_names_of_columns_made_of_cells_are_numbered(hk: Healkit) -> None:
    for name, data in NAMES_MADE_OF_CELLS.items():
        wide = {view.name: view for view in decided(hk, end("wide"), data=data).sent[0].views}["wide"]
        plain = {column.name for column in wide.columns if not column.numbered}
        assert plain <= {"region", "salary", "index"}, name
        assert wide.columns_numbered >= 2, name


def test_the_chooser_gets_ordinary_names(hk: Healkit) -> None:
    frame = pd.DataFrame(
        {"first name": ["Ann", "Bo"], "is_active": [True, True], "is_new": [True, False], "count": [0, 1]},
        index=pd.Index([3, 4], name="id"),
    )
    (view,) = decided(hk, end("staff"), data={"staff": frame}).sent[0].views
    assert [column.name for column in view.columns] == ["first name", "is_active", "is_new", "count"]
    sorted_by_chance = pd.DataFrame(
        {"id": [1, 2], "amount": [1.5, 2.5], "price": [3.0, 1.0], "note": ["a", "b"]}
    )
    (view,) = decided(hk, end("staff"), data={"staff": sorted_by_chance}).sent[0].views
    assert [column.name for column in view.columns] == ["id", "amount", "price", "note"]


def test_a_guessed_name_is_not_told_of_a_pivot_and_an_invented_one_is(hk: Healkit) -> None:
    pivot = "import pandas as pd\n\n\ndef own(df: pd.DataFrame, names: list):\n"
    hk.vault.add(
        "own",
        f"{pivot}    return df.pivot_table(index='region', columns='patient', values='salary').reset_index()\n",
    )
    guesses = ["Smith", "smith", "Nobody"]
    tools = ["own", "pivot_rows", "select_columns"]
    decision = decided(
        hk,
        op("own", "a", df="staff", names=guesses),
        op("pivot_rows", "b", data="staff", rows=["region"], columns="patient", values="salary"),
        op("select_columns", "c", data="staff", columns=["region"], rename={"region": "Smith"}),
        end("staff"),
        plan=True,
        tools=tools,
    )
    _, own, built_in, renamed = decision.sent[-1].views
    assert [column.name for column in own.columns if not column.numbered] == ["region"]
    assert [column.name for column in built_in.columns if not column.numbered] == ["region"]
    assert [column.name for column in renamed.columns] == ["Smith"]


def test_a_name_that_is_there_and_not_told_is_missing_for_a_stranger(hk: Healkit) -> None:
    wide = NAMES_MADE_OF_CELLS["a crosstab"]["wide"]
    step = {
        **op("drop_duplicates", "same", data="wide"),
        "intended": {"columns": ["Smith", "Nobody", "wide#2"]},
    }
    for_stranger, for_plan = (
        decided(hk, step, end("wide"), data={"wide": wide}, plan=plan).sent[-1].steps[0]
        for plan in (False, True)
    )
    assert for_stranger.differs is not None
    assert for_stranger.differs.columns_missing == ["Smith", "Nobody", "wide#2"]
    assert for_plan.differs is not None
    assert for_plan.differs.columns_missing == ["Nobody"]


@pytest.mark.requirement("DECIDE-4")
def test_the_next_step_can_use_the_name_of_a_resolved_entity(hk: Healkit) -> None:
    decision = decided(
        hk,
        look("resolve_entity", data="staff", column="patient", entity="SMITH"),
        look("resolve_entity", data="staff", column="patient", entity="Jones"),
        look("resolve_entity", data="staff", column="patient", entity="Globex"),
        {
            **op("filter_rows", "chosen", data="staff", column="patient", operator="==", value="value#1.1"),
            "intended": {"entities": {"patient": ["value#1.1"]}},
        },
        end("chosen"),
    )
    assert decision.ok, decision
    smith, jones, globex, chosen = decision.sent[-1].steps
    assert smith.found == FoundEntities(1, 1, [], [Candidate("value#1.1", "normalised")])
    assert jones.found == FoundEntities(1, 1, [], [Candidate("Jones", "same")])
    assert globex.found == FoundEntities(1, 0, ["Globex"])
    assert chosen.found == FoundEntities(1, 1)
    assert hk.views.load(str(decision.raw_data_view_name))["salary"].tolist() == [87_213, 3]
    assert "Smith" not in told(decision.sent[-1])


@pytest.mark.requirement("DECIDE-4")
def test_a_step_says_which_of_the_names_that_the_chooser_asked_for_are_missing(hk: Healkit) -> None:
    lookup = "import pandas as pd\n\n\ndef lookup(df: pd.DataFrame, names: list):\n"
    hk.vault.add("lookup", f"{lookup}    return sorted({{*df['patient']}} & {{*names, 'Ito'}})\n")
    asked = ["Smith", "Jones", "Weiss", "Ng", "FB"]
    decision = decided(hk, look("lookup", df="staff", names=asked), end("staff"), tools=["lookup"])
    found = decision.sent[-1].steps[0].found
    assert found == FoundEntities(5, 4, ["FB"], [Candidate("value#1.1")])
    (entry,) = [entry for entry in decision.audit_log if entry.choice_type == "gather_info"]
    assert entry.metadata.actual_state == {"entities": {"requested": 5, "found": 4, "missing": ["FB"]}}
    assert "Ito" not in told(decision.sent[-1])


@pytest.mark.slow
def test_a_stranger_that_asks_for_many_names_is_not_told_which_are_there(hk: Healkit) -> None:
    many = [*STAFF["patient"].unique(), *(f"guess {number}" for number in range(20))]
    step = look("filter_rows", data="staff", column="patient", operator="in", value=many)
    (taken,) = decided(hk, step, end("staff")).sent[-1].steps
    assert taken.found == FoundEntities(len(many), 10)
    few = [
        look("filter_rows", data="staff", column="patient", operator="in", value=many[at : at + 15])
        for at in range(9)
    ]
    steps = decided(hk, *few, end("staff")).sent[-1].steps
    assert [step.found is not None and bool(step.found.missing) for step in steps] == [True] * 6 + [False] * 3


EFFECTS = {
    "declared": ("def {0}(n: int = 1):\n    return n\n", {"side_effects": True}, "has side effects"),
    "a host function": ("def {0}(n: int = 1):\n    return mcp.host.send(n)\n", {}, "calls mcp.host.send"),
    "a server": ("def {0}(n: int = 1):\n    return mcp.mail.send(n)\n", {}, "calls mcp.mail.send"),
    "a name made by code": ("def {0}(n: int = 1):\n    return getattr(mcp, 'ho' + 'st')(n)\n", {}, "calls out of the vault"),
    "another tool": ("def {0}(n: int = 1):\n    return mcp.vault.acts(n)\n", {}, "calls acts, which has side effects"),
}  # fmt: skip


def test_a_tool_that_does_more_than_look_is_refused(hk: Healkit, tmp_path: Path) -> None:
    hk.vault.add("acts", "def acts(n: int = 1):\n    return n\n", side_effects=True)
    may_write: dict[str, Any] = {"grants": Grants(write=(str(tmp_path),))}
    writes = ("def {0}(n: int = 1):\n    return n\n", may_write, "may write files")
    for number, (code, more, why) in enumerate([*EFFECTS.values(), writes]):
        name = f"tool_{number}"
        hk.vault.add(name, code.format(name), **more)
        decision = decided(hk, look(name), end("staff"), tools=[name])
        assert decision.ok, name
        assert decision.sent[-1].problem == f"gather_info only reads, but {name} {why}."
        assert not hk.log.query(tool=name).rows


def test_gather_info_takes_a_tool_that_calls_one_that_looks(hk: Healkit) -> None:
    hk.vault.add("looks", "def looks(n: int = 1):\n    return n\n")
    hk.vault.add("asks", "def asks(n: int = 1):\n    return mcp.vault.looks(n=n)\n")
    assert decided(hk, look("asks"), end("staff"), tools=["asks"], plan=True).ok


@pytest.mark.requirement("DECIDE-2", "DECIDE-7")
def test_a_text_is_a_view_with_counts_that_tools_can_read(hk: Healkit) -> None:
    hk.vault.add(
        "shorten", "def shorten(text: str, words: int):\n    return ' '.join(text.split()[:words])\n"
    )
    hk.vault.add("count_all", "def count_all(texts: list[str]):\n    return sum(map(len, texts))\n")
    data = {"doc": LETTER, "pages": [LETTER, "Nothing more."]}
    decision = decided(
        hk,
        op("shorten", "short", text="doc", words=4),
        op("shorten", "plain", text="no view", words=1),
        look("count_all", texts="pages"),
        end("short"),
        data=data,
        tools=["shorten", "count_all"],
        plan=True,
    )
    assert decision.ok, decision.sent[-1].steps
    doc, pages, short, _ = decision.sent[-1].views
    assert doc.text is not None
    assert pages.text is not None
    assert short.text is not None
    assert (doc.text.texts, doc.text.characters, doc.text.sentences, doc.text.numbers) == (
        1,
        len(LETTER),
        3,
        1,
    )
    assert doc.text.entities == {"name": 4, "date": 1, "money": 1}
    assert (pages.text.texts, pages.row_count, short.text.words) == (2, 2, 4)
    assert hk.views.load(str(decision.raw_data_view_name))["text"].tolist() == ["Ann Lee met Bob"]
    assert hk.views.get(str(decision.raw_data_view_name)).created_by == "shorten"
    for word in ("Ann", "Basel", "example.com", "Nothing"):
        assert word not in "".join(map(told, decision.sent))
    again = decided(hk, end("doc"), data=data, plan=True)
    assert hk.views.get(again.views["doc"]).sha256 == hk.views.get(decision.views["doc"]).sha256


def test_the_chooser_gets_the_most_frequent_words_of_a_shared_text(hk: Healkit) -> None:
    (doc,) = decided(hk, end("doc"), data={"doc": LETTER}, share=["doc"]).sent[0].views
    assert doc.text is not None
    assert doc.text.most_frequent is not None
    assert doc.text.most_frequent["name"][0] == "Ann Lee"


def test_a_text_of_one_word_is_the_name_of_a_view(hk: Healkit) -> None:
    with pytest.raises(ViewNotFound, match="Put a text of one word in a list"):
        decided(hk, end("doc"), data={"doc": "hello"})
    assert decided(hk, end("doc"), data={"doc": ["hello"]}).ok
