"""EIP-7516: BLOBBASEFEE."""

from .support import introduced, price


def test_came_with_cancun():
    assert introduced(7516) == "Cancun"
    assert price("BLOBBASEFEE") == {"Frontier": None, "Cancun": 2}
