"""Readings of a draft: a chat's code, other languages."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterator

from healkit.parts.explain.syntax_repair.draft import masked

#: Characters that look like one of Python's → that one.
_LOOKS_LIKE = {
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u00ab": '"', "\u00bb": '"', "\u2033": '"',
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "\u00b4": "'",
    "\u00a0": " ", "\u202f": " ", "\u2007": " ", "\u2009": " ", "\u2002": " ", "\u2003": " ", "\u3000": " ",
    "\u200b": "", "\u200c": "", "\u200d": "", "\ufeff": "", "\u2060": "", "\u00ad": "", "\x00": "",
    "\u2212": "-", "\u2013": "-", "\u2014": "-", "\u2010": "-", "\u2011": "-", "\u00d7": "*", "\u00f7": "/",
    "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u2026": "...", "\u2192": "->", "\uff08": "(", "\uff09": ")",
    "\uff0c": ",", "\uff1a": ":", "\uff1b": ";", "\uff1d": "=", "\u3001": ",", "\u2028": "\n", "\u2029": "\n",
}  # fmt: skip
_MARKS = r"^[ \t]*(?:```|~~~)"
_FENCE = re.compile(rf"{_MARKS}[^\n`]*\n(.*?)(?:{_MARKS}[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d*\]:|\s+\.\.\.:)(?: |$)")
_NUMBERED = re.compile(r"^[ \t]*\d+[:|.)]?(?: |(?=\t)|$)")
#: How a line of code begins, each form with an example.
CODE_LINES = {
    r"#|@|\"\"\"|'''": "# a comment",
    r"(?:async\s+)?(?:def|class|for|while|if|with)\b.*:": "for a in b:",
    r"(?:import|from)\s+\w|return\b": "import a",
    r"\w[\w.\[\]\"']*\s*(?:[-+*/|&]?=|\()": "a.b += 1",
    r"$": "",
}
_CODE_LINE = re.compile(rf"^\s*(?:{'|'.join(CODE_LINES)})")
_SENTENCE = re.compile(
    r"^\s*(?:[-*•]\s+|\d+\.\s+|#+\s+)?[`*_]*[A-Z][\w'’`*,-]*(?:\s+[\w'’`*(),/.:;+=<>-]+)*[.:!?]?\s*$"
)


def readings(text: str) -> Iterator[tuple[str, str]]:
    """Yield other readings of a text, likeliest first, each with a description of the change."""
    for change, done in (
        (_unfenced, "only the text between the code fences is kept"),
        (_without_look_alikes, "characters that only look like Python's are replaced"),
        (_without_prompts, "the prompts and the output of a session are removed"),
        (_without_numbers, "the numbers before the lines are removed"),
        (_without_marks, "the marks of a diff or a quotation are removed"),
        (_without_prose, "the sentences around the code are removed"),
        (_dedented, "the indentation of all lines is removed"),
    ):
        changed = change(text)
        if changed is not None and changed != text and changed.strip():
            yield changed, done


def _unfenced(text: str) -> str | None:
    """Keep what is between code fences."""
    blocks = [match[1] for match in _FENCE.finditer(text)]
    head = re.split(_MARKS, text, maxsplit=1, flags=re.MULTILINE)[0]
    if re.search(r"^[ \t]*(?:def|class|import|from)\b.*(?::$|\w$)", head, re.MULTILINE):
        return None  # the fence stands in a docstring
    if blocks:
        with_code = [
            block
            for block in blocks
            if re.search(r"^\s*(?:def|class|import|from|result\s*=)", block, re.MULTILINE)
        ]
        return "\n\n".join(block.rstrip("\n") for block in (with_code or blocks)) + "\n"
    lines = text.splitlines(keepends=True)
    code_lines = [line for line in lines if not re.match(rf"{_MARKS}\w*\s*$", line)]
    return "".join(code_lines) if len(code_lines) < len(lines) else None


def _without_look_alikes(text: str) -> str | None:
    """Replace characters that only look like Python's."""
    changed = "".join(_LOOKS_LIKE.get(c, c) for c in text)
    wide = "".join(unicodedata.normalize("NFKC", c) if "\uff01" <= c <= "\uff5e" else c for c in changed)
    return "".join(c for c in wide if c >= " " or c in "\t\n\r\f")


