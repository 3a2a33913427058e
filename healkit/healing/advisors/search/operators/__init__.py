"""About a hundred kinds of edits, each a row of one table.

Between candidates of equal score the order of the rows decides, so the modules are loaded in a fixed order.
"""

# isort: off
from healkit.healing.advisors.search.operators import (  # noqa: F401 - each adds its rows
    arithmetic,
    branches,
    calls,
    comparisons,
    conditions,
    constants,
    containers,
    similar_functions,
    frame_methods,
    frame_columns,
    missing_updates,
    insertions,
    missing_cases,
    names,
    text_parts,
    statements,
    strings,
    multi_place,
    name_slips,
    wrapping,
)

# isort: on
from healkit.healing.advisors.search.operators.table import TABLE, Operator

__all__ = ["TABLE", "Operator"]
