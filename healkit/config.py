"""Settings: one frozen object, read from the environment once.

Every field can be given as `Healkit(config=Config(…))` or as an environment variable `HEALKIT_<FIELD>`, e.g.
`HEALKIT_TIMEOUT_S=60`. Units are in the names.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from healkit.errors import ConfigError

Isolation = Literal["auto", "namespaces", "landlock", "process"]
#: How much of a failure is explained, from nothing to a way to mend it.
ExplainLevel = Literal["off", "what", "where", "why", "hint", "fix"]
OtelSemconv = Literal["1.36", "1.37", "1.41"]
#: Whose protocol a language model is asked in.
ModelProvider = Literal["openai", "anthropic"]

MIB = 1024 * 1024
#: The most traces that a collector takes in one request.
SYNC_BATCH_MAX = 100
_MAY_BE_ZERO = {
    "spares",
    "post_mortem_kept",
    "retention_days",
    "retention_rows",
    "sync_retries",
    "sync_flush_s",
    "heal_model_retries",
    "heal_model_input_usd_per_mtok",
    "heal_model_output_usd_per_mtok",
}
#: Fields with a list of what they can be, and what anything else is.
_CHOICES: dict[str, tuple[tuple[str, ...], str]] = {
    "isolation": (get_args(Isolation), "not a tier"),
    "otel_semconv": (get_args(OtelSemconv), "no version of the conventions that healkit writes"),
    "explain": (get_args(ExplainLevel), "no level of explanation"),
    "heal_model_provider": (get_args(ModelProvider), "no protocol that healkit speaks"),
}


class Secret(str):
    """A text that shows as `'***'` wherever it is printed as part of something."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr("***" if self else "")


