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
# factor of the rate after a rate limit error for a request that was throttled
SLOWER: Final = 0.7
MIN_RATE: Final = 10.0  # compute units a second


def compute_units(methods: Iterable[str]) -> int:
    """Returns the total price of these calls."""
    return sum(PRICES.get(method, DEFAULT_PRICE) for method in methods)


class TokenBucket:
    """Throttles calls to ``rate`` compute units per second after a rate limit error.

    The endpoint's real limit is unknown, so calls are not throttled until it reports a rate limit
    error, and then for ``LIMITED_SECONDS``. If the endpoint refuses a throttled request, its limit
    is lower: ``rate`` decreases until the throttling ends. ``rate`` 0: never throttle. ``units``:
    the price of a request in compute units. ``sent_at``: monotonic time at which `take` admitted
    it.
    """

    def __init__(self, rate: float) -> None:
        self.rate = self._full_rate = rate
        self._units = rate
        self._filled_at = monotonic()
        self._limited_until = 0.0
        self._changed_at = 0.0  # when the throttling began or the rate decreased
        self._lock = threading.Lock()

    def take(self, units: float) -> float:
        """Takes ``units`` and returns 0, or returns the seconds to wait before trying again.

        A request whose price exceeds the size of the bucket passes if the bucket is full.
        """
        with self._lock:
            self._fill()
            if self.rate <= 0 or not self.throttles:
                return 0.0
            lacking = min(units, self.rate) - self._units
            if lacking > 0:
                return lacking / self.rate
            self._units -= units
            return 0.0

    def answered(self, units: float, sent_at: float) -> None:
        """Takes the units of an answered request that was sent without throttling."""
        with self._lock:
            self._fill()
            if not self.throttles or sent_at <= self._changed_at:
                self._units = max(0.0, self._units - units)

    def limited(self, units: float, sent_at: float) -> None:
        """Starts throttling, because the endpoint refused a request with a rate limit error.

        If several requests are refused together, only the first decreases the rate.
        """
        with self._lock:
            self._fill()
            if not self.throttles:
                self._changed_at = self._filled_at
            elif sent_at > self._changed_at:
                self.rate = max(min(self.rate, MIN_RATE), self.rate * SLOWER)
                self._changed_at = self._filled_at
            if units <= self._units:  # the limit is lower than assumed
                self._units = 0.0
            self._limited_until = self._filled_at + LIMITED_SECONDS

    @property
    def throttles(self) -> bool:
        """Whether the endpoint reported a rate limit recently."""
        return monotonic() < self._limited_until

    def _fill(self) -> None:
        now = monotonic()
        if now >= self._limited_until:
            self.rate = self._full_rate
        self._units = min(self.rate, self._units + (now - self._filled_at) * self.rate)
        self._filled_at = now
