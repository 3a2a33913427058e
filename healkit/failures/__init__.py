"""Failure catalogue: each exception matched, explained, fixed.

`explain` puts a failure into plain words; `kind_of` and `no_fix` serve a diagnosis; `lookup.proposals` gives the rules
advisor its patches.

- `pattern`: the shape of a row. `lookup`: all rows in one order, and the questions they answer.
- A module for each subject: its rows, and the functions that propose their fixes.
- `site`: the place of a failure, as the fixes see it. `known_names`: words that several subjects share.
- `syntax_repair`: repair of code that Python cannot read. `compiler`: where the compiler stops.
"""

from __future__ import annotations

from healkit.failures.lookup import explain, kind_of, no_fix
from healkit.failures.pattern import LEVELS, Explanation, Kind

__all__ = ["LEVELS", "Explanation", "Kind", "explain", "kind_of", "no_fix"]
