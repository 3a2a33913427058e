"""QuixBugs as tools: the user's own checkout, read as it is.

https://github.com/jkoppel/QuixBugs (MIT). Nothing of it is kept here: programs are registered with their own text,
examples are made from `json_testcases` and, for the programs on graphs and linked lists, from the bodies of
`python_testcases`, whose asserts become values.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import random
from pathlib import Path
from typing import Any

from heal import quixbugs_inputs
from heal.programs import Example, Program
from heal.scoring import Judge

#: Their results are generators; what counts is the list of what they yield.
_GENERATORS = {"flatten", "kheapsort"}
#: Tests that the reference does not end in useful time either; the project's own tests skip them too.
_TOO_SLOW = (("knapsack", 6404180), ("levenshtein", "amanaplanacanalpanama"))
#: Inputs on which a patch must give the same answer as the reference.
DIFFERENTIAL_INPUTS = 30
_REFERENCE_TIMEOUT_S = 2.0
_BROKEN_TIMEOUT_S = 3.0


@dataclasses.dataclass(frozen=True)
class Checkout:
    """Program of the checkout: its text, the correct version's, every test as an example, and the class `Node`."""

    name: str
    code: str
    correct: str
    tests: tuple[Example, ...]
    nodes: str


def read(path: Path) -> list[Checkout]:
    """Return all 40 programs; raise `FileNotFoundError` where `path` is not a checkout."""
    programs = sorted((path / "python_programs").glob("*.py"))
    if not programs:
        raise FileNotFoundError(f"{path} holds no python_programs: is it a checkout of QuixBugs?")
    nodes = (path / "python_testcases" / "node.py").read_text(encoding="utf-8").strip()
    checkouts = []
    for program in programs:
        if program.stem == "node" or program.stem.endswith("_test"):
            continue
        code = program.read_text(encoding="utf-8")
        correct = (path / "correct_python_programs" / program.name).read_text(encoding="utf-8")
        tests = [_with_nodes(nodes, test) for test in _tests(path, program.stem, code)]
        checkouts.append(Checkout(program.stem, code, correct, tuple(tests), nodes))
    return checkouts


def survey(checkouts: list[Checkout], judge: Judge) -> tuple[dict[str, list[bool]], list[str]]:
    """Return which tests each broken program passes, and the programs whose correct version fails one.

    The second list should be empty. Raises `ValueError` for a broken program that passes all.
    """
    passed, doubtful = {}, []
    for checkout in checkouts:
        tests = checkout.tests
        [passed[checkout.name]] = judge.passes([checkout.code], checkout.name, tests, _BROKEN_TIMEOUT_S)
        [right] = judge.passes([checkout.correct], checkout.name, tests)
        if all(passed[checkout.name]):
            raise ValueError(f"the broken {checkout.name!r} passes all of its tests")
        doubtful += [checkout.name] * (not all(right))
    return passed, doubtful


def _shown(checkout: Checkout, judge: Judge, tests: list[Example]) -> list[Example]:
    """Return the tests as a healer sees them.

    It takes a value for exact, so where a test allows for a tolerance the value is what the correct version gives.
    """
    [right] = judge.results([checkout.correct], checkout.name, tests)
    return [
        {**test, "result": result.value} if "within" in test and result.ok else test
        for test, result in zip(tests, right, strict=True)
    ]


