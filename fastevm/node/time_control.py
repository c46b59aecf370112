"""Changes the timestamps of a development chain, as development tools require."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fastevm.node.production.block_producer import BlockProducer

# a higher timestamp is in milliseconds: in seconds it would be far in the future
LEAST_MILLISECONDS: Final = 10**12
MILLISECONDS: Final = 1_000


class TimeControl:
    """Changes the clock of a producer, after sealing pre-confirmed transactions.

    Every change raises ValueError if the rules of the chain set the timestamps. ``changed()`` is
    called after each change.
    """

    def __init__(self, producer: BlockProducer, changed: Callable[[], None] = lambda: None) -> None:
        self.producer, self.changed = producer, changed

    def increase(self, seconds: int) -> int:
        """Moves the clock forward. Returns its new offset from the system's clock, in seconds.

        Raises ValueError for a time above MAX_TIMESTAMP.
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
        """Sets the current time. Returns by how many seconds the clock moved forward, or 0.

        ``timestamp``: seconds, or milliseconds from LEAST_MILLISECONDS on. Timestamps of blocks
        still increase. Raises ValueError for a time above MAX_TIMESTAMP.
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
        """Sets the timestamp of the next block, in seconds. The clock continues from there.

        Raises ValueError for a timestamp before the newest block's or above MAX_TIMESTAMP.
        """
        with self.producer.lock:
            self.check(timestamp)
            self.producer.seal_open_block()
            self.producer.clock.set_next(timestamp)
            self._go_on()

    def set_interval(self, seconds: int | None) -> bool:
        """Makes each timestamp the parent's plus ``seconds``. None: timestamps follow the clock.

        Returns whether there was an interval before. Raises ValueError for an interval above
        MAX_TIMESTAMP.
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
        """Raises ValueError for a timestamp that the next block cannot have."""
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
