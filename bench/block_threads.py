"""Times real blocks on one thread and on several, and hashing on as many threads for comparison.

    python -m fastevm.bench.block_threads [DIR] [--threads N] [--rounds N] [--above N]

The blocks are those of ``pevm`` with more than ``--above`` transactions. Senders are known, and
state roots are not computed. Runs on one thread and on N alternate. The columns are those of
`fastevm.bench.engines.on_threads`; the last column is the share of re-executed transactions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from fastevm.bench.blocks import Prepared, prepared
from fastevm.bench.engines.on_threads import HEAD, compared, row
from fastevm.bench.options import SHARED
from fastevm.core.execution.parallel.parallel import counts
from fastevm.core.execution.transaction.senders import recover_senders


def compare(item: Prepared, threads: int, rounds: int) -> str:
    """Compares the times of a block on one thread and on several.

    Returns the row, and how many transactions were re-executed.
    """
    block = item.real.block
    recover_senders(block.transactions)
    before = counts()
    run: Callable[..., object] = item.run
    times = compared(lambda number: run(block, threads=number), threads, rounds)
    ran, again = (counts()[name] - before[name] for name in ("ran", "repeated"))
    share = f"{again / ran:6.1%} ran again" if ran else "on one thread"
    return f"{block.header.number:>8} {len(block.transactions):>5} {row(times)} {share}"


def main(arguments: list[str] | None = None) -> int:
    """Prints the rows."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.block_threads")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED / "real-blocks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--above", type=int, default=200, metavar="TRANSACTIONS")
    options = parser.parse_args(arguments)
    if options.threads < 2:
        parser.error("--threads is at least 2")
    print(f"{'block':>8} {'txs':>5} {HEAD}")
    for item in prepared(options.folder, None):
        if len(item.real.block.transactions) > options.above:
            print(compare(item, options.threads, options.rounds), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
