"""EIP-3198: BASEFEE."""

from .support import introduced, price


def test_came_with_london():
    assert introduced(3198) == "London"
    assert price("BASEFEE") == {"Frontier": None, "London": 2}
