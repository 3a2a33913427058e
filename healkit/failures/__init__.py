"""The failure catalogue: what is known of each exception.

`explain` puts a failure into plain words. `healkit.failures.catalogue` has the patterns in their order, one module of
this package has those of one subject.
"""

from __future__ import annotations

from healkit.failures.catalogue import explain
from healkit.failures.pattern import LEVELS, Explanation

__all__ = ["LEVELS", "Explanation", "explain"]
