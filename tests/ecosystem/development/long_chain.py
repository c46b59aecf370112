"""Measures the memory of anvil and of `fastevm dev` on a fork with many empty blocks.

``python -m tests.ecosystem.development.long_chain [--blocks N]`` prints a table for anvil, `fastevm
dev`, and `fastevm dev` with a data directory.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from fastevm.bench.node.launch import NodeProcess

from .nodes import BASELINE, OURS, anvil, dev, running

PIECE = 500  # blocks mined per request
KEPT = f"{OURS} --datadir"


def measured(node: NodeProcess, blocks: int) -> tuple[int, int, float]:
    """Mines blocks at intervals of a second. Returns MB before and after, and how long it took."""
    with running(node):
        before, began = node.memory(), time.monotonic()
        for done in range(0, blocks, PIECE):
            node.ask("anvil_mine", hex(min(PIECE, blocks - done)), "0x1")
        seconds = time.monotonic() - began
        return before // 10**6, node.memory() // 10**6, seconds


def main() -> int:
    """Measures all nodes and prints the table."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("--blocks", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--only", choices=(BASELINE, OURS, KEPT), action="append")
    chosen = parser.parse_args()
    print(f"| node | MB at start | MB after {chosen.blocks:,} blocks | s | MB on disk |")
    print("|---|---|---|---|---|")
    with running(dev()) as upstream, tempfile.TemporaryDirectory() as folder:
        upstream.ask("anvil_mine", "0x3")
        fork = ("--fork-url", upstream.url, "--no-storage-caching")
        nodes = {
            BASELINE: lambda: anvil(*fork),
            OURS: lambda: dev(*fork),
            KEPT: lambda: dev(*fork[:2], "--datadir", folder),
        }
        for name in chosen.only or nodes:
            before, after, seconds = measured(nodes[name](), chosen.blocks)
            disk = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
            print(f"| {name} | {before} | {after} | {seconds:.0f} | {disk // 10**6} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
