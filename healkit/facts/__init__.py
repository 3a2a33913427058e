"""Facts about a failure, read off its live objects.

A stored failure is text: it no longer knows which table lacked the column, or which row held the word that is no
number. While the exception and its frames exist, `observe` reads that, and the failure catalogue makes its sentence of
it. Where the objects do not show it, there is no fact and no sentence.

- `observers`: for which failure which reader is asked. `scene`: the failing line, its values, and the library's frames.
- `lookups`, `joins`, `conversions`, `columns`: pandas. `arrays`: numpy. `estimators`: scikit-learn.
- `values`: Python's own types.
- `packages`: modules whose package has another name. `suggestions`: names like the one that was not found.

It is loaded in workers and kernels, with the first failure there or in their fork server: the standard library only,
and no code of the user's objects is run. pandas, numpy and scikit-learn are met where the failing code has loaded them.
"""

from __future__ import annotations

from healkit.facts.observers import observe
from healkit.facts.suggestions import suggestions

__all__ = ["observe", "suggestions"]
