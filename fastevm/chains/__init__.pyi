"""The names of the package."""

from fastevm.chains.choice import CHAIN_HELP, ChosenChain, chosen_chain, read_genesis
from fastevm.chains.registry import (
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
