"""EIP-155: signatures may bind the chain id."""

from .support import introduced, parameter


def test_came_with_spurious_dragon():
    assert introduced(155) == "SpuriousDragon"
    expected = {"Frontier": False, "SpuriousDragon": True}
    assert parameter("has_chain_id_in_signature") == expected
