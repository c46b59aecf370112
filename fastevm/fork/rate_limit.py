"""Compute units: what a call costs at a provider, and a bucket that holds calls back."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from time import monotonic
from typing import Final

# Prices of calls in compute units, after the public lists of providers; 330 a second is what their
# free plans allow.
DEFAULT_UNITS_PER_SECOND: Final = 330
DEFAULT_PRICE: Final = 20
PRICES: Final = {
    "eth_chainId": 0,
    "net_version": 0,
    "eth_blockNumber": 10,
    "eth_call": 26,
    "eth_createAccessList": 26,
    "eth_getBlockReceipts": 20,
    "eth_getLogs": 60,
    "eth_simulateV1": 40,
    "debug_traceCall": 40,
    "debug_traceTransaction": 40,
    "debug_traceBlockByHash": 40,
}
# After an endpoint limited us, calls are held back for this long; before that, never.
LIMITED_SECONDS: Final = 60.0


def compute_units(methods: Iterable[str]) -> int:
    """The price of these calls together."""
    return sum(PRICES.get(method, DEFAULT_PRICE) for method in methods)


class TokenBucket:
    """Lets ``rate`` compute units a second pass once the endpoint has complained.

    An endpoint's true limit is unknown, so that nothing is held back until it says that a limit was
    reached; then the bucket is empty and counts for ``LIMITED_SECONDS``. A request may be larger
    than the bucket: it passes when the bucket is not empty, and leaves a debt.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._units = rate
        self._filled_at = monotonic()
        self._limited_until = 0.0
        self._lock = threading.Lock()

    def limited(self) -> None:
        """The endpoint refused a request because of a limit."""
        with self._lock:
            self._fill()
            self._units = min(self._units, 0.0)
            self._limited_until = monotonic() + LIMITED_SECONDS

    def take(self, units: float) -> float:
        """Pay ``units``; the seconds to wait before the request is sent."""
        with self._lock:
            self._fill()
            if self._filled_at >= self._limited_until or self.rate <= 0:
                self._units = max(self._units, 0.0)
                return 0.0
            wait = max(0.0, -self._units / self.rate)
            self._units -= units
            return wait

    def _fill(self) -> None:
        now = monotonic()
        self._units = min(self.rate, self._units + (now - self._filled_at) * self.rate)
        self._filled_at = now
