"""Data views: frames and arrays kept in files.

These are the inputs and outputs of executions, and the user's own data; the files are beside the database.

A view is written once and identified by its content, so the same data is not written again. Each load checks the
content of the file (`values.view_files`) and returns no value from a changed file. The name of a file is made from its
content, and links are not followed, so a changed row cannot lead to another file.

A row is written after its file. A kill in between leaves an unused file, which the next search for room removes. If the
files exceed the budget, the oldest ones that no recorded execution uses are removed first, then the oldest of the
others. A view with a user's name is never evicted. An evicted view keeps its row, which says so.

Only its owner can read a file, and files are never sent anywhere. On a server, each machine has its own files.
"""

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Row, delete, func, insert, select, update
from sqlalchemy.orm import Session
from sqlmodel import col

from healkit.core import plain_files
from healkit.core.contracts.execution import TRIED_ORIGINS, utc_now
from healkit.core.crossing.values import BadValue, CannotCross
from healkit.core.runtime.contents import MentionedView, Side
from healkit.core.store.database import Database
from healkit.core.store.locations import views_folder
from healkit.core.store.models import ExecutionLog, ToolRegistry, table_of
from healkit.errors import (
    DatabaseError,
    ViewChanged,
    ViewError,
    ViewGone,
    ViewNotFound,
    check_whole,
    did_you_mean,
    named,
)
from healkit.parts.views import view_files
from healkit.parts.views.shared_files import SharedFiles
from healkit.parts.views.tables import USES, VIEWS
from healkit.parts.views.view_records import DataView, ViewColumn

#: Characters of the digest in the name that a view has by itself.
_NAME_DIGITS = 12
_NAME_MAX_CHARS = 200
#: Age of a file that is being written, or has no row yet, from which on its writer is taken for dead.
_LEFT_BEHIND_S = 3600.0
_BY_USER = "user"


class Use(NamedTuple):
    """Preview in the record of an execution; `number` counts the previews of one side, from 0."""

    trace_id: str
    side: Side
    number: int


