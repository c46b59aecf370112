"""EIP-3554: the bomb is put off by 9,700,000 blocks."""

from .support import introduced, parameter


def test_came_with_london():
    assert introduced(3554) == "London"
    assert parameter("bomb_delay_blocks")["London"] == 9_700_000
