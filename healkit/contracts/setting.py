"""Declaration of one field of `Config`."""

from __future__ import annotations

import dataclasses
from typing import Any

from healkit.errors import ConfigError

_UNITS = {
    "per_s": "a second",
    "s": "seconds",
    "mb": "MiB",
    "bytes": "bytes",
    "days": "days",
    "usd_per_mtok": "US dollars",
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """Setting, as `Config` declares it.

    help: what it does. zero: whether 0 is allowed, where it is a number. choices: all that a text may be; wrong: what
    anything else is called. shown: its heading in `healkit status`, listed where it is not the default; empty: never.
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
        """Environment variable that sets it."""
        return f"HEALKIT_{self.name.upper()}"

    @property
    def unit(self) -> str:
        """Unit of its number; empty where it has none."""
        return next((unit for ending, unit in _UNITS.items() if self.name.endswith(f"_{ending}")), "")

    def check(self, value: Any) -> None:
        """Raise `ConfigError` for a value that cannot be."""
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
        """Read the variable's text in the type of the default; raise `ConfigError` for what is none."""
        if isinstance(self.default, tuple):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if self.default is None and text.lower() == "none":
            return None
        if self.default is None or isinstance(self.default, bool):
            if text.lower() in {"1", "true", "yes", "on", "0", "false", "no", "off"}:
                return text.lower() in {"1", "true", "yes", "on"}
        elif isinstance(self.default, int | float):
            try:
                return type(self.default)(text)
            except ValueError:
                pass
        else:
            return text
        kind = {
            "int": "an integer",
            "float": "a number",
            "bool": "true or false",
            "NoneType": "true or false",
        }[type(self.default).__name__]
        raise ConfigError(
            f"{self.variable}={text!r} is not {kind}.", hint=f"The default is {self.default!r}."
        )


def setting(default: Any, help: str, *, hidden: bool = False, **about: Any) -> Any:  # noqa: A002 - as in Setting
    """Declare a setting; hidden: left out of `repr`, since it may hold a secret. about: more of `Setting`."""
    return dataclasses.field(default=default, repr=not hidden, metadata={"setting": Setting(help, **about)})
