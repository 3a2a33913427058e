"""Right tools, corrupted at random.

These are bugs that were not thought of beforehand.

The kinds are taken from what goes wrong when code is typed, pasted, merged or cut, not from what a search can undo.
Each works on the syntax tree: a statement lost, doubled, moved or swapped; a branch lost; an expression replaced by
another of the same program; two calls swapped; a wrong name, constant or key.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import random
from collections.abc import Callable

from heal.programs import Example, Program, own, written
from heal.scoring import Judge, hidden_examples, met, reference

from healkit.core.pysource.shapes import read_shape
from healkit.errors import ToolShapeError

#: How many of the mutants get a second corruption.
_TWO_BUGS = 0.2
_TRIES = 40
_TIMEOUT_S = 1.0

#: A corruption changes the tree, or returns False where it finds nothing to change.
Corruption = Callable[[ast.Module, random.Random], bool]


def mutants(judge: Judge, seed: int, count: int) -> list[Program]:
    """So many broken variants of the project's own tools, each of another tool as far as they reach.

    Only those that parse, differ from what is right in the value of a visible example, and are tools still.
    """
    chooser = random.Random(seed)
    bases = [program for program in own() if program.knowable]
    chooser.shuffle(bases)
    found: list[Program] = []
    rounds = 0
    while len(found) < count and rounds < _TRIES:
        drawn = [_corrupted(base, chooser) for base in bases[: count - len(found)]]
        found += _broken(judge, [program for program in drawn if program is not None])
        bases = bases[count - len(found) :] + bases[: count - len(found)]
        rounds += 1
    return found[:count]


#: Sets whose right code is corrupted by `planted`, the examples that fail there, those that pass beside them, and how
#: many have to be left to score with.
_PLANTED_IN, _FAILING, _PASSING, _UNSEEN_MIN = ("own", "dev", "fresh", "held_out"), (1, 2, 3), (0, 1, 2), 4


def planted(judge: Judge, seed: int, count: int) -> tuple[list[Program], dict[str, list[Example]]]:
    """So many broken variants of right tools, in turn with one, two and three failing examples; and what is unseen.

    All examples of a tool, visible or not, are drawn anew by the seed.
    """
    chooser = random.Random(seed)
    bases = []
    for name in _PLANTED_IN:
        hidden = hidden_examples(name)
        bases += [(name, one, [*one.examples, *hidden[one.name]]) for one in written(name) if one.knowable]
    chooser.shuffle(bases)
    found: list[Program] = []
    unseen: dict[str, list[Example]] = {}
    for _ in range(_TRIES):
        for base in list(bases):
            if len(found) == count:
                return found, unseen
            set_name, program, examples = base
            drawn = _corrupted(program, chooser, set_name)
            if drawn is None or not _is_tool(drawn):
                continue
            passed, shows = _outcomes(judge, drawn, examples)
            wanted, beside = _FAILING[len(found) % len(_FAILING)], chooser.choice(_PASSING)
            fails = [at for at, one in enumerate(passed) if not one]
            passes = [at for at, one in enumerate(passed) if one]
            chosen = chooser.sample(fails, min(wanted, len(fails)))
            chosen += chooser.sample(passes, min(beside, len(passes)))
            if len(fails) < wanted or len(examples) - len(chosen) < _UNSEEN_MIN:
                continue
            visible = tuple(examples[at] for at in chosen)
            found.append(
                dataclasses.replace(drawn, examples=visible, failing=0, shows=shows[chosen[0]], fails=wanted)
            )
            unseen[program.name] = [one for at, one in enumerate(examples) if at not in chosen]
            bases.remove(base)
    return found, unseen


def _outcomes(judge: Judge, program: Program, examples: list[Example]) -> tuple[list[bool], list[str]]:
    """Return which examples a program meets, and how each of the others shows."""
    [results] = judge.results([program.code], program.name, examples, _TIMEOUT_S)
    failures = [result.failure for result in results]
    shows = [
        "wrong" if one is None else "hangs" if one.code == "TOOL_TIMEOUT" else "raises" for one in failures
    ]
    return list(map(met, examples, results)), shows


def _is_tool(program: Program) -> bool:
    try:
        compile(program.code, program.name, "exec")
        read_shape(ast.parse(program.code), program.name)
    except (SyntaxError, ToolShapeError):
        return False
    return True


def _corrupted(base: Program, chooser: random.Random, set_name: str = "own") -> Program | None:
    tree = ast.parse(reference(base.name, set_name))
    right = ast.unparse(tree)
    kinds = []
    wanted = 2 if chooser.random() < _TWO_BUGS else 1
    for _ in range(_TRIES):
        kind = chooser.choice(list(KINDS))
        if KINDS[kind](tree, chooser):
            kinds.append(kind)
        if len(kinds) == wanted:
            break
    code = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    if not kinds or code.strip() == right.strip():
        return None
    kind = kinds[0] if len(kinds) == 1 else "two corruptions"
    return dataclasses.replace(base, code=code, kind=kind, shows="", bugs=len(kinds), places=len(kinds))


def _broken(judge: Judge, drawn: list[Program]) -> list[Program]:
    """Those that fail an example, with how it shows."""
    broken = []
    for program in filter(_is_tool, drawn):
        passed, shows = _outcomes(judge, program, list(program.examples))
        if not all(passed):
            failing = passed.index(False)
            broken.append(dataclasses.replace(program, failing=failing, shows=shows[failing]))
    return broken


def _blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    """Every list of statements inside of functions, or of the script; docstrings count as none."""
    lists = [
        getattr(node, field)
        for node in ast.walk(tree)
        for field in ("body", "orelse")
        if isinstance(getattr(node, field, None), list) and not isinstance(node, ast.Module | ast.ClassDef)
    ]
    script = [
        n
        for n in tree.body
        if not isinstance(n, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)
    ]
    return [*(block for block in lists if block), *([tree.body] if len(script) == len(tree.body) else [])]


def _statement(tree: ast.Module, r: random.Random) -> tuple[list[ast.stmt], int] | None:
    places = [
        (block, i)
        for block in _blocks(tree)
        for i, statement in enumerate(block)
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        and not isinstance(statement, ast.FunctionDef | ast.ClassDef)
    ]
    return r.choice(places) if places else None


def _lose_statement(tree: ast.Module, r: random.Random) -> bool:
    place = _statement(tree, r)
    if place is None:
        return False
    block, i = place
    block[i : i + 1] = [] if len(block) > 1 else [ast.Pass()]
    return True


def _double_statement(tree: ast.Module, r: random.Random) -> bool:
    place = _statement(tree, r)
    if place is None or isinstance(place[0][place[1]], ast.Return):
        return False
    block, i = place
    block.insert(i, copy.deepcopy(block[i]))
    return True


def _swap_statements(tree: ast.Module, r: random.Random) -> bool:
    blocks = [block for block in _blocks(tree) if len(block) > 1]
    if not blocks:
        return False
    block = r.choice(blocks)
    i = r.randrange(len(block) - 1)
    block[i], block[i + 1] = block[i + 1], block[i]
    return True


def _move_across_indent(tree: ast.Module, r: random.Random) -> bool:
    """Move the last statement of a loop or branch out of it, or what follows into it."""
    places = [
        (block, i)
        for block in _blocks(tree)
        for i, statement in enumerate(block)
        if isinstance(statement, ast.For | ast.While | ast.If | ast.With)
    ]
    if not places:
        return False
    block, i = r.choice(places)
    inner = block[i].body  # type: ignore[attr-defined]  # as the slot was chosen
    if len(inner) > 1 and r.random() < 0.5:
        block.insert(i + 1, inner.pop())
    elif i + 1 < len(block):
        inner.append(block.pop(i + 1))
    else:
        return False
    return True


def _lose_branch(tree: ast.Module, r: random.Random) -> bool:
    """Remove an `else` or `elif`, or make what was conditional always happen."""
    places = [(block, i) for block in _blocks(tree) for i, s in enumerate(block) if isinstance(s, ast.If)]
    if not places:
        return False
    block, i = r.choice(places)
    branch = block[i]
    assert isinstance(branch, ast.If)
    if branch.orelse and r.random() < 0.7:
        branch.orelse = branch.orelse[0].orelse if isinstance(branch.orelse[0], ast.If) else []
    else:
        block[i : i + 1] = branch.body
    return True


def _slots(tree: ast.Module, kinds: type | tuple[type, ...]) -> list[tuple[ast.AST, str, int | None]]:
    """Yield the places of read expressions of such a kind: parent, field, index in a list."""
    found: list[tuple[ast.AST, str, int | None]] = []
    for parent in ast.walk(tree):
        if isinstance(parent, ast.JoinedStr | ast.FormattedValue | ast.arguments | ast.Delete):
            continue
        for field, value in ast.iter_fields(parent):
            if field in ("targets", "target", "decorator_list", "annotation", "returns", "keys", "bases"):
                continue
            for i, item in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(item, kinds) and not isinstance(getattr(item, "ctx", None), ast.Store):
                    if isinstance(item, ast.Constant) and isinstance(parent, ast.Expr):
                        continue  # a docstring
                    found.append((parent, field, i if isinstance(value, list) else None))
    return found


def _get(slot: tuple[ast.AST, str, int | None]) -> ast.expr:
    parent, field, i = slot
    value = getattr(parent, field)
    return value if i is None else value[i]  # type: ignore[no-any-return]  # a node's field


def _put(slot: tuple[ast.AST, str, int | None], value: ast.expr) -> None:
    parent, field, i = slot
    if i is None:
        setattr(parent, field, value)
    else:
        getattr(parent, field)[i] = value


def _other_expression(tree: ast.Module, r: random.Random) -> bool:
    """Replace an expression by another of the same program."""
    slots = _slots(tree, ast.expr)
    if len(slots) < 2:
        return False
    slot, source = r.sample(slots, 2)
    value = copy.deepcopy(_get(source))
    if isinstance(value, ast.Slice | ast.Starred) or isinstance(_get(slot), ast.Slice | ast.Starred):
        return False
    if ast.dump(value) == ast.dump(_get(slot)):
        return False
    _put(slot, value)
    return True


def _swap_calls(tree: ast.Module, r: random.Random) -> bool:
    """Two calls exchange what they call."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if len(calls) < 2:
        return False
    one, other = r.sample(calls, 2)
    if ast.dump(one.func) == ast.dump(other.func):
        return False
    one.func, other.func = other.func, one.func
    return True


