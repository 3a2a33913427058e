"""Commands for the database itself."""

from __future__ import annotations

from typing import Annotated

from healkit.commands.options import Option
from healkit.commands.table import Answer, Command, Group
from healkit.core.store.roles import roles_sql


def roles(
    name: Annotated[str, Option("name", "beginning of the roles' names")] = "healkit",
) -> Answer:
    """Print the SQL that makes the roles of a shared PostgreSQL database: a reader, a writer, an owner."""
    sql = roles_sql(name)
    return Answer(lambda: sql, text=sql)


COMMANDS = {"db": Group("A database that is shared.", {"roles": Command(roles, json=False)}, alone="roles")}
