"""Counters, gauges and histograms in the Prometheus text format."""

import math
import re
from collections.abc import Mapping
from threading import Lock
from typing import Final

from fastevm.payments.arguments import checked
from fastevm.payments.errors import InvalidTerms

PREFIX: Final = "fastevm_payments_"
BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)  # seconds

HELP: Final[dict[str, str]] = {
    "passes_total": "Completed reconciliation passes.",
    "pass_failures_total": "Reconciliation passes that failed, by error.",
    "listener_failures_total": "Listeners that raised an exception.",
    "capture_seconds": "Seconds from the call of capture until the order is paid.",
    "batches_total": "Transactions that capture several orders.",
    "captures_total": "Finished captures by final state.",
    "refusals_total": "Refused captures and signatures by reason.",
    "node_behind_blocks": "Blocks by which the node is behind the newest head seen.",
    "head": "Number of the newest block.",
    "block_seconds": "Measured seconds between two blocks.",
    "orders": "Orders by state.",
    "order_units": "Sum of the orders by state, in token units.",
    "oldest_seconds": "Age of the least recent change of an order, by state that has not ended.",
    "exposure_units": "Authorized or captured and unpaid, in token units.",
    "unreadable_rows": "Rows of the store that cannot be read.",
    "signer_wei": "Balance of the account that pays the gas.",
    "signer_promised_wei": "Maximum cost of the pending transactions.",
    "outbox_waiting": "Pending webhook deliveries.",
    "outbox_lag_seconds": "Age of the oldest pending webhook delivery.",
    "webhooks_total": "Webhook delivery attempts by outcome.",
    "limit_refusals_total": "Operations refused by a limit of the policy.",
}

_NAME: Final = re.compile("[a-z][a-z0-9_]*")

Labels = tuple[tuple[str, str], ...]


def _named(name: str) -> str:
    """Returns the name of a metric. Raises InvalidTerms if Prometheus would reject it."""
    if _NAME.fullmatch(name) is None:
        raise InvalidTerms(f"name: {name[:40]!r} is no name of a metric")
    return name


@checked
class Metrics:
    """The metrics of one back end. The methods are thread-safe."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self._common = tuple(sorted((labels or {}).items()))
        self._counters: dict[tuple[str, Labels], float] = {}
        self._gauges: dict[tuple[str, Labels], float] = {}
        self._times: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}
        self._lock = Lock()

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        """Adds to a counter."""
        key = _named(name), tuple(sorted(labels.items()))
        with self._lock:
            self._counters[key] = self._counters.get(key, 0) + by

    def set(self, name: str, value: float, **labels: str) -> None:
        """Sets a gauge."""
        with self._lock:
            self._gauges[_named(name), tuple(sorted(labels.items()))] = value

    def observe(self, name: str, seconds: float) -> None:
        """Adds to a histogram of seconds."""
        with self._lock:
            found = self._times.setdefault(_named(name), [0] * (len(BUCKETS) + 1))
            for at, bound in enumerate((*BUCKETS, math.inf)):
                found[at] += seconds <= bound
            self._sums[name] = self._sums.get(name, 0.0) + seconds

    def value(self, name: str, **labels: str) -> float:
        """Returns a counter or gauge; 0 if it was never written."""
        key = name, tuple(sorted(labels.items()))
        with self._lock:
            return self._counters.get(key, self._gauges.get(key, 0.0))

    def text(self) -> str:
        """Returns all metrics in the Prometheus text format."""
        with self._lock:
            lines: list[str] = []
            for kind, found in (("counter", self._counters), ("gauge", self._gauges)):
                for name in dict.fromkeys(name for name, _ in sorted(found)):
                    lines += self._heading(name, kind)
                    lines += [
                        f"{PREFIX}{name}{self._shown(labels)} {value:.17g}"
                        for (key, labels), value in sorted(found.items())
                        if key == name
                    ]
            for name, counts in sorted(self._times.items()):
                lines += self._histogram(name, counts)
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str, counts: list[int]) -> list[str]:
        lines = self._heading(name, "histogram")
        for bound, count in zip((*BUCKETS, math.inf), counts, strict=True):
            edge = "+Inf" if math.isinf(bound) else f"{bound:g}"
            lines.append(f"{PREFIX}{name}_bucket{self._shown((('le', edge),))} {count}")
        shown = self._shown(())
        lines.append(f"{PREFIX}{name}_sum{shown} {self._sums[name]:.17g}")
        lines.append(f"{PREFIX}{name}_count{shown} {counts[-1]}")
        return lines

    @staticmethod
    def _heading(name: str, kind: str) -> list[str]:
        return [f"# HELP {PREFIX}{name} {HELP.get(name, name)}", f"# TYPE {PREFIX}{name} {kind}"]

    def _shown(self, labels: Labels) -> str:
        both = (*self._common, *labels)
        return (
            "{" + ",".join(f'{name}="{_escaped(label)}"' for name, label in both) + "}"
            if both
            else ""
        )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
