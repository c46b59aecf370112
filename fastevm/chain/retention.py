"""Limits of the canonical blocks and states in memory, and of the threads that execute a block."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from msgspec import Struct

MIN_HASHES: Final = 1_024  # newest canonical hashes in memory
MIN_BLOCKS: Final = 16  # blocks kept regardless of their gas
MIN_STATES: Final = 128  # states kept regardless of their gas
MOST_BLOCK_THREADS: Final = 8  # default limit of threads per block


def block_threads() -> int:
    """Returns the default number of threads for one block: one per processor, up to a limit."""
    return min(os.cpu_count() or 1, MOST_BLOCK_THREADS)


class ChainLimits(Struct, frozen=True, kw_only=True):
    """Limits of a chain's memory, and the number of ``threads`` that execute one block.

    - ``side_blocks``: number of blocks outside the canonical chain. Beyond it, the block with the
      lowest number is removed first.
    - ``states``: number of states of canonical blocks, counted from the head downwards. Reading an
      older state raises StateUnavailableError.
    - ``blocks``: number of canonical blocks in memory, counted from the head downwards, if an
      archive has the older blocks.
    - ``state_gas``: if the kept blocks used more gas, only the newest MIN_STATES states are kept.
    - ``block_gas``: if the kept blocks used more gas, only MIN_BLOCKS blocks are kept.

    Gas measures what a block can contain and change.
    """

    side_blocks: int = 1_024
    states: int = 65_536
    state_gas: int = 1_000_000_000
    blocks: int = 256
    block_gas: int = 400_000_000
    threads: int = 1


class RetentionWindow:
    """The gas used by each of the newest blocks, which decides how many blocks keep their data."""

    def __init__(self, max_count: int, min_count: int, max_gas: int) -> None:
        """Keeps ``max_count`` blocks, or ``min_count`` if they used more than ``max_gas``."""
        self.max_count, self.min_count, self.max_gas = max_count, min_count, max_gas
        self._gas_used: deque[int] = deque()
        self._total_gas = 0

    def __len__(self) -> int:
        return len(self._gas_used)

    @property
    def is_over(self) -> bool:
        """Returns whether the oldest block must be removed, because a limit is exceeded."""
        count = len(self._gas_used)
        over_gas = count > self.min_count and self._total_gas > self.max_gas
        return count > self.max_count or over_gas

    @contextmanager
    def unlimited_gas(self) -> Iterator[None]:
        """Returns a context in which only the number of blocks limits the window."""
        self.max_gas, limit = sys.maxsize, self.max_gas
        try:
            yield
        finally:
            self.max_gas = limit

    def add_newest(self, gas_used: int) -> None:
        """Adds the gas of a new head."""
        self._gas_used.append(gas_used)
        self._total_gas += gas_used

    def remove_newest(self, count: int) -> None:
        """Removes the newest ``count`` blocks after a reorganisation."""
        for _ in range(min(count, len(self._gas_used))):
            self._total_gas -= self._gas_used.pop()

    def drop_oldest(self) -> None:
        """Removes the oldest block."""
        self._total_gas -= self._gas_used.popleft()


class CanonicalHashes(NamedTuple):
    """The hashes of the newest canonical blocks.

    ``hashes[0]`` belongs to block number ``first``.
    """

    first: int
    hashes: list[bytes]

    def truncated(self, number: int, archived: int) -> CanonicalHashes:
        """Returns the hashes without those from block ``number`` on.

        Also removes hashes of blocks below number ``archived``, except about MIN_HASHES of the
        newest. Readers of the previous value are not affected.
        """
        first, hashes = min(self.first, number), self.hashes
        if number < self.first + len(hashes):
            hashes = hashes[: max(number - self.first, 0)]
        needed = MIN_HASHES + max(number - archived, 0)
        if len(hashes) >= needed + MIN_HASHES:
            first, hashes = first + len(hashes) - needed, hashes[-needed:]
        return CanonicalHashes(first, hashes)
