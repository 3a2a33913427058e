"""Chance of success of a run, by its tool and its arguments.

A logistic regression uses a tool's recent share of successes, and features of the arguments (missing, type, empty,
sign, size, a frequent value). Isotonic regression calibrates its answers. Every number is prequential: each run is
predicted from earlier runs, then learned. The baseline is the tool's share of successes so far. If the model does not
beat the baseline by more than its standard error, it is off for that tool, and the share counts.

A warning needs no model. It is a count on record: the last runs with one feature failed, and those without it did not.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from healkit.core.rendering import plain
from healkit.core.rendering.document import Card, Line, Span, Table
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.core.store.database import Database
from healkit.core.store.statements import RUNS_OF, TOOLS_RUN
from healkit.errors import is_refused
from healkit.parts.learn.facts import NOT_ITS_OWN, load_extra

if TYPE_CHECKING:
    import pandas as pd
    from IPython.lib.pretty import RepresentationPrinter

#: Newest runs of one tool that are learned from, those that a warning looks at, and those with one feature it names.
RUNS_MAX, WARNED_BY, _WARNED_MAX = 2000, 200, 20
#: First fit, and how much more there must be for the next one.
_FIRST, _GROWTH = 20, 1.1
#: Runs after which the recent share forgets half; those of another code count so much in it and in the regression.
_HALF_LIFE, _OTHER_CODE = 30.0, 0.2
#: Least runs for calibration, for the model to be on, and how many of the newest decide whether it is.
_CALIBRATED_FROM, _ON_FROM, _WINDOW = 100, 30, 300
#: Values that are features of their own: short, and seen so often.
_VALUE_CHARS, _SEEN_LEAST = 40, 3
#: What a warning needs: runs with the feature, the share of them that failed, and of the others that succeeded.
_WARN_RUNS, _WARN_FAILED, _WARN_OTHERS = 5, 0.95, 0.8


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """Run to learn from; arguments are None if the log does not contain them completely."""

    arguments: Mapping[str, Any] | None
    succeeded: bool
    code_hash: str = ""
    ename: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Played:
    """Prediction of one run before it was made: by the model, by the base rate, and by the one in use."""

    model: float
    base: float
    used: float
    succeeded: bool


@dataclasses.dataclass(frozen=True)
class SuccessRow:
    """Prediction of one tool's success, as measured on its own runs.

    `brier_*` is the mean squared error, lower is better, of the model, of the base rate, and of the one in use. `ece`
    is the expected calibration error of the one in use. `on` says whether the model is in use now.
    """

    tool: str
    runs: int
    successes: float
    brier_model: float
    brier_base: float
    brier_used: float
    ece: float
    on: bool


class SuccessReport(tuple[SuccessRow, ...]):
    """Predictions of all tools with enough runs, the most runs first."""

    __slots__ = ()

    def __str__(self) -> str:
        return text_of(self.card())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_of(self.card())

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each tool."""
        import pandas as pd

        names = [field.name for field in dataclasses.fields(SuccessRow)]
        return pd.DataFrame([dataclasses.astuple(row) for row in self], columns=names)

    def card(self) -> Card:
        if not self:
            return Card(
                "No tool has enough runs yet",
                below=[Line(Span(f"A tool needs {_ON_FROM} runs.", "quiet"))],
            )
        rows = [
            (row.tool, f"{row.runs:,}", f"{row.successes:.0%}", f"{row.brier_model:.3f}", f"{row.brier_base:.3f}",
             f"{row.ece:.3f}", "on" if row.on else "off")
            for row in self
        ]  # fmt: skip
        heads = ("tool", "runs", "succeeded", "Brier, model", "Brier, base rate", "ECE", "model")
        title = (
            f"Success predicted for {plain.count(len(self), 'tool')}, on for {sum(row.on for row in self)}"
        )
        return Card(title, tone="info", parts=[Table(heads, rows)])


def success_report(database: Database) -> SuccessReport:
    """Measure the prediction of each tool on its own runs."""
    names = [row["tool_name"] for row in database.fetch(TOOLS_RUN)]
    rows = [row for name in names if (row := success_row(name, read_runs(database, name))) is not None]
    return SuccessReport(sorted(rows, key=lambda row: (-row.runs, row.tool)))


def read_runs(database: Database, tool: str, limit: int = RUNS_MAX) -> list[Run]:
    """Return the newest runs of a tool, oldest first.

    A call that the tool's schema refused is a failure caused by its arguments. Other refused calls, stopped ones, and
    those that only tried code are ignored.
    """
    return [
        Run(
            row["arguments"] if isinstance(row["arguments"], dict) else None,
            row["status"] == "SUCCESS",
            row["code_hash"] or "",
            row["ename"] or row["error_code"] or "",
        )
        for row in reversed(database.fetch(RUNS_OF, tool_name=tool, limit=limit))
        if row["error_code"] not in NOT_ITS_OWN
        and (row["error_code"] == "ARGUMENTS_INVALID" or not is_refused(row["error_code"]))
    ]


