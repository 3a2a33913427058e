"""Command that summarises a file."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from healkit import options
from healkit.cli.command import OK, JsonOption, print_json, put, terminal_width, typed, wrong

Kind = Literal["text", "csv", "tsv", "parquet"]
KINDS: dict[str, Kind] = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
#: Bytes of a text that are read: what is summarised of it, with four bytes a character.
_TEXT_MAX_BYTES = 64_000_004


def summarize(
    file: Annotated[str, typer.Argument(help="Text, CSV, TSV or Parquet; - for stdin.")],
    kind: Annotated[
        Kind | None, typer.Option("--as", help="What the file is.", show_default="by its ending, else text")
    ] = None,
    top: Annotated[int, typed(options.TOP)] = options.TOP.default,
    as_json: JsonOption = False,
) -> int:
    """Summarise a text or a table without a model: counts, n-grams, entities; types, nulls, ranges."""
    from healkit.config import Config
    from healkit.rendering import summaries
    from healkit.rendering.to_text import text_of
    from healkit.sanitizer.sanitizer import Sanitizer
    from healkit.summaries import summarize as summary_of

    value = read_source(file, kind or KINDS.get(Path(file).suffix.lower(), "text"))
    summary = summary_of(value, Sanitizer.from_config(Config.from_environment()), top=top)
    if as_json:
        print_json(msgspec.json.decode(msgspec.json.encode(summary)))
    else:
        put(text_of(summaries.card(summary), terminal_width()))
    return OK


def read_source(file: str, kind: Kind, hint: str = "--as says what it is.") -> Any:
    """Return the text, or the table as a frame or an Arrow table; raise `UsageInvalid` where it cannot be read."""
    try:
        if kind == "text":
            with contextlib.nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
                return stream.read(_TEXT_MAX_BYTES).decode(errors="replace")
        source: Any = io.BytesIO(sys.stdin.buffer.read()) if file == "-" else file
        if kind == "parquet":
            import pyarrow.parquet as pq

            return pq.read_table(source)
        import pandas as pd

        return pd.read_csv(
            source, sep="\t" if kind == "tsv" else ",", encoding_errors="replace", low_memory=False
        )
    except OSError as error:
        wrong(f"Cannot read {file!r}: {error.strerror or error}.", "Name a file, or - for stdin.")
    except (ValueError, ImportError) as error:  # those of pandas' and Arrow's readers are such
        wrong(f"{file!r} cannot be read as {kind}: {error}", hint)
