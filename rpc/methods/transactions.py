"""Finds transactions and receipts in the canonical chain, pre-confirmed blocks, then the pool."""

from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import HASH, INDEX, NUMBER_OR_TAG
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import require_worker, require_worker_above_limit
from fastevm.rpc.view import View
from fastevm.rpc_types.transactions import Json, transaction_json

# counting the logs of this many receipts costs as much as building one JSON object
RECEIPTS_OF_AN_OBJECT = 64


def locate(context: Context, tx_hash: bytes) -> tuple[View, int] | None:
    """Return the block of a transaction and its index there; None if it is in no block.

    The canonical chain comes first: directly after an import the pending block has the same
    transactions under another hash. The canonical chain is searched again at the end, to find a
    transaction whose block was sealed in the meantime.
    """
    found = context.node.chain.locate(tx_hash)
    if found is not None:
        return context.view_of(found[0]), found[1]
    return _locate_pre_confirmed(context, tx_hash) or _locate_mined(context, tx_hash)


def locate_or_ask(context: Context, tx_hash: bytes) -> tuple[View, int] | None:
    """Return `locate`'s result. Raises HeldUpstream if the upstream may have the transaction."""
    found = locate(context, tx_hash)
    if found is not None or context.node.history is None:
        return found
    if context.node.pool.find(tx_hash) is None:
        raise HeldUpstream
    return None


def locate_or_look(context: Context, tx_hash: bytes) -> tuple[View, int] | None:
    """Return `locate`'s result. Raises HeldUpstream if the upstream has the transaction."""
    try:
        return locate_or_ask(context, tx_hash)
    except HeldUpstream:
        require_worker(is_long=True)
        history = context.node.history
        if history is not None and history.has_transaction(tx_hash):
            raise
        return None


def _locate_mined(context: Context, tx_hash: bytes) -> tuple[View, int] | None:
    found = context.node.chain.locate(tx_hash)
    return None if found is None else (context.view_of(found[0]), found[1])


def _locate_pre_confirmed(context: Context, tx_hash: bytes) -> tuple[View, int] | None:
    for view in context.pending_views():
        for index, transaction in enumerate(view.block.transactions):
            if transaction.hash == tx_hash:
                return view, index
    return None


@method("eth_getTransactionByHash", HASH)
def get_transaction_by_hash(context: Context, tx_hash: bytes) -> Json | None:
    """Return a transaction. A pooled transaction has no block.

    A pre-confirmed transaction has a block number but no block hash. If the listener returns
    canonical receipts only, a pre-confirmed transaction has neither.
    """
    found = locate_or_ask(context, tx_hash)
    if found is not None:
        view, index = found
        return view.transaction_json(index, is_placed=gives_receipt(context, view))
    pooled = context.node.pool.find(tx_hash)
    return None if pooled is None else transaction_json(pooled)


@method("eth_getTransactionByBlockNumberAndIndex", NUMBER_OR_TAG, INDEX)
def get_transaction_by_number(context: Context, block: BlockId, index: int) -> Json | None:
    """Return a transaction by block and index."""
    return _at(context.find(block), index)


@method("eth_getTransactionByBlockHashAndIndex", HASH, INDEX)
def get_transaction_by_block_hash(context: Context, block_hash: bytes, index: int) -> Json | None:
    """Return a transaction by block hash and index."""
    return _at(context.find(BlockId(hash=block_hash)), index)


@method("eth_getRawTransactionByHash", HASH)
def get_raw_transaction(context: Context, tx_hash: bytes) -> str | None:
    """Return the canonical bytes of a mined or pooled transaction; 0x for an unknown transaction.

    On a development node the answer for an unknown transaction is null.
    """
    found = locate_or_look(context, tx_hash)
    if found is not None:
        view, index = found
        return hex_bytes(view.block.transactions[index].raw)
    pooled = context.node.pool.find(tx_hash)
    if pooled is None:
        return None if context.dialect.unknown_raw_is_null else "0x"
    return hex_bytes(pooled.raw)


@method("eth_getRawTransactionByBlockNumberAndIndex", NUMBER_OR_TAG, INDEX)
def get_raw_transaction_by_number(context: Context, block: BlockId, index: int) -> str | None:
    """Return the canonical bytes of a transaction by block and index; null if there is none."""
    return _raw_at(context.find(block), index)


@method("eth_getRawTransactionByBlockHashAndIndex", HASH, INDEX)
def get_raw_transaction_by_block_hash(
    context: Context, block_hash: bytes, index: int
) -> str | None:
    """Return the canonical bytes of a transaction by block hash and index, or null."""
    return _raw_at(context.find(BlockId(hash=block_hash)), index)


@method("eth_getTransactionReceipt", HASH, run_on=RunOn.SMALL)
def get_transaction_receipt(context: Context, tx_hash: bytes) -> bytes | None:
    """Return a receipt. ``--receipts`` controls receipts of pre-confirmed transactions.

    A pre-confirmed receipt has a block hash of 32 zero bytes and the extra member ``preconfirmed``.
    """
    found = locate_or_ask(context, tx_hash)
    if found is None or not gives_receipt(context, found[0]):
        return None
    return receipt_of(context, *found)


def gives_receipt(context: Context, view: View) -> bool:
    """Return whether the listener returns receipts of this block."""
    return view.pending is None or context.dialect.receipts_of_slices


def receipt_of(context: Context, view: View, index: int) -> bytes:
    """Return the receipt of transaction ``index`` of a block, as JSON text."""
    receipts = view.receipts
    require_worker_above_limit(len(receipts[index].logs) + len(receipts) // RECEIPTS_OF_AN_OBJECT)
    return view.receipt_text(index, with_block=context.dialect.receipts_tell_of_block)


def _raw_at(view: View | None, index: int) -> str | None:
    if view is None or index >= len(view.block.transactions):
        return None
    return hex_bytes(view.block.transactions[index].raw)


def _at(view: View | None, index: int) -> Json | None:
    if view is None or index >= len(view.block.transactions):
        return None
    return view.transaction_json(index)
