"""EIP-196: addition and multiplication on alt_bn128."""

from .support import introduced, precompile


def test_came_with_byzantium_at_addresses_6_and_7():
    assert introduced(196) == "Byzantium"
    assert precompile("BN254_ADD") == {"Frontier": None, "Byzantium": 0x06}
    assert precompile("BN254_MUL") == {"Frontier": None, "Byzantium": 0x07}
