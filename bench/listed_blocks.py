"""Times Amsterdam blocks on several threads by their access lists, and on one thread.

    python -m fastevm.bench.listed_blocks [DIR] [--threads N] [--rounds N] [--above N]

The blocks contain the transactions of real blocks of ``pevm`` with more than ``--above``
transactions, under Amsterdam rules, with more gas and with access lists (EIP-7928). Runs on one
thread and on N alternate. Senders are known; state roots are computed only with ``--roots``. The
columns are those of `fastevm.bench.engines.on_threads`, and two more. The first is the caller's
serial time before and after the parallel part, as a share of the time on one thread. The second is
the largest possible gain, given this share, the CPU time of all threads and the longest
transaction. The last lines have the gas per second of all blocks, and the median of the blocks that
take longer than ``LONG`` on one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from fastevm.bench.blocks import ARCHIVE
from fastevm.bench.engines.on_threads import HEAD, Times, compared, row
from fastevm.bench.options import SHARED
from fastevm.chain.system_contracts import BUILDER_CONTRACTS, SYSTEM_CONTRACTS
from fastevm.conformance.fields import accounts_of
from fastevm.conformance.real_blocks import RealBlock
from fastevm.conformance.real_sources import cases_of
from fastevm.core.execution.block.block import BlockBuilder, execute_block
from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.unsigned_sender import impersonated
from fastevm.core.execution.types import EMPTY_LIST_HASH, EMPTY_ROOT, ZERO_HASH, Block, Header
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction

FORK: Final = "amsterdam"
# factor on the original gas limits, because of state gas and the prices of Berlin and later forks
MORE_GAS: Final = 8
GAS_LIMIT: Final = 1_000_000_000
RICH: Final = 10**21  # wei, to each sender for each transaction
NOBODY: Final = bytes(20)
LONG: Final = 0.003  # seconds; shorter blocks do not count in the median

Case = tuple[Layer, Block, tuple[bytes, ...]]
"""The state before a block, the block with its list, and hashes of earlier blocks."""


def header_of(real: RealBlock) -> Header:
    """Returns a draft Amsterdam header for a real block."""
    then = real.block.header
    return Header(
        parent_hash=then.parent_hash, coinbase=then.coinbase, number=then.number, difficulty=0,
        gas_limit=GAS_LIMIT, timestamp=then.timestamp, mix_hash=then.mix_hash,
        base_fee_per_gas=then.base_fee_per_gas or 0, withdrawals_root=EMPTY_ROOT, blob_gas_used=0,
        excess_blob_gas=0, parent_beacon_block_root=ZERO_HASH, requests_hash=ZERO_HASH,
        block_access_list_hash=EMPTY_LIST_HASH, slot_number=1,
    )  # fmt: skip


def unsigned(transaction: Transaction) -> Transaction:
    """Returns a real block's call from its sender with a higher gas limit."""
    fields: dict[str, Any] = {
        "nonce": transaction.nonce, "to": transaction.to, "value": transaction.value,
        "data": transaction.data, "gas_limit": MORE_GAS * transaction.gas_limit,
        "max_fee_per_gas": transaction.max_fee_per_gas,
        "max_priority_fee_per_gas": transaction.max_priority_fee_per_gas,
    }  # fmt: skip
    assert transaction.sender is not None
    return impersonated(transaction.sender, {**fields, "chain_id": 1}, chain_id=None)


def listed_block(fields: Mapping[str, Any]) -> Case:
    """Returns an Amsterdam block with the transactions of a real block."""
    real = RealBlock.read("", fields)
    contracts = accounts_of({**SYSTEM_CONTRACTS, **BUILDER_CONTRACTS})
    accounts = {**accounts_of(fields["pre"]["accounts"]), **contracts}
    recover_senders(real.block.transactions)
    for item in real.block.transactions:
        account = accounts.setdefault(item.sender or NOBODY, {"balance": 0})
        account["balance"] += RICH
    layer = Layer.of(accounts)
    builder = BlockBuilder(
        layer, header_of(real), schedule_for(FORK), chain_id=1, deposit_contract=NOBODY,
        ancestors=real.ancestors, withdrawals=(),
    )  # fmt: skip
    builder.begin()
    for transaction in real.block.transactions:
        try:
            builder.add(unsigned(transaction))
        except InvalidTransaction:
            continue  # such as a transaction whose raised gas limit is too high
    return layer, builder.seal(state_root=False)[0], real.ancestors


