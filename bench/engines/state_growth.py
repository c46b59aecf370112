"""Times reads, writes, snapshots and roots on states of a thousand slots and more."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

import fastevm
from fastevm.bench.engines.clock import cpu_seconds, seconds_of
from fastevm.bench.options import child_environment
from fastevm.bench.programs.loops import (
    CALLER,
    FUNDS,
    GAS,
    HELPER,
    PROGRAM,
    READ_SLOTS,
    WRITE_SLOTS,
    word,
)
from fastevm.core.primitives.slab import records_in_use

SIZES = (2**10, 2**14, 2**17, 2**20)
LARGE_SIZES = (*SIZES, 2**23)  # a few gigabytes, a few minutes
TOUCHED = 1000
ROUNDS = 9
CHUNK = 2**14
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Returns the memory in use by this process in bytes; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0


def layer_with(slots: int) -> fastevm.Layer:
    """Returns a state with two contracts of ``slots`` slots each.

    One reads slots, one writes slots.
    """
    layer = fastevm.Layer.of(
        {
            CALLER: {"balance": FUNDS},
            PROGRAM: {"nonce": 1, "code": READ_SLOTS},
            HELPER: {"nonce": 1, "code": WRITE_SLOTS},
        }
    )
    for first in range(0, slots, CHUNK):
        storage = {slot: slot + 1 for slot in range(first, min(first + CHUNK, slots))}
        layer = layer.with_accounts({PROGRAM: {"storage": storage}, HELPER: {"storage": storage}})
        layer.state_root()  # frees the layers below
    return layer


def nodes_touched(slots: int, touched: int) -> float:
    """Returns the expected number of trie nodes on the paths to random leaves."""
    found = float(touched)
    positions = 1.0
    while positions < slots:
        found += positions * (1 - (1 - 1 / positions) ** touched) if positions > 1 else 1
        positions *= 16
    return found


def visit(touched: int, slots: int, seed: int) -> bytes:
    """Returns calldata that visits scattered slots. The seed selects the slots."""
    return word(touched) + word(slots - 1) + word(seed * 0x14057B7EF767814F)


def read_time(machine: fastevm.EVM, slots: int, seed: int) -> float:
    """Returns the seconds of reading random slots. The seed selects the slots."""
    return cpu_seconds(partial(machine.call, PROGRAM, visit(TOUCHED, slots, seed), gas=GAS))


def middle_of_writes(machine: fastevm.EVM, slots: int) -> tuple[float, float]:
    """Returns the median seconds of writing random slots, and of computing the state root."""
    writes, roots = [], []
    for seed in range(ROUNDS):
        change = partial(
            machine.transact, HELPER, visit(TOUCHED, slots, 99 + seed), sender=CALLER, gas=GAS
        )
        writes.append(cpu_seconds(change))
        roots.append(cpu_seconds(machine.state.state_root))
    return statistics.median(writes), statistics.median(roots)


def measure_size(slots: int) -> dict[str, float]:
    """Returns the figures for one size of the state, by default in nanoseconds."""
    before, records = resident(), records_in_use()["record_bytes"]
    layer = layer_with(slots)
    in_map = records_in_use()["record_bytes"] - records
    with_trie = resident() - before
    machine = fastevm.EVM("cancun", state=layer, gas_limit=GAS)
    reads = statistics.median(read_time(machine, slots, seed) for seed in range(ROUNDS))
    writes, root = middle_of_writes(machine, slots)
    snapshot = seconds_of(machine.snapshot, spend=0.002)
    return {
        "slots": slots,
        "cold_read_ns": round(reads / TOUCHED * 1e9, 1),
        "write_ns": round(writes / TOUCHED * 1e9, 1),
        "root_ns_per_slot": round(root / TOUCHED * 1e9, 1),
        "root_ns_per_node": round(root / nodes_touched(slots, TOUCHED) * 1e9, 1),
        "snapshot_ns": round(snapshot * 1e9, 1),
        "bytes_per_slot": round(in_map / (2 * slots), 1),
        "resident_per_slot_with_trie": round(with_trie / (2 * slots), 1),
    }


def measure(large: bool = False) -> list[dict[str, float]]:
    """Returns one row of figures for each size of the state.

    Each size runs in its own process, because a heap in which a million leaves were freed is
    slower.
    """
    found = []
    for slots in LARGE_SIZES if large else SIZES:
        done = subprocess.run(
            [sys.executable, "-m", "fastevm.bench.engines.state_growth", str(slots)],
            env=child_environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.append(json.loads(done.stdout))
    return found


if __name__ == "__main__":
    print(json.dumps(measure_size(int(sys.argv[1]))))
