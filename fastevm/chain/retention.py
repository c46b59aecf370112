"""How much of a chain stays in memory, and the shapes of the files that have all of it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from fastevm.types import Block, Receipt

HASHES: Final = 1_024  # of the newest canonical blocks, at least, that need no file to be known
LEAST_BLOCKS: Final = 16  # stay in memory however much gas they used
LEAST_STATES: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLimits:
    """How much a chain keeps.

    ``side_blocks``: blocks off the canonical chain; the lowest are dropped first. ``states``:
    states of canonical blocks, from the head downwards; older ones can be named but not read.
    ``blocks``: canonical blocks in memory, from the head downwards, where there is an archive to
    read older ones from. Gas bounds what a block can hold and change: of more than ``state_gas``
    gas only the newest LEAST_STATES states are kept, of more than ``block_gas`` only LEAST_BLOCKS
    blocks.
    """

    side_blocks: int = 1_024
    states: int = 65_536
    state_gas: int = 1_000_000_000
    blocks: int = 256
    block_gas: int = 400_000_000


class Span:
    """The blocks from the head downwards that something is kept of, as the gas that each used."""

    def __init__(self, most: int, least: int, gas: int) -> None:
        """``most`` blocks, but only ``least`` when they used more than ``gas`` together."""
        self.most, self.least, self.gas = most, least, gas
        self._used: deque[int] = deque()
        self._total = 0

    def __len__(self) -> int:
        return len(self._used)

    @property
    def is_over(self) -> bool:
        """Whether the oldest block has to go."""
        count = len(self._used)
        return count > self.most or (count > self.least and self._total > self.gas)

    @contextmanager
    def of_any_gas(self) -> Iterator[None]:
        """Meanwhile only the number of blocks bounds it."""
        self.gas, kept = sys.maxsize, self.gas
        try:
            yield
        finally:
            self.gas = kept

    def grow(self, gas_used: int) -> None:
        """A new head is in it."""
        self._used.append(gas_used)
        self._total += gas_used

    def shrink(self, count: int) -> None:
        """The newest ``count`` blocks left the chain."""
        for _ in range(min(count, len(self._used))):
            self._total -= self._used.pop()

    def drop(self) -> None:
        """The oldest block went."""
        self._total -= self._used.popleft()


class Hashes(NamedTuple):
    """The hashes of the newest canonical blocks; ``first`` is the number of the first of them."""

    first: int
    known: list[bytes]

    def cut(self, number: int, stored: int) -> Hashes:
        """Only those below a number; of the ones below ``stored`` no more than are wanted.

        Who reads the ones before is not disturbed.
        """
        first, known = min(self.first, number), self.known
        if number < self.first + len(known):
            known = known[: max(number - self.first, 0)]
        wanted = HASHES + max(number - stored, 0)
        if len(known) >= wanted + HASHES:
            first, known = first + len(known) - wanted, known[-wanted:]
        return Hashes(first, known)


class HeadChange(NamedTuple):
    """What a new head did to the canonical chain: blocks that left it and blocks that joined it.

    ``removed`` runs from the old head downwards, ``added`` upwards to the new head.
    """

    removed: tuple[Block, ...]
    added: tuple[Block, ...]


class Journal(Protocol):
    """Is told of every change before it happens; what it raises keeps the change from happening."""

    def keep(self, block: Block, receipts: Sequence[Receipt]) -> int: ...
    def move_head(self, block_hash: bytes) -> None: ...
    def amend(self, block_hash: bytes, accounts: Mapping[str, Any]) -> None: ...


class OldBlock(Protocol):
    """A canonical block that goes into a file or is read back from there.

    ``place``: where in the file it lies, if it does. ``merged``: whether it is made by the rules
    after the merge.
    """

    @property
    def block(self) -> Block: ...
    @property
    def receipts(self) -> tuple[Receipt, ...]: ...
    @property
    def place(self) -> int | None: ...
    @property
    def total_difficulty(self) -> int: ...
    @property
    def merged(self) -> bool: ...


class Archive(Protocol):
    """Where the canonical blocks lie that memory holds no more; see `storage.archive`."""

    @property
    def numbers(self) -> range: ...
    def append(self, old: OldBlock) -> None: ...
    def flush(self) -> None: ...
    def truncate(self, number: int) -> None: ...
    def hash_of(self, number: int) -> bytes | None: ...
    def number_of(self, block_hash: bytes) -> int | None: ...
    def locate(self, transaction_hash: bytes) -> tuple[Block, int] | None: ...
    def read(self, number: int) -> OldBlock | None: ...
