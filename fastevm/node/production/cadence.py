"""The schedule of slices: due times, start and deadline of filling, and publication.

All times are in seconds of the monotonic clock.
"""

from msgspec import Struct

MS = 1_000

FILL_START = 0.5  # earliest start of filling before the due time, as a share of the interval
# earliest start after a slice that reached its deadline, as a share of the interval
EXHAUSTED_FILL_START = 0.75
MIN_FILL_SECONDS = 0.015
PUBLISH_AHEAD = 0.004  # seconds before the due time, because waking up takes about that long
MAX_PUBLISH_AHEAD = 0.1  # upper limit of PUBLISH_AHEAD, as a share of the interval
SAFETY = 1.5  # factor on expected costs
MIN_CLOSING_SECONDS = 0.002  # least seconds between the end of filling and the due time
MAX_CLOSING = 0.3  # the most, as a share of the interval
SMOOTHING = 0.2  # weight of the newest measurement


class Tick(Struct, frozen=True):
    """The due time of a slice.

    ``number`` counts all slices; ``index`` counts those of a block from 1.
    """

    number: int
    index: int
    due: float


class Cadence:
    """The due times of slices of ``interval_ms`` in blocks of ``block_time_ms``.

    Each due time is computed from ``anchor``, so errors do not add up. The last slice ends with the
    block. If the block time is not a multiple of the interval, the first slice is shorter.
    """

    def __init__(self, block_time_ms: int, interval_ms: int, anchor: float) -> None:
        self.block_time, self.interval = block_time_ms / MS, interval_ms / MS
        self.slices = -(-block_time_ms // interval_ms)
        self._first_ms = block_time_ms - (self.slices - 1) * interval_ms
        self.anchor = anchor

    def tick(self, number: int) -> Tick:
        """Returns the tick with this number, from 0."""
        block, index = divmod(number, self.slices)
        offset = self._first_ms / MS + index * self.interval
        return Tick(number, index + 1, self.anchor + block * self.block_time + offset)

    def block_of(self, tick: Tick) -> int:
        """Returns the number of the tick's block, counted from the anchor."""
        return tick.number // self.slices

    def block_end(self, tick: Tick) -> float:
        """Returns the time when the block of this tick is sealed."""
        return self.anchor + (self.block_of(tick) + 1) * self.block_time

    def after(self, number: int, now: float) -> tuple[Tick, int]:
        """Returns the tick to wait for after ``number``, and how many ticks were skipped.

        A tick is skipped if the next tick is already due.
        """
        tick, skipped = self.tick(number + 1), 0
        while tick.due + self.interval < now:
            tick, skipped = self.tick(tick.number + 1), skipped + 1
        return tick, skipped


def aligned_anchor(block_time_ms: int, wall: float, monotonic: float) -> float:
    """Returns the monotonic time when the wall time was last a multiple of the block time."""
    return monotonic - wall % (block_time_ms / MS)


class Average:
    """An exponential moving average of seconds."""

    def __init__(self, value: float) -> None:
        self.value = value

    def update(self, seconds: float) -> None:
        """Adds a measurement."""
        self.value += SMOOTHING * (seconds - self.value)


class SliceTiming:
    """Computes from measured times when to fill, close and publish a slice before its due time."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self._transaction, self._closing = Average(50e-6), Average(0.001)

    def measure_at(self, tick: Tick) -> float:
        """Returns the time to count executable transactions.

        The count decides when filling begins.
        """
        return tick.due - FILL_START * self.interval

    def fill_at(self, tick: Tick, executable: int, *, exhausted: bool = False) -> float:
        """Returns the time to begin filling.

        ``exhausted``: a deadline stopped the previous slice.
        """
        if exhausted:
            return tick.due - EXHAUSTED_FILL_START * self.interval
        expected = SAFETY * (executable * self._transaction.value + self._closing.value)
        return tick.due - min(max(MIN_FILL_SECONDS, expected), FILL_START * self.interval)

    def close_at(self, tick: Tick) -> float:
        """Returns the time to close the slice, which is the deadline of filling."""
        margin = max(MIN_CLOSING_SECONDS, SAFETY * self._closing.value)
        return tick.due - min(margin, MAX_CLOSING * self.interval)

    def publish_at(self, tick: Tick) -> float:
        """Returns the time to publish the closed slice."""
        return tick.due - min(PUBLISH_AHEAD, MAX_PUBLISH_AHEAD * self.interval)

    @property
    def idle_seconds(self) -> float:
        """Seconds after a slice during which the next slice needs no work."""
        return (1 - FILL_START) * self.interval

    def learn(self, transactions: int, filling: float, closing: float) -> None:
        """Adds the measured seconds of a slice with this number of transactions."""
        if transactions:
            self._transaction.update(filling / transactions)
        self._closing.update(closing)
