"""Command that opens the documentation."""

from __future__ import annotations

import webbrowser
from typing import Annotated

from healkit.commands.options import Option, word
from healkit.commands.table import Answer, Command, wrong
from healkit.errors import did_you_mean
from healkit.package import FOLDER

#: Location of the site in a wheel, and in a checkout after `make docs`.
_PLACES = (FOLDER / "_site", FOLDER.parent / "docs" / "_build" / "html")


def docs(
    page: Annotated[str, word("a page, such as healing or reference/settings", "[PAGE]")] = "index",
    browser: Annotated[bool, Option("browser", "open a browser window", both=True)] = True,
) -> Answer:
    """Open the documentation of this version in a browser. It needs no network."""
    site = next((place for place in _PLACES if (place / "index.html").is_file()), None)
    if site is None:
        wrong(
            "This installation does not contain the documentation.",
            "In a checkout, make docs builds it; docs/ has its pages as text.",
        )
    file = (site / page.removesuffix(".html").removesuffix(".md")).with_suffix(".html")
    if not (file.is_file() and file.resolve().is_relative_to(site.resolve())):
        names = [path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")]
        wrong(f"There is no page {page!r}.{did_you_mean(page, names)}", "healkit docs opens the front page.")
    if browser:
        webbrowser.open(file.as_uri())
    return Answer(said=str(file), data=lambda: {"file": str(file)})


COMMANDS = {"docs": Command(docs)}
