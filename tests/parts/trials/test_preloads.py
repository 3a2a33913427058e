"""Libraries that a trial server imports ahead."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from healkit.config import Config
from healkit.core.contracts.rpc import Init
from healkit.core.contracts.tools import EntryRef
from healkit.core.crossing import values
from healkit.parts.trials.messages import Batch, BatchCheck
from healkit.parts.trials.trials import preloading

ENTRY = EntryRef("f", "default", 0, "")
PLAIN = "def f(x):\n    return x\n"


def work(code: str, arguments: Any = None, *, exact: bool = True) -> Init:
    sent = msgspec.Raw(values.encode(arguments or {})[0])
    return Init(ENTRY, code, sent, [], 1.0, 1.0, 0, 0, 100, 100, exact=exact)


@pytest.mark.parametrize(
    ("init", "wanted"),
    [
        (work(PLAIN), ()),
        (work(PLAIN, {"x": (1, 2)}), ()),
        (work("import pandas as pd\n" + PLAIN), ("pandas",)),
        (work("from numpy import array\n" + PLAIN), ("numpy",)),
        (work(PLAIN, {"x": pd.DataFrame({"a": [1]})}), ("pandas",)),
        (work(PLAIN, {"x": [pd.Timestamp("2024-01-01")]}), ("pandas",)),
        (work(PLAIN, {"x": np.array([1.0])}), ("numpy",)),
        (work(PLAIN, {"x": "import pandas"}, exact=False), ()),
    ],
)
def test_the_library_of_code_or_arguments_is_imported_ahead(init: Init, wanted: tuple[str, ...]) -> None:
    assert preloading(Config(), [work(PLAIN), init]).preload == wanted


def test_a_batch_says_by_its_checks_what_it_needs() -> None:
    frame = msgspec.Raw(msgspec.json.encode({"df": values.kept(pd.DataFrame({"a": [1]}))}))
    checks = [BatchCheck(), BatchCheck(arguments=frame, exact=True)]
    batch = Batch(
        entry=ENTRY,
        code=PLAIN,
        checks=checks,
        every=False,
        memory_bytes=0,
        result_max_bytes=0,
        output_max_bytes=0,
    )
    assert preloading(Config(), [batch]).preload == ("pandas",)
    known = Config(preload=("pandas", "csv"))
    assert preloading(known, [batch]) is known
