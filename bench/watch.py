"""Times watched simulations: the delay until all results are fresh after a slice.

    python -m fastevm.bench.watch [--questions N] [--slices N] [--threads N] [--growth] [--most N]
                                  [--node]

There are four kinds of bundles in equal numbers: ERC-20 transfers, swaps over five pools,
liquidations with one oracle, and checks whether a payment could be captured. Slices change the
reads of 1 % and of 10 % of the bundles. For comparison, all bundles run on the same state.
``--growth`` shows the work for a fixed number of changed bundles, with 1,000 to ``--most`` bundles
in all. ``--node`` measures while a node builds blocks.
"""

import argparse
import gc
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from random import Random
from typing import Any

from fastevm import Layer, simulate_many
from fastevm.bench.programs.assembler import assemble
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.values import StateView
from fastevm.simulate import CallRequest, Watch, view_of

KINDS = 4
POOLS = 5
TOUCHED = 400  # changed questions per slice in the growth table, whatever the total number
MILLISECONDS = 1e3
MEGABYTE = 1 << 20
LIMITS = {0.01: 20, 0.1: 120}  # share of changed questions -> milliseconds
MEMORY_LIMIT = 400  # megabytes
TOKEN, ORACLE, LENDING, ESCROW = (bytes([0xC0 + at]) * 20 for at in range(4))
POOL = [bytes([0xD0 + at]) * 20 for at in range(POOLS)]


def person(number: int) -> bytes:
    """Returns a separate account for each simulation."""
    return b"\xee" * 12 + number.to_bytes(8, "big")


def slot_of(address: bytes) -> int:
    """Returns the slot of an account in a mapping at slot 0."""
    return int.from_bytes(keccak256(address.rjust(32, b"\0")), "big")


HASHED = "PUSH0 MSTORE 32 PUSH0 KECCAK256"  # mapping slot of the key on the stack
# 96 bytes of calldata (first account, end, value) set the value for a range of accounts, so that
# few transactions change many reads.
RANGE_BYTES = 96
TO_RANGE = f"{RANGE_BYTES} CALLDATASIZE EQ @range JUMPI"
RANGE = f"""
    range: 64 CALLDATALOAD 32 CALLDATALOAD PUSH0 CALLDATALOAD
    next: DUP3 DUP2 {HASHED} SSTORE 1 ADD DUP2 DUP2 LT @next JUMPI STOP
"""
# transfer(address, uint256): changes both balances, emits a log, returns true
TOKEN_CODE = assemble(f"""
    {TO_RANGE} CALLER {HASHED} DUP1 SLOAD 36 CALLDATALOAD DUP1 DUP3 LT @fail JUMPI
    DUP1 SWAP2 SUB SWAP1 SWAP2 SSTORE
    4 CALLDATALOAD {HASHED} DUP1 SLOAD DUP3 ADD SWAP1 SSTORE
    PUSH0 MSTORE 0xddf252ad 32 PUSH0 LOG1 1 PUSH0 MSTORE 32 PUSH0 RETURN
    fail: PUSH0 PUSH0 REVERT
    {RANGE}
""")
# swap(uint256): out = reserve1 * in / (reserve0 + in); changes both reserves, emits a log, returns
# out
POOL_CODE = assemble("""
    4 CALLDATALOAD PUSH0 SLOAD DUP2 ADD DUP1 PUSH0 SSTORE
    SWAP1 1 SLOAD MUL DIV DUP1 1 SLOAD SUB 1 SSTORE
    PUSH0 MSTORE 0xd78ad95f 32 PUSH0 LOG1 32 PUSH0 RETURN
""")
# returns the price
ORACLE_CODE = assemble("PUSH0 SLOAD PUSH0 MSTORE 32 PUSH0 RETURN")
# liquidate(address): reverts unless collateral * price < debt; clears the debt
LENDING_CODE = assemble(f"""
    {TO_RANGE} 32 PUSH0 PUSH0 PUSH0 0x{ORACLE.hex()} GAS STATICCALL POP PUSH0 MLOAD
    4 CALLDATALOAD {HASHED} DUP1 SLOAD DUP3 MUL DUP2 1 ADD SLOAD GT @go JUMPI
    PUSH0 PUSH0 REVERT
    go: 1 ADD PUSH0 SWAP1 SSTORE 1 PUSH0 MSTORE 32 PUSH0 RETURN
    {RANGE}
""")
# capture(address): reverts if nothing is held; clears the held amount, emits a log, returns the
# amount
ESCROW_CODE = assemble(f"""
    {TO_RANGE} 4 CALLDATALOAD {HASHED} DUP1 SLOAD DUP1 @go JUMPI PUSH0 PUSH0 REVERT
    go: PUSH0 MSTORE PUSH0 SWAP1 SSTORE 0xcafe 32 PUSH0 LOG1 32 PUSH0 RETURN
    {RANGE}
""")


