"""The archive of old canonical blocks, which finds a block by number, hash or transaction.

Memory holds only the last few blocks that were read. The index is stored in unnamed files and
rebuilt on start.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, Protocol

from fastevm.chain.storage.archive_file import ArchiveFile
from fastevm.chain.storage.block_record import block_of, receipts_of
from fastevm.chain.storage.hash_index import RUN_RECORDS, HashIndex
from fastevm.chain.storage.record_file import Record
from fastevm.chain.storage.scratch import ScratchFile
from fastevm.chain.storage_protocols import ArchivedBlock
from fastevm.core.execution.types import Block, Receipt
from fastevm.errors import BlockUnavailableError, FastevmError

CACHED_BYTES: Final = 4 * 1024 * 1024  # bytes of records whose blocks are cached
# bits of a transaction's index in its block, below those of the block's number
INDEX_BITS: Final = 24
WHOLE_BLOCK: Final = (1 << INDEX_BITS) - 1  # index that means the block itself
WORD_BYTES: Final = 32
_ROW: Final = struct.Struct(">32sQ32s?")  # hash, position, total difficulty, merged


class BlockStore(Protocol):
    """An append-only file of blocks."""

    def keep(self, block: Block, receipts: Sequence[Receipt]) -> int: ...
    def read(self, position: int) -> Record: ...


class Row(NamedTuple):
    """The index entry of an old block.

    ``position``: the byte offset of the block's record. ``is_merged``: whether the block follows
    the rules after the merge.
    """

    block_hash: bytes
    position: int
    total_difficulty: int
    is_merged: bool


class StoredBlock:
    """A block read from the archive. Its receipts are decoded on access."""

    __slots__ = ("_packed", "_receipts", "block", "row")

    def __init__(self, row: Row, packed: bytes) -> None:
        self.row, self._packed = row, packed
        self.block = block_of(packed)
        self._receipts: Sequence[Receipt] | None = None

    @property
    def position(self) -> int:
        """The byte offset in the store."""
        return self.row.position

    @property
    def total_difficulty(self) -> int:
        """The total difficulty up to the block."""
        return self.row.total_difficulty

    @property
    def is_merged(self) -> bool:
        """Whether the block follows the rules after the merge."""
        return self.row.is_merged

    @property
    def receipts(self) -> Sequence[Receipt]:
        """Returns the receipts. Raises StorageError if they cannot be decoded."""
        if self._receipts is None:
            self._receipts = receipts_of(self._packed)
        return self._receipts

    @property
    def size(self) -> int:
        """The size of the block's record in bytes."""
        return len(self._packed)


