"""EIP-7823: operands of MODEXP have at most 1,024 bytes."""

from .support import introduced, parameter


def test_came_with_osaka():
    assert introduced(7823) == "Osaka"
    assert parameter("modexp_max_length") == {"Frontier": 0, "Osaka": 1_024}
