"""EIP-1344: CHAINID."""

from .support import introduced, price


def test_came_with_istanbul():
    assert introduced(1344) == "Istanbul"
    assert price("CHAINID") == {"Frontier": None, "Istanbul": 2}
