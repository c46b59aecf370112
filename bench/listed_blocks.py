"""Blocks of Amsterdam on several threads by their access lists, beside one thread.

    python -m fastevm.bench.listed_blocks [DIR] [--threads N] [--rounds N] [--above N]

The transactions of the real blocks of ``pevm`` with more than so many, under the rules of Amsterdam
and with gas for them, in blocks with lists (EIP-7928). Senders are known, state roots are left
out unless ``--roots``. For each block the wall time on one thread and on N in turn, the least of
the rounds, and the processor time of all threads. Hashing of independent data is timed in the same
rounds: the last column is the gain as a share of its gain.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from fastevm.bench.block_threads import hash_on, row, timed
from fastevm.bench.blocks import ARCHIVE
from fastevm.bench.options import SHARED
from fastevm.chain.system_contracts import BUILDER_CONTRACTS, SYSTEM_CONTRACTS
from fastevm.conformance.fields import accounts_of
from fastevm.conformance.real_blocks import RealBlock
from fastevm.conformance.real_sources import cases_of
from fastevm.errors import InvalidTransaction
from fastevm.execution.block import BlockBuilder, execute_block
from fastevm.execution.senders import recover_senders
from fastevm.execution.transaction import Transaction
from fastevm.execution.unsigned_sender import impersonated
from fastevm.spec.schedule import schedule_for
from fastevm.state.layer import Layer
from fastevm.types import EMPTY_LIST_HASH, EMPTY_ROOT, ZERO_HASH, Block, Header

FORK: Final = "amsterdam"
MORE_GAS: Final = 8  # than in the block of then: state gas, and prices of Berlin and later
GAS_LIMIT: Final = 1_000_000_000
RICH: Final = 10**21  # wei, to each sender for each transaction
NOBODY: Final = bytes(20)


def header_of(real: RealBlock) -> Header:
    """The draft of a block of Amsterdam in the place of a real one."""
    then = real.block.header
    return Header(
        parent_hash=then.parent_hash, coinbase=then.coinbase, number=then.number, difficulty=0,
        gas_limit=GAS_LIMIT, timestamp=then.timestamp, mix_hash=then.mix_hash,
        base_fee_per_gas=then.base_fee_per_gas or 0, withdrawals_root=EMPTY_ROOT, blob_gas_used=0,
        excess_blob_gas=0, parent_beacon_block_root=ZERO_HASH, requests_hash=ZERO_HASH,
        block_access_list_hash=EMPTY_LIST_HASH, slot_number=1,
    )  # fmt: skip


def unsigned(transaction: Transaction) -> Transaction:
    """The same call of the same sender with more gas."""
    fields: dict[str, Any] = {
        "nonce": transaction.nonce, "to": transaction.to, "value": transaction.value,
        "data": transaction.data, "gas_limit": MORE_GAS * transaction.gas_limit,
        "max_fee_per_gas": transaction.max_fee_per_gas,
        "max_priority_fee_per_gas": transaction.max_priority_fee_per_gas,
    }  # fmt: skip
    assert transaction.sender is not None
    return impersonated(transaction.sender, {**fields, "chain_id": 1}, chain_id=None)


def listed_block(fields: Mapping[str, Any]) -> tuple[Layer, Block, tuple[bytes, ...]]:
    """The state before a block of Amsterdam, the block with its list, and hashes before it."""
    real = RealBlock.read("", fields)
    contracts = accounts_of({**SYSTEM_CONTRACTS, **BUILDER_CONTRACTS})
    accounts = {**accounts_of(fields["pre"]["accounts"]), **contracts}
    recover_senders(real.block.transactions)
    for one in real.block.transactions:
        account = accounts.setdefault(one.sender or NOBODY, {"balance": 0})
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
            continue  # such as the gas limit of a block that became a transaction's
    return layer, builder.seal(state_root=False)[0], real.ancestors


def compare(
    layer: Layer, block: Block, ancestors: tuple[bytes, ...], options: argparse.Namespace
) -> str:
    """The row of a block."""
    times: dict[int, list[tuple[float, float]]] = {1: [], options.threads: []}
    hashing: dict[int, list[tuple[float, float]]] = {1: [], options.threads: []}
    run = partial(
        execute_block, layer, block, schedule_for(FORK), chain_id=1, deposit_contract=NOBODY,
        ancestors=ancestors, state_root=options.roots,
    )  # fmt: skip
    layer.state_root()
    for _ in range(options.rounds):
        for number in times:
            times[number].append(timed(partial(run, threads=number)))
            hashing[number].append(timed(partial(hash_on, number)))
    gains = [min(found[1])[0] / min(found[options.threads])[0] for found in (times, hashing)]
    name = f"{block.number} {len(block.transactions):>5} {block.header.gas_used / 1e6:>6.1f}"
    return f"{row(name, times[1], times[options.threads])} {gains[0] / gains[1]:6.2f}"


def blocks(folder: Path, above: int) -> Iterator[tuple[Layer, Block, tuple[bytes, ...]]]:
    """Those of the folder with more than so many transactions."""
    for _, content in cases_of(folder, ARCHIVE):
        fields = msgspec.json.decode(content)
        if len(fields["transactions"]) > above:
            yield listed_block(fields)


def main(arguments: list[str] | None = None) -> int:
    """Print the rows."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.listed_blocks")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED / "real-blocks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--above", type=int, default=200, metavar="TRANSACTIONS")
    parser.add_argument("--roots", action="store_true")
    options = parser.parse_args(arguments)
    if options.threads < 2:
        parser.error("--threads is at least 2")
    head = f"{'block':>8} {'txs':>5} {'Mgas':>6} {'1: ms':>8} {f'{options.threads}: ms':>8}"
    print(f"{head} {'gain':>6} {'cpu x':>6} {'share':>6}")
    for layer, block, ancestors in blocks(options.folder, options.above):
        print(compare(layer, block, ancestors, options), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
