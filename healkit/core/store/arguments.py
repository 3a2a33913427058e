"""Arguments of a call as JSON, and their validation.

One error lists every problem, in words: `n` must be integer, got 'ten' (str). Defaults are not filled in: the tool's
signature has them, and the record shows what the caller passed.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from healkit.core.contracts.rpc import MAX_FRAME_BYTES
from healkit.core.crossing import values
from healkit.core.secrets.secret_names import Secrecy, secrecy_of
from healkit.core.wire.encoding import LongInt
from healkit.errors import ArgumentsInvalid, SchemaInvalid, did_you_mean, near_misses

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

_ARGUMENTS_MAX_BYTES = MAX_FRAME_BYTES // 4


class HasSchema(Protocol):
    """Vault entry, or any other object with a label and an input schema."""

    @property
    def label(self) -> str:
        """Name of the tool in messages."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """Schema of the arguments object, in JSON Schema."""


class PackedArguments(NamedTuple):
    """Arguments of a call in their different forms.

    sent: Form for the worker, with the `contents` of frames and arrays beside it.
    logged: Form for the record, with `previews` previews in place of large frames and arrays.
    plain: Form for the schema check, in which a frame is an object with its columns and an array a list of its first
        items.
    notes: Items that arrive as their contents.
    """

    sent: bytes
    contents: list[Any]
    logged: bytes
    plain: dict[str, Any]
    notes: list[str]
    previews: int = 0


def pack_arguments(
    tool_name: str,
    given: Mapping[str, Any],
    secret_columns: values.SecretColumns | None = None,
    *,
    inline: bool = False,
) -> PackedArguments:
    """Return the arguments in all forms.

    secret_columns: Gets the first values of a frame's columns; returns the names of columns that previews hide.
    inline: Include the contents in `sent`.

    Raises `ArgumentsInvalid` if the arguments are not a mapping, are too large, or cannot cross to a worker unchanged.
    """
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise ArgumentsInvalid(
            f"The arguments of {tool_name!r} must be a dict of names and values, not a {kind}."
        )
    arguments, contents = dict(given), list[Any]()
    try:
        sent, notes = values.encode(arguments, None if inline else contents)
        is_json = not contents and values.MARK not in sent
        logged, previews = (sent, 0) if is_json else values.encode_for_log(arguments, secret_columns)
    except values.CannotCross as error:
        raise ArgumentsInvalid(
            f"{tool_name!r} cannot be called: {error.path.removeprefix('$.')} holds {error.why}, which "
            "cannot reach the worker as it is.",
            hint="Give its parts: numbers, text, lists, dicts, arrays, frames; or let the tool make it.",
        ) from None
    if len(sent) > _ARGUMENTS_MAX_BYTES:
        raise ArgumentsInvalid(
            f"The arguments of {tool_name!r} have {len(sent):,} bytes; {_ARGUMENTS_MAX_BYTES:,} are allowed.",
            hint="Give an array or a frame, grant a file (read=…), or let the tool fetch what it needs (hk.provide).",
        )
    plain = arguments if is_json else values.for_schema(arguments)
    return PackedArguments(sent, contents, logged, plain, notes, previews)


def validate_arguments(entry: HasSchema, arguments: Mapping[str, Any]) -> None:
    """Check the arguments; raise an `ArgumentsInvalid` that lists each wrong one with the reason."""
    if _clearly_valid(entry.input_schema, dict(arguments)):
        return
    validator = _validator(json.dumps(entry.input_schema, sort_keys=True))
    try:
        errors = list(validator.iter_errors(dict(arguments)))
    except Exception as error:  # an invalid regular expression, or a broken reference
        raise SchemaInvalid(
            f"The input schema of {entry.label} cannot be used: {error}.",
            hint="Correct it with a new schema.",
        ) from error
    problems = [problem for error in errors for problem in _problems(error)]
    if problems:
        expected = ", ".join(entry.input_schema.get("properties", {}))
        raise ArgumentsInvalid(
            f"{entry.label} cannot be called: {'; '.join(dict.fromkeys(problems))}.".replace("?.", "?"),
            hint=f"It takes: {expected}." if expected else "",
        )


#: JSON Schema's types as Python types, except for values that need another check (1.0 is an integer in JSON
#: Schema).
_TYPES: dict[str, set[type]] = {
    "array": {list},
    "boolean": {bool},
    "integer": {int},
    "null": {type(None)},
    "number": {int, float},
    "object": {dict},
    "string": {str},
}
_KNOWN = {"type", "properties", "required", "additionalProperties", "items", "anyOf"}
_KNOWN |= {"format", "columns"}
_KNOWN |= {"default", "description", "examples", "title"}  # these do not restrict the value


def _clearly_valid(schema: object, value: Any) -> bool:
    """Return True if a simple schema, such as one from a signature, certainly accepts the value.

    For False, jsonschema decides and gives the reason; it takes as long to import as a worker to start.
    """
    if not isinstance(schema, dict) or schema.keys() - _KNOWN:
        return False
    if "format" in schema or "columns" in schema:
        frame = schema.get("format") == "dataframe" and values.is_frame_outline(value)
        return frame and all(column in value["columns"] for column in schema.get("columns", ()))
    wanted = schema.get("type")
    if "type" in schema and not (isinstance(wanted, str) and type(value) in _TYPES.get(wanted, ())):
        return False
    if "anyOf" in schema and not any(_clearly_valid(option, value) for option in schema["anyOf"]):
        return False
    if isinstance(value, list):
        return "items" not in schema or all(_clearly_valid(schema["items"], item) for item in value)
    if not isinstance(value, dict):
        return True
    properties, additional = schema.get("properties", {}), schema.get("additionalProperties", True)
    if not isinstance(additional, bool) or not value.keys() >= set(schema.get("required", ())):
        return False
    return all(
        _clearly_valid(properties[name], item) if name in properties else additional
        for name, item in value.items()
    )


def check_schema(schema: object, tool_name: str) -> None:
    """Raise `SchemaInvalid` unless it is a JSON Schema (draft 2020-12) of an object."""
    _load_jsonschema()
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise SchemaInvalid(
            f"The input schema of {tool_name!r} must describe an object, got {schema!r}.",
            hint='Begin it with {"type": "object", "properties": {…}}.',
        )
    try:
        json.dumps(schema, allow_nan=False)
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise SchemaInvalid(
            f"The input schema of {tool_name!r} is not valid at {error.json_path}: {error.message}.",
            hint="See JSON Schema, draft 2020-12.",
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaInvalid(f"The input schema of {tool_name!r} is not JSON: {error}.") from None
    for reference in _references(schema):
        # A reference to another document would be fetched from the network at each call.
        if not reference.startswith("#"):
            raise SchemaInvalid(
                f"The input schema of {tool_name!r} refers to {reference!r}, outside of itself.",
                hint="Copy what it refers to under $defs, and refer to '#/$defs/…'.",
            )


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator:
    _load_jsonschema()
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    # healkit's own keywords: `format: dataframe`, and the `columns` that such a frame must have.
    keywords = {"format": _check_format, "columns": _check_columns}
    validator: type[Draft202012Validator] = validators.extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]  # its own gap
    # An empty registry, because the default one would fetch unknown documents.
    checker: Draft202012Validator = validator(json.loads(schema), registry=Registry())
    return checker


def _check_format(
    _validator: object, name: object, value: object, _schema: object
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if name == "dataframe" and not values.is_frame_outline(value):
        yield ValidationError("not a DataFrame")


def _check_columns(
    _validator: object, columns: Iterable[str], value: Any, _schema: object
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if values.is_frame_outline(value) and any(column not in value["columns"] for column in columns):
        yield ValidationError("columns are missing")


def _problems(error: ValidationError) -> Iterator[str]:
    """Yield a sentence for each argument in the error."""
    # Any, since its type depends on the keyword that failed.
    value: Any = error.instance
    rule: Any = error.validator_value
    schema: Any = error.schema
    match error.validator:
        case "required":
            # jsonschema reports each missing name separately, and only its message contains the name.
            names = [name for name in rule if name not in value and error.message.startswith(repr(name))]
            yield from (f"{_path(error, name)} is missing" for name in names)
        case "additionalProperties":
            properties = list(schema.get("properties", {}))
            for name in value:
                if name not in properties and rule is False:
                    near = " or ".join(f"`{miss}`" for miss in near_misses(name, properties))
                    yield f"{_path(error, name)} is unknown" + (f", did you mean {near}?" if near else "")
                elif name not in properties:
                    yield f"{_path(error, name)}: {error.message}"
        case "type" if schema.get("format") == "dataframe":
            return  # reported for its format
        case "type":
            wanted = " or ".join([rule] if isinstance(rule, str) else rule)
            yield f"{_path(error)} must be {wanted}, got {_shown(error)}"
        case "columns":
            for column in [column for column in rule if column not in value["columns"]]:
                near = did_you_mean(column, map(str, value["columns"]))
                yield f"{_path(error)} has no column {column!r}" + (f": {near.strip()}" if near else "")
        case "format":
            yield f"{_path(error)} must be a DataFrame, got {_shown(error)}"
        case "anyOf" if all(isinstance(option, dict) and "type" in option for option in rule):
            yield f"{_path(error)} must be {' or '.join(str(o['type']) for o in rule)}, got {_shown(error)}"
        case "enum":
            yield f"{_path(error)} must be one of {', '.join(map(repr, rule))}, got {_shown(error)}"
        case _ if _is_secret(error):
            yield f"{_path(error)} does not fit its schema's {error.validator}"
        case _:
            yield f"{_path(error)}: {error.message}"


def _path(error: ValidationError, name: str | None = None) -> str:
    """Return the place of an error: `` `n` ``, or `` `points[2].x` `` for a nested one."""
    text = ""
    for step in [*error.absolute_path, *([name] if name is not None else [])]:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return f"`{text}`" if text else "the arguments"


def _is_secret(error: ValidationError) -> bool:
    """Return whether the error concerns a value with a secret's name, which no message quotes."""
    return any(secrecy_of(step) >= Secrecy.TOKEN for step in error.absolute_path if isinstance(step, str))


def _shown(error: ValidationError) -> str:
    value: object = error.instance
    if _is_secret(error):
        return f"a {type(value).__name__}"
    text, kind = repr(value), "int" if isinstance(value, LongInt) else type(value).__name__
    return f"{text if len(text) <= 60 else text[:59] + '…'} ({kind})"


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in {"$ref", "$dynamicRef"} and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def _load_jsonschema() -> None:
    """Import jsonschema without one format checker that takes longer than a worker's start.

    Jupyter installs a package that makes jsonschema build a grammar of internationalised addresses on import, which is
    slow. Formats are not checked here, and jsonschema does not require that package.
    """
    slow = "rfc3987_syntax"
    if "jsonschema" in sys.modules or slow in sys.modules:
        return
    sys.modules[slow] = None  # type: ignore[assignment]  # tells the import system that the package is missing
    try:
        importlib.import_module("jsonschema")
    finally:
        del sys.modules[slow]
