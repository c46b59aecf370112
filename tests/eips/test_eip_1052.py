"""EIP-1052: EXTCODEHASH."""

from .support import introduced, price


def test_came_with_constantinople_for_400():
    assert introduced(1052) == "Constantinople"
    expected = {"Frontier": None, "Constantinople": 400, "Istanbul": 700, "Berlin": 100}
    assert price("EXTCODEHASH") == expected
