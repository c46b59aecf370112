"""Filters that clients poll: each keeps only the place up to which its client knows the chain."""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from fastevm.errors import UnknownBlockError
from fastevm.rpc.context import Context
from fastevm.rpc.errors import RpcError
from fastevm.rpc.format import hex_bytes
from fastevm.rpc.logs import LogFilter, log_writer
from fastevm.types import Block
from fastevm.wire.logs import LogWriter

ID_BYTES: Final = 16


class Filters:
    """The filters of all clients, at most ``limit``; one not polled for ``lifetime`` seconds goes.

    Any thread may call.
    """

    def __init__(
        self, *, limit: int, lifetime: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = limit
        self.lifetime = lifetime
        self.clock = clock
        self._lock = Lock()
        self._filters: dict[str, tuple[Filter, float]] = {}  # with the time of the last use

    def __len__(self) -> int:
        return len(self._filters)

    def install(self, new: "Filter") -> str:
        """Keep a filter and return its id."""
        with self._lock:
            now = self.clock()
            # in the order of last use, so the expired ones stand in front
            for known, (_, used) in tuple(self._filters.items()):
                if now - used < self.lifetime:
                    break
                del self._filters[known]
            if len(self._filters) >= self.limit:
                raise RpcError("too_many_filters", limit=self.limit)
            filter_id = f"0x{int(secrets.token_hex(ID_BYTES), 16):x}"
            self._filters[filter_id] = (new, now)
            return filter_id

    def use(self, filter_id: str) -> "Filter":
        """Return a filter, which lives on from now; an error if there is none with this id."""
        with self._lock:
            found = self._filters.pop(filter_id, None)
            now = self.clock()
            if found is None or now - found[1] >= self.lifetime:
                raise RpcError("filter_not_found")
            self._filters[filter_id] = (found[0], now)
            return found[0]

    def drop(self, filter_id: str) -> bool:
        """Forget a filter; whether there was one with this id."""
        with self._lock:
            return self._filters.pop(filter_id, None) is not None


@dataclass(slots=True)
class ChainFilter:
    """New blocks (``wanted`` is None: their hashes), or the logs in them.

    ``seen`` is the hash of the last block that the client has been told of, so a poll finds what
    has left the chain and what has joined it since, without anything being kept in between.
    """

    seen: bytes
    wanted: LogFilter | None = None
    lock: Lock = field(default_factory=Lock)

    def changes(self, context: Context) -> list[str] | bytes:
        """Return what is new: hashes, or logs as the text of a JSON array.

        Logs that left the chain come first, in reverse, as removed.

        An answer over the limit of logs ends with a whole block; the next poll goes on there.
        """
        with self.lock:
            head = context.node.chain.head
            removed, common = self._left_chain(context)
            if self.wanted is None:
                self.seen = head.hash
                return self._hashes(context, common + 1, head.number)
            text = log_writer(context, self.wanted)
            for block in removed:
                with suppress(UnknownBlockError):  # a side block that was dropped meanwhile
                    text.add_removed(context.log_index.of_block(block))
            last = self._add_logs(context, self.wanted, range(common + 1, head.number + 1), text)
            stopped = None if last == head.number else context.node.chain.canonical_hash(last)
            self.seen = stopped or head.hash
            return text.take()

    def _left_chain(self, context: Context) -> tuple[list[Block], int]:
        """Return the seen blocks that are not canonical now, and the number of the last that is."""
        chain = context.node.chain
        block, removed = chain.block_by_hash(self.seen), []
        while block is not None and chain.canonical_hash(block.number) != block.hash:
            removed.append(block)
            block = chain.block_by_hash(block.header.parent_hash)
        if block is None:  # the branch is no longer kept: what it held cannot be told
            return [], chain.head.number
        return removed, block.number

    def _hashes(self, context: Context, first: int, last: int) -> list[str]:
        hashes = [context.node.chain.canonical_hash(number) for number in range(first, last + 1)]
        return [hex_bytes(block_hash) for block_hash in hashes if block_hash is not None]

    def _add_logs(
        self, context: Context, wanted: LogFilter, numbers: range, text: LogWriter
    ) -> int:
        """Append the logs of the blocks; the number of the last one that was read."""
        low, high = wanted.first.number, wanted.last.number
        start = numbers.start if low is None else max(numbers.start, low)
        end = numbers.stop - 1 if high is None else min(numbers.stop - 1, high)
        for blocks in context.log_index.blocks(start, end, wanted.query()):
            done = text.add(blocks)
            if text.is_full:
                return blocks[done - 1].number
        return numbers.stop - 1


@dataclass(slots=True)
class ArrivalFilter:
    """Transactions that the pool takes; ``full``: the client wants objects instead of hashes."""

    seen: int
    full: bool
    lock: Lock = field(default_factory=Lock)

    def changes(self, context: Context) -> list[bytes]:
        """Return the hashes of what came since the last poll, as far as the node remembers."""
        with self.lock:
            new = [entry for entry in list(context.hub.arrivals) if entry[0] > self.seen]
            self.seen = max([self.seen, *(number for number, _ in new)])
            return [tx_hash for _, tx_hash in new]


Filter = ChainFilter | ArrivalFilter
