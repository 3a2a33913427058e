"""True words: causes outside of the code, inner failures."""

from __future__ import annotations

import pytest

from healkit import Healkit
from healkit.parts.runs.reader import validate_run

#: Tool, code, arguments, the advisors that may be asked, and what the ending says.
OUTSIDE = [
    (
        "a file that is missing",
        "def tool(path: str) -> str:\n    return open(path).read()\n",
        {"path": "/nowhere/sales.csv"},
        "A file is missing, or the tool cannot see it",
    ),
    (
        "no network",
        "import urllib.request\ndef tool(url: str) -> bytes:\n    return urllib.request.urlopen(url).read()\n",
        {"url": "http://example.invalid/"},
        "The tool has no network access",
    ),
    (
        "a module that is not installed",
        "def tool(n: int) -> int:\n    import zzyzx_not_there\n    return zzyzx_not_there.double(n)\n",
        {"n": 2},
        "The module is not installed",
    ),
    (
        "a folder that may not be written",
        "def tool(n: int) -> int:\n    open('/etc/zzyzx', 'w').write('x')\n    return n\n",
        {"n": 2},
        "The operating system did not allow this",
    ),
]


@pytest.mark.slow
@pytest.mark.requirement("HEAL-9")
@pytest.mark.parametrize(
    ("code", "arguments", "said"), [row[1:] for row in OUTSIDE], ids=[row[0] for row in OUTSIDE]
)
@pytest.mark.parametrize("known", [False, True], ids=["without an example", "with an example"])
def test_a_cause_outside_of_the_code_ends_the_healing(
    healing: Healkit, code: str, arguments: dict[str, object], said: str, known: bool
) -> None:
    """E6: each of them left a request with `return True`, or with one without the step that fails."""
    examples = [{"arguments": arguments, "result": "right"}] if known else []
    healing.vault.add("tool", code, examples=examples)
    assert healing.execute("tool", arguments=arguments).failure is not None
    report = healing.heal("tool", auto=True)
    assert (report.outcome, report.best) == ("not_mendable", None)
    assert report.reason.startswith(said)
    assert healing.requests.list() == []
    read = validate_run(report.folder)
    assert read.problems == []
    findings = [
        event.metadata.get("finding") for event in read.events if event.event_type == "inspection_finished"
    ]
    assert "not_fixable" in findings[-1:], "M12: the record said fixable"


@pytest.mark.parametrize(
    ("code", "fixed"),
    [
        ("import jsn\ndef tool(n: int) -> str:\n    return jsn.dumps(n)\n", "import json\n"),
        ("import zzyzx\ndef tool(n: int) -> str:\n    return zzyzx.dumps(n)\n", "def tool(n: int) -> str:\n"),
    ],
    ids=["a rule knows the name", "an earlier version did without"],
)
def test_patches_of_rules_and_versions_are_still_tried(healing: Healkit, code: str, fixed: str) -> None:
    healing.vault.add("tool", "def tool(n: int) -> str:\n    return str(n)\n")
    healing.vault.patch("tool", code)
    assert healing.execute("tool", arguments={"n": 1}).failure is not None
    report = healing.heal("tool", advisors=["rules", "peers", "search"])
    assert report.outcome == "pending"
    assert report.best is not None
    assert report.best.patch.code.startswith(fixed)


PRICE = (
    "def price(product: str) -> float:\n    prices = {'tea': 2.5, 'rice': 4.0}\n"
    "    return prices[product.upper()]\n"
)
BILL = "def bill(product: str, n: int) -> float:\n    return mcp.vault.price(product=product) * n\n"


@pytest.mark.parametrize(
    ("inner", "what"),
    [
        (PRICE, "'TEA'"),
        (
            "def price(product: str) -> float:\n    return max([2.5, product])\n",
            "A `str` and a `float` cannot be compared with `>`.",
        ),
        (
            "import datetime\ndef price(product: str) -> float:\n    return datetime.date(2026, 2, 30).day\n",
            "",
        ),
    ],
    ids=["key", "mixed comparison", "date"],
)
@pytest.mark.requirement("HEAL-9")
def test_the_failure_of_a_called_tool_is_explained_as_its_own(
    healing: Healkit, inner: str, what: str
) -> None:
    """E13: `ToolCallError: mcp.vault.price: …` was explained by "Read the failing line"."""
    healing.vault.add("price", inner)
    healing.vault.add("bill", BILL)
    healing.vault.add("bills", "def bills(product: str) -> float:\n    return mcp.vault.bill(product, 2)\n")
    own = healing.execute("price", arguments={"product": "tea"}).explain()
    for caller, arguments in (("bill", {"product": "tea", "n": 2}), ("bills", {"product": "tea"})):
        failed = healing.execute(caller, arguments=arguments)
        row = max(one.log_id for one in healing.executions() if one.tool_name == "price")
        told = failed.explain()
        assert told.what.startswith("Line ")
        assert f"of price v1 (log row {row}) failed: {own.what}" in told.what
        assert what in told.what
        assert (told.why, told.hint, told.fix) == (own.why, own.hint, own.fix)
        assert told.where.startswith(f"Line 2 of {caller} v1")
        assert healing.log.get(row).parent_trace_id is not None


