"""EIP-170: a contract's code has at most 24,576 bytes."""

from .support import introduced, parameter


def test_came_with_spurious_dragon():
    assert introduced(170) == "SpuriousDragon"
    assert parameter("max_code_size") == {"Frontier": 0, "SpuriousDragon": 24_576}
