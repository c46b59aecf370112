"""Builds blocks in slices at their due times, in a separate thread."""

import logging
import math
import threading
import time
from typing import Any

from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.metrics import FAULTS
from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.types import Block
from fastevm.core.primitives.replace import replace
from fastevm.node.pool.pooled_transaction import PooledTransaction
from fastevm.node.production.block_producer import EXCLUDING, BlockProducer
from fastevm.node.production.cadence import FILL_START, Cadence, SliceTiming, Tick, aligned_anchor
from fastevm.node.production.garbage_collection import Collector
from fastevm.node.production.long_run import LongRun
from fastevm.node.production.sliced_block import SlicedBlock
from fastevm.node.thread_priority import raise_priority

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0  # pause after an unexpected error
ERROR_LOG_SECONDS = 1.0  # between two log lines about errors
MISSED_MS = 50.0  # a slice that is published later than this counts as missed
MAX_RUN_SHARE = 0.5  # longest execution of a transaction, as a share of the block time
LONG_SAFETY = 1.25  # factor on the expected time of a long transaction
MAX_WAIT_LATE = 0.025  # seconds after its closing time that a slice waits for a long transaction
# seconds for other transactions in such a slice, so that it does not miss MISSED_MS
LATE_FILL_SECONDS = 0.01
MAX_LONG_CHECKED = 8  # long transactions whose time and gas are checked before a slice


