"""Development chains of the OP stack: their genesis, and predeploys written for this package."""

from fastevm.node.op_stack.op_genesis import DEFAULT_OP_FORK, OP_FORK_NAMES, op_stack_genesis

__all__ = [
    "DEFAULT_OP_FORK",
    "OP_FORK_NAMES",
    "op_stack_genesis",
]
