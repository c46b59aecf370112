"""Counters, gauges and histograms of the node, with the names that ``/metrics`` shows."""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence

LATENESS_BOUNDS_MS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1000.0)
QUANTILE_WINDOW = 1_000  # number of newest values from which quantiles are computed

FAULTS = 'faults_total{{kind="{}"}}'  # counter of injected faults


class Histogram:
    """Counts values by upper bound, and computes quantiles of the newest values.

    Only one thread may call `observe`.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        self.largest = 0.0
        self.newest: deque[float] = deque(maxlen=QUANTILE_WINDOW)

    def observe(self, value: float) -> None:
        """Records a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        self.largest = max(self.largest, value)
        self.newest.append(value)

    def quantile(self, share: float) -> float:
        """Returns the quantile ``share`` (0 to 1) of the newest 1,000 values.

        Returns 0 if there are no values.
        """
        ordered = sorted(self.newest)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    @property
    def count(self) -> int:
        """The number of observed values."""
        return sum(self.counts)

    def values(self, name: str) -> dict[str, float]:
        """Returns cumulative buckets, sum and count under Prometheus' names."""
        found: dict[str, float] = {}
        running = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            running += count
            label = "+Inf" if bound == float("inf") else f"{bound:g}"
            found[f'{name}_bucket{{le="{label}"}}'] = running
        return found | {
            f"{name}_sum": self.total,
            f"{name}_count": running,
            f"{name}_p50": self.quantile(0.5),
            f"{name}_p99": self.quantile(0.99),
            f"{name}_max": self.largest,
        }


class MetricsRegistry:
    """The node's counters, gauges and histograms, by name without the prefix ``fastevm_``."""

    def __init__(self) -> None:
        self._values: defaultdict[str, float] = defaultdict(float)
        self.lateness_ms = Histogram(LATENESS_BOUNDS_MS)

    def count(self, name: str, by: float = 1) -> None:
        """Adds to a counter."""
        self._values[name] += by

    def set(self, name: str, value: float) -> None:
        """Sets a gauge."""
        self._values[name] = value

    def get(self, name: str) -> float:
        """Returns the value of a counter or gauge, or 0 if it was never set."""
        return self._values.get(name, 0)

    def values(self) -> dict[str, float]:
        """Returns all values by name."""
        return dict(self._values) | self.lateness_ms.values("slice_lateness_ms")
