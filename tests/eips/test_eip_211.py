"""EIP-211: RETURNDATASIZE and RETURNDATACOPY."""

from .support import introduced, price


def test_came_with_byzantium_at_the_prices_of_the_call_data_opcodes():
    assert introduced(211) == "Byzantium"
    assert price("RETURNDATASIZE") == {"Frontier": None, "Byzantium": 2}
    assert price("RETURNDATACOPY") == {"Frontier": None, "Byzantium": 3}
    assert price("CALLDATASIZE") == {"Frontier": 2}
    assert price("CALLDATACOPY") == {"Frontier": 3}
