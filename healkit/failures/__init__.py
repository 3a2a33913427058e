"""Failure catalogue: each exception matched, explained, fixed.

`explain` puts a failure into plain words, `kind_of` and `no_fix` serve a diagnosis. `healkit.failures.catalogue` has the patterns in their order, one module of
this package has those of one subject.
"""

from __future__ import annotations

from healkit.failures.catalogue import explain, kind_of, no_fix
from healkit.failures.pattern import LEVELS, Explanation, Kind

__all__ = ["LEVELS", "Explanation", "Kind", "explain", "kind_of", "no_fix"]
