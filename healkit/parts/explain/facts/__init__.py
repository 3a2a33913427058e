"""Facts about a failure, read off its live objects.

- `observers`: the readers for each failure, and names similar to the missing one.
- `scene`: the failing line, its values, and the library's frames.
- `tables`, `columns`: pandas.
- `arrays`: numpy and scikit-learn.
- `values`: Python's own types, and packages.

Workers and kernels load this package with the first failure. It uses only the standard library and runs no code of the
user's objects. It reads pandas, numpy and scikit-learn objects only if the failing code has loaded these packages.
"""
