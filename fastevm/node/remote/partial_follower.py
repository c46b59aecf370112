"""Executes an upstream's blocks on partly known state, and verifies the results.

A block is executed on fetched values. Gas used, receipts root, bloom and requests must match the
block's header. The state root cannot be compared. A block reads every value before it writes it, so
a value that is still unknown has not changed since the base block. Full nodes no longer have the
state of the base block, so unknown values are fetched at the newest executed block.

After `GENERATION_BLOCKS` blocks or `KNOWN_LIMIT` bytes, the base moves to the head and a new
generation of known values begins. Values that are read move to the new generation, and the previous
one is kept until the next move (see `generation`).
"""

from __future__ import annotations

import logging
from typing import Any, Final

from fastevm.chain.block_run import stopped_by_deadline
from fastevm.chain.chain import Chain
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.storage import Archive, ScratchBlocks
from fastevm.core.execution.block.block import execute_block
from fastevm.core.execution.block.block_result import RESULT_FIELDS, BlockResult
from fastevm.core.execution.block.validation import validate_result
from fastevm.core.execution.types import Block
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import Found
from fastevm.errors import InvalidBlock
from fastevm.fork import RemoteSource
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.node.remote.generation import Generation
from fastevm.node.remote.transaction_state import remote
from fastevm.rpc_types.blocks import header_json

log = logging.getLogger(__name__)

# bytes of known values in one generation; two or three exist at a time
KNOWN_LIMIT: Final = 128 * 1024 * 1024
# maximum distance of the base in blocks; limits the chain of layers
GENERATION_BLOCKS: Final = 128
LAG_SECONDS: Final = 3.0  # several servers may share the upstream's URL, and some may lag
# canonical blocks whose states are kept, together with the values that these states need
FOLLOWED_STATES: Final = 256
ACCOUNT_BYTES: Final = 400  # estimated size of an account that a block changed, with a few slots

# Header fields that depend on state; the other fields can be checked without execution.
OUTCOMES: Final = frozenset(RESULT_FIELDS) - {"state_root", "withdrawals_root"}


