"""Metrics of local executions, for Prometheus."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from healkit import Healkit


@pytest.mark.requirement("LOG-13")
def test_executions_and_durations_are_read_by_prometheus(healkit: Healkit) -> None:
    """C5: only the collector had metrics."""
    healkit.vault.add("half", "def run(n):\n    return 1 / n\n")
    for n in (0, 1, 2):
        healkit.execute("half", arguments={"n": n})
    healkit.trials([("def half(n): return n", {"n": 1})])
    families = {family.name: family for family in text_string_to_metric_families(healkit.log.prometheus())}
    counts = {tuple(s.labels.values()): s.value for s in families["healkit_executions"].samples}
    assert counts == {
        ("default", "SUCCESS", "half"): 2,
        ("default", "FAILURE", "half"): 1,
        ("default", "REFUSED", "half"): 0,
    }
    samples = families["healkit_execution_seconds"].samples
    buckets = [(float(s.labels["le"]), s.value) for s in samples if s.name.endswith("_bucket")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == (float("inf"), 3)
    (total_s,) = (s.value for s in samples if s.name.endswith("_sum"))
    took_ms = [row.duration_ms or 0 for row in healkit.log.query(tool="half", tried=False).rows]
    assert total_s == pytest.approx(sum(took_ms) / 1000, abs=1e-4)
