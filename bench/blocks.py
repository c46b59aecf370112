"""Times real blocks on the state that they read, in million gas per second.

    python -m fastevm.bench.blocks [DIR] [--rounds N] [--witnesses] [--threads N] [--revm]
        [--report DIR]

Runs the blocks of ``pevm`` in a folder of real blocks. Their pre-state has all accounts. With
``--witnesses``, runs the blocks of ``mainnet_witness`` on the state that they read. A run executes
the transactions and computes receipts, bloom filter and receipts root, but not the state root.
Times are medians of thread CPU time, with known senders and with sender recovery on one thread. The
rounds of all blocks are interleaved. Exit status 1 if the gas used differs from a block's header.

``published``: milliseconds of sequential execution as published by the authors of pevm, on other
hardware. ``--threads N`` adds the wall time on N threads: of blocks with unknown senders, and of
whole imports, which also decode the transactions and compute the state root. ``--revm`` also runs
the messages of each block on pyrevm. A block is compared if nearly all messages end as on the
chain.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from fastevm.bench.engines.clock import cpu_seconds
from fastevm.bench.engines.evms import PeerError
from fastevm.bench.engines.on_threads import timed
from fastevm.bench.engines.revm_blocks import Revm
from fastevm.bench.options import SHARED
from fastevm.bench.report import page as report
from fastevm.conformance.fields import accounts_of
from fastevm.conformance.real_blocks import INCOMPLETE, RealBlock
from fastevm.conformance.real_sources import cases_of
from fastevm.conformance.sources import SourceError
from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block
from fastevm.core.state.layer import Layer

ARCHIVE: Final = "pevm"
WITNESSES: Final = "mainnet_witness"
PUBLISHED_MS: Final = {
    13217637: 8.2, 13287210: 4.2, 14396881: 4.9, 15274915: 6.0, 15537393: 2.25, 15537394: 2.7,
    15538827: 9.3, 16146267: 8.1, 17034869: 3.7, 17666333: 14.4, 18085863: 7.8, 19426586: 8.0,
}  # fmt: skip
"""Block -> milliseconds that pevm's authors measured on their machine."""


ALIKE: Final = 0.95
"""Minimum share of a block's messages that must end as on the chain to compare a peer's time."""
SIDES: Final = ("revm", "execution")
LINES: Final = {"unknown": "unknown senders", "imports": "whole imports"}


@dataclass(frozen=True, slots=True)
class Timed:
    """A block with the medians of its rounds in seconds.

    ``revm``: the median of the block's messages on pyrevm, or None if pyrevm was not requested or
    too many messages end differently. ``unknown``: wall seconds of each round on several threads
    with unknown senders. ``imports``: wall seconds of each whole import on several threads.
    """

    number: int
    transactions: int
    gas: int
    execution: float
    senders: float
    revm: float | None = None
    unknown: tuple[float, ...] = ()
    imports: tuple[float, ...] = ()

    @property
    def speed(self) -> float:
        """Million gas per second, with known senders."""
        return self.gas / self.execution / 1e6

    @property
    def speed_with_senders(self) -> float:
        """Million gas per second, including sender recovery on one thread."""
        return self.gas / (self.execution + self.senders) / 1e6


class WrongGas(Exception):
    """A block used a different amount of gas than its header states."""


class Prepared:
    """A block and its state, both prepared before the clock starts."""

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        self.real = RealBlock.read(name, fields)
        given = fields["pre"].get("accounts")
        layer = Layer.of(accounts_of(given) if given else self.real.accounts_read())
        self.run = self.real.executor_on(layer)
        self.encoded = [transaction.raw for transaction in self.real.block.transactions]
        self.execution: list[float] = []
        self.senders: list[float] = []
        self.unknown: list[float] = []
        self.imports: list[float] = []
        self.revm: list[float] = []
        self.succeeded: list[bool] = []

    def on_revm(self, revm: Revm, fields: Mapping[str, Any]) -> None:
        """Sends the block to pyrevm, and records which of its messages must succeed.

        Does nothing if pyrevm cannot execute the block.
        """
        recover_senders(self.real.block.transactions, threads=1)
        if revm.prepare(self.real, fields):
            receipts = self.run(self.real.block).receipts
            self.succeeded = [getattr(receipt, "success", True) for receipt in receipts]

    def round_on_revm(self, revm: Revm) -> None:
        """Times one execution on pyrevm.

        Records nothing if too few messages end as on the chain (see ``ALIKE``).
        """
        if self.succeeded:
            seconds, alike = revm.run(self.real.block.header.number, self.succeeded)
            if alike >= ALIKE:
                self.revm.append(seconds)

    def round(self) -> None:
        """Times one recovery and one execution."""
        block = self.decoded()
        self.senders.append(cpu_seconds(lambda: recover_senders(block.transactions, threads=1)))
        self.execution.append(cpu_seconds(lambda: self.execute(block)))

    def round_on_threads(self, threads: int) -> None:
        """Times one execution with unknown senders, and one whole import."""
        block = self.decoded()
        self.unknown.append(timed(lambda: self.execute(block, threads=threads))[0])
        whole = partial(self.execute, threads=threads, state_root=True, root_of=None)
        self.imports.append(timed(lambda: whole(self.decoded()))[0])

    def decoded(self) -> Block:
        """Returns the block with newly decoded transactions. Their senders are unknown."""
        real, transactions = self.real.block, tuple(map(Transaction.decode, self.encoded))
        return Block(real.header, transactions, real.ommers, real.withdrawals)

    def execute(self, block: Block, **options: Any) -> None:
        """Executes the block. Raises `WrongGas` unless it uses the gas in its header."""
        result = self.run(block, **options)
        if result.gas_used != block.header.gas_used:
            raise WrongGas(f"block {block.header.number} used {result.gas_used} gas")

    def timed(self) -> Timed:
        """Returns the medians so far."""
        block = self.real.block
        return Timed(
            block.header.number,
            len(block.transactions),
            block.header.gas_used,
            statistics.median(self.execution),
            statistics.median(self.senders),
            statistics.median(self.revm) if self.revm else None,
            tuple(self.unknown),
            tuple(self.imports),
        )


