"""Requirements with several clauses: a test for each clause.

The ledger (`tests/requirements.toml`) has the tests of each requirement; here each clause of the longer ones has its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
#: Requirement → clause → file and name of a test that proves it.
CLAUSES: dict[str, dict[str, str]] = {
    "WORK-8": {
        "messages init, rpc_call, rpc_result, execution_complete": "core/runtime/test_call_messages.py::test_each_message_has_the_names_of_the_contract",
        "correlated by id, several in flight": "core/runtime/test_calls.py::test_several_calls_are_in_flight_from_threads_and_from_async_code",
        "from threads and from async code": "core/runtime/test_call_events.py::test_a_call_can_be_awaited_and_its_value_keeps_its_type",
        "a reply too late is dropped and traced": "core/runtime/test_calls.py::test_a_call_that_takes_too_long_times_out_and_its_late_answer_is_dropped_and_traced",
        "a worker's death fails its pending calls": "core/runtime/test_calls_in_flight.py::test_a_call_fails_with_its_worker_and_gets_its_late_result",
    },
    "WORK-10": {
        "every call, on the host's side": "core/runtime/test_calls.py::test_every_call_is_recorded_by_the_host_with_arguments_result_and_duration",
        "tool_start and tool_end with tool, trace id, time, duration, success": "core/runtime/test_call_events.py::test_each_call_begins_and_ends_live_and_its_events_are_kept",
        "nothing is parsed from stdout": "core/runtime/test_call_messages.py::test_nothing_that_a_tool_prints_is_taken_for_a_call",
        "the worker cannot forge it": "core/runtime/test_calls_in_flight.py::test_a_worker_cannot_hide_the_end_of_a_call_behind_the_next_one_with_its_number",
        "the worker cannot suppress it": "core/runtime/test_call_messages.py::test_a_tool_cannot_take_back_the_call_it_has_made",
        "a refused call too": "core/runtime/test_calls.py::test_the_host_decides_what_may_be_called_and_how_often",
    },
    "WORK-11": {
        "under 1 MB a trace: large payloads": "core/runtime/test_calls.py::test_the_trace_of_a_thousand_large_calls_stays_under_a_megabyte",
        "under 1 MB a trace: many calls": "core/runtime/test_calls.py::test_the_trace_of_a_thousand_large_calls_stays_under_a_megabyte",
        "under 1 MB a trace: branches": "parts/traces/test_tracing_collector.py::test_decisions_and_calls_alone_make_no_trace_over_a_megabyte",
    },
    "TRACE-2": {
        "before it is stored or sent": "parts/traces/test_tracing_collector.py::test_a_trace_holds_no_secrets_and_counts_them",
        "before a collector stores it": "faces/server/test_collector_http.py::test_secrets_are_redacted_before_storage_and_counted_for_prometheus",
        "secret-named keys": "parts/sanitizer/test_secret_names.py::test_a_secrets_name_is_known_in_any_spelling",
        "secret-shaped values; e-mail, phone, SSN, cards": "parts/sanitizer/test_sanitizer_rules.py::test_each_rule_catches_its_examples_alone_and_among_all_others_once",
        "payloads over 10 KB are cut, the size recorded": "parts/traces/test_tracing_collector.py::test_payloads_are_truncated_after_cleaning_and_their_size_kept",
        "no half of a secret survives": "parts/sanitizer/test_sanitizer_values.py::test_a_secret_across_the_cut_is_redacted_before_it_is_cut",
        "what was hidden is counted and said": "parts/sanitizer/test_sanitizer_values.py::test_secrets_are_found_at_any_depth_and_counted_by_rule",
        "whole words, not substrings": "parts/sanitizer/test_secret_names.py::test_a_name_with_a_secrets_letters_is_not_a_secret",
        "ids, hashes, times and floats survive": "parts/sanitizer/test_sanitizer_values.py::test_ids_hashes_and_codes_are_never_changed",
        "raw only by explicit opt-in": "parts/traces/test_tracing_collector.py::test_raw_traces_need_opt_in",
    },
    "RUN-3": {
        "exactly these types": "parts/heal/test_run_contract.py::test_the_page_says_which_events_are_written_and_by_what",
        "each by a real path, and which": "parts/heal/test_run_contract.py::test_the_page_says_which_events_are_written_and_by_what",
        "by the heal loop": "parts/heal/test_run_contract.py::test_every_feature_of_the_contract_is_written",
        "retries, by the heal loop": "parts/heal/test_loop_endings.py::test_a_lost_worker_is_retried_but_a_wrong_patch_is_not",
        "retries, by a run": "parts/runs/test_run_retries.py::test_what_did_not_answer_is_tried_again_as_the_policy_says",
    },
}  # fmt: skip
#: Times are measured, not asserted: requirement → the benchmark, and the bound that it reports.
MEASURED = {
    "WORK-11, a bridged call": ("bench_bridge.py", '"target": {"p50_us": 45, "p99_us": 500}'),
    "WORK-11, tracing an execution": ("bench_trace.py", '"difference_target_ms": 1.0'),
}


@pytest.mark.parametrize("requirement", CLAUSES)
def test_each_clause_has_a_test_that_claims_its_requirement(requirement: str) -> None:
    """C7: a requirement with several clauses was claimed by tests of some of them."""
    for clause, where in CLAUSES[requirement].items():
        file, name = where.split("::")
        text = (TESTS / file).read_text()
        found = re.search(rf"((?:^@.*\n|^[ )].*\n)*)^(?:async )?def {name}\(", text, re.MULTILINE)
        assert found is not None, f"{clause}: {where} does not exist"
        claimed = f'"{requirement}"' in found[1]
        constant = requirement.replace("-", "_")
        by_constant = f"@{constant}\n" in found[1] or f"pytestmark = {constant}" in text
        assert claimed or by_constant, f"{clause}: {where} does not claim {requirement}"


@pytest.mark.parametrize("what", MEASURED)
def test_each_time_has_a_benchmark_that_reports_its_bound(what: str) -> None:
    """C7: a number is a bound that a benchmark reports, never a timed assertion."""
    file, bound = MEASURED[what]
    assert bound in (TESTS.parent / "benchmarks" / file).read_text()
