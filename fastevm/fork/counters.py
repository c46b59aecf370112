"""Request counters of a fork."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

NAMES: Final = (
    "requests", "round_trips", "calls", "accounts", "slots", "codes", "bytes", "hits",
    "seconds_waited", "retries", "hedges",
)  # fmt: skip


class ForkCounters:
    """Counters of a fork and of forks of the same chain at other blocks. All threads share them.

    ``requests``: HTTP requests. ``round_trips``: waits for the endpoint, however many requests were
    sent in parallel. ``calls``: JSON-RPC calls. ``accounts``, ``slots``, ``codes``: values received
    from the endpoint. ``bytes``: size of answers as transmitted. ``hits``: values from the disk
    cache. ``seconds_waited``: time spent in round trips and rate limits. ``retries``: repeated
    requests. ``hedges``: requests sent twice because the first was slow.
    """

    requests: int
    round_trips: int
    calls: int
    accounts: int
    slots: int
    codes: int
    bytes: int
    hits: int
    seconds_waited: float
    retries: int
    hedges: int

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def add(self, **counts: float) -> None:
        """Adds to counters by name."""
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def reset(self) -> None:
        """Resets all counters to 0."""
        with self._lock:
            for name in NAMES:
                setattr(self, name, 0)

    def as_dict(self) -> Mapping[str, float]:
        """Returns the counters by name."""
        with self._lock:
            return {name: getattr(self, name) for name in NAMES}

    def __repr__(self) -> str:
        counts = self.as_dict()
        shown = [f"{name}={_shown(value)}" for name, value in counts.items() if value]
        return f"<ForkCounters {' '.join(shown) or 'nothing fetched'}>"


def _shown(value: float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