def _without_prompts(text: str) -> str | None:
    """Remove a session's prompts and what it printed."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if not re.match(r"\s*(?:>>>|In \[\d*\]:)", first):
        return None
    code_lines = [_PROMPT.sub("", line, count=1) for line in lines if _PROMPT.match(line)]
    return "\n".join(code_lines) + "\n"


def _without_numbers(text: str) -> str | None:
    """Remove line numbers."""
    lines = text.splitlines()
    numbered = [line for line in lines if line.strip()]
    if len(numbered) < 2 or not all(_NUMBERED.match(line) for line in numbered):
        return None
    return "\n".join(_NUMBERED.sub("", line) for line in lines) + "\n"


def _without_marks(text: str) -> str | None:
    """Remove the marks of a diff or a quotation."""
    lines = [line for line in text.splitlines() if line.strip()]
    for mark in ("+", ">", "|"):
        if len(lines) > 1 and all(line.startswith(mark) for line in lines):
            return re.sub(rf"^{re.escape(mark)} ?", "", text, flags=re.MULTILINE)
    if (
        lines
        and any(line.startswith(("+", "-")) for line in lines)
        and any(line.startswith("@@") for line in lines)
    ):
        new_lines = [line for line in text.splitlines() if not line.startswith(("-", "@@", "\\"))]
        return "\n".join(line[1:] if line[:1] in {"+", " "} else line for line in new_lines) + "\n"
    return None


def _without_prose(text: str) -> str | None:
    """Remove the sentences around the code."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.strip() and _is_code(line)), None)
    if first is None:
        return None
    last = len(lines)
    while last > first and (not lines[last - 1].strip() or (_is_prose(lines[last - 1]))):
        last -= 1
    if any(line.strip() and not _is_prose(line) for line in lines[:first]):
        return None
    return "\n".join(lines[first:last]) + "\n" if first or last < len(lines) else None


def _is_code(line: str) -> bool:
    return bool(_CODE_LINE.match(line)) and not (
        _SENTENCE.match(line) and " " in line.strip() and "=" not in line and "(" not in line
    )


def _is_prose(line: str) -> bool:
    words = line.split()
    return bool(_SENTENCE.match(line)) and len(words) > 2 and not line.startswith((" ", "\t"))


