"""Code that Python cannot read, made readable."""

from __future__ import annotations

from healkit.contracts.healing import apply_edits
from healkit.failures.imports import import_for
from healkit.failures.syntax_repair.judging import oddness
from healkit.failures.syntax_repair.search import nearest
from healkit.pysource.scope import unknown_names
from healkit.pysource.source import Source

__all__ = ["mended", "nearest"]


def mended(code: str, limit: int = 10) -> list[tuple[str, str, float]]:
    """Texts near a draft that parse: each with what was done, in one sentence, and a rank of 0 to 1; best first.

    Where one of them uses well-known names that it does not import, it comes with the imports too, before the one
    without.
    """
    found = []
    for item in nearest(code, limit):
        rank = max(0.05, 0.95 - 0.15 * item.cost)
        done = ", and ".join(item.done)
        sentence = f"Python can read it now: {done}."
        tree = oddness(item.text)[1]
        lines = [line for name in unknown_names(tree) if (line := import_for(name)) is not None]
        if lines:
            source = Source(item.text, tree)
            imports = source.add_import(source.newline.join(lines))
            found.append(
                (apply_edits(item.text, imports), f"{sentence[:-1]}, and what it uses is imported.", rank)
            )
        found.append((item.text, sentence, rank - 0.01 * bool(lines)))
    return found
