"""Compares the node's storage with RocksDB, LMDB and SQLite.

The figures are speed, memory, time to start, and effects of damaged files and killed writers. Every
engine stores the same blocks with their receipts, and finds them by number and by hashes of blocks
and transactions. `python -m fastevm.bench.node.storage` needs the packages rocksdict and lmdb.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Protocol

from fastevm import keccak256
from fastevm.chain.storage.archive import Archive
from fastevm.chain.storage.block_record import block_of, pack_body
from fastevm.chain.storage.record_file import RecordFile
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header, Log, Receipt

MODULE: Final = "fastevm.bench.node.storage"
MICRO: Final = 1e6
MIB: Final = 2**20
TRANSACTIONS: Final = 20  # transactions per block
SLICE_BYTES: Final = 2_000
READS: Final = 2_000
SYNCED: Final = 100  # blocks written with fsync
DAMAGES: Final = 60
KILLS: Final = 50
LOCATION: Final = struct.Struct(">QI")  # block number, transaction index


class Stored(Protocol):
    """An engine with an open directory. ``locate`` returns block number and index for a hash."""

    def put(self, number: int, block: Block, payload: bytes) -> None: ...
    def put_slice(self, payload: bytes) -> None: ...
    def sync(self) -> None: ...
    def get(self, number: int) -> bytes | None: ...
    def locate(self, key: bytes) -> tuple[int, int] | None: ...
    def close(self) -> None: ...


class Ours:
    """Stores blocks in our record files and archive.

    Every start rebuilds the index from the journal.
    """

    def __init__(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        self.blocks = RecordFile(path / "blocks.log", bytes(40))
        self.slices = RecordFile(path / "preconfirmed.log", bytes(40))
        self.archive = Archive(self, path)  # type: ignore[arg-type]
        for record in self.blocks.records():
            self._index(block_of(record.payload), record.start)
        self.archive.flush()

    def _index(self, block: Block, position: int) -> None:
        entry = SimpleNamespace(
            block=block, receipts=(), position=position, total_difficulty=0, is_merged=True
        )
        self.archive.append(entry)

    def put(self, number: int, block: Block, payload: bytes) -> None:
        self._index(block, self.blocks.append(1, payload))
        self.archive.flush()

    def put_slice(self, payload: bytes) -> None:
        self.slices.append(2, payload)

    def sync(self) -> None:
        self.blocks.sync()

    def get(self, number: int) -> bytes | None:
        row = self.archive.row(number)
        return None if row is None else self.blocks.read(row.position).payload

    def locate(self, key: bytes) -> tuple[int, int] | None:
        for found in self.archive._find(key):
            return divmod(found, 1 << 24)
        return None

    def close(self) -> None:
        self.blocks.close()
        self.slices.close()


class Rocks:
    """Stores blocks in RocksDB through rocksdict, as bytes only."""

    def __init__(self, path: Path) -> None:
        import rocksdict

        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        self.db = rocksdict.Rdict(str(path), options)
        self.batch = rocksdict.WriteBatch
        self.slices = 0

    def put(self, number: int, block: Block, payload: bytes) -> None:
        batch = self.batch(raw_mode=True)
        for key, value in rows(number, block, payload):
            batch.put(key, value)
        self.db.write(batch)

    def put_slice(self, payload: bytes) -> None:
        self.slices += 1
        self.db[b"s" + self.slices.to_bytes(8, "big")] = payload

    def sync(self) -> None:
        self.db.flush_wal(True)

    def get(self, number: int) -> bytes | None:
        found: bytes | None = self.db.get(b"b" + number.to_bytes(8, "big"))
        return found

    def locate(self, key: bytes) -> tuple[int, int] | None:
        found = self.db.get(b"h" + key)
        return None if found is None else LOCATION.unpack(found)

    def close(self) -> None:
        self.db.close()


class Lightning:
    """Stores blocks in LMDB: one transaction per block, synced to disk if requested."""

    def __init__(self, path: Path) -> None:
        import lmdb

        self.db = lmdb.open(str(path), map_size=2**34, sync=False, max_dbs=0)
        self.slices = 0

    def put(self, number: int, block: Block, payload: bytes) -> None:
        with self.db.begin(write=True) as transaction:
            for key, value in rows(number, block, payload):
                transaction.put(key, value)

    def put_slice(self, payload: bytes) -> None:
        self.slices += 1
        with self.db.begin(write=True) as transaction:
            transaction.put(b"s" + self.slices.to_bytes(8, "big"), payload)

    def sync(self) -> None:
        self.db.sync(True)

    def get(self, number: int) -> bytes | None:
        with self.db.begin() as transaction:
            found: bytes | None = transaction.get(b"b" + number.to_bytes(8, "big"))
            return found

    def locate(self, key: bytes) -> tuple[int, int] | None:
        with self.db.begin() as transaction:
            found = transaction.get(b"h" + key)
        return None if found is None else LOCATION.unpack(found)

    def close(self) -> None:
        self.db.close()


class Sqlite:
    """Stores blocks in SQLite with a write-ahead log and one transaction per block."""

    def __init__(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        self.db = sqlite3.connect(path / "chain.db", isolation_level=None)
        self.db.execute("pragma journal_mode=wal")
        self.db.execute("pragma synchronous=normal")
        self.db.execute("create table if not exists rows (key blob primary key, value blob)")
        self.slices = 0

    def put(self, number: int, block: Block, payload: bytes) -> None:
        self.db.execute("begin")
        self.db.executemany("insert into rows values (?, ?)", rows(number, block, payload))
        self.db.execute("commit")

    def put_slice(self, payload: bytes) -> None:
        self.slices += 1
        key = b"s" + self.slices.to_bytes(8, "big")
        self.db.execute("insert into rows values (?, ?)", (key, payload))

    def sync(self) -> None:
        self.db.execute("pragma wal_checkpoint(full)")

    def get(self, number: int) -> bytes | None:
        return self._value(b"b" + number.to_bytes(8, "big"))

    def locate(self, key: bytes) -> tuple[int, int] | None:
        found = self._value(b"h" + key)
        return None if found is None else LOCATION.unpack(found)

    def _value(self, key: bytes) -> bytes | None:
        found = self.db.execute("select value from rows where key = ?", (key,)).fetchone()
        return None if found is None else found[0]

    def close(self) -> None:
        self.db.close()


ENGINES: Final[dict[str, Callable[[Path], Stored]]] = {
    "ours": Ours, "rocksdb": Rocks, "lmdb": Lightning, "sqlite": Sqlite,
}  # fmt: skip


def rows(number: int, block: Block, payload: bytes) -> list[tuple[bytes, bytes]]:
    """Returns the keys and values of a block in a key-value store."""
    found = [(b"b" + number.to_bytes(8, "big"), payload)]
    found.append((b"h" + block.hash, LOCATION.pack(number, 2**24 - 1)))
    for index, transaction in enumerate(block.transactions):
        found.append((b"h" + transaction.hash, LOCATION.pack(number, index)))
    return found


def chain(count: int) -> Iterator[tuple[int, Block, bytes]]:
    """Yields blocks of transfers with one log each, in the format of the node's storage."""
    parent, nonce = bytes(32), 0
    for number in range(1, count + 1):
        transactions = []
        for _ in range(TRANSACTIONS):
            nonce += 1
            # any signature will do, as the sender is never recovered
            transactions.append(
                Transaction.build(
                    type=2, chain_id=1, nonce=nonce, gas_limit=60_000, to=bytes(20), value=nonce,
                    data=bytes(68), max_fee_per_gas=10**10, max_priority_fee_per_gas=10**9,
                    v=0, r=nonce, s=1,
                )
            )  # fmt: skip
        block = Block(Header(number=number, parent_hash=parent), tuple(transactions))
        parent = block.hash
        yield number, block, pack_body(block, [receipt(number)] * TRANSACTIONS)


