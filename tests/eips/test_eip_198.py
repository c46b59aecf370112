"""EIP-198: modular exponentiation of big integers."""

from .support import introduced, parameter, precompile


def test_came_with_byzantium_at_address_5():
    assert introduced(198) == "Byzantium"
    assert precompile("MODEXP") == {"Frontier": None, "Byzantium": 0x05}
    assert parameter("modexp_version")["Byzantium"] == 1
