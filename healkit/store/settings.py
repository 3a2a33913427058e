"""What a tool's owner may change without a revision.

Grants, the input schema, examples and switches belong to the tool, not to its code: changing one is no patch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from healkit.contracts.examples import checked_examples
from healkit.contracts.records import Grants
from healkit.store import vaultrows
from healkit.store.database import Database
from healkit.store.entries import DEFAULT_PERSONA, VaultEntry
from healkit.store.grants import keep_records_apart, make_grants
from healkit.store.spool import Spool

#: A grant → those that it can make impossible: which packages there are depends on the interpreter.
_BEAR_UPON = {"python": ("packages", "write"), "packages": ("python",), "write": ("python",)}


class Settings:
    """The setters of `Vault`."""

    _database: Database
    _check_grants: Callable[[Grants], None] | None
    get: Callable[..., VaultEntry]

    def set_grants(
        self, name: str, persona: str = DEFAULT_PERSONA, *, clear: bool = False, **grants: Any
    ) -> VaultEntry:
        """Change the grants named and leave the others; None takes one back, `clear` all that are not named.

        Raises `ConfigError` for one that does not exist, that cannot be kept on this machine (a path or a package that
        is not there), or that no tool may have.
        """
        self._checked(grants, Grants() if clear else self.get(name, persona).grants)
        with self._database.write() as session:
            tool = vaultrows.exactly(session, name, persona)
            vaultrows.regrant(tool, grants, clear=clear)
            session.flush()
        return self.get(name, persona)

    def set_schema(
        self, name: str, schema: dict[str, Any] | None, persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Replace the input schema, or with None read it off the code again; raises `SchemaInvalid`."""
        with self._database.write() as session:
            tool = vaultrows.exactly(session, name, persona)
            vaultrows.reschema(session, tool, schema, self._database.dialect_name)
        return self.get(name, persona)

    def set_examples(
        self, name: str, examples: Iterable[Any] | None, persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Replace what calls of it have to do, or with None read it off its docstring again.

        Raises `ExamplesInvalid`, which says which one is wrong and why.
        """
        with self._database.write() as session:
            tool = vaultrows.exactly(session, name, persona)
            vaultrows.reexample(session, tool, examples, self._database.dialect_name)
        return self.get(name, persona)

    def add_example(
        self, name: str, example: Mapping[str, Any], persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Add one example; one that is there already is not added again. Raises `ExamplesInvalid`."""
        with self._database.write() as session:
            tool = vaultrows.exactly(session, name, persona)
            (new,) = checked_examples([example], sql=vaultrows.kind_of(session, tool) == "sql")
            if new not in tool.examples:
                vaultrows.keep_examples(tool, [*tool.examples, new])
        return self.get(name, persona)

    def set_flags(self, name: str, persona: str = DEFAULT_PERSONA, **flags: bool) -> VaultEntry:
        """Turn the owner's switches, `side_effects` and `log` (see `add`); raises `VaultError` for another."""
        with self._database.write() as session:
            vaultrows.reflag(vaultrows.exactly(session, name, persona), flags)
        return self.get(name, persona)

    def _checked(self, changes: Mapping[str, Any], stored: Grants = Grants()) -> Grants:
        """These grants, looked at beside the stored ones that they bear upon; the others may have gone stale."""
        beside = {n: getattr(stored, n) for name in changes for n in _BEAR_UPON.get(name, ())}
        grants = make_grants({**beside, **changes})
        keep_records_apart(
            grants, self._database.path, Spool(self._database.path or self._database.url).folders
        )
        if self._check_grants is not None:
            self._check_grants(grants)
        return grants