def receipt(number: int) -> Receipt:
    """Returns a receipt with the log of a transfer."""
    log = Log(bytes(20), (keccak256(b"t"), keccak256(bytes([number % 256])), bytes(32)), bytes(32))
    return Receipt(
        tx_type=2, status=1, post_state=None, cumulative_gas_used=50_000, logs=(log,),
        bloom=bytes(256), gas_used=50_000, effective_gas_price=10**10,
    )  # fmt: skip


def timed(action: Callable[..., Any], *arguments: Any) -> float:
    """Returns microseconds of CPU time for one call. CPU time depends little on other processes."""
    started = time.thread_time()
    action(*arguments)
    return (time.thread_time() - started) * MICRO


def by_hash(store: Stored, key: bytes) -> bytes | None:
    """Returns the block that contains a transaction."""
    found = store.locate(key)
    return None if found is None else store.get(found[0])


def resident() -> float:
    """Returns resident memory in MiB."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def measure(name: str, path: Path, blocks: int) -> dict[str, float]:
    """Returns the speed of one engine in microseconds, and its memory and file sizes in MiB."""
    sample, rng = [], random.Random(1)
    gc.collect()
    before, store = resident(), ENGINES[name](path)
    writes, slices = [], []
    for number, block, payload in chain(blocks):
        writes.append(timed(store.put, number, block, payload))
        slices.append(timed(store.put_slice, payload[:SLICE_BYTES]))
        if number % max(1, blocks // READS) == 0:
            sample.append((number, block.hash, block.transactions[3].hash))
    synced = []
    for number, block, payload in islice(chain(blocks + SYNCED), blocks, None):
        store.put(number, block, payload)
        started = time.perf_counter()
        store.sync()
        synced.append((time.perf_counter() - started) * MICRO)
    gc.collect()
    memory = resident() - before
    store.close()
    started = time.thread_time()
    store = ENGINES[name](path)
    store.get(blocks)
    start = time.thread_time() - started
    rng.shuffle(sample)
    reads = [timed(store.get, number) for number, _, _ in sample]
    receipts = [timed(by_hash, store, key) for _, _, key in sample]
    hits = [timed(store.locate, key) for _, key, _ in sample]
    misses = [timed(store.locate, keccak256(key)) for _, key, _ in sample]
    size = sum(file.stat().st_blocks * 512 for file in path.iterdir() if file.is_file()) / MIB
    store.close()
    return {
        "write a block, us": statistics.median(writes),
        "99th of 100": statistics.quantiles(writes, n=100)[98],
        "write a slice, us": statistics.median(slices),
        "99th of 100 ": statistics.quantiles(slices, n=100)[98],
        "wait for the disk, us": statistics.median(synced),
        "read an old block, us": statistics.median(reads),
        "read a receipt by hash, us": statistics.median(receipts),
        "look up a hash, us": statistics.median(hits),
        "look up an unknown hash, us": statistics.median(misses),
        "memory, MiB": memory,
        "start, ms": start * 1e3,
        "files, MiB": size,
    }


def damage(name: str, blocks: int) -> dict[str, int]:
    """Flips one random bit of the largest file in each trial and counts the effects.

    "stops": the engine does not open, or reading the damaged block raises an error. "lost": blocks
    are missing without an error. "wrong": a block has other content.
    """
    rng, tally = random.Random(2), dict.fromkeys(("stops", "harmless", "lost", "wrong"), 0)
    expected = {number: payload for number, _, payload in chain(blocks)}
    with tempfile.TemporaryDirectory() as directory:
        whole = Path(directory) / "whole"
        store = ENGINES[name](whole)
        for number, block, payload in chain(blocks):
            store.put(number, block, payload)
        store.sync()
        store.close()
        for trial in range(DAMAGES):
            copy = Path(directory) / str(trial)
            shutil.copytree(whole, copy)
            flip(max(copy.iterdir(), key=lambda file: file.stat().st_size), rng)
            tally[outcome(name, copy, expected)] += 1
            shutil.rmtree(copy)
    return tally


def flip(path: Path, rng: random.Random) -> None:
    """Flips one random bit of a file that is not empty."""
    data = bytearray(path.read_bytes())
    place = rng.randrange(len(data))
    while not any(data[place : place + 16]):
        place = rng.randrange(len(data))
    data[place] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def outcome(name: str, path: Path, expected: dict[int, bytes]) -> str:
    """Returns the effect of a damaged directory on a reader, which may crash."""
    command = [sys.executable, "-m", MODULE, "--read", name, str(path)]
    found = subprocess.run(
        command, capture_output=True, input=json.dumps(digests(expected)).encode()
    )
    words = found.stdout.decode().split()
    return words[-1] if found.returncode == 0 and words else "stops"


def digests(expected: dict[int, bytes]) -> dict[int, str]:
    return {number: keccak256(payload).hex() for number, payload in expected.items()}


def compare(name: str, path: Path, expected: dict[str, str]) -> str:
    """Reads all blocks. Any error counts as "stops"."""
    store = ENGINES[name](path)
    for number, digest in expected.items():
        found = store.get(int(number))
        if found is None:
            return "lost"
        if keccak256(found).hex() != digest:
            return "wrong"
    return "harmless"


def write_until_killed(name: str, path: str, pipe: Any) -> None:
    """Writes blocks and reports each block through the pipe."""
    store = ENGINES[name](Path(path))
    for number, block, payload in chain(100_000):
        store.put(number, block, payload)
        pipe.send(number)


def killed(name: str) -> int:
    """Kills writers at random moments. Returns how often a reported block was missing."""
    rng, missing = random.Random(3), 0
    context = multiprocessing.get_context("fork")
    for _ in range(KILLS):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "store"
            reader, writer = context.Pipe(duplex=False)
            process = context.Process(target=write_until_killed, args=(name, str(path), writer))
            process.start()
            reader.recv()
            time.sleep(rng.random() * 0.2)
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
            last = 1
            while reader.poll():
                last = reader.recv()
            store = ENGINES[name](path)
            missing += any(store.get(number) is None for number in range(1, last + 1))
            store.close()
    return missing


def main() -> None:
    """Prints a table of all engines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=5_000)
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--speed", action="store_true", help="without damage and kills")
    parser.add_argument("--read", nargs=2, metavar=("ENGINE", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        expected = json.load(sys.stdin)
        print(compare(arguments.read[0], Path(arguments.read[1]), expected))
        os._exit(0)  # an engine with damaged files may hang at close
    if len(arguments.engines) > 1:  # separate processes, so that memory can be compared
        for name in arguments.engines:
            options = ["--blocks", str(arguments.blocks), "--engines", name]
            options += ["--speed"] if arguments.speed else []
            subprocess.run([sys.executable, "-m", MODULE, *options], check=True)
        return
    for name in arguments.engines:
        with tempfile.TemporaryDirectory() as directory:
            found = measure(name, Path(directory) / "store", arguments.blocks)
        print(name, *(f"{what} {value:.1f};" for what, value in found.items()), flush=True)
        if arguments.speed:
            continue
        print(name, "after a flipped bit:", damage(name, 300), flush=True)
        print(name, f"{KILLS} kills, blocks missing:", killed(name), flush=True)


if __name__ == "__main__":
    main()
