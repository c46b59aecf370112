"""``fastevm import``: verifies, executes and adds the blocks of files."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Final

from fastevm.chain.block_files import blocks_of
from fastevm.chain.chain import Chain
from fastevm.chain.named import CHAIN_HELP
from fastevm.chain.named.choice import chosen_chain
from fastevm.chain.retention import ChainLimits, block_threads
from fastevm.chain.storage import DataDirectory
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.primitives.safe_text import safe
from fastevm.errors import InvalidBlock, error_text
from fastevm.node.from_genesis import genesis_node
from fastevm.node.node import Mining

PROGRESS_SECONDS: Final = 1.0  # seconds between two progress lines on a terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE",
        help="era1, or blocks as RLP like geth export writes them, with or without gzip",
    )  # fmt: skip
    parser.add_argument("--chain", metavar="NAME", help=CHAIN_HELP)
    parser.add_argument("--genesis", type=Path, metavar="FILE", help="genesis file of the chain")
    parser.add_argument(
        "--datadir", type=Path, metavar="DIR",
        help="keep the chain in this directory (default: only verify)",
    )  # fmt: skip
    parser.add_argument(
        "--threads", type=int, default=block_threads(), metavar="N",
        help="threads that execute a block (%(default)s)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Imports the files in order. Returns 1 for an invalid file or chain, 2 without a chain."""
    try:
        chosen = chosen_chain(arguments.chain, arguments.genesis)
    except (ValueError, OSError) as error:
        print(f"fastevm import: {error_text(error)}", file=sys.stderr)
        return 1
    if chosen is None:
        print("fastevm import: missing chain: pass --chain or --genesis", file=sys.stderr)
        return 2
    directory = None if arguments.datadir is None else DataDirectory(arguments.datadir)
    try:
        node = genesis_node(
            chosen.genesis,
            mining=Mining.NEVER,
            directory=directory,
            genesis_hash=chosen.genesis_hash,
            limits=ChainLimits(threads=arguments.threads),
        )
        return _import(node.chain, arguments.files)
    finally:
        if directory is not None:
            directory.close()


def _import(chain: Chain, files: list[Path]) -> int:
    report = _Report(chain)
    for path in files:
        try:
            for raw in blocks_of(path):
                block = decode_block(raw, number=chain.head.number + 1)
                if block.number == chain.genesis.number and block.hash == chain.genesis.hash:
                    continue
                if not chain.knows(block.hash):
                    chain.add(block)
                    report.added(block.header.gas_used)
        except InvalidBlock as error:
            report.finish()
            print(f"fastevm import: {safe(path)}: {error_text(error)}", file=sys.stderr)
            return 1
    report.finish()
    return 0


class _Report:
    """Prints the progress on a terminal, and totals at the end."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.blocks = self.gas = 0
        self.began = self.shown = time.monotonic()

    def added(self, gas: int) -> None:
        """Counts a block."""
        self.blocks += 1
        self.gas += gas
        now = time.monotonic()
        if now - self.shown >= PROGRESS_SECONDS and sys.stderr.isatty():
            self.shown = now
            print(f"\rblock {self.chain.head.number}, {self._speed(now)} ", end="", file=sys.stderr)

    def finish(self) -> None:
        """Prints the totals."""
        now = time.monotonic()
        if self.shown != self.began:
            print(file=sys.stderr)
        head = self.chain.head
        print(
            f"imported {self.blocks} blocks in {now - self.began:.1f} s ({self._speed(now)}); "
            f"the head is {head.number} 0x{head.hash.hex()}"
        )

    def _speed(self, now: float) -> str:
        return f"{self.gas / max(now - self.began, 1e-9) / 1e6:.0f} Mgas/s"
