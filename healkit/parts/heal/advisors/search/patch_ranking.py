"""Ranking of patches that pass every check, and doubts.

Other evidence decides among them: how likely the kind of edit is, how suspicious its line, and how small the patch. It
also counts whether the code makes sense, and what it does on inputs near those of the checks. A patch is less likely if
it changes results near inputs where the code was right, fails where others do not, or returns a constant. Patches that
behave in the same way support each other, as independent ways to one behaviour.

Among a few thousand edits, some pass two or three examples by chance. If there is little evidence, a patch gets a
doubt: it is shown, but not called cured.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import compress

import msgspec

from healkit.core.contracts.patches import Check, CheckResult, Edit, difference
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.advisors.search.edit_space import Baseline, Candidate, parses
from healkit.parts.heal.advisors.search.patch_features import USUAL, patch_features
from healkit.parts.heal.advisors.search.program import Program
from healkit.parts.heal.inputs import Accepts, edges, nearby, scalars
from healkit.parts.heal.records import Patch

#: How many patches are compared by behaviour; the others follow in the order of their scores.
_COMPARED = 40
#: Numbers of inputs: at the edges, near passing checks, near failing checks.
_EDGES, _NEAR_PASSING, _NEAR_FAILING = 6, 16, 6
#: Weights, as logarithms of odds.
_KEPT, _KEPT_LOUD, _FAILED, _CONSTANT = 0.8, 3.0, 0.8, 1.5
#: Where no check says what is right for a failing input: how far a patch that changes other results is put back.
_CHANGED_UNASKED = 6.0
#: Agreement counts little and is capped, however many agree: ten ways to disable a condition are not ten opinions. (75
#: tools of the project's own sets had right and wrong patches. The top one was right for 65 with a weight of 0.5 and a
#: cap of 3, and for 70 with these.)
_AGREED, _AGREED_MOST = 0.35, 1.3
#: The kind of an edit tells more than its place, which has already decided how early the edit is tried.
_PRIOR, _PLACE = 1.6, 0.5
_REMOVED, _ADDED, _MOVED, _MOST_TOKENS = 0.05, 0.02, 0.03, 20
_UNREAD, _FOREIGN, _IDLE, _FIXED, _SILENT = 1.3, 0.8, 1.0, 0.8, 1.6
_GUARD, _GUARD_DEMANDED = 2.0, 0.6
_UNUSED, _MOST_UNUSED = 1.2, 2
#: How many patches, the likeliest first, are tested for lost coverage.
_WATCHED = 16
#: How many statements are tested: the first of a block, or one after an `if` that may leave it.
_MARKED = 10
_FAILS = ("raise AssertionError",)


@dataclasses.dataclass(frozen=True)
class PlausiblePatch:
    """Code that passes every check, and its candidate."""

    code: str
    candidate: Candidate


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Behaviour of a code's variants on inputs near those of its checks, as letters of `Workbench.score`.

    before: Results of the code itself; empty if all variants do the same on the counted inputs.
    same: For each variant, `.` if it does the same as the code, or only returns where the code failed.
    agreed: `.` if it does the same as the likeliest variant.
    constant: Whether it returns one value everywhere.
    counted: Inputs whose results should stay the same: where the code returned and, unless it fails loudly, that are
        not near a failing check.
    """

    before: list[CheckResult]
    same: list[str]
    agreed: list[str]
    constant: list[bool]
    counted: list[bool]

    def kept(self, place: int) -> float:
        """Return the share of counted inputs on which a variant does the same as the code.

        Each distinct result of the code has the same weight: most inputs give "no" or "not found", and rare results say
        more.
        """
        if not self.before:
            return 1.0
        groups: dict[bytes, list[bool]] = {}
        for letter, result, counts in zip(self.same[place], self.before, self.counted, strict=True):
            if counts:
                groups.setdefault(msgspec.json.encode(result.value), []).append(letter == ".")
        if not groups:
            return 1.0
        return sum(sum(group) / len(group) for group in groups.values()) / len(groups)

    def failed(self, place: int) -> float:
        """Return the share of all inputs on which a variant fails."""
        return sum(letter in "etd" for letter in self.same[place]) / max(len(self.same[place]), 1)


