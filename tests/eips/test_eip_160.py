"""EIP-160: EXP becomes dearer."""

from .support import introduced, parameter, price


def test_each_byte_of_the_exponent_costs_50_since_spurious_dragon():
    assert introduced(160) == "SpuriousDragon"
    assert parameter("exp_byte_cost") == {"Frontier": 10, "SpuriousDragon": 50}
    assert price("EXP") == {"Frontier": 10}
