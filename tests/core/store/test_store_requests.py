"""Patch requests: durable, and decided once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from side_by_side import Forked, Meet, at_once
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from healkit.core.store.database import Database
from healkit.core.store.vault import Vault
from healkit.errors import (
    CodeDoesNotParse,
    HealkitError,
    PatchRequestDecided,
    PatchRequestNotFound,
    RevisionConflict,
    RevisionNotFound,
    ToolNotFound,
    VaultError,
    VaultTampered,
)
from healkit.parts.heal.records import PatchRequest
from healkit.parts.heal.requests import Requests

HEAL_4 = pytest.mark.requirement("HEAL-4")
BROKEN, FIXED, OTHER = (f"def share(total, parts):\n    return {body}\n" for body in (
    "total / 0", "total / parts", "total // parts"))  # fmt: skip


def decide(meet: Meet, url: str, word: str, number: int) -> str:
    """Accept or decline that request; what it says."""
    with contextlib.closing(Database(url, wait_s=30)) as database:
        requests = Requests(database)
        meet()
        try:
            found = getattr(requests, word)(number)
        except HealkitError as error:
            return error.code
        return f"{found.state} {found.revision}"


def accept_and_die(url: str, moment: str) -> None:
    """Accept the first request and be killed before or after it is committed."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    database = Database(url, wait_s=30)
    if moment == "before":
        event.listen(database.engine, "commit", die)
        event.listen(database._writing, "commit", die)
    else:
        event.listen(Session, "after_commit", die)
    Requests(database).accept(1)


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    """Open a new database with a tool."""
    with contextlib.closing(Database(new_database("healkit"), wait_s=10.0)) as opened:
        Vault(opened).add("share", BROKEN)
        yield opened


def decided_at_once(database: Database, *decisions: tuple[str, int]) -> list[str]:
    """Decide in several processes at the same moment; return what each prints."""
    return at_once(decide, *[(database.url, word, number) for word, number in decisions])


@HEAL_4
@pytest.mark.requirement("SCALE-1")
def test_an_accepted_request_is_the_next_revision(database: Database) -> None:
    vault, requests = Vault(database), Requests(database)
    asked = requests.add("share", FIXED, author="rule", advisor="rules", reason="no zero", verdict="cured",
                         motivating_log_id=7, run_id="run_1")  # fmt: skip
    assert (asked.state, asked.parent, asked.label) == ("pending", 1, "share v1")
    assert "-    return total / 0\n+    return total / parts" in asked.diff
    assert vault.get("share").code == BROKEN
    accepted = requests.accept(asked.id)
    assert (accepted.state, accepted.revision, accepted.decided_by) == ("accepted", 2, "person")
    active = vault.history("share")[-1]
    assert (active.number, active.parent, active.author) == (2, 1, "rule")
    assert (active.reason, active.motivating_log_id) == ("no zero", 7)
    assert vault.get("share").code == FIXED


def test_the_same_patch_is_one_request(database: Database) -> None:
    vault, requests = Vault(database), Requests(database)
    first = requests.add("share", FIXED, author="agent")
    again = requests.add("share", FIXED, author="model", verdict="cured")
    assert (again.id, again.author, again.verdict) == (first.id, "agent", "cured")
    assert requests.add("share", FIXED, verdict="not_cured").verdict == "cured"
    requests.decline(first.id, "not so")
    assert requests.add("share", FIXED).state == "declined"
    vault.patch("share", OTHER)
    later = requests.add("share", FIXED)
    assert (later.id != first.id, later.parent, later.state) == (True, 2, "pending")


@HEAL_4
def test_an_overtaken_request_shows_both_sides(database: Database) -> None:
    vault, requests = Vault(database), Requests(database)
    asked = requests.add("share", FIXED)
    vault.patch("share", OTHER)
    said = []
    for _ in range(2):
        with pytest.raises(RevisionConflict) as caught:
            requests.accept(asked.id)
        said.append(str(caught.value))
    assert said[0] == said[1]
    found = requests.get(asked.id)
    assert (found.state, found.revision, found.code) == ("overtaken", None, FIXED)
    for line in ("+    return total // parts", "+    return total / parts", found.code_hash):
        assert line in found.note
    assert vault.get("share").code == OTHER
    with pytest.raises(PatchRequestDecided, match="was already overtaken"):
        requests.decline(asked.id)


