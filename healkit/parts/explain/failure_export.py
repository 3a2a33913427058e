"""Failure as a notebook of its own, and as a bug report.

Both must work without healkit, because their readers have neither the vault nor the log. So the notebook contains the
arguments, the code as it ran, and the failing call, which has the tag that lets nbclient expect an error. If a later
revision passed with the same arguments, it also contains the fixed code. Calls through the bridge return the recorded
answers. The sanitiser cleans everything first.
"""

from __future__ import annotations

import ast
import json
import math
import platform
import pprint
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from healkit.config import Config
from healkit.core.contracts.execution import ExecutionData
from healkit.core.crossing import values
from healkit.core.crossing.codec import HIDDEN
from healkit.core.pysource.nodes import names_in
from healkit.core.pysource.shapes import Shape, parse, read_shape
from healkit.core.rendering import cleaning, execution_card, plain
from healkit.core.rendering.plain import visible
from healkit.core.runtime import contents
from healkit.core.secrets.cleaner import UNLIMITED, learn, secret_columns
from healkit.errors import HealkitError, UsageInvalid, ViewGone
from healkit.parts.sanitizer.sanitizer import Sanitizer

if TYPE_CHECKING:
    import pandas as pd

    from healkit.core.contracts.explanation import Explanation
    from healkit.core.runtime.execution import Execution  # an execution writes itself by this module


#: A call is not made again where it would do harm, or never end: nbclient passes over cells with this tag.
_SKIPPED, _RAISES = "skip-execution", "raises-exception"
_TOOL = '''\
class Tool:
    """Stands in for healkit's base class of tools."""
'''
_BRIDGE = '''\
class _Recorded:
    """Answers the calls of the run with what was recorded of them, in their order."""

    def __init__(self, answers, path=()):
        self._answers, self._path = answers, path

    def __getattr__(self, name):
        return _Recorded(self._answers, (*self._path, name))

    def __call__(self, *args, **kwargs):
        server, tool, success, answer = self._answers.pop(0)
        assert self._path == (server, tool), f"the run called {{server}}.{{tool}} here, not {{'.'.join(self._path)}}"
        if not success:
            raise RuntimeError(answer)
        return answer

mcp = _Recorded({answers})
'''
_TRACE = '''\
class trace:
    """Stands in for what a tool tells of its branches."""

    decision = staticmethod(lambda node, outcome, condition="": None)
'''


class _Clean:
    """Sanitiser for everything that is exported, with a count of hidden values; all parts hide the same values."""

    def __init__(self, failed: ExecutionData) -> None:
        self.cleaner = Sanitizer.from_config(Config.from_environment()).of_record()
        self.hidden = 0
        failure = failed.failure
        failure_texts = None if failure is None else [failure.evalue, failure.traceback]
        if failure is not None:
            learn(failure, self.cleaner)
        cleaning.arguments(failed.arguments, self.cleaner)
        for part in (failed.code, failure_texts, failed.last_output):
            self.cleaner.clean(part, limit_bytes=UNLIMITED)

    def __call__(self, value: object) -> Any:
        cleaned = self.cleaner.clean(value, limit_bytes=UNLIMITED)
        self.hidden += sum(cleaned.hidden.values())
        return cleaned.value


def write_notebook(failed: Execution, path: str | Path, replay: Execution | None, *, overwrite: bool) -> Path:
    """Write the notebook and return its path; raises `UsageInvalid` where it cannot be written."""
    file = Path(path)
    if file.exists() and not overwrite:
        raise UsageInvalid(f"The file {str(file)!r} already exists.", hint="Choose another name.")
    book = notebook_of(failed, replay, file)
    try:
        file.write_text(nbformat.writes(book), encoding="utf-8")
    except OSError as error:
        raise UsageInvalid(
            f"Cannot write {str(file)!r}: {error.strerror}.", hint="Choose a path that you can write to."
        ) from None
    return file


