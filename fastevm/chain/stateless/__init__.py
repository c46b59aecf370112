"""Stateless verification: checks a block using only its witness (trie nodes, codes, headers)."""

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
