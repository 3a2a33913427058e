"""Revision that resolved a failure.

It is one that met the failure, with the same arguments.
"""

from __future__ import annotations

import pytest
from store_samples import failed, started, succeeded

from healkit.rendering import listings
from healkit.rendering.to_text import text_of
from healkit.store.database import Database
from healkit.store.log_reader import Log
from healkit.store.log_writer import LogWriter
from healkit.store.vault import Vault


@pytest.fixture
def vault(database: Database) -> Vault:
    vault = Vault(database)
    vault.add("fibonacci", "def fibonacci(n): return 1 / n")
    vault.patch("fibonacci", "def fibonacci(n): return 2 / n")
    vault.patch("fibonacci", "def fibonacci(n): return 3 / n")
    return vault


def run(writer: LogWriter, revision: int, n: int, *, fails: bool = False) -> None:
    begun = started(revision=revision, arguments=f'{{"n":{n}}}')
    writer.insert_finished(begun, failed(begun) if fails else succeeded(begun))


@pytest.mark.requirement("LOG-11")
def test_a_revision_that_never_met_the_failure_did_not_resolve_it(
    vault: Vault, database: Database, writer: LogWriter
) -> None:
    """U5: revision 2 ran with other arguments, and was named as the cure."""
    run(writer, 1, 0, fails=True)
    run(writer, 2, 5)
    log = Log(database)
    (group,) = log.groups()
    assert (vault.blame("fibonacci").last_cured_by, group.cured_by) == (None, None)
    assert log.passing_revisions("fibonacci", "default", group.fingerprint) == []
    run(writer, 3, 0)
    (group,) = log.groups()
    assert (vault.blame("fibonacci").last_cured_by, group.cured_by) == (3, 3)
    assert log.passing_revisions("fibonacci", "default", group.fingerprint) == [3]


@pytest.mark.requirement("LOG-11")
def test_a_revision_that_passed_in_other_runs_is_named_as_good(vault: Vault, writer: LogWriter) -> None:
    """U5: the only revision had succeeded, and `blame` said that none was good."""
    run(writer, 1, 5)
    run(writer, 1, 0, fails=True)
    found = vault.blame("fibonacci")
    assert (found.first_failed, found.last_good) == (1, 1)
    assert "v1, in other runs" in text_of(listings.blame("fibonacci", found))


def test_a_revision_that_never_passed_is_not_named_as_good(vault: Vault, writer: LogWriter) -> None:
    """U5: with no success on record, there is none to name."""
    run(writer, 1, 0, fails=True)
    assert vault.blame("fibonacci").last_good is None
