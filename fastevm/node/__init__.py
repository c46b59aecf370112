"""The node: chain, pool, builder, follower and files together."""

from fastevm.node.node import Mining, Node, dev_node, genesis_node
from fastevm.node.options import (
    START_OVER,
    STOP,
    abandon_chain,
    add_chain_arguments,
    follow_upstream,
    genesis_time,
    node_options,
    open_directory,
)

__all__ = [
    "START_OVER",
    "STOP",
    "Mining",
    "Node",
    "abandon_chain",
    "add_chain_arguments",
    "dev_node",
    "follow_upstream",
    "genesis_node",
    "genesis_time",
    "node_options",
    "open_directory",
]
