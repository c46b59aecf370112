"""``Node``: a chain, a pool and the parts that a node may have, behind one interface.

Each part is an object that always exists. A class whose name begins with ``No`` stands for an
absent part.

=============== ============================ =============================================
attribute       classes                      what it does
=============== ============================ =============================================
``producer``    BlockProducer, SliceBuilder  builds blocks from the pool, with slices or without
``follower``    NoFollower, Follower         takes blocks and slices from another node
``development`` NoDevelopment,               changes time, accounts and blocks of a
                DevelopmentControls          development chain; decides when it mines
``remote``      LocalState, ForkedState,     fetches state that another node holds
                PartialState
``storage``     NoStorage, NodeStorage       writes slices and transactions to disk
``submission``  Submission                   checks transactions and puts them into the pool
=============== ============================ =============================================
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from enum import Enum
from typing import Any

from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.pending_block import PendingBlock, SliceListener, SliceListeners
from fastevm.chain.storage import DataDirectory
from fastevm.core.crypto.secp256k1 import lanes_state
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.op_stack.base_time import millis_part
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header
from fastevm.core.primitives.processor import IN_USE, REPLACED
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock
from fastevm.node.dev_accounts import DevAccount
from fastevm.node.development import DevelopmentControls, NoDevelopment
from fastevm.node.following import PENDING_AGE, SyncState
from fastevm.node.following.feed_hub import FeedHub
from fastevm.node.following.follower import DEFAULT_POLL_MS, Follower, NoFollower
from fastevm.node.l1_charges import L1Charges
from fastevm.node.pending_state import pending_state
from fastevm.node.pool.kzg import TrustedSetup
from fastevm.node.pool.pool import PoolLimits, TransactionPool
from fastevm.node.production.attributes import AttributesSource
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.deposits import Deposit
from fastevm.node.production.followed_l1 import FollowedL1
from fastevm.node.production.simulated_l1 import attributes_source
from fastevm.node.production.slice_builder import SliceBuilder
from fastevm.node.remote import ForkedState, LocalState, PartialState
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.node.storage import NodeStorage, NoStorage
from fastevm.node.submission import DEFAULT_FEE_CAP, Submission
from fastevm.simulate import StateView

# gauge: which implementation was selected for this processor
CODE = 'code_in_use{{algorithm="{}",code="{}"}}'
MAX_BAD_BLOCKS = 10  # as many as geth keeps
PRELOAD_SECONDS = 5.0  # seconds after the start at which the KZG setup is loaded


class Mining(Enum):
    """When a node makes blocks."""

    NEVER = "never"
    CADENCE = "cadence"
    INSTANT = "instant"
    MANUAL = "manual"


def is_forecast(pending: PendingBlock) -> bool:
    """Returns whether a pending block is a forecast, which contains no pooled transactions.

    On Base since Denim, every pending block is a forecast.
    """
    return millis_part(pending.transactions) is not None


class Node:
    """The node as the JSON-RPC server uses it. ``pending()`` is thread-safe.

    ``mine`` and ``add_block`` may take milliseconds and must not run on an event loop. Neither must
    ``submit``, unless ``submits_at_once`` is true.
    """

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
        """Creates a node. ``directory``: the chain's open data directory, which ``stop`` closes.

        ``fork``: the upstream of a forked chain. ``coinbase`` (20 bytes): the fee recipient, except
        on OP Stack chains. ``fee_cap`` and ``allows_unprotected``: see :class:`Submission`.
        """
        self.chain, self.accounts, self.mining = chain, tuple(accounts), mining
        self.directory, self.trusted_setup = directory, trusted_setup
        # Number of blocks from the head to ``safe``, and from ``safe`` to ``finalized``. 0: both
        # are the head.
        self.slots_in_an_epoch = 0
        self.bad_blocks: deque[Block] = deque(maxlen=MAX_BAD_BLOCKS)  # blocks that failed to import
        self._preload: asyncio.TimerHandle | None = None
        self._pending: PendingBlock | None = None
        self.metrics_registry = metrics = MetricsRegistry()
        self.feed, self._slice_listeners = FeedHub(metrics), SliceListeners()
        self._slice_listeners.add(self.feed.publish)
        layer = chain.layer_of(chain.head.hash)
        self.pool = TransactionPool(layer, pool_limits, L1Charges(chain).of)
        self.producer = self._new_producer(coinbase)
        self.remote = self._new_remote(fork)
        self.producer.missing_state = self.remote.fetcher
        self.storage = NoStorage()
        if directory is not None:
            directory.report_to(metrics)
            self.storage = NodeStorage(directory, self._is_waiting)
        self.development = self._new_development(coinbase)
        self.submission = Submission(
            chain,
            self.pool,
            self.producer,
            storage=self.storage,
            development=self.development,
            fee_cap=fee_cap,
            allows_unprotected=allows_unprotected,
            trusted_setup=trusted_setup,
        )
        self.follower = NoFollower(self.submission)
        if mining is not Mining.NEVER:
            self.storage.seal_preconfirmed(chain, metrics)
        self.storage.restore_pool(self.submission.readmit, metrics)

    # --- the parts --------------------------------------------------------------------------------

    def _new_producer(self, coinbase: bytes) -> BlockProducer:
        kind = SliceBuilder if self.mining is Mining.CADENCE else BlockProducer
        source: AttributesSource = FollowedL1(self.chain, coinbase)
        if self.mining is not Mining.NEVER:
            source = attributes_source(self.chain, coinbase)
        metrics = self.metrics_registry
        return kind(self.chain, self.pool, self.built, source=source, metrics=metrics)

    def _new_development(self, coinbase: bytes) -> NoDevelopment:
        if self.mining is Mining.NEVER:
            return NoDevelopment()
        return DevelopmentControls(
            self.chain,
            self.pool,
            self.producer,
            self.storage,
            automine=self.mining is Mining.INSTANT,
            coinbase=coinbase,
            publish=self.publish,
            attach_remote=self._attach_remote,
        )

    def _new_remote(self, fork: ForkHistory | None) -> LocalState:
        if fork is None:
            return LocalState(self.chain)
        if self.mining is not Mining.NEVER:
            return ForkedState(self.chain, fork, self._newest)
        lock, metrics = self.producer.lock, self.metrics_registry
        return PartialState(self.chain, fork, self._newest, lock=lock, metrics=metrics)

    def _attach_remote(self, fork: ForkHistory | None) -> LocalState:
        """Replaces the remote-state part when another chain starts. Returns the previous part."""
        before, self.remote = self.remote, self._new_remote(fork)
        self.producer.missing_state = self.remote.fetcher
        return before

    def follow(
        self,
        upstream_url: str,
        feed_url: str | None = None,
        *,
        poll_ms: int = DEFAULT_POLL_MS,
        pending_age: float = PENDING_AGE,
    ) -> None:
        """Makes the node follow another node after ``start``.

        The node takes blocks from ``upstream_url`` and, with ``feed_url``, slices from the feed. If
        the feed is lost, the pending block stays until its newest slice is ``pending_age`` seconds
        old; 0: no limit. Submitted transactions are forwarded to the upstream. Raises ValueError
        for a node that builds blocks, and for invalid addresses.
        """
        if self.mining is not Mining.NEVER:
            raise ValueError("a node that makes blocks cannot follow another")
        self.follower = Follower(
            self.submission,
            self.remote,
            add_block=self.add_block,
            publish=self.followed,
            publish_guess=lambda pending: self.publish(pending, notify=False),
            metrics=self.metrics_registry,
            upstream_url=upstream_url,
            feed_url=feed_url,
            poll_ms=poll_ms,
            pending_age=pending_age,
        )

    async def start(self) -> None:
        """Starts to build blocks or to follow another node, if this node does either."""
        await self.follower.start()
        self.producer.start()
        if self.trusted_setup is not None and not self.mines_at_once:
            loop = asyncio.get_running_loop()
            self._preload = loop.call_later(PRELOAD_SECONDS, self.trusted_setup.preload)

    async def stop(self) -> None:
        """Stops building and following, and closes the data directory."""
        if self._preload is not None:
            self._preload.cancel()
        await self.follower.stop()
        await asyncio.to_thread(self.development.stop)
        await asyncio.to_thread(self.producer.stop)
        self.remote.close()
        await asyncio.to_thread(self.storage.close)

    # --- properties -------------------------------------------------------------------------------

    @property
    def config(self) -> ChainConfig:
        """The chain's constants."""
        return self.chain.config

    @property
    def coinbase(self) -> bytes:
        """The fee recipient of the blocks that this node builds, 20 bytes."""
        return self.producer.coinbase

    @property
    def fee_cap(self) -> int:
        """The maximum in wei that a submitted transaction may offer for its gas, or 0 for no
        limit.
        """
        return self.submission.fee_cap

    @property
    def signed_chain_id(self) -> int | None:
        """The chain id in the signature of a legacy transaction, or None before EIP-155."""
        return self.submission.signed_chain_id

    @property
    def history(self) -> ForkHistory | None:
        """The upstream that has the blocks up to the fork, or None if the chain is not forked."""
        return self.remote.history

    @property
    def slice_cadence_ms(self) -> int | None:
        """Milliseconds between slices. None if nothing publishes pending blocks regularly."""
        publishes = self.follower.has_slices or self.producer.makes_slices
        return self.config.slice_interval_ms if publishes else None

    @property
    def sync_state(self) -> SyncState | None:
        """The progress of a follower's sync. None if it is in sync, and on other nodes."""
        return self.follower.sync_state

    @property
    def upstream_age(self) -> float | None:
        """Seconds since a follower last had the head of its upstream. None on other nodes."""
        return self.follower.upstream_age

    @property
    def blocks_replace_slices(self) -> bool:
        """Whether blocks come every 200 ms and there are no slices (Base, Denim)."""
        return self.chain.has_base_time

    @property
    def connections(self) -> dict[str, bool]:
        """Whether the connections of a follower are open, by name. Empty for other nodes."""
        return self.follower.connections

    @property
    def unverified(self) -> tuple[str, ...] | None:
        """Names of pending-block values that cannot be verified.

        None if there is no pending block.
        """
        return self.follower.unverified

    @property
    def building_fails(self) -> bool:
        """Whether the last slice that this node built ended with an error.

        On a follower with partial state: whether the newest block failed verification.
        """
        return self.remote.doubts or self.producer.fails

    @property
    def pre_confirms(self) -> bool:
        """Whether the sequencer pre-confirmed the pending block.

        False if this node guessed the block.
        """
        pending = self._pending
        if pending is not None and is_forecast(pending):
            return False
        return not self.follower.guesses_pending

    @property
    def forwards(self) -> bool:
        """Whether submitted transactions are forwarded to another node."""
        return self.follower.forwards

    @property
    def submits_at_once(self) -> bool:
        """Whether ``submit`` never waits for a file, another node or a block."""
        return not (self.forwards or self.storage.writes_files or self.mines_at_once)

    @property
    def mines_at_once(self) -> bool:
        """Whether each submitted transaction is mined immediately."""
        return self.development.mines_at_once

    def metrics(self) -> dict[str, float]:
        """Returns counters and gauges by name, without the prefix ``fastevm_``."""
        pending = self._pending
        values = self.metrics_registry.values() | {
            "pool_executable": self.pool.executable_count,
            "pool_queued": self.pool.queued_count,
            "pool_confirmed": self.pool.confirmed_count,
            "signature_lanes_open": int(lanes_state() == "open"),
            "code_replaced": len(REPLACED),
        }
        values |= {CODE.format(*found): 1 for found in IN_USE.items()}
        for part in (self.storage, self.remote, self.follower):
            values |= part.metrics()
        if pending is not None:
            values["pending_number"] = pending.header.number
            values["pending_age_seconds"] = time.monotonic() - pending.published
        return values

    # --- the pending block ------------------------------------------------------------------------

    def pending(self) -> PendingBlock | None:
        """Returns the newest pre-confirmed block, or None."""
        return self._pending

    def next_block(self) -> PendingBlock | None:
        """Returns the next block of a node that mines on demand, or None for other nodes.

        On a fork, raises StateNotKnown on an event loop, and ForkError.
        """
        return self.development.pending()

    def newest_view(self) -> StateView:
        """Returns a view of the newest state, pending if possible, for `fastevm.simulate`.

        The view does not change. For a newer view, call this method again after each new `pending`.
        """
        return pending_state(self.chain, self._pending)

    def _newest(self) -> tuple[Layer, Header]:
        """Returns the newest state, and the header of the open block or, if there is none, of the
        head.
        """
        pending, block = self._pending, self.producer.open_block
        head = self.chain.head
        layer = self.chain.layer_of(head.hash) if pending is None else pending.layer
        return layer, head.header if block is None else block.header

    def publish(self, pending: PendingBlock | None, notify: bool = True) -> None:
        """Replaces the pending block. None withdraws it.

        ``notify``: call the listeners, because the block has a new slice.
        """
        before, self._pending = self._pending, pending
        if pending is not None and notify:
            self._slice_listeners.notify(pending)
        elif pending is None and before is not None:
            self._slice_listeners.notify_withdrawn()

    def built(self, pending: PendingBlock) -> None:
        """Publishes a slice that this node built, after writing it to the data directory.

        If the pending block is a forecast, publishes only slice 0 and does not call listeners.
        """
        if is_forecast(pending):
            if pending.slice_index == 0:
                self.publish(pending, notify=False)
            return
        self.storage.keep_slice(pending)
        self.publish(pending)

    def followed(self, pending: PendingBlock | None, notify: bool) -> None:
        """Publishes a pending block of the feed. The transactions of the block leave the pool."""
        if pending is None:
            self.pool.reset(self.chain.layer_of(self.chain.head.hash))
        else:
            self.pool.reset(pending.layer, pending.transactions[pending.first_new :])
        self.publish(pending, notify)

    # --- listeners --------------------------------------------------------------------------------

    def on_head(self, listener: Callable[[HeadChange], None]) -> None:
        """Calls ``listener(change)`` after every change of the head, on the thread that made it."""
        self.chain.on_head(listener)

    def on_slice(self, listener: SliceListener) -> None:
        """Calls ``listener(pending, first_new_index)`` after every slice, on the builder's thread.

        The listener must return immediately, because the next slice waits for it.
        """
        self._slice_listeners.add(listener)

    def on_withdrawal(self, listener: Callable[[], None]) -> None:
        """Calls ``listener()`` when the pending block is withdrawn without a replacement.

        The listener runs on the thread that withdraws the block, and must return immediately.
        """
        self._slice_listeners.add_withdrawal(listener)

    def on_transaction(self, listener: Callable[[Transaction], None]) -> None:
        """Calls ``listener(transaction)`` on any thread whenever a transaction enters the pool."""
        self.submission.on_transaction(listener)

    def on_foreign_chain(self, listener: Callable[[str], None]) -> None:
        """Calls ``listener(text)`` when the upstream turns out to be on another chain.

        Without a listener the node keeps polling the upstream and serves its own chain.
        """
        self.follower.on_foreign_chain(listener)

    # --- transactions and blocks ------------------------------------------------------------------

    def predecode(self, raws: Sequence[bytes]) -> None:
        """Decodes transactions that will be submitted soon, because decoding many together is
        faster.
        """
        self.submission.predecode(raws)

    def submit(self, raw: bytes) -> bytes:
        """Checks a signed transaction and adds it to the pool. Returns its 32-byte hash.

        Raises TransactionDecodeError for bytes that are no transaction, and InvalidTransaction if
        no block could include the transaction or the pool refuses it. Nothing changes in these
        cases. On a follower, the method waits for the upstream and must not run on the event loop.
        """
        return self.follower.submit(raw)

    def submit_next(self, raw: bytes) -> bytes:
        """Works like `submit`, but refuses a transaction whose nonce leaves a gap.

        InvalidTransaction then has the code ``nonce_gap``, and ``want`` is the next nonce.
        """
        return self.submission.submit(raw, may_queue=False)

    def submit_signed(self, raw: bytes, sender: bytes) -> bytes:
        """Submits a transaction that this process signed with the key of ``sender`` (20 bytes)."""
        return self.follower.submit_signed(raw, sender)

    def submit_impersonated(self, sender: bytes, fields: Mapping[str, Any]) -> bytes:
        """Submits an unsigned transaction of ``sender`` (20 bytes). Returns its hash.

        ``fields``: see `Transaction.build`. Raises FastevmError if this node builds no blocks.
        """
        self.development.required()
        return self.submission.submit_impersonated(sender, fields)

    def begin_to_forward(self, raw: bytes) -> Future[bytes]:
        """Sends a transaction to the upstream of a follower, without waiting for the answer.

        The future has the transaction's hash, or the exception that ``submit`` would raise.
        """
        return self.follower.begin_to_forward(raw)

    def deposit(self, wanted: Deposit) -> bytes:
        """Adds a deposit from the simulated L1 and returns its hash, see `Submission.deposit`."""
        return self.submission.deposit(wanted)

    def mine(self, count: int = 1, *, timestamp: int | None = None) -> list[Block]:
        """Builds and seals ``count`` blocks now and returns them.

        ``timestamp``: the timestamp of the first block in seconds, not below what its parent
        allows. Raises FastevmError if this node builds no blocks.
        """
        return self.development.required().producer.mine(count, timestamp=timestamp)

    def add_block(self, block: Block | bytes) -> BlockResult:
        """Imports a block between two slices, see :meth:`Chain.add`.

        ``bad_blocks`` keeps the last invalid blocks that could be decoded.
        """
        with self.producer.lock:
            try:
                return self.remote.add_block(block)
            except InvalidBlock:
                self._keep_bad(block)
                raise

    def _keep_bad(self, block: Block | bytes) -> None:
        with contextlib.suppress(InvalidBlock):  # for bytes that are no block
            bad = block if isinstance(block, Block) else decode_block(block)
            if all(bad.hash != kept.hash for kept in self.bad_blocks):
                self.bad_blocks.append(bad)

    def dump_state(self, *, historical: bool = False) -> bytes:
        """Returns the chain as JSON text, see `ChainReplacement.dump_state`."""
        return self.development.required().replacement.dump_state(historical=historical)

    def load_state(self, data: bytes, limit: int | None = None) -> None:
        """Loads a dumped chain, see `ChainReplacement.load_state`."""
        self.development.required().replacement.load_state(data, limit)

    def _is_waiting(self, tx_hash: bytes) -> bool:
        return self.submission.is_waiting(tx_hash)
