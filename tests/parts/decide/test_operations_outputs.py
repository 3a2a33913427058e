"""Files that operations make."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_operations_tasks import in_process

from healkit.errors import UsageInvalid
from healkit.parts.decide.operations import write_output


def test_text_and_bytes_are_written_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = write_output("Zürich\n", tmp_path, "report.md")
        picture = write_output(b"\x89PNG", tmp_path, "Chart 1 (final).png")
    finally:
        os.umask(before)
    assert path == tmp_path / "report.md"
    assert path.read_bytes() == "Zürich\n".encode()
    assert picture.read_bytes() == b"\x89PNG"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, picture)] == [0o600, 0o600]
    assert sorted(os.listdir(tmp_path)) == ["Chart 1 (final).png", "report.md"]


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "/etc/x", "a\\b", "a\0b", ".hidden", "-rf", "x\n", "con", "NUL.txt", "a.", "a ", "x" * 300,
     "ü" * 150, "a\u202eb", "~x", "a:b", None, 3],
)  # fmt: skip
def test_a_name_that_is_more_than_a_file_name_is_refused(tmp_path: Path, name: object) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(UsageInvalid, match="is not a name for a file"):
        write_output("x", folder, name)  # type: ignore[arg-type]  # other types are tried too
    assert os.listdir(folder) == []
    assert os.listdir(tmp_path) == ["run"]


def test_nothing_is_overwritten_and_no_link_is_followed(tmp_path: Path) -> None:
    folder, secret = tmp_path / "run", tmp_path / "secret"
    folder.mkdir()
    secret.write_text("kept")
    (folder / "taken.csv").write_text("kept")
    (folder / "link.csv").symlink_to(secret)
    (folder / "dangling.csv").symlink_to(tmp_path / "new")
    (folder / "folder").mkdir()
    for name in ("taken.csv", "link.csv", "dangling.csv", "folder"):
        with pytest.raises(UsageInvalid, match="already"):
            write_output("other", folder, name)
    assert secret.read_text() == "kept"
    assert (folder / "taken.csv").read_text() == "kept"
    assert not (tmp_path / "new").exists()
    assert sorted(os.listdir(folder)) == ["dangling.csv", "folder", "link.csv", "taken.csv"]


def test_a_report_has_no_markup_of_the_data() -> None:
    rude = pd.DataFrame(
        {"a|b": ["<script>alert(1)</script>", "[x](javascript:alert(1))", "two\nlines | `x` ![i](u)"]}
    )
    report = in_process("export_report")(rude, "Title *x*", rows=5)
    table = [line for line in report.splitlines() if line.startswith("|")]
    assert len(table) == 5
    assert table[0] == r"| a\|b |"
    assert table[2] == r"| \<script\>alert(1)\</script\> |"
    assert table[3] == r"| \[x\](javascript:alert(1)) |"
    assert report.startswith("# Title \\*x\\*\n")
    wide = in_process("export_report")(pd.DataFrame([range(40)] * 3), "Wide", rows=2)
    assert "Not shown: 1 more rows, 10 more columns." in wide


def test_a_notebook_holds_the_data_itself(tmp_path: Path) -> None:
    import json

    data = pd.DataFrame({"when": pd.to_datetime(["2024-01-01", None]), "kind": pd.Categorical(["a", None])})
    notebook = json.loads(in_process("export_notebook")(data, "Kept", "A line."))
    namespace: dict[str, object] = {}
    exec(notebook["cells"][1]["source"], namespace)
    pd.testing.assert_frame_equal(namespace["data"], data)  # type: ignore[arg-type]  # the name holds a frame
    large = pd.DataFrame({"x": np.random.default_rng(1).random(900_000)})
    with pytest.raises(ValueError, match="larger than 5 MB"):
        in_process("export_notebook")(large, "Large")


@pytest.mark.slow
def test_a_chart_needs_numbers_and_few_rows() -> None:
    draw = in_process("draw_chart")
    data = pd.DataFrame({"city": ["Bern", "$x^"], "sold": [1, 2], "_under": [1.5, None]})
    assert draw(data, "bar", "city", ["sold", "_under"], title="$a^").startswith(b"\x89PNG")
    assert draw(data.iloc[:0], "line", "city", ["sold"]).startswith(b"\x89PNG")
    assert draw(data, "line", "sold", ["sold"]) == draw(data, "line", "sold", ["sold"])
    with pytest.raises(ValueError, match=r"'city' holds text values; a chart needs numbers"):
        draw(data, "bar", "sold", ["city"])
    with pytest.raises(ValueError, match=r"has no column 'sodl'\. Did you mean 'sold'\?"):
        draw(data, "bar", "city", ["sodl"])
    with pytest.raises(ValueError, match="201 rows, but a bar chart draws at most 200"):
        draw(pd.DataFrame({"x": range(201), "y": range(201)}), "bar", "x", ["y"])
    with pytest.raises(ValueError, match="needs at least one column in `y`"):
        draw(data, "line", "city")
