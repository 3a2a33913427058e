"""Repair of code that Python cannot read.

`nearest_text` searches for texts near a `draft` that compile. `changes`, `delimiters` and `readings` propose the
changes that it tries.
"""
