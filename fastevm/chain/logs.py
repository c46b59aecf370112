"""Finds the blocks that may hold wanted logs: the blooms of the canonical chain, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Protocol

from fastevm.chain.chain import HeadChange
from fastevm.primitives.bloom import BloomQuery
from fastevm.types import Block

BLOOM_SIZE = 256
FIRST_CAPACITY = 1_024  # blocks


class Chain(Protocol):
    """What the index reads: a chain whose listeners are called after each change of its head."""

    @property
    def genesis(self) -> Block: ...
    @property
    def head(self) -> Block: ...
    def block_by_number(self, number: int) -> Block | None: ...
    def canonical_hash(self, number: int) -> bytes | None: ...


class LogIndex:
    """The 256-byte blooms of all canonical blocks, one after the other in memory.

    A scan over any range is one call without the GIL. The buffer is never resized, because a scan
    may be reading it: one that is full is replaced by a copy of twice the size, and a reader keeps
    the one that it has. Call :meth:`update` (or register it as listener of the head) after every
    change; a scan that finds the index behind the chain reads the headers instead.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.first = chain.genesis.number
        self._lock = Lock()
        self._blooms = bytearray(FIRST_CAPACITY * BLOOM_SIZE)
        self._count = 0
        self._tip: bytes | None = None
        self._version = 0
        self.update()

    def __len__(self) -> int:
        return self._count

    def update(self, change: HeadChange | None = None) -> None:
        """Take over the canonical blocks that are new since the last time, on any thread."""
        removed = () if change is None else change.removed
        with self._lock:
            self._version += 1
            keep = self._count
            if removed and removed[0].hash == self._tip:
                keep = removed[-1].number - self.first
            elif not self._holds_tip():  # it has missed a change
                keep = 0
            head = self.chain.head
            self._reserve(head.number - self.first + 1)
            for index in range(keep, head.number - self.first + 1):
                block = self.chain.block_by_number(self.first + index)
                if block is None:  # the chain has just become shorter; the next change says so
                    break
                self._blooms[index * BLOOM_SIZE : (index + 1) * BLOOM_SIZE] = (
                    block.header.logs_bloom
                )
                keep, self._tip = index + 1, block.hash
            self._count = keep
            self._version += 1

    def scan(self, first: int, last: int, positions: Sequence[Sequence[bytes]]) -> list[int]:
        """Numbers, ascending, of the canonical blocks ``first`` to ``last`` that may hold the logs.

        ``positions``: alternatives for the address, then for each topic; an empty one takes
        anything. Numbers beyond the chain are left out. There may be false positives.
        """
        query = BloomQuery(positions)
        start, stop = max(first - self.first, 0), last - self.first + 1
        version, blooms, count = self._version, self._blooms, self._count
        if version % 2 == 0 and self._holds_tip():
            indexed = max(min(stop, count), start)
            with memoryview(blooms) as everything:
                part = everything[start * BLOOM_SIZE : indexed * BLOOM_SIZE]
                found = [self.first + start + index for index in query.scan(part)]
                part.release()
            if version == self._version:
                return found + self._read(query, self.first + indexed, last)
        return self._read(query, max(first, self.first), last)

    def _read(self, query: BloomQuery, first: int, last: int) -> list[int]:
        """The same from the headers, one by one."""
        numbers = []
        for number in range(first, min(last, self.chain.head.number) + 1):
            block = self.chain.block_by_number(number)
            if block is not None and query.matches(block.header.logs_bloom):
                numbers.append(number)
        return numbers

    def _holds_tip(self) -> bool:
        """Whether the last block in the index is canonical, so that all before it are."""
        last = self.first + self._count - 1
        return self._tip is not None and self.chain.canonical_hash(last) == self._tip

    def _reserve(self, count: int) -> None:
        capacity = len(self._blooms) // BLOOM_SIZE
        if count <= capacity:
            return
        while capacity < count:
            capacity *= 2
        larger = bytearray(capacity * BLOOM_SIZE)
        larger[: len(self._blooms)] = self._blooms
        self._blooms = larger
