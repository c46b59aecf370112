"""Compute units (the price of calls at providers) and a token bucket that throttles calls."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from time import monotonic
from typing import Final

# Prices of calls in compute units, from the public lists of providers; 330 per second is the limit
# of their free plans.
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
# seconds for which calls are throttled after a rate limit error
LIMITED_SECONDS: Final = 60.0


def compute_units(methods: Iterable[str]) -> int:
    """Returns the total price of these calls."""
    return sum(PRICES.get(method, DEFAULT_PRICE) for method in methods)


class TokenBucket:
    """Throttles calls to ``rate`` compute units per second after a rate limit error.

    The endpoint's real limit is unknown, so calls are not throttled until it reports a rate limit
    error. Then the bucket starts empty and is used for ``LIMITED_SECONDS``. A request may be larger
    than the bucket: it passes if the bucket is not empty, and makes the balance negative.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._units = rate
        self._filled_at = monotonic()
        self._limited_until = 0.0
        self._lock = threading.Lock()

    def limited(self) -> None:
        """Starts throttling: the endpoint refused a request because of a rate limit."""
        with self._lock:
            self._fill()
            self._units = min(self._units, 0.0)
            self._limited_until = monotonic() + LIMITED_SECONDS

    def take(self, units: float) -> float:
        """Takes ``units``. Returns the seconds to wait before sending the request."""
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
