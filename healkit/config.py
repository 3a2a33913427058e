"""Settings: one frozen object, read from the environment once.

Set a field with `Healkit(config=Config(…))` or with an environment variable `HEALKIT_<FIELD>`, e.g.
`HEALKIT_TIMEOUT_S=60`. The names contain the units.

To add a setting, add one field here, with its default and its help. Its variable, its check and its line in
`help(Config)` follow from the field. With `shown`, so does its line in `healkit status`.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from healkit.errors import ConfigError
from healkit.plain_text import Secret, shown_address

_UNITS = {
    "per_s": "a second",
    "s": "seconds",
    "mb": "MiB",
    "bytes": "bytes",
    "days": "days",
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """Setting that a field of `Config` declares.

    help: Its purpose.
    zero: Whether the number may be 0.
    choices: All allowed texts.
    wrong: Words for a text that is not among the choices.
    shown: Its heading in `healkit status`, which lists it if it differs from the default; empty: never.
    """

    help: str
    zero: bool = False
    choices: tuple[str, ...] = ()
    wrong: str = "not a choice"
    shown: str = ""
    name: str = ""
    default: Any = None

    @property
    def variable(self) -> str:
        """Environment variable of the setting."""
        return f"HEALKIT_{self.name.upper()}"

    @property
    def unit(self) -> str:
        """Unit of the number; empty if it has no unit."""
        return next((unit for ending, unit in _UNITS.items() if self.name.endswith(f"_{ending}")), "")

    def check(self, value: Any) -> None:
        """Raise `ConfigError` for an invalid value."""
        if self.choices and value not in self.choices:
            raise ConfigError(
                f"{self.name}={value!r} is {self.wrong}.", hint=f"Choose one of {', '.join(self.choices)}."
            )
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not (value > 0 or (self.zero and value == 0)):
            raise ConfigError(
                f"{self.name}={value!r} must be {'0 or greater' if self.zero else 'greater than 0'}."
            )

    def parse(self, text: str) -> Any:
        """Convert the variable's text to the type of the default; raise `ConfigError` if that fails."""
        if isinstance(self.default, tuple):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if self.default is None and text.lower() == "none":
            return None
        if self.default is None or isinstance(self.default, bool):
            if text.lower() in {"1", "true", "yes", "on", "0", "false", "no", "off"}:
                return text.lower() in {"1", "true", "yes", "on"}
            raise self._wrong(text, "true or false")
        return self._number(text, type(self.default)) if isinstance(self.default, int | float) else text

    def _number(self, text: str, kind: type[int] | type[float]) -> float:
        try:
            return kind(text)
        except ValueError:
            raise self._wrong(text, "an integer" if kind is int else "a number") from None

    def _wrong(self, text: str, kind: str) -> ConfigError:
        return ConfigError(
            f"{self.variable}={text!r} is not {kind}.", hint=f"The default is {self.default!r}."
        )


def setting(default: Any, help: str, *, hidden: bool = False, **about: Any) -> Any:  # noqa: A002 - as in Setting
    """Declare a setting. hidden: Left out of `repr`, since it may hold a secret. about: More fields of `Setting`."""
    return dataclasses.field(default=default, repr=not hidden, metadata={"setting": Setting(help, **about)})


def fixed(default: Any, help: str, *, zero: bool = False) -> Any:  # noqa: A002 - as in Setting
    """Declare a limit that users need not change: it has no variable; only code can set it."""
    return dataclasses.field(default=default, metadata={"fixed": Setting(help, zero)})


#: How a tool runs: in a Jupyter kernel, or in a plain interpreter with the same restrictions.
Mode = Literal["worker", "subprocess"]
Isolation = Literal["auto", "namespaces", "landlock", "process"]
#: How much of a failure is explained, from nothing up to a suggested fix.
ExplainLevel = Literal["off", "what", "where", "why", "hint", "fix"]
#: Protocol of the language model's API, by provider.
ModelProvider = Literal["openai", "anthropic"]

