"""Public logs of tool calls, from a checkout.

BFCL (github.com/ShishirPatil/gorilla): the ground truth of the multi-turn part, and the live single-turn questions.
tau-bench (github.com/sierra-research/tau-bench): the trajectories in `historical_trajectories`, where a checkout has
them, else the actions of the tasks' ground truth.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_BFCL = "berkeley-function-call-leaderboard/bfcl_eval/data"
_LIVE = ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")


class Call(NamedTuple):
    """Call, and what the user had asked for last."""

    tool: str
    intent: str


class Conversation(NamedTuple):
    """Calls in their order; those of one `group` are tries of one task, and left out together."""

    group: str
    calls: list[Call]


class Question(NamedTuple):
    """Intent, and the tools that are right for it."""

    intent: str
    tools: frozenset[str]


class Log(NamedTuple):
    """Conversations, and the text of each tool."""

    name: str
    documents: dict[str, str]
    conversations: list[Conversation]


def bfcl_multi_turn(gorilla: Path) -> Log:
    """Read the conversations of BFCL's multi-turn part; the variants with missing parts have the same calls."""
    documents = {
        one["name"]: _document(one)
        for file in sorted((gorilla / _BFCL / "multi_turn_func_doc").glob("*.json"))
        for one in _lines(file)
    }
    asked = {one["id"]: one["question"] for one in _lines(_one_of(gorilla / _BFCL, "multi_turn_base"))}
    found = []
    for answer in _lines(_one_of(gorilla / _BFCL / "possible_answer", "multi_turn_base")):
        calls = [
            Call(text.partition("(")[0].strip(), " ".join(said["content"] for said in turn))
            for turn, right in zip(asked[answer["id"]], answer["ground_truth"], strict=False)
            for text in right
        ]
        found.append(Conversation(answer["id"], calls))
    return Log("BFCL multi-turn", documents, found)


def bfcl_live(gorilla: Path) -> tuple[dict[str, str], list[Question]]:
    """Read the text of all tools of BFCL's live single-turn part, and its questions."""
    documents: dict[str, str] = {}
    questions = []
    for part in _LIVE:
        right = {
            one["id"]: frozenset(name for call in one["ground_truth"] for name in call)
            for one in _lines(_one_of(gorilla / _BFCL / "possible_answer", part))
        }
        for one in _lines(_one_of(gorilla / _BFCL, part)):
            for function in one["function"]:
                documents.setdefault(function["name"], _document(function))
            said = " ".join(
                said["content"] for turn in one["question"] for said in turn if said["role"] == "user"
            )
            questions.append(Question(said, right[one["id"]]))
    return documents, questions


def tau_bench(tau: Path, domain: str) -> Log:
    """Read the conversations of a domain of tau-bench, `airline` or `retail`."""
    folder = tau / "tau_bench" / "envs" / domain
    documents = {}
    for file in sorted((folder / "tools").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name == "get_info":
                last = node.body[-1]
                assert isinstance(last, ast.Return)
                assert last.value is not None
                about = ast.literal_eval(last.value)["function"]
                documents[about["name"]] = _document(about)
    files = [
        file
        for file in sorted((tau / "historical_trajectories").glob(f"*-{domain}.json"))
        if file.stat().st_size
    ]
    if files:
        found = [one for file in files for one in _trajectories(json.loads(file.read_text()))]
        return Log(f"tau-bench {domain}, {len(files)} of its files", documents, found)
    return Log(
        f"tau-bench {domain}, ground truth", documents, [*_tasks((folder / "tasks_test.py").read_text())]
    )


def _trajectories(read: list[dict[str, Any]]) -> Iterator[Conversation]:
    for one in read:
        calls, intent = [], ""
        for message in one["traj"]:
            if message["role"] == "user":
                intent = message["content"] or ""
            calls += [Call(call["function"]["name"], intent) for call in message.get("tool_calls") or ()]
        yield Conversation(str(one["task_id"]), calls)


def _tasks(code: str) -> Iterator[Conversation]:
    """Yield the right actions of each task; a file of tasks is Python, and is read without being run."""
    tasks = [
        {word.arg: word.value for word in node.keywords}
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Task"
    ]
    for number, task in enumerate(tasks):
        intent = ast.literal_eval(task["instruction"])
        actions = task["actions"]
        assert isinstance(actions, ast.List)
        names = [
            ast.literal_eval(word.value)
            for action in actions.elts
            if isinstance(action, ast.Call)
            for word in action.keywords
            if word.arg == "name"
        ]
        yield Conversation(str(number), [Call(name, intent) for name in names])


def _one_of(folder: Path, part: str) -> Path:
    """Return the newest version's file of a part."""
    found = sorted(folder.glob(f"BFCL_v*_{part}.json"))
    if not found:
        raise SystemExit(f"There is no BFCL_v*_{part}.json in {folder}: is it a checkout of gorilla?")
    return found[-1]


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open() as lines:
        for line in lines:
            yield json.loads(line)


def _document(about: dict[str, Any]) -> str:
    return f"{about['name']} {about.get('description', '')} {json.dumps(about['parameters'])}"
