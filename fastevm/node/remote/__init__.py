"""Nodes whose chain continues from a block of another node's chain."""

from fastevm.node.remote.remote_state import ForkedState, LocalState, PartialState
from fastevm.node.remote.start import forked_chain

__all__ = [
    "ForkedState",
    "LocalState",
    "PartialState",
    "forked_chain",
]
