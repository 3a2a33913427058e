"""Replays of recorded executions, and cassettes in files."""

from __future__ import annotations

import collections
import json
from pathlib import Path

import pytest

from healkit import Healkit
from healkit.errors import HealkitError, LogFileError

HEAL_7 = pytest.mark.requirement("HEAL-7")
BILL = """def bill(product: str, n: int) -> float:
    mcp.host.send(text=product)
    return mcp.host.price(product=product) + n
"""


class Shop:
    """Healkit with a tool that has run and failed; `made` counts the calls that were really made since."""

    def __init__(self, healkit: Healkit) -> None:
        self.healkit = healkit
        self.made: collections.Counter[str] = collections.Counter()

        def price(product: str) -> float:
            self.made["price"] += 1
            return {"tea": 4.0, "coffee": 3.0}[product]

        def send(text: str) -> str:
            self.made["send"] += 1
            return f"sent {text}"

        healkit.provide(price)
        healkit.provide(send)
        healkit.provide(lambda text: self.made.update(["stock"]), "stock")
        healkit.vault.add("bill", BILL)
        for arguments in ({"product": "tea", "n": 3}, {"product": "milk", "n": 1}):
            healkit.execute("bill", arguments=arguments)
        self.made.clear()


@pytest.fixture
def recorded(healkit: Healkit) -> Shop:
    return Shop(healkit)


@HEAL_7
def test_a_replay_repeats_what_happened_and_makes_no_call(recorded: Shop) -> None:
    healkit = recorded.healkit
    failed = healkit.last_error()
    assert failed is not None
    assert failed.log_id is not None
    again = healkit.replay(failed.log_id)
    assert again.failure is not None
    assert failed.failure is not None
    assert (
        again.failure.summary == failed.failure.summary == "ToolCallError: mcp.host.price: KeyError: 'milk'"
    )
    assert [call.answered_from for call in again.calls] == [failed.trace_id] * 2
    stored = healkit.execution(again.log_id)
    assert stored is not None
    assert (stored.origin, [call.answered_from for call in stored.calls]) == ("trial", [failed.trace_id] * 2)
    assert healkit.last_error() == failed
    healkit.vault.patch("bill", BILL.replace("host.price(product=product)", "host.price(product='tea')"))
    changed = healkit.replay(failed.log_id, active=True)
    assert changed.failure is not None
    assert changed.failure.code == "CALL_NOT_ON_RECORD"
    assert (
        changed.failure.summary
        == "NotOnRecord: the call of mcp.host.price is not on record, so it was not made"
    )
    assert not recorded.made
    live = healkit.replay(failed.log_id, active=True, live=["host.price"])
    assert (live.value, dict(recorded.made)) == (5.0, {"price": 1})


@pytest.mark.slow
@HEAL_7
def test_a_cassette_is_replayed_where_the_servers_are_not(recorded: Shop, tmp_path: Path) -> None:
    failed = recorded.healkit.last_error()
    assert failed is not None
    assert failed.log_id is not None
    file, hidden = recorded.healkit.export_cassette(failed.log_id, tmp_path / "bill.json")
    assert hidden == 0
    with Healkit(tmp_path / "elsewhere.db") as elsewhere:
        again = elsewhere.replay(file)
        assert again.failure is not None
        assert failed.failure is not None
        assert again.failure.summary == failed.failure.summary
        assert again.failure.frames[-1].lineno == failed.failure.frames[-1].lineno
        assert elsewhere.vault.names() == []
        elsewhere.vault.add("bill", "def bill(product: str, n: int) -> float:\n    return 1.0\n")
        assert elsewhere.replay(file, active=True).value == 1.0


@HEAL_7
def test_a_file_allows_no_call_and_one_that_is_none_is_refused(recorded: Shop, tmp_path: Path) -> None:
    """A cassette from elsewhere called this host's functions by marking them as read-only."""
    healkit = recorded.healkit
    failed = healkit.last_error()
    assert failed is not None
    assert failed.log_id is not None
    file, _ = healkit.export_cassette(failed.log_id, tmp_path / "bill.json")
    forged = json.loads(file.read_text())
    forged["cassette"]["live"] = ["host.price", "host.send", "host.stock"]
    for definition in forged["cassette"]["definitions"]:
        definition["read_only"] = True
    forged["code"] = BILL.replace("price(product=product)", "stock(text='x')")
    file.write_text(json.dumps(forged))
    refused = healkit.replay(file).failure
    assert refused is not None
    assert (refused.code, dict(recorded.made)) == ("CALL_NOT_ON_RECORD", {})
    forged["cassette"]["runs"] = {"1": [99]}
    for wrong in ("{}", "no JSON", json.dumps(forged)):
        file.write_text(wrong)
        with pytest.raises(LogFileError, match="is not a healkit cassette"):
            healkit.replay(file)
    for nothing in (None, 1.5):
        with pytest.raises(HealkitError):
            healkit.replay(nothing)  # type: ignore[arg-type]  # what a person may type
