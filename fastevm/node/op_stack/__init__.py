"""Development chains of the OP Stack: their genesis, and predeploys written for this package."""

from fastevm.node.op_stack.op_genesis import (
    BASE_FORK_NAMES,
    DEFAULT_BASE_FORK,
    DEFAULT_OP_FORK,
    OP_FORK_NAMES,
    base_gas_limit,
    block_millis,
    op_stack_genesis,
)

__all__ = [
    "BASE_FORK_NAMES",
    "DEFAULT_BASE_FORK",
    "DEFAULT_OP_FORK",
    "OP_FORK_NAMES",
    "base_gas_limit",
    "block_millis",
    "op_stack_genesis",
]
