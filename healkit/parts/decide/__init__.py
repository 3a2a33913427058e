"""Decisions: tools chosen by metadata, checked and audited.

- `service` takes the question, `deciding` checks the arguments, and `loop` runs the turns.
- In each turn, `telling` makes the metadata for the chooser, and one of the `choosers` chooses.
- `performing` runs the tool on views, `correction` compares the result with its intended state and corrects it, and
  `record` records it.
- The answer is a `decision`, with an `analysis` if one is requested.
- `operations` are the tools that come with healkit, and `summaries` are those of texts and frames.
"""

from healkit.parts.decide.choosers import Chooser, ModelChooser, Person, Plan, told
from healkit.parts.decide.records import (
    ColumnFacts,
    EntityQuestion,
    Intended,
    StepFacts,
    ToolFacts,
    Turn,
    ViewFacts,
)

__all__ = [
    "Chooser",
    "ColumnFacts",
    "EntityQuestion",
    "Intended",
    "ModelChooser",
    "Person",
    "Plan",
    "StepFacts",
    "ToolFacts",
    "Turn",
    "ViewFacts",
    "told",
]
