"""Exact values between host and worker, and in records.

A value arrives equal and of the same type, or it is refused. `values` is the interface of this package. `codec` encodes
the types of Python's library; `frames` and `arrays` encode those of pandas, Arrow and polars, and are imported with the
first such value. `regions` holds large contents in memory, `view_files` in files.
"""
