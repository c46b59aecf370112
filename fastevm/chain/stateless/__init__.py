"""Blocks verified without a state: from the trie nodes, codes and headers of a witness."""

from fastevm.chain.stateless.recording import witness_of
from fastevm.chain.stateless.verification import Verified, verify
from fastevm.chain.stateless.witness import Witness, WitnessError

__all__ = [
    "Verified",
    "Witness",
    "WitnessError",
    "verify",
    "witness_of",
]