class DataViews:
    """Views of one database; safe to use from several threads and processes."""

    def __init__(self, database: Database, budget_bytes: int, shared_url: str = "") -> None:
        self._database = database
        self._shared = SharedFiles(shared_url) if shared_url else None
        self._budget_bytes = budget_bytes
        self.folder = views_folder(database.path, database.url)
        #: File → what the system said of it when its content was checked; only `keep` relies on it.
        self._checked: dict[str, tuple[int, ...] | None] = {}

    def keep(
        self,
        value: object,
        *,
        created_by: str = _BY_USER,
        name: str | None = None,
        use: Use | None = None,
        slowly: Callable[[Callable[[], Any]], Any] = lambda work: work(),
    ) -> str:
        """Keep a frame, an array or a table, and return its SHA-256.

        name: A name of the user's.
        use: The preview for which it stands.
        slowly: Runs the slow part, for example on a thread with a low priority. The transactions stay on this thread,
            because others wait for them.

        Raises `ViewError` if the name has other data, if the value cannot be kept, or if there is no room for it.
        """
        try:
            whole = slowly(lambda: view_files.encoded(value))
            described = slowly(lambda: _described(value))
        except CannotCross as error:
            raise ViewError(f"It cannot be kept: {error.path} holds {error.why}.") from None
        digest: str = slowly(lambda: view_files.identity(whole))
        if (there := slowly(lambda: self._whole_file(digest))) is not None:
            with suppress(OSError):  # it is here, whatever the shared place says
                slowly(lambda: self._share(there))
            with self._database.write() as session:
                if self._named(session, digest, name, created_by):
                    _refer(session, use, digest)
                    return digest
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = slowly(lambda: view_files.write_view(value, whole, digest, self.folder))
            size = file.stat().st_size
            slowly(lambda: self._share(file))
        except OSError as error:
            raise ViewError(
                f"No data view can be written to {str(self.folder)!r}: {error.strerror or error}."
            ) from None
        row = {
            **described, "view_name": name or f"view_{digest[:_NAME_DIGITS]}", "sha256": digest, "file_name": file.name,
            "size_bytes": size, "created_by": created_by, "created_at": utc_now(), "named": name is not None,
        }  # fmt: skip
        self._remove_left_behind()
        try:
            with self._database.write() as session:
                found_again = {"evicted_at": None, "file_name": file.name, "size_bytes": size}
                session.execute(update(VIEWS).where(VIEWS.c.sha256 == digest).values(found_again))
                if not self._named(session, digest, name, created_by):
                    session.execute(insert(VIEWS).values(row))
                _refer(session, use, digest)
                self._make_room(session, digest)
        except BaseException:
            self._remove_unless_known(file.name)
            raise
        self._checked[file.name] = _stamp(file)
        return digest

    def used(self, trace_id: str, side: Side) -> dict[int, DataView]:
        """Return the data behind the previews in an execution's record, by their numbers."""
        mine = USES.c.trace_id == trace_id, USES.c.side == side
        with self._database.read() as session:
            uses = session.execute(select(USES.c.number, USES.c.sha256).where(*mine)).all()
            views_by_digest = {
                view.sha256: view for view in self._select(session, VIEWS.c.sha256.in_([d for _, d in uses]))
            }
        return {number: views_by_digest[digest] for number, digest in uses if digest in views_by_digest}

    def is_open_to(self, view: DataView, persona: str) -> bool:
        """Return whether an execution for that persona used the view or returned it, or a user named it.

        Trials and searches do not count, because a person did not accept their code. If a tool is called `user` too, it
        is not known who named the view.
        """
        log = table_of(ExecutionLog)
        used = select(USES.c.sha256).join(log, log.c.trace_id == USES.c.trace_id)
        accepted = log.c.persona == persona, func.coalesce(log.c.origin, "").not_in(TRIED_ORIGINS)
        mine = used.where(USES.c.sha256 == view.sha256, *accepted).limit(1)
        users = VIEWS.c.sha256 == view.sha256, VIEWS.c.created_by == _BY_USER, VIEWS.c.named
        named = select(VIEWS.c.sha256).where(*users)
        tools = select(col(ToolRegistry.id)).where(col(ToolRegistry.tool_name) == _BY_USER)
        with self._database.read() as session:
            is_mine, is_named, is_tools = (session.execute(query).first() for query in (mine, named, tools))
        return is_mine is not None or (is_named is not None and is_tools is None)

    def get(self, name: str) -> DataView:
        """Return the view of that name; raise `ViewNotFound`."""
        with self._database.read() as session:
            for view in self._select(session, VIEWS.c.view_name == name) if isinstance(name, str) else ():
                return view
            names = builtins.list(session.scalars(select(VIEWS.c.view_name)))
        examples = f"There are: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}. " if names else ""
        raise ViewNotFound(
            f"There is no data view {named(name)}.",
            hint=did_you_mean(name, names).strip() or f"{examples}hk.views.list() lists them all.",
        )

    def list(self, limit: int = 100, kind: str | None = None) -> builtins.list[DataView]:
        """Return the views, newest first; only those of a kind if one is given, such as `DataFrame`."""
        check_whole("limit", limit)
        wanted = () if kind is None else (VIEWS.c.kind == kind,)
        with self._database.read() as session:
            return self._select(session, *wanted, limit=limit)

    def load(self, view: DataView) -> Any:
        """Return a view's value, equal to the kept value and of the same type.

        Raises `ViewGone`, and `ViewChanged` if the file has other content.
        """
        if view.file is None:
            raise ViewGone(
                f"The data of view {view.name!r} was evicted: all views together exceeded the budget.",
                hint="Give it a name to keep it (hk.views.put), or raise HEALKIT_VIEWS_MB.",
            )
        try:
            folder = self._with(view.file.name)
        except FileNotFoundError:
            folder = self.folder
        except OSError as error:
            raise ViewGone(
                f"The data of view {view.name!r} cannot be fetched from the shared place: {error}.",
                hint="Try again when the place in HEALKIT_VIEWS_URL can be reached.",
            ) from None
        try:
            return view_files.read_view(folder, view.file.name)
        except FileNotFoundError:
            raise ViewGone(
                f"The data of view {view.name!r} is not on this machine: there is no file {str(view.file)!r}.",
                hint="It was removed, or another machine that uses this database has it.",
            ) from None
        except (BadValue, OSError) as error:
            why = error.strerror or error if isinstance(error, OSError) else error
            raise ViewChanged(
                f"The file of view {view.name!r} has changed since it was kept: {why}. It is {str(view.file)!r}.",
                hint=f"The file was not used. Pass the same data again, or hk.views.remove({view.name!r}).",
            ) from None

    def fault(self, mentioned: MentionedView) -> str:
        """Say what is wrong with a view that an entry of the audit names; empty for nothing.

        An evicted or removed view is not wrong, nor is one whose file is on another machine.
        """
        name, digest = mentioned.name, view_files.digest_in(mentioned.file_name)
        with self._database.read() as session:
            named = session.execute(select(VIEWS).where(VIEWS.c.view_name == name)).first()
            here = VIEWS.c.sha256 == digest, VIEWS.c.evicted_at.is_(None)
            row = session.execute(select(VIEWS).where(*here).limit(1)).first()
        subject = f"Entry {mentioned.position} names the view {name!r}"
        written_once = named is not None and (
            named.created_at <= mentioned.timestamp or name.startswith(f"{mentioned.execution_id}/")
        )
        if named is not None and written_once and named.sha256 != digest:
            return f"{subject} with SHA-256 {str(digest)[:12]}…, but its row says {named.sha256[:12]}…."
        if row is None:
            return ""
        try:
            if row.file_name == mentioned.file_name:
                view_files.check_view(self._with(row.file_name), row.file_name)
            elif (
                view_files.identity(
                    view_files.encoded(view_files.read_view(self._with(_file_name(row)), _file_name(row)))
                )
                != digest
            ):
                return f"{subject}; its file {_file_name(row)!r} does not hold the data that was kept."
        except FileNotFoundError:
            return f"{subject}; its file does not exist." if self._database.path is not None else ""
        except (BadValue, OSError) as error:
            why = error.strerror or error if isinstance(error, OSError) else error
            return f"{subject}; its file {_file_name(row)!r} has changed since it was kept: {why}."
        return ""

    def remove(self, name: str) -> None:
        """Remove a name, and its data if no other name has it; raise `ViewNotFound`."""
        statement = select(VIEWS.c.sha256, VIEWS.c.file_name).where(VIEWS.c.view_name == name)
        with self._database.write() as session:
            if (row := session.execute(statement).first()) is not None:
                session.execute(delete(VIEWS).where(VIEWS.c.view_name == name))
                if not session.scalar(select(func.count()).where(VIEWS.c.sha256 == row.sha256)):
                    self._remove_file(_file_name(row))
        if row is None:
            self.get(name)  # raises

    def remove_unused(self) -> int:
        """Remove views without a user's name that no recorded execution uses; return how many."""
        with self._database.write() as session:
            unused = VIEWS.c.named.is_(False), VIEWS.c.sha256.not_in(select(USES.c.sha256))
            rows = session.execute(select(VIEWS.c.id, VIEWS.c.sha256, VIEWS.c.file_name).where(*unused)).all()
            session.execute(delete(VIEWS).where(VIEWS.c.id.in_([row.id for row in rows])))
            remaining_digests = set(
                session.scalars(select(VIEWS.c.sha256).where(VIEWS.c.sha256.in_([r.sha256 for r in rows])))
            )
            for row in rows:
                if row.sha256 not in remaining_digests:
                    self._remove_file(_file_name(row))
        return len(rows)

    def _named(self, session: Session, digest: str, name: str | None, created_by: str) -> bool:
        """Return whether the data exists and now has the name; raise `ViewError` if the name has other data."""
        if name is not None:
            if not name or len(name) > _NAME_MAX_CHARS:
                raise ViewError(f"A view's name has 1 to {_NAME_MAX_CHARS} characters.")
            stored_digest = session.scalar(select(VIEWS.c.sha256).where(VIEWS.c.view_name == name))
            if stored_digest not in {None, digest}:
                raise ViewError(
                    f"The data view {name!r} holds other data, and a view is written only once.",
                    hint=f"Use another name, or hk.views.remove({name!r}) first.",
                )
        here = VIEWS.c.sha256 == digest, VIEWS.c.evicted_at.is_(None)
        row = session.execute(select(VIEWS).where(*here).limit(1)).first()
        if row is None or not self._is_there(row):
            return False
        if name is not None and stored_digest is None:
            new_row = {
                **row._mapping,
                "view_name": name,
                "created_by": created_by,
                "created_at": utc_now(),
                "named": True,
            }
            del new_row["id"]
            session.execute(insert(VIEWS).values(new_row))
        return True

    def _select(
        self, session: Session, *where: ColumnElement[bool], limit: int | None = None
    ) -> builtins.list[DataView]:
        uses = select(func.count()).where(USES.c.sha256 == VIEWS.c.sha256).scalar_subquery()
        newest = (
            select(VIEWS, uses.label("uses"))
            .where(*where)
            .order_by(VIEWS.c.created_at.desc(), VIEWS.c.id.desc())
        )
        try:
            return [self._view(row) for row in session.execute(newest.limit(limit))]
        except (TypeError, ValueError, AttributeError) as error:  # from the columns' types, too
            raise ViewError(
                f"{self._damaged(session)} in {self._database.where} is damaged: {error}.",
                hint=(
                    "`healkit views remove NAME` removes it. If more rows are damaged, restore the database "
                    "from a copy."
                ),
            ) from None

    def _damaged(self, session: Session) -> str:
        """Say which view's row cannot be read."""
        for name in session.scalars(select(VIEWS.c.view_name)).all():
            try:
                for row in session.execute(
                    select(VIEWS, func.count().label("uses")).where(VIEWS.c.view_name == name)
                ):
                    self._view(row)
            except (TypeError, ValueError, AttributeError):
                return f"The row of the data view {named(name)}"
        return "A row of the data views"

    def _view(self, row: Row[*tuple[Any, ...]]) -> DataView:
        columns = msgspec.convert(row.columns, builtins.list[tuple[str, str, int]])
        shape, size = msgspec.convert((row.shape, row.size_bytes), tuple[tuple[int, ...], int])
        return DataView(
            row.view_name, row.kind, shape, [ViewColumn(*column) for column in columns],
            row.created_by, row.created_at, row.sha256, size,
            None if row.evicted_at else self.folder / _file_name(row), row.uses,
        )  # fmt: skip

    def _whole_file(self, digest: str) -> Path | None:
        """Return the data's file; None if there is none, or if its content is wrong and it must be written again."""
        here = VIEWS.c.sha256 == digest, VIEWS.c.evicted_at.is_(None)
        with self._database.read() as session:
            row = session.execute(select(VIEWS).where(*here).limit(1)).first()
        if row is None or not self._is_there(row):
            return None
        name = _file_name(row)
        stamp = _stamp(self.folder / name)
        if self._checked.get(name) != stamp or stamp is None:
            try:
                view_files.check_view(self.folder, name)
            except (BadValue, OSError):
                return None
            self._checked[name] = stamp
        return self.folder / name

    def _is_there(self, row: Row[*tuple[Any, ...]]) -> bool:
        try:
            plain_files.open_regular(self._with(_file_name(row)), _file_name(row)).close()
        except OSError:
            return False
        return True

    def _share(self, file: Path) -> None:
        """Copy a file to the shared place, unless it is already there; raise `OSError`."""
        if self._shared is not None:
            self._shared.put(file)

    def _with(self, name: str) -> Path:
        """Return the folder, and copy the file into it if only the shared place has it; raise `OSError`."""
        if self._shared is not None and view_files.is_own(name) and not (self.folder / name).exists():
            self._shared.bring(name, self.folder)
        return self.folder

    def _remove_file(self, name: str) -> None:
        """Remove a file here and in the shared place; raise `OSError`."""
        plain_files.remove_file(self.folder, name)
        if self._shared is not None and view_files.is_own(name):
            self._shared.remove(name)

    def _remove_unless_known(self, name: str) -> None:
        """Remove a file that was written for a failed row; if even that is not known, the file stays."""
        with suppress(DatabaseError, OSError), self._database.write() as session:
            conditions = VIEWS.c.file_name == name, VIEWS.c.evicted_at.is_(None)
            if session.scalar(select(func.count()).where(*conditions)) == 0:
                self._remove_file(name)

    def _make_room(self, session: Session, newest: str) -> None:
        """Evict views until the rest fits the budget, newest last; raise `ViewError` if named views alone exceed it."""
        size = select(func.sum(VIEWS.c.size_bytes)).where(VIEWS.c.evicted_at.is_(None))
        if (session.scalar(size) or 0) <= self._budget_bytes:  # with two names it counts twice
            return
        files = select(
            VIEWS.c.sha256, VIEWS.c.file_name, func.max(VIEWS.c.size_bytes).label("size"),
            func.max(VIEWS.c.created_at).label("at"), func.count().filter(VIEWS.c.named).label("names"),
        ).where(VIEWS.c.evicted_at.is_(None)).group_by(VIEWS.c.sha256, VIEWS.c.file_name)  # fmt: skip
        rows = session.execute(files).all()
        if sum(row.size for row in rows if row.names) > self._budget_bytes:
            raise ViewError(
                "There is not enough room: the named views would take more than "
                f"{self._budget_bytes // 2**20:,} MB.",
                hint="Remove some views (hk.views.remove), or raise HEALKIT_VIEWS_MB.",
            )
        over = sum(row.size for row in rows) - self._budget_bytes
        used = set(session.scalars(select(USES.c.sha256).distinct())) if over > 0 else set()
        room = self._budget_bytes - sum(row.size for row in rows if row.names)
        # One that does not fit even by itself goes, and not all others for it.
        may_go = [row for row in rows if not row.names]
        may_go.sort(key=lambda row: (row.size <= room, row.sha256 == newest, row.sha256 in used, row.at))
        for row in may_go:
            if over <= 0:
                return
            session.execute(update(VIEWS).where(VIEWS.c.sha256 == row.sha256).values(evicted_at=utc_now()))
            self._remove_file(_file_name(row))
            over -= row.size

    def _remove_left_behind(self) -> None:
        """Remove files of writers that were killed before they wrote the row."""
        with self._database.read() as session:
            file_names = set(session.scalars(select(VIEWS.c.file_name).where(VIEWS.c.evicted_at.is_(None))))
        oldest = time.time() - _LEFT_BEHIND_S
        with suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                is_orphan = view_files.is_own(file.name) and file.name not in file_names
                if is_orphan and file.stat(follow_symlinks=False).st_mtime < oldest:
                    plain_files.remove_file(self.folder, file.name)