def notebook_of(failed: Execution, replay: Execution | None, file: Path) -> Any:
    """Return the notebook as nbformat data; raises `UsageInvalid` if nothing failed or there is no code.

    Frames and arrays in the arguments go into a folder beside `file`.
    """
    if failed.failure is None or failed.code is None:
        why = "did not fail" if failed.failure is None else "has no code on record"
        raise UsageInvalid(f"{failed.label} {why}.", hint="Pass a failure that `hk.last_error()` returned.")
    raw = failed.uncleaned  # all of it passes `clean`, which counts what it hides
    clean = _Clean(raw)
    data = ExportedData(file.with_name(f"{file.stem}_data"), clean)
    cells = [
        *_failing_cells(raw, clean, data),
        *(_fixed_cells(replay.uncleaned, clean) if replay is not None else []),
    ]
    head = nbformat.v4.new_markdown_cell(_introduction(raw, failed.explain(), clean), id="about")
    metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    book = nbformat.v4.new_notebook(cells=[head, *cells], metadata=metadata)
    nbformat.validate(book)
    return book


def markdown_of(execution: Execution) -> str:
    """Write the failure as a bug report in Markdown."""
    explanation, failed = execution.explain(), execution.uncleaned
    clean = _Clean(failed)
    lines = [f"## {_escaped(clean(execution_card.headline(failed)))}", ""]
    if explanation is not None:
        lines += [f"- **{title}:** {clean(text)}" for title, text in explanation.steps()]
    if execution_card.has_arguments(failed):
        lines += ["", "Arguments:", "", *_fenced(_literal(clean(_readable(failed.arguments))), "python")]
    if failed.code is not None:
        lines += ["", "Code:", "", *_fenced(clean(failed.code), "python")]
    if failed.failure is not None:
        lines += ["", "Traceback:", "", *_fenced(clean(failed.failure.traceback), "text")]
    if failed.last_output.strip():
        lines += ["", "Last output:", "", *_fenced(clean(failed.last_output), "text")]
    lines += [
        "",
        f"{execution_card.record_line(failed)} · Python {platform.python_version()}",
        *_hidden(clean),
    ]
    return "\n".join(lines) + "\n"


def _introduction(failed: ExecutionData, explanation: Explanation | None, clean: _Clean) -> str:
    lines = [f"# {_escaped(clean(execution_card.headline(failed)))}", ""]
    if explanation is not None:
        lines += [f"- **{title}:** {clean(text)}" for title, text in explanation.steps()]
    lines += [
        "",
        "Recorded: " + execution_card.record_line(failed) + ".",
        "",
        "This notebook runs without healkit.",
    ]
    if "…" in failed.arguments:
        lines += ["", "The arguments were too long to keep in full, so they are cut below."]
    return "\n".join([*lines, *_hidden(clean)])


def _failing_cells(failed: ExecutionData, clean: _Clean, data: ExportedData) -> Iterator[Any]:
    failure, code = failed.failure, failed.code or ""
    assert failure is not None
    outputs = []
    if failed.last_output:
        outputs.append(
            nbformat.v4.new_output("stream", name="stdout", text=visible(clean(failed.last_output)))
        )
    traceback_lines = [visible(line) for line in clean(failure.traceback).splitlines()] or [failure.summary]
    error = nbformat.v4.new_output(
        "error", ename=failure.ename, evalue=clean(failure.evalue), traceback=traceback_lines
    )
    outputs.append(error)
    yield _markdown("## The arguments", "arguments-text")
    assignment = f"arguments = {data.code(failed.trace_id, failed.arguments)}"
    if data.missing:
        yield _markdown(f"Their data was not kept: {', '.join(data.missing)}.", "arguments-missing")
    yield _code("\n".join([*sorted(data.imports), assignment]), "arguments")
    if prelude := _prelude(failed, clean):
        yield _markdown("Stand-ins for the names that the worker provided:", "worker-text")
        yield _code(prelude, "worker")
    shape = _shape(failed)
    if shape is None:
        yield _markdown("## The code\n\n" + "\n".join(_fenced(clean(code), "sql")), "code-text")
        yield _markdown(
            "This is not Python. Result:\n\n" + "\n".join(_fenced("\n".join(traceback_lines), "text")),
            "failure",
        )
        return
    ended = failure.code == "TOOL_EXCEPTION"
    tags = [_RAISES] if ended else [_SKIPPED]
    first = next((frame.name for frame in failure.frames if frame.in_tool), "")
    at_definition = first == "<module>" and failed.origin != "cell"  # a cell has been made a function since
    if shape.kind == "script" or at_definition:
        yield _markdown("## The code, which fails", "code-text")
        yield _code(clean(code), "failure", tags, outputs)
        return
    yield _markdown("## The code", "code-text")
    yield _code(clean(code), "code")
    note = "" if ended else f"\n\nIt does not run again automatically: {execution_card.ending(failure)}."
    yield _markdown(f"## The failure{note}", "failure-text")
    yield _code(_call(shape, code), "failure", tags, outputs)


