"""About ninety kinds of edits, each a row of one table."""

from healkit.healing.search.operators import (  # noqa: F401 - each adds its rows
    arithmetic,
    branches,
    calls,
    comparing,
    conditions,
    constants,
    containers,
    families,
    forgotten,
    inserting,
    missing,
    names,
    parts,
    statements,
    strings,
    together,
    wrapping,
)
from healkit.healing.search.operators.table import TABLE, Operator

__all__ = ["TABLE", "Operator"]
