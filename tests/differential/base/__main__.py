"""Compares random calls to Base's native contracts with a second implementation.

    python -m tests.differential.base [--calls N] [--transactions N] [--length N] [--seed S]

``--calls``: direct calls. ``--transactions``: transactions that run programs, which call native
contracts and other programs. ``--length``: calls or transactions that share one state, before the
next state begins.

The command prints each difference with its seed. Exit status 1 if there was a difference.
"""

import argparse
import sys
from collections.abc import Callable

from . import compare, transactions

MOST_SHOWN = 25
Difference = Callable[[int, int], str | None]


def campaign(name: str, total: int, length: int, seed: int, difference: Difference) -> int:
    """Compares until ``total`` calls or transactions ran. Returns how many sequences differ."""
    differing = 0
    for first in range(0, total, length):
        found = difference(seed + first // length, length)
        if found is not None:
            differing += 1
            print(found, flush=True)
        if differing >= MOST_SHOWN:
            break
    print(f"{min(total, first + length)} {name}, {differing} sequences differ", flush=True)
    return differing


def main() -> int:
    """Compares until enough calls and transactions ran."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.base")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--transactions", type=int, default=1_000)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    differing = 0
    for name, total, difference in (
        ("calls", options.calls, compare.difference),
        ("transactions", options.transactions, transactions.difference),
    ):
        if total:
            differing += campaign(name, total, options.length, options.seed, difference)
    return 1 if differing else 0


sys.exit(main())
