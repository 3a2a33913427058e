"""Tools that are renamed and removed.

Nothing of them is lost, and no name means two of them.
"""

from __future__ import annotations

import pytest
from vault_samples import BROKEN, FIXED, V1, V2, V3, V4

from healkit.errors import PersonaNotFound, ToolExists, ToolNotFound, ToolRemoved, ToolShapeError, VaultError
from healkit.store.database import Database
from healkit.store.requests import Requests
from healkit.store.vault import Vault


@V4
def test_a_renamed_tool_keeps_its_history_and_settings(vault: Vault) -> None:
    """C4: a tool could not be renamed."""
    vault.add("fib", "def run(n):\n    return 1 / 0\n", grants={"memory_mb": 64}, side_effects=True)
    vault.patch("fib", "def run(n):\n    return n\n", reason="no division")
    renamed = vault.rename("fib", "fibonacci", reason="a full word")
    assert (renamed.label, renamed.grants.memory_mb, renamed.flags["side_effects"]) == (
        "fibonacci v2",
        64,
        True,
    )
    assert [revision.reason for revision in vault.history("fibonacci")] == ["", "no division"]
    assert vault.names() == ["fibonacci"]
    assert vault.patch("fibonacci", "def run(n):\n    return -n\n").revision == 3
    (change,) = vault.name_changes("fibonacci")
    assert (change.kind, change.old_name, change.new_name, change.reason) == (
        "renamed", "fib", "fibonacci", "a full word",
    )  # fmt: skip


@V3
def test_a_former_name_still_means_the_tool(vault: Vault) -> None:
    """C4: what was written before the renaming goes on working."""
    vault.add("one", BROKEN)
    vault.add("one", FIXED, persona="teacher")
    for old, new in (("one", "two"), ("two", "three"), ("one", "four")):
        vault.rename(old, new)
    for name in ("one", "two", "three", "four"):
        assert vault.lookup(name).label == "four v1"
        assert vault.lookup(name, "teacher").label == "four v1 (teacher)"
        assert vault.get(name, revision=1).code == BROKEN
        assert len(vault.name_changes(name)) == 6
    assert vault.patch("one", FIXED).label == "four v2"
    assert vault.former_names() == {"one": "four", "two": "four", "three": "four"}
    assert vault.rename("four", "one").tool_name == vault.lookup("two").tool_name == "one"
    with pytest.raises(PersonaNotFound):
        vault.patch("two", FIXED, persona="student")


@V2
def test_no_other_tool_takes_a_former_name(vault: Vault) -> None:
    """C4: an old row, trace or caller never means another tool than it did."""
    vault.add("one", BROKEN)
    vault.add("other", FIXED)
    vault.rename("one", "two")
    assert vault.add("one", BROKEN).label == "two v1"  # a notebook that is run again from its top
    refused = [
        lambda: vault.add("one", FIXED),
        lambda: vault.add("one", FIXED, persona="teacher"),
        lambda: vault.rename("other", "one"),
        lambda: vault.rename("other", "two"),
        lambda: vault.rename("two", "other"),
    ]
    for attempt in refused:
        with pytest.raises(ToolExists):
            attempt()
    with pytest.raises(VaultError, match="cannot be a tool's name"):
        vault.rename("two", "no name")
    with pytest.raises(ToolNotFound, match="Did you mean 'other'"):
        vault.rename("othr", "three")
    assert vault.names() == ["other", "two"]
    vault.remove("two")
    with pytest.raises(ToolRemoved):
        vault.add("one", BROKEN)
    with pytest.raises(ToolExists, match="which was removed"):
        vault.rename("other", "two")


@V4
def test_a_tool_that_runs_a_function_by_its_name_is_not_renamed(vault: Vault) -> None:
    """C4: a renamed tool still runs what it ran."""
    two = "def helper(n):\n    return n\n\ndef pick(n):\n    return helper(n)\n"
    vault.add("pick", two)
    for name in ("choose", "helper"):
        with pytest.raises(ToolShapeError, match=r"'pick'.*call that function 'run'"):
            vault.rename("pick", name)
    vault.patch("pick", two.replace("def pick", "def run"))
    assert vault.rename("pick", "helper").label == "helper v2"


