"""EIP-7934: an encoded block has at most 8 MiB."""

from .support import introduced, parameter


def test_came_with_osaka_with_its_margin_taken_off():
    assert introduced(7934) == "Osaka"
    assert parameter("max_block_rlp_size") == {"Frontier": 0, "Osaka": (10 - 2) * 2**20}
