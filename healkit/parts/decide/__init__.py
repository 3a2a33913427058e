"""Decisions: tools chosen by metadata, checked and audited.

One walk: `service` takes the question, `deciding` checks what was given, and `loop` takes the turns. In each turn
`telling` makes the metadata that may be told, one of the `choosers` chooses, `performing` runs the tool on views,
`correction` compares the result with its intended state and corrects it, and `record` writes it down. The answer is a
`decision`, with an `analysis` where one is asked for. Beside the walk: `operations`, the tools that come with healkit,
and `summaries` of texts and frames.
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