def builder_of(case: Case, threads: int) -> BlockBuilder:
    """Returns a builder for the block. With several threads it uses the access list."""
    layer, block, ancestors = case
    return BlockBuilder(
        layer, block.header, schedule_for(FORK), chain_id=1, deposit_contract=NOBODY,
        ancestors=ancestors, withdrawals=block.withdrawals, threads=threads,
        access_list=block.access_list if threads > 1 else None,
    )  # fmt: skip


def seconds_alone(case: Case, options: argparse.Namespace) -> float:
    """Returns the shortest time that the caller works alone, before and after `add_all`."""
    found: list[float] = []
    for _ in range(options.rounds):
        start = time.perf_counter()
        builder = builder_of(case, options.threads)
        builder.begin()
        middle = time.perf_counter()
        builder.add_all(case[1].transactions)
        end = time.perf_counter()
        builder.finish(state_root=options.roots)
        del builder
        found.append(time.perf_counter() - end + middle - start)
    return min(found)


def longest(case: Case, rounds: int) -> float:
    """Returns the seconds of the longest transaction."""
    found: list[list[float]] = []
    for _ in range(rounds):
        builder = builder_of(case, 1)
        builder.begin()
        times = [time.perf_counter()]
        for transaction in case[1].transactions:
            builder.add(transaction)
            times.append(time.perf_counter())
        found.append([end - start for start, end in pairwise(times)])
    least: list[float] = [min(item) for item in zip(*found, strict=True)]
    return max(least)


def compare(case: Case, options: argparse.Namespace) -> tuple[Times, str]:
    """Returns the times of a block, and its row."""
    layer, block, ancestors = case

    def run(threads: int) -> object:
        return execute_block(
            layer, block, schedule_for(FORK), chain_id=1, deposit_contract=NOBODY,
            ancestors=ancestors, state_root=options.roots, threads=threads,
        )  # fmt: skip

    layer.state_root()
    medians = compared(run, options.threads, options.rounds)
    times = medians.times
    alone = seconds_alone(case, options)
    shared = (times.alone * times.processor - alone) / options.threads
    bound = times.alone / (alone + max(shared, longest(case, options.rounds // 5 + 1)))
    name = f"{block.number:>8} {len(block.transactions):>5} {block.header.gas_used / 1e6:>6.1f}"
    return times, f"{name} {row(medians)} {alone / times.alone:6.1%} {bound:6.2f}"


def blocks(folder: Path, above: int) -> Iterator[Case]:
    """Returns the blocks of the folder with more than this many transactions."""
    for _, content in cases_of(folder, ARCHIVE):
        fields = msgspec.json.decode(content)
        if len(fields["transactions"]) > above:
            yield listed_block(fields)


def main(arguments: list[str] | None = None) -> int:
    """Prints the rows."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.listed_blocks")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED / "real-blocks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--above", type=int, default=200, metavar="TRANSACTIONS")
    parser.add_argument("--roots", action="store_true")
    options = parser.parse_args(arguments)
    if options.threads < 2:
        parser.error("--threads is at least 2")
    print(f"{'block':>8} {'txs':>5} {'Mgas':>6} {HEAD}  alone  bound")
    shares: list[float] = []
    gas = alone = shared = 0.0
    for case in blocks(options.folder, options.above):
        times, line = compare(case, options)
        shares += [times.share] if times.alone > LONG else []
        gas += case[1].header.gas_used / 1e6
        alone, shared = alone + times.alone, shared + times.shared
        print(line, flush=True)
    if gas:
        print(f"all: {gas / alone:.0f} Mgas/s on one thread, {gas / shared:.0f} Mgas/s on N")
    if shares:
        print(f"median share of {len(shares)} long blocks: {statistics.median(shares):.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