def prepared(
    folder: Path, most: int | None, revm: Revm | None = None, archive: str = ARCHIVE
) -> Iterator[Prepared]:
    """Returns the blocks of a folder that used gas, also sent to pyrevm if it is installed."""
    whole = (case for case in cases_of(folder, archive) if case[0] not in INCOMPLETE)
    for name, content in islice(whole, most):
        fields = msgspec.json.decode(content)
        item = Prepared(name, fields)
        if item.real.block.header.gas_used:
            if revm is not None:
                item.on_revm(revm, fields)
            yield item


def table(found: list[Timed]) -> Iterator[str]:
    """Returns the table: a line for each block, and a line for all blocks."""
    yield f"{'block':>9} {'txs':>5} {'Mgas':>6} {'ms':>7} {'Mgas/s':>7} {'+senders':>8} published"
    for item in found:
        published = PUBLISHED_MS.get(item.number)
        yield (
            f"{item.number:>9} {item.transactions:>5} {item.gas / 1e6:>6.1f}"
            f" {item.execution * 1e3:>7.2f} {item.speed:>7.0f} {item.speed_with_senders:>8.0f}"
            f" {published or '':>9}" + beside(item)
        )
    execution, senders = sum(item.execution for item in found), sum(item.senders for item in found)
    gas = sum(item.gas for item in found) / 1e6
    yield (
        f"{'all':>9} {sum(item.transactions for item in found):>5} {gas:>6.1f}"
        f" {execution * 1e3:>7.1f} {gas / execution:>7.0f} {gas / (execution + senders):>8.0f}"
    )
    yield from on_threads(found, gas)
    compared = [item for item in found if item.revm is not None]
    if compared:
        theirs, ours = (sum(getattr(item, side) or 0 for item in compared) for side in SIDES)
        yield f"{len(compared)} blocks on revm: {theirs * 1e3:.1f} ms, {theirs / ours:.2f} times"


def on_threads(found: list[Timed], gas: float) -> Iterator[str]:
    """Returns the lines for several threads: medians over the blocks, and the spread of the rounds.

    ``gas``: the gas of all blocks, in millions.
    """
    for name in ("unknown", "imports"):
        columns = [getattr(item, name) for item in found]
        rounds = [sum(seconds) for seconds in zip(*columns, strict=True)]
        if rounds:
            total = sum(map(statistics.median, columns))
            yield (
                f"{LINES[name]}: {total * 1e3:.1f} ms, {gas / total:.0f} Mgas/s "
                f"(rounds {gas / max(rounds):.0f} to {gas / min(rounds):.0f})"
            )


def beside(timed: Timed) -> str:
    """Returns revm's milliseconds for the block, and revm's time divided by fastevm's."""
    if timed.revm is None:
        return ""
    return f"   revm {timed.revm * 1e3:>6.2f} ms {timed.revm / timed.execution:>5.2f} times"


def measured(options: argparse.Namespace, revm: Revm | None) -> list[Prepared]:
    """Times all rounds of the blocks of the folder. Returns the blocks by number."""
    archive = WITNESSES if options.witnesses else ARCHIVE
    found = prepared(options.folder, options.most, revm, archive)
    blocks = sorted(found, key=lambda item: item.real.block.header.number)
    for _ in range(max(options.rounds, 1)):
        for block in blocks:
            block.round()
            if options.threads > 1:
                block.round_on_threads(options.threads)
            if revm is not None:
                block.round_on_revm(revm)
    return blocks


def main(arguments: list[str] | None = None) -> int:
    """Times the blocks and prints the table. Returns 1 for a wrong result, 2 without blocks."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.blocks")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED / "real-blocks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=int, metavar="N", help="only the first N blocks")
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="wall times on N threads"
    )
    parser.add_argument("--witnesses", action="store_true", help="the blocks with witnesses")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write figures and plots there")
    parser.add_argument("--revm", action="store_true", help="run the blocks on pyrevm beside")
    options = parser.parse_args(arguments)
    revm = None
    try:
        if options.revm:
            revm = Revm()
        blocks = measured(options, revm)
    except (SourceError, PeerError) as error:
        print(error, file=sys.stderr)
        return 2
    except WrongGas as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if revm is not None:
            revm.close()
    found = [block.timed() for block in blocks]
    print("\n".join(table(found)))
    if options.report:
        report.write(options.report, blocks_found={"blocks": [asdict(item) for item in found]})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
