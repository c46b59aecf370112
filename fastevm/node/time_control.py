"""Control of the timestamps of a development chain, as development tools know it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fastevm.node.production.block_producer import BlockProducer

LEAST_MILLISECONDS: Final = 10**12  # a time above it is in milliseconds: in seconds it is far away
MILLISECONDS: Final = 1_000


class TimeControl:
    """Changes the clock of a producer; pre-confirmed transactions are sealed before.

    Every change raises ValueError where the rules of the chain set the timestamps. ``changed`` is
    called after each.
    """

    def __init__(self, producer: BlockProducer, changed: Callable[[], None] = lambda: None) -> None:
        self.producer, self.changed = producer, changed

    def increase(self, seconds: int) -> int:
        """Advance the clock; its offset to the system's clock then, in seconds.

        ValueError for a time above MAX_TIMESTAMP.
        """
        with self.producer.lock:
            self.producer.require_free_timestamps()
            clock = self.producer.clock
            clock.check(clock.now() + seconds)
            self.producer.seal_open_block()
            clock.offset += seconds
            self._go_on()
            return clock.offset

    def set(self, timestamp: int) -> int:
        """Make this the current time; how many seconds the clock went forward, 0 for back.

        In seconds, or in milliseconds above LEAST_MILLISECONDS. Blocks stay after their parents.
        ValueError for a time above MAX_TIMESTAMP.
        """
        if timestamp >= LEAST_MILLISECONDS:
            timestamp //= MILLISECONDS
        with self.producer.lock:
            self.producer.require_free_timestamps()
            self.producer.clock.check(timestamp)
            self.producer.seal_open_block()
            before = self.producer.next_timestamp(int(time.time()))
            self.producer.clock.set_now(timestamp)
            self._go_on()
            return max(0, timestamp - before)

    def set_next(self, timestamp: int) -> None:
        """Give the next block this timestamp, and continue from there.

        ValueError for a timestamp before the newest block's or above MAX_TIMESTAMP.
        """
        with self.producer.lock:
            self.check(timestamp)
            self.producer.seal_open_block()
            self.producer.clock.set_next(timestamp)
            self._go_on()

    def set_interval(self, seconds: int | None) -> bool:
        """Stamp each block so many seconds after its parent; None: by the clock.

        Whether there was an interval before. ValueError for one above MAX_TIMESTAMP.
        """
        with self.producer.lock:
            self.producer.require_free_timestamps()
            clock = self.producer.clock
            clock.check(seconds or 0)
            self.producer.seal_open_block()
            had, clock.interval = clock.interval is not None, seconds
            self._go_on()
            return had

    def _go_on(self) -> None:
        self.changed()
        self.producer.restart()

    def check(self, timestamp: int) -> None:
        """ValueError for a timestamp that the next block cannot have."""
        producer, block = self.producer, self.producer.open_block
        producer.require_free_timestamps()
        producer.clock.check(timestamp)
        newest = producer.chain.head.header
        if block is not None and block.has_chosen:
            newest = block.header
        last = producer.clock.last(newest.timestamp)
        if timestamp < last or timestamp < newest.timestamp + _step(producer):
            raise ValueError(f"timestamp {timestamp} is not after the newest block's, {last}")


def _step(producer: BlockProducer) -> int:
    return producer.chain.config.least_timestamp_step
