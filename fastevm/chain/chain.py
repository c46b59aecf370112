"""The store of blocks: every branch with its states, and which of them is canonical."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from fastevm.chain.config import ChainConfig
from fastevm.chain.dao import drained
from fastevm.chain.genesis import read_accounts
from fastevm.errors import InvalidBlock, StateUnavailableError, UnknownBlockError
from fastevm.execution.block import execute_block
from fastevm.execution.decoding import decode_block
from fastevm.execution.ethash import validate_seal
from fastevm.execution.result import BlockResult
from fastevm.execution.validation import (
    Generation,
    validate_body,
    validate_header,
    validate_ommers,
    validate_result,
)
from fastevm.spec.schedule import ForkSchedule
from fastevm.state.layer import Layer
from fastevm.types import Block, Header, Receipt

ANCESTOR_LIMIT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLimits:
    """How much a chain keeps.

    ``side_blocks``: blocks off the canonical chain; the lowest are dropped first. ``states``:
    states of canonical blocks, from the head downwards; older ones can be named but not read.
    """

    side_blocks: int = 1_024
    states: int = 65_536


class HeadChange(NamedTuple):
    """What a new head did to the canonical chain: blocks that left it and blocks that joined it.

    ``removed`` runs from the old head downwards, ``added`` upwards to the new head.
    """

    removed: tuple[Block, ...]
    added: tuple[Block, ...]


class Journal(Protocol):
    """Is told of every change before it happens; what it raises keeps the change from happening."""

    def keep(self, block: Block, receipts: Sequence[Receipt]) -> None: ...
    def move_head(self, block_hash: bytes) -> None: ...
    def amend(self, block_hash: bytes, accounts: Mapping[str, Any]) -> None: ...


@dataclass(slots=True)
class _Entry:
    """A block that the chain holds; ``result`` goes when its state is no longer kept."""

    block: Block
    schedule: ForkSchedule
    total_difficulty: int
    receipts: tuple[Receipt, ...]
    result: BlockResult | None

    @property
    def merged(self) -> bool:
        return bool(self.schedule.parameters["proof_of_stake"])


class Chain:
    """Blocks from one genesis block on, all executed and verified.

    One thread may add at a time; any thread may read meanwhile, and sees a block only when it is
    complete. Before the merge the branch with the greatest total difficulty is canonical (the first
    seen among equals), after it the longest (the last seen among equals), unless :meth:`set_head`
    says otherwise.
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
    ) -> None:
        """``genesis`` is the first block and ``layer`` the state after it.

        It may be any block of a chain: ``total_difficulty`` is then the one up to it. ValueError
        when the state root of the header is not that of the layer. ``check_seals``: blocks before
        the merge, and ommers, need their proof of work (ethash), else only its difficulty is looked
        at; the cache of an epoch takes a second or two.
        """
        self.config = config
        self.genesis = genesis
        self.limits = limits or ChainLimits()
        self.check_seals = check_seals
        self._first = genesis.number
        self._head = _first_entry(config, genesis, layer, total_difficulty)
        self._entries: dict[bytes, _Entry] = {genesis.hash: self._head}
        self._canonical: list[bytes] = [genesis.hash]
        self._side: dict[bytes, int] = {}
        self._positions: dict[bytes, tuple[bytes, int]] = {}
        self._listeners: list[Callable[[HeadChange], None]] = []
        self.journal: Journal | None = None

    # --- reading ----------------------------------------------------------------------------------

    @property
    def head(self) -> Block:
        """The newest canonical block."""
        return self._head.block

    @property
    def safe(self) -> Block:
        """The block of the tag ``safe``: the head, for nobody else builds on this chain."""
        return self.head

    @property
    def finalized(self) -> Block:
        """The block of the tag ``finalized``: the head, as for ``safe``."""
        return self.head

    @property
    def total_difficulty(self) -> int:
        """The sum of the difficulties up to the head."""
        return self._head.total_difficulty

    def block_by_hash(self, block_hash: bytes) -> Block | None:
        """A block of any branch, or None."""
        entry = self._entries.get(block_hash)
        return None if entry is None else entry.block

    def block_by_number(self, number: int) -> Block | None:
        """The canonical block of this number, or None."""
        block_hash = self.canonical_hash(number)
        return None if block_hash is None else self.block_by_hash(block_hash)

    def canonical_hash(self, number: int) -> bytes | None:
        """The hash of the canonical block of this number, or None."""
        index, canonical = number - self._first, self._canonical
        return canonical[index] if 0 <= index < len(canonical) else None

    def is_canonical(self, block_hash: bytes) -> bool:
        """Whether the block is an ancestor of the head, or the head."""
        entry = self._entries.get(block_hash)
        return entry is not None and self.canonical_hash(entry.block.number) == block_hash

    def layer_of(self, block_hash: bytes) -> Layer:
        """The state after a block of any branch.

        :class:`UnknownBlockError`; :class:`StateUnavailableError` when it is no longer kept.
        """
        return self._result(block_hash).layer

    def has_state(self, block_hash: bytes) -> bool:
        """Whether the block is known and its state is kept."""
        entry = self._entries.get(block_hash)
        return entry is not None and entry.result is not None

    def oldest_state(self) -> int:
        """The number of the first block from which on the states of all canonical ones are kept."""
        low, high = self._first, self.head.number
        while low < high:
            middle = (low + high) // 2
            if self.has_state(self._canonical[middle - self._first]):
                high = middle
            else:
                low = middle + 1
        return low

    def receipts_of(self, block_hash: bytes) -> tuple[Receipt, ...]:
        """The receipts of a block of any branch; :class:`UnknownBlockError`."""
        return self._entry(block_hash).receipts

    def schedule_of(self, block_hash: bytes) -> ForkSchedule:
        """The rules that a block of any branch was executed under; :class:`UnknownBlockError`."""
        return self._entry(block_hash).schedule

    def total_difficulty_of(self, block_hash: bytes) -> int:
        """The sum of the difficulties up to a block of any branch; :class:`UnknownBlockError`."""
        return self._entry(block_hash).total_difficulty

    def locate(self, transaction_hash: bytes) -> tuple[Block, int] | None:
        """The canonical block that holds a transaction, and its index in it."""
        position = self._positions.get(transaction_hash)
        if position is None:
            return None
        entry = self._entries.get(position[0])
        return None if entry is None else (entry.block, position[1])

    def ancestors(self, block_hash: bytes, limit: int = ANCESTOR_LIMIT) -> list[bytes]:
        """The block's own hash and those of the blocks before it, newest first, at most ``limit``.

        Just what the execution of a child wants. :class:`UnknownBlockError`.
        """
        entry = self._entry(block_hash)
        hashes = [block_hash]
        while len(hashes) < limit:
            parent = self._entries.get(entry.block.header.parent_hash)
            if parent is None:
                break
            hashes.append(entry.block.header.parent_hash)
            entry = parent
        return hashes[:limit]

    def schedule_for_child(self, parent: Block | Header, timestamp: int) -> ForkSchedule:
        """The rules of a child at ``timestamp`` (seconds) of a block of any branch."""
        header = parent.header if isinstance(parent, Block) else parent
        return self._child_schedule(self._entry(header.hash), timestamp)

    # --- writing ----------------------------------------------------------------------------------

    def add(self, block: Block | bytes) -> BlockResult:
        """Verify and execute a block (or its RLP) on its parent's state, and keep it.

        Raises :class:`InvalidBlock`, naming field, expected and found, and changes nothing then. A
        block that is known already is not executed again. Becomes the head where the fork rule says
        so.
        """
        if not isinstance(block, Block):
            block = decode_block(bytes(block))
        known = self._entries.get(block.hash)
        if known is not None and known.result is not None:
            return known.result
        parent = self._entries.get(block.header.parent_hash)
        if parent is None:
            follows = block.number == self.head.number + 1
            raise InvalidBlock(
                block.number,
                "parent_hash",
                expected=self.head.hash if follows else "the hash of a known block",
                found=block.header.parent_hash,
            )
        entry, result = self._executed(block, parent)
        self._keep(entry)
        return result

    def append(self, block: Block, result: BlockResult) -> None:
        """Keep a block that this process built and executed itself; nothing is checked again.

        Raises :class:`UnknownBlockError` when the parent is unknown.
        """
        header = block.header
        parent = self._entry(header.parent_hash)
        schedule = self._child_schedule(parent, header.timestamp)
        difficulty = parent.total_difficulty + header.difficulty
        self._keep(_Entry(block, schedule, difficulty, result.receipts, result))

    def adopt(self, block: Block, receipts: tuple[Receipt, ...], layer: Layer | None) -> None:
        """Make a child of the head the head, as it was verified before, without executing it.

        Its state is ``layer``; None when that is not kept. InvalidBlock for another state.
        """
        header, parent = block.header, self._head
        schedule = self._child_schedule(parent, header.timestamp)
        difficulty = parent.total_difficulty + header.difficulty
        result = None
        if layer is not None:
            result = _known_result(header, receipts, layer)
        self._entries[block.hash] = _Entry(block, schedule, difficulty, receipts, result)
        self._move_head(self._entries[block.hash])

    def import_rlp(self, data: bytes, progress: Callable[[int, int], None] | None = None) -> int:
        """Add blocks that stand one after the other as RLP; how many there were, known or not.

        ``progress(blocks, bytes)`` is called after each block. At the first invalid block
        :class:`InvalidBlock` is raised and the blocks before it stay.
        """
        at = count = 0
        while at < len(data):
            number = self.head.number + 1
            end = at + _item_size(data, at, number)
            block = decode_block(data[at:end], number=number)
            if block.hash not in self._entries:
                self.add(block)
            at, count = end, count + 1
            if progress is not None:
                progress(count, at)
        return count

    def set_head(self, block_hash: bytes) -> HeadChange:
        """Make a known block the head, whatever the fork rule says; :class:`UnknownBlockError`."""
        entry = self._entry(block_hash)
        if self.journal is not None:
            self.journal.move_head(block_hash)
        return self._move_head(entry)

    def amend(self, block_hash: bytes, accounts: Mapping[str, Any]) -> None:
        """Change the state after a block, by nobody's transaction.

        For development only: no other node can follow. ``accounts`` as in a genesis file; what is
        not named keeps its value. ValueError names a wrong member, else errors as of ``layer_of``.
        """
        entry, result = self._entry(block_hash), self._result(block_hash)
        layer = result.layer.with_accounts(read_accounts(accounts))
        if self.journal is not None:
            self.journal.amend(block_hash, accounts)
        entry.result = replace(result, layer=layer)

    def on_head(self, listener: Callable[[HeadChange], None]) -> None:
        """Call ``listener`` after every change of the head, on the thread that adds."""
        self._listeners.append(listener)

    # --- inside -----------------------------------------------------------------------------------

    def _entry(self, block_hash: bytes) -> _Entry:
        entry = self._entries.get(block_hash)
        if entry is None:
            raise UnknownBlockError(f"block 0x{block_hash.hex()} is unknown")
        return entry

    def _result(self, block_hash: bytes) -> BlockResult:
        entry = self._entry(block_hash)
        if entry.result is None:
            raise StateUnavailableError(
                f"the state of block {entry.block.number} (0x{block_hash.hex()}) is no longer kept"
            )
        return entry.result

    def _child_schedule(self, parent: _Entry, timestamp: int) -> ForkSchedule:
        terminal = self.config.activations.terminal_total_difficulty
        after_merge = None
        if parent.merged:
            after_merge = True
        elif terminal is not None:
            after_merge = parent.total_difficulty >= terminal
        return self.config.activations.at(
            parent.block.number + 1, timestamp, after_merge=after_merge
        )

    def _executed(self, block: Block, parent: _Entry) -> tuple[_Entry, BlockResult]:
        """Everything that is to be known of a block before it is kept."""
        header = block.header
        schedule = self._child_schedule(parent, header.timestamp)
        extra_data = self.config.extra_data_at(parent.block.number + 1)
        validate_header(
            header,
            parent.block.header,
            schedule,
            extra_data=extra_data,
            least_timestamp_step=self.config.least_timestamp_step,
        )
        validate_body(block, schedule)
        if block.ommers:
            self._validate_ommers(block, schedule)
        if self.check_seals and not schedule.parameters["proof_of_stake"]:
            for sealed in (header, *block.ommers):
                validate_seal(sealed)
        layer = self._result(header.parent_hash).layer
        if header.number == self.config.activations.dao_block:
            layer = drained(layer)
        result = execute_block(
            layer,
            block,
            schedule,
            chain_id=self.config.chain_id,
            deposit_contract=self.config.deposit_contract,
            ancestors=self.ancestors(header.parent_hash),
        )
        validate_result(header, result)
        difficulty = parent.total_difficulty + header.difficulty
        return _Entry(block, schedule, difficulty, result.receipts, result), result

    def _validate_ommers(self, block: Block, schedule: ForkSchedule) -> None:
        depth = int(schedule.parameters["max_uncle_depth"]) + 1
        generations: dict[bytes, Generation] = {}
        included: set[bytes] = set()
        for block_hash in self.ancestors(block.header.parent_hash, depth):
            entry = self._entries[block_hash]
            number = entry.block.number + 1
            generations[block_hash] = Generation(
                entry.block.header,
                self._child_schedule(entry, entry.block.header.timestamp + 1),
                self.config.extra_data_at(number),
            )
            included.update(ommer.hash for ommer in entry.block.ommers)
        validate_ommers(block, schedule=schedule, ancestors=generations, included=included)

    def _keep(self, entry: _Entry) -> None:
        if self.journal is not None:
            self.journal.keep(entry.block, entry.receipts)
        self._entries[entry.block.hash] = entry
        self._side[entry.block.hash] = entry.block.number
        if self._is_better(entry):
            self._move_head(entry)
        self._drop_side_blocks()

    def _is_better(self, entry: _Entry) -> bool:
        head = self._head
        if entry.merged != head.merged:
            return entry.merged
        if entry.merged:
            return entry.block.number >= head.block.number
        return entry.total_difficulty > head.total_difficulty

    def _move_head(self, entry: _Entry) -> HeadChange:
        """Publish a canonical chain that ends in ``entry``: its parts first, the head last."""
        added = list(self._branch(entry))[::-1]
        fork = (added[0].block.number if added else entry.block.number + 1) - self._first
        removed = [self._entries[block_hash] for block_hash in self._canonical[fork:]][::-1]
        for left in removed:
            self._side[left.block.hash] = left.block.number
            for transaction in left.block.transactions:
                self._positions.pop(transaction.hash, None)
        for joined in added:
            self._side.pop(joined.block.hash, None)
            for index, transaction in enumerate(joined.block.transactions):
                self._positions[transaction.hash] = (joined.block.hash, index)
        if removed:
            self._canonical = self._canonical[:fork]
        self._canonical.extend(joined.block.hash for joined in added)
        self._head = entry
        self._drop_states()
        change = HeadChange(
            tuple(left.block for left in removed), tuple(joined.block for joined in added)
        )
        for listener in self._listeners:
            listener(change)
        return change

    def _branch(self, entry: _Entry) -> Iterator[_Entry]:
        """The entries from this one down to the first that is canonical, that one left out."""
        while self.canonical_hash(entry.block.number) != entry.block.hash:
            yield entry
            entry = self._entries[entry.block.header.parent_hash]

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
        index = len(self._canonical) - 1 - self.limits.states
        while index >= 0:
            entry = self._entries[self._canonical[index]]
            if entry.result is None:
                break
            entry.result = None
            index -= 1


