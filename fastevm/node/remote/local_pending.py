"""The pending block of a follower without a feed. This node builds it on the newest state.

The block contains transactions that this node forwarded, and those that the upstream reports as
pending. They are not pre-confirmed, so the block serves reads and simulations but no receipts. If
blocks replace slices (Base, Denim), the block is a forecast with only the transactions that the
next block begins with.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX
from fastevm.core.execution.types import Block
from fastevm.core.state.remote import resolved
from fastevm.core.state.source import Wanted
from fastevm.errors import FastevmError, ForkError, InvalidTransaction
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.sliced_block import open_child_block
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.node.remote.transaction_state import TransactionState, remote
from fastevm.rpc_client.messages import RpcRefusal
from fastevm.rpc_types.transactions import transaction_from_json

log = logging.getLogger(__name__)

OFFER_SECONDS: Final = 1.0  # seconds between requests for the upstream's pending block
REFUSED_SECONDS: Final = 60.0  # seconds until the next request after the upstream refused
OFFERED_LIMIT: Final = 1_024  # most transactions taken from the upstream's block
FETCHED_TOGETHER: Final = 256  # transactions whose state is fetched together
FILL_SECONDS: Final = 0.2  # most seconds of execution per update, while no block is imported
SLICES_LIMIT: Final = 64  # most slices, each a layer, before the block is restarted
# seconds until a transaction is tried again whose state is being fetched
AWAIT_SECONDS: Final = 0.02
LATEST_SECONDS: Final = 5.0  # seconds to wait for the thread to end


class NoLocalPending:
    """Builds no pending block, because the node has a feed or complete states."""

    is_built = False

    def start(self) -> None:
        """Starts building."""

    def stop(self) -> None:
        """Stops building."""

    def wake(self, transaction: Transaction | None = None) -> None:
        """Checks for new transactions immediately. Thread-safe."""


class Forecasts(NoLocalPending):
    """Publishes a forecast of the next block, if blocks replace slices (Base, Denim).

    Calls on ``pending`` run in the forecast, which has no pooled transactions. Before Denim nothing
    is published.
    """

    def __init__(self, producer: BlockProducer, publish: Callable[[PendingBlock], None]) -> None:
        self.producer, self.chain, self.publish = producer, producer.chain, publish
        self.chain.on_head(self._head_moved)

    def start(self) -> None:
        """Publishes the forecast above the head."""
        self._head_moved()

    def _head_moved(self, change: HeadChange | None = None) -> None:
        if not self.chain.has_base_time:
            return
        try:
            self.publish(forecast(self.producer, self.chain.head))
        except FastevmError as error:
            log.warning("the next block could not be forecast: %s", error)


def forecast(producer: BlockProducer, head: Block) -> PendingBlock:
    """Returns a child of the head with only the transactions that it begins with.

    On remote state, raises ForkError, and StateNotKnown on an event loop.
    """
    chain, source = producer.chain, producer.source
    attributes = source.attributes(head, source.fixed_timestamp(head) or head.header.timestamp)
    block = resolved(
        chain.layer_of(head.hash),
        lambda: open_child_block(chain, attributes, attempt=0, parent=head),
    )
    return block.close_slice()


class LocalPending(NoLocalPending):
    """Keeps a pending block above the head. Passes each version to ``publish``.

    ``history`` returns the upstream. ``state`` fetches the state of transactions.
    """

    is_built = True

    def __init__(
        self,
        producer: BlockProducer,
        state: TransactionState,
        history: Callable[[], ForkHistory],
        publish: Callable[[PendingBlock], None],
    ) -> None:
        self.producer, self.state = producer, state
        self.history, self.publish = history, publish
        self.chain, self.pool, self.metrics = producer.chain, producer.pool, producer.metrics
        self._offered: dict[bytes, Transaction] = {}
        # transactions in the pool that other nodes submitted
        self._guests: set[bytes] = set()
        self._fetched: set[bytes] = set()  # transactions whose state was fetched
        self._ask_at = 0.0  # monotonic seconds
        self._wake, self._stopping = threading.Event(), False
        self._thread: threading.Thread | None = None
        for name in ("asked", "blocks", "failures", "offered"):
            self.metrics.count(f"local_pending_{name}_total", 0)
        self.chain.on_head(self._head_moved)

    def start(self) -> None:
        """Starts building, in a separate thread."""
        self._thread = threading.Thread(target=self._run, name="fastevm-pending", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops building."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(LATEST_SECONDS)

    def wake(self, transaction: Transaction | None = None) -> None:
        """Checks for new transactions immediately. Thread-safe."""
        self._wake.set()

    def _head_moved(self, change: HeadChange) -> None:
        self._ask_at = min(self._ask_at, time.monotonic())
        self._wake.set()

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping:
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopping:
                return
            try:
                pause = self._renew()
            except Exception as error:
                if not isinstance(error, FastevmError):
                    log.exception("the pending block could not be built")
                else:
                    log.warning("the pending block could not be built: %s", error)
                self.metrics.count("local_pending_failures_total")
                pause = OFFER_SECONDS

    def _renew(self) -> float:
        """Updates the pending block. Returns seconds until the next update. Raises FastevmError."""
        head = self.chain.head
        if self.chain.has_base_time:
            pending = forecast(self.producer, head)
            with self.producer.lock:
                if self.chain.head is not head:
                    return 0.0
                self.publish(pending)
            self.metrics.count("local_pending_blocks_total")
            return OFFER_SECONDS
        if time.monotonic() >= self._ask_at:
            # if the request fails, the previous answer of the upstream stays valid
            with suppress(ForkError):
                self._ask()
        timestamp = head.header.timestamp + self._seconds_of_a_block()
        self.state.prepare_block(head.header, timestamp)  # fetches state before taking the lock
        self._fetch_together(head, timestamp)
        with self.producer.lock:
            if self.chain.head is not head:
                return 0.0
            added = self._build(timestamp)
        if self.state.is_busy or (added and self.producer.exhausted):
            return AWAIT_SECONDS
        return OFFER_SECONDS

    def _fetch_together(self, head: Block, timestamp: int) -> None:
        """Fetches the state that all new transactions read, in a few round trips. Raises ForkError.

        The transactions are executed as a block with guessed values. If they read other values in
        the pending block, those are fetched per transaction.
        """
        waiting = [*self._offered.values()]
        for queue in self.pool.executable().values():
            waiting += (item for _, item in sorted(queue.items()))
        fresh = [item for item in waiting if item.hash not in self._fetched][:FETCHED_TOGETHER]
        layer = self.chain.layer_of(head.hash)
        senders = {item.sender for item in fresh if item.sender is not None}
        attributes = self.producer.source.attributes(head, timestamp)

        def run() -> None:
            block = open_child_block(self.chain, attributes, attempt=0, parent=head, guesses=True)
            for item in fresh:
                with suppress(InvalidTransaction):
                    block.add(item)

        if fresh:
            remote(layer).fetch(Wanted(accounts=senders))
            resolved(layer, run)
        known = {item.hash for item in waiting}
        self._fetched = (self._fetched & known) | {item.hash for item in fresh}

    def _build(self, timestamp: int) -> int:
        """Starts or continues the block with new transactions. Returns how many were added."""
        producer = self.producer
        self._admit()
        if producer.open_block is not None and producer.open_block.index >= SLICES_LIMIT:
            producer.abandon()
        pending = None
        if producer.open_block is None:
            producer.clock.set_next(timestamp)
            pending = producer.begin(timestamp)
            self.metrics.count("local_pending_blocks_total")
        assert producer.open_block is not None
        gas_limit = producer.open_block.header.gas_limit
        added = producer.fill(gas_limit, time.monotonic() + FILL_SECONDS)
        if added:
            pending = producer.close_slice()
        if pending is not None:
            self.metrics.set("local_pending_transactions", len(pending.transactions))
            self.publish(pending)
        return added

    def _seconds_of_a_block(self) -> int:
        config = self.chain.config
        return max(int(config.least_timestamp_step), config.block_time_ms // 1_000)

    # --- transactions of the upstream -------------------------------------------------------------

    def _admit(self) -> None:
        """Adds the upstream's pending transactions to the pool.

        Drops the transactions that have left the upstream's pending block.
        """
        gone = self._guests - self._offered.keys()
        self._guests -= gone
        if any(self.pool.find(item) is not None for item in gone):
            self.producer.abandon()
            for item in gone:
                self.pool.drop(item)
        for tx_hash, transaction in self._offered.items():
            if tx_hash in self._guests or self.pool.find(tx_hash) is not None:
                continue
            with suppress(InvalidTransaction):  # the transaction may be in a block already
                self.pool.add(transaction)
                self._guests.add(tx_hash)
                self.metrics.count("local_pending_offered_total")

    def _ask(self) -> None:
        """Requests the upstream's pending block.

        Keeps its transactions if the block is above the head.
        """
        self._ask_at = time.monotonic() + OFFER_SECONDS
        self.metrics.count("local_pending_asked_total")
        try:
            found = self.history().request("eth_getBlockByNumber", ["pending", True])
        except RpcRefusal as error:
            log.info("%s has no pending block: %s", self.history().name, error)
            self._ask_at += REFUSED_SECONDS
            self._offered = {}
            return
        if not isinstance(found, Mapping) or not isinstance(found.get("transactions"), list):
            self._offered = {}
        elif found.get("parentHash") == "0x" + self.chain.head.hash.hex():
            self._offered = self._read(found["transactions"])

    def _read(self, listed: list[Any]) -> dict[bytes, Transaction]:
        """Returns the transactions of a block's JSON object by hash. Skips invalid transactions."""
        offered: dict[bytes, Transaction] = {}
        fresh: list[Transaction] = []
        for item in listed[:OFFERED_LIMIT]:
            with suppress(ValueError, TypeError, KeyError, AttributeError, FastevmError):
                known = self._offered.get(bytes.fromhex(item["hash"][2:]))
                transaction = known or transaction_from_json(item)
                if transaction.type == DEPOSIT_TX:
                    continue
                if known is None:
                    fresh.append(transaction)
                offered[transaction.hash] = transaction
        recover_senders(fresh)
        return offered
