"""Kinds of edits, about a hundred, in one `TABLE`.

The order of the rows decides between candidates of equal score, so the modules are loaded in a fixed order.
"""

# isort: off
from healkit.parts.heal.advisors.search.operators import (  # noqa: F401 - each adds its rows
    arithmetic,
    calls,
    conditions,
    containers,
    frames,
    missing_parts,
    names,
    statements,
    multi_place,
)

# isort: on
from healkit.parts.heal.advisors.search.operators.definition import ROWS, Operator

TABLE: tuple[Operator, ...] = tuple(ROWS)
