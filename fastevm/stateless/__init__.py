"""Blocks verified without a state: from the trie nodes, codes and headers of a witness."""

from fastevm.primitives.late_names import late_names

__all__ = ["Verified", "Witness", "WitnessError", "verify", "witness_of"]

# A node needs none of them before somebody asks for a witness.
__getattr__ = late_names(
    __name__,
    {
        "Verified": "verification",
        "Witness": "witness",
        "WitnessError": "witness",
        "verify": "verification",
        "witness_of": "recording",
    },
)
