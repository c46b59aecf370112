"""EIP-7685: requests to the consensus layer."""

from .support import introduced, parameter


def test_came_with_prague():
    assert introduced(7685) == "Prague"
    assert parameter("has_requests") == {"Frontier": False, "Prague": True}
