"""Code that Python cannot read, made readable."""

from __future__ import annotations


def mended(code: str, name: str) -> list[tuple[str, str, float]]:
    return []
