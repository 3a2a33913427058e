"""`None` where a value was expected."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.failures.pattern import NO_EXCEPTION, ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.pysource.nodes import Function, own_nodes, parameters

#: Methods that change their object and return None → an expression of the changed value, if there is one.
_IN_PLACE = {
    "sort": "sorted({o}{a})", "reverse": "{o}[::-1]", "append": "[*{o}, {0}]", "extend": "[*{o}, *{0}]", "insert": "",
    "add": "{{*{o}, {0}}}", "update": "", "remove": "", "clear": "", "discard": "",
}  # fmt: skip


def _in_place(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the changed object where the value of an in-place method is used: `ranked = scores.sort()`."""
    source = site.source
    for call in site.body_nodes(ast.Call):
        parent = source.parents[call]
        func = call.func
        if (
            not isinstance(func, ast.Attribute)
            or func.attr not in _IN_PLACE
            or isinstance(parent, ast.Expr | ast.Await)
        ):
            continue
        base = source.segment(func.value)
        if (
            isinstance(parent, ast.Assign)
            and len(parent.targets) == 1
            and source.segment(parent.targets[0]) == base
        ):
            yield Proposal(f"`.{func.attr}` changes `{base}` in place and returns `None`, so the assignment is removed.",
                      source.replace(parent, source.segment(call)))  # fmt: skip
            continue
        form = _IN_PLACE[func.attr]
        if not form or ("{0}" in form and len(call.args) != 1):
            continue
        given = "".join(f", {source.segment(argument)}" for argument in [*call.args, *call.keywords])
        text = form.format(
            *[source.segment(argument) for argument in call.args], o=source.atom(func.value), a=given
        )
        yield Proposal(
            f"`.{func.attr}` returns `None`; use `{text}` for the changed value.", source.replace(call, text)
        )


def _shuffled(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    source = site.source
    for node in site.body_nodes(ast.Assign):
        call = node.value
        if (
            not isinstance(call, ast.Call)
            or not source.segment(call.func).endswith("shuffle")
            or not call.args
        ):
            continue
        target, given = source.segment(node.targets[0]), source.segment(call.args[0])
        why = "`shuffle` changes the list in place and returns `None`."
        if target == given:
            yield Proposal(why, source.replace(node, source.segment(call)))
        else:
            edits = source.insert_before(node, f"{target} = list({given})")
            edits += [
                Edit(source.span(node)[0], source.span(call)[0], ""),
                *source.replace(call.args[0], target),
            ]
            yield Proposal(why, edits)


def _returns(function: Function) -> list[ast.Return]:
    return [n for n in own_nodes(function) if isinstance(n, ast.Return) and n.value is not None]


def _suspects(site: Site) -> list[Function]:
    """Return the own functions whose missing value could have failed."""
    called = {n.func.id for n in site.body_nodes(ast.Call) if isinstance(n.func, ast.Name)}
    called |= {n.func.attr for n in site.body_nodes(ast.Call) if isinstance(n.func, ast.Attribute)}
    if site.failure is None:
        called |= {site.entry.name} if site.entry else set()
    functions = [n for n in ast.walk(site.source.tree) if isinstance(n, Function)]
    return [f for f in functions if f.name in called and f.name != "__init__"]


def _no_return(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    if site.failure is None and not (site.expected and site.expected[0] is not None):
        return
    for function in _suspects(site):
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(function)):
            continue
        yield from _with_return(site, function, function.body[-1])


def _with_return(site: Site, function: Function, last: ast.stmt) -> Iterator[Proposal]:
    """Add a `return` of the last statement's value, or of a name that was built up."""
    source, why = site.source, f"`{function.name}` ends without a `return`"
    if isinstance(last, ast.If) and last.body:
        for branch in (last.body[-1], *(last.orelse[-1:])):
            yield from _with_return(site, function, branch)
        return
    if _returns(function) and not isinstance(last, ast.Expr):
        return
    match last:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[value], keywords=[])):
            text = source.segment(value)
            yield Proposal(
                f"`{function.name}` prints its value but does not return it.",
                source.replace(last, f"return {text}"),
            )
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr=attr))) if attr in _IN_PLACE:
            text = source.segment(base)
            yield Proposal(f"{why}: return `{text}`.", source.insert_after(last, f"return {text}"))
        case ast.Expr(value=value) if not isinstance(value, ast.Constant):
            yield Proposal(f"{why}: return the last expression.", source.wrap(last, "return ", ""))
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            yield Proposal(f"{why}: return `{name}`.", source.insert_after(last, f"return {name}"))
        case ast.For() | ast.While() | ast.With() | ast.Assign():
            for number, name in enumerate(_built(function, last)):
                edits = source.insert_after(last, f"return {name}")
                yield Proposal(f"{why}: return `{name}`.", edits, less=0.05 * number)


