"""Run policy, tried with every kind of sequence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healkit.errors import RETRYABLE, catalogue
from healkit.parts.runs.contract import Observation, PolicyDefaults
from healkit.parts.runs.run_policy import HEAL_CAPS, RunPolicy

STATES = st.sampled_from("abcd")
ASKED = st.one_of(
    st.just(("step",)),
    st.tuples(st.just("observe"), STATES, st.booleans()),
    st.tuples(st.just("retry"), st.sampled_from("xyz"), st.sampled_from(["WORKER_LOST", "TOOL_EXCEPTION"])),
    st.just(("recovery",)),
)
CAPS = st.builds(
    PolicyDefaults,
    same_state_revisits=st.integers(1, 4),
    hard_cap_steps=st.integers(1, 12),
    retries_per_action=st.integers(0, 3),
    recovery_max=st.integers(0, 3),
    backoff_ms=st.lists(st.integers(0, 5000), min_size=1, max_size=4).map(tuple),
)


def ask(policy: RunPolicy, question: tuple[Any, ...]) -> Any:
    match question:
        case ("step",):
            return policy.step()
        case ("observe", state, failed):
            return policy.observe(Observation(state, failed))
        case ("retry", action, code):
            return policy.retry(action, code)
        case _:
            return policy.recovery()


@pytest.mark.requirement("RUN-6")
@given(CAPS, st.lists(ASKED, max_size=80))
def test_nothing_over_a_cap_is_granted(caps: PolicyDefaults, asked: Any) -> None:
    policy = RunPolicy(caps)
    granted: dict[str, int] = {}
    for question in asked:
        verdict = ask(policy, question)
        if question[0] == "observe":
            continue
        key = question[0] + (question[1] if question[0] == "retry" else "")
        granted[key] = granted.get(key, 0) + verdict.granted
    assert granted.get("step", 0) <= caps.hard_cap_steps
    assert granted.get("recovery", 0) <= caps.recovery_max
    assert all(count <= caps.retries_per_action for key, count in granted.items() if key.startswith("retry"))


@pytest.mark.requirement("RUN-6")
@given(CAPS, st.lists(ASKED, max_size=80))
def test_the_policy_halts_at_the_first_question_over_a_cap(caps: PolicyDefaults, asked: Any) -> None:
    policy = RunPolicy(caps)
    steps = recoveries = 0
    failing: dict[str, int] = {}
    for question in asked:
        if question == ("step",):
            steps += 1
        elif question == ("recovery",):
            recoveries += 1
        elif question[0] == "observe" and question[2]:
            failing[question[1]] = failing.get(question[1], 0) + 1
        verdict = ask(policy, question)
        due = (
            steps > caps.hard_cap_steps
            or recoveries > caps.recovery_max
            or any(count > caps.same_state_revisits for count in failing.values())
        )
        assert (verdict.halt is not None) == due
        if due:
            assert verdict.halt.count > verdict.halt.threshold
            return
    assert policy.halted is None


@pytest.mark.requirement("RUN-6")
def test_the_default_caps_are_those_of_the_contract() -> None:
    caps = {"same_state_revisits": 2, "hard_cap_steps": 60, "retries_per_action": 2, "recovery_max": 3}
    assert PolicyDefaults() == PolicyDefaults(**caps, backoff_ms=(300, 1000, 2000))
    policy = RunPolicy()
    verdicts = [policy.observe(Observation("a", failed=True, fingerprint="f")) for _ in range(3)]
    assert [verdict.same_state_count for verdict in verdicts] == [1, 2, 3]
    assert [verdict.halt is None for verdict in verdicts] == [True, True, False]
    halt = verdicts[-1].halt
    assert halt is not None
    assert (halt.rule, halt.count, halt.threshold, halt.state_key) == ("same_state_revisit", 3, 2, "a")


@pytest.mark.requirement("RUN-4", "RUN-6")
def test_only_retryable_errors_are_retried_with_longer_pauses() -> None:
    policy = RunPolicy(PolicyDefaults(retries_per_action=4))
    assert [policy.retry("x", "WORKER_LOST").wait_ms for _ in range(4)] == [300, 1000, 2000, 2000]
    assert "retried 4 times" in policy.retry("x", "WORKER_LOST").refusal
    assert policy.retry("y", "WORKER_LOST").granted
    for code in catalogue():
        verdict = RunPolicy().retry("z", code)
        assert verdict.granted == (code in RETRYABLE), code
        assert verdict.halt is None


@pytest.mark.requirement("RUN-6")
def test_a_healing_halts_on_identical_errors_under_different_code() -> None:
    policy = RunPolicy(PolicyDefaults(max_identical_errors=3), HEAL_CAPS)
    for number in range(3):
        assert policy.observe(Observation(f"state {number}", failed=True, fingerprint="same")).granted
    verdict = policy.observe(Observation("state 4", failed=True, fingerprint="same"))
    assert verdict.halt is not None
    assert (verdict.halt.rule, verdict.halt.count, verdict.halt.threshold) == ("identical_errors", 4, 3)


@pytest.mark.requirement("RUN-6")
def test_a_healing_halts_when_two_failures_take_turns() -> None:
    policy = RunPolicy(PolicyDefaults(max_ping_pong=4, same_state_revisits=100), HEAL_CAPS)
    verdicts = [policy.observe(Observation("ab"[turn % 2], True, "fg"[turn % 2])) for turn in range(5)]
    assert all(verdict.granted for verdict in verdicts[:4])
    assert verdicts[4].halt is not None
    assert verdicts[4].halt.rule == "ping_pong"


@pytest.mark.requirement("RUN-6")
def test_polling_and_enumerating_do_not_count_as_a_loop() -> None:
    healing = RunPolicy(None, HEAL_CAPS)
    for number in range(50):  # different ideas, whose failures are not compared
        assert healing.observe(Observation(f"state {number}", failed=True, fingerprint=None)).granted
    assert all(
        healing.observe(Observation("waiting", failed=False, fingerprint="same")).granted for _ in range(100)
    )
    batch = RunPolicy(PolicyDefaults())
    for number in range(50):  # many inputs may fail in the same way
        assert batch.observe(Observation(f"input {number}", failed=True, fingerprint="same")).granted
