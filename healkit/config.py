"""Settings: one frozen object, read from the environment once.

Every field can be given as `Healkit(config=Config(…))` or as an environment variable `HEALKIT_<FIELD>`, e.g.
`HEALKIT_TIMEOUT_S=60`. Units are in the names.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Literal, get_args

from healkit.errors import ConfigError

Isolation = Literal["auto", "namespaces", "landlock", "process"]

MIB = 1024 * 1024
_MAY_BE_ZERO = {"spares", "post_mortem_kept"}


@dataclasses.dataclass(frozen=True)
class Config:
    """How healkit runs, limits and records; the defaults suit a laptop and a small tool.

    isolation: `auto` takes the strongest tier that this machine can really enforce and refuses to run tools where
        there is none. `process` is the opt-out, by name: a plain process with limits but no boundary.
    nursery: whether workers are forked from a preloaded parent; without, each starts cold.
    spares: how many unused workers are kept warm; 0 keeps none.
    preload: modules that the nursery imports ahead, such as `numpy` and `pandas`.
    timeout_s, rpc_timeout_s, start_timeout_s: wall time of an execution, of one bridged call, of a worker's start.
    grace_s: what a tool gets after its timeout to unwind before it is killed.
    memory_mb: what a tool may add to the bare worker, in MiB of address space.
    scratch_mb: the size of its scratch folder, in MiB (enforced as a whole in the `namespaces` tier; per file below).
    post_mortem_kept: how many failed runs' workers are kept to be asked; 0 keeps none.
    post_mortem_s: for how long after the run, or the last question.
    log_wait_s: how long a row waits for a locked database before it goes to the spool file.
    synchronous: SQLite's own setting; `NORMAL` loses nothing on kill -9, `FULL` nothing on a power cut either.
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
    log_wait_s: float = 1.0
    sql_row_limit: int = 1000
    synchronous: Literal["NORMAL", "FULL"] = "NORMAL"
    show_outputs: bool = True

    def __post_init__(self) -> None:
        """Refuse what could not work; raises `ConfigError`."""
        if self.isolation not in get_args(Isolation):
            choices = ", ".join(get_args(Isolation))
            raise ConfigError(
                f"isolation={self.isolation!r} is not a tier.", hint=f"Choose one of {choices}."
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
