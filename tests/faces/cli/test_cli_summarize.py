"""`healkit summarize`: texts and tables from files and stdin."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from cli_samples import Done

Cli = Callable[..., Done]
pytestmark = pytest.mark.requirement("DECIDE-7", "FACE-5")


def parsed(done: Done) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_text_is_summarised_from_a_file_and_from_stdin(cli: Cli, tmp_path: Path) -> None:
    text = "Ann Lee met Bob Ray. Ann Lee met nobody."
    (tmp_path / "note.md").write_text(text)
    done = cli("summarize", "note.md")
    assert done.returncode == 0
    assert done.stdout.startswith("Text: 9 words, 2 sentences\n")
    assert "Ann Lee ×2" in done.stdout
    assert cli("summarize", "-", stdin=text).stdout == done.stdout
    found = parsed(cli("summarize", "-", "--json", "--top", "1", stdin=text))
    assert found["words"] == 9
    assert len(found["ngrams"]["1"]["top"]) == 1  # type: ignore[index]  # an object


def test_a_table_is_read_by_its_ending_or_as_told(cli: Cli, tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2, 2], "t": ["a", None, "b"]})
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_csv(tmp_path / "data.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "data.parquet")
    for name in ("data.csv", "data.tsv", "data.parquet"):
        found = parsed(cli("summarize", name, "--json"))
        assert (found["shape"], found["nulls"]) == ([3, 2], 1), name
    text = (tmp_path / "data.csv").read_text()
    assert parsed(cli("summarize", "-", "--as", "csv", "--json", stdin=text))["shape"] == [3, 2]
    assert "words" in cli("summarize", "data.csv", "--as", "text").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere.txt",), "Cannot read 'nowhere.txt': No such file"),
        (("bad.parquet",), "'bad.parquet' cannot be read as parquet"),
        (("empty.csv",), "'empty.csv' cannot be read as csv"),
        (("bad.parquet", "--as", "text", "--top", "-1"), "top is -1"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(
    cli: Cli, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nonsense")
    (tmp_path / "empty.csv").write_text("")
    done = cli("summarize", *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") <= 2
    assert json.loads(cli("summarize", *words, "--json").stdout)["error"]["code"] == "USAGE_INVALID"


def test_a_secret_is_not_printed(cli: Cli) -> None:
    for words in ((), ("--json",)):
        done = cli("summarize", "-", *words, stdin="password = 'Quetzal-Zebra-77'\nann@corp.com\n")
        assert "uetzal" not in done.stdout
        assert "corp" not in done.stdout
        assert "secret-name" in done.stdout
