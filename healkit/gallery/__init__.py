"""Gallery of tools that are broken in the classic ways.

Each lesson is one vault entry with one mistake, the arguments that show it, and the question that leads a
class to it. Beside them stand healthy sample tools and two small tables of data. Everything here is data: the
code is kept in files of its own, as the vault stores it, and is never imported.

`hidden_examples.json` holds further examples of what is right. Only tests and benchmarks may open it: it
tells whether a patch that was found with the lesson's own examples is correct or merely fits them, so nothing
in the package reads it.
"""

from __future__ import annotations

from healkit.gallery.lessons import LESSONS, lesson
from healkit.gallery.samples import SAMPLE_TABLES, SAMPLES, Example, Lesson, Sample

__all__ = ["LESSONS", "SAMPLES", "SAMPLE_TABLES", "Example", "Lesson", "Sample", "lesson"]
