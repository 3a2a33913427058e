"""Facts about JSON, encodings and the formats of dates."""

from __future__ import annotations

import ast
import datetime
import json
import re

from healkit.parts.explain.facts.scene import UNREAD, Facts, Scene, complete, is_text, own_dict, quoted

_EXCERPT_MAX = 24
_DOCUMENT_MAX = 200_000


# JSON

#: Words of other languages, and what JSON writes.
_JSON_WORDS = {
    "True": "true", "False": "false", "None": "null", "TRUE": "true", "FALSE": "false", "NULL": "null", "Null": "null",
    "undefined": "null", "nil": "null", "nan": "NaN",
}  # fmt: skip


def json_text(scene: Scene) -> Facts | None:
    """Say what is at the place where a text stops being JSON."""
    attributes = own_dict(scene.error)
    text, place, message = attributes.get("doc"), attributes.get("pos"), attributes.get("msg")
    if type(text) is not str or type(place) is not int or type(message) is not str:
        return None
    if len(text) > _DOCUMENT_MAX or not 0 <= place <= len(text):
        return None
    facts = {
        "line": str(attributes.get("lineno", "")),
        "column": str(attributes.get("colno", "")),
        "given": _given(scene),
        "marked": _marked(text, place),
        "found": quoted(text[place : place + 1]),
    }
    return {**facts, **_what_is_wrong(text, place, message, facts["given"])}


def _given(scene: Scene) -> str:
    """Return the argument of the failing `json.loads`, as it is written."""
    node = scene.node
    return scene.text(node.args[0]) if isinstance(node, ast.Call) and len(node.args) == 1 else ""


def _marked(text: str, place: int) -> str:
    """Show the text around a place, with a mark there; empty where it is long or may be private."""
    before, after = text[max(0, place - _EXCERPT_MAX) : place], text[place : place + _EXCERPT_MAX]
    if not quoted(before) or not quoted(after) or "`" in before + after:
        return ""
    return f"`{_one_line(before)}‸{_one_line(after)}`"


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def _what_is_wrong(text: str, place: int, message: str, given: str) -> Facts:
    rest, before = text[place:], text[:place].rstrip()
    bare = given.strip("`")
    if not text.strip():
        return {"about": "json_nothing", "size": str(len(text))}
    if text.startswith("\ufeff") and place == 0:
        return {"about": "json_mark"}
    if place == 0 and rest.lstrip()[:1] == "<":
        return {"about": "json_markup"}
    if _is_literal(text):
        return {"about": "json_literal"}
    if message.startswith("Extra data"):
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and all(map(_is_json, lines)):
            instead = f"[json.loads(line) for line in {bare}.splitlines() if line.strip()]" if bare else ""
            return {
                "about": "json_lines",
                "count": str(len(lines)),
                "instead": f"`{instead}`" if bare else "",
            }
        return {"about": "json_extra"}
    word = re.match(r"[A-Za-z]+", rest)
    if word is not None and word[0] in _JSON_WORDS:
        return {"about": "json_word", "word": f"`{word[0]}`", "right": f"`{_JSON_WORDS[word[0]]}`"}
    if rest.startswith("'"):
        return {"about": "json_single"}
    if message.startswith("Illegal trailing comma") or (before.endswith(",") and rest[:1] in {"}", "]"}):
        return {"about": "json_comma_last"}
    if message.startswith("Invalid control character"):
        facts = {"about": "json_control", "part": "", "new": ""}
        return facts | {"part": f"`({bare})`", "new": f"`({bare}, strict=False)`"} if bare else facts
    if message.startswith("Invalid \\"):
        return {"about": "json_escape"}
    if message.startswith("Unterminated string"):
        return {"about": "json_unterminated"}
    if not rest.strip():
        return {"about": "json_cut"}
    if rest.startswith(("//", "/*", "#")):
        return {"about": "json_comment"}
    if message.startswith("Expecting ',' delimiter"):
        return {"about": "json_comma"}
    if message.startswith("Expecting property name") and (name := re.match(r"\w+", rest)):
        return {"about": "json_bare_name", "word": quoted(name[0])}
    if place == 0:
        return {"about": "json_no_beginning"}
    return {"about": "json_place", "message": message}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_literal(text: str) -> bool:
    """Return whether a text is a dict or a list as Python prints it, instead of JSON."""
    if not text.lstrip().startswith(("{", "[", "(")):
        return False
    try:
        ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return "'" in text or re.search(r"\b(?:True|False|None)\b", text) is not None