@HEAL_4
def test_a_decision_is_final(database: Database) -> None:
    vault, requests = Vault(database), Requests(database)
    one, two = requests.add("share", FIXED), requests.add("share", OTHER)
    assert requests.accept(one.id) == requests.accept(one.id, by="somebody else")
    assert len(vault.history("share")) == 2
    with pytest.raises(
        PatchRequestDecided, match=r"was already accepted by 'person' and is share v2.*hk\.undo"
    ):
        requests.decline(one.id)
    declined = requests.decline(two.id, "wrong rounding")
    assert requests.decline(two.id, "another reason") == declined
    assert (declined.state, declined.note) == ("declined", "wrong rounding")
    with pytest.raises(PatchRequestDecided, match="was already declined"):
        requests.accept(two.id)
    with pytest.raises(PatchRequestNotFound, match="no patch request 99"):
        requests.accept(99)


@pytest.mark.slow
@HEAL_4
def test_concurrent_acceptance_makes_one_revision(database: Database) -> None:
    Requests(database).add("share", FIXED)
    assert decided_at_once(database, *[("accept", 1)] * 3) == ["accepted 2"] * 3
    assert [revision.number for revision in Vault(database).history("share")] == [1, 2]


@pytest.mark.slow
@HEAL_4
def test_of_two_requests_for_one_parent_the_second_is_overtaken(database: Database) -> None:
    requests = Requests(database)
    requests.add("share", FIXED)
    requests.add("share", OTHER)
    assert set(decided_at_once(database, ("accept", 1), ("accept", 2))) == {"accepted 2", "REVISION_CONFLICT"}
    assert {requests.get(1).state, requests.get(2).state} == {"accepted", "overtaken"}
    assert len(Vault(database).history("share")) == 2


@pytest.mark.slow
@HEAL_4
@pytest.mark.parametrize(
    ("moment", "state", "revisions"), [("before", "pending", 1), ("after", "accepted", 2)]
)
def test_a_kill_while_accepting_leaves_all_or_nothing(
    database: Database, moment: str, state: str, revisions: int
) -> None:
    requests = Requests(database)
    requests.add("share", FIXED)
    assert Forked(accept_and_die, database.url, moment).wait() == -signal.SIGKILL
    assert requests.get(1).state == state
    assert len(Vault(database).history("share")) == revisions
    assert requests.accept(1).revision == 2


def test_waiting_requests_come_first(database: Database) -> None:
    vault, requests = Vault(database), Requests(database)
    vault.add("other", "def other():\n    return 1\n")
    bodies = [f"def share(total, parts):\n    return {n}\n" for n in range(4)]
    numbers = [requests.add("share", body).id for body in bodies]
    mine = requests.add("other", "def other():\n    return 2\n").id
    requests.decline(numbers[3])
    requests.decline(numbers[1])
    assert [one.id for one in requests.list()] == [mine, numbers[2], numbers[0], numbers[3], numbers[1]]
    assert [one.id for one in requests.pending("share")] == [numbers[2], numbers[0]]
    assert [one.id for one in requests.list(state="declined", limit=1)] == [numbers[3]]
    assert requests.waiting() == 3


def test_a_request_with_invalid_code_is_refused(database: Database) -> None:
    requests = Requests(database)
    for tool, code, options, error, said in (
        ("share", "def share(:", {}, CodeDoesNotParse, None),
        ("share", BROKEN, {}, VaultError, None),
        ("shares", FIXED, {}, ToolNotFound, "Did you mean 'share'"),
        ("share", FIXED, {"parent": 9}, RevisionNotFound, None),
        ("share", FIXED, {"verdict": "fine"}, VaultError, "verdict='fine' is not known"),
        ("share", FIXED, {"author": "nobody"}, VaultError, "author='nobody' is not known"),
    ):
        with pytest.raises(error, match=said):
            requests.add(tool, code, **options)
    assert requests.list() == []


@HEAL_4
def test_tampered_code_of_a_request_is_not_accepted(database: Database) -> None:
    requests = Requests(database)
    asked: PatchRequest = requests.add("share", FIXED)
    with database.write() as session:
        session.execute(
            text("UPDATE codevault SET code = 'import os' WHERE hash = :hash"), {"hash": asked.code_hash}
        )
    with pytest.raises(VaultTampered):
        requests.accept(asked.id)
    assert requests.get(asked.id).state == "pending"
    assert len(Vault(database).history("share")) == 1


@pytest.mark.requirement("VAULT-5")
def test_undo_goes_back_and_forth(database: Database) -> None:
    vault = Vault(database)
    vault.patch("share", FIXED)
    undone = vault.undo("share")
    assert (undone.revision, undone.code) == (3, BROKEN)
    assert vault.history("share")[-1].reason == "undo of 2, back to 1"
    assert vault.undo("share").code == FIXED


def test_undo_passes_over_drafts(database: Database) -> None:
    vault = Vault(database)
    with pytest.raises(RevisionNotFound, match="share v1 has no revision before it"):
        vault.undo("share")
    draft = vault.patch("share", "def share(:", draft=True)
    vault.patch("share", FIXED, parent=draft.revision)
    assert vault.undo("share").code == BROKEN
