"""Counts requests and events, and writes the counters in Prometheus text format.

Counting a request allocates no memory.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final

UNKNOWN_METHOD: Final = "unknown"

HISTOGRAM_PARTS: Final = frozenset(("_bucket", "_sum", "_count"))

# Names of the counters, without prefix. Each exists from the start, with value zero.
COUNTERS: Final = (
    "connections_over_budget_total",
    "connections_refused_total",
    "connections_too_slow_total",
    "notifications_total",
    "notifications_dropped_total",
    "pending_stale_reads_total",
    "slice_gaps_total",
    "slices_told_total",
    "sockets_cut_off_total",
    "sockets_refused_total",
    "sockets_total",
    "subscriptions_closed_overrun_total",
    "subscriptions_closed_slow_total",
)


class Metrics:
    """Requests, errors and seconds by method, and named counters."""

    def __init__(self) -> None:
        self._requests: defaultdict[str, int] = defaultdict(int)
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._errors: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._lock = Lock()

    def count(self, method: str, seconds: float) -> None:
        """Count a request of ``method`` that took ``seconds``."""
        self._requests[method] += 1
        self._seconds[method] += seconds

    def count_reads(self, counts: Sequence[tuple[str, int]], seconds: float) -> None:
        """Count requests by method that took ``seconds`` together, divided equally."""
        each = seconds / max(1, sum(count for _, count in counts))
        for method, count in counts:
            self._requests[method] += count
            self._seconds[method] += count * each

    def count_error(self, method: str, code: int) -> None:
        """Count an error answer of ``method`` with this JSON-RPC code."""
        self._errors[method, code] += 1

    def add(self, name: str, amount: int = 1) -> None:
        """Increase one of the `COUNTERS`. Thread-safe."""
        with self._lock:
            self._counts[name] += amount

    def get(self, name: str) -> int:
        """Return the value of one of the `COUNTERS`."""
        return self._counts[name]

    def render(self, gauges: Mapping[str, float]) -> str:
        """Return the metrics as text. ``gauges`` has further values by name, without prefix."""
        lines = ["# TYPE fastevm_rpc_requests_total counter"]
        lines += [
            f'fastevm_rpc_requests_total{{method="{name}"}} {count}'
            for name, count in sorted(self._requests.items())
        ]
        lines.append("# TYPE fastevm_rpc_seconds_total counter")
        lines += [
            f'fastevm_rpc_seconds_total{{method="{name}"}} {seconds:.6f}'
            for name, seconds in sorted(self._seconds.items())
        ]
        lines.append("# TYPE fastevm_rpc_errors_total counter")
        lines += [
            f'fastevm_rpc_errors_total{{method="{name}",code="{code}"}} {count}'
            for (name, code), count in sorted(self._errors.items())
        ]
        for name, count in sorted(self._counts.items()):
            lines += [f"# TYPE fastevm_{name} counter", f"fastevm_{name} {count}"]
        return "\n".join(lines + exposition(gauges)) + "\n"


def sample(value: float) -> str:
    """Format a value for Prometheus. An integer beyond the range of floats becomes infinite."""
    try:
        return f"{value:.15g}"
    except OverflowError:
        return "+Inf" if value > 0 else "-Inf"


def exposition(values: Mapping[str, float]) -> list[str]:
    """Return a line for each of ``values``, and a type line for each family.

    The keys are names with labels. A family with a ``_bucket`` is a histogram, a name that ends in
    ``_total`` a counter, and any other name a gauge.
    """
    histograms = {name.partition("_bucket{")[0] for name in values if "_bucket{" in name}
    families: dict[str, list[str]] = {}
    for name, value in values.items():
        bare = name.partition("{")[0]
        stem = bare.rpartition("_")[0]
        family = stem if stem in histograms and bare[len(stem) :] in HISTOGRAM_PARTS else bare
        families.setdefault(family, []).append(f"fastevm_{name} {sample(value)}")
    lines = []
    for family, samples in sorted(families.items()):
        kind = "counter" if family.endswith("_total") else "gauge"
        kind = "histogram" if family in histograms else kind
        lines += [f"# TYPE fastevm_{family} {kind}", *samples]
    return lines
