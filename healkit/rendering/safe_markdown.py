"""Markdown of a restricted tool, made safe to draw.

The Markdown is drawn by whatever the notebook is opened in: JupyterLab parses it with marked, nbconvert with mistune,
VS Code with markdown-it. They disagree on where code, HTML and links begin, and JupyterLab takes formulas out before it
parses at all. A link that one parser does not see is a link in another, so no parser decides here: each place where
any of them could begin a link's target is found in the text, the target's scheme is read as a browser reads it, and a
target with another scheme than the allowed ones loses what makes it a link. The tests compare with two of the parsers.
"""

from __future__ import annotations

import html
import re
import unicodedata

from healkit.plain_text import drawn

#: Schemes of links; a target without a scheme is a place on the same page or server.
_SCHEMES = frozenset({"http", "https", "mailto"})
_HTML_START = re.compile(r"<(?=[A-Za-z/!?])")
#: `](` before the target of a link, `]:` before the one of a reference; then the target, as far as a scheme may reach.
_TARGET = re.compile(r"(?<=\])(?P<sign>[(:])(?=[\x00-\x20\xa0]*(?P<target>[^\n\r ()\[\]/?\"]*))")
#: Bare addresses that some parsers make links of.
_BARE = re.compile(r"(?i)\b(ftp)(?=://)")
_SCRIPT = re.compile(r"(?i)\b(javascript|vbscript|data)\s*:(?=\S)")
_ENTITY = re.compile(r"&(?:#\d{1,40}|#[xX][0-9a-fA-F]{1,40}|[A-Za-z][A-Za-z0-9]{1,31});?")
#: Characters that a browser drops from an address, or that cannot be seen in one.
_DROPPED = re.compile(r"[\x00-\x20\\\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060\ufeff]")
_SCHEME = re.compile(r"(?:<|&lt;)*([^:/?#&;]*):")
#: TeX commands of MathJax that make links, load packages or set attributes of the page. The backslash may be an entity.
_TEX_ACTIVE = re.compile(
    r"(?P<slash>\\|&(?:#0*92|#[xX]0*5[cC]|bsol|Backslash);?)"
    r"(?P<name>href|url|class|cssId|style|require|unicode|data|includegraphics|html\w*|bbox)(?![A-Za-z])"
)


def safe_markdown(text: str) -> str:
    """Return Markdown without HTML, images and active links, so that drawing it runs and fetches nothing."""
    text = _ENTITY.sub(_decoded_letter, text)
    text = _HTML_START.sub("&lt;", text)
    text = re.sub(r"(?<!!)!++(?=\[)", "", text)
    text = _SCRIPT.sub(r"\1 :", text)
    text = _TARGET.sub(_checked_target, text)
    text = _BARE.sub(r"\1\\", text)
    return without_active_tex(text)


def without_active_tex(text: str) -> str:
    r"""Return a text in which no formula can make a link; `\\href` is a line end and a word, and stays."""
    return _TEX_ACTIVE.sub(_inactive_command, text)


def _inactive_command(found: re.Match[str]) -> str:
    r"""Drop the backslash; keep it, with a blank, where without it the one before would be the command's."""
    before = found.string[found.start() - 1 : found.start()]
    alone = found["slash"] == "\\" and not (before.isalnum() or before in {"\\", ";"})
    return found["name"] if alone else f"{found['slash']} {found['name']}"


def _decoded_letter(found: re.Match[str]) -> str:
    """Write entities of letters and digits as these: they could spell a command or a scheme; drop controls."""
    meant = html.unescape(found[0])
    if drawn(meant) != meant:
        return ""
    return meant if meant.isascii() and meant.isalnum() else found[0]


def _checked_target(found: re.Match[str]) -> str:
    """Return the sign before a link's target, escaped where the target's scheme is not allowed."""
    scheme = _scheme_of(found["target"])
    return found["sign"] if scheme is None or scheme in _SCHEMES else "\\" + found["sign"]


def _scheme_of(target: str) -> str | None:
    """Read a target's scheme as the most lenient parser and browser would; None where it has none."""
    for _ in range(4):
        decoded = html.unescape(target)
        if decoded == target:
            break
        target = decoded
    plain = _DROPPED.sub("", unicodedata.normalize("NFKC", _DROPPED.sub("", target)))
    found = _SCHEME.match(plain)
    return None if found is None else found[1].lower()
