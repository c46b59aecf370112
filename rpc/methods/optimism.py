"""The optimism namespace, with methods of op-node, the rollup node of the OP stack.

Names and members follow op-node's API. Safe and finalized blocks are those of this node.
"""

from typing import Any, Final

import fastevm
from fastevm.core.execution.types import Block
from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import NUMBER_OR_TAG
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.errors import RpcError
from fastevm.rpc.view import View
from fastevm.rpc_types.l1_fees import block_attributes
from fastevm.rpc_types.transactions import Json

OUTPUT_VERSION: Final = bytes(32)
MILLISECONDS: Final = 1000
L2_TO_L1_MESSAGE_PASSER: Final = bytes.fromhex("4200000000000000000000000000000000000016")


@method("optimism_version")
def version(context: Context) -> str:
    """Return the name and version of the node."""
    return context.client_version


@method("optimism_outputAtBlock", NUMBER_OR_TAG, run_on=RunOn.WORKER)
def output_at_block(context: Context, block: BlockId) -> Json:
    """Return the output root of a block: a hash of version, state root, withdrawals, block hash."""
    view = _on_op_stack(context, context.view(block))
    header = view.block.header
    storage_root = view.layer.proof(L2_TO_L1_MESSAGE_PASSER, []).storage_root
    parts = (OUTPUT_VERSION, header.state_root, storage_root, view.block.hash)
    return {
        "version": hex_bytes(OUTPUT_VERSION),
        "outputRoot": hex_bytes(fastevm.keccak256(b"".join(parts))),
        "blockRef": _block_reference(view.block),
        "withdrawalStorageRoot": hex_bytes(storage_root),
        "stateRoot": hex_bytes(header.state_root),
        "syncStatus": sync_status(context),
    }


@method("optimism_syncStatus")
def sync_status(context: Context) -> Json:
    """Return the unsafe, safe and finalized blocks and the L1 blocks that they refer to."""
    _on_op_stack(context, context.latest_view())
    chain = context.node.chain
    head, safe, finalized = (
        context.view(BlockId(tag=tag)).block for tag in ("latest", "safe", "finalized")
    )
    answer: Json = {
        name: _l1_reference(block)
        for names, block in (
            (("current_l1", "head_l1"), head),
            (("safe_l1",), safe),
            (("current_l1_finalized", "finalized_l1"), finalized),
        )
        for name in names
    }
    for name, block in (
        ("unsafe_l2", chain.head),
        ("safe_l2", safe),
        ("finalized_l2", finalized),
        ("pending_safe_l2", safe),
        ("cross_unsafe_l2", head),
        ("local_safe_l2", safe),
    ):
        answer[name] = _block_reference(block)
    return answer


@method("optimism_rollupConfig")
def rollup_config(context: Context) -> Json:
    """Return the rollup configuration, without members that require a connection to L1."""
    _on_op_stack(context, context.latest_view())
    chain, config = context.node.chain, context.node.config
    genesis = chain.genesis
    answer: Json = {
        "genesis": {
            "l1": _origin(genesis),
            "l2": {"hash": hex_bytes(genesis.hash), "number": genesis.number},
            "l2_time": genesis.header.timestamp,
            "system_config": {"gasLimit": genesis.header.gas_limit},
        },
        "block_time": max(config.block_time_ms // MILLISECONDS, 1),
        "l2_chain_id": config.chain_id,
    }
    for activation in config.activations.by_time:
        answer[f"{activation.fork.name.lower()}_time"] = activation.timestamp
    return answer


def _on_op_stack(context: Context, view: View) -> View:
    if not view.schedule.parameters["has_deposits"]:
        raise RpcError("server_error", "this chain is not of the OP stack")
    return view


def _block_reference(block: Block) -> Json:
    known = block_attributes(block)
    return {
        "hash": hex_bytes(block.hash),
        "number": block.number,
        "parentHash": hex_bytes(block.header.parent_hash),
        "timestamp": block.header.timestamp,
        "l1origin": _origin(block),
        "sequenceNumber": 0 if known is None else known.sequence_number,
    }


def _origin(block: Block) -> Json:
    known = block_attributes(block)
    if known is None:
        return {"hash": hex_bytes(bytes(32)), "number": 0}
    return {"hash": hex_bytes(known.hash), "number": known.number}


def _l1_reference(block: Block) -> dict[str, Any]:
    known = block_attributes(block)
    return {
        **_origin(block),
        "parentHash": hex_bytes(bytes(32)),
        "timestamp": 0 if known is None else known.timestamp,
    }
