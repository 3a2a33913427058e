"""Decisions: tools chosen by metadata, checked and audited.

A chooser (a plan, a person, a model) says what is done next by names, types and counts. `loop` takes the turns,
`labels` and `metadata` say what may be told, `telling` what is told to whom, `performing` runs tools on views,
`correction` corrects what missed its intended state, `record` writes it all down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healkit.contracts.decisions import (
    ColumnFacts,
    EntityQuestion,
    Intended,
    StepFacts,
    ToolFacts,
    Turn,
    ViewFacts,
)
from healkit.decisions.choosers import Chooser, Person, Plan, told
from healkit.lazy import lazy_names

if TYPE_CHECKING:
    from healkit.decisions.model_chooser import ModelChooser

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

__getattr__ = lazy_names(__name__, {"ModelChooser": "model_chooser"})
