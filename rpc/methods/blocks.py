"""Blocks, their counts, uncles and receipts. An unknown block is null, not an error."""

from fastevm.types import Header
from rpc.context import Context, View
from rpc.format import Json, block_json, block_receipts_json, quantity, uncle_json
from rpc.params import BLOCK, FULL, HASH, INDEX, NUMBER_OR_TAG
from rpc.registry import SMALL_WEIGHT, Place, method
from rpc.selectors import Selector


def _by_hash(context: Context, block_hash: bytes) -> View | None:
    return context.find(Selector(hash=block_hash))


HASHES_OF_AN_OBJECT = 16  # that weigh as much as one transaction object


def _weight(view: View | None, full: bool) -> int:
    count = 0 if view is None else len(view.block.transactions)
    return count if full else count // HASHES_OF_AN_OBJECT


def _weight_by_number(context: Context, block: Selector, full: bool) -> int:
    return _weight(context.find(block), full)


def _weight_by_hash(context: Context, block_hash: bytes, full: bool) -> int:
    return _weight(_by_hash(context, block_hash), full)


def _weight_of_receipts(context: Context, block: Selector) -> int:
    view = context.find(block)
    if view is None:
        return 0
    receipts = view.receipts
    return len(receipts) + sum(len(r.logs) for r in receipts[:SMALL_WEIGHT])


@method("eth_getBlockByNumber", NUMBER_OR_TAG, FULL, place=Place.SMALL, weight=_weight_by_number)
def get_block_by_number(context: Context, block: Selector, full: bool) -> Json | None:
    """Return a block; ``pending`` is the pre-confirmed one so far, its hash 32 zero bytes."""
    view = context.find(block)
    return None if view is None else block_json(view, full=full)


@method("eth_getBlockByHash", HASH, FULL, place=Place.SMALL, weight=_weight_by_hash)
def get_block_by_hash(context: Context, block_hash: bytes, full: bool) -> Json | None:
    """Return a block, canonical or not."""
    view = _by_hash(context, block_hash)
    return None if view is None else block_json(view, full=full)


@method("eth_getBlockReceipts", BLOCK, place=Place.SMALL, weight=_weight_of_receipts)
def get_block_receipts(context: Context, block: Selector) -> list[Json] | None:
    """Return the receipts of all transactions of a block."""
    view = context.find(block)
    return None if view is None else block_receipts_json(view)


@method("eth_getBlockTransactionCountByNumber", NUMBER_OR_TAG)
def get_transaction_count_by_number(context: Context, block: Selector) -> str | None:
    """Return how many transactions a block has (so far, under ``pending``)."""
    view = context.find(block)
    return None if view is None else quantity(len(view.block.transactions))


@method("eth_getBlockTransactionCountByHash", HASH)
def get_transaction_count_by_hash(context: Context, block_hash: bytes) -> str | None:
    """Return how many transactions a block has."""
    view = _by_hash(context, block_hash)
    return None if view is None else quantity(len(view.block.transactions))


@method("eth_getUncleCountByBlockNumber", NUMBER_OR_TAG)
def get_uncle_count_by_number(context: Context, block: Selector) -> str | None:
    """Return how many uncles a block has."""
    view = context.find(block)
    return None if view is None else quantity(len(view.block.ommers))


@method("eth_getUncleCountByBlockHash", HASH)
def get_uncle_count_by_hash(context: Context, block_hash: bytes) -> str | None:
    """Return how many uncles a block has."""
    view = _by_hash(context, block_hash)
    return None if view is None else quantity(len(view.block.ommers))


@method("eth_getUncleByBlockNumberAndIndex", NUMBER_OR_TAG, INDEX)
def get_uncle_by_number(context: Context, block: Selector, index: int) -> Json | None:
    """Return an uncle as a block without transactions."""
    return _uncle(context.find(block), index)


@method("eth_getUncleByBlockHashAndIndex", HASH, INDEX)
def get_uncle_by_hash(context: Context, block_hash: bytes, index: int) -> Json | None:
    """Return an uncle as a block without transactions."""
    return _uncle(_by_hash(context, block_hash), index)


def _uncle(view: View | None, index: int) -> Json | None:
    ommers: tuple[Header, ...] = () if view is None else view.block.ommers
    return uncle_json(ommers[index]) if index < len(ommers) else None
