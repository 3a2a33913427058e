"""Set-up of the documentation site: `make docs`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]

from reference_pages import REFERENCE, write_pages  # noqa: E402 - found in this folder

from healkit.package import VERSION  # noqa: E402 - after the path is set

project, author, copyright = "healkit", "the healkit developers", "the healkit developers"  # noqa: A001 - Sphinx's name
release = version = VERSION
extensions = [
    "myst_nb", "sphinx_copybutton", "sphinx_design",
]  # fmt: skip
exclude_patterns = ["_build", "schemas"]
suppress_warnings = [
    "mystnb.unknown_mime_type"
]  # healkit's own card, and a diagram: the HTML beside them is shown

# Notebooks and blocks are executed by the tests, which see more than a page shows; here they stand as they were saved.
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4


html_theme = "pydata_sphinx_theme"
html_title = "healkit"
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_copy_source = html_show_sourcelink = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. |In \[\d+\]: "
copybutton_prompt_is_regexp = True


def setup(_app: Sphinx) -> None:
    """Write the pages that are generated from the code, and copy the lessons; called by Sphinx."""
    write_pages(HERE / REFERENCE)
    lessons = HERE / "lessons"
    shutil.rmtree(lessons, ignore_errors=True)  # a lesson that was renamed is on no page
    lessons.mkdir()
    for path in (HERE.parent / "notebooks").glob("*.ipynb"):
        shutil.copy2(path, lessons)
