"""The chain: blocks of all branches with their states, and the canonical branch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fastevm.chain.block_entry import (
    BlockEntry,
    check_base_time,
    check_seals,
    check_unexecuted,
    child_schedule,
    genesis_entry,
    known_result,
    restored_entry,
    unexecuted_result,
)
from fastevm.chain.block_run import stopped_by_deadline
from fastevm.chain.config import ChainConfig
from fastevm.chain.fork_choice import HeadChange, is_preferred
from fastevm.chain.genesis import with_amendments
from fastevm.chain.irregular_changes import state_before
from fastevm.chain.retention import (
    MIN_BLOCKS,
    MIN_STATES,
    CanonicalHashes,
    ChainLimits,
    RetentionWindow,
)
from fastevm.chain.storage_protocols import Archive, ArchivedBlock, Journal
from fastevm.core.execution.block.block import execute_block
from fastevm.core.execution.block.block_decoding import decode_block, item_size
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.block.validation import Generation, validate_ommers, validate_result
from fastevm.core.execution.op_stack.base_time import check_result
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock, StateUnavailableError, UnknownBlockError

log = logging.getLogger(__name__)

ANCESTOR_LIMIT = 256


class Chain:
    """Executed and verified blocks after a genesis block.

    Only one thread may add at a time. Any thread may read at the same time and sees complete
    blocks. With an ``archive``, only the newest blocks are in memory; older ones are read from a
    file. Raises :class:`BlockUnavailableError` if the file does not contain the block.

    `fork_choice` decides which branch is canonical, unless :meth:`set_head` overrides it.
    """

    def __init__(
        self,
        config: ChainConfig,
        genesis: Block,
        layer: Layer,
        *,
        limits: ChainLimits | None = None,
        total_difficulty: int | None = None,
        check_seals: bool = False,
        partial: bool = False,
    ) -> None:
        """Starts a chain whose first block is ``genesis``; ``layer`` is the state after that block.

        ``genesis`` may be any block of a chain. Raises ValueError if the state root of its header
        is not the root of ``layer``.

        ``total_difficulty``: the sum of the difficulties up to and including ``genesis``.

        ``check_seals``: whether to verify the proof of work (ethash) of blocks before the merge and
        of ommers. If not, only their difficulty is verified. Generating the cache of an epoch takes
        one to two seconds.

        ``partial``: the states are only partly known, as on a fork. Their roots are then not
        compared with headers.
        """
        self.limits = limits or ChainLimits()
        self.check_seals = check_seals
        self.amendments = 0  # how often a state was changed without a block
        self._begin(config, genesis, layer, total_difficulty, partial)
        self._listeners: list[Callable[[HeadChange], None]] = []
        self.journal: Journal | None = None
        self.archive: Archive | None = None  # must be set before blocks are added

    def _begin(
        self,
        config: ChainConfig,
        genesis: Block,
        layer: Layer,
        total_difficulty: int | None,
        partial: bool,
    ) -> None:
        head = genesis_entry(config, genesis, layer, total_difficulty, partial=partial)
        self.config, self.genesis, self.partial = config, genesis, partial
        self._first, self._head = genesis.number, head
        self._entries: dict[bytes, BlockEntry] = {genesis.hash: head}
        self._hashes = CanonicalHashes(self._first, [genesis.hash])
        self._side: dict[bytes, int] = {}
        self._positions: dict[bytes, tuple[bytes, int]] = {}
        self._blocks = RetentionWindow(self.limits.blocks, MIN_BLOCKS, self.limits.block_gas)
        self._states = RetentionWindow(self.limits.states, MIN_STATES, self.limits.state_gas)
        self._states.add_newest(genesis.header.gas_used)
        self._archived_layers: dict[bytes, Layer] = {}  # states of archived blocks

    # --- reading ----------------------------------------------------------------------------------

    @property
    def head(self) -> Block:
        """The newest canonical block."""
        return self._head.block

    @property
    def total_difficulty(self) -> int:
        """The sum of the difficulties up to the head."""
        return self._head.total_difficulty

    def knows(self, block_hash: bytes) -> bool:
        """Returns whether a block of any branch has this hash."""
        return block_hash in self._entries or self._archived_number(block_hash) is not None

    def in_memory(self, block_hash: bytes) -> bool:
        """Returns whether the block is in memory. Reading a file takes a millisecond or more."""
        return block_hash in self._entries

    def block_by_hash(self, block_hash: bytes) -> Block | None:
        """Returns a block of any branch, or None."""
        known = self._entries.get(block_hash) or self._archived_block(block_hash)
        return None if known is None else known.block

    def block_by_number(self, number: int) -> Block | None:
        """Returns the canonical block with this number, or None."""
        block_hash = self.canonical_hash(number)
        entry = None if block_hash is None else self._entries.get(block_hash)
        if entry is not None:
            return entry.block
        old = None if self.archive is None else self.archive.read(number)
        return None if old is None else old.block

    def canonical_hash(self, number: int) -> bytes | None:
        """Returns the hash of the canonical block with this number, or None."""
        first, hashes = self._hashes
        if number >= first:
            return hashes[number - first] if number - first < len(hashes) else None
        if number == self._first:
            return self.genesis.hash
        return None if self.archive is None else self.archive.hash_of(number)

    def is_canonical(self, block_hash: bytes) -> bool:
        """Returns whether the block is the head or one of its ancestors."""
        entry = self._entries.get(block_hash)
        if entry is None:
            return self._archived_number(block_hash) is not None
        return self.canonical_hash(entry.block.number) == block_hash

    def layer_of(self, block_hash: bytes) -> Layer:
        """Returns the state after a block of any branch.

        Raises :class:`UnknownBlockError`, or :class:`StateUnavailableError` if the state is no
        longer kept.
        """
        layer = self._archived_layers.get(block_hash)
        return self._result(block_hash).layer if layer is None else layer

    def has_state(self, block_hash: bytes) -> bool:
        """Returns whether the block and its state are available."""
        entry = self._entries.get(block_hash)
        return block_hash in self._archived_layers or (
            entry is not None and entry.result is not None
        )

    def oldest_state(self) -> int:
        """Returns the lowest number n such that the canonical states from block n on are kept."""
        low, high = self._first, self.head.number
        while low < high:
            middle = (low + high) // 2
            block_hash = self.canonical_hash(middle)
            if block_hash is not None and self.has_state(block_hash):
                high = middle
            else:
                low = middle + 1
        return low

    def receipts_of(self, block_hash: bytes) -> Sequence[Receipt]:
        """Returns the receipts of a block of any branch. Raises :class:`UnknownBlockError`."""
        return self._entry(block_hash).receipts

    def schedule_of(self, block_hash: bytes) -> ForkSchedule:
        """Returns the rules of a block of any branch. Raises :class:`UnknownBlockError`."""
        return self._entry(block_hash).schedule

    @property
    def has_base_time(self) -> bool:
        """Whether the head's timestamp has milliseconds, so that a block comes every 200 ms (Base,
        Denim).
        """
        return bool(self.schedule_of(self.head.hash).parameters["has_base_time"])

    def total_difficulty_of(self, block_hash: bytes) -> int:
        """Returns a block's total difficulty, on any branch. Raises :class:`UnknownBlockError`."""
        return self._entry(block_hash).total_difficulty

    def locate(self, transaction_hash: bytes) -> tuple[Block, int] | None:
        """Returns the canonical block that contains a transaction, and its index there."""
        position = self._positions.get(transaction_hash)
        entry = None if position is None else self._entries.get(position[0])
        if position is not None and entry is not None:
            return entry.block, position[1]
        return None if self.archive is None else self.archive.locate(transaction_hash)

    def ancestors(self, block_hash: bytes, limit: int = ANCESTOR_LIMIT) -> list[bytes]:
        """Returns the hashes of a block and its ancestors, newest first, at most ``limit``.

        `execute_block` takes the ancestors in this form. Raises :class:`UnknownBlockError`.
        """
        number = self._entry(block_hash).block.number
        hashes: list[bytes] = []
        while len(hashes) < limit and self.canonical_hash(number) != block_hash:
            hashes.append(block_hash)
            block_hash = self._entries[block_hash].block.header.parent_hash
            number -= 1
        low = max(number - (limit - len(hashes)), self._first - 1)
        first, kept = self._hashes
        hashes += kept[max(low + 1 - first, 0) : max(number + 1 - first, 0)][::-1]
        older = map(self.canonical_hash, range(min(number, first - 1), low, -1))
        return hashes + [known for known in older if known is not None]

    def state_before(self, parent: Header, timestamp: int) -> Layer:
        """Returns the state in which a child at ``timestamp`` (seconds) starts.

        Raises the errors of `layer_of`.
        """
        layer = self.layer_of(parent.hash)
        return state_before(self.config.activations, layer, parent, timestamp)

    def schedule_for_child(self, parent: Block | Header, timestamp: int) -> ForkSchedule:
        """Returns the rules of a child at ``timestamp`` (seconds).

        The parent may be on any branch.
        """
        header = parent.header if isinstance(parent, Block) else parent
        return child_schedule(self.config, self._entry(header.hash), timestamp)

    # --- writing ----------------------------------------------------------------------------------

    def add(self, block: Block | bytes, *, is_own: bool = False) -> BlockResult:
        """Verifies and executes a block (or its RLP) on its parent's state, and stores it.

        If the block is invalid, raises :class:`InvalidBlock` with the field, the expected and the
        actual value, and leaves the chain unchanged. A known block is not executed again. The block
        becomes the head if the fork choice prefers it. ``is_own``: this node built the block. Such
        a block is executed even if it is known, because the node may build an equal block after a
        revert. On a fork of another chain, such a block is not checked before its execution,
        because a developer may have set its gas limit, base fee and timestamp. Raises
        :class:`ResourceLimitError` if the thread's deadline stops the execution.
        """
        if not isinstance(block, Block):
            block = decode_block(bytes(block))
        if self.has_state(block.hash) and not is_own:
            return self._result(block.hash)
        parent = self._find(block.header.parent_hash)
        if parent is None:
            follows = block.number == self.head.number + 1
            raise InvalidBlock(
                block.number,
                "parent_hash",
                expected=self.head.hash if follows else "the hash of a known block",
                found=block.header.parent_hash,
            )
        entry, result = self._executed(block, parent, is_own=is_own)
        self._keep(entry)
        return result

    def append(self, block: Block, result: BlockResult) -> None:
        """Stores a block that this process built and executed, without further checks.

        Raises :class:`UnknownBlockError` if the parent is unknown.
        """
        header = block.header
        parent = self._entry(header.parent_hash)
        schedule = child_schedule(self.config, parent, header.timestamp)
        difficulty = parent.total_difficulty + header.difficulty
        block = block.with_access_list(result.access_list)
        self._keep(BlockEntry(block, schedule, difficulty, result.receipts, result))

    def adopt(
        self, block: Block, receipts: Sequence[Receipt], layer: Layer | None, position: int
    ) -> None:
        """Makes a verified child of the head the new head, without executing it again.

        ``layer``: the state after the block, or None if the state is not kept. ``position``: the
        byte offset of the block's record in the journal. Raises InvalidBlock if the header has
        another state root than ``layer``, unless states are partly known.
        """
        header, parent = block.header, self._head
        schedule = child_schedule(self.config, parent, header.timestamp)
        difficulty = parent.total_difficulty + header.difficulty
        known = unexecuted_result if self.partial else known_result
        result = None if layer is None else known(header, receipts, layer)
        self._entries[block.hash] = BlockEntry(
            block, schedule, difficulty, receipts, result, position
        )
        self._move_head(self._entries[block.hash])

    def readmit(self, block: Block, receipts: Sequence[Receipt], position: int) -> None:
        """Adds a side block without its state. The block must have been verified before.

        ``position``: see `adopt`. Raises :class:`UnknownBlockError` if the parent is unknown.
        """
        header = block.header
        parent = self._entry(header.parent_hash)
        schedule = child_schedule(self.config, parent, header.timestamp)
        difficulty = parent.total_difficulty + header.difficulty
        self._entries[block.hash] = BlockEntry(
            block, schedule, difficulty, receipts, None, position
        )
        self._side[block.hash] = block.number

    def continue_from(self, old: ArchivedBlock) -> None:
        """Makes the last archived block the head of a chain that contains only its genesis.

        The state of that block is unknown, so the next blocks must be added with `adopt`.
        """
        self._head = restored_entry(self.config, old, None)
        self._hashes = CanonicalHashes(old.block.number, [old.block.hash])

    def import_rlp(self, data: bytes, progress: Callable[[int, int], None] | None = None) -> int:
        """Adds blocks from concatenated RLP. Returns their number, known blocks included.

        ``progress(blocks, bytes)`` is called after each block. Raises :class:`InvalidBlock` for the
        first invalid block; the blocks before it stay.
        """
        at = count = 0
        while at < len(data):
            number = self.head.number + 1
            end = at + item_size(data, at, number)
            block = decode_block(data[at:end], number=number)
            if not self.knows(block.hash):
                self.add(block)
            at, count = end, count + 1
            if progress is not None:
                progress(count, at)
        return count

    def set_head(self, block_hash: bytes, layer: Layer | None = None) -> HeadChange:
        """Makes a known block the head, whatever the fork choice prefers.

        ``layer``: the state after that block, if the chain no longer keeps the state and the caller
        still has it. Raises the errors of `layer_of`.
        """
        if layer is not None and not self.has_state(block_hash):
            self._put_state(block_hash, layer)
        self._result(block_hash)
        if self.journal is not None:
            self.journal.move_head(block_hash)
        change = self._move_head(self._entry(block_hash))
        if not self._states:
            self._states.add_newest(self.head.header.gas_used)
        return change

    def amend(self, block_hash: bytes, accounts: Mapping[str, Any]) -> None:
        """Changes the state after a block without a transaction.

        For development only: other nodes cannot follow. ``accounts``: see `with_amendments`.
        Raises ValueError for an invalid member, and the errors of ``layer_of``.
        """
        layer = with_amendments(self._result(block_hash).layer, accounts)
        if self.journal is not None:
            self.journal.amend(block_hash, accounts)
        self._put_state(block_hash, layer)
        self.amendments += 1

    def replace_state(self, block_hash: bytes, layer: Layer) -> None:
        """Replaces the state after a block, because the block's execution used wrong values that
        the node had fetched.
        """
        self._put_state(block_hash, layer)
        self.amendments += 1

    def restart(
        self,
        config: ChainConfig,
        genesis: Block,
        layer: Layer,
        *,
        partial: bool = False,
        archive: Archive | None = None,
    ) -> None:
        """Removes all blocks and starts with another first block.

        For development only. Arguments: see the constructor. Raises ValueError if the header has
        another state root than the layer.
        """
        self._begin(config, genesis, layer, None, partial)
        self.archive = archive
        self.amendments += 1
        for listener in self._listeners:
            listener(HeadChange((), (genesis,)))

    def resume(
        self,
        config: ChainConfig,
        blocks: Sequence[tuple[Block, Sequence[Receipt]]],
        layer: Layer,
        *,
        archive: Archive | None = None,
        states: Mapping[bytes, Layer] | None = None,
    ) -> None:
        """Removes all blocks and continues a saved chain of connected blocks.

        For development only: nothing is executed. ``layer``: the state of the last block, which
        need not match the block's state root. ``states``: known states of other blocks, by block
        hash.
        """
        (first, receipts), *others = blocks
        self._begin(config, first, layer, None, True)
        self.partial, self.archive = False, archive
        self.amendments += 1
        known = states or {}
        entry = self._head
        entry.receipts = receipts
        for index, transaction in enumerate(first.transactions):
            self._positions[transaction.hash] = (first.hash, index)
        for listener in self._listeners:
            listener(HeadChange((), (first,)))
        for block, receipts in others:
            schedule = child_schedule(config, entry, block.header.timestamp)
            difficulty = entry.total_difficulty + block.header.difficulty
            old = known.get(block.hash)
            result = None if old is None else unexecuted_result(block.header, receipts, old)
            entry = BlockEntry(block, schedule, difficulty, receipts, result)
            self._entries[block.hash] = entry
        if others:
            entry.result = unexecuted_result(entry.block.header, entry.receipts, layer)
            old, head = known.get(first.hash), self._head
            head.result = (
                None if old is None else unexecuted_result(first.header, head.receipts, old)
            )
            self._move_head(entry)

    @contextmanager
    def keeping_states(self) -> Iterator[None]:
        """Returns a context in which the gas of blocks does not limit how many states are kept.

        A replay of the journal needs this context, because the replay may move the head back to an
        old block.
        """
        with self._states.unlimited_gas():
            yield
        self._drop_states()

    def on_head(self, listener: Callable[[HeadChange], None]) -> None:
        """Calls ``listener`` after every change of the head, on the thread that adds the block."""
        self._listeners.append(listener)

    # --- inside -----------------------------------------------------------------------------------

    def _entry(self, block_hash: bytes) -> BlockEntry:
        entry = self._find(block_hash)
        if entry is None:
            raise UnknownBlockError(f"block 0x{block_hash.hex()} is unknown")
        return entry

    def _find(self, block_hash: bytes) -> BlockEntry | None:
        """Returns the entry of a block from memory or the archive, or None if it is unknown."""
        entry = self._entries.get(block_hash)
        if entry is None and (old := self._archived_block(block_hash)) is not None:
            return restored_entry(self.config, old, self._archived_layers.get(block_hash))
        return entry

    def _put_state(self, block_hash: bytes, layer: Layer) -> None:
        entry = self._entries.get(block_hash)
        if entry is None:
            self._archived_layers[block_hash] = layer
        else:
            known = entry.result or unexecuted_result(entry.block.header, entry.receipts, layer)
            entry.result = replace(known, layer=layer)

    def _archived_number(self, block_hash: bytes) -> int | None:
        """Returns the number of an archived block."""
        return None if self.archive is None else self.archive.number_of(block_hash)

    def _archived_block(self, block_hash: bytes) -> ArchivedBlock | None:
        number = self._archived_number(block_hash)
        return None if number is None or self.archive is None else self.archive.read(number)

    def _result(self, block_hash: bytes) -> BlockResult:
        entry = self._entry(block_hash)
        if entry.result is None:
            raise StateUnavailableError(
                f"the state of block {entry.block.number} (0x{block_hash.hex()}) is no longer kept"
            )
        return entry.result

    def _executed(
        self, block: Block, parent: BlockEntry, *, is_own: bool
    ) -> tuple[BlockEntry, BlockResult]:
        """Verifies and executes a block. Returns its entry and result."""
        header = block.header
        schedule = child_schedule(self.config, parent, header.timestamp)
        if not (is_own and self.partial):
            check_unexecuted(self.config, block, parent, schedule)
        if block.ommers:
            self._validate_ommers(block, schedule)
        if self.check_seals:
            check_seals(block, schedule)
        layer = self.state_before(parent.block.header, header.timestamp)
        check_base_time(block, parent, layer, schedule)
        with stopped_by_deadline(block.number) as on_builder:
            result = execute_block(
                layer,
                block,
                schedule,
                chain_id=self.config.chain_id,
                deposit_contract=self.config.deposit_contract,
                ancestors=self.ancestors(header.parent_hash),
                state_root=not self.partial,
                threads=self.limits.threads,
                on_builder=on_builder,
            )
        validate_result(self.comparable(header, schedule, result), result, block.access_list)
        check_result(block, result.receipts, result.layer, schedule)
        block = block.with_access_list(result.access_list)
        difficulty = parent.total_difficulty + header.difficulty
        return BlockEntry(block, schedule, difficulty, result.receipts, result), result

    def comparable(self, header: Header, schedule: ForkSchedule, result: BlockResult) -> Header:
        """Returns the header that can be compared with the result of an execution.

        The roots of a partly known state cannot be computed. The header then gets the roots of the
        result.
        """
        if not self.partial:
            return header
        roots: dict[str, Any] = {"state_root": result.state_root}
        # withdrawals_root depends on the state, too
        if schedule.parameters["commits_to_withdrawals"]:
            roots["withdrawals_root"] = result.withdrawals_root
        return replace(header, **roots)

    def _validate_ommers(self, block: Block, schedule: ForkSchedule) -> None:
        depth = int(schedule.parameters["max_uncle_depth"]) + 1
        generations: dict[bytes, Generation] = {}
        included: set[bytes] = set()
        for block_hash in self.ancestors(block.header.parent_hash, depth):
            entry = self._entry(block_hash)
            number = entry.block.number + 1
            generations[block_hash] = Generation(
                entry.block.header,
                child_schedule(self.config, entry, entry.block.header.timestamp + 1),
                self.config.extra_data_at(number),
            )
            included.update(ommer.hash for ommer in entry.block.ommers)
        validate_ommers(block, schedule=schedule, ancestors=generations, included=included)

    def _keep(self, entry: BlockEntry) -> None:
        if self.journal is not None:
            entry.position = self.journal.keep(entry.block, entry.receipts)
        self._entries[entry.block.hash] = entry
        self._side[entry.block.hash] = entry.block.number
        if is_preferred(entry, self._head):
            self._move_head(entry)
        self._drop_side_blocks()

    def _move_head(self, entry: BlockEntry) -> HeadChange:
        """Makes ``entry`` the head: updates the indexes first, then publishes the head."""
        added = list(self._branch(entry))[::-1]
        fork = added[0].block.number if added else entry.block.number + 1
        removed = self._removed_from(fork)
        for gone in removed:
            self._side[gone.block.hash] = gone.block.number
            for transaction in gone.block.transactions:
                self._positions.pop(transaction.hash, None)
        for joined in added:
            self._side.pop(joined.block.hash, None)
            for index, transaction in enumerate(joined.block.transactions):
                self._positions[transaction.hash] = (joined.block.hash, index)
        archived = self._first if self.archive is None else self.archive.numbers.stop
        self._hashes = self._hashes.truncated(fork, archived)
        self._hashes.hashes.extend(joined.block.hash for joined in added)
        self._head = entry
        for window in (self._blocks, self._states):
            window.remove_newest(len(removed))
            for joined in added:
                window.add_newest(joined.block.header.gas_used)
        self._drop_states()
        change = HeadChange(
            tuple(gone.block for gone in removed), tuple(joined.block for joined in added)
        )
        for listener in self._listeners:
            listener(change)
        if self.archive is not None and self._blocks.is_over:
            self._drop_blocks(self.archive)
        return change

    def _removed_from(self, fork: int) -> list[BlockEntry]:
        """Returns the canonical blocks from number ``fork`` on, newest first.

        Reads archived blocks.
        """
        hashes = map(self.canonical_hash, range(self.head.number, fork - 1, -1))
        left = [self._entry(known) for known in hashes if known is not None]
        if self.archive is not None and self.archive.numbers.stop > fork:
            for entry in left:
                self._entries[entry.block.hash] = entry
                self._archived_layers.pop(entry.block.hash, None)
            self.archive.truncate(fork)
        return left

    def _branch(self, entry: BlockEntry) -> Iterator[BlockEntry]:
        """Yields this entry and its ancestors that are not canonical, newest first."""
        while self.canonical_hash(entry.block.number) != entry.block.hash:
            yield entry
            entry = self._entry(entry.block.header.parent_hash)

    def _drop_side_blocks(self) -> None:
        while len(self._side) > self.limits.side_blocks:
            dropped = {min(self._side, key=self._side.__getitem__)}
            for block_hash in sorted(self._side, key=self._side.__getitem__):
                if self._entries[block_hash].block.header.parent_hash in dropped:
                    dropped.add(block_hash)
            for block_hash in dropped:
                del self._side[block_hash]
                del self._entries[block_hash]

    def _drop_states(self) -> None:
        while self._states.is_over:
            block_hash = self.canonical_hash(self.head.number + 1 - len(self._states))
            assert block_hash is not None
            entry = self._entries.get(block_hash)
            if entry is not None:
                entry.result = None
            self._archived_layers.pop(block_hash, None)
            self._states.drop_oldest()

    def _drop_blocks(self, archive: Archive) -> None:
        """Moves the oldest blocks to the archive. A reader finds each block at any time."""
        try:
            while self._blocks.is_over:
                number = self.head.number + 1 - len(self._blocks)
                block_hash = self.canonical_hash(number)
                assert block_hash is not None
                self._archive_block(archive, self._entries[block_hash])
                self._blocks.drop_oldest()
            archive.flush()
        except OSError as error:  # the blocks stay in memory until the next head
            log.error("old blocks cannot be written and stay in memory: %s", error)

    def _archive_block(self, archive: Archive, entry: BlockEntry) -> None:
        block = entry.block
        archive.append(entry)
        if entry.result is not None:
            self._archived_layers[block.hash] = entry.result.layer
        for transaction in block.transactions:
            self._positions.pop(transaction.hash, None)
        del self._entries[block.hash]
