"""Times watched simulations while a node builds blocks: ``python -m fastevm.bench.watch --node``.

A node with slices of 200 ms, its server and a `Watch` share this process, as in the service behind
``fastevm_watch``: a listener wakes a thread of lower priority, which advances to the newest slice.
Transactions change the reads of 1 % and of 10 % of the bundles in each slice. Parts with and
without the watch alternate. A timer in another process wakes up at the same intervals. The lateness
of the timer shows the lateness of the machine.
"""

import gc
import resource
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Final

from fastevm.bench.node.launch import ServerThread
from fastevm.bench.watch import (
    ESCROW,
    KINDS,
    LENDING,
    LIMITS,
    MEGABYTE,
    MEMORY_LIMIT,
    MILLISECONDS,
    POOL,
    TOKEN,
    accounts_of,
    fill,
    missed,
    percentile,
    person,
    question,
)
from fastevm.chain import PendingBlock
from fastevm.chain.retention import ChainLimits
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Node, dev_node
from fastevm.rpc.dispatch.workers import lower_priority
from fastevm.rpc.view import View
from fastevm.rpc.watching.service import WATCH_NICENESS
from fastevm.simulate import Watch, simulate_many

INTERVAL_MS: Final = 200
BLOCK_MS: Final = 2_000
STATES: Final = 4  # number of kept states; few, so that most of the memory belongs to the watch
GAS_LIMIT: Final = 2_000_000_000
RANGE: Final = 1_000  # accounts whose slots one transaction writes
STORE_GAS: Final = 30_000  # per account, including creation of a slot
TRANSFERS: Final = 20  # ether transfers in each slice, in addition
PARTS: Final = 8  # alternately with and without the watch
LATENESS_LIMIT: Final = 10  # milliseconds, p99 of the slices' lateness
CATCH_UP_S: Final = 0.01  # seconds between two checks whether the watch has caught up
BUDGET: Final = 0.1  # seconds before the watch looks for a newer slice, as `Limits.watch_time`
TIMER: Final = """
import sys, time
interval, due = float(sys.argv[1]), time.monotonic()
while True:
    due += interval
    time.sleep(max(0.0, due - time.monotonic()))
    print(time.monotonic() - due, flush=True)
"""


def resident() -> int:
    """Returns the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


class Follower:
    """Keeps the answers of a watch fresh, in a separate thread.

    Like the service behind ``fastevm_watch``, it always advances to the newest slice and stops
    after `BUDGET` seconds. If the reads of a bundle change again meanwhile, the bundle runs only on
    the newer slice. ``steps``: for each slice, including skipped slices, the seconds until all
    answers were at least as new as the slice. ``ran``: for each advance, the number of bundles that
    ran.
    """

    def __init__(self, node: Node, watch: Watch) -> None:
        self.node, self.watch = node, watch
        self.is_paused = False
        self.steps: list[float] = []
        self.ran: list[int] = []
        self._changed = threading.Condition()
        self._newest: PendingBlock | None = None
        # arrival times of slices that some answers do not include yet
        self._due: deque[float] = deque()
        self._ends = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Listens to the node and starts the thread."""
        self.node.on_slice(lambda pending, first_new: self.wake(pending))
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._ends = True
        self.wake(None)
        self._thread.join()

    @property
    def is_behind(self) -> bool:
        """Returns whether some answers are older than the newest slice."""
        return len(self._due) > 0

    def wake(self, pending: PendingBlock | None) -> None:
        """Records a new slice."""
        with self._changed:
            self._newest = pending
            if pending is not None and not self.is_paused:
                self._due.append(pending.published)
            self._changed.notify()

    def step(self) -> None:
        """Runs bundles on the newest slice until all are fresh or the time is used up."""
        with self._changed:
            pending, self._newest = self._newest, None
            if self.is_paused:
                self._due.clear()
                return
            published = list(self._due)
        if pending is not None:
            state = View.of_pending(self.node, pending).state()
            changes = self.watch.advance(state, slice_index=pending.slice_index, budget=BUDGET)
            self.ran.append(changes.ran)
        elif published:
            changes = self.watch.refresh(budget=BUDGET)
            self.ran[-1] += changes.ran
        else:
            return
        if changes.stale == 0:
            now = time.monotonic()
            for at in published:
                self.steps.append(now - at)
                self._due.popleft()

    def _run(self) -> None:
        lower_priority(WATCH_NICENESS)
        while not self._ends:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._newest is not None or self._ends or self.is_behind
                )
            self.step()


