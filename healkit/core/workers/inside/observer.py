"""Observer of a tool's code: executed lines, types of names.

From Python 3.12 on, `sys.monitoring` (PEP 669) reports each line once and then has no cost. Before, `sys.settrace`
follows the frames of the tool's own code only. If the tool removes the observer, less is seen.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import CodeType, FrameType, TracebackType
from typing import Any

#: Maximum number of looks at one function's names; later iterations of a loop rarely show new types.
_LOOKS = 64
_NAMES_MAX, _TYPES_MAX, _LINES_MAX = 2000, 16, 20_000


class Observer:
    """Block in which a code object and all nested code objects are observed; only on this thread."""

    def __init__(self, code: CodeType) -> None:
        self._codes = _nested(code)
        self._filename = code.co_filename
        self._lines: set[int] = set()
        self._failed: dict[int, None] = {}
        self._types: dict[str, set[str]] = {}
        self._looked: Counter[CodeType] = Counter()

    def seen(self) -> dict[str, Any]:
        """`lines`, `failed_lines` and `types`, as in `contracts.patches.Observed`."""
        return {
            "lines": sorted(self._lines)[:_LINES_MAX],
            "failed_lines": list(self._failed)[-_LINES_MAX:],
            "types": {name: sorted(types)[:_TYPES_MAX] for name, types in self._types.items()},
        }

    def __enter__(self) -> None:
        if sys.version_info >= (3, 12):
            self._monitor()
        else:
            sys.settrace(self._trace)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, entry: TracebackType | None
    ) -> None:
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(_TOOL_ID, 0)
            sys.monitoring.free_tool_id(_TOOL_ID)
        else:
            sys.settrace(None)
        while entry is not None:
            if entry.tb_frame.f_code.co_filename == self._filename:
                self._failed.pop(
                    entry.tb_lineno, None
                )  # a recursion passes a place again; its last pass counts
                self._failed[entry.tb_lineno] = None
            entry = entry.tb_next

    def _look(self, frame: FrameType) -> None:
        """Note the types of a function's names when it ends; in a comprehension, those of its loop."""
        code = frame.f_code
        self._looked[code] += 1
        if self._looked[code] > _LOOKS:
            return
        variables = {} if code.co_name == "<module>" else dict(frame.f_locals)
        for name in code.co_names:
            if name in frame.f_globals:
                variables.setdefault(name, frame.f_globals[name])
        for name, value in variables.items():
            key = f"{code.co_name}.{name}"
            if key in self._types or len(self._types) < _NAMES_MAX:
                self._types.setdefault(key, set()).add(type(value).__name__)

    if sys.version_info >= (3, 12):

        def _monitor(self) -> None:
            monitoring = sys.monitoring
            events = monitoring.events
            monitoring.use_tool_id(_TOOL_ID, "healkit")
            monitoring.register_callback(_TOOL_ID, events.LINE, self._on_line)
            monitoring.register_callback(_TOOL_ID, events.PY_RETURN, self._on_return)
            monitoring.register_callback(_TOOL_ID, events.PY_UNWIND, self._on_unwind)
            for code in self._codes.values():
                monitoring.set_local_events(_TOOL_ID, code, events.LINE | events.PY_RETURN)
            monitoring.set_events(_TOOL_ID, events.PY_UNWIND)  # there is no local event for it

        def _on_line(self, _code: CodeType, line: int) -> object:
            self._lines.add(line)
            return sys.monitoring.DISABLE

        def _on_return(self, code: CodeType, _offset: int, _value: object) -> object:
            self._look(sys._getframe(1))
            return sys.monitoring.DISABLE if self._looked[code] >= _LOOKS else None

        def _on_unwind(self, code: CodeType, _offset: int, _error: BaseException) -> None:
            if id(code) in self._codes:
                self._look(sys._getframe(1))

    else:

        def _trace(self, frame: FrameType, _event: str, _value: object) -> Any:
            return self._local if id(frame.f_code) in self._codes else None

        def _local(self, frame: FrameType, event: str, _value: object) -> Any:
            if event == "line":
                self._lines.add(frame.f_lineno)
            elif event == "return":  # it also happens when an exception leaves the frame
                self._look(frame)
            return self._local


#: One of the six free tool ids of PEP 669.
_TOOL_ID = 4


def _nested(code: CodeType) -> dict[int, CodeType]:
    """Return the code object and all nested ones, by identity, because two equal lambdas are two objects."""
    codes, waiting = dict[int, CodeType](), [code]
    while waiting:
        current = waiting.pop()
        codes[id(current)] = current
        waiting += [constant for constant in current.co_consts if isinstance(constant, CodeType)]
    return codes
