"""Outputs that a restricted tool may display in a notebook.

A worker has no network and no files, but the user's browser, which draws its outputs, has both. So healkit only passes
kinds of output that cannot run or fetch anything. These are text, raster images, JSON, HTML cleaned by nh3, and
Markdown without HTML and active links. Scripts, SVG, widgets and vendor types are removed. Text keeps its colours, but
no other control characters. If nothing is left to show, the output names the removed kinds.

Each program that opens a notebook has its own Markdown parser: JupyterLab uses marked, nbconvert mistune, VS Code
markdown-it. They disagree on where code, HTML and links begin, and JupyterLab removes formulas before it parses. Text
that one parser ignores may be a link for another. So healkit does not rely on a parser. It finds every place in the
text where a link's target could begin, and reads the target's scheme as a browser does. If the scheme is not allowed,
it breaks the link. The tests compare the result with two of the parsers.
"""

from __future__ import annotations

import base64
import html
import json
import re
import unicodedata
from typing import Any

from healkit.plain_text import drawn

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif"})
_STYLES = frozenset({
    "background-color", "border", "border-bottom", "border-collapse", "border-color", "border-left",
    "border-radius", "border-right", "border-style", "border-top", "border-width", "color", "font-family",
    "font-size", "font-style", "font-weight", "height", "line-height", "margin", "margin-bottom",
    "margin-left", "margin-right", "margin-top", "max-height", "max-width", "min-height", "min-width",
    "overflow", "overflow-wrap", "overflow-x", "overflow-y", "padding", "padding-bottom", "padding-left",
    "padding-right", "padding-top", "text-align", "text-decoration", "vertical-align", "white-space",
    "width",
})  # fmt: skip
_TAGS = frozenset({
    "a", "abbr", "b", "blockquote", "br", "caption", "code", "col", "colgroup", "dd", "del", "details",
    "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img",
    "ins", "kbd", "li", "mark", "ol", "p", "pre", "progress", "q", "s", "samp", "small", "span", "strong",
    "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var",
})  # fmt: skip
_ATTRIBUTES = {
    "*": {"style", "title"},
    "a": {"href"},
    "col": {"span"},
    "details": {"open"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start"},
    "progress": {"value", "max"},
    "table": {"border"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
}
_DATA_IMAGE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*\Z", re.IGNORECASE)
_WEB_LINK = re.compile(r"https?://", re.IGNORECASE)
#: A CSS value that could fetch (`url()`, `image-set()`), compute, or hide one of these in an escape.
_CSS_ACTIVE = re.compile(r"\\|/\*|\b(?!rgba?\(|hsla?\()[\w-]+\(", re.IGNORECASE)
#: A negative margin or a vertical shift, which could draw over content beside the output.
_CSS_SHIFT = re.compile(r"\s*(?:margin[\w-]*|vertical-align)\s*:[^;]*?-\s*[\d.]", re.IGNORECASE)
#: Properties that can make content larger than its box.
_CSS_OVERFLOWS = re.compile(r'style="[^"]*(?:margin|height|overflow|font-size|vertical-align)')
_SURROGATE = re.compile("[\ud800-\udfff]")


def safe_output(output: dict[str, Any]) -> dict[str, Any] | None:
    """Reduce an nbformat output dict to parts that are safe to draw; return None if it is not an output."""
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": _text(output.get("text", ""))}
    if kind == "error":
        lines = output.get("traceback") or []
        trace = list(map(_text, lines)) if isinstance(lines, list) else []
        return {
            "output_type": "error",
            "ename": _text(output.get("ename", "")),
            "evalue": _text(output.get("evalue", "")),
            "traceback": trace,
        }
    if kind not in {"display_data", "execute_result"}:
        return None
    data = output.get("data")
    bundle = _bundle(data if isinstance(data, dict) else {})
    return {
        "output_type": "display_data",
        "data": bundle,
        "metadata": _metadata(output.get("metadata"), bundle),
    }


def _bundle(data: dict[str, Any]) -> dict[str, Any]:
    bundle = {kind: safe for kind, value in data.items() if (safe := _spared(kind, value)) is not None}
    left_out = [str(kind) for kind in data if kind not in bundle]
    if not bundle and left_out:
        bundle["text/plain"] = (
            f"(not shown: {', '.join(left_out)}; a restricted tool displays text, tables and images only)"
        )
    return bundle


def _spared(kind: str, value: object) -> Any:
    """Return the value of one kind, made safe; None if it cannot be read, so that the other kinds are kept."""
    try:
        return _safe_value(kind, value)
    except Exception:  # noqa: BLE001 - a worker may have forged the value
        return None


def _safe_value(kind: str, value: object) -> Any:
    """Return the value of one kind, made safe; None if that is not possible."""
    if kind == "application/json":
        return json.loads(drawn(json.dumps(value, ensure_ascii=False))) if _is_json(value) else None
    text = _text(value)
    if kind == "text/plain":
        return text
    if kind == "text/html":
        return clean_html(text)
    if kind == "text/markdown":
        return safe_markdown(text)
    if kind == "text/latex":
        return without_active_tex(text)
    return text if kind in _IMAGES and _is_base64(text) else None


def clean_html(text: str) -> str:
    """Keep only elements, attributes and styles that cannot run, fetch or leave their place.

    Content that may be larger than its box is put into a scrolling element, which it cannot leave.
    """
    import nh3  # here, because a terminal that shows no HTML does not need it

    cleaned: str = nh3.clean(
        text,
        tags=set(_TAGS),
        attributes={name: set(allowed) for name, allowed in _ATTRIBUTES.items()},
        allowed_classes={"table": {"dataframe"}},
        attribute_filter=_attribute,
        filter_style_properties=set(_STYLES),
        url_schemes={"http", "https", "data"},
        clean_content_tags={
            "script",
            "style",
            "iframe",
            "object",
            "embed",
            "svg",
            "math",
            "template",
            "noscript",
        },
        strip_comments=True,
    )
    cleaned = drawn(without_active_tex(cleaned))  # after nh3, which has decoded entities
    return f'<div style="overflow:auto">{cleaned}</div>' if _CSS_OVERFLOWS.search(cleaned) else cleaned


def _attribute(_tag: str, name: str, value: str) -> str | None:
    """Return the attribute's safe value, or None to remove it; nh3 calls it for each attribute."""
    if name == "src":
        return value if _DATA_IMAGE.match(value) else None
    if name == "href":
        return value if _WEB_LINK.match(value) else None
    if name == "style":
        if _CSS_ACTIVE.search(value):
            return None
        return ";".join(part for part in value.split(";") if not _CSS_SHIFT.match(part))
    return value


def _metadata(metadata: object, shown: dict[str, Any]) -> dict[str, Any]:
    """Return the size of an image; all other metadata is removed."""
    sizes: dict[str, Any] = {}
    for kind in _IMAGES & shown.keys():
        entry = metadata.get(kind) if isinstance(metadata, dict) else None
        size = (
            {k: v for k, v in entry.items() if k in {"width", "height"} and isinstance(v, int)}
            if isinstance(entry, dict)
            else {}
        )
        if size:
            sizes[kind] = size
    return sizes


def _text(value: object) -> str:
    """Join a list of lines, which nbformat also allows as text; replace lone surrogates."""
    joined = drawn("".join(map(_as_text, value)) if isinstance(value, list) else _as_text(value))
    return joined if joined.isascii() else _SURROGATE.sub("\ufffd", joined)


def _as_text(value: object) -> str:
    try:
        return value if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):  # an int with too many digits to print; a list that contains itself
        return f"<{type(value).__name__}>"


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode("".join(text.split()), validate=True))
    except ValueError:
        return False


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