@dataclasses.dataclass(frozen=True)
class RankedPatch:
    """Plausible patch with its rank.

    kept: The share of counted inputs on which it does the same as the code.
    share: The part (0 to 1) of the evidence for any patch that supports patches with the same behaviour as this one.
    behaviours: The number of distinct behaviours of all patches.
    unused: The number of statements that the code ran but the patch never runs.
    does: Its behaviour on the inputs, for comparison; empty if it was not tried.
    """

    patch: PlausiblePatch
    rank: float
    kept: float = 0.0
    share: float = 0.0
    behaviours: int = 1
    unused: int = 0
    does: tuple[str, str] = ("", "")


def rank_patches(
    bench: Workbench, baseline: Baseline, found: Sequence[PlausiblePatch], accepts: Accepts = lambda _: True
) -> list[RankedPatch]:
    """Return the patches, likeliest first; runs them on inputs that `accepts` allows. Raises `BudgetSpent`.

    Code that ended on no check does not run on other inputs. If the code never returned a wrong result, its results
    near failing checks also count as right.
    """
    code, fails_loudly = baseline.code, baseline.fails_loudly
    demanded = any(check.known for check in baseline.failing)
    ranked = [(_rank_by_text(code, patch, demanded=demanded), patch) for patch in found]
    ranked.sort(key=lambda pair: -pair[0])
    first, rest = [patch for _, patch in ranked[:_COMPARED]], [patch for _, patch in ranked[_COMPARED:]]
    if not first:
        return []
    ranks = [rank for rank, _ in ranked[:_COMPARED]]
    unused_counts = _lost_statements(bench, baseline, [patch.candidate for patch in first[:_WATCHED]])
    unused_counts += [0] * (len(first) - len(unused_counts))
    compared = _compare(bench, baseline, first, accepts)
    behaviours_of = list(zip(compared.same, compared.agreed, strict=True))
    support = _support(ranks, behaviours_of)
    order = [
        RankedPatch(
            patch,
            ranks[place]
            + _AGREED * min(support[behaviours_of[place]] - ranks[place], _AGREED_MOST)
            + (_KEPT_LOUD if fails_loudly else _KEPT) * compared.kept(place)
            - _FAILED * compared.failed(place)
            - (_CHANGED_UNASKED if not demanded and compared.kept(place) < 1.0 else 0.0)
            - _CONSTANT * compared.constant[place]
            - _UNUSED * min(unused_counts[place], _MOST_UNUSED),
            compared.kept(place),
            unused=unused_counts[place],
            does=behaviours_of[place],
        )
        for place, patch in enumerate(first)
    ]
    order = _with_shares(order, behaviours_of)
    order.sort(key=lambda one: -one.rank)
    lowest = order[-1].rank
    return order + [RankedPatch(patch, lowest - 1 - place) for place, patch in enumerate(rest)]


