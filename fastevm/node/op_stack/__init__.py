"""Development chains of the OP stack: their genesis, and the predeploys that were written here."""

from fastevm.primitives.late_names import late_names

__all__ = [
    "DEFAULT_OP_FORK",
    "OP_FORK_NAMES",
    "op_stack_genesis",
]

# A chain of Ethereum asks for none of them.
__getattr__ = late_names(
    __name__,
    {
        "DEFAULT_OP_FORK": "op_genesis",
        "OP_FORK_NAMES": "op_genesis",
        "op_stack_genesis": "op_genesis",
    },
)
