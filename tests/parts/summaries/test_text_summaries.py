"""Summaries of texts: what is counted, listed and hidden."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import msgspec
import pytest

from healkit.core.secrets.cleaner import Verbatim
from healkit.errors import UsageInvalid
from healkit.parts.decide import summaries
from healkit.parts.decide.summaries import TEXT_MAX_CHARS, summarize
from healkit.parts.decide.summary_records import Counted, FoundThings, TextSummary
from healkit.parts.sanitizer.sanitizer import Sanitizer

pytestmark = pytest.mark.requirement("DECIDE-7")
SANITIZER = Sanitizer()


def summary_of(text: str, top: int = 10) -> TextSummary:
    found = summarize(text, SANITIZER, top=top)
    assert isinstance(found, TextSummary)
    return found


def listed(found: FoundThings) -> dict[str, int]:
    return {entry.text: entry.count for entry in found.top}


def test_lines_paragraphs_sentences_and_words_are_counted() -> None:
    found = summary_of("Dr. J. Smith came at 3.5 p.m. today. He left!\nWhy?\n\nState-of-the-art isn't it")
    assert (found.lines, found.paragraphs, found.sentences) == (4, 2, 4)
    assert (found.words, found.distinct_words) == (14, 14)
    assert (found.characters, found.size_bytes) == (77, 77)


def test_ngrams_stay_within_a_sentence_and_neither_begin_nor_end_with_a_stop_word() -> None:
    found = summary_of("The state of the art. The state of the art, the Art of\nwar. War art.")
    assert listed(found.ngrams[1]) == {"art": 4, "state": 2, "war": 2}
    assert found.ngrams[2] == FoundThings(1, 1, ())
    assert found.ngrams[3] == FoundThings(1, 1, ())
    found = summary_of("Machine learning works. Machine learning fails, machine learning works.")
    assert listed(found.ngrams[2]) == {"machine learning": 3, "learning works": 2}
    assert listed(found.ngrams[3]) == {"machine learning works": 2}


def test_names_are_capitalised_words_that_do_not_only_begin_a_sentence() -> None:
    text = "Yesterday Ann Lee met Bob. The Bank of England and NASA paid. Then I saw Anna de Vries, and Bob of York."
    assert listed(summary_of(text).entities["name"]) == {
        "Bank of England": 1, "NASA": 1, "Anna de Vries": 1, "Bob of York": 1, "Yesterday Ann Lee": 1, "Bob": 1,
    }  # fmt: skip


def test_each_kind_of_entity_is_found_by_its_form() -> None:
    for kind, text, texts in (
        ("date", "2024-01-05, 5 March 2024, March 5th, 2024, Mar 2024, 05.03.2024, 3/5/24", 6),
        ("date", "2024-13-05 1.2.3.4 5 Marble 2024", 0),
        ("time", "at 10:30, 23:59:59 and 9:05 pm", 3),
        ("time", "25:00 10:75 1:2:3:4", 0),
        ("money", "$5, €1,200.50, £3 million, US$7, 12 EUR, 3.5 euros", 6),
        ("percent", "5%, 3.5 % and -2%", 3),
        ("mention", "@ann and (@bob_2) but not a@b", 2),
        ("hashtag", "#data #Été but not #1 or a#b", 2),
    ):
        assert summary_of(text).entities.get(kind, FoundThings()).count == texts, text


def test_numbers_have_their_range_without_dates_times_and_amounts() -> None:
    found = summary_of(
        "We saw 1,200 of 3.5 and -2, and 3.5 in 2e3, not v2, 3D, 1.2.3, $9, 10:30 or 2024-01-05."
    ).numbers
    assert (found.count, found.distinct, found.min, found.max) == (5, 4, -2, 2000)
    assert found.mean == pytest.approx(641)
    assert summary_of("nothing").numbers.min is None


def test_urls_end_before_the_sentence_around_them() -> None:
    text = (
        "See https://a.org/x?y=1, (http://b.org/w_(z)) or www.c.com/q. Again https://a.org/x?y=1! http://[bad"
    )
    found = summary_of(text)
    assert listed(found.urls) == {
        "https://a.org/x?y=1": 2, "http://b.org/w_(z)": 1, "www.c.com/q": 1, "http://[bad": 1,
    }  # fmt: skip
    assert listed(found.hosts) == {"a.org": 2, "b.org": 1, "www.c.com": 1, "?": 1}


def test_citations_are_found_by_kind() -> None:
    text = (
        "As shown [3, 5-7] and (Lee et al., 2020; Ng & Wu, 2019), by Jones (2018), in https://doi.org/10.1000/ABC.1, "
        r"doi:10.1000/abc.1, arXiv:2101.00001v2, \citep{lee2020} and [@doe99]; not (in 2020) or [x] or a[0]."
    )
    counts = {kind: found.count for kind, found in summary_of(text).citations.items()}
    assert counts == {"author_year": 2, "number_in_brackets": 1, "key": 2, "doi": 2, "arxiv": 1}
    assert listed(summary_of(text).citations["doi"]) == {"10.1000/abc.1": 2}


def test_what_the_sanitiser_hides_is_in_no_list() -> None:
    secret = "ghp_" + "".join(
        random.Random(7).choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345", k=36)
    )
    text = (
        f"password = 'Quetzal-Zebra-77' Quetzal\nann.lee@corp.com {secret} https://u:Quetzal9x@h.org/ +41 44 668 18 00\n"
        * 3
    )
    found = summary_of(text)
    assert found.hidden["email"] == 3
    told = msgspec.json.encode(found).decode() + str(found) + found._repr_mimebundle_()["text/html"]  # type: ignore[attr-defined]  # the shown kind
    for part in ("Zebra", "zebra", "ann.lee", "corp", secret[4:20], "Quetzal9x", "668", "REDACTED"):
        assert part not in told.replace("secret-name", ""), part


def test_invisible_characters_are_left_out_and_counted() -> None:
    found = summary_of("pass\u200bport \u202etxet\u202c pass\u00adport")
    assert listed(found.ngrams[1]) == {"passport": 2, "txet": 1}
    assert found.invisible == 4


def test_words_of_other_scripts_are_whole() -> None:
    words = summary_of("हिन्दी भाषा مَرْحَبًا שלום étude e\u0301tude 機械学習 機械", top=20).ngrams
    assert {"हिन्दी", "भाषा", "مَرْحَبًا", "שלום"} <= set(listed(words[1]))
    assert listed(words[1])["étude"] == 2
    assert listed(words[2]) == {"機械": 2}


def test_odd_texts_have_a_summary_that_can_be_shown_and_sent() -> None:
    for text in ("", " \n\n", "\ud800", "\0", "\u202e", "1" * 500, "é" * 500, "[NOTE]", ")" * 99):
        found = summary_of(text)
        assert str(found)
        assert msgspec.json.decode(msgspec.json.encode(found), type=TextSummary).characters == len(text)


def test_the_summary_is_the_same_in_another_process() -> None:
    """Sets and dicts of texts have another order in each process; no list depends on it."""
    text = " ".join(
        random.Random(3).choices(["alpha", "Beta", "gamma @delta", "#eps", "http://z.org/"], k=300)
    )
    script = (
        "import sys, msgspec\nfrom healkit.parts.sanitizer.sanitizer import Sanitizer\nfrom healkit.parts.decide.summaries import summarize\n"
        "sys.stdout.write(msgspec.json.encode(summarize(sys.argv[1], Sanitizer())).decode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, text], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == msgspec.json.encode(summary_of(text)).decode()


def test_a_wrong_number_of_entries_is_refused() -> None:
    for top in (-1, 1001):
        with pytest.raises(UsageInvalid, match="top"):
            summary_of("x", top=top)


def test_top_limits_every_list() -> None:
    found = summary_of("one two one two three @a @b http://a.org http://b.org (Lee, 2020) (Wu, 2019)", top=1)
    lists = [
        *found.ngrams.values(),
        *found.entities.values(),
        *found.citations.values(),
        found.urls,
        found.hosts,
    ]
    assert max(len(one.top) for one in lists) == 1
    assert found.ngrams[1].top == (Counted("one", 2),)
    assert summary_of("one one", top=0).ngrams[1] == FoundThings(2, 1, ())


HOSTILE = {
    "one word": "a", "dots": ".", "at": "a@", "brackets": "([1,", "urls": "http://a) ", "one url": "a)", "marks": "\u0301\u0327",
    "lines": "\n ", "numbers": "1,", "www": "www.", "authors": "(Ab and ", "emails": "a.b-c+", "apostrophes": "a'", "dois": "10.1234/",
    "characters": "機", "capitals": "Aa ", "spaces": " ", "dashes": "-", "keys": r"\cite{", "times": "1:", "money": "$1",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_hostile_text_takes_time_in_proportion() -> None:
    """Quadratic patterns would take 256 times as long for 16 times the text; noise allows for 64."""

    def seconds(piece: str, size: int) -> float:
        text = "x" + piece * (size // len(piece))
        start = time.process_time()
        summarize(text, Verbatim())  # the sanitiser's own tests bound its time
        return time.process_time() - start

    slow = [
        name for name, piece in HOSTILE.items() if seconds(piece, 48_000) > max(64 * seconds(piece, 3_000), 2)
    ]
    assert slow == []


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_ten_megabytes_end_in_bounded_memory() -> None:
    """Of 1,700,000 random words, each n-gram is another: a dict of them took gigabytes."""
    script = (
        "import random, resource, sys\nfrom healkit.parts.sanitizer.sanitizer import Sanitizer\nfrom healkit.parts.decide.summaries import summarize\n"
        "r = random.Random(1)\n"
        "text = ' '.join(''.join(r.choices('abcdefghijklmnopqrst', k=5)) for _ in range(10_000_000 // 6))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "found = summarize(text, Sanitizer())\n"
        "print(found.words, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=390
    )
    words, megabytes = map(int, done.stdout.split())
    assert words == 10_000_000 // 6
    assert megabytes < 1000


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_of_a_longer_text_the_beginning_is_read() -> None:
    found = summary_of("word " * (TEXT_MAX_CHARS // 5 + 10))
    assert found.cut
    assert found.characters > TEXT_MAX_CHARS
    assert found.words <= TEXT_MAX_CHARS // 5
    assert "Only the beginning" in str(found)


def test_each_kind_finds_its_own_example_whole() -> None:
    for kind, entry in summaries._DATA["kinds"].items():
        match = summaries.FOUND.fullmatch(entry["example"])
        assert match is not None, kind
        assert match.lastgroup == kind
        assert len(entry["pattern"]) <= 100, kind