def _support(
    ranks: Sequence[float], behaviours_of: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    """Return the evidence for each behaviour, as a logarithm of odds."""
    total_odds = defaultdict[tuple[str, str], float](float)
    for rank, letters in zip(ranks, behaviours_of, strict=True):
        total_odds[letters] += math.exp(rank)
    return {letters: math.log(odds) for letters, odds in total_odds.items()}


def _with_shares(order: Sequence[RankedPatch], behaviours_of: Sequence[tuple[str, str]]) -> list[RankedPatch]:
    """Return the patches with the share of each one's behaviour; a rank is a logarithm of odds."""
    most = max(patch.rank for patch in order)
    weights = [math.exp(patch.rank - most) for patch in order]
    total, of_kind = sum(weights), defaultdict[tuple[str, str], float](float)
    for weight, letters in zip(weights, behaviours_of, strict=True):
        of_kind[letters] += weight
    return [
        dataclasses.replace(patch, share=of_kind[letters] / total, behaviours=len(of_kind))
        for patch, letters in zip(order, behaviours_of, strict=True)
    ]


def _rank_by_text(code: str, one: PlausiblePatch, *, demanded: bool) -> float:
    """Return the rank of a patch by its text alone: how likely its edits are, how small, how odd."""
    candidate, features = one.candidate, patch_features(code, one.code)
    guard = _GUARD_DEMANDED if demanded else _GUARD
    return (
        _PRIOR * math.log(max(candidate.prior, 1e-9))
        + _PLACE * math.log(max(candidate.score, 1e-9) / max(candidate.prior, 1e-9))
        - _REMOVED * min(features.removed, _MOST_TOKENS)
        - _ADDED * min(features.added, _MOST_TOKENS)
        - _MOVED * min(features.moved, _MOST_TOKENS)
        - _UNREAD * features.unread
        - _FOREIGN * min(features.foreign, 2.0)
        - _IDLE * min(features.idle, 2)
        + _FIXED * min(features.fixed, 1)
        - _SILENT * min(features.silent, 1)
        - (guard if candidate.guard else 0.0)
    )


def _compare(
    bench: Workbench, baseline: Baseline, found: Sequence[PlausiblePatch], accepts: Accepts
) -> Comparison:
    """Run the patches on inputs near those of the checks; compare with the code and the likeliest patch."""
    code, passing, failing, limit_s = baseline.code, baseline.passing, baseline.failing, baseline.probe_s
    near_right = _allowed([*edges([*passing, *failing], _EDGES), *nearby(passing, _NEAR_PASSING)], accepts)
    probes = [*near_right, *_allowed(nearby(failing, _NEAR_FAILING), accepts)]
    if not probes:
        nothing = ["" for _ in found]
        return Comparison([], nothing, nothing, [False for _ in found], [])
    code_letters = "t" * len(probes)
    if not baseline.hangs:
        code_letters = dict(bench.score(code, [()], probes, every=True, limit_s=limit_s)).get(
            0, "-" * len(probes)
        )
    codes = [patch.code for patch in found]
    same = _compare_letters(bench, code, code_letters, codes, probes, limit_s)
    counted = [
        letter == "." and (baseline.fails_loudly or place < len(near_right))
        for place, letter in enumerate(code_letters)
    ]
    agreed = same
    if len(found) > 1:
        agreed = _compare_letters(bench, found[0].code, same[0].replace("w", "."), codes, probes, limit_s)
    constant = [False for _ in found]
    values = [check.expected for check in (*passing, *failing) if check.known and not check.raises]
    one_value = bool(values) and all(value == values[0] for value in values)
    parted = any(row[place] != "." for row in same for place in compress(range(len(probes)), counted))
    # Running the code for its values takes longer than all else, and is often not needed.
    before = _results(bench, code, probes, code_letters, limit_s) if one_value or parted else []
    varies = len({msgspec.json.encode(result.value) for result in before if result.outcome == "passed"}) > 1
    if one_value and varies:
        always = [msgspec.structs.replace(probe, known=True, expected=values[0]) for probe in probes]
        constant = [set(letters) == {"."} for letters in _letters(bench, code, found, always, limit_s)]
    return Comparison(before, same, agreed, constant, counted)


def _allowed(probes: Sequence[Check], accepts: Accepts) -> list[Check]:
    return [probe for probe in probes if probe.call or accepts(probe.arguments)]


def _compare_letters(
    bench: Workbench, code: str, own: str, others: Sequence[str], probes: Sequence[Check], limit_s: float
) -> list[str]:
    """Return for each of the others, by letter, whether it does the same as a code, or returns where that fails.

    own: The code's letters. It does not run again on inputs where it fails, which may take long.
    """
    edits = [[difference(code, variant)] if variant != code else [] for variant in others]
    rows = [["-"] * len(probes) for _ in others]
    for returns in (True, False):
        places = [place for place, letter in enumerate(own) if (letter == ".") == returns]
        if not places:
            continue
        some = [probes[place] for place in places]
        for index, letters in bench.score(code, edits, some, every=True, as_code=returns, limit_s=limit_s):
            for place, letter in zip(places, letters, strict=True):
                rows[index][place] = letter
    return ["".join(row) for row in rows]


def _results(
    bench: Workbench, code: str, probes: Sequence[Check], letters: str, limit_s: float
) -> list[CheckResult]:
    """Return the results of a code on inputs for which its letters are known."""
    returning = [probe for probe, letter in zip(probes, letters, strict=True) if letter == "."]
    values = iter(bench.values(code, returning, limit_s) if returning else ())
    return [next(values) if letter == "." else CheckResult(outcome="raised") for letter in letters]


def _letters(
    bench: Workbench, code: str, found: Sequence[PlausiblePatch], checks: Sequence[Check], limit_s: float
) -> list[str]:
    edits = [patch.candidate.edits for patch in found]
    outcomes = dict(bench.score(code, edits, checks, every=True, limit_s=limit_s))
    return [outcomes.get(place, "-" * len(checks)) for place in range(len(found))]


def _lost_statements(bench: Workbench, baseline: Baseline, found: Sequence[Candidate]) -> list[int]:
    """Return for each patch how many statements that the original code ran it never runs on the checks.

    A patch that makes a condition constant passes a few examples by never reaching the mistake. To detect that, a
    statement is made to fail: a patch that still passes every check never reaches it. Raises `BudgetSpent`. (Of the
    patches for the project's own tools that passed every check, 64 of 719 wrong ones left something unused, and 4 of
    502 right ones.)
    """
    program = Program(baseline.code)
    marks = list(_marks(program, baseline.ran))[:_MARKED]
    pairs = [
        (place, (*candidate.edits, edit))
        for place, candidate in enumerate(found)
        for edit in marks
        if all(edit.start < patch_edit.start or patch_edit.end < edit.start for patch_edit in candidate.edits)
    ]
    letters = dict(bench.score(baseline.code, [edits for _, edits in pairs], baseline.checks))
    counts = Counter(
        place for number, (place, _) in enumerate(pairs) if set(letters.get(number, "-")) == {"."}
    )
    return [counts[place] for place in range(len(found))]


def _marks(program: Program, ran: frozenset[int]) -> Iterator[Edit]:
    """Yield an edit for each executed statement, which makes it fail."""
    for statement, (block, position) in program.places.items():
        begins = position == 0 and isinstance(
            program.parent(statement), ast.If | ast.For | ast.While | ast.Try
        )
        behind = position > 0 and isinstance(block[position - 1], ast.If)
        if (begins or behind) and statement.lineno in ran:
            edit = program.insert(statement, _FAILS)
            if edit is not None:
                yield edit


# Doubts.

#: Thresholds of doubt: prior of a rare kind of edit, share of evidence for its behaviour, number of behaviours, weight
#: of unexplained literals.
_RARE, _SURE, _BEHAVIOURS, _FOREIGN_MAX = 0.25, 0.85, 3, 0.9
#: Fixed checks that make up for a rare kind of edit, and for a smaller share of the evidence.
_MANY, _SURE_OF_MANY = 3, 0.75
#: One failing check alone proves nothing, and a check proves nothing if several edits pass it and differ nearby. (57
#: claims had one failing check, in `own`, `dev`, `fresh` and forty mutants. Three were wrong: one of edits that differ
#: nearby, one of an edit that only removed what raised. These doubts also remove one right claim.)
#: Least share of the tool's other results that a patch keeps if it has only one failing check as evidence. (The search
#: vouched for 219 patches in five sets. With one failing check, 98 of 107 were right; with more, 107 of 112. With the
#: doubts about the former, the same sets have 3 wrong ones in 212.)
_KEPT_LEAST = 0.5
#: An operator that puts any short text where another was.
_SEPARATOR = "another separator"
#: With several edits, how many failing checks each has to fix: there are a thousand times as many pairs as edits.
_CHECKS_AN_EDIT = 2
#: Doubt about a patch that fixes a part of the failing checks.
PARTIAL = "It passes only some of the checks."
#: Doubt about a patch where other ones pass that do something else.
OTHERS_DIFFER = "Other edits pass too, but behave differently on similar inputs."
#: Doubt about a patch that is ranked below a doubted one.
OVERTAKEN = "A more likely patch also passes, but the search doubts it."
#: Doubt about a patch of one of several similar places.
TWIN = "It changes only one of several similar places."


def reason_for_doubt(
    code: str,
    one: RankedPatch,
    edits: int,
    fixed: int,
    *,
    loudly: bool = False,
    alone: bool = False,
) -> str:
    """Return why the search doubts a patch of `code`, in a sentence; empty if it does not.

    edits: The number of edits in it.
    fixed: How many failing checks it makes pass (`Baseline.evidence`).
    loudly: Every failure is an exception.
    alone: Nothing passed before.
    """
    candidate = one.patch.candidate
    if fixed < _CHECKS_AN_EDIT * edits and edits > 1:
        return "It combines several edits; some combinations pass a few examples by chance."
    if candidate.prior < _RARE and (fixed < _MANY or candidate.guard or one.behaviours > 1):
        return f"This kind of edit ({candidate.made_by[0]}) is rarely the right fix."
    if one.share < (_SURE if fixed <= _MANY else _SURE_OF_MANY) or one.behaviours > (
        1 if fixed == 1 else _BEHAVIOURS
    ):
        return OTHERS_DIFFER
    features = patch_features(code, one.patch.code)
    if features.foreign > _FOREIGN_MAX:
        return "It contains a number that nothing in the tool explains."
    if one.unused:
        return "Code that ran before does not run in any check now."
    if features.silent:
        return "It may end without a return value, but the tool always returned one."
    if features.idle:
        return "Part of it has no effect."
    if candidate.made_by[-1] == _SEPARATOR and one.kept < 1.0:
        return "It contains a string that nothing in the tool explains."
    if features.uneven and fixed <= _MANY:
        return TWIN
    if fixed > 1:
        return ""
    if alone:
        return "Only one failing example supports it, and no other example says what must stay."
    if loudly and not features.added and not features.moved:
        return "It only removes the code that raised the error, and only one check supports it."
    return _doubt_by_one(one, loudly)


def _doubt_by_one(one: RankedPatch, loudly: bool) -> str:
    """Return a doubt about a patch that only one failing check supports.

    A check that only one in a thousand edits passes is passed by some edit in every second program. Other changes of
    the patch are the evidence against it.
    """
    if loudly and one.kept < 1.0:
        return "It changes results for other inputs, although no example had a wrong result."
    if one.kept < _KEPT_LEAST:
        return "It changes most results for inputs near those of the checks, and only one check supports it."
    return ""


# Patches of other advisors, which may be any code.

#: The most new conditions and blocks of a patch that are tried, and an expression that fails.
_PARTS_MAX, _FAILING = 64, "[].pop()"


def doubt_by_new_parts(case: Case, patch: Patch, bench: Workbench) -> str:
    """Return why a patch of another advisor is doubted, in a sentence; empty if it is not. Raises `BudgetSpent`.

    Each new part must matter on some check. A condition with the same result on all checks, or a block that none
    reaches, may do anything for other inputs. Additions of a rule are known, and a peer has run before.
    """
    before, after = case.entry.code, patch.code
    if (patch.author == "rule" and patch.advisor != "memory") or not parses(after):
        return ""
    # The search weighs literals itself.
    if patch.author != "search" and (unexplained := _unexplained(before, after, case.checks)):
        return f"It contains {unexplained}, which neither the tool nor an example explains."
    if copied := _copied(before, after, case.checks):
        return f"It contains values of several examples: {', '.join(copied)}."
    if patch_features(before, after).uneven:
        return TWIN
    program = Program(after)
    old_parts = {ast.dump(part) for part, _ in _parts(Program(before))} if parses(before) else set()
    parts = [(part, decides) for part, decides in _parts(program) if ast.dump(part) not in old_parts]
    if len(parts) > _PARTS_MAX:
        return f"It has {len(parts)} new conditions, which are too many to try each."
    tried: list[tuple[ast.expr | ast.stmt, bool, Edit]] = []
    for part, decides in parts:
        if isinstance(part, ast.expr):
            texts = ("True", "False") if decides else (_FAILING,)
            tried += [(part, decides, program.replace(part, text)) for text in texts]
        elif isinstance(part, ast.stmt):
            in_its_place = Edit(*program.source.span(part), _FAILING)  # where it shares its line
            tried.append((part, decides, program.insert(part, _FAILS) or in_its_place))
    calculated, before_it = _calculations(after), _calculations(before)
    if len(calculated) > len(before_it):
        for node in program.nodes:
            if (
                isinstance(node, ast.expr)
                and ast.dump(node) in calculated[:_PARTS_MAX]
                and ast.dump(node) not in before_it
            ):
                tried += [(node, True, program.replace(node, program.segment(side))) for side in _sides(node)]
    letters = dict(bench.score(after, [[edit] for _, _, edit in tried], case.checks))
    for number, (part, decides, _) in enumerate(tried):
        if set(letters.get(number, "-")) == {"."}:
            text = ast.unparse(part).partition("\n")[0]
            if not isinstance(part, ast.stmt) and any(_sides(part)):
                return f"Its new part `{text}` makes no difference on any check."
            if decides:
                return f"Its new condition `{text}` has the same result on every check."
            return f"Its new part `{text}` does not run in any check."
    return ""


def _parts(program: Program) -> Iterator[tuple[ast.expr | ast.stmt, bool]]:
    """Yield the conditions of a program, with True; with False the blocks that a condition, handler or case guards."""
    for node in program.nodes:
        match node:
            case ast.If() | ast.While() | ast.IfExp():
                yield node.test, True
            case ast.comprehension():
                yield from ((test, True) for test in node.ifs)
            case ast.Compare():
                yield node, True
            case ast.BoolOp():
                yield from ((value, False) for value in node.values[1:])
            case ast.ExceptHandler() | ast.match_case():
                yield node.body[0], False


def _sides(node: ast.AST) -> list[ast.expr]:
    """Return a replacement for a calculation that makes no difference on any check."""
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Call(func=ast.Name(id="min" | "max" | "abs"), args=args):
            return [argument for argument in args if not isinstance(argument, ast.Starred)]
    return []


def _calculations(code: str) -> list[str]:
    nodes = ast.walk(ast.parse(code)) if parses(code) else []
    return [ast.dump(node) for node in nodes if _sides(node)]


def _copied(before: str, after: str, checks: Sequence[Check]) -> list[str]:
    """Return the values that only examples and the new code have, if they are so many that it may be a table."""
    binding = [check for check in checks if check.binding]
    values = [scalar for check in binding for scalar in scalars([check.arguments, check.expected])]
    example_values = {
        scalar for scalar in values if isinstance(scalar, int | float | str) and scalar not in USUAL
    }
    new = {
        repr(node.value): node.value for node in ast.walk(ast.parse(after)) if isinstance(node, ast.Constant)
    }
    copied = [text for text, value in new.items() if value in example_values and str(value) not in before]
    return copied if len(copied) >= max(3, len(binding) / 2) else []


def _unexplained(before: str, after: str, checks: Sequence[Check]) -> str:
    """Return a literal that only the new code has, and no example; empty if there is none."""
    example_values = [
        scalar for check in checks for scalar in scalars([check.arguments, check.call, check.expected])
    ]
    texts = " ".join([before, *(scalar for scalar in example_values if isinstance(scalar, str))])
    tree = ast.parse(after)
    message_parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise | ast.Expr | ast.JoinedStr)
        for part in ast.walk(node)
    }
    numbers = {scalar for scalar in example_values if isinstance(scalar, int | float)}
    for node in ast.walk(tree):
        value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if (
            isinstance(value, bool)
            or value is None
            or value is ...
            or id(node) in message_parts
            or value in USUAL
        ):
            continue
        if isinstance(value, int | float | complex):
            if value not in numbers and str(value) not in texts:
                return f"the number {value}"
        elif str(value) not in texts:
            return f"the text {value!r}"
    return ""
