"""Control characters in a tool's texts."""

from __future__ import annotations

import json
import re

import pytest
from trusted import trusted_copy

from healkit.core.rendering.outputs import safe_output
from healkit.errors import HealkitError
from healkit.plain_text import drawn

#: What a terminal obeys, apart from a new line and a tab: C0, DEL, C1, and what reorders a line.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
#: An OSC 52 that fills the clipboard in three spellings, a bell, bidi controls, a vertical tab and a form feed.
HOSTILE = "A\x1b]52;c;QUJD\x07B\x9d52;c;QUJD\x9cC\u202eD\u2066E\u200f\u061cF\x9b2JG\x0bH\x0cI"

CODE = f"""
def hostile(fails: bool):
    print({HOSTILE!a})
    if fails:
        raise ValueError({HOSTILE!a})
    return {{"said": {HOSTILE!a}}}


def said(fails: bool):
    return {HOSTILE!a}
"""


def outcome(done):
    """Return what a command printed, without progress bars' own characters and colours."""
    return re.sub(r"\x1b\[[0-9;]*m|[\x08\r]", "", done.stdout + done.stderr)


@pytest.fixture
def hostile(cli, environment, empty_database):
    """`cli` with a tool that fails with such a text once, and returns it once."""
    trusted_copy(empty_database, environment["HEALKIT_DB"])
    assert cli("vault", "add", "hostile", "-", stdin=CODE.split("\n\n\n")[0]).returncode == 0
    return cli


@pytest.mark.slow
@pytest.mark.requirement("SAFE-4")
def test_no_command_prints_a_tools_control_characters(hostile):
    """S8: `healkit run` let bidi controls through, `--json` C1 controls, `errors --last` and `last_error` all of them."""
    ran = [
        hostile("run", "hostile", "--args", '{"fails": true}'),
        hostile("run", "hostile", "--args", '{"fails": false}'),
        hostile("run", "hostile", "--args", '{"fails": false}', "--json"),
        hostile("run", "hostile", "--args", '{"fails": true}', "--json"),
    ]
    listed = [
        hostile(*words)
        for words in (
            ("log",), ("log", "--json"), ("log", "--group"), ("log", "--summary"), ("errors",), ("errors", "--last"),
            ("errors", "--markdown"), ("errors", "--last", "--json"), ("vault", "show", "hostile"), ("status",),
        )
    ]  # fmt: skip
    for done in (*ran, *listed):
        assert OBEYED.findall(outcome(done)) == []
    assert json.loads(ran[2].stdout)["value"] == {"said": HOSTILE}
    assert json.loads(ran[3].stdout)["error"]["evalue"] == HOSTILE


@pytest.mark.slow
@pytest.mark.requirement("SAFE-4")
def test_a_text_that_a_tool_returns_keeps_colours_only_and_the_last_ends_with_its_output(hostile):
    """S8: a returned text could reorder the line, and concealed text hid the card that says how the run ended."""
    hostile("vault", "add", "said", "-", stdin=CODE.split("\n\n\n")[1])
    assert OBEYED.findall(hostile("run", "said", "--args", '{"fails": false}').stdout) == []
    code = "def hides():\n    print('\\x1b[8mgone')\n    return '\\x1b[31mred'\n"
    hostile("vault", "add", "hides", "-", stdin=code)
    assert hostile("run", "hides").stdout == "\x1b[8mgone\n\x1b[0mred\n"


@pytest.mark.requirement("SAFE-4")
@pytest.mark.parametrize("at", range(1, 14))
def test_a_sequence_in_two_pieces_is_none(at):
    """S8: an escape at the end of one piece of output and its rest in the next made one sequence in the terminal."""
    sequence = "\x1b]52;c;QUJD\x07"
    assert OBEYED.findall(drawn(sequence[:at]) + drawn(sequence[at:])) == []


def test_colours_and_progress_bars_are_drawn():
    bar = "\r 50%|#####     |\x1b[32mok\x1b[0m\b\b"
    assert drawn(bar) == bar
    assert drawn("\x1b[2Jone\x1b[3Atwo\x1b") == "onetwo"
    assert drawn("\x1b]0;an unfinished title") == "0;an unfinished title"


@pytest.mark.requirement("SAFE-4")
def test_an_errors_text_holds_no_control_characters():
    """S8: the text of an exception is printed by Python itself, so it is made visible in the exception."""
    error = HealkitError(f"the tool failed: {HOSTILE}", hint="Look.")
    assert OBEYED.findall(str(error)) == []
    assert OBEYED.findall("".join(error._render_traceback_())) == []


@pytest.mark.requirement("SAFE-4")
@pytest.mark.parametrize(
    "kind", ["text/plain", "text/html", "text/markdown", "text/latex", "application/json"]
)
def test_outputs_in_a_notebook_hold_no_control_characters(kind):
    """S8: bidi controls of a worker reached the user's page, as characters and as HTML entities."""
    hostile = HOSTILE + "&#8238;x&#x202e;y&rlm;z&#x9b;2J"
    data = {"k": [hostile]} if kind == "application/json" else hostile
    output = safe_output({"output_type": "display_data", "data": {kind: data}, "metadata": {}})
    assert output is not None
    shown = output["data"][kind]
    assert OBEYED.findall(json.dumps(shown, ensure_ascii=False)) == []
    for told in ({"output_type": "stream", "text": HOSTILE}, {"output_type": "error", "evalue": HOSTILE}):
        assert OBEYED.findall("".join(map(str, safe_output(told).values()))) == []
    if kind == "text/markdown":
        assert "8238" not in shown
        assert "rlm" not in shown
