"""Patterns of what a summary lists of a text.

Each quantifier is bounded or possessive, and what may begin anywhere in a word has a look-behind that stops it there:
so the time grows with the text alone, whatever is in it.
"""

from __future__ import annotations

import re

_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    "|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_AMOUNT = r"\d{1,15}+(?:,\d{3}){0,8}(?:\.\d{1,15}+)?"
_AUTHOR = r"[A-Z][\w'’-]{1,40}"
_AUTHORS = rf"{_AUTHOR}(?: (?:and|&) {_AUTHOR}| et al\.?)?"
_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"

#: Kind → its pattern, in the order in which they are tried at one place. A kind that ends in a digit is another form of
#: the one without it.
_KINDS = {
    "doi": r"(?:https?://(?:dx\.)?doi\.org/|\bdoi:\s?|(?<![\w./]))10\.\d{4,9}/[^\s\"'<>{}|\\^`\0]{1,200}+",
    "url": r"(?<![A-Za-z])(?:https?|ftp)://[^\s<>\"'`\0]{1,2000}+|(?<![\w.@/-])www\.[^\s<>\"'`\0]{4,2000}+",
    "email": r"(?<![\w.+@-])[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,8}",
    "arxiv": r"\barXiv:\d{4}\.\d{4,5}(?:v\d{1,2})?",
    "key": r"\\cite[a-z]{0,10}\{[^{}\n\0]{1,200}+\}|\[@[\w:.-]{1,100}+(?:; ?@[\w:.-]{1,100}+){0,20}\]",
    "number_in_brackets": r"\[[1-9]\d{0,3}(?: ?[-–,] ?[1-9]\d{0,3}){0,20}\]",
    "author_year": rf"\({_AUTHORS},? {_YEAR}(?:; {_AUTHORS},? {_YEAR}){{0,20}}\)",
    "author_year2": rf"\b{_AUTHORS} \({_YEAR}\)",
    "date": r"(?<![\w.-])\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?![\d-])",
    "date2": rf"(?<![\w./])(?:{_DAY}[./]{_DAY}[./](?:\d{{4}}|\d\d))(?![\w/])",
    "date3": (
        rf"(?<!\w)(?:{_DAY}(?:st|nd|rd|th)? {_MONTH}\.? \d{{4}}|{_MONTH}\.? {_DAY}(?:st|nd|rd|th)?,? \d{{4}}"
        rf"|{_MONTH} \d{{4}})(?!\w)"
    ),
    "time": r"(?<![\w:.])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?![\w:])(?: ?[ap]\.?m\b)?",
    "money": rf"(?<!\w)[-−]?(?:US|A|C)?[$€£¥₹] ?{_AMOUNT}(?:[KMB]\b| (?:million|billion|trillion)\b)?",
    "money2": rf"(?<![\w.,]){_AMOUNT} ?(?:USD|EUR|GBP|JPY|CHF|INR|CNY|CAD|AUD|dollars?|euros?|pounds|€|£)(?!\w)",
    "percent": r"(?<![\w.,])[-+−]?\d{1,15}+(?:[.,]\d{1,15}+)? ?%",
    "hashtag": r"(?<![\w&#/])#[^\W\d_]\w{1,99}+",
    "mention": r"(?<![\w@./])@[A-Za-z_]\w{1,49}+",
    "number": (
        r"(?<![\w.,])[-+−]?(?:\d{1,3}(?:,\d{3}){1,12}(?:\.\d{1,40}+)?"
        r"|\d{1,40}+(?:\.\d{1,40}+)?(?:[eE][-+]?\d{1,3})?)(?!\w|[.,]\d)"
    ),
}  # fmt: skip
#: All of them; `lastgroup` is the kind. They are tried where a word begins, and at brackets and signs; not within
#: words, which would cost most of the time.
FOUND = re.compile(
    r"(?:(?<![^\W_])(?=[\w$€£¥₹@#+−-])|(?=\[[@1-9]|\([A-Z]|\\c))(?:"
    + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items())
    + ")"
)
CITATIONS = ("author_year", "number_in_brackets", "key", "doi", "arxiv")
ENTITIES = ("email", "mention", "hashtag", "date", "time", "money", "percent")
#: Kinds that are not words of a sentence, so that no n-gram is made of them.
NO_WORDS = frozenset(
    {"doi", "url", "email", "arxiv", "key", "number_in_brackets", "hashtag", "mention", "date", "time"}
)

#: Vowel signs, accents and joiners, which `\w` does not hold but words do.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ecd"
    "\u102b-\u103e\u1056-\u109d\u17b4-\u17d3\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f\u200c\u200d"
)
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTERS = rf"[^\W_{_CJK}]"
#: Word: letters, digits and marks that begin with a letter, with single hyphens and apostrophes between them; each
#: character of Chinese and Japanese, which have no spaces.
WORD = re.compile(
    rf"(?<!{_LETTERS})(?!\d){_LETTERS}++(?:[{_MARKS}]++{_LETTERS}*+|['’-]{_LETTERS}++)*+|[{_CJK}]"
)
CJK = re.compile(f"[{_CJK}]")
#: End of a sentence, with what follows it.
SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”’)\]])|[。！？]|\n[^\S\n]*+\n")
PARAGRAPH = re.compile(r"\n[^\S\n]*+\n\s*+")
#: Characters without width, and those that reorder text.
INVISIBLE = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
SURROGATE = re.compile("[\ud800-\udfff]")
#: A replacement that the sanitiser may have made.
HIDDEN = re.compile(r"\[(?:REDACTED:[\w-]{1,100}|[A-Z]{1,40})\]")
#: Signs that end a sentence around a URL rather than the URL.
URL_END = ".,;:!?*_"

#: Words that say little by themselves: no n-gram begins or ends with one, and no name does.
_STOP_WORDS = (
    "a about above after again all also am an and any are as at be because been before being below between both but by "
    "can could did do does doing don't down during each few for from further had has have having he her here hers him "
    "his how i if in into is isn't it it's its itself just me more most my no nor not now of off on once only or other "
    "our ours out over own same she should so some such than that the their theirs them then there these they this "
    "those through to too under until up very was we were what when where which while who whom why will with would you "
    "your yours"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
#: Words that may stand within a name.
CONNECTORS = frozenset(
    ("of", "de", "del", "da", "di", "du", "la", "le", "van", "von", "der", "den", "bin", "al", "y")
)
#: Words behind which a full stop ends no sentence; neither does it behind a single letter.
_ABBREVIATIONS = "mr mrs ms dr prof st vs fig eq no al cf approx ca inc ltd jr sr vol pp ed"
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
