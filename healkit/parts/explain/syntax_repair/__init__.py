"""Repair of code that Python cannot read.

`nearest_text` searches texts near a `draft` that compile. The changes that it tries are proposed by `changes`,
`delimiters` and `readings`.
"""
