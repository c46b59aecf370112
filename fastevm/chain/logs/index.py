"""The log index of the canonical chain: blooms and packed logs, in memory for the newest blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple, Protocol

from msgspec import Struct

from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.logs.block_logs import BlockLogs, LogQuery
from fastevm.core.execution.op_stack.base_time import timestamp_millis
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_HASH, Block, Header, Receipt

BLOOM_SIZE = 256
PAGE_BLOCKS = 256


class LogLimits(Struct, frozen=True, kw_only=True):
    """Limits of the index. Logs of older blocks are read from the chain.

    ``blocks``: number of blocks whose blooms are in memory, rounded up to a page. ``size``: bytes
    of packed logs, about 200 per log.
    """

    blocks: int = 262_144
    size: int = 512 * 1024 * 1024


class BlockReader(Protocol):
    """The methods of a chain that the index uses."""

    @property
    def genesis(self) -> Block: ...
    @property
    def head(self) -> Block: ...
    def block_by_number(self, number: int) -> Block | None: ...
    def canonical_hash(self, number: int) -> bytes | None: ...
    def receipts_of(self, block_hash: bytes) -> Sequence[Receipt]: ...


class Preconfirmed(Protocol):
    """A pre-confirmed block."""

    @property
    def header(self) -> Header: ...
    @property
    def transactions(self) -> Sequence[Transaction]: ...
    @property
    def receipts(self) -> Sequence[Receipt]: ...


class _Page:
    """The blooms of PAGE_BLOCKS blocks, and the packed logs of some of these blocks.

    New blocks are appended after the blocks that readers use. Packed logs that are not in memory
    are built when a query needs them.
    """

    __slots__ = ("blocks", "blooms", "size")

    def __init__(self) -> None:
        self.blooms = bytearray(PAGE_BLOCKS * BLOOM_SIZE)
        self.blocks: list[BlockLogs | None] = [None] * PAGE_BLOCKS
        self.size = 0  # bytes of packed logs

    def put(self, offset: int, bloom: bytes, logs: BlockLogs | None) -> None:
        self.blooms[offset * BLOOM_SIZE : (offset + 1) * BLOOM_SIZE] = bloom
        self.keep(offset, logs)

    def keep(self, offset: int, logs: BlockLogs | None) -> None:
        """Stores the packed logs of a block, or removes them from memory if ``logs`` is None."""
        before = self.blocks[offset]
        self.blocks[offset] = logs
        self.size += (0 if logs is None else logs.size) - (0 if before is None else before.size)

    def find(
        self, start: int, stop: int, query: LogQuery
    ) -> tuple[list[int], list[BlockLogs | None]]:
        """Returns the blocks with matching blooms, from ``start`` to ``stop - 1``.

        The result has the offsets of the blocks from ``start``, and their packed logs, or None for
        logs that are not in memory.
        """
        with memoryview(self.blooms)[start * BLOOM_SIZE : stop * BLOOM_SIZE] as blooms:
            hits = query.blooms.scan(blooms)
        blocks = self.blocks
        return hits, [blocks[start + hit] for hit in hits]

    def release(self, excess: int) -> int:
        """Removes the oldest packed logs from memory until ``excess`` bytes are free.

        Returns the number of bytes freed.
        """
        before = self.size
        for offset in range(PAGE_BLOCKS):
            if before - self.size >= excess:
                break
            self.keep(offset, None)
        return before - self.size

    def begin(self, count: int) -> _Page:
        """Returns a new page with a copy of the first ``count`` blocks of this page."""
        page = _Page()
        page.blooms[: count * BLOOM_SIZE] = self.blooms[: count * BLOOM_SIZE]
        for offset in range(count):
            page.keep(offset, self.blocks[offset])
        return page


class _Window(NamedTuple):
    """The covered blocks: ``length`` blocks from number ``first`` on.

    ``tip`` is the hash of the last block. A page is None until a query reads the page.
    """

    first: int
    length: int
    pages: tuple[_Page | None, ...]
    tip: bytes | None

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + self.length)


class LogIndex:
    """Finds blocks of the canonical chain that may contain the wanted logs.

    Any thread may read; each read uses the last published window. Call :meth:`update` after every
    change of the head, or register it as a listener. Blocks outside the window are read from the
    chain.
    """

    def __init__(self, chain: BlockReader, limits: LogLimits | None = None) -> None:
        self.chain = chain
        self.limits = limits or LogLimits()
        self._lock = Lock()  # guards writes
        self._window = _Window(chain.genesis.number, 0, (), None)
        self._pending: tuple[Preconfirmed, BlockLogs] | None = None
        self.update()

    def __len__(self) -> int:
        """The number of covered blocks."""
        return self._window.length

    @property
    def size(self) -> int:
        """The size of the packed logs in memory, in bytes."""
        return sum(page.size for page in self._window.pages if page is not None)

    # --- reading ----------------------------------------------------------------------------------

    def blocks(self, first: int, last: int, query: LogQuery) -> Iterator[list[BlockLogs]]:
        """Yields canonical blocks ``first`` to ``last`` that may contain the logs, in order.

        Each item is a group of blocks. Numbers beyond the head are ignored. A yielded block may
        contain none of the logs. During a reorganisation, blocks of both branches may appear.
        """
        window = self._window
        covered = window.numbers if self._is_canonical(window) else range(0)
        number = max(first, self.chain.genesis.number)
        end = min(last, self.chain.head.number) + 1
        while number < end:
            if number in covered:
                index, offset = divmod(number - window.first, PAGE_BLOCKS)
                stop = min(end, covered.stop, number - offset + PAGE_BLOCKS)
                page = window.pages[index] or self._load(window, index)
                found = self._read_page(page, offset, offset + stop - number, number, query)
            else:
                stop = min(end, number + PAGE_BLOCKS)
                if number < window.first:
                    stop = min(stop, window.first)
                found = self._read_chain(number, stop, query)
            if found:
                yield found
            number = stop

    def size_of(self, first: int, last: int, query: LogQuery) -> int | None:
        """Returns the size in bytes of the packed logs that `blocks` would yield for these
        arguments.

        Returns None if some of them are not in memory.
        """
        window, size = self._window, 0
        number, end = max(first, self.chain.genesis.number), min(last, self.chain.head.number) + 1
        if number < window.first or end > window.numbers.stop:
            return None
        while number < end:
            index, offset = divmod(number - window.first, PAGE_BLOCKS)
            stop = min(end, number - offset + PAGE_BLOCKS)
            page = window.pages[index]
            found = None if page is None else page.find(offset, offset + stop - number, query)[1]
            if found is None or None in found:
                return None
            size += sum([logs.size for logs in found if logs is not None])
            number = stop
        return size

    def of_block(self, block: Block) -> BlockLogs:
        """Returns the packed logs of a block on any branch.

        Raises UnknownBlockError if the chain no longer has the block.
        """
        receipts = self.chain.receipts_of(block.hash)
        header, transactions = block.header, block.transactions
        return BlockLogs(
            block.number,
            header.timestamp,
            block.hash,
            transactions,
            receipts,
            timestamp_millis(header, transactions) or 0,
        )

    def of_pending(self, pending: Preconfirmed) -> BlockLogs:
        """Returns the packed logs of a pre-confirmed block, whose hash is 32 zero bytes."""
        last = self._pending
        if last is not None and last[0] is pending:
            return last[1]
        header = pending.header
        logs = BlockLogs(
            header.number, header.timestamp, ZERO_HASH, pending.transactions, pending.receipts
        )
        self._pending = pending, logs
        return logs

    def _read_page(
        self, page: _Page, start: int, stop: int, number: int, query: LogQuery
    ) -> list[BlockLogs]:
        """Returns the matching blocks of a page, from offset ``start`` to ``stop - 1``.

        ``number``: the number of the block at ``start``.
        """
        hits, found = page.find(start, stop, query)
        if None in found:
            for position, hit in enumerate(hits):
                if found[position] is None:
                    found[position] = self._pack(page, start + hit, number + hit)
        return [logs for logs in found if logs is not None]

    def _read_chain(self, number: int, stop: int, query: LogQuery) -> list[BlockLogs]:
        blocks = (self.chain.block_by_number(n) for n in range(number, stop))
        return [
            self.of_block(block)
            for block in blocks
            if block is not None and query.blooms.matches(block.header.logs_bloom)
        ]

    def _pack(self, page: _Page, offset: int, number: int) -> BlockLogs | None:
        """Returns the packed logs of a block and keeps them in memory within the limit.

        Returns None if the block has just left the chain.
        """
        block = self.chain.block_by_number(number)
        if block is None:
            return None
        logs = self.of_block(block)
        with self._lock:
            has_room = self.size + logs.size <= self.limits.size
            # a page that has left the window may belong to another branch
            if has_room and page.blocks[offset] is None and page in self._window.pages:
                page.keep(offset, logs)
        return logs

    def _load(self, window: _Window, index: int) -> _Page:
        """Reads the blooms of a page from the chain."""
        page, block = _Page(), None
        first = window.first + index * PAGE_BLOCKS
        for offset in range(PAGE_BLOCKS):
            block = self.chain.block_by_number(first + offset)
            if block is None:  # the chain has just become shorter
                return page
            page.put(offset, block.header.logs_bloom, None)
        with self._lock:
            now = self._window
            position = (first - now.first) // PAGE_BLOCKS
            stands = block is not None and self.chain.canonical_hash(block.number) == block.hash
            if stands and 0 <= position < len(now.pages) and now.pages[position] is None:
                pages = (*now.pages[:position], page, *now.pages[position + 1 :])
                self._window = now._replace(pages=pages)
        return page

    def _is_canonical(self, window: _Window) -> bool:
        """Returns whether the last block of the window, and therefore every block in it, is
        canonical.
        """
        last = window.first + window.length - 1
        return window.tip is not None and self.chain.canonical_hash(last) == window.tip

    # --- writing ----------------------------------------------------------------------------------

    def update(self, change: HeadChange | None = None) -> None:
        """Indexes the canonical blocks added since the last call. Thread-safe."""
        with self._lock:
            window = self._begin(self._kept(change))
            self._window = self._extended(window, change)
            self._forget()

    def _kept(self, change: HeadChange | None) -> int:
        """Returns how many blocks of the window are still canonical, or 0 if unknown."""
        window = self._window
        removed = () if change is None else change.removed
        if removed and removed[0].hash == window.tip:
            return max(removed[-1].number - window.first, 0)
        return window.length if self._is_canonical(window) else 0

    def _begin(self, count: int) -> _Window:
        """Returns the first ``count`` blocks of the window. Does not change pages in use."""
        window = self._window
        if count == window.length and count:
            return window
        if count == 0:
            head, first = self.chain.head.number, self.chain.genesis.number
            return _Window(max(first, head + 1 - self.limits.blocks), 0, (), None)
        whole, rest = divmod(count, PAGE_BLOCKS)
        pages, partial = window.pages[:whole], window.pages[whole] if rest else None
        if partial is None:
            count = whole * PAGE_BLOCKS
        else:
            pages = (*pages, partial.begin(rest))
        tip = self.chain.canonical_hash(window.first + count - 1)
        return _Window(window.first, count, pages, tip)

    def _extended(self, window: _Window, change: HeadChange | None) -> _Window:
        """Returns the window extended to the head.

        Packs new blocks immediately, older ones on first use.
        """
        number, pages, tip = window.numbers.stop, window.pages, window.tip
        end = self.chain.head.number + 1
        new = change.added[0].number if change is not None and change.added else end
        while number < end:
            offset = (number - window.first) % PAGE_BLOCKS
            if offset == 0 and number + PAGE_BLOCKS <= min(end, new):
                pages = (*pages, None)
                number += PAGE_BLOCKS
                tip = self.chain.canonical_hash(number - 1)
                continue
            block = self.chain.block_by_number(number)
            if block is None:  # the chain has just become shorter; the next update handles it
                break
            if offset == 0:
                pages = (*pages, _Page())
            page, logs = pages[-1], self.of_block(block) if number >= new else None
            if page is not None:  # None: the page was not read yet, so it has no missing blocks
                page.put(offset, block.header.logs_bloom, logs)
            number, tip = number + 1, block.hash
        return _Window(window.first, number - window.first, pages, tip)

    def _forget(self) -> None:
        """Removes the oldest blocks and packed logs that exceed the limits from memory."""
        window = self._window
        while window.length - PAGE_BLOCKS >= self.limits.blocks:
            first, count = window.first + PAGE_BLOCKS, window.length - PAGE_BLOCKS
            window = _Window(first, count, window.pages[1:], window.tip)
        self._window = window
        excess = self.size - self.limits.size
        for page in window.pages:
            if excess <= 0:
                break
            if page is not None and page.size:
                excess -= page.release(excess)