def _refer(session: Session, use: Use | None, digest: str) -> None:
    """Record which data a preview stands for, in the transaction that finds or makes the view."""
    if use is not None:
        session.execute(delete(USES).filter_by(**use._asdict()))
        session.execute(insert(USES).values(sha256=digest, **use._asdict()))


def _file_name(row: Row[*tuple[Any, ...]]) -> str:
    """Return the name of a view's file, made from its digest; a changed row has no influence on it."""
    digest_name = f"{row.sha256}.parquet"
    for name in (row.file_name, digest_name):
        if view_files.digest_in(name) == row.sha256:
            return str(name)
    return "no-file"


def _stamp(file: Path) -> tuple[int, ...] | None:
    """Return the columns that change with a file's content."""
    try:
        status = file.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _described(value: Any) -> dict[str, Any]:
    """Return the columns of a view's row that describe its content."""
    kind, shape = type(value).__name__, [int(size) for size in getattr(value, "shape", (len(value),))]
    return {
        "kind": kind, "shape": shape, "row_count": shape[0] if shape else 1,
        "columns": [[column.name, column.dtype, column.nulls] for column in _columns(value)],
    }  # fmt: skip


def _columns(value: Any) -> list[ViewColumn]:
    package = type(value).__module__.partition(".")[0]
    if package == "pandas" and hasattr(value, "dtypes") and hasattr(value, "columns"):
        nulls = value.isna().sum().tolist()
        return [
            ViewColumn(str(n), str(d), c) for n, d, c in zip(value.columns, value.dtypes, nulls, strict=True)
        ]
    if package == "pandas" and hasattr(value, "isna") and hasattr(value, "name"):
        return [ViewColumn(str(value.name), str(value.dtype), int(value.isna().sum()))]
    if package == "pyarrow":
        return [
            ViewColumn(f.name, str(f.type), value.column(i).null_count) for i, f in enumerate(value.schema)
        ]
    if package == "polars":
        return [
            ViewColumn(column.name, str(column.dtype), column.null_count()) for column in value.get_columns()
        ]
    return []
