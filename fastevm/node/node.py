"""``Node``: a chain, a pool, a block producer, a feed and a sync service behind one interface."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from enum import Enum
from importlib import import_module
from typing import Any

import fastevm.node.following as syncing
from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.pending_block import PendingBlock, SliceListener, SliceListeners
from fastevm.chain.storage import Archive, DataDirectory, ScratchBlocks
from fastevm.core.crypto.secp256k1 import lanes_state
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.op_stack.predeploys import SEQUENCER_FEE_VAULT
from fastevm.core.execution.transaction.sidecar import BlobSidecar
from fastevm.core.execution.transaction.transaction import Transaction, restore
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX
from fastevm.core.execution.transaction.unsigned_sender import impersonated, with_named_sender
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.primitives.processor import IN_USE, REPLACED
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.errors import (
    FastevmError,
    ForkError,
    InvalidTransaction,
    TransactionDecodeError,
)
from fastevm.node import remote
from fastevm.node.dev_accounts import ETHER, DevAccount
from fastevm.node.development import Development
from fastevm.node.following.feed_hub import FeedHub
from fastevm.node.l1_charges import L1Charges
from fastevm.node.pending_state import newest_view
from fastevm.node.pool.admission import MAX_BYTES, MIN_TIP, check_pooled
from fastevm.node.pool.kzg import TrustedSetup
from fastevm.node.pool.pool import PoolLimits, TransactionPool
from fastevm.node.pool.predecode import PredecodedTransactions
from fastevm.node.production.attributes import EthereumAttributes
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.miner import Miner
from fastevm.node.production.seal_preconfirmed import seal_preconfirmed
from fastevm.node.production.simulated_l1 import (
    Deposit,
    DepositRefused,
    simulated_l1,
)
from fastevm.node.production.slice_builder import SliceBuilder
from fastevm.node.remote.chain_reset import ChainReset
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.rpc_client.messages import RpcRefusal
from fastevm.simulate import StateView

log = logging.getLogger(__name__)

DEFAULT_FEE_CAP = ETHER
DEFAULT_POLL_MS = 200
CODE = 'code_in_use{{algorithm="{}",code="{}"}}'  # gauge of what the processor made us choose
DEPOSIT_PREFIX = bytes([DEPOSIT_TX])
PRELOAD_SECONDS = 5.0  # after the start the KZG setup is loaded
REFUSALS = {
    "nonce too low": "nonce_too_low",
    "insufficient funds": "insufficient_funds",
    "already known": "already_known",
    "replacement transaction underpriced": "replacement_underpriced",
}


class Mining(Enum):
    """When a node makes blocks."""

    NEVER = "never"
    CADENCE = "cadence"
    INSTANT = "instant"
    MANUAL = "manual"


class Node:
    """The interface that the JSON-RPC server uses; ``pending()`` is safe from any thread.

    ``submit``, ``mine`` and ``add_block`` may take milliseconds and must not run on an event loop.
    """

    _preload: asyncio.TimerHandle | None
    min_tip = MIN_TIP  # wei for each gas that a submitted transaction must offer above the base fee
    max_transaction_bytes = MAX_BYTES  # of one without blobs
    afterwards: Callable[[Callable[[], object]], bool] | None = None
    """Takes work to be done when the answer to the request under way was sent; set by a server."""

    def __init__(
        self,
        chain: Chain,
        *,
        accounts: Sequence[DevAccount] = (),
        mining: Mining = Mining.NEVER,
        coinbase: bytes = bytes(20),
        pool_limits: PoolLimits | None = None,
        fee_cap: int = DEFAULT_FEE_CAP,
        allows_unprotected: bool = False,
        trusted_setup: TrustedSetup | None = None,
        directory: DataDirectory | None = None,
        fork: ForkHistory | None = None,
    ) -> None:
        """``directory``: claimed for the chain; ``stop`` closes it. OP stacks fix ``coinbase``.
        ``fork``: whose chain this one was forked from. ``allows_unprotected``: see EIP-155."""
        self.chain, self.accounts, self.mining = chain, tuple(accounts), mining
        self.fee_cap, self.allows_unprotected = fee_cap, allows_unprotected
        self.trusted_setup, self.fork, self.directory = trusted_setup, fork, directory
        self.metrics_registry = metrics = MetricsRegistry()
        layer = chain.layer_of(chain.head.hash)
        self.pool = TransactionPool(layer, pool_limits, L1Charges(chain).of)
        self._predecoded = PredecodedTransactions()
        self._rules: tuple[Header, ForkSchedule] | None = None  # of the head, see _next_rules
        self._pending: PendingBlock | None = None
        self._transaction_listeners: list[Callable[[Transaction], None]] = []
        self.l1 = simulated_l1(chain) if mining is not Mining.NEVER else None
        self._coinbase, self._preload = coinbase, None
        self.producer = self._new_producer()
        self.feed, self._slice_listeners = FeedHub(metrics), SliceListeners()
        self._slice_listeners.add(self.feed.publish)
        self.sync: syncing.SyncService | None = None
        self.development = None if mining is Mining.NEVER else self._new_development()
        self.state_of = self._new_fetcher()
        self.resets: ChainReset | None = None
        self.partial = self._new_partial()
        self.local_pending: remote.LocalPending | None = None
        if directory is not None:
            directory.report_to(metrics)
            self._restore(directory)

    def _new_producer(self) -> BlockProducer:
        kind = SliceBuilder if self.mining is Mining.CADENCE else BlockProducer
        source = self.l1 or EthereumAttributes(self._coinbase)
        metrics = self.metrics_registry
        return kind(self.chain, self.pool, self.built, source=source, metrics=metrics)

    def _new_fetcher(self) -> remote.TransactionState | None:
        """What fetches the state of transactions on a forked chain."""
        made = None if self.fork is None else remote.TransactionState(self.chain, self._newest)
        self.producer.missing_state = made
        return made

    def _new_partial(self) -> remote.PartialFollower | None:
        """What executes the blocks of the upstream on state that is known in part."""
        if self.fork is None or self.mining is not Mining.NEVER:
            return None

        def moved(history: ForkHistory) -> None:
            self.fork = history

        return remote.PartialFollower(self.chain, self.fork, self.metrics_registry, moved=moved)

    def _newest(self) -> tuple[Layer, Header]:
        """The newest state, and the header that transactions on it run under."""
        pending, block = self._pending, self.producer.open_block
        head = self.chain.head
        layer = self.chain.layer_of(head.hash) if pending is None else pending.layer
        return layer, head.header if block is None else block.header

    def _new_development(self) -> Development:
        miner = Miner(self.producer, self._paused, automine=self.mining is Mining.INSTANT)
        return Development(self.chain, self.pool, self.producer, miner, self._compact_pool_journal)

    def _paused(self) -> None:
        """Withdraw the block that a paused builder has published."""
        if self.builder is not None and self.builder.paused:
            self.publish(None)

    @property
    def config(self) -> ChainConfig:
        """The chain's constants."""
        return self.chain.config

    @property
    def coinbase(self) -> bytes:
        """Who gets the fees of the blocks that this node builds, 20 bytes."""
        if self.l1 is not None:
            return SEQUENCER_FEE_VAULT
        return self.producer.settings.coinbase or self._coinbase

    @property
    def history(self) -> ForkHistory | None:
        """What holds the blocks up to the fork; None for a chain that begins with its genesis."""
        return self.fork

    @property
    def builder(self) -> SliceBuilder | None:
        """The builder of slices; None when this node builds none."""
        return self.producer if isinstance(self.producer, SliceBuilder) else None

    @property
    def slice_cadence_ms(self) -> int | None:
        """Milliseconds between slices; None when nothing publishes pending blocks regularly."""
        follows = self.sync is not None and self.sync.has_slices
        publishes = follows or (self.builder is not None and not self.builder.paused)
        return self.config.slice_interval_ms if publishes else None

    @property
    def signed_chain_id(self) -> int | None:
        """The chain id in the signature of a legacy transaction; None before EIP-155."""
        head = self.chain.head.header
        rules = self.chain.schedule_for_child(head, head.timestamp + 1).parameters
        return self.config.chain_id if rules["has_chain_id_in_signature"] else None

    @property
    def sync_state(self) -> syncing.SyncState | None:
        """The progress of a follower's sync; None when it is in sync, and for other nodes."""
        return None if self.sync is None else self.sync.block_import.sync_state

    @property
    def upstream_age(self) -> float | None:
        """Seconds since a follower last had the head of its upstream; None for other nodes."""
        return None if self.sync is None else self.sync.upstream_age

    @property
    def connections(self) -> dict[str, bool]:
        """Whether the connections of a follower hold, by name; empty for other nodes."""
        return {} if self.sync is None else self.sync.connections

    @property
    def unverified(self) -> tuple[str, ...] | None:
        """The names of what a follower cannot check of its pending block; None without one."""
        return None if self.sync is None else self.sync.follower.unverified

    @property
    def building_fails(self) -> bool:
        """Whether the last slice that this node should have built ended with an error.

        Of a node that follows with partial state: whether the newest block did not match.
        """
        if self.partial is not None:
            return self.partial.doubts
        return self.builder is not None and self.builder.fails

    @property
    def pre_confirms(self) -> bool:
        """Whether who builds the pending block promises it; else it is a guess of this node."""
        return self.local_pending is None

    def pending(self) -> PendingBlock | None:
        """The newest pre-confirmed block; None when there is none."""
        return self._pending

    def next_block(self) -> PendingBlock | None:
        """The block that would be made next, where blocks are made on demand; else None.

        StateNotKnown on an event loop and ForkError, where the chain is remote.
        """
        return None if self.development is None else self.development.next_block.of_now()

    def newest_view(self) -> StateView:
        """The newest state, pending where there is one, for `fastevm.simulate` in this process.

        It stays as it is; ask again for newer ones, at most after each new `pending`.
        """
        return newest_view(self.chain, self._pending)

    def publish(self, pending: PendingBlock | None, notify: bool = True) -> None:
        """Replace the pending block; None withdraws it.

        ``notify``: whether it brings a new slice, for which listeners are called.
        """
        self._pending = pending
        if pending is not None and notify:
            self._slice_listeners.notify(pending)

    # --- listeners --------------------------------------------------------------------------------

    def on_head(self, listener: Callable[[HeadChange], None]) -> None:
        """Call ``listener(change)`` after every change of the head, on the thread that made it."""
        self.chain.on_head(listener)

    def on_slice(self, listener: SliceListener) -> None:
        """Call ``listener(pending, first_new_index)`` after every slice, on the builder's thread.

        It must return at once, because the next slice waits for it.
        """
        self._slice_listeners.add(listener)

    def on_transaction(self, listener: Callable[[Transaction], None]) -> None:
        """Call ``listener(transaction)`` for each one that enters the pool, on any thread."""
        self._transaction_listeners.append(listener)

    def on_foreign_chain(self, listener: Callable[[str], None]) -> None:
        """Call ``listener(text)`` when the upstream turns out to be on another chain.

        Without a listener the node keeps polling the upstream and serves its own chain.
        """
        if self.sync is not None:
            self.sync.on_foreign = listener

    # --- transactions and blocks ------------------------------------------------------------------

    @property
    def forwards(self) -> bool:
        """Whether submitted transactions go to another node."""
        return self.sync is not None

    @property
    def submits_at_once(self) -> bool:
        """Whether ``submit`` waits for no file, no other node and no block."""
        return self.sync is None and self.directory is None and not self.mines_at_once

    @property
    def mines_at_once(self) -> bool:
        """Whether ``submit`` builds a block, for which it may wait behind other blocks."""
        return self.development is not None and self.development.miner.automine

    @property
    def changes_at_once(self) -> bool:
        """Whether small changes of a development chain wait for no file, node or slice."""
        return (
            self.development is not None
            and self.directory is None
            and self.fork is None
            and (self.builder is None or self.builder.paused)
        )

    def put_off(self, work: Callable[[], object]) -> bool:
        """Leave a small change to be made when the answer to the request under way was sent.

        False where the caller must make it: nobody takes it, or blocks at an interval interfere.
        """
        return (
            self.afterwards is not None
            and self.changes_at_once
            and self.development is not None
            and self.development.miner.interval is None
            and self.afterwards(work)
        )

    def predecode(self, raws: Sequence[bytes]) -> None:
        """Decode transactions that are submitted next; several at once take less time."""
        self._predecoded.predecode(raws)

    def submit(self, raw: bytes) -> bytes:
        """Check a signed transaction, put it into the pool and return its 32-byte hash.

        TransactionDecodeError for bytes that are no transaction, InvalidTransaction for one that no
        block could include or that the pool refuses; nothing has changed then. A node that follows
        waits for its upstream: not on the event loop.
        """
        if self.sync is not None:
            return self.begin_to_forward(raw).result()
        return self._submitted(raw, self._admit(raw))

    def submit_signed(self, raw: bytes, sender: bytes) -> bytes:
        """As ``submit``, for what this process has signed with the key of ``sender`` (20 bytes)."""
        if self.sync is not None:
            return self.submit(raw)
        transaction = restore(raw, sender)
        self._add(transaction, None)
        return self._submitted(raw, transaction)

    def submit_impersonated(self, sender: bytes, fields: Mapping[str, Any]) -> bytes:
        """As ``submit``, for a transaction that ``sender`` (20 bytes) did not sign.

        ``fields`` as of `Transaction.build`. FastevmError by a node that builds no blocks.
        """
        if self.development is None:
            raise FastevmError("this node makes no blocks")
        transaction = impersonated(sender, fields, chain_id=self.signed_chain_id)
        self._add(transaction, None)
        return self._submitted(transaction.raw, transaction)

    def _submitted(self, raw: bytes, transaction: Transaction) -> bytes:
        """Record, announce and perhaps mine a transaction that the pool took; its hash."""
        if self.directory is not None:
            self._journal(self.directory, raw, transaction)
        self._tell(transaction)
        if self.state_of is not None:
            self._fetch_state(self.state_of, transaction)
        if self.mines_at_once and not self.put_off(self.producer.mine_each):
            self.producer.mine_each()
        return transaction.hash

    def _fetch_state(self, state: remote.TransactionState, transaction: Transaction) -> None:
        """Fetch what a transaction will read, so that no block waits for it."""
        if not self.mines_at_once:
            state.begin(transaction)
            return
        with contextlib.suppress(ForkError):  # said when the block is built
            state.fetch(transaction)

    def begin_to_forward(self, raw: bytes) -> Future[bytes]:
        """As ``submit`` of a node that follows, without waiting for what the upstream says.

        The future has what ``submit`` returns or raises then.
        """
        assert self.sync is not None
        transaction = self._admit(raw)
        try:
            return self.sync.begin(self._forward(self.sync, raw, transaction))
        except syncing.UpstreamError:
            self.pool.drop(transaction.hash)
            raise

    def deposit(self, wanted: Deposit) -> bytes:
        """Deposit from the simulated L1, at the start of the next block; the transaction's hash.

        DepositRefused (a ValueError) for a deposit that L1 would not take, and by a node that makes
        no blocks of a chain of the OP stack. InvalidTransaction when the data directory takes no
        file.
        """
        if self.l1 is None:
            raise DepositRefused("this node makes no blocks that begin with deposits")
        transaction = self.l1.deposit(wanted)
        with self.producer.lock:  # no block includes it before it is on the disk
            self.l1.add(transaction)
            if self.directory is not None:
                self._journal(self.directory, transaction.raw, transaction)
        if self.mines_at_once:
            self.producer.mine()
        return transaction.hash

    def mine(self, count: int = 1, *, timestamp: int | None = None) -> list[Block]:
        """Build and seal ``count`` blocks now and return them.

        ``timestamp`` (seconds): of the first block, not below what its parent allows. FastevmError
        when this node makes no blocks.
        """
        if self.mining is Mining.NEVER:
            raise FastevmError("this node makes no blocks")
        return self.producer.mine(count, timestamp=timestamp)

    def add_block(self, block: Block | bytes) -> BlockResult:
        """Import a block, as :meth:`Chain.add`, between two slices."""
        with self.producer.lock:
            if self.partial is None:
                return self.chain.add(block)
            return self.partial.add(block if isinstance(block, Block) else decode_block(block))

    def begin_anew(
        self, config: ChainConfig, block: Block, layer: Layer, fork: ForkHistory | None
    ) -> None:
        """Begin another chain with its first block and state; whatever waits is forgotten.

        ``fork``: whose chain it was forked from. FastevmError by a node that builds no blocks.
        """
        if self.development is None:
            raise FastevmError("this node makes no blocks")
        with self.producer.lock:
            left = (self.state_of, self.fork)
            self._forget_waiting()
            self.fork = fork
            archive = Archive(ScratchBlocks())
            self.chain.restart(config, block, layer, partial=fork is not None, archive=archive)
            self._begin_source()
            self.state_of = self._new_fetcher()
            self.development.forget()
            self.producer.settings.clear()
            self.producer.clock.set_now(block.header.timestamp)
            self.producer.restart()
        for one in left:
            if one is not None:
                one.close()

    def resume_at(
        self, config: ChainConfig, blocks: Sequence[tuple[Block, Sequence[Receipt]]], layer: Layer
    ) -> None:
        """Go on with a saved chain, as `Chain.resume`; whatever waits is forgotten.

        The clock shows the system's time, or that of the last block where this is later.
        FastevmError by a node that builds no blocks.
        """
        if self.development is None:
            raise FastevmError("this node makes no blocks")
        with self.producer.lock:
            self._forget_waiting()
            self.chain.resume(config, blocks, layer, archive=Archive(ScratchBlocks()))
            self._begin_source()
            self.development.forget()
            ahead = self.chain.head.header.timestamp - int(time.time())
            self.producer.clock.offset = max(0, ahead)
            self.producer.restart()

    def _forget_waiting(self) -> None:
        self.producer.abandon()
        for tx_hash in self.pool.hashes():
            self.pool.drop(tx_hash)
        self.publish(None)

    def _begin_source(self) -> None:
        self.l1 = simulated_l1(self.chain)
        self.producer.source = self.l1 or EthereumAttributes(self._coinbase)

    def dump_state(self) -> bytes:
        """The canonical chain and the state of its head as JSON text, as anvil writes it."""
        with self.producer.lock:
            self.producer.seal_open_block()
            self.producer.restart()
            return bytes(_saved_state().dumped_state(self))

    def load_state(self, data: bytes) -> None:
        """Go on with a chain that this node or anvil dumped; see `fastevm.node.saved_state`."""
        with self.producer.lock:
            self.producer.seal_open_block()
            _saved_state().load_state(self, data)
            self.producer.restart()

    def metrics(self) -> dict[str, float]:
        """Counters and gauges by name, without the prefix ``fastevm_``."""
        pending = self._pending
        values = self.metrics_registry.values() | {
            "pool_executable": self.pool.executable_count,
            "pool_queued": self.pool.queued_count,
            "pool_confirmed": self.pool.confirmed_count,
            "signature_lanes_open": int(lanes_state() == "open"),
            "code_replaced": len(REPLACED),
        }
        values |= {CODE.format(*found): 1 for found in IN_USE.items()}
        if self.directory is not None:
            values |= self.directory.values()
        if self.fork is not None:
            values |= self.fork.metrics()
        if self.sync is not None:
            values["upstream_age_seconds"] = self.sync.upstream_age
            values |= {f'pending_unverified{{member="{one}"}}': 1 for one in self.unverified or ()}
            if self.sync.feed_age is not None:
                values["feed_age_seconds"] = self.sync.feed_age
        if pending is not None:
            values["pending_number"] = pending.header.number
            values["pending_age_seconds"] = time.monotonic() - pending.published
        return values

    def follow(
        self,
        upstream_url: str,
        feed_url: str | None = None,
        *,
        poll_ms: int = DEFAULT_POLL_MS,
        pending_age: float = syncing.PENDING_AGE,
    ) -> None:
        """Follow another node from ``start`` on: its blocks and, with ``feed_url``, its slices.

        A feed that is lost leaves the pending block until its newest slice is ``pending_age``
        seconds old; 0 for no limit.

        Submitted transactions are forwarded to it. ValueError for a node that makes blocks, and for
        addresses that are none.
        """
        if self.mining is not Mining.NEVER:
            raise ValueError("a node that makes blocks cannot follow another")
        lock = self.producer.lock
        follower = syncing.FeedFollower(
            self.chain, self.followed, lock=lock, metrics=self.metrics_registry
        )
        follower.missing_state = self.state_of
        self.sync = syncing.SyncService(
            self.chain,
            follower,
            add_block=self.add_block,
            lock=lock,
            metrics=self.metrics_registry,
            upstream_url=upstream_url,
            feed_url=feed_url,
            poll_seconds=poll_ms / 1000,
            jump=None if self.partial is None else self._jump,
            lag_seconds=0.0 if self.partial is None else remote.LAG_SECONDS,
            pending_age=pending_age,
        )
        if feed_url is None and self.partial is not None and self.state_of is not None:
            self.local_pending = self._new_local_pending(self.state_of)

    def _new_local_pending(self, state: remote.TransactionState) -> remote.LocalPending:
        """What builds the pending block where no feed tells it."""

        def upstream() -> ForkHistory:
            assert self.fork is not None
            return self.fork

        made = remote.LocalPending(
            self.producer, state, upstream, lambda pending: self.publish(pending, notify=False)
        )
        self.on_transaction(made.wake)
        return made

    def _jump(self, block: Block) -> None:
        """Begin anew at a block of the upstream that is too far ahead to be reached."""
        assert self.partial is not None
        with self.producer.lock:
            self.partial.begin_at(block)

    async def start(self) -> None:
        """Begin to build blocks or to follow, if this node does that."""
        if self.sync is not None:
            await self.sync.start()
        if self.local_pending is not None:
            self.local_pending.start()
        if self.builder is not None:
            self.builder.start()
        if self.trusted_setup is not None and not self.mines_at_once:
            loop = asyncio.get_running_loop()
            self._preload = loop.call_later(PRELOAD_SECONDS, self.trusted_setup.preload)

    async def stop(self) -> None:
        """Stop building and following."""
        if self._preload is not None:
            self._preload.cancel()
        if self.sync is not None:
            await self.sync.stop()
        if self.local_pending is not None:
            await asyncio.to_thread(self.local_pending.stop)
        if self.development is not None:
            await asyncio.to_thread(self.development.miner.stop)
        await asyncio.to_thread(self.producer.stop)
        if self.state_of is not None and self.fork is not None:
            self.state_of.close()
            self.fork.close()
        if self.directory is not None:
            await asyncio.to_thread(self.directory.close)

    def built(self, pending: PendingBlock) -> None:
        """Publish a slice of this node; it is written to the data directory first."""
        if self.directory is not None:
            self.directory.slices.keep(pending)
        self.publish(pending)

    def followed(self, pending: PendingBlock | None, notify: bool) -> None:
        """Publish a pending block of the feed; its transactions leave the pool."""
        if pending is None:
            self.pool.reset(self.chain.layer_of(self.chain.head.hash))
        else:
            self.pool.reset(pending.layer, pending.transactions[pending.first_new :])
        self.publish(pending, notify)

    def _restore(self, directory: DataDirectory) -> None:
        """Seal what the last process pre-confirmed, and submit the journaled transactions again."""
        if self.mining is not Mining.NEVER:
            newest = directory.slices.newest()
            try:
                sealed = None if newest is None else seal_preconfirmed(self.chain, newest)
            except FastevmError as error:
                log.error("the pre-confirmed block could not be sealed: %s", error)
                self.metrics_registry.count("promises_broken_total")
            else:
                if sealed is not None:
                    self.chain.append(*sealed)
                    self.metrics_registry.count("promises_kept_total")
        waiting = directory.pool.restore(self._readmit, self._is_waiting)
        self.metrics_registry.set("pool_restored", waiting)

    def _readmit(self, raw: bytes) -> None:
        if self.l1 is not None and raw[:1] == DEPOSIT_PREFIX:
            deposit = Transaction.decode(raw)
            if self.chain.locate(deposit.hash) is None:
                self.l1.add(deposit)
            return
        with contextlib.suppress(InvalidTransaction, TransactionDecodeError):
            transaction, sidecar = self._predecoded.take(raw)
            self._add(with_named_sender(transaction), sidecar)

    def _is_waiting(self, tx_hash: bytes) -> bool:
        if self.l1 is not None and self.l1.is_waiting(tx_hash):
            return True
        return self.pool.find(tx_hash) is not None

    def _compact_pool_journal(self) -> None:
        if self.directory is not None:
            self.directory.pool.compact(self._is_waiting)

    def _journal(self, directory: DataDirectory, raw: bytes, transaction: Transaction) -> None:
        try:
            directory.pool.add(transaction.hash, raw, self._is_waiting)
        except OSError as error:
            self.pool.drop(transaction.hash)
            if self.l1 is not None:
                self.l1.drop(transaction.hash)
            text = "the transaction could not be written to the data directory"
            raise InvalidTransaction("storage", f"{text}: {error}") from error

    async def _forward(
        self, sync: syncing.SyncService, raw: bytes, transaction: Transaction
    ) -> bytes:
        """Submit a transaction to the upstream; what it refuses leaves the pool."""
        try:
            await sync.forward(raw)
        except RpcRefusal as error:
            if "already known" not in error.message:
                self.pool.drop(transaction.hash)
                raise InvalidTransaction(refusal_code(error.message), error.message) from error
        except syncing.UpstreamError:
            self.pool.drop(transaction.hash)
            raise
        self._tell(transaction)
        return transaction.hash

    def _tell(self, transaction: Transaction) -> None:
        for listener in self._transaction_listeners:
            listener(transaction)

    def _admit(self, raw: bytes) -> Transaction:
        transaction, sidecar = self._predecoded.take(raw)
        self._add(transaction, sidecar)
        return transaction

    def _add(self, transaction: Transaction, sidecar: BlobSidecar | None) -> None:
        parent, schedule = self._next_rules()
        settings = self.producer.settings
        if self.pool.find(transaction.hash) is not None:
            raise InvalidTransaction("already_known", "already known")
        if transaction.max_fee_per_gas < settings.min_gas_price:
            least = settings.min_gas_price
            raise InvalidTransaction("underpriced", f"transaction underpriced: below {least} wei")
        check_pooled(
            transaction,
            sidecar,
            schedule,
            chain_id=self.config.chain_id,
            gas_limit=settings.gas_limit or parent.gas_limit,
            fee_cap=self.fee_cap,
            allows_unprotected=self.allows_unprotected,
            min_tip=self.min_tip,
            max_bytes=self.max_transaction_bytes,
            setup=self.trusted_setup,
        )
        if self.fork is not None and transaction.sender is not None:
            # Known before the pool's lock is held; on an event loop that is StateNotKnown.
            self._newest()[0].account(transaction.sender)
        self.pool.add(transaction, sidecar)

    def _next_rules(self) -> tuple[Header, ForkSchedule]:
        """The head, and the rules of its child."""
        parent, cached = self.chain.head.header, self._rules
        if cached is None or cached[0] is not parent:
            cached = parent, self.chain.schedule_for_child(parent, parent.timestamp + 1)
            self._rules = cached
        return cached


def _saved_state() -> Any:
    """Loaded with the first dump: with its formats and zlib it takes 1 ms of a start."""
    return import_module("fastevm.node.saved_state")


def refusal_code(message: str) -> str:
    """Our code for the refusal message of another node."""
    for text, code in REFUSALS.items():
        if message.startswith(text):
            return code
    return "upstream"
