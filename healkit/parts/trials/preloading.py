"""Library that trials need, imported ahead by their server."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from healkit.config import Config
from healkit.core.contracts.rpc import Init
from healkit.core.workers.process import PANDAS_TAG
from healkit.parts.trials.messages import Batch

_PANDAS_CODE, _NUMPY_CODE = (re.compile(rf"\b(?:import|from)\s+{name}\b") for name in ("pandas", "numpy"))
_NUMPY_TAG = re.compile(rb'"@":\["(?:numpy|dtype|ndarray|objects|texts)"')


def preloading(config: Config, work: Sequence[Init | Batch]) -> Config:
    """Return the settings with the library that the work needs among those to be imported ahead."""
    wanted = ""
    for task in work:
        if _PANDAS_CODE.search(_source(task)) or any(PANDAS_TAG.search(text) for text in _texts(task)):
            wanted = "pandas"
            break
        if _NUMPY_CODE.search(_source(task)) or any(_NUMPY_TAG.search(text) for text in _texts(task)):
            wanted = "numpy"
    if not wanted or wanted in config.preload:
        return config
    return dataclasses.replace(config, preload=(*config.preload, wanted))


def _source(work: Init | Batch) -> str:
    """Return the code of the work, with what is run before it."""
    setups = [work.setup] if isinstance(work, Init) else [check.setup for check in work.checks]
    return "\n".join([work.code, *setups])


def _texts(work: Init | Batch) -> list[bytes]:
    """Return the encoded values of the work that may hold frames or arrays."""
    if isinstance(work, Init):
        return [bytes(work.cassette), *([bytes(work.arguments)] if work.exact else [])]
    exact = [check for check in work.checks if check.exact]
    encoded_values = [bytes(text) for check in exact for text in (check.arguments, check.expected)]
    return [*encoded_values, *(bytes(call.result) for call in work.cassette.calls)]
