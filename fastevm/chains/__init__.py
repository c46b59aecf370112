"""Chains by name: constants, forks and genesis of Ethereum's chains and of the OP-stack chains."""

from fastevm.primitives.late_names import late_names

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

# A development chain is none of them.
__getattr__ = late_names(
    __name__,
    {
        "CHAIN_HELP": "choice",
        "ChosenChain": "choice",
        "GenesisUnavailable": "registry",
        "NamedChain": "registry",
        "UnknownChain": "registry",
        "chains": "registry",
        "chosen_chain": "choice",
        "find": "registry",
        "names": "registry",
        "read_genesis": "choice",
    },
)
