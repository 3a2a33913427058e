"""Markers planted in data: none reaches a chooser.

A case is a generated frame with markers in every possible place. These are cells of several types, labels of columns
and of the index, their names, categories, attributes, field names of nested types. Each frame is data of a real
decision, with real tools that move cells to other places. These are labels, messages, names of exceptions, paths,
results, files, displays. Then everything that the chooser received is searched, as text, as a struct, and in the run's
stored form. The search covers whole markers and pieces of six characters, in upper and lower case, backwards, and in
other encodings. Prints one JSON object; ends with status 1 if one was found.

Then a chooser attacks: it names patients and salaries in guesses, and makes names of columns, counts, shared columns
and errors from cells. It does so on two frames that only differ in their cells, and must receive the same for both.

A plain word as a column's name in the caller's own frame is not a marker, unless a text column contains it too. A
chooser may see such names (docs/decisions.md).

`python benchmarks/decide_markers.py [--cases 10000] [--frames 100] [--seed N]`; the printed seed repeats a run.
"""

from __future__ import annotations

import argparse
import base64
import difflib
import json
import random
import re
import sys
import tempfile
import time
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from healkit import Healkit
from healkit.parts.decide import Turn, told
from healkit.parts.decide.decision import Decision
from healkit.parts.decide.operations import install
from healkit.parts.runs.contract import PolicyDefaults
from healkit.parts.runs.reader import read_run

PIECE = 6
LETTERS = "bcdfghjkmpqvwxz"  # no vowels, so that our words never have six of them
HEAD = "import pandas as pd\n\n\n"
TOOLS = {
    "pivot": "def pivot(df: pd.DataFrame):\n"
    "    return df.groupby('kind')['n'].sum().to_frame().T.reset_index(drop=True)\n",
    "rename": "def rename(df: pd.DataFrame):\n"
    "    return df.set_axis([str(df['kind'].iloc[0]) + str(i) for i in range(df.shape[1])], axis=1)\n",
    "label": "def label(df: pd.DataFrame):\n"
    "    out = df[['n']].copy()\n"
    "    out.index = df['kind'].astype(str)\n"
    "    out.index.name = str(df['kind'].iloc[0])\n"
    "    out.attrs = {'note': str(df['kind'].iloc[0])}\n"
    "    return out\n",
    "convert": "def convert(df: pd.DataFrame):\n    return df['kind'].astype(str).astype(float)\n",
    "missing": "def missing(df: pd.DataFrame):\n    return df[[str(df['kind'].iloc[0])]]\n",
    "custom": "def custom(df: pd.DataFrame):\n"
    "    name = str(df['kind'].iloc[0])\n"
    "    raise type(name, (Exception,), {})('no ' + name)\n",
    "opens": "def opens(df: pd.DataFrame):\n    return open('/nowhere/' + str(df['kind'].iloc[0])).read()\n",
    "listed": "def listed(df: pd.DataFrame):\n    return {str(v): [str(v)] * 3 for v in df['kind']}\n",
    "prints": "def prints(df: pd.DataFrame):\n    print(df['kind'].tolist())\n    return str(df['kind'].iloc[0])\n",
    "exits": "def exits(df: pd.DataFrame):\n    raise SystemExit(str(df['kind'].iloc[0]))\n",
}
GATHERED = ("convert", "missing", "custom", "opens", "listed", "prints", "exits")


def marker(random_: random.Random) -> str:
    """Make a word that occurs nowhere else; sometimes with digits, accents or spaces."""
    word = "".join(random_.choice(LETTERS) for _ in range(random_.randint(10, 14)))
    match random_.randrange(4):
        case 0:
            return word.capitalize()
        case 1:
            return f"{word[:5]}é{word[5:]}ß"
        case 2:
            return f"{word[:6]} {word[6:]}{random_.randrange(10)}"
    return word