def success_row(tool: str, runs: Sequence[Run]) -> SuccessRow | None:
    """Return the report's facts about a tool; None if it has too few runs."""
    if len(runs) < _ON_FROM:
        return None
    played, on = play(runs)
    return SuccessRow(
        tool,
        len(runs),
        sum(run.succeeded for run in runs) / len(runs),
        brier([prediction.model for prediction in played], played),
        brier([prediction.base for prediction in played], played),
        brier([prediction.used for prediction in played], played),
        calibration_error([prediction.used for prediction in played], played),
        on,
    )


def brier(predicted: Sequence[float], played: Sequence[Played]) -> float:
    """Return the mean squared error of predictions."""
    return fmean((guess - outcome.succeeded) ** 2 for guess, outcome in zip(predicted, played, strict=True))


def calibration_error(predicted: Sequence[float], played: Sequence[Played], bins: int = 10) -> float:
    """Return the expected calibration error: bins of equal width, each weighted by its runs."""
    gaps = [0.0] * bins
    for guess, outcome in zip(predicted, played, strict=True):
        gaps[min(bins - 1, int(guess * bins))] += guess - outcome.succeeded
    return sum(map(abs, gaps)) / len(played)


def play(runs: Sequence[Run]) -> tuple[list[Played], bool]:
    """Predict each run from earlier ones; return the predictions, and whether the model would be in use now."""
    recent = list(_recent_rates(runs))
    names = sorted({name for run in runs for name in run.arguments or ()})
    run_features = [features(run.arguments, names) for run in runs]
    played: list[Played] = []
    raw: list[float] = []
    gains: deque[float] = deque(maxlen=_WINDOW)
    model: _Model | None = None
    successes, next_fit, total, squares, on = 0, _FIRST, 0.0, 0.0, False
    for at, run in enumerate(runs):
        base = (successes + 1) / (at + 2)
        if at >= next_fit:
            next_fit = int(at * _GROWTH) + 1
            model = _Model.fitted(runs[:at], run_features[:at], recent[:at], raw)
        raw.append(recent[at] if model is None else model.uncalibrated(run_features[at], recent[at]))
        guess = raw[-1] if model is None else model.calibrated(raw[-1])
        played.append(Played(guess, base, guess if on else base, run.succeeded))
        successes += run.succeeded
        # The model is on while its mean gain is above its standard error.
        dropped = gains[0] if len(gains) == _WINDOW else 0.0
        gains.append((base - run.succeeded) ** 2 - (guess - run.succeeded) ** 2)
        total, squares, many = total + gains[-1] - dropped, squares + gains[-1] ** 2 - dropped**2, len(gains)
        on = many >= _ON_FROM and total > math.sqrt(max(0.0, squares - total**2 / many) * many / (many - 1))
    return played, on


def _recent_rates(runs: Iterable[Run]) -> Iterator[float]:
    """Yield before each run the Beta-smoothed recent share of successes of its code; other code counts little."""
    good, bad, code = 0.0, 0.0, ""
    keep = 0.5 ** (1 / _HALF_LIFE)
    for run in runs:
        if run.code_hash != code:
            good, bad, code = good * _OTHER_CODE, bad * _OTHER_CODE, run.code_hash
        yield (good + 1) / (good + bad + 2)
        good, bad = good * keep + run.succeeded, bad * keep + (not run.succeeded)


# Features of arguments, each a text that a sentence can say.


def features(arguments: Mapping[str, Any] | None, names: Sequence[str]) -> list[str]:
    """Return features of arguments, such as "`unit` missing".

    names: The arguments that the tool is known to take.
    """
    if arguments is None:
        return ["arguments cut"]
    labels = [f"`{name}` missing" for name in names if name not in arguments]
    for name, value in arguments.items():
        labels += [f"`{name}` {label}" for label in _value_features(value)]
    return labels


def _value_features(value: object) -> Iterator[str]:
    if value is None:
        yield "None"
        return
    yield f"a {type(value).__name__}"
    if isinstance(value, bool):
        yield str(value)
    elif isinstance(value, int | float):
        yield "negative" if value < 0 else "zero" if value == 0 else "positive"
        if math.isfinite(value):
            yield _between(math.frexp(abs(value))[1])
    elif isinstance(value, str | list | dict):
        yield f"with a length {_between(len(value).bit_length())}" if value else "empty"
    if isinstance(value, str | int | float) and len(encoded := json.dumps(value)) <= _VALUE_CHARS:
        yield f"= {encoded}"


