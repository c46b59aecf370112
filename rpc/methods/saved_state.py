"""Dumps and loads the state of a development chain, in anvil's format."""

from typing import Any

from fastevm import node as nodes
from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import DATA
from fastevm.rpc.dispatch.registry import Param
from fastevm.rpc.limits import LOADED_STATE_SIZE
from fastevm.rpc.methods.development import attempt, methods
from fastevm.rpc_types.quantity import decode_bool


@methods(["anvil_dumpState", "hardhat_dumpState"], Param(decode_bool, optional=True))
def dump_state(context: Context, historical: bool | None) -> str:
    """Return accounts, blocks, transactions and receipts in anvil's format: gzipped JSON.

    With ``historical`` (default false), also dumps up to 1,000 older states that the node has.
    """
    return hex_bytes(nodes.packed_state(context.node.dump_state(historical=bool(historical))))


@methods(["anvil_loadState", "hardhat_loadState"], DATA)
def load_state(context: Context, data: Any) -> bool:
    """Continue with a chain that this node or anvil dumped. Returns true.

    Accounts that are not in the dump stay. Snapshots and pooled transactions are dropped. States of
    older blocks are available if the dump has them.
    """
    attempt(context.node.load_state, data, LOADED_STATE_SIZE)
    return True
