"""Cards of the same message, raised with other objects.

A sentence of the catalogue may take for granted that a message is about a table, or a dict. Here each is raised about
something else. `natural`: what happens to an object of every kind is done to each of them. `anew`: the example of each
row of the catalogue gives its exception, which a function then raises that is called with each of them. What a card
says (`what` and `why`) is compared with the kind of the object: a claim about another kind, of which neither the
message nor the code says a word, is listed.
"""

from __future__ import annotations

import queue
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from cells.books import LOAD, Kernel, card_words

#: Objects, by their kinds: what makes one.
OWNERS = {
    "dict": "value = {'alpha': 1, 'beta': 2}",
    "frame": "import pandas as pd\nvalue = pd.DataFrame({'alpha': [1, 2], 'beta': [3.5, 4.5]})",
    "series": "import pandas as pd\nvalue = pd.Series([1, 2], index=['alpha', 'beta'])",
    "list": "value = ['alpha', 'beta']",
    "array": "import numpy as np\nvalue = np.array([1.0, 2.0])",
    "module": "import statistics as value",
    "own class": "class Holder:\n    alpha = 1\nvalue = Holder()",
    "None": "value = None",
}
#: Words by which a sentence is about a kind of object.
ABOUT = {
    "dict": r"\bdict(ionary)?\b|\bthe keys?\b",
    "frame": r"\btables?\b|\bDataFrame\b|\bcolumns?\b|\bframe\b",
    "series": r"\bSeries\b|\bcolumns?\b",
    "list": r"\blists?\b",
    "array": r"\barrays?\b|\bnumpy\b",
    "module": r"\bmodules?\b|\bpackages?\b",
    "None": r"\bNone\b",
}
#: What is done to each; `{}` is put into a context.
NATURAL = (
    "value['missing']", "value.missing", "value.missing()", "value()", "value[99]", "value + 'x'", "value > 'x'",
    "int(value)", "value.sum(axes=1)", "value['alpha']['beta']", "value.alpha.beta", "float(value)", "sum(value)",
    "sorted([value, None])", "open(value)", "value.append(1, 2)", "value['alpha':'beta']", "value(1)['alpha']",
    "{value: 1}", "range(value)", "value.mean('alpha')", "value[0, 1]", "[*value][9]", "value @ value", "value - None",
    "'%d' % value",
)  # fmt: skip
CONTEXTS = {
    "assignment": "result = {}",
    "condition": "if {}:\n    result = 1",
    "argument": "print({})",
    "chain": "result = ({}).head(3).tail(1)",
}
#: Defines `treat`, which raises the error of an example about any object, as a library would.
ANEW = """
def _made(example):
    space = {{"__name__": "__main__"}}
    def raised(value):
        exec(compile(example, "<example>", "exec"), space)
    space = {{}}
    exec(compile("def treat(value):\\n    raise error.with_traceback(None) from None", "<library>", "exec"), space)
    try:
        raised(None)
    except BaseException as error:
        space["error"] = error
        print(type(error).__name__, error)
    return space["treat"]
treat = _made({example!r})
"""


class Claim(NamedTuple):
    """Card of one message about one object. other: kinds that it speaks of, and that have no part in it."""

    way: str
    owner: str
    context: str
    code: str
    error: str
    message: str
    words: dict[str, str]
    other: tuple[str, ...]


def _other(owner: str, words: dict[str, str], *known: str) -> tuple[str, ...]:
    said = f"{words.get('what', '')} {words.get('why', '')}"
    kinds = [kind for kind, pattern in ABOUT.items() if re.search(pattern, said, re.IGNORECASE)]
    if owner in kinds or (owner in ("series", "frame") and {"series", "frame"} & set(kinds)):
        return ()
    return tuple(
        kind for kind in kinds if not any(re.search(ABOUT[kind], text, re.IGNORECASE) for text in known)
    )


def _claim(kernel: Kernel, way: str, owner: str, context: str, code: str) -> Claim | None:
    """Run a cell that fails, and read its card."""
    done = kernel.run(f"{OWNERS[owner]}\n{code}", "c1")
    if not done.error:
        return None
    words = card_words("\n".join(done.shown))
    head = (done.shown or ("",))[0].partition("\n")[0]
    message = head.partition("failed: ")[2].partition(": ")[2]
    return Claim(way, owner, context, code, done.error, message, words, _other(owner, words, message, code))


def natural(kernel: Kernel) -> Iterator[Claim]:
    """Do to each object what fails for some of them."""
    names = [*CONTEXTS]
    for owner in OWNERS:
        for number, done in enumerate(NATURAL):
            for context in (names[number % 4], names[(number + 2) % 4]):
                found = _claim(kernel, "natural", owner, context, CONTEXTS[context].format(done))
                if found is not None:
                    yield found


def anew(kernel: Kernel, row: str, example: str) -> Iterator[Claim]:
    """Raise what an example raises, about each object."""
    names = [*CONTEXTS]
    made = kernel.run(ANEW.format(example=example), history=False)
    if made.error or not made.printed:
        return
    for place, owner in enumerate(OWNERS):
        context = names[(len(row) + place) % 4]
        found = _claim(kernel, row, owner, context, CONTEXTS[context].format("treat(value)"))
        if found is not None and found.error == made.printed.partition(" ")[0]:
            yield found


def examples() -> dict[str, str]:
    """Return the examples of the catalogue's rows; not of those that end a process, or that Python cannot read."""
    from healkit.parts.explain.catalogue import subjects

    left_out = ("endings", "syntax", "imports", "general")
    patterns = [
        row for name, subject in subjects().items() if name not in left_out for row in subject.failure
    ]
    texts = [text for pattern in patterns for text in pattern.texts]
    return {
        text.name: code for text in texts if isinstance(code := getattr(text, "example", ""), str) and code
    }


def claims(told: Callable[..., object], part: slice = slice(None)) -> list[Claim]:
    """Read all cards. part: of the catalogue's rows."""
    chosen = [*examples().items()][part]
    found: list[Claim] = []
    while chosen:
        with tempfile.TemporaryDirectory() as folder, Kernel(Path(folder)) as kernel:
            kernel.run(LOAD)
            if not found:
                found += natural(kernel)
                told(f"{len(found)} cards of what fails by itself")
            try:
                while chosen:
                    row, example = chosen.pop(0)
                    found += anew(kernel, row, example)
                    if len(chosen) % 50 == 0:
                        told(f"{len(found)} cards; rows left: {len(chosen)}")
            except queue.Empty:
                told(f"{row} does not end")
    return found
