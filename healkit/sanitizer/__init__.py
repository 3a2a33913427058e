"""Sanitiser: hides secrets and personal data in what is kept.

`Sanitizer` is the service, `cleaner` the seam to it. A value meets the other modules in this order: `traversal` walks
nested data, `matcher` finds keywords and tries the rules of `tables` there, `assignments` with `assignment_syntax`,
`judged_values`, `bare_values`, `secret_names`, `secret_values` and `value_shapes` judges the value behind a secret's
name, `truncation` cuts. `rule` says what a rule is, `work_limit` how much work a text may cost, `custom_rules` reads a
user's own, `payloads` cleans whole records and traces, and `secret_map` hides with marks that can be taken back.

The names load when they are first used, because compiling the tables is slow and most modules need only the seam.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healkit.lazy import lazy_names

if TYPE_CHECKING:
    from healkit.sanitizer.rule import SanitizerRule
    from healkit.sanitizer.sanitizer import Sanitizer, sanitize

__all__ = ["Sanitizer", "SanitizerRule", "sanitize"]

__getattr__ = lazy_names(
    __name__, {"Sanitizer": "sanitizer", "SanitizerRule": "rule", "sanitize": "sanitizer"}
)
