"""Chance: checks that pass and fail with the same code.

A tool that draws a number, reads the clock or iterates over a set of texts may give another result each time. The same
is true if both outcomes are on record for the same code and equal arguments. Its checks are repeated before any
conclusion: a patch that passes once proves nothing, and a tool that passes once is not healthy.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator

from healkit.core.contracts.patches import Check, CheckResult
from healkit.core.contracts.vault import VaultEntry
from healkit.core.store.log_reader import Log
from healkit.core.store.models import ExecutionLog
from healkit.parts.heal.checks import check_text

#: Runs of a check in all, of one in processes of their own, and of a recorded run that passed.
RUNS, FRESH_RUNS, PASSING_RUNS = 10, 6, 3
#: Runs of a check that failed each time, where others of the same code vary.
SURE_RUNS = 40
#: Number of recorded executions that are compared.
_ROWS_MAX = 200
#: Name of what may come in another order in each process.
SET_ORDER = "the order of a set"
#: Names whose value may be another one each time, as patterns, each with an example.
SOURCES = {
    r"random\.(?!seed\b|Random\b)\w+": "random.choice",
    r"numpy\.random\.(?!seed\b)\w+": "numpy.random.rand",
    r"secrets\.\w+": "secrets.token_hex",
    r"uuid\.uuid[14]": "uuid.uuid4",
    r"os\.(urandom|getpid)": "os.urandom",
    r"time\.(time|time_ns|localtime|gmtime|ctime|asctime|strftime)": "time.time_ns",
    r"time\.(monotonic|perf_counter|process_time)\w*": "time.perf_counter_ns",
    r"datetime\.((date)?time|date)\.(now|today|utcnow)": "datetime.datetime.utcnow",
    r"pandas\.Timestamp\.(now|today)": "pandas.Timestamp.now",
}
_SOURCES = re.compile("|".join(SOURCES))
#: Makers of generators: with an argument, they begin with that.
_SEEDED = re.compile(r"numpy\.random\.(default_rng|RandomState|Generator|SeedSequence|PCG64)")
_ORDERED = {"list", "tuple", "iter", "next", "enumerate", "zip", "map", "join"}


@dataclasses.dataclass(frozen=True)
class Chance:
    """Check that passed and failed with the same code: how often each, on record or when it was repeated.

    source: Something that its code reads and that may differ each time, empty if unknown.
    failure: One of the failures.
    """

    check: Check
    failed: int
    runs: int
    source: str = ""
    failure: str = ""
    on_record: bool = False

    @property
    def counts(self) -> str:
        """Sentence with the counts."""
        runs = "recorded runs of this code" if self.on_record else "runs"
        why = f" ({self.failure})" if self.failure else ""
        sentence = f"{check_text(self.check)} failed in {self.failed} of {self.runs} {runs}{why}."
        return sentence[:1].upper() + sentence[1:]

    @property
    def sentence(self) -> str:
        """Sentence with the counts, and the changing source that the code reads."""
        read = f" The code reads {self.source}." if self.source else ""
        return f"It sometimes passes and sometimes fails. {self.counts}{read}"

    @property
    def advice(self) -> str:
        """Sentence that says how to remove chance."""
        if not self.source:
            return "Find out what the result depends on besides the arguments, and run it again."
        if self.source == SET_ORDER:
            return "Sort the set, and run it again."
        clock = self.source.startswith(("time.", "datetime.", "pandas."))
        return f"Give it {'the time as an argument' if clock else 'a seed'}, and run it again."


def chance_of(check: Check, results: list[CheckResult], source: str) -> Chance | None:
    """Return how often a repeated check failed; None if it always passed or never did."""
    decided = [result for result in results if result.outcome not in ("not_on_record", "not_run")]
    failed = [result for result in decided if result.outcome != "passed"]
    if not failed or len(failed) == len(decided):
        return None
    message = next((result.failure for result in failed if result.failure), "")
    return Chance(check, len(failed), len(decided), source, message)


def on_record(log: Log, entry: VaultEntry, check: Check) -> Chance | None:
    """Return how often a check's recorded run ended each way; None if all with this code ended one way."""
    recorded = None if check.log_id is None else log.get(check.log_id)
    if recorded is None or recorded.code_hash != entry.code_hash:
        return None
    page = log.query(tool=recorded.tool_name, persona=recorded.persona, tried=False, limit=_ROWS_MAX)
    rows: list[ExecutionLog] = [
        row
        for row in page.rows
        if row.code_hash == recorded.code_hash
        and row.arguments == recorded.arguments
        and row.status != "RUNNING"
    ]
    failed = [row for row in rows if row.status == "FAILURE"]
    if not failed or len(failed) == len(rows):
        return None
    message = f"{failed[0].ename}: {failed[0].evalue}"
    return Chance(check, len(failed), len(rows), failure=message, on_record=True)


def chance_in(code: str) -> str:
    """Return the first changing source that a code reads, such as `random.random`; empty if there is none.

    A generator with a seed does not change; nor do those of a seeded module.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    names = dict(_imported(tree))
    seeded = set[str]()
    sources: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            name = _dotted(node, names)
            if name in ("random.seed", "numpy.random.seed"):
                seeded.add(name.rpartition(".")[0])
            elif _SOURCES.fullmatch(name):
                sources.append((node.lineno, name))
        if isinstance(node, ast.Call) and node.args and _SEEDED.fullmatch(name := _dotted(node.func, names)):
            seeded.add(name)
    for _, name in sorted(sources):
        if name not in seeded and name.rpartition(".")[0] not in seeded:
            return name
    return SET_ORDER if _iterates_a_set(tree) else ""


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full name of an attribute of a module; empty if it is not one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *reversed(parts)])


def _iterates_a_set(tree: ast.Module) -> bool:
    """Return True if a set that the code makes is read in its order."""
    sets = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_set(node.value, frozenset())
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def ordered(node: ast.AST) -> Iterator[ast.expr]:
        if isinstance(node, ast.For | ast.comprehension):
            yield node.iter
        elif isinstance(node, ast.Call):
            called = node.func
            if (isinstance(called, ast.Name) and called.id in _ORDERED) or (
                isinstance(called, ast.Attribute) and called.attr == "join"
            ):
                yield from node.args
            elif isinstance(called, ast.Attribute) and called.attr == "pop" and not node.args:
                yield called.value

    iterables = (iterable for node in ast.walk(tree) for iterable in ordered(node))
    return any(_is_set(iterable, frozenset(sets)) for iterable in iterables)


def _is_set(node: ast.expr, names: frozenset[str]) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(node, ast.Set | ast.SetComp)
        or (isinstance(called, ast.Name) and called.id in ("set", "frozenset"))
        or (isinstance(node, ast.Name) and node.id in names)
    )