def _fixed_cells(replay: ExecutionData, clean: _Clean) -> Iterator[Any]:
    shape = _shape(replay)
    if shape is None or replay.code is None:
        return
    yield _markdown(f"## Fixed: {replay.label}\n\nThe same arguments, and a value.", "fixed-text")
    value = _json_or_text(clean(replay.result_summary or ""))
    outputs = [] if value is None else [
        nbformat.v4.new_output("execute_result", data={"text/plain": _literal(value)}, execution_count=None)
    ]  # fmt: skip
    if replay.calls:
        yield _code(_bridge(replay, clean), "fixed-worker")
    if shape.kind == "script":
        yield _code(f"{clean(replay.code).rstrip()}\nresult", "fixed", outputs=outputs)
        return
    yield _code(clean(replay.code), "fixed-code")
    yield _code(_call(shape, replay.code), "fixed", outputs=outputs)


def _prelude(failed: ExecutionData, clean: _Clean) -> str:
    """Return stand-ins for the names that a worker provides, as far as this tool uses them."""
    try:
        names = names_in(ast.parse(failed.code or ""))
    except (SyntaxError, ValueError):
        return ""
    pieces = [_TOOL] if "Tool" in names else []
    pieces += [_TRACE] if "trace" in names else []
    pieces += [_bridge(failed, clean)] if "mcp" in names else []
    return "\n\n".join(pieces)


def _bridge(execution: ExecutionData, clean: _Clean) -> str:
    answers = [
        (call.server, call.tool, bool(call.success), _json_or_text(clean(call.result_summary)) if call.success
         else clean(f"{call.error_code}: {call.error}"))
        for call in execution.calls
    ]  # fmt: skip
    return _BRIDGE.format(answers=_literal(answers))


def _shape(execution: ExecutionData) -> Shape | None:
    """Return which kind of Python tool it is; None for SQL."""
    try:
        return read_shape(parse(execution.code or "", "<code>"), execution.tool_name)
    except HealkitError:
        # A cell that is not a tool runs unchanged; SQL does not even parse.
        return Shape("script") if execution.origin == "cell" else None


def _call(shape: Shape, code: str) -> str:
    target = f"{shape.entry}().run" if shape.kind == "class" else shape.entry
    call = f"{target}(arguments)" if shape.takes_dict else f"{target}(**arguments)"
    is_async = re.search(rf"^\s*async def {re.escape(target.rpartition('.')[2])}\b", code, re.MULTILINE)
    return f"await {call}" if is_async else call


def _markdown(text: str, cell_id: str) -> Any:
    return nbformat.v4.new_markdown_cell(text, id=cell_id)


def _code(text: str, cell_id: str, tags: list[str] | None = None, outputs: list[Any] | None = None) -> Any:
    metadata = {"tags": tags} if tags else {}
    return nbformat.v4.new_code_cell(text.rstrip(), id=cell_id, metadata=metadata, outputs=outputs or [])


def _readable(value: object) -> Any:
    """Return a value in which text replaces everything that is not JSON."""
    if type(value) is dict:
        return {key: _readable(item) for key, item in value.items()}
    if type(value) is list:
        return [_readable(item) for item in value]
    return value if values.is_plain(value) else values.as_text(value)


def _literal(value: object) -> str:
    """Write a JSON value as Python does, wide ones over several lines."""
    return pprint.pformat(value, width=100, sort_dicts=False)