class SliceBuilder(BlockProducer):
    """Builds blocks on the head of a chain at the chain's block time and slice interval.

    At the end of slice j of n, the block may have used j/n of its gas limit. If earlier slices have
    used more than their shares, the unused gas is divided equally among the remaining slices. A
    slice is published at its due time even if it is empty (see `cadence`). After publishing, the
    thread updates the state root, so that sealing the block needs little hashing. Long transactions
    run in a separate thread (see `long_run`).
    """

    runs_long = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.thread: threading.Thread | None = None
        self.fails = False  # whether the last slice ended with an error
        # whether to run full garbage collections of the process between slices
        self.collects_garbage = True
        self._wake = threading.Event()
        self._collector = Collector()
        self._block = -1
        self._error_logged = -ERROR_LOG_SECONDS
        self.metrics.count("slices_missed_total", 0)
        config = self.chain.config
        self._cadence = Cadence(config.block_time_ms, config.slice_interval_ms, time.monotonic())
        self._timing = SliceTiming(self._cadence.interval)
        self._long: LongRun | None = None
        # whether a long transaction waited for short transactions before the last slice
        self._waited = False
        self.pool.max_seconds = MAX_RUN_SHARE * self._cadence.block_time
        self.metrics.count("long_transactions_total", 0)

    # --- from other threads -----------------------------------------------------------------------

    def start(self) -> None:
        """Begins the first block and starts the thread."""
        if self.collects_garbage:
            self._collector.start()
        config = self.chain.config
        self._cadence.anchor = aligned_anchor(config.block_time_ms, time.time(), time.monotonic())
        tick = self._next_tick(-1)
        self._begin_block(tick)
        self.thread = threading.Thread(
            target=self._run, args=(tick,), name="fastevm-builder", daemon=True
        )
        self.thread.start()

    def stop(self) -> None:
        """Stops after the current slice and drops the unsealed block."""
        self.stopping = True
        self._wake.set()
        super().stop()
        if self.thread is not None:
            self.thread.join()
        with self.lock:
            self._end_long()
        self._collector.stop()

    @property
    def block_time(self) -> float:
        """Seconds between two blocks."""
        return self._cadence.block_time

    @property
    def makes_slices(self) -> bool:
        """Whether this producer currently publishes slices."""
        return not self.paused

    def pause(self, wanted: bool) -> None:
        """Seals the pre-confirmed transactions and pauses building slices.

        False resumes building.
        """
        with self.lock:
            if wanted and not self.paused:
                self.seal_open_block()
            self.paused = wanted
            self._wake.set()

    def mine(self, count: int = 1, **options: Any) -> list[Block]:
        """Seals the open block now, with transactions of the pool, and ``count - 1`` more blocks.

        Pre-confirmed transactions keep their positions. If ``timestamp`` is set, their block is
        therefore sealed first.
        """
        with self.lock:
            blocks = super().mine(count, **options)
            self._publish_empty()
        return blocks

    def seal_open_block(self) -> None:
        """Publishes and seals the open block if it has chosen transactions."""
        with self.lock:
            self._end_long()
            if self.open_block is not None and self.open_block.has_chosen:
                self._publish(self.close_slice())
            super().seal_open_block()

    def restart(self) -> None:
        """Begins a new block on the current head and publishes it."""
        with self.lock:
            super().restart()
            self._publish_empty()

    def _publish_empty(self) -> None:
        if self.thread is not None and not self.stopping and not self.paused:
            self._publish(self.begin(int(time.time())))

    def _mine_one(self, system_time: int) -> Block:
        if self.open_block is None:
            self.begin(system_time)
        assert self.open_block is not None
        self.fill(self.open_block.header.gas_limit)
        self._publish(self.close_slice())
        return self.seal()

    # --- the thread -------------------------------------------------------------------------------

    def _run(self, tick: Tick) -> None:
        raise_priority()
        while not self.stopping:
            try:
                self._slice(tick)
            except Exception as error:
                self._fail(error)
            else:
                self.fails = False
            tick = self._next_tick(tick.number)

    def _fail(self, error: Exception) -> None:
        """Counts an error, logs at most one per second, and drops the block."""
        self.fails = True
        self.metrics.count("slice_failures_total")
        now = time.monotonic()
        if now - self._error_logged >= ERROR_LOG_SECONDS:
            self._error_logged = now
            # an OSError, such as a full disk, needs no traceback
            trace = None if isinstance(error, OSError) else error
            log.error("a slice failed, the block is begun again: %s", error, exc_info=trace)
        time.sleep(min(RETRY_SECONDS, self._cadence.interval))
        try:
            with self.lock:
                self.abandon()
        except Exception as second:  # the next slice fails for the same reason and reports it
            log.debug("the block could not be dropped: %s", second)

    def _next_tick(self, number: int) -> Tick:
        first = number < 0
        if first:
            number = int((time.monotonic() - self._cadence.anchor) / self._cadence.interval) - 1
        tick, skipped = self._cadence.after(number, time.monotonic())
        if skipped and not first:
            self.metrics.count("slices_missed_total", skipped)
        return tick

    def _slice(self, tick: Tick) -> None:
        """Fills, closes and publishes the slice of a tick. Seals the block after its last slice."""
        if self.paused:
            self._wake.wait(self._cadence.interval)
            self._wake.clear()
            return
        self._align_block(tick)
        self._execute_long(tick)
        if not self.exhausted:
            self._sleep_until(self._timing.measure_at(tick), tick)
        executable = self.pool.executable_count
        fill_at = self._timing.fill_at(tick, executable, exhausted=self.exhausted)
        self._sleep_until(fill_at, tick)
        if self.stopping:
            return
        self._await_long(tick)
        with self.lock:
            if self.paused or self.open_block is None:
                return
            pending = self._build(tick)
        self._sleep_until(self._timing.publish_at(tick), tick, is_closed=True)
        with self.lock:
            if not self._is_current(pending):
                return  # the block was sealed on demand, or the head moved
            self._publish(pending, due=tick.due)
            if tick.index == self._cadence.slices:
                self._seal_and_begin(tick)
            elif pending.first_new < len(pending.transactions):
                pending.layer.state_root()
        self._collector.collect(self._timing.idle_seconds)

    def _build(self, tick: Tick) -> PendingBlock:
        assert self.open_block is not None
        started = time.monotonic()
        if self._is_running_long() and tick.index < self._cadence.slices:
            return self.open_block.close_empty_slice()
        deadline = self._timing.close_at(tick)
        if self._long is not None and tick.index < self._cadence.slices:
            deadline = max(deadline, time.monotonic() + LATE_FILL_SECONDS)
        added = self.fill(self._gas_budget(tick), deadline)
        filled = time.monotonic()
        pending = self.close_slice()
        self._timing.learn(added, filled - started, time.monotonic() - filled)
        return pending

    def _gas_budget(self, tick: Tick) -> int:
        """Returns the gas that the block may have used at the end of a slice.

        A long transaction may have used the shares of later slices. The remaining gas is divided
        equally, so that every slice has some.
        """
        block = self._current_block()
        slices, limit, used = self._cadence.slices, block.header.gas_limit, block.gas_used
        equal = used + (limit - used) // (slices - tick.index + 1)
        return max(limit * tick.index // slices, equal)

    # --- long transactions ------------------------------------------------------------------------

    def _current_block(self) -> SlicedBlock:
        """Returns the open block for exclusive use. Stops a long transaction that runs in it."""
        self._end_long()
        return super()._current_block()

    def _is_running_long(self) -> bool:
        run = self._long
        return run is not None and run.block is self.open_block and not run.is_done

    def _end_long(self) -> None:
        """Records the result of the long transaction. Stops it if it still runs."""
        run, self._long = self._long, None
        if run is None:
            return
        run.end()
        if run.block is not self.open_block:
            self.pool.set_aside(run.pooled)
        elif run.receipt is not None:
            self.pool.learn_time(run.pooled, run.seconds, run.receipt.gas_used)
            self.pool.confirm(run.pooled)
            self.metrics.count("long_transactions_total")
        elif isinstance(run.error, EXCLUDING):
            self._exclude(run.pooled, run.error, run.seconds)
        else:
            raise run.error or RuntimeError("a long transaction ended without a result")

    def _execute_long(self, tick: Tick) -> None:
        """Executes long transactions until short ones are due.

        The last long transaction may still run then.
        """
        until = self._timing.measure_at(tick)
        self._begin_long(tick)
        while (run := self._long) is not None and time.monotonic() < until and not self.stopping:
            run.wait(until)
            with self.lock:
                if run is self._long and run.is_done:
                    self._end_long()
                    self._begin_long(tick)

    def _await_long(self, tick: Tick) -> None:
        """Waits until the slice must close, or a little longer if the long transaction ends then.

        Otherwise a transaction of 0.2 s would make the transactions behind it miss a slice of 0.2
        s.
        """
        run, closing = self._long, self._timing.close_at(tick)
        if run is None or tick.index == self._cadence.slices:
            return
        is_near = run.expected_end <= closing + MAX_WAIT_LATE
        run.wait(closing + MAX_WAIT_LATE if is_near else closing)

    def _begin_long(self, tick: Tick) -> None:
        """Starts the best long transaction for which the block has time and gas.

        If the previous slice reached its deadline, waiting short transactions go first, once.
        """
        with self.lock:
            if self._long is not None and self._long.block is not self.open_block:
                self._end_long()
            if self.paused or self.open_block is None or self._long is not None:
                return
            self._waited = self.exhausted and not self._waited
            if self._waited:
                return
            block = self._current_block()
            self.pool.open_slice(block.header.base_fee_per_gas or 0, by_time=True)
            for _ in range(MAX_LONG_CHECKED):
                pooled = self.pool.best_long()
                if pooled is None:
                    return
                if self._drops_too_large(pooled):
                    continue
                if self._has_room(pooled, block, tick):
                    expected = self._expected_seconds(pooled)
                    self._long = LongRun(block, pooled, time.monotonic() + expected)
                    return
                self.pool.set_aside(pooled)

    def _expected_seconds(self, pooled: PooledTransaction) -> float:
        return max(self.pool.expected_seconds(pooled), pooled.cpu_seconds)

    def _has_room(self, pooled: PooledTransaction, block: SlicedBlock, tick: Tick) -> bool:
        """Returns whether a long transaction fits into the time and gas of this block.

        A transaction that may take longer than a block is only started with a new block.
        """
        if self.missing_state.is_fetching(pooled.hash):
            return False
        slices, interval = self._cadence.slices, self._cadence.interval
        ends = time.monotonic() + LONG_SAFETY * self._expected_seconds(pooled)
        if ends > self._cadence.block_end(tick) - FILL_START * interval:
            return tick.index == 1 and block.has_gas_for(pooled.transaction, block.header.gas_limit)
        last = tick.index + max(0, math.ceil((ends - self._timing.close_at(tick)) / interval))
        return block.has_gas_for(pooled.transaction, block.header.gas_limit * last // slices)

    def _is_current(self, pending: PendingBlock) -> bool:
        block = self.open_block
        return block is not None and (block.payload_id, block.index) == (
            pending.payload_id,
            pending.slice_index,
        )

    def _seal_and_begin(self, tick: Tick) -> None:
        started = time.monotonic()
        self.seal()
        self._begin_block(self._cadence.tick(tick.number + 1))
        self.metrics.set("seal_seconds", time.monotonic() - started)

    def _align_block(self, tick: Tick) -> None:
        """Seals or begins blocks until the open block belongs to this tick."""
        with self.lock:
            if self.paused:
                return
            if self.faults.restart_block:
                self.faults.restart_block = False
                self.metrics.count(FAULTS.format("restart_block"))
                self.abandon()
            if self.open_block is None:
                self._begin_block(tick)
            elif self._cadence.block_of(tick) != self._block:
                self._seal_and_begin(self._cadence.tick(tick.number - 1))

    def _begin_block(self, tick: Tick) -> None:
        self._block = self._cadence.block_of(tick)
        end = time.time() + self._cadence.block_end(tick) - time.monotonic()
        self._publish(self.begin(int(end + self._cadence.interval / 2)))

    def _publish(self, pending: PendingBlock, due: float | None = None) -> None:
        now = time.monotonic()
        self.publish(replace(pending, published=now))
        self.metrics.count("slices_total")
        if due is not None:
            late = max(0.0, now - due) * 1000
            self.metrics.lateness_ms.observe(late)
            self.metrics.count("slices_missed_total", late > MISSED_MS)

    def _head_moved(self, change: HeadChange) -> None:
        super()._head_moved(change)
        if self.open_block is None:
            self._wake.set()

    def _sleep_until(self, moment: float, tick: Tick, *, is_closed: bool = False) -> None:
        """Sleeps until ``moment``.

        Begins a new block if the head moves, unless ``is_closed`` is true.
        """
        while not self.stopping and (left := moment - time.monotonic()) > 0:
            if not self._wake.wait(left):
                return
            self._wake.clear()
            if self.stopping:
                return
            if not is_closed:
                self._align_block(tick)