class PartialFollower:
    """Adds the blocks of an upstream to a chain whose states are partly known.

    The base moves to the head when it is more than ``blocks`` blocks old, or when the known values
    above it exceed ``limit`` bytes. ``history``: the upstream; `begin_at` replaces it. ``doubts``:
    whether the newest block failed verification.
    """

    def __init__(
        self,
        chain: Chain,
        history: ForkHistory,
        metrics: MetricsRegistry,
        *,
        limit: int = KNOWN_LIMIT,
        blocks: int = GENERATION_BLOCKS,
    ) -> None:
        self.chain, self.history, self.metrics, self.limit = chain, history, metrics, limit
        self.blocks = blocks
        self.doubts = False
        for name in ("mismatches", "wrong_values", "unverified_blocks", "bases", "restarts"):
            metrics.count(f"fork_{name}_total", 0)
        chain.on_head(self._head_moved)

    def add(self, block: Block) -> BlockResult:
        """Verifies and executes a block. Raises InvalidBlock or ForkError.

        The caller must hold the lock of the chain.
        """
        if self.is_full():
            self.move_base(self.chain.head)
        parent = self.chain.block_by_hash(block.header.parent_hash)
        if parent is not None and self.chain.has_state(parent.hash):
            self._ask_at(parent)
        try:
            result = self.chain.add(block)
        except InvalidBlock as error:
            if not _is_outcome(error):
                raise
            log.warning("%s; what the block read is fetched anew", error)
            self.metrics.count("fork_mismatches_total")
            result = self._added_after_repair(block)
        self.doubts = False
        return result

    # --- mismatches -------------------------------------------------------------------------------

    def _added_after_repair(self, block: Block) -> BlockResult:
        """Adds a block again after refetching state of its parent. Raises InvalidBlock."""
        parent = self._parent_of(block)
        truth = self._truth(block, parent)
        if truth is None:
            self.doubts = True
            self.metrics.count("fork_unverified_blocks_total")
            raise InvalidBlock(
                block.number,
                "state",
                expected="values of the parent's state that lead to this block",
                found=f"other values at {self.history.name}",
            )
        layer = self.chain.layer_of(parent.hash)
        wrong = differences(layer, truth)
        count = sum(("balance" in fields) + len(fields["storage"]) for fields in wrong.values())
        self.metrics.count("fork_wrong_values_total", count)
        for address, fields in wrong.items():
            log.warning(
                "wrong values of account 0x%s, slots %s", address.hex(), list(fields["storage"])
            )
        self.move_base(parent, truth)
        return self.chain.add(block)

    def _truth(self, block: Block, parent: Block) -> Found | None:
        """Refetches values that the block reads.

        Returns them, or None if the block is still invalid.
        """
        state = RemoteState(self._history_at(parent))
        chain, header = self.chain, block.header
        schedule = chain.schedule_for_child(parent, header.timestamp)
        try:
            with stopped_by_deadline(block.number) as on_builder:
                result = execute_block(
                    self.history.prepared(state, schedule),
                    block,
                    schedule,
                    chain_id=chain.config.chain_id,
                    deposit_contract=chain.config.deposit_contract,
                    ancestors=chain.ancestors(parent.hash),
                    state_root=False,
                    on_builder=on_builder,
                )
            validate_result(chain.comparable(header, schedule, result), result)
        except InvalidBlock as error:
            log.error("on fetched values too: %s", error)
            return None
        return state.known_values()

    def _parent_of(self, block: Block) -> Block:
        parent = self.chain.block_by_hash(block.header.parent_hash)
        assert parent is not None
        return parent

    # --- the block at which values are fetched ----------------------------------------------------

    def _source_at(self, block: Block) -> RemoteSource:
        return self.history.source.at(header_json(block.header, block.hash))

    def _history_at(self, block: Block) -> ForkHistory:
        return ForkHistory(self._source_at(block), self.history.options, self.history.prepared)

    def _ask_at(self, block: Block) -> None:
        """Sets the block at which missing values are fetched."""
        source = _source_of(self.chain.layer_of(block.hash))
        if source.newest.block_hash != block.hash:
            source.newest = self._source_at(block)

    def _head_moved(self, change: HeadChange) -> None:
        self._ask_at(self.chain.head)

    def is_full(self) -> bool:
        """Returns whether the base is too old, or the known values above it are too large."""
        head = self.chain.head
        layer = self.chain.layer_of(head.hash)
        if head.number >= _source_of(layer).block_number + self.blocks:
            return True
        return remote(layer).size + layer.account_count * ACCOUNT_BYTES > self.limit

    def move_base(self, block: Block, truth: Found | None = None) -> None:
        """Starts a generation at a block. Drops values that the previous generation did not read.

        ``truth``: values of the block's state that override known values. The states of earlier
        blocks keep their values, for a reorganisation.
        """
        layer = self.chain.layer_of(block.hash)
        old = _source_of(layer)
        if isinstance(old, Generation):
            old.before = None
        fresh = RemoteState(Generation(self._source_at(block), layer))
        if truth is not None:
            fresh.put(truth)
        self.metrics.count("fork_bases_total")
        self.chain.replace_state(block.hash, Layer.remote(fresh))

    def begin_at(self, block: Block) -> None:
        """Restarts the chain at a block of the upstream and drops all known values.

        The caller must hold the lock of the chain. Raises ForkError.
        """
        config = self.chain.config
        history = self._history_at(block)
        schedule = config.activations.at(block.number, block.header.timestamp)
        layer = history.prepared(RemoteState(history), schedule)
        self.history = history
        self.metrics.count("fork_restarts_total")
        self.chain.restart(config, block, layer, partial=True, archive=Archive(ScratchBlocks()))


def _source_of(layer: Layer) -> ForkHistory | Generation:
    """Returns the source of values that the state lacks."""
    source = remote(layer).source
    assert isinstance(source, (ForkHistory, Generation))
    return source


def differences(layer: Layer, truth: Found) -> dict[bytes, dict[str, Any]]:
    """Returns the accounts whose values differ between ``layer`` and ``truth``, with their true
    values.
    """
    wrong: dict[bytes, dict[str, Any]] = {}
    for address, found in truth.accounts.items():
        account = (layer.balance(address), layer.nonce(address), layer.code(address))
        if account != (found.balance, found.nonce, found.code):
            fields = {"balance": found.balance, "nonce": found.nonce, "code": found.code}
            wrong[address] = {**fields, "storage": {}}
    for (address, slot), value in truth.slots.items():
        if layer.storage(address, slot) != value:
            wrong.setdefault(address, {"storage": {}})["storage"][slot] = value
    return wrong


def _is_outcome(error: InvalidBlock) -> bool:
    return error.field in OUTCOMES or error.field.startswith(("transactions[", "system call"))