def problems(
    checkouts: list[Checkout], passed: dict[str, list[bool]], judge: Judge, seed: int, *, half: bool
) -> tuple[list[Program], dict[str, list[Example]]]:
    """Return the programs with the examples that a healer sees, and for each those that it does not.

    passed: which tests the broken programs pass (`survey`). half: every other test is visible, chosen by the seed, at
    least one that fails among them; else all are. Unseen are the other tests, and inputs of our own that the correct
    version was asked.
    """
    programs, unseen = [], {}
    for checkout in checkouts:
        chooser = random.Random(f"{seed}:{checkout.name}")
        tests, passes = checkout.tests, passed[checkout.name]
        order = list(range(len(tests)))
        if half:
            chooser.shuffle(order)
            first = next(i for i in order if not passes[i])
            order.remove(first)
            order = sorted([first, *order[: (len(tests) + 1) // 2 - 1]])
        program = Program(
            name=checkout.name,
            code=checkout.code,
            examples=tuple(_shown(checkout, judge, [tests[i] for i in order])),
            kind="quixbugs",
            shows="wrong",
            failing=next(place for place, i in enumerate(order) if not passes[i]),
        )
        programs.append(program)
        others = [test for i, test in enumerate(tests) if i not in order]
        unseen[checkout.name] = others + differential(checkout, judge, chooser)
    return programs, unseen


def differential(checkout: Checkout, judge: Judge, chooser: random.Random) -> list[Example]:
    """Return inputs within the program's preconditions, and what the correct version returns for them."""
    asked = [
        _with_nodes(checkout.nodes, _asked(checkout.name, checkout.code, arguments))
        for arguments in quixbugs_inputs.draw(checkout.name, chooser, DIFFERENTIAL_INPUTS)
    ]
    [results] = judge.results([checkout.correct], checkout.name, asked, _REFERENCE_TIMEOUT_S)
    return [
        {**example, "result": result.value}
        for example, result in zip(asked, results, strict=True)
        if result.ok
    ]


def _tests(path: Path, name: str, code: str) -> list[Example]:
    cases = path / "json_testcases" / f"{name}.json"
    if not cases.exists():
        return _from_asserts(path, name)
    examples = []
    for line in cases.read_text(encoding="utf-8").splitlines():
        given, result = json.loads(line)
        given = given if isinstance(given, list) else [given]
        if (name, given[0]) in _TOO_SLOW:
            continue
        example = {**_asked(name, code, given), "result": result}
        # The tests of `sqrt` allow what its caller allows.
        examples.append({**example, "within": given[-1]} if name == "sqrt" else example)
    return examples


def _asked(name: str, code: str, given: Any) -> Example:
    """Return a call as an example without its result: a text as it is, else arguments by position."""
    if isinstance(given, str):
        return {"call": given}
    if name in _GENERATORS:
        return {"call": f"list({name}({', '.join(map(repr, given))}))"}
    function = next(
        node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef) and node.name == name
    )
    return {"arguments": dict(zip((a.arg for a in function.args.args), given, strict=False))}


def _from_asserts(path: Path, name: str) -> list[Example]:
    """Return one example for each test function: its statements, with `seen` made of what it asserts."""
    tree = ast.parse((path / "python_testcases" / f"test_{name}.py").read_text(encoding="utf-8"))
    before: list[ast.stmt] = []
    examples = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            values: list[Any] = []
            body = [_seeing(statement, node, values) for statement in _without_docstring(node)]
            begin, end = ast.parse("seen = []").body[0], ast.parse("seen").body[0]
            module = ast.Module([*before, begin, *body, end], type_ignores=[])
            source = ast.unparse(ast.fix_missing_locations(module))
            examples.append({"call": source, "result": values})
        elif not isinstance(node, ast.Import | ast.ImportFrom | ast.If):
            before.append(node)
    return examples


def _seeing(statement: ast.stmt, test: ast.FunctionDef, values: list[Any]) -> ast.stmt:
    """Return an assert as an append to `seen`; `values` gets what is right there."""
    if not isinstance(statement, ast.Assert):
        return statement
    found, right = _asserted(statement.test, test)
    values.append(right)
    append = ast.Attribute(ast.Name("seen", ast.Load()), "append", ast.Load())
    return ast.Expr(ast.Call(append, [found], []))


def _asserted(condition: ast.expr, test: ast.FunctionDef) -> tuple[ast.expr, Any]:
    """Return what to look at, and what it should be: the left side where the right one is known, else a truth value."""
    from healkit.core.wire.encoding import to_jsonable

    match condition:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            if isinstance(right, ast.Name):
                right = next((s.value for s in test.body if _assigns(s, right.id)), right)  # type: ignore[attr-defined]  # a name
            known = _literal(right)
            if known is not None:
                return left, to_jsonable(known[0])[0]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.Call(ast.Name("bool", ast.Load()), [operand], []), False
    return ast.Call(ast.Name("bool", ast.Load()), [condition], []), True


def _assigns(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == name


def _literal(node: ast.expr) -> tuple[Any] | None:
    """Return the value of a display of constants and `float("inf")` as a 1-tuple; None for anything else."""
    inner = ast.walk(node)
    if any(isinstance(part, ast.Name) and part.id != "float" for part in inner):
        return None
    return (eval(compile(ast.Expression(node), "<test>", "eval"), {"float": float, "__builtins__": {}}),)


def _without_docstring(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node) else node.body


def _with_nodes(nodes: str, example: Example) -> Example:
    """Return the example with QuixBugs' class of nodes before its call, where that makes any."""
    if "Node(" not in example.get("call", ""):
        return example
    return {**example, "call": f"{nodes}\n\n\n{example['call']}"}
