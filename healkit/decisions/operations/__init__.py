"""Built-in operations on views, and the files that they make.

`install(hk)` puts them into the vault; they run as any other tool, in restricted workers. See docs/operations.md.
"""

from __future__ import annotations

from healkit.decisions.operations.catalogue import GROUP, OPERATIONS, Operation, operation
from healkit.decisions.operations.installing import InstallReport, install
from healkit.decisions.outputs import write_output

__all__ = ["GROUP", "OPERATIONS", "InstallReport", "Operation", "install", "operation", "write_output"]