class Archive:
    """The canonical blocks from the first added block up to those that are still in memory.

    One thread adds and removes; any thread reads complete blocks. Raises
    :class:`BlockUnavailableError` if the file does not match the index.
    """

    def __init__(
        self,
        store: BlockStore,
        directory: Path | None = None,
        *,
        cached_bytes: int = CACHED_BYTES,
        run_records: int = RUN_RECORDS,
    ) -> None:
        """Starts an empty archive.

        ``directory`` holds the unnamed files (None: the system's temporary directory).
        """
        self.store = store
        self._directory = directory
        self._rows: ScratchFile | None = None  # created on demand: most chains never need it
        self._index = HashIndex(directory, run_records)
        self._numbers = range(0)
        self._truncations = 0
        self._cache = _Cache(cached_bytes)

    @property
    def numbers(self) -> range:
        """The numbers of the archived blocks."""
        return self._numbers

    def append(self, old: ArchivedBlock) -> None:
        """Adds the next block. Writes the block if it has no position yet.

        Raises OSError and leaves the archive unchanged if the block cannot be written.
        """
        block, position = old.block, old.position
        number = block.number
        numbers = self._numbers or range(number, number)
        if number != numbers.stop:
            raise ValueError(f"block {number} does not follow block {numbers.stop - 1}")
        if position is None:
            position = self.store.keep(block, old.receipts)
        if self._rows is None:
            self._rows = ScratchFile(self._directory)
        difficulty = old.total_difficulty.to_bytes(WORD_BYTES, "big")
        row = _ROW.pack(block.hash, position, difficulty, old.is_merged)
        self._rows.put(row, (number - numbers.start) * _ROW.size)
        position = number << INDEX_BITS
        self._index.add(block.hash, position | WHOLE_BLOCK)
        for index, transaction in enumerate(block.transactions):
            self._index.add(transaction.hash, position | index)
        self._numbers = range(numbers.start, number + 1)

    def flush(self) -> None:
        """Writes the index entries collected in memory. Raises OSError and keeps them in memory."""
        self._index.flush()

    def truncate(self, number: int) -> None:
        """Removes the blocks from this number on. Later reads ignore their index entries."""
        numbers = self._numbers
        self._truncations += 1
        self._numbers = range(numbers.start, max(min(number, numbers.stop), numbers.start))

    def save(self, file: ArchiveFile, end: int) -> bool:
        """Saves the index of the blocks below ``end``. Thread-safe.

        Returns False if there are none, or if the branch changed during the call. Raises OSError.
        """
        truncations, numbers, rows = self._truncations, self._numbers, self._rows
        count = min(numbers.stop, end) - numbers.start
        if rows is None or count <= 0:
            return False
        file.write(numbers.start, (rows, count * _ROW.size), self._index.merged())
        if truncations != self._truncations:  # the rows may belong to two branches
            file.remove()
            return False
        return True

    def restore(self, file: ArchiveFile) -> bool:
        """Loads the saved index. Returns whether it existed. Raises OSError."""
        saved = file.read(self._directory)
        if saved is None or saved.rows.size % _ROW.size:
            return False
        self._rows, count = saved.rows, saved.rows.size // _ROW.size
        self._numbers = range(saved.first, saved.first + count)
        self._index.restore(saved.hashes)
        return count > 0

    # --- reading ----------------------------------------------------------------------------------

    def row(self, number: int) -> Row | None:
        """Returns the index entry of the block with a number, or None if it is not archived."""
        numbers = self._numbers
        if number not in numbers or self._rows is None:
            return None
        found = self._rows.read((number - numbers.start) * _ROW.size, _ROW.size)
        if len(found) < _ROW.size:
            raise BlockUnavailableError(f"the file of old blocks ends before block {number}")
        block_hash, position, difficulty, merged = _ROW.unpack(found)
        return Row(block_hash, position, int.from_bytes(difficulty, "big"), merged)

    def hash_of(self, number: int) -> bytes | None:
        """Returns the hash of the block with a number, or None if it is not archived."""
        row = self.row(number)
        return None if row is None else row.block_hash

    def number_of(self, block_hash: bytes) -> int | None:
        """Returns the number of the block with a hash, or None if it is not archived."""
        for position in self._find(block_hash):
            number, index = divmod(position, 1 << INDEX_BITS)
            if index == WHOLE_BLOCK and self.hash_of(number) == block_hash:
                return number
        return None

    def locate(self, transaction_hash: bytes) -> tuple[Block, int] | None:
        """Returns the block that contains a transaction, and its index there."""
        for position in self._find(transaction_hash):
            number, index = divmod(position, 1 << INDEX_BITS)
            found = None if index == WHOLE_BLOCK else self.read(number)
            transactions = () if found is None else found.block.transactions
            if found is None or index >= len(transactions):
                continue
            if transactions[index].hash == transaction_hash:
                return found.block, index
        return None

    def read(self, number: int) -> StoredBlock | None:
        """Returns the block with a number, or None if it is not archived."""
        row = self.row(number)
        if row is None:
            return None
        found = self._cache.get(row.block_hash)
        if found is None:
            found = self._read(number, row)
            self._cache.put(row.block_hash, found)
        return found

    def _read(self, number: int, row: Row) -> StoredBlock:
        try:
            found = StoredBlock(row, self.store.read(row.position).payload)
        except (OSError, ValueError, FastevmError) as error:
            raise BlockUnavailableError(f"block {number} cannot be read: {error}") from error
        if found.block.hash != row.block_hash:
            raise BlockUnavailableError(
                f"block {number} cannot be read: the file has another block at its position"
            )
        return found

    def _find(self, key: bytes) -> Iterator[int]:
        try:
            yield from self._index.find(key)
        except OSError as error:
            raise BlockUnavailableError(f"the index of old blocks: {error}") from error


class _Cache:
    """A thread-safe cache of the last blocks read, limited by the total size of their records."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._blocks: OrderedDict[bytes, StoredBlock] = OrderedDict()
        self._lock = Lock()

    def get(self, block_hash: bytes) -> StoredBlock | None:
        with self._lock:
            found = self._blocks.get(block_hash)
            if found is not None:
                self._blocks.move_to_end(block_hash)
            return found

    def put(self, block_hash: bytes, block: StoredBlock) -> None:
        """Adds a block. Evicts the least recently used blocks, but never the added block."""
        with self._lock:
            if block_hash in self._blocks:
                return
            self._blocks[block_hash] = block
            self._size += block.size
            while self._size > self._limit and len(self._blocks) > 1:
                self._size -= self._blocks.popitem(last=False)[1].size
