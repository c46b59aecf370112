"""EIP-7918: the price of execution bounds the blob fee from below."""

from .support import introduced, parameter


def test_came_with_osaka():
    assert introduced(7918) == "Osaka"
    assert parameter("blob_reserve_cost") == {"Frontier": 0, "Osaka": 2**13}
