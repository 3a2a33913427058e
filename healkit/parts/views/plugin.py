"""What data views hook into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from healkit.config import Config
from healkit.hooks import hookimpl, rows_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from healkit.core.runtime.contents import Contents
    from healkit.core.store.database import Database
    from healkit.parts.views.views import ViewKeeper, Views
    from healkit.services import Services


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit views`."""
    return rows_of("healkit.parts.views.commands", "views")


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`views`, and `view_keeper`, which keeps them."""
    return {"view_keeper": _view_keeper, "views": _views}


@hookimpl
def contents(services: Services) -> Contents:
    """Return the keeper of views."""
    keeper: ViewKeeper = services.view_keeper
    return keeper


@hookimpl
def tables() -> None:
    """Import the tables of the data that is kept."""
    from healkit.parts.views import tables as _tables  # noqa: F401 - to have them


@hookimpl
def deleting(session: Session, trace_ids: Sequence[str]) -> None:
    """Delete the records' references to their data."""
    from sqlalchemy import delete

    from healkit.parts.views.tables import USES

    session.execute(delete(USES).where(USES.c.trace_id.in_(trace_ids)))


@hookimpl
def pruned(database: Database) -> None:
    """Remove the views of data that only deleted executions used."""
    from healkit.core.store.locations import views_folder

    shared_url = Config.from_environment().views_url
    if shared_url or views_folder(database.path, database.url).exists():
        from healkit.parts.views.data_views import DataViews

        DataViews(database, 0, shared_url).remove_unused()


def _view_keeper(services: Services) -> ViewKeeper:
    from healkit.parts.views.views import ViewKeeper

    return ViewKeeper(services.database, services.config)


def _views(services: Services) -> Views:
    from healkit.parts.views.views import Views

    return Views(services.view_keeper, services.recorder.secret_columns)
