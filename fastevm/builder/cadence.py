"""When slices are due: a clock without drift, and what to do when one was missed."""

from dataclasses import dataclass

MS = 1_000


@dataclass(frozen=True, slots=True)
class Tick:
    """One slice: its index in its block (from 1), when it is due, and the block's own time.

    ``due`` in seconds of the clock that the cadence was anchored to; ``number`` counts all ticks.
    """

    number: int
    index: int
    due: float


class Cadence:
    """The ticks of blocks of ``block_time_ms`` in slices of ``interval_ms``.

    Every tick is computed from the anchor, so errors do not add up. A block whose time is no
    multiple of the interval has a shorter first slice, so that its last one ends with the block.
    """

    def __init__(self, block_time_ms: int, interval_ms: int, anchor: float) -> None:
        self.block_time, self.interval = block_time_ms / MS, interval_ms / MS
        self.slices = -(-block_time_ms // interval_ms)
        self._rest = block_time_ms - (self.slices - 1) * interval_ms
        self.anchor = anchor

    def tick(self, number: int) -> Tick:
        """The tick of this number, from 0."""
        block, index = divmod(number, self.slices)
        offset = (self._rest / MS) + index * self.interval
        return Tick(number, index + 1, self.anchor + block * self.block_time + offset)

    def block_end(self, tick: Tick) -> float:
        """When the block of this tick is sealed."""
        return self.anchor + (tick.number // self.slices + 1) * self.block_time

    def after(self, number: int, now: float) -> tuple[Tick, int]:
        """The tick to wait for after ``number``, and how many had to be skipped.

        A tick of the same block is skipped when its time has wholly passed; a block is never left
        without its last tick, which seals it.
        """
        tick, skipped = self.tick(number + 1), 0
        while tick.due + self.interval < now:
            tick, skipped = self.tick(tick.number + 1), skipped + 1
        return tick, skipped


def aligned_anchor(block_time_ms: int, wall: float, monotonic: float) -> float:
    """The monotonic time of the last moment at which wall time was a multiple of the block time."""
    return monotonic - wall % (block_time_ms / MS)
