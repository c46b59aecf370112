"""What a developer reads while the node runs: transactions, requests, call trees."""

from fastevm.primitives import late_names

__all__ = ["Teller", "calls_of", "may_call", "teller_of"]

# Nothing is told before the first block.
__getattr__ = late_names(
    __name__,
    {
        "Teller": "told_blocks",
        "calls_of": "told_calls",
        "may_call": "told_calls",
        "teller_of": "told_blocks",
    },
)
