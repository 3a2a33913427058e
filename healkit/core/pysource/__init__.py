"""Reading Python source code.

The package uses the standard library only and imports nothing here, because workers use it and must start fast.

- `nodes`: parts of a syntax tree, names that code binds and reads, types of expressions.
- `shapes`: the three kinds of Python tool, and examples in docstrings.
- `tracebacks`: tracebacks and fingerprints.
"""