def test_the_failure_of_a_function_that_was_called_is_explained_too(healing: Healkit) -> None:
    healing.provide(lambda n: {"a": 1}[n], name="rate")
    healing.vault.add("tool", "def tool(n: str) -> int:\n    return mcp.host.rate('b')\n")
    assert healing.execute("tool", arguments={"n": "b"}).explain().what == (
        "`mcp.host.rate` failed: The key 'b' does not exist."
    )


def test_the_contents_of_a_tool_that_is_kept_off_the_record_are_not_linked(healing: Healkit) -> None:
    healing.vault.add("price", PRICE, log=False)
    healing.vault.add("bill", BILL)
    failed = healing.execute("bill", arguments={"product": "tea", "n": 2})
    assert failed.failure is not None
    assert failed.failure.called is None


@pytest.mark.slow
@pytest.mark.requirement("HEAL-9")
@pytest.mark.parametrize("asked", ["bill", "bills"], ids=["its caller", "the caller of its caller"])
def test_the_called_tool_that_failed_is_healed(healing: Healkit, asked: str) -> None:
    """E5: `bill` was healed by `if n: return 7`; now what its examples say is a check of `price`."""
    healing.vault.add("price", PRICE)
    known = [("rice", 1, 4.0), ("tea", 2, 5.0)]
    examples = [{"arguments": {"product": one, "n": n}, "result": right} for one, n, right in known]
    healing.vault.add("bill", BILL, examples=examples)
    healing.vault.add("bills", "def bills(product: str) -> float:\n    return mcp.vault.bill(product, 2)\n")
    arguments = {"product": "tea", "n": 2} if asked == "bill" else {"product": "tea"}
    assert healing.execute(asked, arguments=arguments).failure is not None
    (inner,) = (one for one in healing.executions() if one.tool_name == "price")

    report = healing.heal(asked, auto=True)
    assert (report.tool_name, report.outcome) == ("price", "kept"), str(report)
    assert (
        f"{asked} failed in price, which it called (log row {inner.log_id}), so price is healed."
        in report.notes
    )
    assert [check.told for check in report.checks] == [
        "bill(product='rice', n=1)",
        "bill(product='tea', n=2)",
        "",
    ]
    assert report.best is not None
    assert "product.lower()" in report.best.patch.code
    assert healing.vault.get("bill").revision == 1
    assert "_Beside" not in str(report) + (report.folder / "trace.jsonl").read_text()
    assert healing.execute(asked, arguments=arguments).value == 5.0


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ("def price(product: str) -> float:\n    raise ValueError(f'no {product}')\n", "no tea"),
        ("def price(name: str) -> float:\n    return 2.5\n", "product"),
    ],
    ids=["by a raise of its own", "by its schema"],
)
def test_a_called_tool_that_refuses_what_it_got_is_not_to_blame(
    healing: Healkit, inner: str, said: str
) -> None:
    healing.vault.add("price", inner)
    healing.vault.add("bill", BILL)
    failed = healing.execute("bill", arguments={"product": "tea", "n": 2})
    assert failed.failure is not None
    assert said in failed.failure.evalue
    report = healing.heal("bill", advisors=["rules"])
    assert (report.tool_name, report.notes[:1]) == (
        "bill",
        ("1 call answered from the record, 0 live.",),
    )


def test_a_rejected_statement_is_reported_once(healing: Healkit) -> None:
    """E9: "The database rejected the statement: The database rejected the statement: …"."""
    healing.vault.add("names", "SELECT nam FROM vaultentry", type="sql")
    told = healing.execute("names").explain().what
    assert told.startswith("The database rejected the statement: no such table: vaultentry.")
    assert told.count("rejected") == 1
    assert ".." not in told
