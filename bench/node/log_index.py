"""Measures eth_getLogs in this process, over a million logs.

There are 2,000 blocks with 500 token transfers each. Because of the number of holders, the bloom
filters of the blocks are nearly full, so only the log index can narrow the search.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from fastevm import keccak256
from fastevm.bench.programs.loops import word
from fastevm.bench.report.figures import aim
from fastevm.chain.logs import LogIndex, LogLimits, LogQuery
from fastevm.chain.logs.index import BLOOM_SIZE
from fastevm.core.execution.types import Block, Header, Log, Receipt
from fastevm.core.primitives.bloom import bloom_of
from fastevm.rpc_types.logs import LogWriter

MILLI: Final = 1e3
MICRO: Final = 1e6

BLOCKS: Final = 2_000
LOGS: Final = 500  # logs per block
PATTERNS: Final = 40  # different block contents, repeated in rotation
TOKENS: Final = 50
HOLDERS: Final = 5_000
RARE_PATTERNS: Final = 4  # patterns with one log of the rare token: 200 logs in all
PLENTY: Final = 10**12  # effectively no limit on the size of a result
LIMIT: Final = 20_000  # the node's limit of logs per result
PART: Final = LIMIT // LOGS  # blocks per query
ROUNDS: Final = 15
LIMITS: Final = {"none": 2.0, "200 by address": 5.0, "200 by address and topic": 5.0}  # ms
TRANSFER: Final = keccak256(b"Transfer(address,address,uint256)")
RARE: Final = keccak256(b"a rare token")[:20]
UNKNOWN: Final = keccak256(b"nobody's token")[:20]


def account_word(number: int) -> bytes:
    """Returns a holder's address as a topic."""
    return bytes(12) + keccak256(word(number))[:20]


def pattern(number: int) -> tuple[Receipt, bytes]:
    """Returns the logs of a block in one receipt, and their bloom filter."""
    logs = [
        Log(
            keccak256(word((number * 7 + at) % TOKENS))[:20],
            (
                TRANSFER,
                account_word((number * 31 + at * 17) % HOLDERS),
                account_word((number * 13 + at * 29) % HOLDERS),
            ),
            word(number * LOGS + at),
        )
        for at in range(LOGS)
    ]
    if number < RARE_PATTERNS:
        logs[LOGS // 2] = Log(RARE, logs[LOGS // 2].topics, b"")
    receipt = Receipt(
        tx_type=2,
        status=1,
        post_state=None,
        cumulative_gas_used=0,
        logs=tuple(logs),
        bloom=bloom_of(logs),
        gas_used=0,
        effective_gas_price=0,
    )
    return receipt, receipt.bloom


@dataclass(frozen=True, slots=True)
class Hashed:
    """The attributes of a transaction that the log index reads."""

    hash: bytes


class Filled:
    """A chain in memory for `LogIndex`. Its blocks contain token transfers."""

    def __init__(self, count: int) -> None:
        patterns = [pattern(number) for number in range(PATTERNS)]
        self.blocks = [Block(Header())]
        self.receipts: dict[bytes, tuple[Receipt, ...]] = {self.blocks[0].hash: ()}
        for number in range(1, count + 1):
            receipt, bloom = patterns[number % PATTERNS]
            header = Header(number=number, timestamp=2 * number, logs_bloom=bloom)
            block = Block(header, (Hashed(keccak256(word(number))),))  # type: ignore[arg-type]
            self.blocks.append(block)
            self.receipts[block.hash] = (receipt,)

    @property
    def genesis(self) -> Block:
        """Returns the first block."""
        return self.blocks[0]

    @property
    def head(self) -> Block:
        """Returns the last block."""
        return self.blocks[-1]

    def block_by_number(self, number: int) -> Block | None:
        """Returns the block with this number, or None."""
        return self.blocks[number] if 0 <= number < len(self.blocks) else None

    def canonical_hash(self, number: int) -> bytes | None:
        """Returns the hash of the block with this number, or None."""
        block = self.block_by_number(number)
        return None if block is None else block.hash

    def receipts_of(self, block_hash: bytes) -> tuple[Receipt, ...]:
        """Returns the receipts of a block."""
        return self.receipts[block_hash]


def texts(index: LogIndex, query: LogQuery, first: int, last: int, limit: int) -> tuple[int, int]:
    """Queries logs as eth_getLogs does. Returns the number of logs, and the bytes of JSON text."""
    text = LogWriter(query, max_count=limit, max_size=PLENTY)
    for blocks in index.blocks(first, last, query):
        text.add(blocks)
        if text.is_full:
            break
    return text.count, len(text.take())


def all_in_parts(index: LogIndex, query: LogQuery, blocks: int) -> tuple[int, int]:
    """Reads all logs in ranges of blocks that stay within the default maximum size of a result."""
    count = size = 0
    for first in range(1, blocks + 1, PART):
        found = texts(index, query, first, first + PART - 1, PLENTY)
        count, size = count + found[0], size + found[1]
    return count, size


def best(run: Callable[[], object], rounds: int) -> float:
    """Returns the shortest CPU time of a run in milliseconds."""
    times = []
    for _ in range(rounds):
        started = time.thread_time()
        run()
        times.append(time.thread_time() - started)
    return min(times) * MILLI


def measure(blocks: int = BLOCKS, rounds: int = ROUNDS) -> dict[str, float]:
    """Returns the milliseconds of queries over all blocks, and the size of the index."""
    chain = Filled(blocks)
    index = LogIndex(chain, LogLimits(size=PLENTY))
    started = time.thread_time()
    for _ in index.blocks(1, blocks, LogQuery()):
        pass  # the first query packs the index
    packing = time.thread_time() - started
    queries = {
        "none": LogQuery([UNKNOWN], [[TRANSFER]]),
        "200 by address": LogQuery([RARE]),
        "200 by address and topic": LogQuery([RARE], [[TRANSFER]]),
        "of one holder": LogQuery((), [[TRANSFER], [], [account_word(17)]]),
    }
    found: dict[str, float] = {}
    for name, query in queries.items():
        found[name] = best(partial(texts, index, query, 1, blocks, PLENTY), rounds)
        found[f"{name}, logs"] = texts(index, query, 1, blocks, PLENTY)[0]
    everything = LogQuery()
    found["up to the limit"] = best(lambda: texts(index, everything, 1, blocks, LIMIT), rounds)
    found["all, in parts"] = best(lambda: all_in_parts(index, everything, blocks), 2)
    count, size = all_in_parts(index, everything, blocks)
    found["all, in parts, logs"], found["all, in parts, bytes"] = count, size
    found["bytes per log"] = index.size / count
    found["packing us per log"] = packing / count * MICRO
    return found | {"bloom scan GB/s": bloom_speed()}


def bloom_speed(count: int = 100_000) -> float:
    """Returns the speed of scanning half-full bloom filters of several sizes."""
    blooms = os.urandom(count * BLOOM_SIZE)
    scan = LogQuery([UNKNOWN], [[TRANSFER]]).blooms.scan
    return len(blooms) / best(lambda: scan(blooms), 5) / 1e6


def aims(found: dict[str, float]) -> list[dict[str, object]]:
    """Returns the aims with the measured values."""
    return [
        aim(f"a million logs, {name}", "ms", limit, found[name]) for name, limit in LIMITS.items()
    ]
