"""Facts about a failure, read off its live objects.

- `observers`: for which failure which reader is asked, and names like the missing one. `scene`: the failing line, its
  values, and the library's frames.
- `tables`, `columns`: pandas. `arrays`: numpy and scikit-learn. `values`: Python's own types, and packages.

It is loaded in workers and kernels, with the first failure there or in their fork server: the standard library only,
and no code of the user's objects is run. pandas, numpy and scikit-learn are met where the failing code has loaded them.
"""
