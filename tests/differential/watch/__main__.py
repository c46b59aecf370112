"""Compares a `Watch` with full executions: ``python -m tests.differential.watch``.

    --comparisons N   number of results to compare (1,000,000)
    --seed N          seed of the first chain (0)
    --seconds N       stop after this time
    --threads N       threads of the watch (1)

Prints the seeds of chains with differences. Exit status 1 if there are any.
"""

import argparse
import sys
import time

from .comparison import Comparison


def main() -> int:
    """Compares results until the given number or time is reached."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.watch")
    parser.add_argument("--comparisons", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    compared = ran = kept = wrong = 0
    seed = options.seed
    while compared < options.comparisons and time.monotonic() < end and wrong < 10:
        chain = Comparison(seed, threads=options.threads)
        for line in chain.differing():
            wrong += 1
            print(line, flush=True)
        compared += chain.compared
        counters = chain.watch.counters
        ran, kept = ran + counters.ran, kept + counters.kept
        seed += 1
    print(
        f"{compared:,} comparisons on {seed - options.seed:,} chains from seed {options.seed},"
        f" {wrong} differ; {ran:,} runs, {kept:,} answers kept"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
