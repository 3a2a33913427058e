"""Repair of code that Python cannot read.

`repairs` proposes texts near a draft that compile, for the rules advisor; `nearest_text` searches them, the other
modules propose one change each kind.
"""

from __future__ import annotations

from healkit.failures.syntax_repair.nearest_text import nearest, repairs

__all__ = ["nearest", "repairs"]
