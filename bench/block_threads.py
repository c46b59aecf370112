"""Real blocks on several threads beside one, and work without conflicts on the same threads.

    python -m fastevm.bench.block_threads [DIR] [--threads N] [--rounds N] [--above N]

Blocks of ``pevm`` with more than so many transactions, senders known, without the state root. For
each the wall time on one thread and on N in turn, the least of the rounds, and the processor time
of all threads. The last line is SHA-256 over independent data: what the machine gives N threads.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from fastevm.bench.blocks import Prepared, prepared
from fastevm.bench.options import SHARED
from fastevm.execution.parallel import counts
from fastevm.execution.senders import recover_senders

HASHED: Final = bytes(1 << 20)
HASHES: Final = 8


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall and of processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def hash_on(threads: int) -> None:
    """Hash the same amount on so many threads."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: hashlib.sha256(HASHED).digest(), range(HASHES)))


def row(name: str, alone: list[tuple[float, float]], shared: list[tuple[float, float]]) -> str:
    """The least times of both, and what the threads gained."""
    (wall, cpu), (shared_wall, shared_cpu) = (
        tuple(min(one[kind] for one in rounds) for kind in (0, 1)) for rounds in (alone, shared)
    )
    return (
        f"{name:>14} {wall * 1e3:8.2f} {shared_wall * 1e3:8.2f} {wall / shared_wall:6.2f}"
        f" {shared_cpu / cpu:6.2f}"
    )


def compare(one: Prepared, threads: int, rounds: int) -> str:
    """The row of a block, with how many of its transactions ran again."""
    block = one.real.block
    recover_senders(block.transactions)
    times: dict[int, list[tuple[float, float]]] = {1: [], threads: []}
    run: Callable[..., object] = one.run
    before = counts()
    for _ in range(rounds):
        for number, found in times.items():
            found.append(timed(partial(run, block, threads=number)))
    ran, again = (counts()[name] - before[name] for name in ("ran", "repeated"))
    share = f"{again / ran:6.1%} ran again" if ran else "on one thread"
    return f"{row(str(block.header.number), times[1], times[threads])} {share}"


def main(arguments: list[str] | None = None) -> int:
    """Print the rows."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.block_threads")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED / "real-blocks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--above", type=int, default=200, metavar="TRANSACTIONS")
    options = parser.parse_args(arguments)
    if options.threads < 2:
        parser.error("--threads is at least 2")
    print(f"{'block':>14} {'1: ms':>8} {f'{options.threads}: ms':>8} {'gain':>6} {'cpu x':>6}")
    for one in prepared(options.folder, None):
        if len(one.real.block.transactions) > options.above:
            print(compare(one, options.threads, options.rounds), flush=True)
    hashing = {
        number: [timed(partial(hash_on, number)) for _ in range(options.rounds)]
        for number in (1, options.threads)
    }
    print(row("hashing", hashing[1], hashing[options.threads]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
