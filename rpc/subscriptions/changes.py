"""Finds the changes since the last poll of a filter.

A block or log filter stores only the last reported block.
"""

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

from msgspec import Struct, field

from fastevm.core.execution.types import Block
from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import UnknownBlockError
from fastevm.rpc.before_fork import logs_upstream
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.envelope import encode
from fastevm.rpc.limits import ARRIVALS_SIZE
from fastevm.rpc.log_filter import LogFilter
from fastevm.rpc.log_queries import joined, log_writer
from fastevm.rpc_types.logs import LogWriter


class ChainFilter(Struct):
    """A filter for the hashes of new blocks (if ``wanted`` is None) or for new logs.

    ``seen`` is the hash of the last block reported to the client. So a poll can find the blocks
    that have since left or joined the chain, and nothing is stored between polls.
    ``upstream_first`` is the first block whose logs the next poll must fetch from the upstream of a
    fork, or None if it need not fetch logs.
    """

    seen: bytes
    wanted: LogFilter | None = None
    upstream_first: int | None = None
    lock: Lock = field(default_factory=Lock)

    def changes(self, context: Context) -> list[str] | bytes:
        """Return new hashes, or logs as the text of a JSON array.

        Logs that left the chain come first, newest first, marked as removed.

        If an answer reaches the limit of logs, it ends after a whole block, and the next poll
        continues with the next block.
        """
        with self.lock:
            head = context.node.chain.head
            removed, common = self._left_chain(context)
            if self.wanted is None:
                self.seen = head.hash
                return self._hashes(context, common + 1, head.number)
            text = log_writer(context, self.wanted)
            for block in removed:
                with suppress(UnknownBlockError):  # a side block that was dropped in the meantime
                    text.add_removed(context.log_index.of_block(block))
            last = self._add_logs(context, self.wanted, range(common + 1, head.number + 1), text)
            stopped = None if last == head.number else context.node.chain.canonical_hash(last)
            older = self._upstream_logs(context, self.wanted)
            self.seen, self.upstream_first = stopped or head.hash, None
            return joined(older, text.take())

    def _upstream_logs(self, context: Context, wanted: LogFilter) -> bytes:
        """Return the logs up to the fork block, as the text of a JSON array. Raises RpcError."""
        history, first = context.node.history, self.upstream_first
        if history is None or first is None:
            return b"[]"
        end = history.number if wanted.last.number is None else wanted.last.number
        return encode(logs_upstream(history, wanted, first, min(end, history.number)))

    def _left_chain(self, context: Context) -> tuple[list[Block], int]:
        """Return the reported blocks that left the chain, and the last canonical block's number."""
        chain = context.node.chain
        block, removed = chain.block_by_hash(self.seen), []
        while block is not None and chain.canonical_hash(block.number) != block.hash:
            removed.append(block)
            block = chain.block_by_hash(block.header.parent_hash)
        if block is None:  # the branch is no longer stored, so its logs are unknown
            return [], chain.head.number
        return removed, block.number

    def _hashes(self, context: Context, first: int, last: int) -> list[str]:
        hashes = [context.node.chain.canonical_hash(number) for number in range(first, last + 1)]
        return [hex_bytes(block_hash) for block_hash in hashes if block_hash is not None]

    def _add_logs(
        self, context: Context, wanted: LogFilter, numbers: range, text: LogWriter
    ) -> int:
        """Append the logs of the blocks. Returns the number of the last block that was read."""
        low, high = wanted.first.number, wanted.last.number
        start = numbers.start if low is None else max(numbers.start, low)
        end = numbers.stop - 1 if high is None else min(numbers.stop - 1, high)
        for blocks in context.log_index.blocks(start, end, wanted.query()):
            done = text.add(blocks)
            if text.is_full:
                return blocks[done - 1].number
        return numbers.stop - 1


class ArrivalFilter(Struct):
    """A filter for new pool transactions, as objects if ``full``, else as hashes."""

    seen: int
    full: bool
    lock: Lock = field(default_factory=Lock)

    def changes(
        self, context: Context, object_of: Callable[[Context, bytes], dict[str, Any] | None]
    ) -> list[str] | bytes:
        """Return the new transactions since the last poll that the node still remembers.

        Objects are returned as the text of a JSON array. An answer has at most `ARRIVALS_SIZE`
        bytes; the next poll returns the remaining transactions.
        """
        with self.lock:
            new = [entry for entry in list(context.hub.arrivals) if entry[0] > self.seen]
            if not self.full:
                self.seen = new[-1][0] if new else self.seen
                return [hex_bytes(tx_hash) for _, tx_hash in new]
            texts: list[bytes] = []
            size = 0
            for number, tx_hash in new:
                self.seen = number
                found = object_of(context, tx_hash)
                if found is not None:
                    texts.append(encode(found))
                    size += len(texts[-1])
                if size > ARRIVALS_SIZE:
                    break
            return b"[%b]" % b",".join(texts)
