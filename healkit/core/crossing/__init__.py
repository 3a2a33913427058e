"""Exact values between host and worker, and in records.

What is passed arrives equal and of the same type, or is refused. `values` is what everyone uses. It leaves the types of
Python's library to `codec`, those of pandas, Arrow and polars to `frames` and `arrays`, which are loaded with the first
such value. `regions` is the memory that large contents are handed over in, `view_files` their files.
"""
