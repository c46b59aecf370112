"""Builds blocks in slices on time: one thread, woken by a clock that does not drift."""

import contextlib
import logging
import os
import threading
import time
from dataclasses import replace
from typing import Any

from fastevm.builder.cadence import Cadence, Tick, aligned_anchor
from fastevm.builder.garbage_collection import Collector
from fastevm.builder.pending import PendingBlock
from fastevm.builder.producer import Producer
from fastevm.chain.chain import HeadChange
from fastevm.chain.metrics import FAULTS
from fastevm.types import Block

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0  # pause after a failure that nobody foresaw
LOOK_AHEAD = 0.5  # share of an interval before the due time at which the pool is measured
LONGEST_LEAD = 0.75  # share that building gets after a slice that had to stop early
LEAST_LEAD = 0.015  # seconds
HEAD_START = 0.004  # seconds before the due time at which a slice goes out, so as not to be late
LARGEST_HEAD_START = 0.1  # share of the interval
SAFETY = 1.5  # times the expected cost is set aside
LEAST_MARGIN = 0.002  # seconds between the end of filling and the due time
LARGEST_MARGIN = 0.3  # share of the interval
PRIORITY = -10  # of the thread, where the system lets us
SMOOTHING = 0.2  # weight of the newest measurement
MISSED_MS = 50.0  # a slice published later than this counts as missed


class Estimate:
    """A running average of seconds."""

    def __init__(self, value: float) -> None:
        self.value = value

    def learn(self, seconds: float) -> None:
        """Take in a measurement."""
        self.value += SMOOTHING * (seconds - self.value)


