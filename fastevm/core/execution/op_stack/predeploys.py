"""Contracts that every chain of the OP stack has from its genesis on (OP Stack, predeploys)."""

from fastevm.core.state.layer import Layer

_PREFIX = bytes([0x42]) + bytes(18)

SEQUENCER_FEE_VAULT = _PREFIX + b"\x11"
L1_BLOCK = _PREFIX + b"\x15"
FEE_VAULTS = tuple(_PREFIX + bytes([place]) for place in (0x11, 0x19, 0x1A, 0x1B))
"""Where tips, base fees, L1 data fees and operator fees go."""
L2_TO_L1_MESSAGE_PASSER = _PREFIX + b"\x16"
"""Keeps the messages that leave the chain."""


def message_passer_root(layer: Layer) -> bytes:
    """The storage root, 32 bytes, of the contract that keeps the messages that leave the chain.

    From Isthmus on it is the withdrawals root of a header.
    """
    return layer.proof(L2_TO_L1_MESSAGE_PASSER, []).storage_root
