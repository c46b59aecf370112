"""EIP-197: the pairing check on alt_bn128."""

from .support import introduced, precompile


def test_came_with_byzantium_at_address_8():
    assert introduced(197) == "Byzantium"
    assert precompile("BN254_PAIRING") == {"Frontier": None, "Byzantium": 0x08}