@V4
def test_a_removed_tool_is_only_marked(vault: Vault) -> None:
    """C4: a tool could not be removed."""
    vault.add("fib", BROKEN, description="The n-th.", grants={"memory_mb": 64})
    vault.patch("fib", FIXED)
    vault.add("other", BROKEN)
    (removed,) = vault.remove("fib", reason="unused")
    assert (removed.label, removed.removed_at is not None) == ("fib v2", True)
    assert vault.remove("fib") == []
    assert vault.names() == ["other"]
    assert [entry.label for entry in vault.list()] == ["other v1"]
    assert [entry.label for entry in vault.list(removed=True)] == ["fib v2"]
    for attempt in (vault.lookup, vault.active, lambda name: vault.patch(name, BROKEN), vault.set_grants):
        with pytest.raises(ToolRemoved, match=r"'fib' was removed .* vault.restore\('fib'\)"):
            attempt("fib")
    assert len(vault.history("fib")) == 2
    assert vault.get("fib", revision=1).code == BROKEN
    assert "fib v1" in vault.diff("fib")
    restored = vault.restore("fib")
    assert (restored.label, restored.removed_at, restored.description) == ("fib v2", None, "The n-th.")
    assert vault.lookup("fib").grants.memory_mb == 64
    assert [change.kind for change in vault.name_changes("fib")] == ["removed", "restored"]


@V4
def test_adding_a_removed_tool_registers_it_anew(vault: Vault) -> None:
    """C4: its settings are those of the new call, and its revisions go on counting."""
    vault.add("fib", BROKEN, grants={"memory_mb": 64}, log=False)
    vault.remove("fib")
    added = vault.add("fib", FIXED)
    assert (added.label, added.grants.memory_mb, added.logged) == ("fib v2", None, True)
    assert vault.lookup("fib").code == FIXED
    assert [(revision.number, revision.parent) for revision in vault.history("fib")] == [(1, None), (2, 1)]
    vault.remove("fib")
    assert vault.add("fib", FIXED).label == "fib v2"
    assert [change.kind for change in vault.name_changes("fib")] == ["removed", "added"] * 2


@V3
def test_one_persona_of_a_tool_is_removed(vault: Vault) -> None:
    """C4: the persona is served by `default` then, as if it had never had a tool of its own."""
    vault.add("fib", BROKEN)
    vault.add("fib", FIXED, persona="teacher")
    assert [entry.persona for entry in vault.remove("fib", "teacher")] == ["teacher"]
    assert vault.lookup("fib", "teacher").persona == vault.get("fib", "teacher").persona == "default"
    assert vault.get("fib", "teacher", revision=1).code == FIXED  # what an old row ran
    vault.remove("fib")
    with pytest.raises(ToolRemoved):
        vault.lookup("fib", "teacher")
    assert vault.restore("fib", "teacher").persona == "teacher"
    with pytest.raises(ToolRemoved):
        vault.lookup("fib")
    assert vault.lookup("fib", "teacher").code == FIXED


@V1
def test_callers_by_name_are_found(vault: Vault) -> None:
    """C4: callers in other tools' code are named, not rewritten."""
    vault.add("price", "def run(n):\n    return n\n")
    vault.add("bill", "def run(n):\n    return mcp.vault.price(n=n)\n")
    vault.add("bill", "def run(n):\n    return 2 * mcp.vault.price(n=n)\n", persona="teacher")
    vault.add("says", "def run(n):\n    return 'mcp.vault.price'\n")
    assert vault.callers("price") == ["bill v1", "bill v1 (teacher)"]
    vault.rename("price", "cost")
    assert vault.callers("price") == ["bill v1", "bill v1 (teacher)"]
    assert vault.callers("cost") == []


@V4
def test_requests_follow_a_renamed_tool(vault: Vault, database: Database) -> None:
    """C4: a patch that waits for approval is not lost by a renaming, and can be read after a removal."""
    vault.add("fib", BROKEN)
    requests = Requests(database)
    number = requests.add("fib", FIXED).id
    vault.rename("fib", "fibonacci")
    assert [request.tool_name for request in requests.pending("fib")] == ["fibonacci"]
    assert requests.add("fib", FIXED).id == number
    vault.remove("fibonacci")
    assert requests.get(number).diff
    with pytest.raises(ToolRemoved):
        requests.accept(number)
    vault.restore("fibonacci")
    assert requests.accept(number).revision == 2