def data_like(random_: random.Random, word: str) -> Any:
    """Make a label that contains the word and does not look like a name."""
    return random_.choice(
        [f"{word[:4]}7{word[4:]}", f"{word}@{word}", f"{word}\n", (word, word), f"{word}2024", word * 7]
    )


def frame_with(random_: random.Random, planted: list[str]) -> pd.DataFrame:
    """Make a frame with markers in many places; `planted` receives all of them."""

    def plant() -> str:
        planted.append(marker(random_))
        return planted[-1]

    rows = random_.randint(1, 6)
    columns: dict[Any, Any] = {"kind": [plant() for _ in range(rows)], "n": range(rows)}
    many = random_.sample(range(8), k=random_.randint(1, 4))
    if 0 in many:
        columns["group"] = pd.Categorical([plant()] * rows, categories=[planted[-1], plant()])
    if 1 in many:
        columns["nested"] = pd.Series([[plant()] for _ in range(rows)], dtype=object)
    if 2 in many:
        columns["bytes"] = pd.Series([plant().encode() for _ in range(rows)], dtype=object)
    if 3 in many:
        inner = pa.struct([(plant(), pa.string())])
        columns["deep"] = pd.Series([None] * rows, dtype=pd.ArrowDtype(inner))
    if 4 in many:
        number = random_.randrange(10**9, 10**10)
        planted.append(str(number))
        columns["number"] = [number] * rows
    if 5 in many:
        columns[planted[0]] = range(rows)  # a plain word, but a cell too
    frame = pd.DataFrame(columns)
    if 6 in many:
        label = data_like(random_, plant())
        frame = frame.rename(columns={"n": "n"})
        frame.insert(len(frame.columns), label, range(rows), allow_duplicates=True)
    if 7 in many:
        frame.index = pd.Index([plant() for _ in range(rows)], name=plant())
        frame.attrs = {"note": plant()}
    return frame


def needles(word: str) -> set[str]:
    """Return the searched forms of a marker, in lower case."""
    raw = word.encode()
    found = {word[at : at + PIECE] for at in range(len(word) - PIECE + 1)}
    found |= {piece[::-1] for piece in found}
    found |= {piece.encode().hex() for piece in found} | {word.encode("utf-16-le").hex()[:24]}
    found |= {
        urllib.parse.quote(word),
        json.dumps(word)[1:-1],
        "".join(f"&#{ord(letter)};" for letter in word[:PIECE]),
    }
    for pad in range(3):
        encoded = base64.b64encode(b"\0" * pad + raw).decode().rstrip("=")
        found.add(encoded[4:-2])
    return {form.lower() for form in found if len(form) >= PIECE}


class Tries:
    """Chooser that makes every choice in turn, whatever the result."""

    name = "tries"

    def __init__(self, choices: list[dict[str, Any]]) -> None:
        self._choices = iter(choices)

    def choose(self, turn: Turn) -> dict[str, Any] | None:
        return next(self._choices, None)


def choices_on(random_: random.Random, names: list[str]) -> list[dict[str, Any]]:
    """Choose a few steps that move cells to places where they do not belong."""
    chosen: list[dict[str, Any]] = []
    for number, tool in enumerate(("pivot", "rename", "label")):
        given = random_.choice(names)
        chosen.append(
            {"type": "execute_data_op", "tool": tool, "params": {"df": given}, "viewName": f"made{number}"}
        )
        names = [*names, given]
    chosen += [
        {"type": "gather_info", "tool": tool, "params": {"df": random_.choice(names)}}
        for tool in random_.sample(GATHERED, 3)
    ]
    chosen.append({"type": "execute_output", "tool": "prints", "params": {"df": random_.choice(names)}})
    chosen.append(
        {"type": "gather_info", "tool": "pivot", "params": {"df": random_.choice(names), "none": 1}}
    )
    chosen.append({"type": "finalize", "finalViewName": "made0"})
    return chosen


