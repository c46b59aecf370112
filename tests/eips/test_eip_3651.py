"""EIP-3651: the coinbase is warm from the start."""

from .support import introduced, parameter


def test_came_with_shanghai():
    assert introduced(3651) == "Shanghai"
    assert parameter("warm_coinbase") == {"Frontier": False, "Shanghai": True}
