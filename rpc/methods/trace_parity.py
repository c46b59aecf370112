"""trace_*: Parity-style traces of mined and pre-confirmed transactions.

The frames are those of ``flatCallTracer``. As in Parity, Erigon and anvil, the top frame's gas
excludes the intrinsic gas and refunds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

from msgspec import Struct

from fastevm import tracing
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.block_id import (
    EARLIEST_BLOCK,
    LATEST_BLOCK,
    BlockId,
    decode_count,
    decode_number_tag_or_int,
)
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.long_answer import Answer
from fastevm.rpc.dispatch.params import HASH, NUMBER_OR_TAG
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import TRACE_FILTER_ADDRESSES, TRACE_FILTER_BLOCKS
from fastevm.rpc.methods.trace import text_of
from fastevm.rpc.methods.transactions import locate_or_look
from fastevm.rpc.view import View, base_of
from fastevm.rpc_types.quantity import DecodeError, decode_address, object_fault
from fastevm.tracing import Spool, TraceRequest, list_text

FRAMES: Final = TraceRequest(make=lambda *given: tracing.FrameTracer(*given))
FORKED: Final = (
    "blocks up to {number}, where this chain was forked, cannot be asked for together with later"
    " ones"
)
MODES: Final = ("union", "intersection")


@method("trace_transaction", HASH, run_on=RunOn.WORKER)
@long_running
def transaction_traces(context: Context, tx_hash: bytes) -> Answer:
    """Return the frames of a transaction; an empty list for an unknown transaction."""
    trace = flat_trace_of(context, tx_hash)
    texts = () if trace is None else trace.texts()
    return text_of(list_text(texts, Spool(context.trace_room)))


@method("trace_block", NUMBER_OR_TAG, run_on=RunOn.WORKER)
@long_running
def block_traces(context: Context, block: BlockId) -> Answer:
    """Return the frames of all transactions of a block; an empty list for an unknown block."""
    texts = chain.from_iterable(trace.texts() for trace in flat_traces_of(context.find(block)))
    return text_of(list_text(texts, Spool(context.trace_room)))


def decode_positions(value: Any) -> list[int]:
    """Decode the positions of trace_get: quantities, or JSON numbers as some clients send them."""
    if not isinstance(value, list):
        raise object_fault(value, "[]hexutil.Uint64")
    return [decode_count(item) for item in value]


@method("trace_get", HASH, Param(decode_positions), run_on=RunOn.WORKER)
@long_running
def trace_at(context: Context, tx_hash: bytes, positions: list[int]) -> Answer | None:
    """Return one frame of a transaction by its index in the flat list.

    Null unless there is exactly one position, as in Parity, Erigon and reth.
    """
    trace = flat_trace_of(context, tx_hash)
    if trace is None or len(positions) != 1:
        return None
    return next(_part(trace.texts(), positions[0], 1), None)


def flat_trace_of(context: Context, tx_hash: bytes) -> tracing.FlatTrace | None:
    """Return the frames of a mined or pre-confirmed transaction; None for an unknown one."""
    found = locate_or_look(context, tx_hash)
    if found is None:
        return None
    view, index = found
    trace: tracing.FlatTrace = tracing.trace_transaction(
        base_of(view), view.block.transactions, index, FRAMES
    )
    return trace


def flat_traces_of(view: View | None) -> list[tracing.FlatTrace]:
    """Return the frames of each transaction of a block."""
    if view is None or not view.block.transactions:
        return []
    return tracing.trace_block(base_of(view), view.block.transactions, FRAMES)


# --------------------------------------------------------------------------------------------------
# trace_filter


class TraceFilter(Struct, frozen=True, kw_only=True):
    """A decoded filter of trace_filter: block range, senders, receivers, ``after`` and ``count``.

    With ``union``, a frame matches if its sender or its receiver matches, else both must match. An
    empty set matches every address.
    """

    first: BlockId = EARLIEST_BLOCK
    last: BlockId = LATEST_BLOCK
    senders: frozenset[bytes] = frozenset()
    receivers: frozenset[bytes] = frozenset()
    union: bool = True
    after: int = 0
    count: int | None = None

    def admits(self, entry: tracing.FlatFrame) -> bool:
        """Return whether a frame matches."""
        frame = entry.frame
        sent, received = frame.caller in self.senders, frame.target in self.receivers
        if self.union and self.senders and self.receivers:
            return sent or received
        return (sent or not self.senders) and (received or not self.receivers)


def decode_trace_filter(value: Any) -> TraceFilter:
    """Decode the filter object of trace_filter. Ignores unknown members."""
    if not isinstance(value, dict):
        raise object_fault(value, "TraceFilter")
    mode, count = value.get("mode") or MODES[0], value.get("count")
    if mode not in MODES:
        raise DecodeError(f"TraceFilter.mode: expected one of {', '.join(MODES)}")
    return TraceFilter(
        first=_block(value, "fromBlock", EARLIEST_BLOCK),
        last=_block(value, "toBlock", LATEST_BLOCK),
        senders=_addresses(value, "fromAddress"),
        receivers=_addresses(value, "toAddress"),
        union=mode == MODES[0],
        after=decode_count(value.get("after") or 0, field="TraceFilter.after"),
        count=None if count is None else decode_count(count, field="TraceFilter.count"),
    )


def _block(value: Mapping[str, Any], name: str, default: BlockId) -> BlockId:
    given = value.get(name)
    return default if given is None else decode_number_tag_or_int(given)


def _addresses(value: Mapping[str, Any], name: str) -> frozenset[bytes]:
    given = value.get(name) or []
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list):
        raise object_fault(given, "[]common.Address", f"TraceFilter.{name}")
    if len(given) > TRACE_FILTER_ADDRESSES:
        raise DecodeError(f"TraceFilter.{name}: more than {TRACE_FILTER_ADDRESSES} addresses")
    return frozenset(decode_address(item, field=f"TraceFilter.{name}") for item in given)


@method("trace_filter", Param(decode_trace_filter), run_on=RunOn.WORKER)
@long_running
def filtered_traces(context: Context, wanted: TraceFilter) -> Answer:
    """Return the frames in a range of blocks that match a filter, oldest first.

    Executes the blocks again until ``count`` frames are found. The range may have 10,000 blocks,
    and the time limit of a request applies. On a fork, all blocks of the range must be above the
    fork block, or none. If none is, the upstream answers.
    """
    first, last = context.number_of(wanted.first), context.number_of(wanted.last)
    history = context.node.history
    if history is not None and first <= history.number:
        if last <= history.number:
            raise HeldUpstream
        if wanted.first != EARLIEST_BLOCK:
            raise RpcError("invalid_params", FORKED.format(number=history.number))
        first = history.number + 1
    if first > last:
        text = "invalid block range, ensure that to block is greater than from block"
        raise RpcError("invalid_params", text)
    last = min(last, context.node.chain.head.number)
    if last - first >= TRACE_FILTER_BLOCKS:
        reach = f"{hex(first)}-{hex(first + TRACE_FILTER_BLOCKS - 1)}"
        text = f"query exceeds max block range {TRACE_FILTER_BLOCKS}, retry with the range {reach}"
        raise RpcError("invalid_params", text)
    texts = _admitted(context, wanted, range(first, last + 1))
    part = _part(texts, wanted.after, wanted.count)
    return text_of(list_text(part, Spool(context.trace_room)))


def _part(texts: Iterable[bytes], after: int, count: int | None) -> Iterator[bytes]:
    """Skip the first ``after`` texts, then return at most ``count`` texts.

    Larger numbers are reduced to sys.maxsize.
    """
    end = sys.maxsize if count is None else min(after + count, sys.maxsize)
    return islice(texts, min(after, sys.maxsize), end)


def _admitted(context: Context, wanted: TraceFilter, numbers: Iterable[int]) -> Iterator[bytes]:
    for number in numbers:
        for trace in flat_traces_of(context.find(BlockId(number=number))):
            entries = [entry for entry in trace.entries if wanted.admits(entry)]
            yield from trace._replace(entries=entries).texts()