# Encodings

#: Bytes at the beginning of data → what they are, and what reads them.
_BEGINNINGS = (
    (b"\xff\xfe", "text in UTF-16", "utf-16"), (b"\xfe\xff", "text in UTF-16", "utf-16"),
    (b"PK\x03\x04", "a zip archive, such as an Excel workbook", ""), (b"\x1f\x8b", "data compressed with gzip", ""),
    (b"\x89PNG", "a PNG image", ""), (b"\xff\xd8\xff", "a JPEG image", ""), (b"%PDF", "a PDF document", ""),
    (b"GIF8", "a GIF image", ""), (b"\xd0\xcf\x11\xe0", "an old Office document, such as an Excel workbook", ""),
    (b"PAR1", "a Parquet file", ""), (b"SQLite format 3", "an SQLite database", ""), (b"\x80\x04", "a pickle", ""),
    (b"\x80\x05", "a pickle", ""), (b"BZh", "data compressed with bzip2", ""),
)  # fmt: skip
#: The reader of each format that is not text.
_READERS = {
    "a zip archive, such as an Excel workbook": "`pd.read_excel(…)` for a workbook, or `zipfile.ZipFile(…)`",
    "data compressed with gzip": "`gzip.open(…, 'rt')`, or `compression='gzip'` in `pd.read_csv`",
    "an old Office document, such as an Excel workbook": "`pd.read_excel(…)`",
    "a Parquet file": "`pd.read_parquet(…)`", "an SQLite database": "`sqlite3.connect(…)`",
    "a pickle": "`pickle.load(…)`, if you trust who wrote it", "data compressed with bzip2": "`bz2.open(…, 'rt')`",
}  # fmt: skip


def undecoded(scene: Scene) -> Facts | None:
    """Say what the data are by their first bytes, or what the unreadable byte is in cp1252."""
    error = scene.error
    if not isinstance(error, UnicodeDecodeError) or type(error.object) is not bytes:
        return None
    data, start = error.object, error.start
    facts = {"codec": f"`{error.encoding}`", "byte": f"`0x{data[start]:02x}`", "position": str(start)}
    if error.encoding.startswith(("utf-16", "utf-32")):
        return {**facts, "about": "bytes_not_wide"} if _reads(data, "utf-8") else None
    for begin, what, codec in _BEGINNINGS:
        if data.startswith(begin) and (not codec or start < len(begin)):
            facts |= {"begin": " ".join(f"{byte:02x}" for byte in begin[:4]), "what": what}
            if codec:
                return {**facts, "about": "bytes_encoding_known", "right": f"`'{codec}'`"}
            return {**facts, "about": "bytes_no_text", "reader": _READERS.get(what, "mode `'rb'`, as bytes")}
    rest = data[start:]
    is_begun = rest[0] >= 0xC2 and all(
        0x80 <= trailing_byte < 0xC0 for trailing_byte in rest[1:]
    )  # a character of UTF-8
    if error.reason == "unexpected end of data" and 1 < len(rest) < 4 and start and is_begun:
        return {**facts, "about": "bytes_cut"}
    if error.encoding not in {"utf-8", "latin-1"} and _reads(data, "utf-8"):
        text = _around(data, start, "utf-8")
        return {**facts, "about": "bytes_utf8", "text": text} if text else None
    if error.encoding == "utf-8" and (text := _around(data, start, "cp1252")):
        letter = data[start : start + 1].decode("cp1252")
        foreign = [character for character in text.strip("`") if ord(character) > 127]
        is_plausible = all(symbol.isalpha() or symbol in "‘’“”–—…€£°§«»²³µ·•" for symbol in foreign)
        if is_plausible and len(foreign) * 2 < len(text):
            return {**facts, "about": "bytes_windows", "letter": f"`{letter}`", "text": text}
    return None