def accounts_of(count: int) -> dict[bytes, dict[str, Any]]:
    """Returns the accounts of the state for ``count`` bundles of each kind."""
    holders = {slot_of(person(at)): 10**9 for at in range(count)}
    positions: dict[int, int] = {}
    for at in range(count):
        slot = slot_of(person(at))
        positions |= {slot: 1_000, (slot + 1) % 2**256: 1_500_000 + at % 1_000}
    accounts: dict[bytes, dict[str, Any]] = {
        TOKEN: {"code": TOKEN_CODE, "storage": holders},
        ORACLE: {"code": ORACLE_CODE, "storage": {0: 2_000}},
        LENDING: {"code": LENDING_CODE, "storage": positions},
        ESCROW: {"code": ESCROW_CODE, "storage": dict(holders)},
    }
    for pool in POOL:
        accounts[pool] = {"code": POOL_CODE, "storage": {0: 10**24, 1: 10**24}}
    return accounts


def genesis(count: int) -> Layer:
    """Returns the state for ``count`` bundles of each kind."""
    return Layer.of(accounts_of(count))


def question(number: int) -> list[CallRequest]:
    """Returns a bundle of the kind ``number % KINDS``."""
    kind, at = number % KINDS, number // KINDS
    sender = person(at)
    if kind == 0:
        data = b"\xa9\x05\x9c\xbb" + person(at + 10**9).rjust(32, b"\0") + bytes(31) + b"\x05"
        return [CallRequest(sender=sender, to=TOKEN, data=data)]
    if kind == 1:
        data = bytes(4) + (10**6 + at).to_bytes(32, "big")
        return [CallRequest(sender=sender, to=POOL[at % POOLS], data=data)]
    to = LENDING if kind == 2 else ESCROW
    return [CallRequest(sender=sender, to=to, data=bytes(4) + sender.rjust(32, b"\0"))]


class Slices:
    """Successive states. Each slice changes the reads of a share of the bundles."""

    def __init__(self, layer: Layer, count: int, touched: int) -> None:
        self.layer, self.count, self.touched = layer, count, touched
        self.random, self.number = Random(7), 0

    def next(self) -> Layer:
        """Returns the state after the next slice."""
        self.number += 1
        of_kind = self.count // KINDS
        pooled = of_kind // POOLS
        left = self.touched
        edits: dict[bytes, dict[str, dict[int, int]]] = {TOKEN: {}, ESCROW: {}, LENDING: {}}
        if left >= 2 * pooled:  # a swap changes the reads of all swaps of its pool
            pool = self.random.choice(POOL)
            edits[pool] = {"storage": {0: 10**24 + self.number, 1: 10**24 - self.number}}
            left -= pooled
        for account, share in ((TOKEN, 0.4), (ESCROW, 0.3), (LENDING, 0.3)):
            chosen = self.random.sample(range(of_kind), min(of_kind, int(left * share)))
            edits[account] = {
                "storage": {slot_of(person(at)): 10**6 + self.number for at in chosen}
            }
        self.layer = self.layer.with_accounts(edits)
        return self.layer