def _first_entry(
    config: ChainConfig, block: Block, layer: Layer, total_difficulty: int | None
) -> _Entry:
    header = block.header
    try:
        result = _known_result(header, (), layer)
    except InvalidBlock as error:
        raise ValueError(str(error)) from None
    schedule = config.activations.at(header.number, header.timestamp)
    difficulty = header.difficulty if total_difficulty is None else total_difficulty
    return _Entry(block, schedule, difficulty, (), result)


def _known_result(header: Header, receipts: tuple[Receipt, ...], layer: Layer) -> BlockResult:
    """The result of a block that is not executed here; what it requested is not known."""
    root = layer.state_root()
    if root != header.state_root:
        raise InvalidBlock(header.number, "state_root", expected=header.state_root, found=root)
    return BlockResult(
        layer=layer,
        state_root=root,
        receipts=receipts,
        receipts_root=header.receipts_root,
        logs_bloom=header.logs_bloom,
        gas_used=header.gas_used,
        blob_gas_used=header.blob_gas_used,
        requests_hash=header.requests_hash,
    )


def _item_size(data: bytes, at: int, number: int) -> int:
    """The size of the RLP list that starts at ``at``, its header included."""
    first = data[at]
    if first < 0xC0:
        raise InvalidBlock(number, "rlp", expected="a list", found=f"the byte 0x{first:02x}")
    if first <= 0xF7:
        size = 1 + first - 0xC0
    else:
        width = first - 0xF7
        size = 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "big")
    if size > len(data) - at:
        expected = f"{size} bytes from offset {at}"
        raise InvalidBlock(number, "rlp", expected=expected, found=f"{len(data) - at}")
    return size
