"""Blocks, counts of their contents, uncles and receipts. Returns null for an unknown block."""

from typing import Final

from fastevm.core.execution.types import Header
from fastevm.core.primitives.hex import quantity
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import BLOCK, FULL, HASH, INDEX, NUMBER_OR_TAG
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import require_worker_above_limit
from fastevm.rpc.view import View
from fastevm.rpc_types.blocks import Json, head_json, uncle_json


def _by_hash(context: Context, block_hash: bytes) -> View | None:
    return context.find(BlockId(hash=block_hash))


HASHES_OF_AN_OBJECT = 16  # hashes that cost as much as one transaction object


UNSEALED: Final = ("hash", "nonce", "miner")  # null members of a pending block in the geth dialect


def _block_json(context: Context, view: View | None, full: bool) -> Json | None:
    if view is None:
        return None
    count = len(view.block.transactions)
    require_worker_above_limit(count if full else count // HASHES_OF_AN_OBJECT)
    return _sealed(context, view, view.block_json(full=full))


def _sealed(context: Context, view: View, answer: Json) -> Json:
    if view.pending is not None and context.dialect.pending_is_unsealed:
        answer.update(dict.fromkeys(UNSEALED))
    return answer


@method("eth_getBlockByNumber", NUMBER_OR_TAG, FULL, run_on=RunOn.SMALL)
def get_block_by_number(context: Context, block: BlockId, full: bool) -> Json | None:
    """Return a block. ``pending`` is the unfinished pre-confirmed block, which has no hash yet."""
    return _block_json(context, context.find(block), full)


@method("eth_getBlockByHash", HASH, FULL, run_on=RunOn.SMALL)
def get_block_by_hash(context: Context, block_hash: bytes, full: bool) -> Json | None:
    """Return a block, canonical or not."""
    return _block_json(context, _by_hash(context, block_hash), full)


@method("eth_getHeaderByNumber", NUMBER_OR_TAG)
def get_header_by_number(context: Context, block: BlockId) -> Json | None:
    """Return a block without the members that need its body: transactions, uncles, size."""
    return _header_json(context, context.find(block))


@method("eth_getHeaderByHash", HASH)
def get_header_by_hash(context: Context, block_hash: bytes) -> Json | None:
    """Return the header of a block, canonical or not."""
    return _header_json(context, _by_hash(context, block_hash))


def _header_json(context: Context, view: View | None) -> Json | None:
    if view is None:
        return None
    return _sealed(context, view, head_json(view.block, view.hash))


method("erigon_getHeaderByNumber", NUMBER_OR_TAG)(get_header_by_number)


@method("eth_getBlockReceipts", BLOCK, run_on=RunOn.SMALL)
def get_block_receipts(context: Context, block: BlockId) -> bytes | None:
    """Return the receipts of all transactions of a block; ``pending`` is the pre-confirmed block.

    Every listener returns pre-confirmed receipts for ``pending``, marked ``preconfirmed``.
    """
    view = context.find(block)
    if view is None:
        return None
    receipts = view.receipts
    require_worker_above_limit(len(receipts) + sum([len(receipt.logs) for receipt in receipts]))
    return view.receipts_text(with_block=context.dialect.receipts_tell_of_block)


@method("eth_getBlockTransactionCountByNumber", NUMBER_OR_TAG)
def get_transaction_count_by_number(context: Context, block: BlockId) -> str | None:
    """Return how many transactions a block has, or ``pending`` has so far."""
    view = context.find(block)
    return None if view is None else quantity(len(view.block.transactions))


@method("eth_getBlockTransactionCountByHash", HASH)
def get_transaction_count_by_hash(context: Context, block_hash: bytes) -> str | None:
    """Return how many transactions a block has."""
    view = _by_hash(context, block_hash)
    return None if view is None else quantity(len(view.block.transactions))


@method("eth_getUncleCountByBlockNumber", NUMBER_OR_TAG)
def get_uncle_count_by_number(context: Context, block: BlockId) -> str | None:
    """Return how many uncles a block has."""
    view = context.find(block)
    return None if view is None else quantity(len(view.block.ommers))


@method("eth_getUncleCountByBlockHash", HASH)
def get_uncle_count_by_hash(context: Context, block_hash: bytes) -> str | None:
    """Return how many uncles a block has."""
    view = _by_hash(context, block_hash)
    return None if view is None else quantity(len(view.block.ommers))


@method("eth_getUncleByBlockNumberAndIndex", NUMBER_OR_TAG, INDEX)
def get_uncle_by_number(context: Context, block: BlockId, index: int) -> Json | None:
    """Return an uncle as a block without transactions."""
    return _uncle(context.find(block), index)


@method("eth_getUncleByBlockHashAndIndex", HASH, INDEX)
def get_uncle_by_hash(context: Context, block_hash: bytes, index: int) -> Json | None:
    """Return an uncle as a block without transactions."""
    return _uncle(_by_hash(context, block_hash), index)


def _uncle(view: View | None, index: int) -> Json | None:
    ommers: tuple[Header, ...] = () if view is None else view.block.ommers
    return uncle_json(ommers[index]) if index < len(ommers) else None
