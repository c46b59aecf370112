"""EIP-4895: blocks credit the withdrawals of validators."""

from .support import introduced, parameter


def test_came_with_shanghai():
    assert introduced(4895) == "Shanghai"
    assert parameter("has_withdrawals") == {"Frontier": False, "Shanghai": True}
