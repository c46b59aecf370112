"""Chains by name: constants, forks and genesis of Ethereum's chains and of the OP Stack chains."""

from fastevm.chain.named.choice import CHAIN_HELP, ChosenChain, chosen_chain, read_genesis
from fastevm.chain.named.registry import (
    GenesisUnavailable,
    NamedChain,
    UnknownChain,
    chains,
    find,
    names,
)

__all__ = [
    "CHAIN_HELP",
    "ChosenChain",
    "GenesisUnavailable",
    "NamedChain",
    "UnknownChain",
    "chains",
    "chosen_chain",
    "find",
    "names",
    "read_genesis",
]
