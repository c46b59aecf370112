"""The contracts that every OP Stack chain has since its genesis (OP Stack, predeploys)."""

from fastevm.core.state.layer import Layer

_PREFIX = bytes([0x42]) + bytes(18)

SEQUENCER_FEE_VAULT = _PREFIX + b"\x11"
L1_BLOCK = _PREFIX + b"\x15"
FEE_VAULTS = tuple(_PREFIX + bytes([suffix]) for suffix in (0x11, 0x19, 0x1A, 0x1B))
"""Recipients of tips, base fees, L1 data fees and operator fees."""
L2_TO_L1_MESSAGE_PASSER = _PREFIX + b"\x16"
"""The contract that stores withdrawal messages to L1."""


def message_passer_root(layer: Layer) -> bytes:
    """Returns the storage root (32 bytes) of L2ToL1MessagePasser.

    From Isthmus on, the withdrawals root of a header is this storage root.
    """
    return layer.proof(L2_TO_L1_MESSAGE_PASSER, []).storage_root
