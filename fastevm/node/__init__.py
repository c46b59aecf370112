"""The node, which combines chain, pool, block building, sync and storage."""

from fastevm.chain.retention import ChainLimits
from fastevm.chain.storage.named_snapshots import check_name
from fastevm.core.execution.transaction.unsigned_sender import impersonated
from fastevm.core.state.remote import may_wait, never_wait
from fastevm.node.dev_accounts import DERIVATION_PATH, ETHER, TEST_MNEMONIC, DevAccount
from fastevm.node.dev_chain import STATE_GAS_LIMIT, usual_gas_limit
from fastevm.node.development import DevelopmentControls
from fastevm.node.from_fork import forked_node
from fastevm.node.from_genesis import dev_node, genesis_node
from fastevm.node.mnemonic import check_mnemonic, random_mnemonic, seeded_mnemonic
from fastevm.node.node import Mining, Node, is_forecast
from fastevm.node.options import (
    START_OVER,
    STOP,
    abandon_chain,
    add_chain_arguments,
    add_directory_arguments,
    configure_feed,
    default_states,
    follow_upstream,
    genesis_time,
    node_options,
    op_fork_of,
    open_directory,
)
from fastevm.node.pool.kzg import find_trusted_setup
from fastevm.node.pool.pool import Content as PoolContent
from fastevm.node.pool.pool import PoolLimits
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.node.remote.options import add_fork_arguments, fork_options
from fastevm.node.saved_state import packed_state
from fastevm.node.submission import refuse_gap
from fastevm.node.warm_up import warm_up

__all__ = [
    "DERIVATION_PATH",
    "ETHER",
    "START_OVER",
    "STATE_GAS_LIMIT",
    "STOP",
    "TEST_MNEMONIC",
    "ChainLimits",
    "DevAccount",
    "DevelopmentControls",
    "ForkHistory",
    "Mining",
    "Node",
    "PoolContent",
    "PoolLimits",
    "abandon_chain",
    "add_chain_arguments",
    "add_directory_arguments",
    "add_fork_arguments",
    "check_mnemonic",
    "check_name",
    "configure_feed",
    "default_states",
    "dev_node",
    "find_trusted_setup",
    "follow_upstream",
    "fork_options",
    "forked_node",
    "genesis_node",
    "genesis_time",
    "impersonated",
    "is_forecast",
    "may_wait",
    "never_wait",
    "node_options",
    "op_fork_of",
    "open_directory",
    "packed_state",
    "random_mnemonic",
    "refuse_gap",
    "seeded_mnemonic",
    "usual_gas_limit",
    "warm_up",
]
