"""Raw encodings (debug_getRaw*), accounts and storage inside a block, and code by hash."""

from __future__ import annotations

import fastevm
from fastevm import Layer, tracing
from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, BLOCK, BLOCK_OR_LATEST, HASH, INDEX
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import CODE_SEARCH_ACCOUNTS, STORAGE_RANGE_LIMIT
from fastevm.rpc.methods.development import decode_number
from fastevm.rpc.methods.state import account_info
from fastevm.rpc.methods.transactions import get_raw_transaction
from fastevm.rpc.view import View, base_of
from fastevm.rpc_types.blocks import block_json
from fastevm.rpc_types.quantity import decode_bytes
from fastevm.rpc_types.transactions import Json

method("debug_getRawTransaction", HASH)(get_raw_transaction)


@method("debug_getRawBlock", BLOCK, run_on=RunOn.WORKER)
@long_running
def get_raw_block(context: Context, block: BlockId) -> str:
    """Return the RLP of a block."""
    return hex_bytes(_view(context, block).block.rlp())


@method("debug_getRawHeader", BLOCK)
def get_raw_header(context: Context, block: BlockId) -> str:
    """Return the RLP of a header."""
    return hex_bytes(_view(context, block).block.header.rlp())


@method("debug_getRawReceipts", BLOCK, run_on=RunOn.WORKER)
@long_running
def get_raw_receipts(context: Context, block: BlockId) -> list[str]:
    """Return the consensus encodings of a block's receipts (EIP-2718)."""
    return [hex_bytes(receipt.rlp()) for receipt in _view(context, block).receipts]


@method("debug_getRawTransactions", BLOCK, run_on=RunOn.WORKER)
@long_running
def get_raw_transactions(context: Context, block: BlockId) -> list[str]:
    """Return the canonical bytes of a block's transactions."""
    return [hex_bytes(transaction.raw) for transaction in _view(context, block).block.transactions]


@method("debug_getBadBlocks", run_on=RunOn.WORKER)
@long_running
def get_bad_blocks(context: Context) -> list[Json]:
    """Return the last ten invalid blocks that this node received, newest first."""
    return [
        {
            "hash": hex_bytes(block.hash),
            "block": block_json(block, block.hash, full=True, is_pending=False, receipts=()),
            "rlp": hex_bytes(block.rlp()),
        }
        for block in reversed(context.node.bad_blocks)
    ]


@method("debug_accountInfoAt", BLOCK, INDEX, ADDRESS, run_on=RunOn.WORKER)
@long_running
def account_info_at(context: Context, block: BlockId, index: int, address: bytes) -> Json:
    """Return balance, nonce and code of an account after transaction ``index`` of a block."""
    view = _view(context, block)
    transactions = view.block.transactions
    if index >= len(transactions):
        text = f"tx_index {index} out of bounds for block with {len(transactions)} transactions"
        raise RpcError("invalid_params", text)
    return account_info(tracing.state_inside(base_of(view), transactions[: index + 1]), address)


COUNT = Param(decode_number)
PATH = Param(decode_bytes)
PATH_SIZE = 32  # bytes


@method("debug_storageRangeAt", BLOCK, COUNT, ADDRESS, PATH, COUNT, run_on=RunOn.WORKER)
@long_running
def storage_range_at(
    context: Context, block: BlockId, index: int, address: bytes, start: bytes, count: int
) -> Json:
    """Return storage slots of an account, as they were before transaction ``index`` of a block.

    Returns at most 1,024 slots, keyed and sorted by the hash of their storage key, from ``start``
    on. ``nextKey`` is the start of the next range. Raises RpcError on a fork, where only a part of
    the state is known.
    """
    view = _view(context, block)
    if context.node.history is not None:
        raise RpcError("server_error", "the slots of a forked state are known in part only")
    transactions = view.block.transactions
    if index > max(len(transactions) - 1, 0):
        text = f"transaction index {index} out of range for block {hex_bytes(view.hash)}"
        raise RpcError("server_error", text)
    layer = tracing.state_inside(base_of(view), transactions[:index])
    return _storage_range(layer, address, start, min(count, STORAGE_RANGE_LIMIT))


def _storage_range(layer: Layer, address: bytes, start: bytes, count: int) -> Json:
    found = {}
    for slot, value in layer.storage_items(address).items():
        key = slot.to_bytes(PATH_SIZE)
        found[fastevm.keccak256(key)] = (key, value.to_bytes(PATH_SIZE))
    paths = sorted(path for path in found if path >= start)
    return {
        "storage": {
            hex_bytes(path): dict(zip(("key", "value"), map(hex_bytes, found[path]), strict=True))
            for path in paths[:count]
        },
        "nextKey": hex_bytes(paths[count]) if len(paths) > count else None,
    }


@method("debug_codeByHash", HASH, BLOCK_OR_LATEST, run_on=RunOn.WORKER)
@long_running
def code_by_hash(context: Context, code_hash: bytes, block: BlockId) -> str:
    """Return the code with a given hash in a state, ``0x`` if no account has this code.

    The search visits all accounts. So it raises RpcError for a state of more than 100,000 accounts,
    and on a fork, where only a part of the state is known.
    """
    layer = context.view(block).layer
    if context.node.history is not None:
        raise RpcError("server_error", "the accounts of a forked state are known in part only")
    if layer.account_count > CODE_SEARCH_ACCOUNTS:
        text = f"a state of more than {CODE_SEARCH_ACCOUNTS} accounts is not searched for code"
        raise RpcError("limit_exceeded", text)
    for address in layer.addresses():
        account = layer.account(address)
        if account is not None and account.code_hash == code_hash:
            return hex_bytes(layer.code(address))
    return "0x"


def _view(context: Context, block: BlockId) -> View:
    view = context.find(block)
    if view is not None:
        return view
    if block.hash is not None:
        raise RpcError("server_error", f"block {hex_bytes(block.hash)} not found")
    raise RpcError("server_error", f"block #{block.number} not found")
