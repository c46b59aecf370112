"""Replaces the whole chain of a development node by a reset or a saved chain."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import with_amendments
from fastevm.chain.pending_block import PendingBlock
from fastevm.chain.storage import Archive, ScratchBlocks
from fastevm.core.execution.types import Block
from fastevm.core.state.layer import Layer
from fastevm.node.pool.pool import TransactionPool
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.simulated_l1 import attributes_source
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.node.remote.remote_state import LocalState
from fastevm.node.saved_state import dumped_state, read_state, saved_blocks, saved_states
from fastevm.rpc_types.anvil_state import BlockAndReceipts


class ChainReplacement:
    """Replaces the chain of a node.

    Drops pooled transactions, the pending block and the snapshots. ``coinbase`` (20 bytes) receives
    the fees of later blocks, except on chains of the OP Stack. ``publish(None)`` withdraws the
    pending block, and ``forget()`` deletes the snapshots. ``attach_remote`` replaces the
    remote-state part of the node and returns the previous part.
    """

    def __init__(
        self,
        chain: Chain,
        pool: TransactionPool,
        producer: BlockProducer,
        *,
        coinbase: bytes,
        publish: Callable[[PendingBlock | None], None],
        forget: Callable[[], None],
        attach_remote: Callable[[ForkHistory | None], LocalState],
    ) -> None:
        self.chain, self.pool, self.producer, self.coinbase = chain, pool, producer, coinbase
        self.publish, self.forget, self.attach_remote = publish, forget, attach_remote

    def begin_anew(
        self, config: ChainConfig, block: Block, layer: Layer, fork: ForkHistory | None
    ) -> None:
        """Starts a new chain from its first block and state.

        ``fork``: the upstream node if the new chain is a fork, else None.
        """
        producer = self.producer
        with producer.lock:
            self._drop_waiting()
            archive = Archive(ScratchBlocks())
            self.chain.restart(config, block, layer, partial=fork is not None, archive=archive)
            self._begin_source()
            before = self.attach_remote(fork)
            self.forget()
            producer.settings.clear()
            producer.clock.set_now(block.header.timestamp)
            producer.restart()
        before.close()

    def resume_at(
        self,
        config: ChainConfig,
        blocks: Sequence[BlockAndReceipts],
        layer: Layer,
        states: Mapping[bytes, Layer] | None = None,
    ) -> None:
        """Continues a saved chain, see `Chain.resume`.

        Sets the clock to the system's time, or to the last block's timestamp if that is later.
        """
        producer = self.producer
        with producer.lock:
            self._drop_waiting()
            archive = Archive(ScratchBlocks())
            self.chain.resume(config, blocks, layer, archive=archive, states=states)
            self._begin_source()
            self.forget()
            ahead = self.chain.head.header.timestamp - int(time.time())
            producer.clock.offset = max(0, ahead)
            producer.restart()

    def dump_state(self, *, historical: bool = False) -> bytes:
        """Returns the canonical chain and the state of its head as JSON text, in anvil's format.

        ``historical``: include the states of older blocks. Seals the block under construction
        first.
        """
        with self.producer.lock:
            self.producer.seal_open_block()
            self.producer.restart()
            return dumped_state(self.chain, historical=historical)

    def load_state(self, data: bytes, limit: int | None = None) -> None:
        """Loads a chain that fastevm or anvil dumped as JSON, with or without gzip.

        Accounts that are not in the dump keep their values, as in anvil, and so does the chain id.
        A forked chain loads only the accounts. ``limit``: maximum size of the decompressed text in
        bytes. Raises ValueError with the reason. In that case only the block under construction has
        been sealed.
        """
        chain, producer = self.chain, self.producer
        with producer.lock:
            producer.seal_open_block()
            if chain.journal is not None:
                raise ValueError("a node with a data directory cannot load another chain")
            saved = read_state(data, limit)
            below = chain.layer_of(chain.head.hash)
            layer = with_amendments(below, saved.accounts)
            blocks = () if chain.partial else saved_blocks(saved, layer)
            if blocks:
                self.resume_at(chain.config, blocks, layer, saved_states(saved, below))
            else:
                chain.replace_state(chain.head.hash, layer)
            producer.restart()

    def _drop_waiting(self) -> None:
        self.producer.abandon()
        for tx_hash in self.pool.hashes():
            self.pool.drop(tx_hash)
        self.publish(None)

    def _begin_source(self) -> None:
        self.producer.source = attributes_source(self.chain, self.coinbase)
