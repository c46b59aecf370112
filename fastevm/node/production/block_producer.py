"""Builds blocks from the pool: begins a block, fills its slices, seals it.

`SliceBuilder` decides when.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import RLock

from msgspec import Struct

from fastevm.chain.chain import Chain
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.metrics import FAULTS, MetricsRegistry
from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Receipt
from fastevm.core.primitives.replace import replace
from fastevm.core.state.remote import resolved
from fastevm.errors import ExecutionOutOfMemory, ForkError, InvalidTransaction
from fastevm.node.pool.pool import TransactionPool
from fastevm.node.pool.pooled_transaction import PooledTransaction
from fastevm.node.pool.run_times import LEARN_GAS, LONG_SECONDS
from fastevm.node.production.attributes import AttributesSource, BlockAttributes
from fastevm.node.production.block_clock import BlockClock
from fastevm.node.production.block_settings import BlockSettings
from fastevm.node.production.deadline import DeadlineTimer
from fastevm.node.production.missing_state import NEEDS_STATE, MissingState
from fastevm.node.production.sliced_block import SlicedBlock, open_child_block

log = logging.getLogger(__name__)

NEVER = math.inf
MIN_TRANSACTION_GAS = 21_000
FIXED_TIMESTAMPS = (
    "on this chain every block comes 200 ms after its parent: no timestamp can be chosen;"
    " mine blocks to let time pass"
)
MAX_FETCHES = 16  # fetches of missing state for one transaction before it waits for the next block
MAX_TRIES = 4  # stopped executions of a transaction before the pool drops it

# EXCLUDING: errors of one transaction, after which the builder continues the block. RETRYABLE:
# codes of refusals after which a transaction stays in the pool, because a later block may include
# it.
EXCLUDING = (InvalidTransaction, ForkError, ExecutionOutOfMemory)
RETRYABLE = {
    "nonce_too_high",
    "fee_cap_too_low",
    "blob_fee_cap_too_low",
    "block_gas_limit",
    "da_footprint",
    "too_many_blobs",
}


class BuilderFaults(Struct):
    """Fault injection for tests of followers: each switch causes one wrong block."""

    restart_block: bool = False
    seal_without_last: bool = False


class BlockProducer:
    """Builds one block at a time on the head of a chain; ``source`` gives its attributes.

    ``lock`` guards the open block and every addition to the chain. ``publish`` is called with each
    new pending block and must return immediately.
    """

    fails = False  # whether the last slice ended with an error
    runs_long = False  # whether long transactions run in a separate thread
    # whether to run full garbage collections of the process between slices
    collects_garbage = False

    def __init__(
        self,
        chain: Chain,
        pool: TransactionPool,
        publish: Callable[[PendingBlock], None],
        *,
        source: AttributesSource,
        metrics: MetricsRegistry | None = None,
    ) -> None:
        self.chain, self.pool, self.publish = chain, pool, publish
        self.source = source
        self.metrics = metrics or MetricsRegistry()
        self.lock = RLock()
        self.faults = BuilderFaults()
        self.deadline_timer = DeadlineTimer()
        self.clock = BlockClock()
        self.settings = BlockSettings()
        self.attempt = 0
        self.exhausted = False
        self._started_at = 0.0  # when the current transaction of a slice started, monotonic
        self.stopping = False
        self.paused = False
        self.open_block: SlicedBlock | None = None
        self.missing_state = MissingState()
        self._sealing = False
        self._spare: tuple[object, SlicedBlock] | None = None
        self._attributes: BlockAttributes | None = None  # attributes of the open block
        chain.on_head(self._head_moved)

    # --- one block --------------------------------------------------------------------------------

    def begin(self, timestamp: int) -> PendingBlock:
        """Begins a child of the head and returns its first slice, for the caller to publish.

        The slice has only the transactions that every block begins with. ``timestamp``: the
        system's time in seconds. The producer's clock adds its offset, and the block's timestamp is
        at least the parent's plus the configured step.
        """
        self._open(timestamp)
        return self.close_slice()

    def _open(self, timestamp: int, *, is_whole: bool = False) -> None:
        self.attempt += 1
        self._attributes = attributes = self.attributes(timestamp)
        self.clock.begun(timestamp)
        self.missing_state.prepare_block(self.chain.head.header, attributes.timestamp)
        spare, self._spare = self._spare, None
        if is_whole and spare is not None and spare[0] == self.opens_with(attributes):
            self.open_block = spare[1]
            return
        self.open_block = resolved(
            self.chain.layer_of(self.chain.head.hash),
            lambda: open_child_block(self.chain, attributes, attempt=self.attempt),
        )

    def opens_with(self, attributes: BlockAttributes) -> tuple[object, ...]:
        """Returns a cache key of everything that determines an empty child of the head."""
        return self.chain.head.hash, self.chain.amendments, self.chain.config, attributes

    def keep_spare(self, attributes: BlockAttributes, block: SlicedBlock) -> None:
        """Keeps a block that was opened only for reading, so that the next block can reuse it.

        The block must have only the transactions that every block begins with. The caller must hold
        the lock.
        """
        self._spare = self.opens_with(attributes), block

    def attributes(self, system_time: int) -> BlockAttributes:
        """Returns the attributes of a child of the head begun at ``system_time`` (seconds)."""
        head = self.chain.head
        found = self.source.attributes(head, self.next_timestamp(system_time))
        return self.settings.applied(found, head.hash)

    def next_timestamp(self, system_time: int) -> int:
        """Returns the timestamp of a child of the head begun at ``system_time`` (seconds)."""
        fixed = self.source.fixed_timestamp(self.chain.head)
        if fixed is not None:
            return fixed
        parent = self.chain.head.header.timestamp
        return self.clock.next_timestamp(
            system_time, parent, self.chain.config.least_timestamp_step
        )

    def require_free_timestamps(self) -> None:
        """Raises ValueError if the chain's rules determine the timestamp of every block."""
        if self.source.fixed_timestamp(self.chain.head) is not None:
            raise ValueError(FIXED_TIMESTAMPS)

    def fill(
        self,
        gas_budget: int,
        deadline: float = NEVER,
        limit: float = NEVER,
    ) -> int:
        """Adds the best transactions of the pool, at most ``limit``. Returns how many were added.

        ``gas_budget``: maximum gas that the whole block may have used at the end of this call. A
        transaction that still runs at ``deadline`` (monotonic seconds) is stopped and waits for the
        next slice. If this producer ``runs_long``, a transaction is also stopped after
        LONG_SECONDS; then the pool returns it from `best_long`.
        """
        block, pool = self._current_block(), self.pool
        by_time = self.runs_long and deadline != NEVER
        pool.open_slice(block.header.base_fee_per_gas or 0, by_time=by_time)
        added, gas_used = 0, block.gas_used
        self.exhausted = False
        with self._stopped_at(deadline, by_time=by_time):
            while gas_used + MIN_TRANSACTION_GAS <= gas_budget and time.monotonic() < deadline:
                pooled = pool.best() if added < limit else None
                if pooled is None:
                    return added
                if self._drops_too_large(pooled):
                    continue
                if not block.has_gas_for(pooled.transaction, gas_budget):
                    pool.set_aside(pooled)
                    continue
                if self._is_awaited(pooled, deadline):
                    pool.set_aside(pooled)
                    continue
                if self._include(pooled, deadline):
                    added += 1
                    gas_used = block.gas_used
        self.exhausted = time.monotonic() >= deadline
        return added

    def close_slice(self) -> PendingBlock:
        """Closes a slice and returns the block so far.

        From now on, the pool uses the slice's state.
        """
        pending = self._current_block().close_slice()
        self.pool.settle(pending.layer)
        return pending

    def seal(self) -> Block:
        """Computes the roots and makes the block canonical. Afterwards no block is open."""
        block = self._current_block()
        if self.faults.seal_without_last and block.has_chosen:
            self.faults.seal_without_last = False
            self.metrics.count(FAULTS.format("seal_without_last"))
            block = self._without_last(block)
        self._prepare_end(block)
        sealed, result = block.seal()
        self.open_block = None
        self.clock.sealed(sealed.header.timestamp)
        self._sealing = True
        try:
            self.chain.append(sealed, result)
        finally:
            self._sealing = False
        self.pool.sealed(sealed.transactions)
        if self.pool.confirmed_count:
            self.abandon()  # an injected fault left transactions out of the block
        else:
            self.pool.settle(self.chain.layer_of(sealed.hash))
        return sealed

    def _prepare_end(self, block: SlicedBlock) -> None:
        """Fetches the state that the block reads at its end (on a fork), so that `seal` finds
        it.
        """
        attributes = self._attributes
        if attributes is not None:
            self.missing_state.prepare_end(
                self.chain.head.header,
                block.header.timestamp,
                lambda: open_child_block(self.chain, attributes, attempt=0).finish(),
            )

    def mine(
        self,
        count: int = 1,
        *,
        timestamp: int | None = None,
        interval: int | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> list[Block]:
        """Builds and seals ``count`` blocks immediately, with transactions of the pool.

        ``timestamp``: the timestamp of the first block in seconds, not below what its parent
        allows. ``interval``: seconds by which the clock advances before each block. Stops early if
        the producer stops. Also calls ``is_stopped()`` before each block, and stops if it returns
        True. Raises ValueError for a timestamp or an interval if the rules of the chain set the
        timestamps.
        """
        if timestamp is not None or interval is not None:
            self.require_free_timestamps()
        blocks: list[Block] = []
        with self.lock:
            if timestamp is not None or (interval is not None and count):
                self.seal_open_block()
            if timestamp is not None:
                self.clock.set_next(timestamp)
            system_time = int(time.time())  # equal for all blocks, so that the interval is exact
            for _ in range(count):
                if self.stopping or is_stopped():
                    break
                if interval is None:
                    system_time = int(time.time())
                else:
                    self.clock.offset += interval
                blocks.append(self._mine_one(system_time))
        return blocks

    def mine_each(self) -> list[Block]:
        """Builds and seals a block for each pool transaction that can be included now."""
        blocks: list[Block] = []
        with self.lock:
            while self.pool.executable_count and not self.stopping:
                self._begin_whole(int(time.time()))
                if not self.fill(self._current_block().header.gas_limit, limit=1):
                    self.abandon()
                    break
                blocks.append(self.seal())
        return blocks

    def mine_with(self, transactions: Iterable[Transaction]) -> Block:
        """Builds and seals a block: first the transactions that every block begins with, then only
        these.

        If a transaction cannot be included, raises InvalidTransaction for the first such
        transaction and builds no block.
        """
        with self.lock:
            self._begin_whole(int(time.time()))
            try:
                for transaction in transactions:
                    self._add(transaction, waits=True)
            except EXCLUDING:
                self.abandon()
                raise
            return self.seal()

    def stop(self) -> None:
        """Stops building blocks. `mine` ends after its current block."""
        self.stopping = True
        with self.lock:
            pass

    def seal_open_block(self) -> None:
        """Seals the open block if it has chosen transactions, otherwise drops it."""
        with self.lock:
            if self.open_block is not None and self.open_block.has_chosen:
                self.seal()
            self.open_block = None

    @property
    def coinbase(self) -> bytes:
        """The address that receives the fees of the next blocks, 20 bytes."""
        return self.settings.coinbase or self.source.coinbase

    # --- building on demand only; `SliceBuilder` overrides these
    # ------------------------------------

    @property
    def block_time(self) -> float | None:
        """Seconds between blocks that are built without a request.

        None if there are no such blocks.
        """
        return None

    @property
    def makes_slices(self) -> bool:
        """Whether this producer currently publishes slices."""
        return False

    def start(self) -> None:
        """Starts to build blocks without requests, if this producer does that."""

    def pause(self, wanted: bool) -> None:
        """Pauses or resumes building blocks without requests."""

    def restart(self) -> None:
        """Drops the open block. The next block begins with the current head and time."""
        with self.lock:
            self.abandon()

    def abandon(self) -> None:
        """Drops the open block. Its transactions become executable again."""
        self.open_block = None
        head = self.chain.head
        self.pool.reset(self.chain.layer_of(head.hash))

    def _mine_one(self, system_time: int) -> Block:
        self._begin_whole(system_time)
        if self.pool.executable_count:
            self.fill(self._current_block().header.gas_limit)
        return self.seal()

    def _begin_whole(self, timestamp: int) -> None:
        """Begins a child of the head that will be sealed immediately, without published slices."""
        self._open(timestamp, is_whole=True)
        if self._current_block().begins_with:
            self.close_slice()  # the pool needs the state after these transactions

    def _current_block(self) -> SlicedBlock:
        assert self.open_block is not None, "no block was begun"
        return self.open_block

    def _is_awaited(self, pooled: PooledTransaction, deadline: float) -> bool:
        """Returns whether a transaction waits for its state.

        Fetches the state if there is no deadline.
        """
        state, transaction = self.missing_state, pooled.transaction
        if deadline != NEVER:
            return state.is_fetching(transaction.hash)
        try:
            state.fetch(transaction)
        except ForkError as error:
            log.warning("transaction 0x%s stays: %s", transaction.hash.hex(), error)
            return True
        return False

    def _drops_too_large(self, pooled: PooledTransaction) -> bool:
        """Drops a transaction whose gas limit exceeds that of any block. Returns whether it did.

        Otherwise the transaction would block cheaper transactions and its sender's later
        transactions.
        """
        gas, most = pooled.transaction.gas_limit, self._current_block().most_gas
        if gas > most:
            text = f"no block can include it: its gas limit is {gas}, a block has {most}"
            self.pool.drop(pooled.hash, text)
        return gas > most

    def _include(self, pooled: PooledTransaction, deadline: float) -> bool:
        """Executes a transaction in the block. Returns whether the block includes it."""
        is_timed = deadline != NEVER and pooled.transaction.gas_limit >= LEARN_GAS
        started = time.thread_time() if is_timed else 0.0
        self._started_at = time.monotonic() if is_timed else NEVER
        try:
            receipt = self._add(pooled.transaction, waits=deadline == NEVER)
        except EXCLUDING as error:
            seconds = time.thread_time() - started if is_timed else 0.0
            self._exclude(pooled, error, seconds)
            if time.monotonic() < deadline != NEVER:
                self._current_block().resume()
            return False
        if is_timed:
            self.pool.learn_time(pooled, time.thread_time() - started, receipt.gas_used)
        self.pool.confirm(pooled)
        return True

    def _exclude(
        self,
        pooled: PooledTransaction,
        error: InvalidTransaction | ForkError | ExecutionOutOfMemory,
        seconds: float,
    ) -> None:
        """Keeps a transaction that was not included for a later slice, or drops it.

        ``seconds``: CPU time of the execution. Wall time does not count, because a busy machine may
        reach a deadline without executing anything.
        """
        pool, transaction = self.pool, pooled.transaction
        if isinstance(error, ForkError):
            log.warning("transaction 0x%s stays: %s", transaction.hash.hex(), error)
            pool.set_aside(pooled)
        elif isinstance(error, ExecutionOutOfMemory):
            log.warning("transaction 0x%s left the pool: %s", pooled.hash.hex(), error)
            self.metrics.count("transactions_refused_total")
            pool.drop(pooled.hash, f"no block can include it: {error}")
        elif error.code == "cancelled":
            self.metrics.count("transactions_postponed_total")
            pooled.is_long = transaction.gas_limit >= LEARN_GAS
            if seconds > LONG_SECONDS / 2:
                pool.learn_time(pooled, seconds, None)
                pooled.stopped += 1
                pooled.cpu_seconds = max(pooled.cpu_seconds, seconds)
            is_long = pooled.cpu_seconds > pool.max_seconds or pooled.stopped >= MAX_TRIES
            if self.runs_long and is_long:
                text = f"stopped after {pooled.cpu_seconds:.2f} s, limit {pool.max_seconds:.2f} s"
                log.debug("transaction 0x%s left the pool: %s", pooled.hash.hex(), text)
                self.metrics.count("transactions_too_slow_total")
                pool.drop_too_slow(pooled, text)
            else:
                pool.set_aside(pooled)
        elif error.code in RETRYABLE:
            limit = self._current_block().header.gas_limit
            if error.code == "da_footprint" and error.want > limit:
                pool.drop(pooled.hash, f"no block can include it: {error}")
            else:
                pool.set_aside(pooled)
        elif error.code == NEEDS_STATE:
            self.metrics.count("transactions_awaiting_state_total")
            self.missing_state.begin(transaction)
            pool.set_aside(pooled)
        else:
            log.debug("transaction 0x%s left the pool: %s", pooled.hash.hex(), error)
            self.metrics.count("transactions_refused_total")
            pool.drop(pooled.hash, f"no block can include it: {error}")

    def _add(self, transaction: Transaction, *, waits: bool) -> Receipt:
        """Adds a transaction to the block. ``waits``: whether to fetch missing state."""
        block, state = self._current_block(), self.missing_state
        for _ in range(MAX_FETCHES if waits and state.is_remote else 0):
            try:
                return block.add(transaction)
            except InvalidTransaction as error:
                if error.code != NEEDS_STATE:
                    raise
                state.fetch(transaction)
        return block.add(transaction)

    @contextmanager
    def _stopped_at(self, deadline: float, *, by_time: bool) -> Iterator[None]:
        """Returns a context that cancels the current transaction at the deadline.

        ``by_time``: a long transaction is cancelled earlier.
        """
        block = self._current_block()
        block.resume()
        if deadline == NEVER or not self.pool.executable_count:
            yield
            return
        self._started_at = NEVER

        def stop() -> float | None:
            now, started = time.monotonic(), self._started_at
            if now >= deadline:
                block.cancel()
                return None
            if started + LONG_SECONDS <= now:
                block.cancel()
                started = now
            return min(deadline, min(started, now) + LONG_SECONDS)

        first = min(deadline, time.monotonic() + LONG_SECONDS) if by_time else deadline
        self.deadline_timer.arm(first, stop)
        try:
            yield
        finally:
            self.deadline_timer.disarm()
            block.resume()

    def _without_last(self, block: SlicedBlock) -> SlicedBlock:
        """Returns the block without its last transaction (an injected fault)."""
        transactions = block.close_slice().transactions
        attributes = self.source.attributes(self.chain.head, block.header.timestamp)
        attributes = self.settings.applied(attributes, self.chain.head.hash)
        begins_with = transactions[: block.begins_with]
        attributes = replace(attributes, transactions=begins_with)
        other = open_child_block(self.chain, attributes, attempt=self.attempt)
        for transaction in transactions[block.begins_with : -1]:
            other.add(transaction)
        return other

    def _head_moved(self, change: HeadChange) -> None:
        """Updates the pool after imported blocks have changed the canonical chain."""
        with self.lock:
            if self._sealing:
                return
            self.open_block = None
            included = [transaction for block in change.added for transaction in block.transactions]
            returned = [
                transaction for block in change.removed for transaction in block.transactions
            ]
            layer = self.chain.layer_of(self.chain.head.hash)
            self.pool.reset(layer, included, returned)
            self.metrics.count("reorganisations_total", bool(change.removed))
