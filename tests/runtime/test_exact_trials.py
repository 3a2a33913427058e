"""Trials whose arguments hold more than plain JSON.

They take and give values as they are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from healkit import Healkit
from healkit.errors import ArgumentsInvalid
from healkit.runtime.trials import Trial

DOUBLED = "def doubled(df):\n    df['a'] = df['a'] * 2\n    return df\n"
FRAME = pd.DataFrame({"a": [1, 2], "s": ["x", "y"]})


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
def test_a_frame_arrives_at_a_trial_and_comes_back(healkit: Healkit) -> None:
    """DATA-5: the result is a frame with its dtypes, what was passed is unchanged, and the log can be read."""
    first, second = healkit.trials([Trial(DOUBLED, {"df": FRAME}, "doubled")] * 2)
    assert first.failure is None
    for result in (first, second):
        pd.testing.assert_frame_equal(result.value, FRAME.assign(a=[2, 4]))
        assert result.outline == "DataFrame"
    assert FRAME["a"].tolist() == [1, 2]
    row = healkit.log.query(origin="trial").rows[0]
    assert '"columns": ["a", "s"]' in (row.result_summary or "").replace('":[', '": [').replace('","', '", "')


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
def test_a_frame_arrives_at_a_trial_on_an_executor(healkit: Healkit) -> None:
    """DATA-5: shares take and give exact values too."""
    with ThreadPoolExecutor(1) as executor:
        (result,) = healkit.trials([Trial(DOUBLED, {"df": FRAME}, "doubled")], executor=executor)
    pd.testing.assert_frame_equal(result.value, FRAME.assign(a=[2, 4]))


def test_plain_arguments_give_json_unless_exact_values_are_asked_for(healkit: Healkit) -> None:
    code = "def pair(x):\n    return (x, {1: 2})\n"
    plain, exact, given = healkit.trials(
        [
            Trial(code, {"x": 1}, "pair"),
            Trial(code, {"x": 1}, "pair", exact=True),
            Trial(code, {"x": (1,)}, "pair"),
        ]
    )
    assert plain.value == [1, {"1": 2}]
    assert exact.value == (1, {1: 2})
    assert given.value == ((1,), {1: 2})
    assert (plain.outline, exact.outline) == ("tuple[dict[int]]", "tuple[dict[int]]")


def test_a_result_that_cannot_cross_is_a_failure_of_an_exact_trial(healkit: Healkit) -> None:
    code = "def odd(x):\n    return object()\n"
    (result,) = healkit.trials([Trial(code, {"x": (1,)}, "odd")])
    assert result.failure is not None
    assert result.failure.code == "TOOL_RESULT_UNSUPPORTED"


def test_arguments_of_a_trial_that_cannot_cross_are_refused(healkit: Healkit) -> None:
    with pytest.raises(ArgumentsInvalid, match="x holds a value of type object"):
        healkit.trials([Trial("def f(x):\n    return x\n", {"x": object()}, "f")])
