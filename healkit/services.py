"""Services on one database, shared by all parts.

The core's services are attributes with their types. A part's service is an attribute with the name that its plug-in
chose (`hooks.Specs.attributes`). It is made on first use.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from healkit import hooks
from healkit.config import Config
from healkit.core.contracts.execution import Grants
from healkit.core.contracts.vault import NO_GRANTS, UNTRUSTED_GRANTS
from healkit.core.runtime import background
from healkit.core.runtime.collecting import LogCleaner
from healkit.core.runtime.contents import Contents
from healkit.core.runtime.events import Steps
from healkit.core.runtime.execution import History, NewestRows
from healkit.core.runtime.executor import Executor
from healkit.core.runtime.providers import HostFunctions, LogTools, VaultTools
from healkit.core.runtime.recording import Recorder
from healkit.core.runtime.runner import Runner
from healkit.core.secrets.cleaner import sanitizer_of
from healkit.core.store.database import Database
from healkit.core.store.entries import EntryLookup, keep_records_apart, make_grants
from healkit.core.store.locations import views_folder
from healkit.core.store.spool import Spool
from healkit.core.store.trust import trusted_folder
from healkit.core.workers.sandbox import check_grants

if TYPE_CHECKING:
    from healkit.core.store.log_reader import Log
    from healkit.core.store.vault import Vault


class Services:
    """One database and the services that use it.

    Attributes: `config` and `database`; `cleaner` of records, `recorder`, `contents` (stored frames and arrays),
    `executor`, `runner`, `history`, `host` (Python functions that tools can call); `vault` and `log`.

    Also raises the errors of a plug-in that makes one of these.
    """

    def __init__(self, database: Database, config: Config) -> None:
        self.config = config
        self.database = database
        self._made: dict[str, Any] = {}
        self._making = threading.RLock()
        self.cleaner: LogCleaner = hooks.first("cleaner", services=self) or LogCleaner(
            config, lambda: sanitizer_of(config)
        )
        self.recorder = Recorder(database, config, self.cleaner, self._recorded)
        self.recorder.recover_orphans()
        self.contents: Contents = hooks.first("contents", services=self) or Contents()
        self.executor = Executor(
            EntryLookup(database, lambda: self.vault),
            self.recorder,
            config,
            database.url,
            lambda: background.pool_for(config),
            self.contents,
            self.grants_in_force,
        )
        steps: Steps = hooks.first("steps", services=self) or Steps()
        self.runner = Runner(self.executor, steps, lambda: self.log)
        newest = NewestRows(database, self.recorder.ingest)
        self.history = History(config, newest, lambda: self.log, lambda: self.vault)
        self.host = HostFunctions()
        self.executor.providers |= {
            "host": self.host,
            "vault": VaultTools(lambda: self.vault, self.runner.call_from),
            "healkit": LogTools(lambda: self.vault, lambda: self.log),
        }
        hooks.every("opened", services=self)

    # An execution does not need these parts, so they are loaded on first use.

    @functools.cached_property
    def vault(self) -> Vault:
        """Tools and their revisions."""
        from healkit.core.rendering.listings import ShownVaultEntry
        from healkit.core.store.vault import Vault

        return Vault(self.database, self._check_grants, ShownVaultEntry)

    @functools.cached_property
    def log(self) -> Log:
        """Log of all executions."""
        from healkit.core.store.log_reader import Log

        return Log(
            self.database,
            refresh=self.recorder.ingest,
            retention_days=self.config.retention_days,
            retention_rows=self.config.retention_rows,
        )

    def __getattr__(self, name: str) -> Any:
        """Return a part's service."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._made:
            return self._made[name]
        if name not in (makers := attribute_makers()):
            raise AttributeError(f"No part adds {name!r}.")
        with self._making:
            if name not in self._made:
                self._made[name] = makers[name](self)
            return self._made[name]

    def made(self, name: str) -> Any:
        """Return a part's service if it was used before; else None."""
        return self._made.get(name)

    @property
    def problem(self) -> str:
        """Sentence for the user about a problem; empty if there is none."""
        problems = (self.recorder.problem, self.contents.problem)
        return next(filter(None, (*problems, *hooks.every("problem", services=self))), "")

    def close(self) -> None:
        """Stop the work of the parts, and close the database."""
        with contextlib.ExitStack() as last_first:  # each callback runs, even if another one raises
            last_first.callback(self.database.close)
            last_first.callback(hooks.every, "closed", services=self)
            last_first.callback(self.recorder.close)
            last_first.callback(self.contents.close)
            last_first.callback(hooks.every, "closing", services=self)

    def _recorded(self, send: bool) -> None:
        """Notify the parts of a finished execution in the log; called by the recorder."""
        hooks.every("recorded", services=self, send=send)

    def _check_grants(self, grants: Grants) -> None:
        """Raise `ConfigError` for grants that are impossible on this machine, or that include a folder of records."""
        if grants != NO_GRANTS:
            make_grants(grants)
            path, url = self.database.path, self.database.url
            records = (
                *Spool(path or url).folders,
                views_folder(path, url),
                trusted_folder(),
                *(folder for folders in hooks.every("record_folders", services=self) for folder in folders),
            )
            keep_records_apart(grants, path, records)
            check_grants(grants)

    def grants_in_force(self, grants: Grants) -> Grants:
        """Return a tool's grants after a new check; in an untrusted database, those of an untrusted tool.

        A path that no longer exists grants nothing, and the tool will fail on it. Raises `ConfigError` for other grants
        that are no longer possible, or never were.
        """
        if not self.database.trusted:
            return UNTRUSTED_GRANTS
        if grants != NO_GRANTS:
            make_grants(grants)  # also rejects a relative path
            there = {
                name: tuple(filter(os.path.lexists, getattr(grants, name))) for name in ("read", "write")
            }
            self._check_grants(msgspec.structs.replace(grants, **there))
        return grants


def attribute_makers() -> Mapping[str, Callable[[Services], Any]]:
    """Return the function that makes each attribute of a part; if two have the same name, healkit's own wins."""
    makers: dict[str, Callable[[Services], Any]] = {}
    for attributes in hooks.every("attributes"):  # the last registered comes first
        makers |= attributes
    return makers
