"""`healkit map`, and the tool `map_tool` of agents."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from healkit.commands import options
from healkit.commands.agents import AgentAnswer, AgentCaller, AgentTool, uri
from healkit.commands.options import Option, word
from healkit.commands.parsing import split_label
from healkit.commands.table import FAILED, OK, Answer, Command, Json, Terminal, wrong
from healkit.core.contracts.vault import DEFAULT_PERSONA
from healkit.core.crossing import values
from healkit.errors import AgentRefused
from healkit.parts.maps.report import MapProgress, MapReport, progress_line

if TYPE_CHECKING:
    import pandas as pd

    from healkit.services import Services

#: Inputs that an agent may give, and results that it gets at once.
_AGENT_INPUTS_MAX, _AGENT_RESULTS = 1000, 100
_FILE = word("the inputs: a .jsonl, .csv or .parquet file", "FILE")
_RUN_ID = Option("run_id", "continue the map with this id, with the same inputs", metavar="ID")
_PARALLEL = Option(
    "parallel", "how many to run at a time; by default one for each processor", int, metavar="N", least=1
)
_OUT = Option(
    "out", "write the inputs with their results to a new .jsonl, .csv or .parquet file", metavar="FILE"
)


def map_command(
    services: Services,
    tool: Annotated[tuple[str, str | None, int | None], word("the tool's name", read=split_label)],
    file: Annotated[Path, _FILE],
    persona: Annotated[str, options.PERSONA] = "default",
    timeout: Annotated[float | None, options.TIMEOUT] = None,
    parallel: Annotated[int | None, _PARALLEL] = None,
    run_id: Annotated[str | None, _RUN_ID] = None,
    out: Annotated[Path | None, _OUT] = None,
    *,
    as_json: bool,
    terminal: Terminal,
) -> Answer:
    """Run a tool once for each row of a file. Exit 0: all succeeded; 1: some failed. Ctrl-C: you can continue later."""
    name, owner, revision = tool[0], tool[1] or persona, tool[2]
    if revision is not None:
        wrong("A map runs the active revision, but a revision was named.", f"Map {name!r}.")
    whose = "" if owner == DEFAULT_PERSONA else f" --persona {owner}"
    if out is not None and (out.exists() or out.suffix not in (".jsonl", ".csv", ".parquet")):
        wrong(f"{str(out)!r} cannot be written.", "Choose a new .jsonl, .csv or .parquet file.")
    line, ids = None if as_json else progress_line(), list[str]()

    def tell(progress: MapProgress) -> None:
        ids[:] = [progress.run_id]
        if line is not None:
            line(progress)

    try:
        report: MapReport = services.map(
            name,
            file,
            persona=owner,
            timeout=timeout,
            parallel=parallel,
            run_id=run_id,
            progress=tell,
        )
    except KeyboardInterrupt:
        for map_id in ids:
            terminal.say(f"\nTo continue: healkit map {name} {file}{whose} --run-id {map_id}")
        raise
    if line is not None:
        terminal.say("")
    if out is not None:
        _write(report.to_pandas(), out)
    notes = () if out is None else (f"{out} has the inputs with their results.",)
    data = lambda: _data(report)  # noqa: E731 - made when it is asked for
    hints = [f"Next: healkit heal {name}{whose} --log-id {group.log_id}" for group in report.groups[:1]]
    code = OK if report.ok else FAILED
    return Answer(lambda: str(report), data, hints=hints, notes=notes, exit_code=code)


def _write(frame: pd.DataFrame, out: Path) -> None:
    """Write the frame; in a table, values other than text, numbers and times are written as JSON."""
    if out.suffix == ".jsonl":
        with out.open("xb") as file:
            for row in frame.to_dict("records"):
                file.write(values.readable_json({str(name): value for name, value in row.items()}) + b"\n")
        return
    is_nested = frame.map(lambda value: isinstance(value, dict | list | tuple | set))
    for name in frame.columns[is_nested.any()]:
        frame[name] = [values.readable_json(value).decode() for value in frame[name]]
    if out.suffix == ".csv":
        frame.to_csv(out, index=False, mode="x")
        return
    for name in frame.columns:
        is_mixed = frame[name].dtype.kind == "O" and frame[name].dropna().map(type).nunique() > 1
        if is_mixed:  # a column of Parquet has one type
            frame[name] = frame[name].map(str, na_action="ignore")
    frame.to_parquet(out, index=False)


def _data(report: MapReport) -> Json:
    names = ("run_id", "total", "done", "failed", "earlier", "stopped", "duration_s")
    groups = [
        {"fingerprint": group.fingerprint, "error": group.ename, "count": group.count, "log_id": group.log_id}
        for group in report.groups
    ]
    return {name: getattr(report, name) for name in names} | {"failures": groups}


async def map_tool(
    call: AgentCaller, name: str, inputs: list[Any], timeout_s: float | None = None, run_id: str | None = None
) -> AgentAnswer:
    """Run a vault tool once for each of up to 1,000 objects of arguments. run_id: continue a map."""
    if len(inputs) > _AGENT_INPUTS_MAX:
        raise AgentRefused(
            f"{len(inputs):,} inputs are too many: one call takes at most {_AGENT_INPUTS_MAX:,}.",
            hint="Send them in several calls.",
        )
    limit_s = None if timeout_s is None else call.limited(timeout_s)
    report: MapReport = await call.services.amap(
        name, inputs, persona=call.persona, timeout=limit_s, run_id=run_id, client=call.client_name,
        progress=lambda progress: call.say(str(progress)),
    )  # fmt: skip
    return await asyncio.to_thread(_answer, report)


def _answer(report: MapReport) -> AgentAnswer:
    data = _data(report)
    for group in data["failures"]:
        group["execution"] = uri("executions", group["log_id"])
    data["results"] = [
        {"number": row["number"], "status": row["status"], "log_id": row["log_id"]}
        | ({"error": row["error"]} if row["error"] else {"result": values.readable(row["result"])[0]})
        for row in itertools.islice(report.rows(), _AGENT_RESULTS)
    ]
    if (left_out := report.done - len(data["results"])) > 0:
        data["left_out"] = f"{left_out:,} more results: get_execution(log_id) shows each"
    return AgentAnswer(data, failed=False)


COMMANDS = {"map": Command(map_command)}
TOOLS = {"map_tool": AgentTool(map_tool)}