MIB = 1024 * 1024
#: Maximum number of traces that a collector accepts in one request.
SYNC_BATCH_MAX = 100
#: Default time limit of a healing, in seconds.
HEAL_BUDGET_S = 30.0


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of healkit; the defaults suit a laptop and small tools."""

    # Workers
    isolation: Isolation = setting(
        "auto",
        "`auto` uses the strongest tier that this machine can enforce. If there is none, no tool runs. `process` is a "
        "plain process with limits but no boundary",
        choices=get_args(Isolation),
        wrong="not a tier",
    )
    fork_server: bool = fixed(True, "fork workers from the fork server; without it, each starts cold")
    mode: Mode = setting(
        "worker",
        "how tools run by default: `worker` is a Jupyter kernel, `subprocess` a plain fresh interpreter",
        choices=get_args(Mode),
        wrong="not a mode",
    )
    spares: int = setting(1, "unused workers that are kept warm", zero=True)
    preload: tuple[str, ...] = setting(
        (), "modules that the fork server imports in advance, such as numpy and pandas"
    )
    timeout_s: float = setting(30.0, "limit on the wall time of an execution")
    rpc_timeout_s: float = setting(10.0, "limit on the wall time of one bridged call")
    start_timeout_s: float = fixed(60.0, "time limit for the start of a worker")
    memory_mb: int = setting(
        1024,
        "limit on the address space that a tool adds to its worker, and on its result's frames and arrays",
    )
    cpu_s: int = setting(60, "limit on the processor time of an execution")
    scratch_mb: int = setting(
        256,
        "limit on the scratch folder; enforced as a whole in the `namespaces` tier, per file in lower tiers",
    )
    views_mb: int = setting(
        2048,
        "limit on the frames and arrays stored beside the database; 0 stores none",
        zero=True,
        shown="keeps of data",
    )
    views_url: str = setting(
        "",
        "shared place of the frames and arrays: a folder that all hosts mount, or an fsspec URL such as "
        "s3://bucket/team. If empty, each machine stores its own",
    )
    result_max_bytes: int = setting(
        10 * MIB, "limit on the size of a tool's result, and on its stored output"
    )
    post_mortem_kept: int = setting(
        3, "number of failed executions whose workers are kept for questions", zero=True
    )
    # Traces
    tracing: bool = setting(True, "write a trace for each execution; the log has its row in any case")
    trace_project: str = setting(
        "local.default", "first two parts of a trace's `org.project.namespace.action.hash`"
    )
    payload_max_bytes: int = setting(10_240, "limit on one payload in a trace, as JSON")
    phone_region: str = setting(
        "US", "country of phone numbers without a country code, as an ISO 3166 code such as DE"
    )
    sanitizer_rules: str = setting("", "a TOML or JSON file of rules of your own (docs/sanitizing.md)")
    sanitizer_allow: tuple[str, ...] = setting(
        (), "regular expressions; a text that fully matches one is not hidden"
    )
    trace_raw: bool = setting(
        False, "store payloads in traces unchanged, with all secrets; they are also sent unchanged"
    )
    trace_max_tasks: int = fixed(1000, "limit on the calls, and on the branch decisions, in one trace")
    sanitize_log: bool | None = setting(
        None,
        "clean the log's rows too. Then a run cannot be repeated with its secrets. `none` cleans them only in a "
        "database on a server",
    )
    sync_url: str = setting(
        "", "URL of the collector that gets the traces; empty sends nothing", hidden=True, shown="collector"
    )
    sync_token: str = setting("", "token by which the collector identifies this sender")
    sync_batch: int = fixed(10, "traces in one request")
    sync_interval_s: float = fixed(5.0, "how long a request waits for more traces")
    sync_retries: int = fixed(3, "how often a refused trace is sent again before it is parked", zero=True)
    # Records
    record_runs: bool = setting(
        False, "write a run folder for every execution, not only for those that request one"
    )
    runs_dir: str = setting(
        "", "place of the run folders; empty: `runs` beside the database, or in the user's data folder"
    )
    log_wait_s: float = fixed(
        1.0, "how long a row waits for a locked database before it goes to the spool file"
    )
    retention_days: float = setting(
        0.0,
        "age from which executions are deleted, automatically and by `log.prune`; 0 sets no limit",
        zero=True,
        shown="deletes runs older than",
    )
    retention_rows: int = setting(
        0,
        "number of newest executions to keep; older ones are deleted in the same way; 0 sets no limit",
        zero=True,
        shown="keeps of all runs the newest",
    )
    sql_row_limit: int = fixed(1000, "limit on the rows that a SQL tool returns")
    synchronous: Literal["NORMAL", "FULL"] = setting(
        "NORMAL",
        "SQLite's setting: NORMAL loses nothing on kill -9, FULL also loses nothing in a power cut",
        choices=("NORMAL", "FULL"),
    )
    # On screen
    explain: ExplainLevel = setting(
        "fix",
        "how far failures are explained: off, what, where, why, hint or fix. `hint` lets a class find its mistakes",
        choices=get_args(ExplainLevel),
        wrong="not a level of explanation",
    )
    panels: bool = setting(True, "show a live panel below each card in a notebook (docs/panels.md)")
    # Healing
    heal_deny: tuple[str, ...] = setting(
        (),
        "tools whose patches are never applied, as patterns such as report_* or CLIENT/PERSONA/report_*. It overrides "
        "all else",
    )
    heal_allow: tuple[str, ...] = setting(
        (), "tools whose cured patches are applied without asking (docs/consent.md); * means every tool"
    )
    heal_advisors: tuple[str, ...] = setting(
        ("memory", "peers", "rules", "search", "model"), "advisors that are asked for a patch, in this order"
    )
    # The MCP server
    mcp_rate_per_s: float = setting(
        50.0, "limit on the calls of one client, on average; twice as many at once"
    )
    mcp_timeout_max_s: float = fixed(3600.0, "the longest time limit that a client may request")
    mcp_budget_s: float = setting(
        0.0,
        "limit on the total time of one client's calls while the server runs; 0 sets no limit",
        zero=True,
    )
    # The collector
    collect_max_bytes: int = setting(5_000_000, "limit on the size of one request, after decompression")
    collect_timeout_s: float = setting(30.0, "time limit for the arrival of a request's body")
    collect_rate_per_s: float = setting(
        50.0, "limit on the requests of one client, on average; twice as many at once"
    )
    # OpenTelemetry
    otel: bool = setting(
        False, "also export executions as OpenTelemetry spans (healkit[otel]); its own variables say where to"
    )
    otel_content: bool = setting(False, "include cleaned arguments and results in the spans")
    # Language models
    heal_model: str = setting(
        "",
        "the language model to ask for patches (docs/models.md); empty asks none. Its key is not a setting: it is "
        "read from HEALKIT_MODEL_KEY, the provider's own variable, or the keyring",
    )
    heal_model_provider: ModelProvider = setting(
        "openai",
        "protocol of the model: openai for any chat completions endpoint, or anthropic",
        choices=get_args(ModelProvider),
        wrong="not a protocol that healkit supports",
    )
    heal_model_url: str = setting("", "URL of the model, if it is not the provider's own", hidden=True)
    heal_model_timeout_s: float = setting(
        120.0, "time limit of one request, from connecting to the last byte of its answer"
    )
    heal_model_max_tokens: int = setting(8192, "limit on the length of an answer, in tokens")
    heal_model_attempts: int = fixed(4, "limit on the answers that one healing requests")
    heal_model_input_max_bytes: int = setting(
        100_000, "limit on the code, failure and examples in one request"
    )
    heal_model_values: bool = setting(
        False,
        "send cleaned values, not only types, of the failed run's variables and of the patches' results",
    )

    def __post_init__(self) -> None:
        """Check the values; raise `ConfigError` for an invalid one."""
        for option in (*settings(), *_declared("fixed")):
            option.check(getattr(self, option.name))
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

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Config:
        """Return the defaults, changed by all variables `HEALKIT_<FIELD>`; raise `ConfigError` for an invalid value."""
        environ = os.environ if environ is None else environ
        for bound in _declared("fixed"):
            if bound.variable in environ:
                raise ConfigError(
                    f"{bound.variable} is not a setting any more: {bound.help}, always {bound.default!r}.",
                    hint="Remove the variable; `Config(…)` in code can still hold another value.",
                )
        values = {s.name: s.parse(environ[s.variable]) for s in settings() if s.variable in environ}
        return cls(**values)

    def shown(self) -> dict[str, str]:
        """Return the settings that `healkit status` lists, by heading: those that differ from the default.

        Example:
        >>> Config(retention_days=90).shown()
        {'deletes runs older than': '90 days'}
        """
        values = [(setting, getattr(self, setting.name)) for setting in settings() if setting.shown]
        changed = [(setting, value) for setting, value in values if value != setting.default]
        entries = (
            (setting, shown_address(value) if setting.name.endswith("_url") else value)
            for setting, value in changed
        )
        return {setting.shown: f"{value} {setting.unit}".rstrip() for setting, value in entries}


@functools.cache
def settings() -> tuple[Setting, ...]:
    """List all settings, in the order of `Config`."""
    return _declared("setting")


def _declared(kind: str) -> tuple[Setting, ...]:
    """List the fields of `Config` of one kind, `setting` or `fixed`."""
    return tuple(
        dataclasses.replace(field.metadata[kind], name=field.name, default=field.default)
        for field in dataclasses.fields(Config)
        if kind in field.metadata
    )


def _line(setting: Setting) -> str:
    unit = f" ({setting.unit})" if setting.unit else ""
    return f"{setting.name}: {setting.help}{unit}. Default: {setting.default!r}."


_EXAMPLE = """
Example:
>>> with Healkit("limited.db", config=Config(timeout_s=1)) as limited:
...     _ = limited.vault.add("forever", "def forever(): import time; time.sleep(60)")
...     limited.execute("forever").failure.code
'TOOL_TIMEOUT'"""
Config.__doc__ = "\n".join((f"{Config.__doc__}\n", *map(_line, settings()), _EXAMPLE))


def _check_url(name: str, url: str, example: str, instead: str) -> None:
    """Raise `ConfigError` for a URL that is not usable, or that contains a user or a password."""
    try:
        parts = urlsplit(url)
        wrong = bool(url) and (parts.scheme not in {"http", "https"} or not parts.hostname)
        has_credentials = bool(parts.username or parts.password)
        _ = parts.port
    except ValueError:
        wrong, has_credentials = True, False
    if has_credentials:
        raise ConfigError(f"{name} holds a user or password.", hint=f"Give it {instead} instead.")
    if wrong:
        raise ConfigError(
            f"{name}={shown_address(url)!r} is not an http or https URL.", hint=f"For example {example}."
        )
