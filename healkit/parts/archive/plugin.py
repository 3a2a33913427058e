"""What reads and writes the log's files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from healkit.core.contracts.execution import Filters
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Imported, LogFiles
from healkit.core.store.retention import PruneReport
from healkit.hooks import hookimpl


class Files(LogFiles):
    """Files of executions, in the formats that the end of their names says."""

    def export(self, path: Path, filters: Filters, *, overwrite: bool) -> int:
        """Write the finished executions that the filters hold for."""
        from healkit.parts.archive.log_files import export_log

        return export_log(self.database, path, filters, overwrite=overwrite)

    def bring_in(self, path: Path) -> Imported:
        """Import the executions of a file that are not here yet."""
        from healkit.parts.archive.log_files import import_log

        return import_log(self.database, path)

    def archive(
        self, older_than: timedelta | None, keep: int | None, folder: Path, suffix: str
    ) -> PruneReport:
        """Move old executions to a file in that folder."""
        from healkit.parts.archive.archive import Archive

        return Archive(self.database).move(older_than, keep, folder, suffix)


@hookimpl
def log_files(database: Database) -> Files:
    """Return what exports, imports and archives executions."""
    return Files(database)
