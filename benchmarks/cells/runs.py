"""Runs of cells in processes that are forked for them.

`Runner` keeps one process that has the libraries ready. Each run is a fork of it, in a folder of its own: texts are run
one after the other as a kernel would, and what they gave comes back as text that can be compared (`canonical`). Nothing
of healkit is loaded there. Run as a program this file is that process.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import inspect
import io
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: What a run may take.
TIMEOUT_S, MEMORY_BYTES, TEXT_MAX_CHARS = 20, 4 << 30, 200_000
READY = (
    "pandas",
    "numpy",
    "matplotlib.pyplot",
    "polars",
    "sklearn.linear_model",
    "sklearn.pipeline",
    "sqlalchemy",
)
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclasses.dataclass(frozen=True)
class Step:
    """Run of one text. error: the exception's name, empty without one. value: of its last expression; bound: of the
    names that it assigns.
    """

    error: str
    message: str
    line: int
    value: str
    printed: str
    bound: Mapping[str, str]


class Runner:
    """Process that runs texts in forks of itself; one at a time."""

    def __init__(self) -> None:
        env = {**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        self._turn = threading.Lock()
        self._seen: dict[str, list[Step]] = {}

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def run(self, texts: Sequence[str], files: Mapping[str, str] = {}, *, stop: bool = True) -> list[Step]:
        """Run texts in one namespace, beside those files. stop: end with the first that raises."""
        asked = json.dumps({"texts": list(texts), "files": dict(files), "stop": stop})
        with self._turn:
            if asked not in self._seen:
                assert self._process.stdin is not None
                assert self._process.stdout is not None
                self._process.stdin.write(asked + "\n")
                self._process.stdin.flush()
                self._seen[asked] = [Step(**step) for step in json.loads(self._process.stdout.readline())]
            return self._seen[asked]


def canonical(value: Any, depth: int = 0) -> str:
    """Return a value as text, the same for equal values: tables with index, dtypes and all that is in them."""
    kind = type(value)
    name, package = kind.__qualname__, kind.__module__.partition(".")[0]
    if depth > 6:
        return name
    if isinstance(value, bool) or value is None or isinstance(value, str | bytes | types.EllipsisType):
        return repr(value)
    if isinstance(value, float):
        return f"{name}:{value:.12g}"
    if isinstance(value, int | complex):
        return f"{name}:{value!r}"
    if isinstance(value, dict):
        items = (f"{canonical(k, depth + 1)}: {canonical(v, depth + 1)}" for k, v in value.items())
        return f"{name}{{{', '.join(items)}}}"
    if isinstance(value, set | frozenset):
        return f"{name}({', '.join(sorted(canonical(one, depth + 1) for one in value))})"
    if isinstance(value, list | tuple):
        return f"{name}[{', '.join(canonical(one, depth + 1) for one in value)}]"
    if package == "numpy" and hasattr(value, "dtype"):
        return f"numpy {value.dtype} {value.shape} {canonical(value.tolist(), depth + 1)}"
    if package == "pandas" and name == "DataFrame":
        columns = [canonical(value.iloc[:, i], depth + 1) for i in range(value.shape[1])]
        return (
            f"DataFrame {canonical(value.columns, depth + 1)} {columns} {canonical(value.index, depth + 1)}"
        )
    if package == "pandas" and name == "Series":
        shown = f"{value.name!r} {value.dtype} {canonical(list(value), depth + 1)}"
        return f"Series {shown} {canonical(value.index, depth + 1)}"
    if package == "pandas" and hasattr(value, "names") and hasattr(value, "dtype"):
        return f"Index {list(value.names)} {canonical(list(value), depth + 1)}"
    if package == "polars" and name == "DataFrame":
        return f"polars {value.schema} {canonical(value.to_dict(as_series=False), depth + 1)}"
    if package == "polars" and name == "Series":
        return f"polars {value.name} {value.dtype} {canonical(value.to_list(), depth + 1)}"
    if package == "matplotlib" and hasattr(value, "get_lines") and hasattr(value, "patches"):
        lines = [line.get_xydata() for line in value.get_lines()]
        bars = [(p.get_bbox().bounds if hasattr(p, "get_bbox") else repr(p)) for p in value.patches]
        said = [
            value.get_title(),
            value.get_xlabel(),
            value.get_ylabel(),
            [t.get_text() for t in value.texts],
        ]
        marks = [c.get_offsets().tolist() for c in value.collections if hasattr(c, "get_offsets")]
        return f"axes {canonical([lines, bars, said, marks], depth + 1)}"
    if inspect.ismodule(value) or inspect.isroutine(value) or inspect.isclass(value):
        return f"{name} {getattr(value, '__qualname__', value.__name__)}"
    if kind.__module__ == "__main__" and hasattr(value, "__dict__"):
        return f"{name} {canonical(vars(value), depth + 1)}"
    try:
        return f"{name} {ADDRESS.sub('', repr(value))}"
    except Exception:
        return name


def _run(text: str, space: dict[str, Any], number: int) -> Step:
    """Run a text in a namespace."""
    printed, name = io.StringIO(), f"<cell {number}>"
    value: Any = None
    bound: dict[str, Any] = {}
    try:
        with contextlib.redirect_stdout(printed):
            tree = ast.parse(text, name)
            last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            shown = last is not None and not text.rstrip().endswith(";")
            body = tree.body[:-1] if shown else tree.body
            for code in (
                ast.Module(body, []),
                ast.Expression(last.value) if shown and last is not None else None,
            ):
                if code is not None:
                    mode = "exec" if isinstance(code, ast.Module) else "eval"
                    made = compile(code, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
                    value = eval(made, space)
                    if made.co_flags & inspect.CO_COROUTINE:
                        value = asyncio.get_event_loop().run_until_complete(value)
            if value is not None:
                space["_"] = value
            names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            bound = {n: space[n] for n in sorted(names) if n in space}
            shown_value, shown_bound = (
                canonical(value),
                {n: canonical(v)[:TEXT_MAX_CHARS] for n, v in bound.items()},
            )
    except BaseException as error:
        lines = [
            at.tb_lineno for at in _entries(error.__traceback__) if at.tb_frame.f_code.co_filename == name
        ]
        line = (error.lineno or 0) if isinstance(error, SyntaxError) else (lines[:1] or [0])[0]
        return Step(
            type(error).__name__, str(error)[:2000], line, "", printed.getvalue()[:TEXT_MAX_CHARS], {}
        )
    return Step("", "", 0, shown_value[:TEXT_MAX_CHARS], printed.getvalue()[:TEXT_MAX_CHARS], shown_bound)


def _entries(at: types.TracebackType | None) -> list[types.TracebackType]:
    found = []
    while at is not None:
        found.append(at)
        at = at.tb_next
    return found


def _answer(asked: dict[str, Any], pipe: int) -> None:
    """Run what is asked for, in the fork, and write what it gave."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.alarm(TIMEOUT_S)
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    write_files(Path(folder), asked["files"])
    asyncio.set_event_loop(asyncio.new_event_loop())
    space: dict[str, Any] = {"__name__": "__main__"}
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    module.__dict__.update(space)
    space = module.__dict__
    steps = []
    for number, text in enumerate(asked["texts"]):
        steps.append(_run(text, space, number))
        if steps[-1].error and asked["stop"]:
            break
    shutil.rmtree(folder, ignore_errors=True)
    with os.fdopen(pipe, "w") as out:
        out.write(json.dumps([dataclasses.asdict(step) for step in steps]))


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder; a name that ends in `@latin-1` is in that encoding."""
    for name, text in files.items():
        path, _, encoding = name.partition("@")
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding=encoding or "utf-8", newline="")


def _serve() -> None:
    warnings.simplefilter("ignore")
    for name in READY:
        with contextlib.suppress(ImportError):
            __import__(name)
    for line in sys.stdin:
        asked = json.loads(line)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            try:
                _answer(asked, write)
            finally:
                os._exit(0)
        os.close(write)
        data = b""
        while select.select([read], [], [], TIMEOUT_S + 5)[0] and (part := os.read(read, 1 << 16)):
            data += part
        os.close(read)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lost = [dataclasses.asdict(Step("Ended", "the process ended", 0, "", "", {}))]
        print(data.decode() if data else json.dumps(lost), flush=True)


if __name__ == "__main__":
    _serve()
