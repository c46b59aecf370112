"""Removes the newest blocks of a development chain, or replaces them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fastevm.chain.chain import Chain
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction, StateUnavailableError
from fastevm.node.pool.pool import TransactionPool
from fastevm.node.production.block_producer import BlockProducer

MAX_DEPTH: Final = 10_000  # most blocks that one request may remove


class ChainRewriting:
    """Removes blocks. As in anvil, their transactions do not return to the pool.

    A block under construction that has transactions is sealed first. A method that raises
    ValueError, with the reason, changes nothing else. ``dropped()`` is called after transactions
    left the pool.
    """

    def __init__(
        self,
        chain: Chain,
        pool: TransactionPool,
        producer: BlockProducer,
        dropped: Callable[[], None],
    ) -> None:
        self.chain, self.pool, self.producer, self.dropped = chain, pool, producer, dropped

    def ancestor(self, depth: int) -> tuple[Block, Layer]:
        """Returns the block ``depth`` before the head, and its state."""
        head, first = self.chain.head.number, self.chain.genesis.number
        if depth > min(head - first, MAX_DEPTH):
            highest = min(head - first, MAX_DEPTH)
            raise ValueError(f"depth {depth} of a chain at block {head}, limit {highest}")
        block = self.chain.block_by_number(head - depth)
        assert block is not None
        try:
            return block, self.chain.layer_of(block.hash)
        except StateUnavailableError as error:
            raise ValueError(str(error)) from None

    def rollback(self, depth: int) -> None:
        """Removes the newest ``depth`` blocks."""
        with self.producer.lock:
            self.producer.seal_open_block()
            block, layer = self.ancestor(depth)
            self._move_to(block, layer)
            self.producer.restart()

    def reorganise(self, depth: int, blocks: Mapping[int, Sequence[Transaction]]) -> None:
        """Replaces the newest ``depth`` blocks by the same number of blocks with other hashes.

        ``blocks``: the transactions of new blocks, by the index of the block from 0. Blocks without
        an entry are empty.
        """
        for position in blocks:
            if position >= depth:
                raise ValueError(f"block {position} of a reorganisation of {depth}")
        with self.producer.lock:
            self.producer.seal_open_block()
            old, block = self.chain.head, self.ancestor(depth)
            old_layer = self.chain.layer_of(old.hash)
            self._move_to(*block)
            randomness = keccak256(old.hash)
            self.producer.settings.set_child(block[0].hash, prev_randao=randomness)
            try:
                for position in range(depth):
                    self.producer.mine_with(blocks.get(position, ()))
            except InvalidTransaction as error:
                self._move_to(old, old_layer)
                raise ValueError(f"a transaction cannot be included: {error}") from error
            finally:
                self.producer.restart()

    def _move_to(self, block: Block, layer: Layer) -> None:
        """Makes a block the head. Transactions of removed blocks do not return to the pool."""
        if block.hash == self.chain.head.hash:
            return
        waiting = self.pool.hashes()
        self.chain.set_head(block.hash, layer)
        for tx_hash in self.pool.hashes() - waiting:
            self.pool.drop(tx_hash)
        self.dropped()
