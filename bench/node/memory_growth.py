"""Judges whether a process that runs for hours grows: resident memory and open descriptors."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

MEGABYTE: Final = 1 << 20
# A node that is killed and started again has its blocks in other pieces of memory than before.
NOISE_BYTES: Final = 24 * MEGABYTE
NOISE_SHARE: Final = 0.1  # of the median of the first window
NOISE_DESCRIPTORS: Final = 32  # clients come and go
PEAK_BYTES: Final = 2048 * MEGABYTE  # more than all budgets of a listener and the state together
FIRST, LAST = (0.4, 0.6), (0.8, 1.0)  # windows of the samples: what is before the first is warm-up
LEAST_SAMPLES: Final = 300  # of the run; fewer say nothing


class Use(NamedTuple):
    """Resident bytes and open descriptors at a moment."""

    memory: int
    descriptors: int


def use_of(pid: int) -> Use:
    """What a process uses now. OSError when it has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next((one for one in status.splitlines() if one.startswith("VmRSS:")), None)
    if line is None:  # it is ending
        raise ProcessLookupError(pid)
    return Use(int(line.split()[1]) * 1024, len(list(Path(f"/proc/{pid}/fd").iterdir())))


def report(samples: Sequence[Use]) -> dict[str, Any]:
    """Medians of both windows, the largest figures, and in ``wrong`` what grew, in words."""
    found: dict[str, Any] = {"samples": len(samples), "wrong": []}
    if not samples:
        return found
    found["peak_mib"] = round(max(one.memory for one in samples) / MEGABYTE, 1)
    found["most_descriptors"] = max(one.descriptors for one in samples)
    if found["peak_mib"] * MEGABYTE > PEAK_BYTES:
        found["wrong"].append(f"memory reached {found['peak_mib']} MiB")
    if len(samples) < LEAST_SAMPLES:
        return found
    first, last = (_medians(samples, *window) for window in (FIRST, LAST))
    found["memory_mib"] = [round(one.memory / MEGABYTE, 1) for one in (first, last)]
    found["descriptors"] = [one.descriptors for one in (first, last)]
    if last.memory - first.memory > max(NOISE_BYTES, NOISE_SHARE * first.memory):
        found["wrong"].append("memory grew from {} to {} MiB".format(*found["memory_mib"]))
    if last.descriptors - first.descriptors > NOISE_DESCRIPTORS:
        found["wrong"].append("open descriptors grew from {} to {}".format(*found["descriptors"]))
    return found


def _medians(samples: Sequence[Use], start: float, end: float) -> Use:
    part = samples[int(start * len(samples)) : int(end * len(samples))]
    return Use(
        int(statistics.median(one.memory for one in part)),
        int(statistics.median(one.descriptors for one in part)),
    )
