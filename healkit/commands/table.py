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

#: Exit codes: success; the command ran but found a failure or a problem; Ctrl-C.
OK, FAILED, INTERRUPTED = 0, 1, 130
#: JSON keys whose values are vault content that programs read back.
CODE = ("code", "diff")

DB = Option("db", "the database: a path or a URL", metavar="URL", default_help="HEALKIT_DB, then healkit.db")
#: Parameters that the face supplies. `open_healkit(db, create=…)` opens another database.
_FROM_THE_FACE = {"healkit", "services", "program", "as_json", "open_healkit", "terminal"}

Json = dict[str, Any]
GrantOptions = Annotated[dict[str, Any], OptionGroup(options.GRANTS, read_grants)]
FilterOptions = Annotated["Filters", OptionGroup(options.FILTERS, read_filters)]


@dataclass(frozen=True)
class Answer:
    """Result of a command, for a person and for a program.

    shown: Makes the output for a person.
    data: Makes the value that `--json` prints.
    said: One sentence to show instead, for a command that changed something.
    text: Plain output for a file or another program, such as code.
    exact: Keys of `data` whose values are printed unchanged.
    table: The output is a table; its lines are cut to the terminal's width.
    clipped: Every line of the output is cut to the terminal's width.
    hints: Lines below the output, for a person only.
    notes: Lines below the output, in every form.
    panel: Name of the live panel that a notebook shows below, and its subject.
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
    """Terminal, for the commands that only exist in a terminal."""

    def say(self, text: str) -> None:
        """Print a line on stderr, for a person."""

    def put(self, text: str, *, exact: bool = False) -> None:
        """Print an answer on stdout; exact: print it unchanged if stdout is a file or another program."""

    def print_json(self, value: object, *, exact: tuple[str, ...] = ()) -> None:
        """Print a value as JSON; the values of the keys in `exact` are printed unchanged."""

    def ask(self, question: str, default: str, *, shown: bool = True) -> str:
        """Ask a question on stderr; an empty line selects the default. shown: Whether to show the default."""
        ...

    def confirm(self, question: str) -> bool:
        """Ask for yes or no; the default is yes."""
        ...

    def read(self, prompt: str) -> str:
        """Read a line from stdin; raise `EOFError` at its end."""
        ...


@dataclass(frozen=True)
class Command:
    """Command of the terminal, and of a notebook if a magic names it.

    function: Takes the typed values; its first parameter may be `healkit` or `services`.
    creates: Create the database if it does not exist.
    json: False if the command has no `--json`.
    refusal: Makes the JSON for a wrong call, if it differs from the usual form.
    passes_on: Unknown options are passed on to another program.
    """

    function: Callable[..., Answer]
    creates: bool = False
    json: bool = True
    refusal: Callable[[HealkitError], object] | None = None
    passes_on: bool = False

    @property
    def takes_healkit(self) -> bool:
        """True if the command needs an open database."""
        return not {"healkit", "services"}.isdisjoint(inspect.signature(self.function).parameters)

    def call(self, healkit: Any, given: Mapping[str, Any]) -> Answer:
        """Call the function with a `Healkit` or its services, and with the named values."""
        by_services = "services" in inspect.signature(self.function).parameters
        return self.function(healkit.services if by_services else healkit, **given)

    def parameters(self) -> dict[str, tuple[inspect.Parameter, object]]:
        """Return the parameters that a user can type, each with its type; the type holds the option's row."""
        names = dict(self.function.__globals__)
        parameters = inspect.signature(self.function).parameters.values()
        return {
            parameter.name: (parameter, _evaluated(parameter.annotation, names))
            for parameter in parameters
            if parameter.name not in _FROM_THE_FACE
        }

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the typed values to arguments of the function, by name; raise `UsageInvalid` for an invalid value."""
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
        """Answer a magic: `words` fill the positional parameters; a flag whose value is None was not given."""
        rows = {name: row_of(kind) for name, (_, kind) in self.parameters().items()}
        named = dict(zip([name for name, row in rows.items() if _is_word(row)], words, strict=False))
        flag_values = {
            name: value for name, value in flags.items() if value is not None and not _is_word(rows.get(name))
        }
        return self.call(healkit, {**self.read({**flag_values, **named}), **self.of_face("%")})

    def of_face(self, program: str, **more: object) -> dict[str, Any]:
        """Return the arguments that the face supplies, if the function has them. program: First word of a command."""
        parameters = inspect.signature(self.function).parameters
        return {name: value for name, value in {"program": program, **more}.items() if name in parameters}


@dataclass(frozen=True)
class Group:
    """Commands below one word; `alone` is the command that runs for the word alone."""

    help: str
    commands: dict[str, Command]
    alone: str | Command = "list"

    def __getitem__(self, name: str) -> Command:
        return self.commands[name]

    def plus(self, commands: Mapping[str, Command]) -> Group:
        """Return a copy of the group with more commands; existing ones are kept."""
        return dataclasses.replace(self, commands={**self.commands, **commands, **self.commands})


def row_of(kind: object) -> Option | OptionGroup | None:
    """Return the row in a parameter's type, if any."""
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
    """Raise `UsageInvalid`."""
    raise UsageInvalid(message, hint=hint)
