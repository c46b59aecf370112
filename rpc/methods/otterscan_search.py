"""Searches of ots_*: the transactions of an address, and the creator of a contract.

Executes blocks again, starting at the given block, until the page is full. Executes at most 10,000
blocks; the node must have their states. A page always ends with a whole block.
"""

from __future__ import annotations

from typing import Final

from fastevm import tracing
from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, COUNT
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import SEARCH_BLOCKS, SEARCH_RESULTS
from fastevm.rpc.methods.otterscan import receipt_json
from fastevm.rpc.methods.trace_parity import flat_traces_of
from fastevm.rpc.view import View
from fastevm.rpc_types.transactions import Json

TOO_FAR: Final = (
    "nothing was found in blocks {first} to {last}; no search goes further than {count} blocks, or "
    "to blocks below those whose states the node holds"
)
CREATED_EARLIER: Final = (
    "the contract was created before block {number}, the oldest one whose state the node holds"
)

Found = list[tuple[View, int]]  # (block, transaction index)


@method("ots_searchTransactionsBefore", ADDRESS, COUNT, COUNT, run_on=RunOn.WORKER)
@long_running
def transactions_before(context: Context, address: bytes, block: int, size: int) -> Json:
    """Return the newest transactions before a block that involve an address, newest first.

    Block 0 means the head, which is then searched too. ``firstPage`` is true if there are no newer
    transactions, ``lastPage`` if there are no older transactions.
    """
    head, first = context.node.chain.head.number, _first(context)
    newest = head if block == 0 else min(block - 1, head)
    oldest = max(first, newest - SEARCH_BLOCKS + 1, _oldest_traceable(context))
    found, is_complete = _collected(context, address, range(newest, oldest - 1, -1), size)
    is_last = is_complete and oldest == first
    if not (found or is_last):
        raise _nothing(oldest, newest)
    return _page(found, newest >= head, is_last)


@method("ots_searchTransactionsAfter", ADDRESS, COUNT, COUNT, run_on=RunOn.WORKER)
@long_running
def transactions_after(context: Context, address: bytes, block: int, size: int) -> Json:
    """Return the oldest transactions after a block that involve an address, newest first.

    Block 0 means the beginning of the chain.
    """
    head, first = context.node.chain.head.number, _first(context)
    oldest = max(first, block + 1, _oldest_traceable(context) if block == 0 else 0)
    newest = min(head, oldest + SEARCH_BLOCKS - 1)
    found, is_complete = _collected(context, address, range(oldest, newest + 1), size)
    is_first = is_complete and newest >= head
    if not (found or is_first):
        raise _nothing(oldest, newest)
    return _page(found[::-1], is_first, oldest == first)


@method("ots_getContractCreator", ADDRESS, run_on=RunOn.WORKER)
@long_running
def contract_creator(context: Context, address: bytes) -> dict[str, str] | None:
    """Return the transaction and the account that created a contract; null if there is none.

    A binary search over stored states finds the block. Also returns null for a contract that no
    longer exists and for a contract in the genesis state.
    """
    chain = context.node.chain
    low, high = chain.oldest_state(), chain.head.number
    if not _has_code(context, high, address):
        return None
    if _has_code(context, low, address):
        if context.node.history is not None:
            raise HeldUpstream
        if low > chain.genesis.number:
            raise RpcError("server_error", CREATED_EARLIER.format(number=low))
        return None
    while low + 1 < high:  # no code after block `low`, code after `high`
        middle = (low + high) // 2
        low, high = (low, middle) if _has_code(context, middle, address) else (middle, high)
    for trace in flat_traces_of(context.find(BlockId(number=high))):
        for entry in trace.entries:
            frame = entry.frame
            if frame.creates and frame.target == address and frame.error is None:
                tx_hash = trace.position.tx_hash or b""
                return {"hash": hex_bytes(tx_hash), "creator": hex_bytes(frame.caller)}
    return None  # the code is a delegation (EIP-7702), so the account is no contract


def _first(context: Context) -> int:
    """Return the number of this chain's first block with transactions."""
    return context.node.chain.genesis.number + 1


def _oldest_traceable(context: Context) -> int:
    return context.node.chain.oldest_state() + 1


def _has_code(context: Context, number: int, address: bytes) -> bool:
    return bool(context.view(BlockId(number=number)).layer.code(address))


def _collected(context: Context, address: bytes, numbers: range, size: int) -> tuple[Found, bool]:
    """Return the transactions of a page in the order of ``numbers``.

    Also returns whether all blocks were searched.
    """
    found: Found = []
    size = min(size, SEARCH_RESULTS)
    for number in numbers:
        if len(found) >= size:
            return found, False
        view = context.find(BlockId(number=number))
        if view is None:
            continue
        traces = flat_traces_of(view)
        indices = [index for index, trace in enumerate(traces) if _has_part(trace, address)]
        found += [(view, index) for index in indices[:: numbers.step]]
    return found, True


def _has_part(trace: tracing.FlatTrace, address: bytes) -> bool:
    return any(address in (entry.frame.caller, entry.frame.target) for entry in trace.entries)


def _nothing(first: int, last: int) -> RpcError:
    text = TOO_FAR.format(first=first, last=last, count=SEARCH_BLOCKS)
    return RpcError("server_error", text)


def _page(found: Found, is_first: bool, is_last: bool) -> Json:
    return {
        "txs": [view.transaction_json(index) for view, index in found],
        "receipts": [receipt_json(view, index) for view, index in found],
        "firstPage": is_first,
        "lastPage": is_last,
    }
