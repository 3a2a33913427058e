"""Other languages' words and signs, written as in Python 3."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from healkit.healing.rules.syntax.lexing import masked


@dataclasses.dataclass(frozen=True)
class Rewrite:
    """One habit of writing: a pattern over the text (strings and comments blanked out), and what to write instead.

    `cost` is how little the pattern alone says that the habit is at work. before, after: an example that does not
    parse, and what it becomes.
    """

    name: str
    pattern: re.Pattern[str]
    text: str
    cost: float
    before: str
    after: str


def _row(name: str, pattern: str, text: str, before: str, after: str, cost: float = 0.6) -> Rewrite:
    return Rewrite(name, re.compile(pattern, re.MULTILINE), text, cost, before, after)


_END = r"(?P<rest>[ \t]*(?:\x02+)?[ \t]*)$"
_HEAD = (
    r"(?P<head>^[ \t]*(?:\}[ \t]*)?(?:if|elif|while|for|def|class|else|try|finally|except|with)\b[^\n{}]*?)"
)

REWRITES: tuple[Rewrite, ...] = (
    _row("else_if", r"\b(?:else[ \t]+if|elseif|elsif|elsi|elif[ \t]+if)\b", "elif",
         "if a:\n    b = 1\nelse if c:\n    b = 2\n", "if a:\n    b = 1\nelif c:\n    b = 2\n", 0.4),
    _row("and", r"[ \t]*&&[ \t]*", " and ", "if a && b:\n    pass\n", "if a and b:\n    pass\n", 0.4),
    _row("or", r"[ \t]*\|\|[ \t]*", " or ", "if a || b:\n    pass\n", "if a or b:\n    pass\n", 0.4),
    _row("not", r"!(?=[ \t]*[\w(])[ \t]*", "not ", "if !a:\n    pass\n", "if not a:\n    pass\n", 0.4),
    _row("unequal", r"<>|!==|=!=|=/=", "!=", "if a <> b:\n    pass\n", "if a != b:\n    pass\n", 0.4),
    _row("equal", r"===", "==", "if a === b:\n    pass\n", "if a == b:\n    pass\n", 0.4),
    _row("at_least", r"=>(?=[ \t]*[\w(-])", ">=", "if a => b:\n    pass\n", "if a >= b:\n    pass\n", 0.45),
    _row("at_most", r"=<", "<=", "if a =< b:\n    pass\n", "if a <= b:\n    pass\n", 0.4),
    _row("unequal_turned", r"=!(?!=)", "!=", "if a =! b:\n    pass\n", "if a != b:\n    pass\n", 0.5),
    _row("increment", r"(?P<a>[\w.\]]+)\+\+(?=[ \t;]*(?:\x02|$))", "{a} += 1", "a++\n", "a += 1\n", 0.4),
    _row("decrement", r"(?P<a>[\w.\]]+)--(?=[ \t;]*(?:\x02|$))", "{a} -= 1", "a--\n", "a -= 1\n", 0.4),
    _row("function", r"^(?P<i>[ \t]*)(?:async[ \t]+)?(?:function|func|fn|fun|sub|procedure|method|define|defun|deff?|dfe|edf)[ \t]+(?P<n>\w+)[ \t]*(?P<p>\()", "{i}def {n}{p}",
         "function f(a):\n    return a\n", "def f(a):\n    return a\n", 0.4),
    _row("typed_function", r"^(?P<i>[ \t]*)(?:public|private|static|void|int|string|String|float|double|bool|boolean)(?:[ \t]+(?:public|static|void|int|String|float|double|bool|boolean))*[ \t]+(?P<n>\w+)[ \t]*(?P<p>\([^\n]*\)[ \t]*[:{])", "{i}def {n}{p}",
         "int f(a):\n    return a\n", "def f(a):\n    return a\n", 0.5),
    _row("declared", r"^(?P<i>[ \t]*)(?:let|var|const|auto|val|my|local|int|float|double|string|String|bool|char|dim|Dim|set)[ \t]+(?P<n>\w+[ \t]*=)", "{i}{n}",
         "let a = 1\n", "a = 1\n", 0.4),
    _row("typed_declared", r"^(?P<i>[ \t]*)(?:let|var|const)[ \t]+(?P<n>\w+[ \t]*:)", "{i}{n}",
         "let a: int = 1\n", "a: int = 1\n", 0.4),
    _row("typed_parameter", r"(?P<b>[(,][ \t]*)(?P<t>int|float|str|string|bool|list|dict|double|String|boolean)[ \t]+(?P<n>\w+)(?=[ \t]*[,)=])", "{b}{n}",
         "def f(int a, str b):\n    return a\n", "def f(a, b):\n    return a\n", 0.5),
    _row("c_loop", r"\bfor[ \t]*\([ \t]*(?:int|let|var|auto)?[ \t]*(?P<n>\w+)[ \t]*=[ \t]*(?P<a>[^;\n]+?)[ \t]*;[ \t]*\w+[ \t]*<[ \t]*(?P<b>[^;\n=]+?)[ \t]*;[ \t]*(?:\w+[ \t]*\+\+|\+\+[ \t]*\w+|\w+[ \t]*\+=[ \t]*1)[ \t]*\)", "for {n} in range({a}, {b})",
         "for (int i = 0; i < n; i++):\n    pass\n", "for i in range(0, n):\n    pass\n", 0.3),
    _row("c_loop_to", r"\bfor[ \t]*\([ \t]*(?:int|let|var|auto)?[ \t]*(?P<n>\w+)[ \t]*=[ \t]*(?P<a>[^;\n]+?)[ \t]*;[ \t]*\w+[ \t]*<=[ \t]*(?P<b>[^;\n=]+?)[ \t]*;[ \t]*(?:\w+[ \t]*\+\+|\+\+[ \t]*\w+|\w+[ \t]*\+=[ \t]*1)[ \t]*\)", "for {n} in range({a}, {b} + 1)",
         "for (i = 1; i <= n; i++):\n    pass\n", "for i in range(1, n + 1):\n    pass\n", 0.3),
    _row("each", r"\b(?:foreach|for[ \t]+each|for)[ \t]*\([ \t]*(?:int|let|var|const|auto)?[ \t]*(?P<n>\w+)[ \t]+(?:in|of)[ \t]+(?P<a>[^\n]+?)\)(?=[ \t]*(?:[:{]|$))", "for {n} in {a}",
         "for (let x of xs):\n    pass\n", "for x in xs:\n    pass\n", 0.4),
    _row("foreach", r"\b(?:foreach|for[ \t]+each)[ \t]+(?P<n>\w+)[ \t]+(?:in|of|as)\b", "for {n} in",
         "foreach x in xs:\n    pass\n", "for x in xs:\n    pass\n", 0.4),
    _row("of", r"^(?P<i>[ \t]*)for[ \t]+(?P<n>[\w, \t]+?)[ \t]+(?:of|on|from|en|i n|ni|In|IN|=)[ \t]+(?P<a>[^\n]+:)", "{i}for {n} in {a}",
         "for x of xs:\n    pass\n", "for x in xs:\n    pass\n", 0.5),
    _row("counted", r"^(?P<i>[ \t]*)for[ \t]+(?P<n>\w+)[ \t]*=[ \t]*(?P<a>[^\n:]+?)[ \t]+to[ \t]+(?P<b>[^\n:]+?)[ \t]*(?::|do|$)", "{i}for {n} in range({a}, {b} + 1):",
         "for i = 1 to n:\n    pass\n", "for i in range(1, n + 1):\n    pass\n", 0.4),
    _row("then", r"(?P<head>^[ \t]*(?:if|elif|else|while|for)\b[^\n]*?)[ \t]*:?[ \t]*\b(?:then|do)\b[ \t]*:?[ \t]*$", "{head}:",
         "if a then\n    b = 1\n", "if a:\n    b = 1\n", 0.4),
    _row("brace", _HEAD + r"[ \t]*:?[ \t]*\{" + _END, "{head}:{rest}",
         "if (a) {\n    b = 1\n}\n", "if (a):\n    b = 1\n}\n", 0.4),
    _row("closing_before", r"^(?P<i>[ \t]*)\}[ \t]*(?=else|elif|catch|except|finally|while)", "{i}",
         "if a:\n    b = 1\n} else:\n    b = 2\n", "if a:\n    b = 1\nelse:\n    b = 2\n", 0.4),
    _row("closing", r"^[ \t]*\};?[ \t]*(?:\n|\Z)", "", "if a:\n    b = 1\n}\n", "if a:\n    b = 1\n", 0.5),
    _row("end", r"^[ \t]*(?:end|endif|end if|fi|done|esac|endfor|end for|endwhile|end while|endfunction|end function|begin)[ \t]*;?[ \t]*(?:\n|\Z)", "",
         "if a:\n    b = 1\nend if\n", "if a:\n    b = 1\n", 0.4),
    _row("throw", r"\bthrow[ \t]+(?:new[ \t]+)?", "raise ", "throw new ValueError(a)\n", "raise ValueError(a)\n", 0.4),
    _row("new", r"\bnew[ \t]+(?=[A-Za-z_]\w*\()", "", "a = new Box()\n", "a = Box()\n", 0.4),
    _row("catch_as", r"\bcatch[ \t]*\([ \t]*(?P<e>[\w.]+)[ \t]+(?P<n>\w+)[ \t]*\)", "except {e} as {n}",
         "try:\n    a()\ncatch (ValueError e):\n    pass\n", "try:\n    a()\nexcept ValueError as e:\n    pass\n", 0.4),
    _row("catch_any", r"\bcatch[ \t]*\([ \t]*(?P<n>\w+)[ \t]*\)", "except Exception as {n}",
         "try:\n    a()\ncatch (e):\n    pass\n", "try:\n    a()\nexcept Exception as e:\n    pass\n", 0.4),
    _row("catch", r"^(?P<i>[ \t]*)(?:catch|rescue|exept|excpet|expect|exceptt?)(?=[ \t:])", "{i}except",
         "try:\n    a()\ncatch ValueError:\n    pass\n", "try:\n    a()\nexcept ValueError:\n    pass\n", 0.5),
    _row("switch", r"^(?P<i>[ \t]*)switch[ \t]*\(?(?P<a>[^\n:{]+?)\)?[ \t]*:", "{i}match {a}:",
         "switch a:\n    case 1:\n        b = 2\n", "match a:\n    case 1:\n        b = 2\n", 0.5),
    _row("default", r"^(?P<i>[ \t]+)default[ \t]*:", "{i}case _:",
         "match a:\n    case 1:\n        b = 2\n    default:\n        b = 3\n", "match a:\n    case 1:\n        b = 2\n    case _:\n        b = 3\n", 0.5),
    _row("unless", r"^(?P<i>[ \t]*)unless[ \t]+(?P<a>[^\n:]+):", "{i}if not ({a}):",
         "unless a:\n    b = 1\n", "if not (a):\n    b = 1\n", 0.4),
    _row("until", r"^(?P<i>[ \t]*)until[ \t]+(?P<a>[^\n:]+):", "{i}while not ({a}):",
         "until a:\n    b = 1\n", "while not (a):\n    b = 1\n", 0.4),
    _row("line_comment", r"(?P<b>^[ \t]*|[;{}:)\w\]][ \t]+)//(?P<c>[^\n]*)$", "{b}#{c}",
         "a = 1 // the first one\n", "a = 1 # the first one\n", 0.7),
    _row("block_comment", r"^(?P<i>[ \t]*)/\*(?P<c>[^\n]*?)\*/[ \t]*$", "{i}#{c}", "/* one */\na = 1\n", "# one \na = 1\n", 0.4),
    _row("dashed_comment", r"^(?P<i>[ \t]*)--[ \t]+(?P<c>[^\n]*)$", "{i}# {c}", "-- the first one\na = 1\n", "# the first one\na = 1\n", 0.6),
    _row("arrow", r"\(?(?P<a>\b\w+(?:[ \t]*,[ \t]*\w+)*)\)?[ \t]*=>[ \t]*(?=[\w(\[\"'-])", "lambda {a}: ",
         "b = sorted(c, key=x => x[0])\n", "b = sorted(c, key=lambda x: x[0])\n", 0.6),
    _row("lambda_arrow", r"\blambda[ \t]+(?P<a>[\w, \t]+?)[ \t]*(?:->|=>|\.)[ \t]*", "lambda {a}: ",
         "b = sorted(c, key=lambda x -> x[0])\n", "b = sorted(c, key=lambda x: x[0])\n", 0.4),
    _row("ternary", r"(?P<b>=|\breturn|\()[ \t]*(?P<a>[^\n?=]+?)[ \t]*\?[ \t]*(?P<c>[^\n?:]+?)[ \t]*:[ \t]*(?P<d>[^\n?:;]+?)(?=;?[ \t]*$|\))", "{b} {c} if {a} else {d}",
         "a = b ? 1 : 2\n", "a = 1 if b else 2\n", 0.4),
    _row("elvis", r"[ \t]*\?\?[ \t]*", " or ", "a = b ?? c\n", "a = b or c\n", 0.5),
    _row("optional", r"\?\.", ".", "a = b?.c\n", "a = b.c\n", 0.5),
    _row("dollar", r"\$(?=\w)", "", "$a = 1\n", "a = 1\n", 0.4),
    _row("print", r"^(?P<i>[ \t]*|[^\n]*:[ \t]+)print[ \t]+(?!\()(?P<a>[^\n;]+?)(?P<rest>[ \t]*(?:;[ \t]*)?(?:\x02+)?)$", "{i}print({a}){rest}",
         "print 'a', b\n", "print('a', b)\n", 0.3),
    _row("exec", r"^(?P<i>[ \t]*)exec[ \t]+(?P<a>[^\n(][^\n]*?)$", "{i}exec({a})", "exec a\n", "exec(a)\n", 0.3),
    _row("except_comma", r"\bexcept[ \t]+(?P<e>[\w.]+|\([^\n]*?\))[ \t]*,[ \t]*(?P<n>[a-z_]\w*)[ \t]*:", "except {e} as {n}:",
         "try:\n    a()\nexcept ValueError, e:\n    pass\n", "try:\n    a()\nexcept ValueError as e:\n    pass\n", 0.3),
    _row("except_several", r"\bexcept[ \t]+(?P<e>[A-Z][\w.]*(?:[ \t]*,[ \t]*[A-Z][\w.]*)+)(?P<rest>[ \t]*(?:as[ \t]+\w+[ \t]*)?):", "except ({e}){rest}:",
         "try:\n    a()\nexcept ValueError, KeyError:\n    pass\n", "try:\n    a()\nexcept (ValueError, KeyError):\n    pass\n", 0.3),
    _row("raise_comma", r"^(?P<i>[ \t]*)raise[ \t]+(?P<e>[\w.]+)[ \t]*,[ \t]*(?P<a>[^\n]+?)$", "{i}raise {e}({a})",
         "raise ValueError, 'a'\n", "raise ValueError('a')\n", 0.3),
    _row("backticks", r"`(?P<a>[^`\n]+)`", "repr({a})", "a = `b`\n", "a = repr(b)\n", 0.5),
    _row("long", r"\b(?P<a>\d+)[lL]\b", "{a}", "a = 10L\n", "a = 10\n", 0.3),
    _row("octal", r"(?<![\w.])0(?P<a>[0-7]{3,})\b(?![.\w])", "0o{a}", "a = 0755\n", "a = 0o755\n", 0.4),
    _row("leading_zeros", r"(?<![\w.])0+(?P<a>[1-9]\d*)\b(?![.\w])", "{a}", "a = 007\n", "a = 7\n", 0.5),
    _row("raw_unicode", r"\b[uU][rR](?=[\"'])", "r", "a = ur'b'\n", "a = r'b'\n", 0.3),
    _row("power", r"(?P<a>[\w)\]])[ \t]*\^\^[ \t]*", "{a} ** ", "a = b ^^ 2\n", "a = b ** 2\n", 0.5),
    _row("walrus_plain", r"^(?P<i>[ \t]*)(?P<n>[\w.\[\]]+)[ \t]*:=[ \t]*", "{i}{n} = ", "a := 1\n", "a = 1\n", 0.4),
    _row("arrow_nothing", r"(?P<b>\))[ \t]*->[ \t]*:", "{b}:", "def f() -> :\n    pass\n", "def f():\n    pass\n", 0.3),
    _row("no_brackets", r"^(?P<i>[ \t]*(?:async[ \t]+)?)def[ \t]+(?P<n>\w+)[ \t]*:", "{i}def {n}():", "def f:\n    pass\n", "def f():\n    pass\n", 0.3),
    _row("import_from", r"^(?P<i>[ \t]*)import[ \t]+(?P<a>[\w., \t]+?)[ \t]+from[ \t]+(?P<m>[\w.]+)[ \t]*;?[ \t]*$", "{i}from {m} import {a}",
         "import a from b\n", "from b import a\n", 0.3),
    _row("include", r"^(?P<i>[ \t]*)(?:include|using|require|use)[ \t]+(?P<m>[\w.]+)[ \t]*;?[ \t]*$", "{i}import {m}", "using math;\n", "import math\n", 0.5),
    _row("is_not", r"\bisnt\b|\bis[ \t]+not[ \t]+equal[ \t]+to\b|\bnot[ \t]+equal[ \t]+to\b|\bnot[ \t]+equals\b", "!=", "if a not equals b:\n    pass\n", "if a != b:\n    pass\n", 0.4),
    _row("is_equal", r"\bis[ \t]+equal[ \t]+to\b|\bequals[ \t]+to\b|\bequals\b(?=[ \t]+[\w\"'])", "==", "if a equals b:\n    pass\n", "if a == b:\n    pass\n", 0.4),
    _row("is_in", r"\bis[ \t]+in\b", "in", "if a is in b:\n    pass\n", "if a in b:\n    pass\n", 0.4),
    _row("is_more", r"\bis[ \t]+(?=[<>]=?)", "", "if a is > b:\n    pass\n", "if a > b:\n    pass\n", 0.4),
    _row("more_than", r"\bis[ \t]+(?:greater|more|larger|bigger)[ \t]+than\b", ">", "if a is greater than b:\n    pass\n", "if a > b:\n    pass\n", 0.4),
    _row("less_than", r"\bis[ \t]+(?:less|smaller|fewer)[ \t]+than\b", "<", "if a is less than b:\n    pass\n", "if a < b:\n    pass\n", 0.4),
    _row("else_condition", r"^(?P<i>[ \t]*)else[ \t]+(?P<a>[^\n:]*[<>=!][^\n:]*):", "{i}elif {a}:",
         "if a:\n    b = 1\nelse a > 2:\n    b = 2\n", "if a:\n    b = 1\nelif a > 2:\n    b = 2\n", 0.4),
    _row("in_front", r"\bnot[ \t]+is\b(?![ \t]+not)", "is not", "if a not is b:\n    pass\n", "if a is not b:\n    pass\n", 0.4),
    _row("global_value", r"^(?P<i>[ \t]*)(?P<w>global|nonlocal)[ \t]+(?P<n>\w+)[ \t]*=[ \t]*(?P<a>[^\n]+)$", "{i}{w} {n}\n{i}{n} = {a}",
         "def f():\n    global a = 1\n", "def f():\n    global a\n    a = 1\n", 0.3),
    _row("return_assigned", r"^(?P<i>[ \t]*)return[ \t]+(?P<n>\w+)[ \t]*=[ \t]*(?P<a>[^=\n][^\n]*)$", "{i}return {a}",
         "def f():\n    return a = 1\n", "def f():\n    return 1\n", 0.5),
    _row("spaced_operator", r"(?P<a>[<>!=*/+%-])[ \t]+=(?!=)", "{a}=", "if a < = b:\n    pass\n", "if a <= b:\n    pass\n", 0.5),
    _row("turned_add", r"=\+=|\+==", "+=", "a +== 1\n", "a += 1\n", 0.4),
    _row("self_attribute", r"(?P<b>def[ \t]+\w+\([^)\n]*?)self\.(?=\w)", "{b}", "def f(self, self.a):\n    pass\n", "def f(self, a):\n    pass\n", 0.4),
)  # fmt: skip


def matches(row: Rewrite, text: str) -> list[tuple[int, int, str]]:
    """The splices that mend one habit everywhere in a text."""
    splices = []
    for match in row.pattern.finditer(masked(text)):
        groups = {
            name: text[slice(*match.span(name))] for name in match.groupdict() if match[name] is not None
        }
        splices.append((match.start(), match.end(), row.text.format_map(groups)))
    return splices


def rewrites(text: str) -> Iterator[tuple[Rewrite, list[tuple[int, int, str]]]]:
    """Each habit that shows in a text, with its splices."""
    for row in REWRITES:
        if splices := matches(row, text):
            yield row, splices


def spliced(text: str, splices: list[tuple[int, int, str]]) -> str:
    """The text with those parts replaced; they come in order and do not overlap."""
    for start, end, new in reversed(splices):
        text = text[:start] + new + text[end:]
    return text
