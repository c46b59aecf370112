"""How many blocks and states of the canonical chain stay in memory, and what executes them."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from msgspec import Struct

MIN_HASHES: Final = 1_024  # of the newest canonical blocks in memory
MIN_BLOCKS: Final = 16  # stay in memory whatever gas they used
MIN_STATES: Final = 128  # stay in memory whatever gas they used
MOST_BLOCK_THREADS: Final = 8  # that a node takes for one block unless told otherwise


def block_threads() -> int:
    """The threads of a node for one block: as many as processors, up to a limit."""
    return min(os.cpu_count() or 1, MOST_BLOCK_THREADS)


class ChainLimits(Struct, frozen=True, kw_only=True):
    """How much a chain keeps in memory, and how many ``threads`` may execute one block.

    ``side_blocks``: blocks off the canonical chain; the lowest are dropped first. ``states``:
    states of canonical blocks from the head downwards; reading an older one raises
    StateUnavailableError. ``blocks``: canonical blocks in memory from the head downwards, where an
    archive holds the older ones. Gas bounds what a block can hold and change: where the kept blocks
    used more than ``state_gas`` only the newest MIN_STATES states are kept, above ``block_gas``
    only MIN_BLOCKS blocks.
    """

    side_blocks: int = 1_024
    states: int = 65_536
    state_gas: int = 1_000_000_000
    blocks: int = 256
    block_gas: int = 400_000_000
    threads: int = 1


class RetentionWindow:
    """The newest blocks of which something is kept, as the gas that each used."""

    def __init__(self, max_count: int, min_count: int, max_gas: int) -> None:
        """At most ``max_count`` blocks; ``min_count`` where they used more than ``max_gas``."""
        self.max_count, self.min_count, self.max_gas = max_count, min_count, max_gas
        self._gas_used: deque[int] = deque()
        self._total_gas = 0

    def __len__(self) -> int:
        return len(self._gas_used)

    @property
    def is_over(self) -> bool:
        """Whether the oldest block has to be dropped."""
        count = len(self._gas_used)
        over_gas = count > self.min_count and self._total_gas > self.max_gas
        return count > self.max_count or over_gas

    @contextmanager
    def unlimited_gas(self) -> Iterator[None]:
        """Inside this context only the number of blocks bounds the window."""
        self.max_gas, limit = sys.maxsize, self.max_gas
        try:
            yield
        finally:
            self.max_gas = limit

    def add_newest(self, gas_used: int) -> None:
        """A new head joined the chain."""
        self._gas_used.append(gas_used)
        self._total_gas += gas_used

    def remove_newest(self, count: int) -> None:
        """The newest ``count`` blocks left the chain."""
        for _ in range(min(count, len(self._gas_used))):
            self._total_gas -= self._gas_used.pop()

    def drop_oldest(self) -> None:
        """What was kept of the oldest block is gone."""
        self._total_gas -= self._gas_used.popleft()


class CanonicalHashes(NamedTuple):
    """The hashes of the newest canonical blocks; ``first`` is the number of ``hashes[0]``."""

    first: int
    hashes: list[bytes]

    def truncated(self, number: int, archived: int) -> CanonicalHashes:
        """The hashes below ``number``; of those below ``archived`` about MIN_HASHES stay.

        Readers of the value before are not disturbed.
        """
        first, hashes = min(self.first, number), self.hashes
        if number < self.first + len(hashes):
            hashes = hashes[: max(number - self.first, 0)]
        needed = MIN_HASHES + max(number - archived, 0)
        if len(hashes) >= needed + MIN_HASHES:
            first, hashes = first + len(hashes) - needed, hashes[-needed:]
        return CanonicalHashes(first, hashes)