class Load:
    """Transactions of dev accounts that change the reads of some bundles in each slice."""

    def __init__(self, node: Node, count: int) -> None:
        self.node, self.of_kind = node, count // KINDS
        self.random = Random(7)
        self.nonces = [0] * len(node.accounts)
        self.number = 0

    def slice(self, touched: int) -> list[bytes]:
        """Returns the transactions of the next slice."""
        self.number += 1
        pooled = self.of_kind // len(POOL)
        sent = [self._transaction(b"\xb0" * 20, b"", 21_000) for _ in range(TRANSFERS)]
        left = touched
        if left >= 2 * pooled:  # a swap changes the reads of all swaps of its pool
            data = bytes(4) + (10**9 + self.number).to_bytes(32, "big")
            sent.append(self._transaction(self.random.choice(POOL), data, 100_000))
            left -= pooled
        for address, share in ((TOKEN, 0.4), (ESCROW, 0.3), (LENDING, 0.3)):
            chosen = min(self.of_kind, int(left * share))
            first = self.random.randrange(self.of_kind - chosen + 1)
            for start in range(first, first + chosen, RANGE):
                sent.append(self._store(address, start, min(start + RANGE, first + chosen)))
        return sent

    def _store(self, address: bytes, start: int, end: int) -> bytes:
        numbers = (
            int.from_bytes(person(start), "big"),
            int.from_bytes(person(end), "big"),
            10**6 + self.number,
        )
        data = b"".join(number.to_bytes(32, "big") for number in numbers)
        return self._transaction(address, data, 100_000 + STORE_GAS * (end - start) // 3)

    def _transaction(self, to: bytes, data: bytes, gas: int) -> bytes:
        at = min(range(len(self.nonces)), key=self.nonces.__getitem__)
        nonce, self.nonces[at] = self.nonces[at], self.nonces[at] + 1
        made = Transaction.build(
            to=to,
            data=data,
            gas_limit=gas,
            chain_id=self.node.config.chain_id,
            nonce=nonce,
            max_fee_per_gas=10**10,
            max_priority_fee_per_gas=10**9,
        )
        return made.sign(self.node.accounts[at].private_key).raw


class Part:
    """The figures of the parts with or without the watch. Times are milliseconds."""

    def __init__(self) -> None:
        self.lateness: list[float] = []
        self.control: list[float] = []
        self.fresh: list[float] = []
        self.ran: list[int] = []

    def line(self) -> str:
        """Returns a line with the lateness of slices and of the timer."""
        return (
            f"lateness of slices p50 {median(self.lateness):.1f} ms,"
            f" p99 {percentile(self.lateness, 0.99):.1f} ms;"
            f" of the timer p99 {percentile(self.control, 0.99):.1f} ms"
        )


class Timer:
    """A timer in a separate process. ``newest``: the timer's lateness in seconds."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", TIMER, str(INTERVAL_MS / MILLISECONDS)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.newest: deque[float] = deque()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.newest.append(float(line))

    def take(self) -> list[float]:
        """Returns the values since the last call."""
        return [self.newest.popleft() for _ in range(len(self.newest))]

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()


class Bench:
    """A node, its server, a watch and a timer."""

    def __init__(self, count: int, threads: int) -> None:
        self.count, self.threads = count, threads
        accounts = {
            f"0x{address.hex()}": {
                "code": f"0x{account['code'].hex()}",
                "balance": "0x0",
                "storage": {f"0x{k:064x}": f"0x{v:064x}" for k, v in account["storage"].items()},
            }
            for address, account in accounts_of(count // KINDS).items()
        }
        self.node = dev_node(
            block_time_ms=BLOCK_MS,
            slice_interval_ms=INTERVAL_MS,
            limits=ChainLimits(states=STATES),
            genesis_file={"alloc": accounts, "gasLimit": hex(GAS_LIMIT)},
        )
        del accounts
        self.load = Load(self.node, count)
        self.timer = Timer()
        self.slices = threading.Semaphore(0)
        self.node.on_slice(lambda pending, first_new: self.slices.release())

    def open(self) -> None:
        """Runs all bundles once on the pending state."""
        pending = self.node.pending()
        assert pending is not None
        gc.collect()
        self.before = self.most = resident()
        started = time.perf_counter()
        watch = Watch(View.of_pending(self.node, pending).state(), threads=self.threads)
        filler = threading.Thread(target=self._fill, args=(watch,))
        filler.start()
        filler.join()
        print(
            f"{self.count:,} questions on {self.threads} threads beside a node, added and run in"
            f" {time.perf_counter() - started:.1f} s"
        )
        self.follower = Follower(self.node, watch)
        self.follower.start()

    def _fill(self, watch: Watch) -> None:
        lower_priority(WATCH_NICENESS)  # threads that the watch starts later inherit it
        fill(watch, self.count)

    def part(self, figures: Part, touched: int, slices: int, *, watches: bool) -> None:
        """Measures this many slices, with or without the watch."""
        sent = [self.load.slice(touched) for _ in range(slices + 1)]
        self.follower.is_paused = not watches
        time.sleep(2 * INTERVAL_MS / MILLISECONDS)  # time for the watch to catch up
        histogram = self.node.metrics_registry.lateness_ms
        self._next_slice()
        self.timer.take()
        follower = self.follower
        known, first, first_ran = histogram.count, len(follower.steps), len(follower.ran)
        for transactions in sent:
            for raw in transactions:
                self.node.submit(raw)
            self._next_slice()
        while watches and follower.is_behind:
            time.sleep(CATCH_UP_S)
        self.most = max(self.most, resident())
        observed = histogram.count - known
        figures.lateness += list(histogram.newest)[-observed:]
        figures.control += [late * MILLISECONDS for late in self.timer.take()]
        figures.fresh += [seconds * MILLISECONDS for seconds in follower.steps[first:]]
        figures.ran += follower.ran[first_ran:]

    def _next_slice(self) -> None:
        while self.slices.acquire(blocking=False):
            pass
        self.slices.acquire()

    def full_run(self) -> float:
        """Returns the milliseconds of a run of all bundles on the pending state."""
        pending = self.node.pending()
        assert pending is not None
        state = View.of_pending(self.node, pending).state()
        payloads = [question(at) for at in range(self.count)]
        started = time.perf_counter()
        for _ in simulate_many(state, payloads, threads=self.threads, columns=True):
            pass
        return (time.perf_counter() - started) * MILLISECONDS

    def close(self) -> None:
        """Stops the thread and the timer."""
        self.follower.close()
        self.follower.watch.close()
        self.timer.close()


def measure(count: int, slices: int, threads: int) -> bool:
    """Prints the figures for 1 % and 10 %. Returns whether all aims were met."""
    bench = Bench(count, threads)
    try:
        with ServerThread(bench.node):
            time.sleep(1.0)
            bench.open()
            met = [report(bench, share, limit, slices) for share, limit in LIMITS.items()]
            grown = (bench.most - bench.before) / MEGABYTE
            used = bench.follower.watch.counters.memory / MEGABYTE
            print(
                f"memory: {used:.0f} MB of the watch, {grown:.0f} MB more resident than before"
                f" (aim: {MEMORY_LIMIT} MB{missed(grown <= MEMORY_LIMIT)})"
            )
            print(f"a full run of all beside the builder: {bench.full_run():,.0f} ms")
    finally:
        bench.close()
    return all(met) and grown <= MEMORY_LIMIT


def report(bench: Bench, share: float, limit: int, slices: int) -> bool:
    """Measures one share of changed bundles and prints it. Returns whether its aims were met."""
    figures = {True: Part(), False: Part()}
    for number in range(PARTS):
        watches = number % 2 == 0
        touched = int(bench.count * share)
        bench.part(figures[watches], touched, 2 * slices // PARTS, watches=watches)
    fresh = figures[True].fresh
    high = percentile(fresh, 0.99)
    late = percentile(figures[True].lateness, 0.99)
    print(
        f"{share:.0%} touched: {mean(figures[True].ran):,.0f} runs a slice, fresh after"
        f" p50 {median(fresh):.1f} ms, p99 {high:.1f} ms (aim: {limit} ms{missed(high <= limit)})"
    )
    print(f"  with the watch: {figures[True].line()} (aim: {LATENESS_LIMIT} ms)")
    print(f"  without it:     {figures[False].line()}")
    return high <= limit and late <= LATENESS_LIMIT
