"""Block access lists (EIP-7928). Returns null for an unknown block and for the pending block.

Two method names come from a draft (execution-apis 726). alloy before September 2026 calls them.
"""

from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import BLOCK
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc_types.block_access_list import Json, access_list_json, kept_access_list


@method("eth_getBlockAccessListByBlockHash", BLOCK, run_on=RunOn.WORKER)
@method("eth_getBlockAccessListByBlockNumber", BLOCK, run_on=RunOn.WORKER)
@method("eth_getBlockAccessList", BLOCK, run_on=RunOn.WORKER)
@long_running
def get_block_access_list(context: Context, block: BlockId) -> list[Json] | None:
    """Return every account and slot that a block accessed, with their changes."""
    encoded = _encoded(context, block)
    return None if encoded is None else access_list_json(encoded)


@method("debug_getRawBlockAccessList", BLOCK, run_on=RunOn.WORKER)
@long_running
def get_raw_block_access_list(context: Context, block: BlockId) -> str | None:
    """Return the RLP of a block's access list (EIP-7928)."""
    encoded = _encoded(context, block)
    return None if encoded is None else hex_bytes(encoded)


def _encoded(context: Context, block: BlockId) -> bytes | None:
    """Return the RLP of a block's access list, or None if the block is unknown or pending.

    Raises RpcError if the block has no list, or if the node no longer has it.
    """
    view = None if block.is_pending else context.find(block)
    if view is None:
        return None
    if view.block.header.block_access_list_hash is None:
        raise RpcError("no_access_list")
    encoded = kept_access_list(view.block)
    if encoded is None:
        raise RpcError("history_pruned")
    return encoded
