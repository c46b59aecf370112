"""What a fork has cost so far."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

NAMES: Final = (
    "requests", "round_trips", "calls", "accounts", "slots", "codes", "bytes", "hits",
    "seconds_waited", "retries", "hedges",
)  # fmt: skip


class ForkCounters:
    """Counts of one fork and of its siblings at other blocks; all threads add to them.

    ``requests``: HTTP requests. ``round_trips``: times that somebody waited for the endpoint, no
    matter how many requests went side by side. ``calls``: JSON-RPC calls. ``accounts``, ``slots``,
    ``codes``: values that came from the endpoint. ``bytes``: of answers, as they were sent.
    ``hits``: values that the cache on disk gave. ``seconds_waited``: by the round trips and by rate
    limits. ``retries``: requests that were sent once more; ``hedges``: those sent twice because the
    first was slow.
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
        """Add to counters by name."""
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def reset(self) -> None:
        """Begin at 0."""
        with self._lock:
            for name in NAMES:
                setattr(self, name, 0)

    def as_dict(self) -> Mapping[str, float]:
        """The counters by name."""
        with self._lock:
            return {name: getattr(self, name) for name in NAMES}

    def __repr__(self) -> str:
        counts = self.as_dict()
        shown = [f"{name}={_shown(value)}" for name, value in counts.items() if value]
        return f"<ForkCounters {' '.join(shown) or 'nothing fetched'}>"


def _shown(value: float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