# Markdown.

#: Allowed schemes of links; a target without a scheme is on the same page or server.
_SCHEMES = frozenset({"http", "https", "mailto"})
_HTML_START = re.compile(r"<(?=[A-Za-z/!?])")
#: `](` before the target of a link, or `]:` before that of a reference; then the part of the target with its
#: scheme.
_TARGET = re.compile(r"(?<=\])(?P<sign>[(:])(?=[\x00-\x20\xa0]*(?P<target>[^\n\r ()\[\]/?\"]*))")
#: Bare addresses that some parsers turn into links.
_BARE = re.compile(r"(?i)\b(ftp)(?=://)")
_SCRIPT = re.compile(r"(?i)\b(javascript|vbscript|data)\s*:(?=\S)")
_ENTITY = re.compile(r"&(?:#\d{1,40}|#[xX][0-9a-fA-F]{1,40}|[A-Za-z][A-Za-z0-9]{1,31});?")
#: Characters that a browser removes from an address, or that are invisible in it.
_DROPPED = re.compile(r"[\x00-\x20\\\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060\ufeff]")
_SCHEME = re.compile(r"(?:<|&lt;)*([^:/?#&;]*):")
#: TeX commands of MathJax that make links, load packages or set attributes. The backslash may be an entity.
_TEX_ACTIVE = re.compile(
    r"(?P<slash>\\|&(?:#0*92|#[xX]0*5[cC]|bsol|Backslash);?)"
    r"(?P<name>href|url|class|cssId|style|require|unicode|data|includegraphics|html\w*|bbox)(?![A-Za-z])"
)


def safe_markdown(text: str) -> str:
    """Return Markdown without HTML, images and active links, so that drawing it cannot run or fetch anything."""
    text = _ENTITY.sub(_decoded_letter, text)
    text = _HTML_START.sub("&lt;", text)
    text = re.sub(r"(?<!!)!++(?=\[)", "", text)
    text = _SCRIPT.sub(r"\1 :", text)
    text = _TARGET.sub(_checked_target, text)
    text = _BARE.sub(r"\1\\", text)
    return without_active_tex(text)


def without_active_tex(text: str) -> str:
    r"""Return a text in which no formula can make a link; `\\href` is unchanged: it is a line end and a word."""
    return _TEX_ACTIVE.sub(_inactive_command, text)


def _inactive_command(found: re.Match[str]) -> str:
    r"""Drop the backslash. If a backslash before it would then make a command, keep it and add a blank."""
    before = found.string[found.start() - 1 : found.start()]
    alone = found["slash"] == "\\" and not (before.isalnum() or before in {"\\", ";"})
    return found["name"] if alone else f"{found['slash']} {found['name']}"


def _decoded_letter(found: re.Match[str]) -> str:
    """Decode entities of letters and digits, which could spell a command or a scheme; drop control characters."""
    decoded = html.unescape(found[0])
    if drawn(decoded) != decoded:
        return ""
    return decoded if decoded.isascii() and decoded.isalnum() else found[0]


def _checked_target(found: re.Match[str]) -> str:
    """Return the sign before a link's target, escaped if the target's scheme is not allowed."""
    scheme = _scheme_of(found["target"])
    return found["sign"] if scheme is None or scheme in _SCHEMES else "\\" + found["sign"]


def _scheme_of(target: str) -> str | None:
    """Return a target's scheme as the most lenient parser and browser would read it; None if it has none."""
    for _ in range(4):
        decoded = html.unescape(target)
        if decoded == target:
            break
        target = decoded
    plain = _DROPPED.sub("", unicodedata.normalize("NFKC", _DROPPED.sub("", target)))
    match = _SCHEME.match(plain)
    return None if match is None else match[1].lower()
