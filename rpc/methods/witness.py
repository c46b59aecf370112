"""debug_executionWitness*: a witness proves all state that the execution of a block reads."""

from typing import Any, cast

from fastevm.chain import stateless
from fastevm.core.execution.types import Header
from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import BlockUnavailableError, StateUnavailableError
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import BLOCK, HASH
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.view import View


@method("debug_executionWitness", BLOCK, run_on=RunOn.WORKER)
@long_running
def execution_witness(context: Context, block: BlockId) -> dict[str, list[str]]:
    """Return the trie nodes, codes, keys and headers with which a block can be verified."""
    return _witness(context, context.find(block), block)


@method("debug_executionWitnessByBlockHash", HASH, run_on=RunOn.WORKER)
@long_running
def execution_witness_by_hash(context: Context, block_hash: bytes) -> dict[str, list[str]]:
    """Return the witness of a block, canonical or not."""
    selector = BlockId(hash=block_hash)
    return _witness(context, context.find(selector), selector)


def _witness(context: Context, view: View | None, block: BlockId) -> dict[str, list[str]]:
    if view is None:
        name = f"#{block.number}" if block.hash is None else hex_bytes(block.hash)
        raise RpcError("server_error", f"block {name} not found")
    header = view.block.header
    if view.pending is not None:
        raise RpcError("server_error", "a pre-confirmed block has no witness yet")
    if header.number == 0:
        raise RpcError("server_error", "genesis has no witness: nothing was executed")
    chain, config = context.node.chain, cast(Any, context.node.config)
    try:
        layer = cast(Any, chain.layer_of(header.parent_hash))
    except (StateUnavailableError, BlockUnavailableError):
        raise RpcError("history_pruned") from None

    def header_of(block_hash: bytes) -> Header:
        found = chain.block_by_hash(block_hash)
        if found is None:
            raise RpcError("server_error", f"block {hex_bytes(block_hash)} not found")
        return found.header

    try:
        return stateless.witness_of(view.block, layer, config, header_of).to_json()
    except stateless.WitnessError as error:
        raise RpcError("server_error", str(error)) from None
