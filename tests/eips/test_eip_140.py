"""EIP-140: REVERT."""

from fastevm.spec.opcodes import BY_MNEMONIC

from .support import introduced, price


def test_came_with_byzantium_and_costs_only_memory():
    assert introduced(140) == "Byzantium"
    assert price("REVERT") == {"Frontier": None, "Byzantium": 0}
    assert BY_MNEMONIC["REVERT"].value == 0xFD
