"""Commands, groups of them and answers: their form."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Protocol, get_args, get_origin

from healkit.commands import options
from healkit.commands.options import Option, OptionGroup
from healkit.commands.parsing import read_filters, read_grants
from healkit.errors import HealkitError, UsageInvalid

if TYPE_CHECKING:
    from healkit.core.contracts.execution import Filters
    from healkit.core.rendering.document import Document

#: Exit codes: it did what it is for; it ran, and what it ran or looked at is not in order; Ctrl-C.
OK, FAILED, INTERRUPTED = 0, 1, 130
#: Keys of what the vault holds, which programs read back.
CODE = ("code", "diff")

DB = Option("db", "the database: a path or a URL", metavar="URL", default_help="HEALKIT_DB, then healkit.db")
#: Parameters that are not typed: what the face has. `open_healkit(db, create=…)` opens another database.
_FROM_THE_FACE = {"healkit", "services", "program", "as_json", "open_healkit", "terminal"}

Json = dict[str, Any]
GrantOptions = Annotated[dict[str, Any], OptionGroup(options.GRANTS, read_grants)]
FilterOptions = Annotated["Filters", OptionGroup(options.FILTERS, read_filters)]


@dataclass(frozen=True)
class Answer:
    """Result of a command, for a person and for a program.

    shown: makes what a person reads; a `table`, and each line of what is `clipped`, is cut to a terminal's width.
    said: one sentence in its place, where something was done. text: the same as a file or another program gets it, such
    as code. data: makes what `--json` prints, of which `exact` names the keys that stay as they are. hints stand below
    what a person reads, notes always. panel: the live panel that a notebook shows below, and what it is about.
    """

    shown: Callable[[], Document | str] | None = None
    data: Callable[[], object] | None = None
    said: str = ""
    text: str | None = None
    exact: tuple[str, ...] = ()
    table: bool = False
    clipped: bool = False
    hints: Sequence[str] = ()
    notes: Sequence[str] = ()
    panel: tuple[str, ...] = ()
    exit_code: int = OK


class Terminal(Protocol):
    """Terminal, as a command that only a terminal has speaks with it."""

    def say(self, text: str) -> None:
        """Print a line for the person, on stderr."""

    def put(self, text: str, *, exact: bool = False) -> None:
        """Print an answer on stdout; exact: as it is, where it goes to a file or another program."""

    def print_json(self, value: object, *, exact: tuple[str, ...] = ()) -> None:
        """Print a value as JSON; the values of the keys `exact` stay as they are."""

    def ask(self, question: str, default: str, *, shown: bool = True) -> str:
        """Ask on stderr; the default stands for an empty line, and is shown."""
        ...

    def confirm(self, question: str) -> bool:
        """Ask for yes or no; yes is the default."""
        ...

    def read(self, prompt: str) -> str:
        """Read a line of stdin; raise `EOFError` at its end."""
        ...


@dataclass(frozen=True)
class Command:
    """Command of a terminal and, where a magic names it, of a notebook.

    function: gets the `healkit`, or its `services`, if its first parameter is one, and what was typed. creates: makes
    the database where there is none. json: False where `--json` says nothing. refusal: makes the JSON of a wrong call,
    where it is another than elsewhere. passes_on: options that it has not are another program's.
    """

    function: Callable[..., Answer]
    creates: bool = False
    json: bool = True
    refusal: Callable[[HealkitError], object] | None = None
    passes_on: bool = False

    @property
    def takes_healkit(self) -> bool:
        """True where it works on a database that the face opens."""
        return not {"healkit", "services"}.isdisjoint(inspect.signature(self.function).parameters)

    def call(self, healkit: Any, given: Mapping[str, Any]) -> Answer:
        """Call the function with a `Healkit`, or its services, and what it gets by name."""
        by_services = "services" in inspect.signature(self.function).parameters
        return self.function(healkit.services if by_services else healkit, **given)

    def parameters(self) -> dict[str, tuple[inspect.Parameter, object]]:
        """Return what may be typed: each parameter with its type, which has the row of its option."""
        names = dict(self.function.__globals__)
        parameters = inspect.signature(self.function).parameters.values()
        return {
            parameter.name: (parameter, _evaluated(parameter.annotation, names))
            for parameter in parameters
            if parameter.name not in _FROM_THE_FACE
        }

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function gets of what was typed, by name; raise `UsageInvalid` where it cannot be read."""
        wanted: dict[str, Any] = {}
        for name, (_, kind) in self.parameters().items():
            row = row_of(kind)
            if isinstance(row, OptionGroup):
                wanted[name] = row.read(given)
            elif name in given:
                value = given[name]
                wanted[name] = value if row is None or row.read is None or value is None else row.read(value)
        return wanted

    def answer_magic(self, healkit: Any, words: Sequence[object], flags: Mapping[str, Any]) -> Answer:
        """Answer a magic: words stand for what has no flag; a flag that was not given is None there."""
        rows = {name: row_of(kind) for name, (_, kind) in self.parameters().items()}
        named = dict(zip([name for name, row in rows.items() if _is_word(row)], words, strict=False))
        flag_values = {
            name: value for name, value in flags.items() if value is not None and not _is_word(rows.get(name))
        }
        return self.call(healkit, {**self.read({**flag_values, **named}), **self.of_face("%")})

    def of_face(self, program: str, **more: object) -> dict[str, Any]:
        """Return what the function gets of the face, as far as it asks for it: `program` is its first word."""
        parameters = inspect.signature(self.function).parameters
        return {name: value for name, value in {"program": program, **more}.items() if name in parameters}


@dataclass(frozen=True)
class Group:
    """Commands below one word; `alone` is what the word does without any of them."""

    help: str
    commands: dict[str, Command]
    alone: str | Command = "list"

    def __getitem__(self, name: str) -> Command:
        return self.commands[name]

    def plus(self, commands: Mapping[str, Command]) -> Group:
        """Return the group with more commands; those that it has stay."""
        return dataclasses.replace(self, commands={**self.commands, **commands, **self.commands})


def row_of(kind: object) -> Option | OptionGroup | None:
    """Return the row that a parameter's type has, if any."""
    if get_origin(kind) is Annotated:
        return next(
            (annotation for annotation in get_args(kind)[1:] if isinstance(annotation, Option | OptionGroup)),
            None,
        )
    return None


def _is_word(row: Option | OptionGroup | None) -> bool:
    return isinstance(row, Option) and row.positional


def _evaluated(annotation: object, names: dict[str, Any]) -> object:
    return eval(annotation, names) if isinstance(annotation, str) else annotation  # noqa: S307 - an annotation in code, as typing evaluates it


def wrong(message: str, hint: str = "") -> NoReturn:
    """Refuse the call."""
    raise UsageInvalid(message, hint=hint)
