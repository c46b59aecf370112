"""Finds a transaction by its sender and nonce.

A binary search over the sender's nonce in stored states finds the block. Below the oldest state a
bounded number of blocks is scanned.
"""

from collections.abc import Iterable

from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, INDEX
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import SEARCH_BLOCKS
from fastevm.rpc.view import View
from fastevm.rpc_types.transactions import Json, transaction_json

TOO_OLD = (
    "the transaction is older than the states that this node holds, and not in the {count} blocks "
    "before them"
)


@method("eth_getTransactionBySenderAndNonce", ADDRESS, INDEX, run_on=RunOn.WORKER)
@long_running
def get_transaction_by_sender(context: Context, sender: bytes, nonce: int) -> Json | None:
    """Return a transaction; null if the account has sent none with this nonce.

    Also finds pooled transactions, which have no block.
    """
    found = locate_by_sender(context, sender, nonce)
    if found is not None:
        view, index = found
        return view.transaction_json(index)
    for waiting in context.node.pool.content_of(sender):
        if nonce in waiting:
            return transaction_json(waiting[nonce])
    return None


def locate_by_sender(context: Context, sender: bytes, nonce: int) -> tuple[View, int] | None:
    """Return the block of a mined or pre-confirmed transaction and its index there.

    Raises RpcError if the transaction is more than 10,000 blocks below the oldest state,
    HeldUpstream if it is at or below the fork block.
    """
    chain = context.node.chain
    if nonce >= chain.layer_of(chain.head.hash).nonce(sender):
        return _in_blocks(context.pending_views(), sender, nonce)
    low, high = chain.oldest_state(), chain.head.number
    if _nonce_after(context, low, sender) > nonce:
        return _below(context, low, sender, nonce)
    while low + 1 < high:  # the nonce is used after block `low`, and in `high` or before it
        middle = (low + high) // 2
        if _nonce_after(context, middle, sender) > nonce:
            high = middle
        else:
            low = middle
    return _in_blocks(_views(context, [high]), sender, nonce)


def _below(context: Context, newest: int, sender: bytes, nonce: int) -> tuple[View, int] | None:
    if context.node.history is not None:
        raise HeldUpstream
    first = context.node.chain.genesis.number
    last = max(first, newest - SEARCH_BLOCKS + 1)
    found = _in_blocks(_views(context, range(newest, last - 1, -1)), sender, nonce)
    if found is None and last > first:
        raise RpcError("server_error", TOO_OLD.format(count=SEARCH_BLOCKS))
    return found


def _nonce_after(context: Context, number: int, sender: bytes) -> int:
    return context.view(BlockId(number=number)).layer.nonce(sender)


def _views(context: Context, numbers: Iterable[int]) -> Iterable[View]:
    views = (context.find(BlockId(number=number)) for number in numbers)
    return (view for view in views if view is not None)


def _in_blocks(views: Iterable[View], sender: bytes, nonce: int) -> tuple[View, int] | None:
    for view in views:
        for index, transaction in enumerate(view.block.transactions):
            if transaction.nonce == nonce and transaction.sender == sender:
                return view, index
    return None
