"""Prose: plain sentences, short pages, correct spelling."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prose import (
    ROOT,
    WORDS_MAX,
    Sentence,
    comment_sentences,
    docstring_sentences,
    literal_sentences,
    markdown_sentences,
    name_sentences,
    pages,
    script_sentences,
    toml_sentences,
)

#: Pages that are lists of examples or of texts.
REFERENCE = {"docs/library_failures.md", "docs/texts.md"}
LINES_MAX = {"README.md": 110, "docs/contributing.md": 150}
SHARE_MAX = 0.03
#: Words of a sentence on screen, where a reader has less patience than on a page.
SCREEN_WORDS_MAX = 20
ON_SCREEN = {"texts on screen", "explanations", "extension"}


def _files(pattern: str, *folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(path for path in (ROOT / folder).rglob(pattern) if "node_modules" not in path.parts)


def _code() -> Iterator[Path]:
    yield from _files("*.py", "healkit", "tests", "benchmarks", "docs")
    yield from ROOT.glob("*.py")


def _comments_and_tests() -> Iterator[Sentence]:
    for path in _code():
        yield from comment_sentences(path)
        yield from name_sentences(path)
        if path.relative_to(ROOT).parts[0] != "healkit":
            yield from docstring_sentences(path)


SOURCES = {
    "pages": lambda: (sentence for path in pages() for sentence in markdown_sentences(path)),
    "docstrings": lambda: (
        sentence for path in _files("*.py", "healkit") for sentence in docstring_sentences(path)
    ),
    "texts on screen": lambda: (
        sentence for path in _files("*.py", "healkit") for sentence in literal_sentences(path)
    ),
    "explanations": lambda: (
        sentence for path in _files("*.toml", "healkit", "docs") for sentence in toml_sentences(path)
    ),
    "extension": lambda: (
        sentence
        for path in (*_files("*.ts*", "js/lab/src"), *_files("*.js", "js/src"))
        for sentence in script_sentences(path)
    ),
    "comments and tests": _comments_and_tests,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_no_sentence_has_a_forbidden_form_and_few_are_long(kind: str) -> None:
    sentences: list[Sentence] = list(SOURCES[kind]())
    assert len(sentences) > 100
    assert [f"{one.place}: {form}" for one in sentences for form in one.forbidden] == []
    most = SCREEN_WORDS_MAX if kind in ON_SCREEN else WORDS_MAX
    long = [one for one in sentences if one.word_count > most]
    assert len(long) <= SHARE_MAX * len(sentences), [f"{one.place}: {one.text}" for one in long]


def test_a_page_is_short() -> None:
    lines = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in pages()}
    assert {name for name, count in lines.items() if count > LINES_MAX.get(name, 250)} <= REFERENCE


@pytest.mark.slow
def test_nothing_is_misspelt() -> None:
    words = ROOT / "docs" / "spelling.txt"
    command = [sys.executable, "-m", "codespell_lib", "--ignore-words", str(words)]
    skipped = "*.json,*.svg,*.webp,*.png,*.js,*.css,labextension,library_failures.md,texts.md,_build,lessons,reference"
    done = subprocess.run(
        [*command, "--skip", skipped, "README.md", "CHANGELOG.md", "docs", "healkit"],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.stdout == ""


@pytest.mark.slow
def test_proselint_finds_nothing_in_the_pages(tmp_path: Path) -> None:
    """It gets the sentences alone: it knows no Markdown, and code is not prose."""
    for path in pages():
        if path.relative_to(ROOT).as_posix() not in REFERENCE:
            text = "\n\n".join(sentence.text for sentence in markdown_sentences(path))
            (tmp_path / f"{path.stem}.txt").write_text(text)
    command = [sys.executable, "-m", "proselint", "check", "--config", str(ROOT / "docs" / "proselint.json")]
    done = subprocess.run(
        [*command, *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
