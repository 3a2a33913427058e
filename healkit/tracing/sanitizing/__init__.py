"""Sanitising: secrets redacted, people's data masked, cut.

`Sanitizer` is the service. The modules below it, in the order in which a text meets them: `walk` goes through nested
data, `engine` finds keywords and tries rules there, the tables are `places`, `tokens_*` and `personal`, `assignments`
with `names`, `syntax`, `values` and `shapes` judges what stands behind a secret's name, `sizes` cuts, and `custom`
reads a user's own rules.
"""

from __future__ import annotations

from healkit.tracing.sanitizing.rule import Rule
from healkit.tracing.sanitizing.sanitizer import Clean, Sanitizer, sanitize

__all__ = ["Clean", "Rule", "Sanitizer", "sanitize"]
