"""EIP-7594: a transaction carries at most six blobs."""

from .support import introduced, parameter


def test_came_with_osaka_and_stays_when_blocks_carry_more():
    assert introduced(7594) == "Osaka"
    assert parameter("blob_max_per_tx") == {"Frontier": 0, "Osaka": 6}
