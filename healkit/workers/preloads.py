"""Libraries that a worker finds loaded.

A worker imports what its work needs, and pandas takes half a second. So a trial server for code or arguments of pandas
or numpy starts with that library, and its children find it there; for a tool that gets a frame there is a spare with
pandas. Only these two: they are the host's own, and a tool cannot change them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from healkit.config import Config
from healkit.contracts.healing import Batch
from healkit.contracts.rpc import Init

_PANDAS_CODE, _NUMPY_CODE = (re.compile(rf"\b(?:import|from)\s+{name}\b") for name in ("pandas", "numpy"))
_NUMPY_TAG = re.compile(rb'"@":\["(?:numpy|dtype|ndarray|objects|texts)"')
_PANDAS_TAG = re.compile(
    rb'"@":\["(?:DataFrame|Series|[A-Za-z]*Index|extension|Categorical|Timestamp|Timedelta|Period|Interval)"'
)


def preloading(config: Config, work: Sequence[Init | Batch]) -> Config:
    """Return the settings with the library that the work needs among those to be imported ahead."""
    wanted = ""
    for one in work:
        if _PANDAS_CODE.search(one.code) or any(_PANDAS_TAG.search(text) for text in _texts(one)):
            wanted = "pandas"
            break
        if _NUMPY_CODE.search(one.code) or any(_NUMPY_TAG.search(text) for text in _texts(one)):
            wanted = "numpy"
    if not wanted or wanted in config.preload:
        return config
    return dataclasses.replace(config, preload=(*config.preload, wanted))


def library_of(init: Init) -> str:
    """Return pandas where the arguments hold one of its frames, which the worker has to load before it can begin."""
    return "pandas" if init.contents and _PANDAS_TAG.search(bytes(init.arguments)) else ""


def _texts(work: Init | Batch) -> list[bytes]:
    """Return the encoded values of the work that may hold frames or arrays."""
    if isinstance(work, Init):
        return [bytes(work.arguments)] if work.exact else []
    exact = [check for check in work.checks if check.exact]
    return [bytes(text) for check in exact for text in (check.arguments, check.expected)]