def _json_or_text(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_<>#\[\]])", r"\\\1", plain.one_line(text, 300))


def _fenced(text: str, language: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", visible(text.rstrip()), fence]


def _hidden(clean: _Clean) -> list[str]:
    return (
        ["", f"{plain.count(clean.hidden, 'value')} hidden: secrets and personal data."]
        if clean.hidden
        else []
    )


# Frames and arrays of an exported notebook.


#: Up to this many items a frame is written as code.
_CODE_ITEMS = 200
#: How many values of a column are looked at for secrets.
_LOOKED_AT = 1000


class _Source:
    """Expression that creates a value again; stands for the value in a literal."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __repr__(self) -> str:
        return self._code


class ExportedData:
    """Arguments of one execution as Python code; large ones go into files in `folder`.

    `imports` are the lines that the code needs; `missing` names the arguments whose data was not kept.
    """

    def __init__(self, folder: Path, clean: _Clean) -> None:
        self._folder, self._clean = folder, clean
        self._written = 0
        self.imports: set[str] = set()
        self.missing: list[str] = []

    def code(self, trace_id: str, arguments: dict[str, Any]) -> str:
        """Return the code of the arguments, cleaned.

        Raises `UsageInvalid` where a file cannot be written, and `ViewChanged`.
        """
        sources = {name: self._source(trace_id, value, name) for name, value in arguments.items()}
        return pprint.pformat(sources, width=100, sort_dicts=False)

    def _source(self, trace_id: str, value: object, name: str) -> Any:
        if isinstance(value, values.Preview):
            try:
                value = contents.data_behind(trace_id, value)
            except ViewGone:
                self.missing.append(name)
                return _Source(f"None  # {value!r}")
        if type(value) is dict:
            return {key: self._source(trace_id, item, f"{name}_{key}") for key, item in value.items()}
        if type(value) is list:
            return [self._source(trace_id, item, f"{name}_{i}") for i, item in enumerate(value)]
        return self._table(value, name) if values.is_tabular(value) else self._clean(value)

    def _table(self, value: Any, name: str) -> Any:
        import pandas as pd

        if isinstance(value, pd.DataFrame):
            frame = self._without_secrets(value)
            if math.prod(frame.shape) <= _CODE_ITEMS and (code := _frame_code(frame)) is not None:
                self.imports.add("import pandas as pd")
                return _Source(code)
            return self._file(name, "parquet", "pandas as pd", "pd.read_parquet({})", frame.to_parquet)
        if isinstance(value, pd.Series):
            frame = self._without_secrets(
                value.to_frame(value.name if isinstance(value.name, str) else "values")
            )
            return self._file(
                name, "parquet", "pandas as pd", "pd.read_parquet({}).iloc[:, 0]", frame.to_parquet
            )
        if type(value).__name__ == "ndarray":

            def save(path: Path) -> None:
                import numpy as np

                np.save(path, value, allow_pickle=False)

            return self._file(name, "npy", "numpy as np", "np.load({})", save)
        frame = self._without_secrets(
            value.to_pandas() if hasattr(value, "to_pandas") else pd.DataFrame(value)
        )
        return self._file(name, "parquet", "pandas as pd", "pd.read_parquet({})", frame.to_parquet)

    def _without_secrets(self, frame: pd.DataFrame) -> pd.DataFrame:
        first = frame.head(_LOOKED_AT)
        columns = {str(name): first.iloc[:, i].tolist() for i, name in enumerate(frame.columns)}
        hidden = secret_columns(self._clean.cleaner, columns)
        self._clean.hidden += len(hidden)
        masked = frame.copy(deep=False)
        for name in frame.columns:
            if str(name) in hidden:
                masked[name] = HIDDEN
        return masked

    def _file(self, name: str, suffix: str, module: str, code: str, save: Callable[[Path], Any]) -> Any:
        self._written += 1
        safe = "".join(letter if letter.isalnum() else "_" for letter in name)[:40]
        file = self._folder / f"{self._written}_{safe}.{suffix}"
        try:
            self._folder.mkdir(exist_ok=True)
            save(file)
        except OSError as error:
            raise UsageInvalid(
                f"Cannot write {str(file)!r}: {error.strerror}.", hint="Choose a path that you can write to."
            ) from None
        except Exception:  # noqa: BLE001 - pandas and numpy raise many kinds for what their files cannot hold
            file.unlink(missing_ok=True)
            self.missing.append(name)
            return _Source("None  # no file can hold it")
        self.imports.add(f"import {module}")
        return _Source(code.format(repr(f"{self._folder.name}/{file.name}")))


def _frame_code(frame: pd.DataFrame) -> str | None:
    """Return the code of a small frame; None where it would make another one."""
    import pandas as pd

    plain = {name: frame[name].tolist() for name in frame.columns} if frame.columns.is_unique else None
    if plain is None or not all(type(name) is str for name in plain):
        return None
    if not all(values.is_plain(items) for items in plain.values()):
        return None
    again = pd.DataFrame(plain)
    same = again.equals(frame) and list(again.dtypes) == list(frame.dtypes)
    return f"pd.DataFrame({pprint.pformat(plain, width=100, sort_dicts=False)})" if same else None
