"""Compares fastevm with a transcription of the OP-stack rules on random blocks.

    python -m tests.differential.op_stack --transactions 10000 --fork all --seed 1
    python -m tests.differential.op_stack --real-blocks

The second command executes eight real blocks on the transcription only. Exit status 1 if there was
a difference.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from tests.differential.peers import Peer

from .campaign import Difference, Tally, run
from .real_blocks import NUMBERS, differences_in
from .specification.forks import Fork

LONGEST_WORDS = 500
MOST_SHOWN = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.op_stack")
    parser.add_argument("--transactions", type=int, default=1000, help="executed under each fork")
    parser.add_argument("--fork", default="all", help="a name as Holocene, or all")
    parser.add_argument("--seed", type=int, default=1, help="of the first block")
    parser.add_argument("--write", type=Path, help="a folder for small cases that differ")
    parser.add_argument("--real-blocks", action="store_true", help="execute the eight real blocks")
    options = parser.parse_args()
    with Peer("op-stack") as peer:
        if options.real_blocks:
            return real_blocks(peer)
        forks = tuple(Fork) if options.fork == "all" else (Fork.named(options.fork),)
        failed = 0
        for fork in forks:
            began = time.monotonic()
            tally = run(peer, fork, options.seed, options.transactions)
            report(fork, tally, time.monotonic() - began)
            failed += len(tally.found)
            for difference in tally.found[:MOST_SHOWN]:
                show(difference, options.write)
    return bool(failed)


def report(fork: Fork, tally: Tally, seconds: float) -> None:
    print(
        f"{fork.title}: {tally.executed} transactions executed of {tally.candidates} candidates "
        f"in {tally.blocks} blocks ({tally.first_blocks} first ones of the fork), {seconds:.0f} s, "
        f"{len(tally.found)} blocks differ"
    )
    for name, counted in (("deposits", tally.deposits), ("others", tally.others)):
        print(f"  {name}: {words_of(counted)}", flush=True)


def words_of(counted: Counter[str]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in counted.most_common())


def show(difference: Difference, folder: Path | None) -> None:
    words = "; ".join(difference.words)[:LONGEST_WORDS]
    print(f"  seed {difference.seed} (after {difference.case['parent_fork']}): {words}")
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{difference.fork.title}-{difference.seed}.json"
        path.write_text(json.dumps(difference.case, indent=1))


def real_blocks(peer: Peer) -> int:
    failed = 0
    for number in NUMBERS:
        found = differences_in(number, peer)
        failed += bool(found)
        print(f"OP Sepolia {number}: {found or 'equal'}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
