"""Decisions: tools chosen by metadata, checked and audited.

A chooser (a plan, a person, a model) says what is done next by names, types and counts. `service` is `hk.decide`,
`loop` takes the turns, `telling` says what may be told and to whom, `performing` runs tools on views, `correction`
corrects what missed its intended state, `record` writes it all down and reads it back, `operations` are the tools that
come with healkit.
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
