"""EIP-7939: CLZ."""

from fastevm.spec.opcodes import BY_MNEMONIC

from .support import introduced, price


def test_came_with_osaka():
    assert introduced(7939) == "Osaka"
    assert price("CLZ") == {"Frontier": None, "Osaka": 5}
    assert BY_MNEMONIC["CLZ"].value == 0x1E