def staff(names: list[str], salaries: list[int]) -> dict[str, Any]:
    """Make data with names of patients in cells, and in labels as crosstab, pivot, get_dummies and transpose do."""
    rows = pd.DataFrame(
        {
            "patient": names,
            "region": ["North", "South"] * (len(names) // 2),
            "salary": salaries,
            "aliases": [[name, "none"] for name in names],
        }
    )
    wide = rows.pivot_table(index="region", columns="patient", values="salary", aggfunc="sum")
    return {
        "staff": rows.drop(columns="aliases"),
        "crossed": pd.crosstab(rows["region"], rows["patient"]).reset_index(),
        "wide": wide.rename_axis(None, axis=1).reset_index(),
        "capitals": wide.rename(columns=str.upper).rename_axis(None, axis=1).reset_index(),
        "dummies": pd.get_dummies(rows[["patient"]]),
        "bare": pd.get_dummies(rows["patient"]),
        "turned": pd.DataFrame({"salary": salaries}, index=names).T,
        "listed": rows[["aliases"]],
    }


def attacks(guesses: list[str]) -> list[dict[str, Any]]:
    """Choose steps that would spell cells, or reveal which of the guessed names exist."""

    def op(tool: str, **params: Any) -> dict[str, Any]:
        chosen.append(
            {"type": "execute_data_op", "tool": tool, "params": params, "viewName": f"v{len(chosen)}"}
        )
        return chosen[-1]

    def query(text: str) -> None:
        op("view_sql", query=text, staff="staff")

    chosen: list[dict[str, Any]] = []
    renamed = {"salary": guesses[0], "region": guesses[-1]}
    query("SELECT patient AS region, salary FROM staff")  # region is shared
    query("SELECT 1 AS one FROM range((SELECT max(salary) FROM staff))")
    letter = "ascii(substr((SELECT min(patient) FROM staff), {0}, 1))"
    spelled = ", ".join(f"CASE WHEN i < {letter.format(n)} THEN 1 END AS c{n}" for n in range(1, 9))
    query(f"SELECT {spelled} FROM range(300) AS numbers(i)")
    op("select_columns", data="staff", columns=["patient"], rename={"patient": "region"})
    op("select_columns", data="staff", columns=list(renamed), rename=renamed)
    op("filter_rows", data="staff", column="patient", operator="in", value=guesses)
    op("pivot_rows", data="staff", rows=["region"], columns="patient", values="salary")
    op("own_pivot", df="staff", guesses=guesses)
    op("passes", df="v4", guesses=guesses)
    op("group_rows", data="staff", by=[], aggregates={"region": {"column": "patient", "function": "max"}})
    aim = {"columns": guesses, "ranges": {name: [0, None] for name in guesses}}
    for view in ("crossed", "wide", "capitals", "dummies", "bare", "turned"):
        op("passes", df=view, guesses=guesses)
        op("drop_duplicates", data=view)["intended"] = aim
        op("sort_rows", data=view, by=guesses)
    op("missing_key", df="staff", guesses=guesses)
    chosen.append({"type": "finalize", "finalViewName": "staff"})
    return chosen


ATTACK_TOOLS = {
    "own_pivot": "def own_pivot(df: pd.DataFrame, guesses: list):\n"
    "    return df.pivot_table(index='region', columns='patient', values='salary').reset_index()\n",
    "passes": "def passes(df: pd.DataFrame, guesses: list):\n    return df.copy()\n",
    "missing_key": "def missing_key(df: pd.DataFrame, guesses: list):\n    return df[str(df['patient'].iloc[0])]\n",
}


def told_under_attack(
    healkit: Healkit, names: list[str], salaries: list[int], guesses: list[str]
) -> tuple[list[str], Decision]:
    """Decide with the attacking chooser; return what it received, without durations."""
    install(healkit)
    for name, code in ATTACK_TOOLS.items():
        healkit.vault.add(name, HEAD + code)
    tools = [
        *ATTACK_TOOLS, "view_sql", "select_columns", "filter_rows", "pivot_rows", "group_rows", "drop_duplicates",
        "sort_rows",
    ]  # fmt: skip
    chooser = Tries(attacks(guesses))
    caps = PolicyDefaults(same_state_revisits=90, hard_cap_steps=90)
    decision = healkit.decide(
        "Who?", staff(names, salaries), tools=tools, chooser=chooser, share=["staff.region"], policy=caps
    )
    return [re.sub(r'"duration_ms": ?[0-9.e+-]+', "", told(turn)) for turn in decision.sent], decision


def opened(path: Path) -> Healkit:
    """Open a Healkit and add the tools."""
    healkit = Healkit(path)
    for name, code in TOOLS.items():
        healkit.vault.add(name, HEAD + code)
    return healkit


def leaks(healkit: Healkit, random_: random.Random, frames: int) -> tuple[list[str], int, int]:
    """Decide on that many frames; return the markers that were sent, and counts of markers and of turns."""
    planted: list[str] = []
    data = {f"data{number}": frame_with(random_, planted) for number in range(frames)}
    chooser = Tries(choices_on(random_, list(data)))
    caps = PolicyDefaults(same_state_revisits=50)
    decision = healkit.decide("How many are there?", data, tools=list(TOOLS), chooser=chooser, policy=caps)
    assert len(decision.sent) >= 5, decision
    run = read_run(decision.run.folder)
    kept = [
        (run.path / ref.uri).read_text()
        for event in run.events
        for ref in event.evidence_refs
        if ref.kind == "turn"
    ]
    parts = [*map(told, decision.sent), *kept, repr(decision.sent[-1])]
    # Most of a turn was sent before: each piece between two quotes is searched once.
    text = "\n".join({piece for part in parts for piece in part.split('"')}).lower()
    found = [word for word in set(planted) if any(form in text for form in needles(word))]
    return found, len(planted), len(decision.sent)


def differences(healkit: Healkit, random_: random.Random) -> list[str]:
    """Attack two frames that only differ in their cells; return the lines that the chooser received for only one."""
    both: list[list[str]] = []
    one, other = ([marker(random_) for _ in range(8)] for _ in range(2))
    guesses = random_.sample([*one, *other], 16)
    for names in (one, other):
        salaries = random_.sample(range(76_000, 84_000), 8)  # with one number of digits, they are the same
        told_, decision = told_under_attack(healkit, sorted(names), salaries, guesses)
        assert decision.ok, decision
        both.append(told_)
    return [line for turns in zip(*both, strict=True) if len(set(turns)) > 1 for line in unequal(*turns)]


def unequal(one: str, other: str) -> list[str]:
    """Return the lines of one text that are not in the other."""
    return [
        line for line in difflib.unified_diff(one.splitlines(), other.splitlines(), n=0) if line[:1] in "+-"
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Plants markers in data and looks for them in what choosers are sent."
    )
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--frames", type=int, default=100, help="frames of one decision")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(2**31) if options.seed is None else options.seed
    random_, counts, found = random.Random(seed), Counter[str](), []
    begun = time.monotonic()
    done = 0
    while done < options.cases:
        with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "healkit.db") as healkit:
            for _ in range(5):  # each with its own database, so that none grows large
                frames = min(options.frames, options.cases - done)
                if not frames:
                    break
                leaked, planted, turns = leaks(healkit, random_, frames)
                found += leaked
                done += frames
                counts.update(cases=frames, markers=planted, turns=turns, decisions=1)
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "healkit.db") as healkit:
        found += differences(healkit, random_)
    print(
        json.dumps(
            {
                **counts,
                "found": len(found),
                "examples": found[:5],
                "seed": seed,
                "seconds": round(time.monotonic() - begun),
            }
        )
    )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
