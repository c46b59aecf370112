"""The methods, one file per family; importing this package fills the table."""

from rpc.methods import (
    access_list,
    accounts,
    blocks,
    calls,
    chain,
    config,
    debug,
    fees,
    filters,
    logs,
    pool,
    simulate,
    state,
    subscriptions,
    testing,
    trace,
    transactions,
)
from rpc.registry import METHODS

__all__ = [
    "METHODS",
    "access_list",
    "accounts",
    "blocks",
    "calls",
    "chain",
    "config",
    "debug",
    "fees",
    "filters",
    "logs",
    "pool",
    "simulate",
    "state",
    "subscriptions",
    "testing",
    "trace",
    "transactions",
]
