"""ots_*: the API of the block explorer Otterscan.

Source: docs.otterscan.io/api-docs/ots-api, with the formats of anvil. Results do not include
pre-confirmed blocks, except for the hash of a pre-confirmed transaction.
"""

from __future__ import annotations

from typing import Final

import msgspec

from fastevm import tracing
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, COUNT, HASH, NUMBER_TAG_OR_INT
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import long_running, require_worker_above_limit
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import SEARCH_RESULTS
from fastevm.rpc.methods.trace_parity import flat_trace_of
from fastevm.rpc.methods.transaction_search import locate_by_sender
from fastevm.rpc.view import View
from fastevm.rpc_types.blocks import issuance_json
from fastevm.rpc_types.transactions import Json

API_LEVEL: Final = 8

# Types of internal operations.
TRANSFER, DESTRUCTION, CREATION, CREATION2 = range(4)
KINDS: Final = {
    "CALL": TRANSFER,
    "SELFDESTRUCT": DESTRUCTION,
    "CREATE": CREATION,
    "CREATE2": CREATION2,
}


@method("ots_getApiLevel")
def api_level(context: Context) -> int:
    """Return the API level, which the explorer compares with the required level."""
    return API_LEVEL


@method("ots_hasCode", ADDRESS, NUMBER_TAG_OR_INT)
def has_code(context: Context, address: bytes, block: BlockId) -> bool:
    """Return whether the account has code in the state after a block."""
    return bool(context.view(block).layer.code(address))


# --------------------------------------------------------------------------------------------------
# transactions


@method("ots_traceTransaction", HASH, run_on=RunOn.WORKER)
@long_running
def call_entries(context: Context, tx_hash: bytes) -> list[Json]:
    """Return the call frames of a transaction; an empty list for an unknown transaction.

    Includes creations and self-destructions, as Erigon does. anvil omits them.
    """
    return [_entry(entry.frame) for entry in _entries(context, tx_hash) or ()]


@method("ots_getInternalOperations", HASH, run_on=RunOn.WORKER)
@long_running
def internal_operations(context: Context, tx_hash: bytes) -> list[Json]:
    """Return the transfers, creations and self-destructions of a transaction.

    Includes those of the top frame and of failed frames, as anvil and Erigon do. Raises RpcError
    for an unknown transaction.
    """
    entries = _entries(context, tx_hash)
    if entries is None:
        raise RpcError("server_error", "transaction not found")
    return [_operation(entry.frame) for entry in entries if _is_operation(entry.frame)]


@method("ots_getTransactionError", HASH, run_on=RunOn.WORKER)
@long_running
def revert_data(context: Context, tx_hash: bytes) -> str:
    """Return the revert data of a transaction; ``0x`` if it did not revert."""
    entries = _entries(context, tx_hash)
    top = entries[0].frame if entries else None
    return hex_bytes(top.output) if top is not None and top.reverted else "0x"


def _entries(context: Context, tx_hash: bytes) -> list[tracing.FlatFrame] | None:
    trace = flat_trace_of(context, tx_hash)
    return None if trace is None else trace.entries


def _entry(frame: tracing.CallFrame) -> Json:
    return {
        "type": frame.kind,
        "depth": frame.depth,
        **_parties(frame),
        "input": hex_bytes(frame.input),
        "output": hex_bytes(frame.output),
    }


def _is_operation(frame: tracing.CallFrame) -> bool:
    return frame.kind in KINDS and (frame.kind != "CALL" or frame.value > 0)


def _operation(frame: tracing.CallFrame) -> Json:
    return {"type": KINDS[frame.kind], **_parties(frame)}


def _parties(frame: tracing.CallFrame) -> Json:
    return {
        "from": hex_bytes(frame.caller),
        "to": hex_bytes(frame.target),
        "value": quantity(frame.value),
    }


@method("ots_getTransactionBySenderAndNonce", ADDRESS, COUNT, run_on=RunOn.WORKER)
@long_running
def transaction_hash_by_sender(context: Context, sender: bytes, nonce: int) -> str | None:
    """Return the hash of a mined or pre-confirmed transaction; null if there is none."""
    found = locate_by_sender(context, sender, nonce)
    if found is None:
        return None
    view, index = found
    return hex_bytes(view.block.transactions[index].hash)


# --------------------------------------------------------------------------------------------------
# blocks


@method("ots_getBlockDetails", NUMBER_TAG_OR_INT, run_on=RunOn.SMALL)
def block_details(context: Context, block: BlockId) -> Json:
    """Return a block without transactions, with its issuance and total fees."""
    return _details(_known(context, block))


@method("ots_getBlockDetailsByHash", HASH, run_on=RunOn.SMALL)
def block_details_by_hash(context: Context, block_hash: bytes) -> Json:
    """Return details as ots_getBlockDetails does, also of a side block."""
    return _details(_known(context, BlockId(hash=block_hash)))


@method("ots_getBlockTransactions", NUMBER_TAG_OR_INT, COUNT, COUNT, run_on=RunOn.SMALL)
def block_transactions(context: Context, block: BlockId, page: int, size: int) -> Json:
    """Return a block with one page of transactions and receipts. The first page is 0."""
    view = _known(context, block)
    size = min(size, SEARCH_RESULTS)
    indices = range(len(view.block.transactions))[page * size : (page + 1) * size]
    require_worker_above_limit(len(indices))
    shown = _block_json(view)
    shown["transactions"] = [view.transaction_json(index) for index in indices]
    return {"fullblock": shown, "receipts": [receipt_json(view, index) for index in indices]}


def receipt_json(view: View, index: int) -> msgspec.Raw:
    """Return a receipt with the timestamp of its block."""
    time = quantity(view.block.header.timestamp).encode()
    return msgspec.Raw(b'%b,"timestamp":"%b"}' % (view.receipt_text(index)[:-1], time))


def _known(context: Context, block: BlockId) -> View:
    view = context.find(block)
    if view is None:
        raise RpcError("server_error", "block not found")
    return view


def _block_json(view: View) -> Json:
    count = len(view.block.transactions)
    require_worker_above_limit(count)
    return view.block_json(full=False) | {"transactionCount": count}


def _details(view: View) -> Json:
    block = _block_json(view)
    del block["transactions"]
    fees = sum(receipt.gas_used * receipt.effective_gas_price for receipt in view.receipts)
    issuance = issuance_json(view.block, view.schedule)
    return {"block": block, "issuance": issuance, "totalFees": quantity(fees)}
