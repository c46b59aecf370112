"""Runs random blocks on 2 to 8 threads and on one: ``python -m tests.differential.parallel``.

    --blocks N    number of blocks (100,000)
    --seed N      seed of the first block (0)

Prints seeds of blocks that differ, and a summary. Exit status 1 if a block differs.
"""

import argparse
import sys
from collections import Counter

from fastevm.core.execution.parallel.parallel import counts

from .blocks import Maker, differing


def main() -> int:
    """Compares the blocks."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.parallel")
    parser.add_argument("--blocks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    refused: Counter[bool] = Counter()
    for seed in range(options.seed, options.seed + options.blocks):
        found = differing(seed, lambda random: random.randint(2, 8))
        if found:
            wrong += 1
            print(f"seed {seed} differs: {', '.join(found)}", flush=True)
        if seed % 100 == 0:
            refused["refused" in Maker(seed).block().result(1)] += 1
    print(f"{options.blocks} blocks, {wrong} differ; {counts()}; refused (sample): {dict(refused)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