class SliceBuilder(Producer):
    """Produces blocks on the head of a chain, at the cadence of the chain's configuration.

    A slice takes what the pool offers shortly before it is due, best price first, within the
    block's gas so far: slice j of n may bring the block to j/n of its gas limit. It is closed and
    published at the due time even if it is empty, or if it had to stop early; what was published
    stays. Waking up can take milliseconds where threads compete, so it is aimed a little before
    the due time. After publication, while the next slice is far, the state root is brought up to
    date, so that sealing has little left to do.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.thread: threading.Thread | None = None
        self.stopping = False
        self._wake = threading.Event()
        self._collector = Collector()
        self._cost = Estimate(50e-6)
        self._closing = Estimate(0.001)
        self._block = -1
        self.meters.count("slices_missed_total", 0)
        config = self.chain.config
        self._cadence = Cadence(config.block_time_ms, config.slice_interval_ms, time.monotonic())

    # --- from other threads -----------------------------------------------------------------------

    def start(self) -> None:
        """Begin the first block and run from now on."""
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
        """Stop after the slice under way; the unsealed block is dropped."""
        self.stopping = True
        self._wake.set()
        if self.thread is not None:
            self.thread.join()
        self._collector.stop()

    def mine(self, count: int = 1, **times: int | None) -> list[Block]:
        """Seal the block under construction now, with what the pool holds, and ``count - 1`` more.

        What is pre-confirmed stays in its place: where another time is asked for, it is sealed
        before.
        """
        with self.lock:
            blocks = super().mine(count, **times)
            self._renew()
        return blocks

    def cut(self) -> None:
        """End the block under construction as it is, published and sealed if it has anything."""
        with self.lock:
            if self.maker is not None and self.maker.count:
                self._publish(self.close_slice())
            super().cut()

    def renew(self) -> None:
        """Begin again on the head as it is now, and publish that."""
        with self.lock:
            super().renew()
            self._renew()

    def _renew(self) -> None:
        if self.thread is not None and not self.stopping:
            self._publish(self.begin(int(time.time())))

    def _mine_one(self) -> Block:
        if self.maker is None:
            self.begin(int(time.time()))
        assert self.maker is not None
        self.fill(self.maker.header.gas_limit)
        self._publish(self.close_slice())
        return self.seal()

    # --- the thread -------------------------------------------------------------------------------

    def _run(self, tick: Tick) -> None:
        with contextlib.suppress(OSError, AttributeError):  # not allowed, or not on this system
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), PRIORITY)
        while not self.stopping:
            try:
                self._slice(tick)
            except Exception:
                log.exception("a slice failed; the block begins again")
                self.meters.count("slice_failures_total")
                time.sleep(min(RETRY_SECONDS, self._cadence.interval))
                with self.lock:
                    self.abandon()
            tick = self._next_tick(tick.number)

    def _next_tick(self, number: int) -> Tick:
        first = number < 0
        if first:
            number = int((time.monotonic() - self._cadence.anchor) / self._cadence.interval) - 1
        tick, skipped = self._cadence.after(number, time.monotonic())
        if skipped and not first:
            self.meters.count("slices_missed_total", skipped)
        return tick

    def _slice(self, tick: Tick) -> None:
        """Wait for a tick and publish its slice; seal with the last one."""
        self._catch_up(tick)
        interval = self._cadence.interval
        if self.exhausted:
            self._sleep_until(tick.due - LONGEST_LEAD * interval, tick)
        else:
            self._sleep_until(tick.due - LOOK_AHEAD * interval, tick)
            self._sleep_until(tick.due - self._lead(), tick)
        if self.stopping:
            return
        with self.lock:
            pending = self._build(tick)
        head_start = min(HEAD_START, LARGEST_HEAD_START * interval)
        self._sleep_until(tick.due - head_start, tick, ready=True)
        with self.lock:
            if not self._is_current(pending):
                return  # the block was sealed on demand, or blocks of others came in between
            self._publish(pending, due=tick.due)
            if tick.index == self._cadence.slices:
                self._seal_and_go_on(tick)
            elif pending.first_new < len(pending.transactions):
                pending.layer.state_root()
        self._collector.collect((1 - LOOK_AHEAD) * interval)

    def _build(self, tick: Tick) -> PendingBlock:
        assert self.maker is not None
        started = time.monotonic()
        header = self.maker.header
        budget = header.gas_limit * tick.index // self._cadence.slices
        margin = max(LEAST_MARGIN, SAFETY * self._closing.value)
        deadline = tick.due - min(margin, LARGEST_MARGIN * self._cadence.interval)
        added = self.fill(budget, deadline, patience=self._cadence.interval)
        filled = time.monotonic()
        pending = self.close_slice()
        if added:
            self._cost.learn((filled - started) / added)
        self._closing.learn(time.monotonic() - filled)
        return pending

    def _is_current(self, pending: PendingBlock) -> bool:
        maker = self.maker
        return maker is not None and (maker.payload_id, maker.index) == (
            pending.payload_id,
            pending.slice_index,
        )

    def _lead(self) -> float:
        """How long before the due time building has to begin, in seconds."""
        work = self.pool.executable_count * self._cost.value + self._closing.value
        lead = max(LEAST_LEAD, SAFETY * work)
        return min(lead, LOOK_AHEAD * self._cadence.interval)

    def _seal_and_go_on(self, tick: Tick) -> None:
        started = time.monotonic()
        self.seal()
        self._begin_block(self._cadence.tick(tick.number + 1))
        self.meters.set("seal_seconds", time.monotonic() - started)

    def _catch_up(self, tick: Tick) -> None:
        """The block under construction must be the one of this tick."""
        with self.lock:
            if self.faults.restart_block:
                self.faults.restart_block = False
                self.meters.count(FAULTS.format("restart_block"))
                self.abandon()
            if self.maker is None:
                self._begin_block(tick)
            elif tick.number // self._cadence.slices != self._block:
                self._seal_and_go_on(self._cadence.tick(tick.number - 1))

    def _begin_block(self, tick: Tick) -> None:
        self._block = tick.number // self._cadence.slices
        end = time.time() + self._cadence.block_end(tick) - time.monotonic()
        self._publish(self.begin(int(end + self._cadence.interval / 2)))

    def _publish(self, pending: PendingBlock, due: float | None = None) -> None:
        now = time.monotonic()
        self.publish(replace(pending, published=now))
        self.meters.count("slices_total")
        if due is not None:
            late = max(0.0, now - due) * 1000
            self.meters.lateness_ms.observe(late)
            self.meters.count("slices_missed_total", late > MISSED_MS)

    def _head_moved(self, change: HeadChange) -> None:
        super()._head_moved(change)
        if self.maker is None:
            self._wake.set()

    def _sleep_until(self, moment: float, tick: Tick, *, ready: bool = False) -> None:
        """Sleep; a rebase begins a new block at once, unless a closed slice waits (``ready``)."""
        while not self.stopping and (left := moment - time.monotonic()) > 0:
            if not self._wake.wait(left):
                return
            self._wake.clear()
            if self.stopping:
                return
            if not ready:
                self._catch_up(tick)