def _dedented(text: str) -> str | None:
    """Remove the indentation that all lines have."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not lines[0].startswith((" ", "\t")):
        return None
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    if all(line.startswith(indent) for line in lines):
        return re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
    return None


# Words and signs of other languages, written as in Python 3


@dataclasses.dataclass(frozen=True)
class Rewrite:
    """A habit of writing: a pattern over the text (strings and comments blanked out), and its replacement.

    cost: How weak the evidence is if only the pattern matches.
    before, after: An example that does not compile, and the text that it becomes.
    """

    name: str
    pattern: re.Pattern[str]
    text: str
    cost: float
    before: str
    after: str


#: Abbreviations in the patterns below. `␣` is a space or a tab; an entry may use those below it.
_SHORT = {
    "‹head›": r"(?P<head>^␣*(?:\}␣*)?(?:if|elif|while|for|def|class|else|try|finally|except|with)\b[^\n{}]*?)",
    "‹end›": r"(?P<rest>␣*(?:\x02+)?␣*)$",  # where it ends, but for a comment
    "‹def›": r"(?:function|func|fn|fun|sub|procedure|method|define|defun|deff?|dfe|edf)",
    "‹type›": r"(?:public|private|static|void|int|string|String|float|double|bool|boolean)",
    "‹var›": r"(?:let|var|const|auto|val|my|local|int|float|double|string|String|bool|char|dim|Dim|set)",
    "‹ends›": r"(?:done|fi|esac|begin|end(?:if|for|while|function| if| for| while| function)?)",
    "‹each›": r"␣*\(␣*(?:int|let|var|const|auto)?␣*‹n›",
    "‹c for›": r"\bfor␣*\(␣*(?:int|let|var|auto)?␣*‹n›␣*=␣*(?P<a>[^;\n]+?)␣*;␣*\w+",
    "‹c step›": r"␣*;␣*(?:\w+␣*\+\+|\+\+␣*\w+|\w+␣*\+=␣*1)␣*\)",
    "‹i›": r"^(?P<i>␣*)",  # where a line begins, with its indent
    "‹n›": r"(?P<n>\w+)",  # a name
}


def _row(name: str, pattern: str, text: str, before: str, after: str, cost: float = 0.4) -> Rewrite:
    """Make a row whose examples are whole texts."""
    for short, long in _SHORT.items():
        pattern = pattern.replace(short, long)
    return Rewrite(name, re.compile(pattern.replace("␣", r"[ \t]"), re.MULTILINE), text, cost, before, after)


def _line(name: str, pattern: str, text: str, before: str, after: str, cost: float = 0.4) -> Rewrite:
    """Make a row whose examples are one line."""
    return _row(name, pattern, text, f"{before}\n", f"{after}\n", cost)


def _condition(name: str, pattern: str, text: str, before: str, after: str, cost: float = 0.4) -> Rewrite:
    """Make a row whose examples are conditions."""
    return _line(name, pattern, text, f"if {before}:\n    pass", f"if {after}:\n    pass", cost)


REWRITES: tuple[Rewrite, ...] = (
    _row("else_if", r"\b(?:else␣+if|elseif|elsif|elsi|elif␣+if)\b", "elif",
         "if a:\n    b = 1\nelse if c:\n    b = 2\n", "if a:\n    b = 1\nelif c:\n    b = 2\n"),
    _condition("and", r"␣*&&␣*", " and ", "a && b", "a and b"),
    _condition("or", r"␣*\|\|␣*", " or ", "a || b", "a or b"),
    _condition("not", r"!(?=␣*[\w(])␣*", "not ", "!a", "not a"),
    _condition("unequal", r"<>|!==|=!=|=/=", "!=", "a <> b", "a != b"),
    _condition("equal", r"===", "==", "a === b", "a == b"),
    _condition("at_least", r"=>(?=␣*[\w(-])", ">=", "a => b", "a >= b", 0.45),
    _condition("at_most", r"=<", "<=", "a =< b", "a <= b"),
    _condition("unequal_turned", r"=!(?!=)", "!=", "a =! b", "a != b", 0.5),
    _line("increment", r"(?P<a>[\w.\]]+)\+\+(?=[ \t;]*(?:\x02|$))", "{a} += 1", "a++", "a += 1"),
    _line("decrement", r"(?P<a>[\w.\]]+)--(?=[ \t;]*(?:\x02|$))", "{a} -= 1", "a--", "a -= 1"),
    _row("function", r"‹i›(?:async␣+)?‹def›␣+‹n›␣*(?P<p>\()", "{i}def {n}{p}",
         "function f(a):\n    return a\n", "def f(a):\n    return a\n"),
    _row("typed_function", r"‹i›‹type›(?:␣+‹type›)*␣+‹n›␣*(?P<p>\([^\n]*\)␣*[:{])", "{i}def {n}{p}",
         "int f(a):\n    return a\n", "def f(a):\n    return a\n", 0.5),
    _line("declared", r"‹i›‹var›␣+(?P<n>\w+␣*=)", "{i}{n}",
         "let a = 1", "a = 1"),
    _line("typed_declared", r"‹i›(?:let|var|const)␣+(?P<n>\w+␣*:)", "{i}{n}", "let a: int = 1", "a: int = 1"),
    _row("typed_parameter", r"(?P<b>[(,]␣*)(?P<t>int|float|str|string|bool|list|dict|double|String|boolean)␣+‹n›(?=␣*[,)=])", "{b}{n}",
         "def f(int a, str b):\n    return a\n", "def f(a, b):\n    return a\n", 0.5),
    _row("c_loop", r"‹c for›␣*<␣*(?P<b>[^;\n=]+?)‹c step›", "for {n} in range({a}, {b})",
         "for (int i = 0; i < n; i++):\n    pass\n", "for i in range(0, n):\n    pass\n", 0.3),
    _row("c_loop_to", r"‹c for›␣*<=␣*(?P<b>[^;\n=]+?)‹c step›", "for {n} in range({a}, {b} + 1)",
         "for (i = 1; i <= n; i++):\n    pass\n", "for i in range(1, n + 1):\n    pass\n", 0.3),
    _row("each", r"\b(?:foreach|for␣+each|for)‹each›␣+(?:in|of)␣+(?P<a>[^\n]+?)\)(?=␣*(?:[:{]|$))", "for {n} in {a}",
         "for (let x of xs):\n    pass\n", "for x in xs:\n    pass\n"),
    _row("foreach", r"\b(?:foreach|for␣+each)␣+‹n›␣+(?:in|of|as)\b", "for {n} in",
         "foreach x in xs:\n    pass\n", "for x in xs:\n    pass\n"),
    _row("of", r"‹i›for␣+(?P<n>[\w, \t]+?)␣+(?:of|on|from|en|i n|ni|In|IN|=)␣+(?P<a>[^\n]+:)", "{i}for {n} in {a}",
         "for x of xs:\n    pass\n", "for x in xs:\n    pass\n", 0.5),
    _row("counted", r"‹i›for␣+‹n›␣*=␣*(?P<a>[^\n:]+?)␣+to␣+(?P<b>[^\n:]+?)␣*(?::|do|$)", "{i}for {n} in range({a}, {b} + 1):",
         "for i = 1 to n:\n    pass\n", "for i in range(1, n + 1):\n    pass\n"),
    _row("then", r"(?P<head>^␣*(?:if|elif|else|while|for)\b[^\n]*?)␣*:?␣*\b(?:then|do)\b␣*:?␣*$", "{head}:",
         "if a then\n    b = 1\n", "if a:\n    b = 1\n"),
    _row("brace", r"‹head›␣*:?␣*\{‹end›", "{head}:{rest}",
         "if (a) {\n    b = 1\n}\n", "if (a):\n    b = 1\n}\n"),
    _row("closing_before", r"‹i›\}␣*(?=else|elif|catch|except|finally|while)", "{i}",
         "if a:\n    b = 1\n} else:\n    b = 2\n", "if a:\n    b = 1\nelse:\n    b = 2\n"),
    _row("closing", r"^␣*\};?␣*(?:\n|\Z)", "", "if a:\n    b = 1\n}\n", "if a:\n    b = 1\n", 0.5),
    _row("end", r"^␣*‹ends›␣*;?␣*(?:\n|\Z)", "",
         "if a:\n    b = 1\nend if\n", "if a:\n    b = 1\n"),
    _line("throw", r"\bthrow␣+(?:new␣+)?", "raise ", "throw new ValueError(a)", "raise ValueError(a)"),
    _line("new", r"\bnew␣+(?=[A-Za-z_]\w*\()", "", "a = new Box()", "a = Box()"),
    _row("catch_as", r"\bcatch␣*\(␣*(?P<e>[\w.]+)␣+‹n›␣*\)", "except {e} as {n}",
         "try:\n    a()\ncatch (ValueError e):\n    pass\n", "try:\n    a()\nexcept ValueError as e:\n    pass\n"),
    _row("catch_any", r"\bcatch␣*\(␣*‹n›␣*\)", "except Exception as {n}",
         "try:\n    a()\ncatch (e):\n    pass\n", "try:\n    a()\nexcept Exception as e:\n    pass\n"),
    _row("catch", r"‹i›(?:catch|rescue|exept|excpet|expect|exceptt?)(?=[ \t:])", "{i}except",
         "try:\n    a()\ncatch ValueError:\n    pass\n", "try:\n    a()\nexcept ValueError:\n    pass\n", 0.5),
    _row("switch", r"‹i›switch␣*\(?(?P<a>[^\n:{]+?)\)?␣*:", "{i}match {a}:",
         "switch a:\n    case 1:\n        b = 2\n", "match a:\n    case 1:\n        b = 2\n", 0.5),
    _row("default", r"^(?P<i>␣+)default␣*:", "{i}case _:",
         "match a:\n    case 1:\n        b = 2\n    default:\n        b = 3\n", "match a:\n    case 1:\n        b = 2\n    case _:\n        b = 3\n", 0.5),
    _row("unless", r"‹i›unless␣+(?P<a>[^\n:]+):", "{i}if not ({a}):",
         "unless a:\n    b = 1\n", "if not (a):\n    b = 1\n"),
    _row("until", r"‹i›until␣+(?P<a>[^\n:]+):", "{i}while not ({a}):",
         "until a:\n    b = 1\n", "while not (a):\n    b = 1\n"),
    _line("line_comment", r"(?P<b>^␣*|[;{}:)\w\]]␣+)//(?P<c>[^\n]*)$", "{b}#{c}",
         "a = 1 // the first one", "a = 1 # the first one", 0.7),
    _row("block_comment", r"‹i›/\*(?P<c>[^\n]*?)\*/␣*$", "{i}#{c}", "/* one */\na = 1\n", "# one \na = 1\n"),
    _row("dashed_comment", r"‹i›--␣+(?P<c>[^\n]*)$", "{i}# {c}",
         "-- the first one\na = 1\n", "# the first one\na = 1\n", 0.6),
    _line("arrow", r"\(?(?P<a>\b\w+(?:␣*,␣*\w+)*)\)?␣*=>␣*(?=[\w(\[\"'-])", "lambda {a}: ",
         "b = sorted(c, key=x => x[0])", "b = sorted(c, key=lambda x: x[0])", 0.6),
    _line("lambda_arrow", r"\blambda␣+(?P<a>[\w, \t]+?)␣*(?:->|=>|\.)␣*", "lambda {a}: ",
         "b = sorted(c, key=lambda x -> x[0])", "b = sorted(c, key=lambda x: x[0])"),
    _line("ternary", r"(?P<b>=|\breturn|\()␣*(?P<a>[^\n?=]+?)␣*\?␣*(?P<c>[^\n?:]+?)␣*:␣*(?P<d>[^\n?:;]+?)(?=;?␣*$|\))", "{b} {c} if {a} else {d}",
         "a = b ? 1 : 2", "a = 1 if b else 2"),
    _line("elvis", r"␣*\?\?␣*", " or ", "a = b ?? c", "a = b or c", 0.5),
    _line("optional", r"\?\.", ".", "a = b?.c", "a = b.c", 0.5),
    _line("dollar", r"\$(?=\w)", "", "$a = 1", "a = 1"),
    _line("print", r"^(?P<i>␣*|[^\n]*:␣+)print␣+(?!\()(?P<a>[^\n;]+?)(?P<rest>␣*(?:;␣*)?(?:\x02+)?)$", "{i}print({a}){rest}",
         "print 'a', b", "print('a', b)", 0.3),
    _line("exec", r"‹i›exec␣+(?P<a>[^\n(][^\n]*?)$", "{i}exec({a})", "exec a", "exec(a)", 0.3),
    _row("except_comma", r"\bexcept␣+(?P<e>[\w.]+|\([^\n]*?\))␣*,␣*(?P<n>[a-z_]\w*)␣*:", "except {e} as {n}:",
         "try:\n    a()\nexcept ValueError, e:\n    pass\n", "try:\n    a()\nexcept ValueError as e:\n    pass\n", 0.3),
    _row("except_several", r"\bexcept␣+(?P<e>[A-Z][\w.]*(?:␣*,␣*[A-Z][\w.]*)+)(?P<rest>␣*(?:as␣+\w+␣*)?):", "except ({e}){rest}:",
         "try:\n    a()\nexcept ValueError, KeyError:\n    pass\n", "try:\n    a()\nexcept (ValueError, KeyError):\n    pass\n", 0.3),
    _line("raise_comma", r"‹i›raise␣+(?P<e>[\w.]+)␣*,␣*(?P<a>[^\n]+?)$", "{i}raise {e}({a})",
         "raise ValueError, 'a'", "raise ValueError('a')", 0.3),
    _line("backticks", r"`(?P<a>[^`\n]+)`", "repr({a})", "a = `b`", "a = repr(b)", 0.5),
    _line("long", r"\b(?P<a>\d+)[lL]\b", "{a}", "a = 10L", "a = 10", 0.3),
    _line("octal", r"(?<![\w.])0(?P<a>[0-7]{3,})\b(?![.\w])", "0o{a}", "a = 0755", "a = 0o755"),
    _line("leading_zeros", r"(?<![\w.])0+(?P<a>[1-9]\d*)\b(?![.\w])", "{a}", "a = 007", "a = 7", 0.5),
    _line("raw_unicode", r"\b[uU][rR](?=[\"'])", "r", "a = ur'b'", "a = r'b'", 0.3),
    _line("power", r"(?P<a>[\w)\]])␣*\^\^␣*", "{a} ** ", "a = b ^^ 2", "a = b ** 2", 0.5),
    _line("walrus_plain", r"‹i›(?P<n>[\w.\[\]]+)␣*:=␣*", "{i}{n} = ", "a := 1", "a = 1"),
    _row("arrow_nothing", r"(?P<b>\))␣*->␣*:", "{b}:", "def f() -> :\n    pass\n", "def f():\n    pass\n", 0.3),
    _row("no_brackets", r"^(?P<i>␣*(?:async␣+)?)def␣+‹n›␣*:", "{i}def {n}():",
         "def f:\n    pass\n", "def f():\n    pass\n", 0.3),
    _line("import_from", r"‹i›import␣+(?P<a>[\w., \t]+?)␣+from␣+(?P<m>[\w.]+)␣*;?␣*$", "{i}from {m} import {a}",
         "import a from b", "from b import a", 0.3),
    _line("include", r"‹i›(?:include|using|require|use)␣+(?P<m>[\w.]+)␣*;?␣*$", "{i}import {m}",
         "using math;", "import math", 0.5),
    _condition("is_not", r"\bisnt\b|\bis␣+not␣+equal␣+to\b|\bnot␣+equal␣+to\b|\bnot␣+equals\b", "!=",
         "a not equals b", "a != b"),
    _condition("is_equal", r"\bis␣+equal␣+to\b|\bequals␣+to\b|\bequals\b(?=␣+[\w\"'])", "==",
         "a equals b", "a == b"),
    _condition("is_in", r"\bis␣+in\b", "in", "a is in b", "a in b"),
    _condition("is_more", r"\bis␣+(?=[<>]=?)", "", "a is > b", "a > b"),
    _condition("more_than", r"\bis␣+(?:greater|more|larger|bigger)␣+than\b", ">",
         "a is greater than b", "a > b"),
    _condition("less_than", r"\bis␣+(?:less|smaller|fewer)␣+than\b", "<", "a is less than b", "a < b"),
    _row("else_condition", r"‹i›else␣+(?P<a>[^\n:]*[<>=!][^\n:]*):", "{i}elif {a}:",
         "if a:\n    b = 1\nelse a > 2:\n    b = 2\n", "if a:\n    b = 1\nelif a > 2:\n    b = 2\n"),
    _condition("in_front", r"\bnot␣+is\b(?!␣+not)", "is not", "a not is b", "a is not b"),
    _row("global_value", r"‹i›(?P<w>global|nonlocal)␣+‹n›␣*=␣*(?P<a>[^\n]+)$", "{i}{w} {n}\n{i}{n} = {a}",
         "def f():\n    global a = 1\n", "def f():\n    global a\n    a = 1\n", 0.3),
    _row("return_assigned", r"‹i›return␣+‹n›␣*=␣*(?P<a>[^=\n][^\n]*)$", "{i}return {a}",
         "def f():\n    return a = 1\n", "def f():\n    return 1\n", 0.5),
    _condition("spaced_operator", r"(?P<a>[<>!=*/+%-])␣+=(?!=)", "{a}=", "a < = b", "a <= b", 0.5),
    _line("turned_add", r"=\+=|\+==", "+=", "a +== 1", "a += 1"),
    _row("self_attribute", r"(?P<b>def␣+\w+\([^)\n]*?)self\.(?=\w)", "{b}",
         "def f(self, self.a):\n    pass\n", "def f(self, a):\n    pass\n"),
)  # fmt: skip


def matches(row: Rewrite, text: str) -> list[tuple[int, int, str]]:
    """Return the splices that rewrite one habit everywhere in a text."""
    splices = []
    for match in row.pattern.finditer(masked(text)):
        groups = {
            name: text[slice(*match.span(name))] for name in match.groupdict() if match[name] is not None
        }
        splices.append((match.start(), match.end(), row.text.format_map(groups)))
    return splices


def rewrites(text: str) -> Iterator[tuple[Rewrite, list[tuple[int, int, str]]]]:
    """Yield each habit that a text shows, with its splices."""
    for row in REWRITES:
        if splices := matches(row, text):
            yield row, splices


def spliced(text: str, splices: list[tuple[int, int, str]]) -> str:
    """Replace parts of a text; they come in order and do not overlap."""
    for start, end, new in reversed(splices):
        text = text[:start] + new + text[end:]
    return text
