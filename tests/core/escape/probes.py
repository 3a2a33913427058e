"""Escapes that one tool tries in one go."""

from __future__ import annotations

from file_probes import DESCRIPTORS, GRANTED, OUTSIDE, PROC
from kernel_probes import HOARDS, KERNEL, PROCESSES, SOCKETS
from probe_batch import batch_source
from probe_table import OPEN, Probe

__all__ = ["OPEN", "PROBES", "batch_source"]

PROBES: tuple[Probe, ...] = (
    *DESCRIPTORS, *HOARDS, *OUTSIDE, *GRANTED, *PROC, *SOCKETS, *PROCESSES, *KERNEL,
)  # fmt: skip
