"""Makes blocks from the pool: begins one, fills slices within their bounds, seals; has no clock."""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock

from fastevm.builder.block_maker import BlockMaker, child_maker
from fastevm.builder.deadline import Guard
from fastevm.builder.pending import PendingBlock
from fastevm.chain.chain import Chain, HeadChange
from fastevm.chain.clock import BlockClock
from fastevm.chain.metrics import FAULTS, Meters
from fastevm.errors import InvalidTransaction
from fastevm.txpool.pool import TransactionPool
from fastevm.txpool.pooled import Pooled
from fastevm.types import Block

log = logging.getLogger(__name__)

NEVER = math.inf
LEAST_GAS = 21_000  # of any transaction

# Transactions that can still become valid; all others leave the pool when they are refused.
PATIENT = {
    "nonce_too_high",
    "fee_cap_too_low",
    "blob_fee_cap_too_low",
    "block_gas_limit",
    "too_many_blobs",
}


@dataclass(slots=True)
class BuilderFaults:
    """Switches for tests of followers: what the producer does wrong, once each."""

    restart_block: bool = False
    seal_without_last: bool = False


class Producer:
    """One block under construction on the head of a chain.

    ``lock`` guards the block under construction and every addition to the chain. ``publish`` gets
    each new pending block and must only store it.
    """

    def __init__(
        self,
        chain: Chain,
        pool: TransactionPool,
        publish: Callable[[PendingBlock], None],
        *,
        coinbase: bytes,
        meters: Meters | None = None,
    ) -> None:
        self.chain, self.pool, self.publish = chain, pool, publish
        self.coinbase = coinbase
        self.meters = meters or Meters()
        self.lock = RLock()
        self.faults = BuilderFaults()
        self.guard = Guard()
        self.clock = BlockClock()
        self.attempt = 0
        self.exhausted = False
        self.maker: BlockMaker | None = None
        self._sealing = False
        chain.on_head(self._head_moved)

    # --- one block --------------------------------------------------------------------------------

    def begin(self, timestamp: int) -> PendingBlock:
        """Begin a child of the head; its first slice, still empty, for the caller to publish.

        ``timestamp`` (seconds) is what the system's clock says it should have; the producer's own
        clock may differ, and it is later than its parent's in any case.
        """
        least = self.chain.head.header.timestamp + self.chain.config.least_timestamp_step
        self.attempt += 1
        self.maker = child_maker(
            self.chain,
            timestamp=max(least, self.clock.at(timestamp)),
            coinbase=self.coinbase,
            attempt=self.attempt,
        )
        return self.close_slice()

    def fill(self, budget: int, deadline: float = NEVER, patience: float = NEVER) -> int:
        """Add the best of the pool while the block's gas stays within ``budget``.

        A transaction that still runs at ``deadline`` (monotonic seconds) is stopped and waits for
        the next slice. After more than ``patience`` seconds of CPU as the first of slices it leaves
        the pool: it would stop every slice. (Of CPU: on a busy machine the deadline may come while
        nothing runs at all.) Gives how many were added.
        """
        maker, pool = self._open_maker(), self.pool
        pool.open_slice(maker.header.base_fee_per_gas or 0)
        added, gas_used = 0, maker.gas_used
        self.exhausted = False
        with self._stopped_at(deadline):
            while gas_used + LEAST_GAS <= budget and time.monotonic() < deadline:
                pooled = pool.best()
                if pooled is None:
                    return added
                if gas_used + pooled.transaction.gas_limit > budget:
                    pool.put_aside(pooled)
                    continue
                if self._include(pooled, NEVER if added else patience):
                    added += 1
                    gas_used = maker.gas_used
        self.exhausted = time.monotonic() >= deadline
        return added

    def close_slice(self) -> PendingBlock:
        """End a slice: the block so far, which the pool counts on from now on."""
        pending = self._open_maker().slice()
        self.pool.settle(pending.layer)
        return pending

    def seal(self) -> Block:
        """Compute the roots and make the block canonical; the next one has to be begun then."""
        maker = self._open_maker()
        if self.faults.seal_without_last and maker.count:
            self.faults.seal_without_last = False
            self.meters.count(FAULTS.format("seal_without_last"))
            maker = self._other_block(maker)
        block, result = maker.seal()
        self.maker = None
        self._sealing = True
        try:
            self.chain.append(block, result)
        finally:
            self._sealing = False
        self.pool.sealed(block.transactions)
        if self.pool.confirmed_count:
            self.abandon()  # a fault left some out of the block: they wait again
        return block

    def mine(
        self, count: int = 1, *, timestamp: int | None = None, interval: int | None = None
    ) -> list[Block]:
        """Make ``count`` blocks at once from what the pool holds; they need not be slices.

        ``timestamp`` (seconds) is the first one's, as far as its parent allows, ``interval`` the
        distance of each to the one before it; the clock goes on from the last.
        """
        blocks: list[Block] = []
        with self.lock:
            if timestamp is not None or (interval is not None and count):
                self.cut()
            if timestamp is not None:
                self.clock.set_next(timestamp)
            for _ in range(count):
                if interval is not None and (blocks or timestamp is None):
                    self.clock.set_next(self.chain.head.header.timestamp + interval)
                blocks.append(self._mine_one())
            if interval is not None and blocks:
                self.clock.go_on_from(blocks[-1].header.timestamp)
        return blocks

    def cut(self) -> None:
        """End the block under construction as it is: sealed if there is anything in it."""
        with self.lock:
            if self.maker is not None and self.maker.count:
                self.seal()
            self.maker = None

    def renew(self) -> None:
        """Begin again on the head as it is now, and with the time as it is now."""
        with self.lock:
            self.abandon()

    def abandon(self) -> None:
        """Give up the block under construction; its transactions wait again."""
        self.maker = None
        head = self.chain.head
        self.pool.reset(self.chain.layer_of(head.hash))

    # --- inside -----------------------------------------------------------------------------------

    def _mine_one(self) -> Block:
        self.begin(int(time.time()))
        self.fill(self._open_maker().header.gas_limit)
        self.close_slice()
        return self.seal()

    def _open_maker(self) -> BlockMaker:
        assert self.maker is not None, "no block was begun"
        return self.maker

    def _include(self, pooled: Pooled, patience: float) -> bool:
        transaction = pooled.transaction
        started = 0.0 if patience == NEVER else time.thread_time()
        try:
            self._open_maker().add(transaction)
        except InvalidTransaction as error:
            if patience != NEVER:
                pooled.tried += time.thread_time() - started
            if error.code == "cancelled" and pooled.tried <= patience:
                self.meters.count("transactions_postponed_total")
                self.pool.put_aside(pooled)
            elif error.code in PATIENT:
                self.pool.put_aside(pooled)
            else:
                log.debug("transaction 0x%s left the pool: %s", transaction.hash.hex(), error)
                self.meters.count("transactions_refused_total")
                self.pool.drop(transaction.hash)
            return False
        self.pool.confirm(pooled)
        return True

    @contextmanager
    def _stopped_at(self, deadline: float) -> Iterator[None]:
        maker = self._open_maker()
        maker.resume()
        if deadline == NEVER or not self.pool.executable_count:
            yield
            return
        self.guard.arm(deadline, maker.cancel)
        try:
            yield
        finally:
            self.guard.disarm()
            maker.resume()

    def _other_block(self, maker: BlockMaker) -> BlockMaker:
        """A block like this one without its last transaction (a fault that tests ask for)."""
        transactions = maker.slice().transactions
        other = child_maker(
            self.chain,
            timestamp=maker.header.timestamp,
            coinbase=self.coinbase,
            attempt=self.attempt,
        )
        for transaction in transactions[:-1]:
            other.add(transaction)
        return other

    def _head_moved(self, change: HeadChange) -> None:
        """Blocks of others changed the canonical chain: the pool follows."""
        with self.lock:
            if self._sealing:
                return
            self.maker = None
            included = [one for block in change.added for one in block.transactions]
            returned = [one for block in change.removed for one in block.transactions]
            layer = self.chain.layer_of(self.chain.head.hash)
            self.pool.reset(layer, included, returned)
            self.meters.count("reorganisations_total", bool(change.removed))