def _built(function: Function, last: ast.stmt) -> list[str]:
    """Return the names that the function assigned and the last block changed, in the order of assignment."""
    own = {arg.arg for arg in parameters(function)}
    begun = [
        target.id
        for node in function.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    touched = {n.id for n in ast.walk(last) if isinstance(n, ast.Name)}
    return [name for name in dict.fromkeys(begun) if name in touched and name not in own][:2]


_MISSED = FixExample(
    "import re\n\n\ndef tool(a):\n    return re.match('b', a).group()\n", arguments={"a": "a"}
)


_LOOP = "def _sums(a):\n    found = []\n    for n in a:\n        found.append(n + 1)\n{0}\n\ndef tool(a):\n    return _sums(a)[0]\n"


_IN_PLACE_USED = Fix(
    name="in_place",
    mistake="the value of a method that changes its object in place and returns `None`",
    priority=0.92,
    propose=_in_place,
    example=FixExample(
        "def tool(a):\n    ranked = a.sort(reverse=True)  # best first\n    return ranked[:3]\n",
        "def tool(a):\n    ranked = sorted(a, reverse=True)  # best first\n    return ranked[:3]\n",
        {"a": [1, 2]},
    ),
    lookalike=_MISSED,
)
_NO_RETURN = Fix(
    name="no_return",
    mistake="a function without `return`",
    priority=0.8,
    propose=_no_return,
    example=FixExample(_LOOP.format(""), _LOOP.format("    return found\n"), {"a": [1]}),
    lookalike=_MISSED,
)

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"unsupported operand type\(s\) for (?P<operator>.+?): (?:'NoneType'|.+'NoneType')",
        explanations=(
            ExplanationText(
                "operand_none",
                what="`{operator}` was used with `None`.",
                why=(
                    "One of the two values is `None`. Common causes: a function without `return`, or "
                    "`.get` of a dict with a missing key."
                ),
                hint="Which of the two is `None`, and where does it come from?",
                fix="Give that value an initial value or a default, or handle `None` before this line.",
                example="None + 1",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'NoneType' object is not (?P<what>subscriptable|iterable)|'NoneType' object does not support item",
        explanations=(
            ExplanationText(
                "none_subscript",
                what="The code looks up an item in `None`.",
                why=(
                    "A value that should be a list, a dict or a string is `None`. Common causes: a "
                    "function without `return`, or one that found nothing."
                ),
                hint="Which call returned `None`?",
                fix="Return the value from that function, or handle `None` before this line.",
                example="None[0]",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"NoneType\b",
        fixes=(
            _IN_PLACE_USED,
            Fix(
                name="shuffled",
                mistake="the value of `shuffle`, which is `None`",
                priority=0.92,
                propose=_shuffled,
                example=FixExample(
                    "import random\n\n\ndef tool(a):\n    b = random.shuffle(a)\n    return len(b)\n",
                    "import random\n\n\ndef tool(a):\n    b = list(a)\n    random.shuffle(b)\n    return len(b)\n",
                    {"a": [1, 2]},
                ),
                lookalike=_MISSED,
            ),
            _NO_RETURN,
        ),
    ),
    FailurePattern(
        ("AttributeError",),
        r"NoneType\b",
        fixes=(
            _IN_PLACE_USED,
            _NO_RETURN,
        ),
    ),
    FailurePattern(
        (NO_EXCEPTION,),
        fixes=(
            Fix(
                name="in_place_returned",
                mistake="a returned value of a method that changes its object in place",
                priority=0.9,
                propose=_in_place,
                example=FixExample(
                    "def tool(a):\n    a = a.append(1)\n    return a\n",
                    "def tool(a):\n    a.append(1)\n    return a\n",
                    {"a": [0]},
                ),
                lookalike=FixExample("def tool(a):\n    a.append(1)\n    return a\n", arguments={"a": []}),
            ),
            Fix(
                name="nothing_returned",
                mistake="a tool that prints its value or ends without a `return`",
                priority=0.85,
                propose=_no_return,
                example=FixExample(
                    "def tool(a):\n    print(a + 1)\n", "def tool(a):\n    return a + 1\n", {"a": 1}, right=2
                ),
                lookalike=FixExample(
                    "def tool(a):\n    print(a)\n    return a\n", arguments={"a": 1}, right=2
                ),
            ),
        ),
    ),
)
