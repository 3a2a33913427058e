"""Tools of the vault's tests, and their requirements."""

from __future__ import annotations

import pytest

BROKEN = '''def fibonacci(n: int) -> int:
    """The n-th Fibonacci number."""
    return n / 0
'''
FIXED = BROKEN.replace("n / 0", "n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)")


V1, V2, V3 = (pytest.mark.requirement(f"VAULT-{n}") for n in (1, 2, 3))
V4, V5, V6, V8 = (pytest.mark.requirement(f"VAULT-{n}") for n in (4, 5, 6, 8))
