"""Raw encodings: debug_getRaw*."""

from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import BLOCK, HASH
from fastevm.rpc.dispatch.registry import Place, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.transactions import get_raw_transaction
from fastevm.rpc.selectors import Selector
from fastevm.rpc.view import View
from fastevm.wire.text.hex import hex_bytes

method("debug_getRawTransaction", HASH)(get_raw_transaction)


@method("debug_getRawBlock", BLOCK, place=Place.WORKER)
@long_running
def get_raw_block(context: Context, block: Selector) -> str:
    """Return the RLP of a block."""
    return hex_bytes(_view(context, block).block.rlp())


@method("debug_getRawHeader", BLOCK)
def get_raw_header(context: Context, block: Selector) -> str:
    """Return the RLP of a header."""
    return hex_bytes(_view(context, block).block.header.rlp())


@method("debug_getRawReceipts", BLOCK, place=Place.WORKER)
@long_running
def get_raw_receipts(context: Context, block: Selector) -> list[str]:
    """Return the consensus encodings of a block's receipts (EIP-2718)."""
    return [hex_bytes(receipt.rlp()) for receipt in _view(context, block).receipts]


def _view(context: Context, block: Selector) -> View:
    view = context.find(block)
    if view is not None:
        return view
    if block.hash is not None:
        raise RpcError("server_error", f"block {hex_bytes(block.hash)} not found")
    raise RpcError("server_error", f"block #{block.number} not found")