def _reads(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _around(data: bytes, place: int, codec: str) -> str:
    """Show the data around a place as text of that encoding; empty where it is not one."""
    piece = data[max(0, place - 8) : place + 8]
    try:
        text = piece.decode(codec, "ignore" if codec == "utf-8" else "strict")
    except UnicodeDecodeError:
        return ""
    text = re.split(r"[\r\n]", text)[0 if b"\n" not in data[max(0, place - 8) : place] else -1]
    return f"`{text.strip()}`" if text.strip() and text.isprintable() and quoted(text) else ""


def unencoded(scene: Scene) -> Facts | None:
    """Name the character that an encoding does not have, and its position."""
    error = scene.error
    if not isinstance(error, UnicodeEncodeError) or not is_text(error.object):
        return None
    letter = error.object[error.start]
    facts = {"position": str(error.start), "code": f"U+{ord(letter):04X}"}
    if 0xD800 <= ord(letter) <= 0xDFFF:
        return {**facts, "about": "half_character"}
    facts |= {"letter": f"`{letter}`" if letter.isprintable() and letter != "`" else facts["code"]}
    codec = "" if error.encoding == "charmap" else f"`{error.encoding}`"
    return {**facts, "about": "letter_missing", "codec": codec or "this encoding of a single byte"}


# Formats of dates

_DIRECTIVES = {
    "%Y": "a year of four digits", "%y": "a year of two digits", "%m": "a month from 1 to 12",
    "%d": "a day from 1 to 31", "%H": "an hour from 0 to 23", "%I": "an hour from 1 to 12", "%M": "a minute",
    "%S": "a second", "%b": "a month's short name, such as `Jan`",
    "%B": "a month's full name, such as `January`",
    "%a": "a weekday's short name", "%A": "a weekday's full name", "%p": "`AM` or `PM`", "%f": "a fraction of a second",
    "%z": "an offset such as `+0100`", "%j": "a day of the year",
}  # fmt: skip


def time_format(scene: Scene) -> Facts | None:
    """Say at which part of its format a date stops matching."""
    match = re.search(r"time data '(?P<text>.*)' does not match format '(?P<form>.*)'", str(scene.error))
    if match is None:
        return None
    text, form = match["text"], match["form"]
    parts = re.findall(r"%.|[^%]+", form)
    if (
        not text.strip()
        or not quoted(text)
        or "`" in form
        or not all(p in _DIRECTIVES for p in parts if p.startswith("%"))
    ):
        return None
    if swap_facts := _swapped(scene, parts, text, form):
        return swap_facts
    for count in range(len(parts) - 1, -1, -1):
        rest = _rest("".join(parts[:count]), text)
        if rest is None or (rest == text and count):
            continue
        part = parts[count]
        if part not in _DIRECTIVES and count and rest[:1].isdigit():  # a directive took a part of the number
            part, rest = parts[count - 1], text[len(text[: len(text) - len(rest)].rstrip("0123456789")) :]
        needs = _DIRECTIVES.get(part, "")
        fitting = text[: len(text) - len(rest)]
        facts = {
            "text": f"`{text}`",
            "form": f"`{form}`",
            "part": f"`{part}`" if part.strip() else "white space",
        }
        facts |= {"needs": needs, "rest": f"`{rest}`" if rest.strip() else ""}
        facts |= {"fitting": f"`{fitting}`" if fitting.strip() else ""}
        about = "time_format_ends" if not rest else "time_format_part" if needs else "time_format_sign"
        return {**facts, "about": about}
    return None


#: What stands in a date in the place of another directive.
_SWAPS = {
    "%Y": "%y",
    "%y": "%Y",
    "%b": "%B",
    "%B": "%b",
    "%I": "%H",
    "%H": "%I",
    "%m": "%b",
    "%a": "%A",
    "%A": "%a",
}


def _swapped(scene: Scene, parts: list[str], text: str, form: str) -> Facts | None:
    """Say which single change of a format makes it match: another directive, or the separator of the text."""
    signs = [sign for sign in dict.fromkeys(re.findall(r"[^\w\s]", text)) if sign not in "%'\"`"]
    for old in dict.fromkeys(parts):
        alternatives = [_SWAPS[old]] if old in _SWAPS else signs if re.fullmatch(r"[^\w\s%]", old) else []
        for alternative in (candidate for candidate in alternatives if candidate != old):
            new = "".join(alternative if part == old else part for part in parts)
            written = next(
                (argument for argument in _arguments(scene) if scene.value(argument) == form), None
            )
            if _rest(new, text) == "" and written is not None:
                facts = {"text": f"`{text}`", "form": f"`{form}`", "sign": f"`{alternative}`"}
                facts |= {
                    "needs": _DIRECTIVES.get(alternative, "the separator that the text has"),
                    "new": f"`{new!r}`",
                }
                is_known = isinstance(written, ast.Constant)
                return {**facts, "about": "time_format_swap", "part": scene.text(written) if is_known else ""}
    return None


def time_rest(scene: Scene) -> Facts | None:
    """Say what follows the part of a date that its format reads."""
    rest = str(scene.error).partition("unconverted data remains:")[2].removeprefix(" ")
    for frame_locals in scene.library_locals("_strptime"):
        text, form = frame_locals.get("data_string"), frame_locals.get("format")
        if is_text(text) and is_text(form) and text.endswith(rest) and "`" not in form and quoted(text):
            facts = {"text": f"`{text}`", "form": f"`{form}`", "rest": f"`{rest}`"}
            last = re.search(r"%.\Z", form)
            number = re.search(r"\d+\Z", text[: len(text) - len(rest)])
            if not rest.strip():
                argument = next(
                    (candidate for candidate in _arguments(scene) if scene.value(candidate) == text), None
                )
                part = scene.text(argument) if argument is not None else ""
                return {**facts, "about": "time_rest_blank", "part": part}
            if last is not None and number is not None and rest[:1].isdigit() and last[0] in _DIRECTIVES:
                whole = number[0] + rest[: len(rest) - len(rest.lstrip("0123456789"))]
                return {**facts, "about": "time_rest_number", "part": f"`{last[0]}`",
                        "needs": _DIRECTIVES[last[0]], "number": f"`{whole}`"}  # fmt: skip
            zone = re.fullmatch(r"Z|[+-]\d\d:?\d\d", rest)
            more = "%z" if zone else "T%H:%M:%S" if re.fullmatch(r"T\d\d:\d\d:\d\d", rest) else ""
            more = more or (" %H:%M:%S" if re.fullmatch(r" \d\d:\d\d:\d\d", rest) else "")
            more = more or (" %H:%M" if re.fullmatch(r" \d\d:\d\d", rest) else "")
            written = next(
                (expression for expression in _arguments(scene) if scene.value(expression) == form), None
            )
            part = scene.text(written) if written is not None and isinstance(written, ast.Constant) else ""
            instead = f"`{form + more!r}`" if more else ""
            return {**facts, "about": "time_rest", "part": part if more else "", "instead": instead}
    return None


def _arguments(scene: Scene) -> list[ast.expr]:
    return list(scene.node.args) if isinstance(scene.node, ast.Call) else []


def _rest(form: str, text: str) -> str | None:
    """Return what follows the beginning of a text that matches a format; None if the beginning does not match."""
    if not form:
        return text
    try:
        datetime.datetime.strptime(text, form)  # noqa: DTZ007 - only tried, the time is not used
    except ValueError as error:
        match = re.match(r"unconverted data remains: ?(?P<rest>.*)", str(error), re.DOTALL)
        return text[len(text) - len(match["rest"]) :] if match else None
    return ""


def timed_out(scene: Scene) -> Facts | None:
    """Say how long the code waited at most."""
    for node in scene.expressions():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            timeouts = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "timeout")]
            if node.func.attr == "wait_for" and node.args and timeouts:
                value = scene.value(timeouts[0])
                if type(value) in {int, float} and value is not UNREAD:
                    facts = {"about": "waited", "what": scene.text(node.args[0]), "time": f"`{value}`"}
                    return complete(facts)
    return None