@dataclasses.dataclass(frozen=True)
class Config:
    """How healkit runs, limits and records; the defaults suit a laptop and a small tool.

    isolation: `auto` takes the strongest tier that this machine can really enforce and refuses to run tools where
        there is none. `process` is the opt-out, by name: a plain process with limits but no boundary.
    nursery: whether workers are forked from a preloaded parent; without, each starts cold.
    spares: how many unused workers are kept warm; 0 keeps none.
    preload: modules that the fork server imports ahead, such as `numpy` and `pandas`.
    timeout_s, rpc_timeout_s, start_timeout_s: wall time of an execution, of one bridged call, of a worker's start.
    grace_s: what a tool gets after its timeout to unwind before it is killed.
    memory_mb: what a tool may add to the bare worker, in MiB of address space.
    scratch_mb: the size of its scratch folder, in MiB (enforced as a whole in the `namespaces` tier; per file below).
    post_mortem_kept: how many failed runs' workers are kept to be asked; 0 keeps none.
    post_mortem_s: for how long after the run, or the last question.
    tracing: whether each execution has a trace; its row in the log is there either way.
    org, project: the first two parts of a trace's `org.project.namespace.action.hash`.
    payload_max_bytes: what a trace keeps of one payload (arguments, result, traceback), in bytes of JSON.
    phone_region: whose phone numbers are meant where no country code is given, as an ISO 3166 code such as `DE`.
    sanitizer_rules: a TOML or JSON file of rules of your own (docs/sanitizing.md).
    sanitizer_allow: regular expressions; what one of them matches as a whole is never hidden.
    trace_raw: keep payloads in traces as they were, with every secret in them; they are sent so too.
    trace_max_tasks, trace_max_decisions: how many calls and branch decisions one trace lists.
    sanitize_log: clean the log's own rows too; a run can then not be repeated with the arguments it had.
    sync_url, sync_token: the collector that traces are sent to, and what it knows this sender by; no URL sends nothing.
    sync_batch, sync_interval_s: a request goes out with so many traces, or after so long with what there is.
    sync_retries: how often a trace that the collector refuses is sent again before it is parked.
    sync_timeout_s: one request, from connecting to the last byte of its answer.
    sync_backoff_s, sync_backoff_max_s: the pause after the first failure, doubled by each, and the longest.
    sync_flush_s: how long closing waits for what is still to be sent; the rest goes out at the next start.
    record_runs: write a run folder for every execution, not only for those that are asked to have one.
    runs_dir: where run folders go; empty means `runs` beside the database (or in the user's data folder).
    evidence_max_bytes: what a run folder keeps of one piece of evidence (code, output, failure), in bytes.
    panels: show a live panel below a card in a notebook (docs/panels.md); without, the card alone.
    log_wait_s: how long a row waits for a locked database before it goes to the spool file.
    retention_days, retention_rows: what pruning the log keeps unless it is told otherwise: executions so old, and so
        many of the newest; 0 sets no bound. Nothing is pruned by itself.
    synchronous: SQLite's own setting; `NORMAL` loses nothing on kill -9, `FULL` nothing on a power cut either.
    explain: how far a failure is explained in plain words: `off`, `what`, `where`, `why`, `hint` or `fix`. A class that
        is to find the mistake itself gets `hint`.
    heal_deny, heal_allow: names of tools, as patterns such as `report_*`, whose patches healing never applies, and
        applies without asking where they are cured; of a tool that both name, none is applied (docs/consent.md).
    heal_auto: apply cured patches of every tool without asking, but those of `heal_deny`.
    heal_advisors: who is asked for a patch, in this order: `peers`, `rules`, `search`, `model`, or another package's.
    heal_budget_s: how long a healing may take.
    collect_db: the collector's database, a URL or a path; empty means the same one as everywhere.
    collect_max_bytes: what one request to the collector may hold, unpacked.
    collect_rate_per_s, collect_burst: requests a second from one client in the long run, and how many at once.
    collect_timeout_s: how long the body of a request may take to arrive.
    otel: export executions as OpenTelemetry spans too (`healkit[otel]`), to where its own variables say.
    otel_semconv: the version of the GenAI semantic conventions that attributes are named after.
    otel_content: put arguments and results, cleaned, into the spans.
    heal_model, heal_model_provider, heal_model_url: the language model that may be asked for patches (docs/models.md):
        its name, the protocol (`openai` for any chat completions endpoint, or `anthropic`), and the endpoint's address
        where it is not the provider's own. No name asks none. Its key is no setting: it is read from
        `HEALKIT_MODEL_KEY`, the provider's own variable, or the keyring.
    heal_model_timeout_s: one request, from connecting to the last byte of its answer.
    heal_model_max_tokens: the longest answer, in tokens.
    heal_model_attempts: how many answers one healing asks for.
    heal_model_retries, heal_model_backoff_s: how often a request is repeated while the server is busy or away, and the
        first pause, doubled by each; what the server asks for counts more.
    heal_model_input_max_bytes: what one request may hold of code, failure and examples.
    heal_model_values: send the failed run's local variables with their values, cleaned, and not only their types.
    heal_model_input_usd_per_mtok, heal_model_output_usd_per_mtok: what a million tokens cost, for the report.
    """

    isolation: Isolation = "auto"
    nursery: bool = True
    spares: int = 1
    preload: tuple[str, ...] = ()
    timeout_s: float = 30.0
    rpc_timeout_s: float = 10.0
    start_timeout_s: float = 5.0
    grace_s: float = 0.4
    memory_mb: int = 1024
    cpu_s: int = 60
    scratch_mb: int = 256
    open_files: int = 256
    result_max_bytes: int = 10 * MIB
    output_max_bytes: int = 10 * MIB
    max_calls: int = 10_000
    max_calls_in_flight: int = 16
    max_depth: int = 8
    post_mortem_kept: int = 3
    post_mortem_s: float = 600.0
    tracing: bool = True
    org: str = "local"
    project: str = "default"
    payload_max_bytes: int = 10_240
    phone_region: str = "US"
    sanitizer_rules: str = ""
    sanitizer_allow: tuple[str, ...] = ()
    trace_raw: bool = False
    trace_max_tasks: int = 1000
    trace_max_decisions: int = 1000
    sanitize_log: bool = False
    sync_url: str = ""
    sync_token: str = ""
    sync_batch: int = 10
    sync_interval_s: float = 5.0
    sync_retries: int = 3
    sync_timeout_s: float = 10.0
    sync_backoff_s: float = 1.0
    sync_backoff_max_s: float = 30.0
    sync_flush_s: float = 2.0
    record_runs: bool = False
    runs_dir: str = ""
    evidence_max_bytes: int = MIB
    log_wait_s: float = 1.0
    retention_days: float = 0.0
    retention_rows: int = 0
    sql_row_limit: int = 1000
    synchronous: Literal["NORMAL", "FULL"] = "NORMAL"
    show_outputs: bool = True
    explain: ExplainLevel = "fix"
    panels: bool = True
    heal_deny: tuple[str, ...] = ()
    heal_allow: tuple[str, ...] = ()
    heal_auto: bool = False
    heal_advisors: tuple[str, ...] = ("peers", "rules", "search", "model")
    heal_budget_s: float = 30.0
    collect_db: str = dataclasses.field(default="", repr=False)  # a URL may hold a password
    collect_max_bytes: int = 5_000_000
    collect_rate_per_s: float = 50.0
    collect_burst: int = 100
    collect_timeout_s: float = 30.0
    otel: bool = False
    otel_semconv: OtelSemconv = "1.41"
    otel_content: bool = False
    heal_model: str = ""
    heal_model_provider: ModelProvider = "openai"
    heal_model_url: str = ""
    heal_model_timeout_s: float = 120.0
    heal_model_max_tokens: int = 8192
    heal_model_attempts: int = 4
    heal_model_retries: int = 3
    heal_model_backoff_s: float = 1.0
    heal_model_input_max_bytes: int = 100_000
    heal_model_values: bool = False
    heal_model_input_usd_per_mtok: float = 0.0
    heal_model_output_usd_per_mtok: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what could not work; raises `ConfigError`."""
        for name, (choices, wrong) in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise ConfigError(
                    f"{name}={value!r} is {wrong}.", hint=f"Choose one of {', '.join(choices)}."
                )
        object.__setattr__(self, "sync_token", Secret(self.sync_token))
        _check_url("sync_url", self.sync_url, "https://collector.example:8008", "as sync_token")
        _check_url("heal_model_url", self.heal_model_url, "http://localhost:11434/v1", "in HEALKIT_MODEL_KEY")
        if not (self.sync_token.isascii() and self.sync_token.isprintable()):
            raise ConfigError(
                "sync_token holds characters that no HTTP header can.", hint="Was a line end copied too?"
            )
        if self.sync_batch > SYNC_BATCH_MAX:
            raise ConfigError(
                f"sync_batch={self.sync_batch!r} is more than a collector takes at once.",
                hint=f"At most {SYNC_BATCH_MAX}.",
            )
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in _MAY_BE_ZERO else None
            if (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and not (value > 0 or value == least)
            ):
                raise ConfigError(f"{field.name}={value!r} must be greater than 0.")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Config:
        """The defaults with every `HEALKIT_<FIELD>` applied; raises `ConfigError` for one that does not parse."""
        environ = os.environ if environ is None else environ
        given = {
            field.name: _parse(name, environ[name], field.default)
            for field in dataclasses.fields(cls)
            if (name := f"HEALKIT_{field.name.upper()}") in environ
        }
        return cls(**given)


def _check_url(name: str, url: str, example: str, instead: str) -> None:
    """Refuse a URL that nothing could be sent to, or that holds a secret, which belongs elsewhere."""
    try:
        parts = urlsplit(url)
        wrong = bool(url) and (parts.scheme not in {"http", "https"} or not parts.hostname)
        known = bool(parts.username or parts.password)
        _ = parts.port
    except ValueError:
        wrong, known = True, False
    if known:
        raise ConfigError(f"{name} holds a user or password.", hint=f"Give it {instead} instead.")
    if wrong:
        raise ConfigError(f"{name}={url!r} is no http or https URL.", hint=f"For example {example}.")


def _parse(name: str, text: str, default: Any) -> Any:
    """`text` in the type of the field's default."""
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, bool):
        if text.lower() in {"1", "true", "yes", "on", "0", "false", "no", "off"}:
            return text.lower() in {"1", "true", "yes", "on"}
    elif isinstance(default, int | float):
        try:
            return type(default)(text)
        except ValueError:
            pass
    else:
        return text
    raise ConfigError(
        f"{name}={text!r} is not a {type(default).__name__}.", hint=f"The default is {default!r}."
    )
