"""Block access lists (EIP-7928). An unknown block and the pending one are null, not an error.

Two names of a draft (execution-apis 726) are those that alloy before September 2026 asks for.
"""

from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import BLOCK
from fastevm.rpc.dispatch.registry import Place, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.selectors import Selector
from fastevm.wire.block_access_list import Json, access_list_json, kept_access_list
from fastevm.wire.text.hex import hex_bytes


@method("eth_getBlockAccessListByBlockHash", BLOCK, place=Place.WORKER)
@method("eth_getBlockAccessListByBlockNumber", BLOCK, place=Place.WORKER)
@method("eth_getBlockAccessList", BLOCK, place=Place.WORKER)
@long_running
def get_block_access_list(context: Context, block: Selector) -> list[Json] | None:
    """Return every account and slot that a block used, with their changes."""
    encoded = _encoded(context, block)
    return None if encoded is None else access_list_json(encoded)


@method("debug_getRawBlockAccessList", BLOCK, place=Place.WORKER)
@long_running
def get_raw_block_access_list(context: Context, block: Selector) -> str | None:
    """Return the RLP of the same list."""
    encoded = _encoded(context, block)
    return None if encoded is None else hex_bytes(encoded)


def _encoded(context: Context, block: Selector) -> bytes | None:
    """The list of a block; RpcError for a block that has none, or whose list is not kept."""
    view = None if block.is_pending else context.find(block)
    if view is None:
        return None
    if view.block.header.block_access_list_hash is None:
        raise RpcError("no_access_list")
    encoded = kept_access_list(view.block)
    if encoded is None:
        raise RpcError("access_list_not_kept")
    return encoded