def _wrong_name(tree: ast.Module, r: random.Random) -> bool:
    """Another variable of the program stands where one is read."""
    slots = _slots(tree, ast.Name)
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = sorted(stored | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)})
    slots = [slot for slot in slots if _get(slot).id in names]  # type: ignore[attr-defined]  # as the slot was chosen
    if not slots or len(names) < 2:
        return False
    slot = r.choice(slots)
    others = [name for name in names if name != _get(slot).id]  # type: ignore[attr-defined]  # as the slot was chosen
    _put(slot, ast.Name(r.choice(others), ast.Load()))
    return True


def _wrong_constant(tree: ast.Module, r: random.Random) -> bool:
    """Change a number a little, mistype a text, or take the other truth value."""
    slots = _slots(tree, ast.Constant)
    if not slots:
        return False
    slot = r.choice(slots)
    value = _get(slot).value  # type: ignore[attr-defined]  # as the slot was chosen
    if isinstance(value, bool):
        changed: object = not value
    elif isinstance(value, int | float):
        changed = r.choice([value + 1, value - 1, value * 10, -value, 0])
    elif isinstance(value, str):
        at = r.randint(0, len(value))
        changed = r.choice(
            [value[:at] + value[at + 1 :], value[:at] + " " + value[at:], value.swapcase(), ""]
        )
    else:
        return False
    if changed == value:
        return False
    _put(slot, ast.Constant(changed))
    return True


def _lose_part(tree: ast.Module, r: random.Random) -> bool:
    """Of `a and b`, of `a + b`, of a chain of method calls, only one part is left."""
    slots = [
        slot
        for slot in _slots(tree, (ast.BoolOp, ast.BinOp, ast.Call))
        if not isinstance(_get(slot), ast.Call) or isinstance(_get(slot).func, ast.Attribute)  # type: ignore[attr-defined]  # as the slot was chosen
    ]
    if not slots:
        return False
    slot = r.choice(slots)
    match _get(slot):
        case ast.BoolOp(values=values):
            left = r.choice(values)
        case ast.BinOp(left=one, right=other):
            left = r.choice([one, other])
        case ast.Call(func=ast.Attribute(value=receiver)):
            left = receiver
        case _:
            return False
    _put(slot, left)
    return True


KINDS: dict[str, Corruption] = {
    "statement lost": _lose_statement,
    "statement doubled": _double_statement,
    "statements swapped": _swap_statements,
    "wrong indent": _move_across_indent,
    "branch lost": _lose_branch,
    "another expression": _other_expression,
    "calls swapped": _swap_calls,
    "wrong name": _wrong_name,
    "wrong constant": _wrong_constant,
    "part lost": _lose_part,
}