def memory() -> int:
    """Returns the largest resident size of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fill(watch: Watch, count: int) -> None:
    """Adds the bundles to the watch and runs them once."""
    for first in range(0, count, 10_000):
        watch.add_many([question(at) for at in range(first, min(count, first + 10_000))])
    watch.refresh()


def steps(watch: Watch, view: StateView, slices: Slices, count: int) -> Iterator[tuple[float, int]]:
    """Yields the seconds of each slice, and the number of bundles that ran."""
    for _ in range(count):
        layer = slices.next()
        gc.collect()
        started = time.perf_counter()
        changes = watch.advance(replace(view, layer=layer))
        yield time.perf_counter() - started, changes.ran


def missed(met: bool) -> str:
    """Returns ", missed" if an aim was missed, and otherwise an empty text."""
    return "" if met else ", missed"


def percentile(values: list[float], share: float) -> float:
    """Returns a percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def freshness(count: int, slices: int, threads: int) -> bool:
    """Prints the delay for 1 % and 10 % changed bundles. Returns whether all aims were met."""
    layer = genesis(count // KINDS)
    view = view_of(layer, number=100, timestamp=1_700_000_000)
    before = memory()
    watch = Watch(view, threads=threads)
    started = time.perf_counter()
    fill(watch, count)
    counters = watch.counters
    print(
        f"{count:,} questions on {threads} threads, added and run in"
        f" {time.perf_counter() - started:.1f} s; {counters.reads:,} reads, {counters.keys:,} keys"
    )
    met = True
    for share, limit in LIMITS.items():
        states = Slices(layer, count, int(count * share))
        found = list(steps(watch, view, states, slices))
        layer = states.layer
        seconds = [each[0] * MILLISECONDS for each in found]
        high = percentile(seconds, 0.99)
        met = met and high <= limit
        print(
            f"{share:.0%} touched: {statistics.mean(each[1] for each in found):,.0f} runs a slice,"
            f" p50 {statistics.median(seconds):.1f} ms, p99 {high:.1f} ms"
            f" (aim: {limit} ms{missed(high <= limit)})"
        )
    used = watch.counters.memory / MEGABYTE
    grown = (memory() - before) / MEGABYTE
    print(
        f"memory: {used:.0f} MB of the watch, {grown:.0f} MB more resident than before"
        f" (aim: {MEMORY_LIMIT} MB{missed(grown <= MEMORY_LIMIT)})"
    )
    payloads = [question(at) for at in range(count)]
    started = time.perf_counter()
    for _ in simulate_many(replace(view, layer=layer), payloads, threads=threads, columns=True):
        pass
    print(f"a full run of all: {(time.perf_counter() - started) * MILLISECONDS:,.0f} ms")
    return met and grown <= MEMORY_LIMIT


def growth(most: int, slices: int, threads: int) -> None:
    """Prints the work for a fixed number of changed bundles."""
    print(f"{TOUCHED} touched questions a slice:")
    count = 1_000
    while count <= most:
        layer = genesis(count // KINDS)
        view = view_of(layer, number=100, timestamp=1_700_000_000)
        with Watch(view, threads=threads) as watch:
            fill(watch, count)
            states = Slices(layer, count, min(TOUCHED, count // POOLS // KINDS))
            states.touched = TOUCHED if count > TOUCHED * POOLS * KINDS else states.touched
            found = list(steps(watch, view, states, slices))
            taken = statistics.median(each[0] for each in found) * MILLISECONDS
            runs = statistics.mean(each[1] for each in found)
            memory_used = watch.counters.memory / MEGABYTE
        print(
            f"{count:>9,} questions: {runs:>5,.0f} runs, {taken:>6.2f} ms, {memory_used:>6.1f} MB"
            f"  {'#' * max(1, round(taken * 4))}"
        )
        count *= 10


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.watch")
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--slices", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--node", action="store_true", help="beside the builder of a node")
    options = parser.parse_args()
    if options.node:
        beside = import_module("fastevm.bench.watch_beside_node")
        return int(not beside.measure(options.questions, options.slices, options.threads))
    if options.growth:
        growth(options.most, options.slices, options.threads)
        return 0
    return 0 if freshness(options.questions, options.slices, options.threads) else 1


if __name__ == "__main__":
    sys.exit(main())