def _between(digits: int) -> str:
    """Say which sizes have so many binary digits."""
    least, most = 2.0 ** (digits - 1), 2.0**digits
    return f"from {least:,.0f} to below {most:,.0f}" if digits > 0 else "below 1"


def warning_of(database: Database, tool: str, arguments: Mapping[str, Any], code_hash: str) -> str | None:
    """Do the same as `warning`, with the tool's newest recorded runs."""
    return warning(read_runs(database, tool, WARNED_BY), arguments, code_hash)


def warning(runs: Sequence[Run], arguments: Mapping[str, Any], code_hash: str) -> str | None:
    """Say why a run is very likely to fail: all the last runs with one of its features failed; otherwise None.

    runs: The tool's runs, oldest first. Only runs with the same code count. There must be at least five with the
        feature, of which 95% failed, and five without it, of which 80% succeeded.
    """
    comparable_runs = [run for run in runs if run.code_hash in ("", code_hash) and run.arguments is not None]
    names = sorted({name for run in comparable_runs for name in run.arguments or ()} | arguments.keys())
    feature_sets = [set(features(run.arguments, names)) for run in comparable_runs]
    best: tuple[int, str] | None = None
    for feature in features(arguments, names):
        having = [run for run, its in zip(comparable_runs, feature_sets, strict=True) if feature in its][
            -_WARNED_MAX:
        ]
        lacking = [run for run, its in zip(comparable_runs, feature_sets, strict=True) if feature not in its]
        if min(len(having), len(lacking)) < _WARN_RUNS:
            continue
        failed = [run for run in having if not run.succeeded]
        fine = sum(run.succeeded for run in lacking) / len(lacking)
        if len(failed) < _WARN_FAILED * len(having) or fine < _WARN_OTHERS:
            continue
        enames = Counter(run.ename for run in failed)
        how = f": {failed[0].ename}" if len(enames) == 1 else f", mostly with {enames.most_common(1)[0][0]}"
        message = f"{len(failed)} of the last {len(having)} runs with {feature} failed{how}."
        if best is None or len(failed) > best[0]:
            best = len(failed), message
    return best[1] if best else None


class _Model:
    """Regression of one tool, fitted to its runs up to some point.

    weights: Weights of the features; the recent share's logit and the constant have their own.
    steps: The calibration's knots.
    """

    def __init__(
        self, weights: Mapping[str, float], recent: float, constant: float, steps: tuple[Any, Any]
    ) -> None:
        self._weights, self._recent, self._constant, self._steps = weights, recent, constant, steps

    @classmethod
    def fitted(
        cls, runs: Sequence[Run], seen: Sequence[Sequence[str]], recent: Sequence[float], raw: Sequence[float]
    ) -> _Model | None:
        """Fit to runs; None if all of them ended in the same way.

        raw: The uncalibrated prediction of each.
        """
        ended = [run.succeeded for run in runs]
        if len(set(ended)) < 2:
            return None
        counts = Counter(name for row in seen for name in row)
        chosen = sorted(name for name, many in counts.items() if _SEEN_LEAST <= many < len(runs))
        place = {name: at for at, name in enumerate(chosen)}
        table = load_extra("numpy").zeros((len(runs), len(chosen) + 1))
        for at, (row, rate) in enumerate(zip(seen, recent, strict=True)):
            table[at, [place[name] for name in row if name in place]] = 1.0
            table[at, -1] = _logit(rate)
        trust = [1.0 if run.code_hash == runs[-1].code_hash else _OTHER_CODE for run in runs]
        regression = load_extra("sklearn.linear_model").LogisticRegression(max_iter=200)
        regression.fit(table, ended, sample_weight=trust)
        *weights, of_recent = regression.coef_[0].tolist()
        steps: tuple[Any, Any] = ([0.0, 1.0], [0.0, 1.0])
        if len(raw) >= _CALIBRATED_FROM:
            isotonic = (
                load_extra("sklearn.isotonic").IsotonicRegression(y_min=0.01, y_max=0.99).fit(raw, ended)
            )
            steps = isotonic.X_thresholds_, isotonic.y_thresholds_
        constant = float(regression.intercept_[0])
        return cls(dict(zip(chosen, weights, strict=True)), of_recent, constant, steps)

    def uncalibrated(self, seen: Iterable[str], recent: float) -> float:
        """Return the regression's uncalibrated chance of success."""
        total = self._constant + self._recent * _logit(recent)
        return 1 / (1 + math.exp(-total - sum(self._weights.get(name, 0.0) for name in seen)))

    def calibrated(self, raw: float) -> float:
        """Return the share of runs that succeeded with that prediction."""
        return float(load_extra("numpy").interp(raw, *self._steps))


def _logit(share: float) -> float:
    return math.log(share / (1 - share))
