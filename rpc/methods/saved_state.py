"""The state of a development chain as one value: dumped, and loaded again, here or in anvil."""

from typing import Any

from fastevm import node as nodes
from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import DATA
from fastevm.rpc.dispatch.registry import Param
from fastevm.rpc.methods.development import attempt, methods
from fastevm.rpc_types.quantity import decode_bool


@methods(["anvil_dumpState", "hardhat_dumpState"], Param(decode_bool, optional=True))
def dump_state(context: Context, historical: bool | None) -> str:
    """Return accounts, blocks, transactions and receipts: gzip of the JSON that anvil writes.

    ``historical`` (false): also the states of up to 1,000 older blocks that the node keeps.
    """
    return hex_bytes(nodes.packed_state(context.node.dump_state(historical=bool(historical))))


@methods(["anvil_loadState", "hardhat_loadState"], DATA)
def load_state(context: Context, data: Any) -> bool:
    """Go on with a chain that this node or anvil dumped; return true.

    Accounts that the dump does not name stay. Snapshots and waiting transactions are forgotten.
    States of older blocks are known if the dump has them.
    """
    attempt(context.node.load_state, data)
    return True
