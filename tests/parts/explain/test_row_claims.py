"""Claims of the catalogue's rows, true or passed over."""

from __future__ import annotations

import sys
import types
from typing import Any

import msgspec
import pytest
from library_failures import by_weight, run_code

from healkit.core.contracts.failure import Failure
from healkit.parts.explain.catalogue import patterns
from healkit.parts.explain.explanation import explain, holds

TEXTS = [text for pattern in patterns() for text in pattern.texts]
#: Rows that take something for granted beyond their message.
CLAIMED = [text for text in TEXTS if text.claim != "message" and text.example]
#: Objects that these rows do not describe, in the cell in which the message is raised anew.
ELSEWHERE = "from library_double import treat\n{value}\nresult = treat(value)"
VALUES = (
    "value = 'a text'",
    "class Holder:\n    pass\nvalue = Holder()",
    "value = None",
    "import math as value",
)
#: Packages whose own exceptions can be raised by nothing else.
OWN_ERRORS = ("polars", "pandas", "pyarrow", "numpy", "pydantic", "sklearn", "xml")


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Return a module whose function raises the `error` that it holds."""
    module = types.ModuleType("library_double")
    code = "def treat(value):\n    raise error.with_traceback(None) from None\n"
    exec(compile(code, "<library>", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "library_double", module)
    return module


def raised(code: str) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - an example of the catalogue, of any kind
        exec(compile(code, "<example>", "exec"), {"__name__": "__main__"})
    return caught.value


@pytest.mark.requirement("MEAN-6")
@pytest.mark.parametrize("texts", by_weight(CLAIMED))
def test_the_same_message_about_another_object_is_not_explained_so(double: Any, texts: list[Any]) -> None:
    told, tried = [], 0
    for text in texts:
        double.error = raised(text.example)
        if type(double.error).__module__.partition(".")[0] in OWN_ERRORS:
            continue
        tried += 1
        for value in VALUES:
            failure = run_code.__wrapped__(ELSEWHERE.format(value=value)).failure
            told += [(text.name, value)] if explain(failure).rule == text.name else []
    assert told == []
    assert tried > len(texts) / 3


def test_a_claim_of_several_kinds_holds_for_any_of_them() -> None:
    text = msgspec.structs.replace(CLAIMED[0], claim="dict and str or Series")
    known = [
        holds(text, Failure("TOOL_EXCEPTION", "KeyError", "", "", facts={"kinds": kinds}))
        for kinds in ("dict str", "Series", "dict", "")
    ]
    assert known == [True, True, False, False]
    assert holds(text, Failure("TOOL_EXCEPTION", "KeyError", "", ""))  # an older log knows no kinds
