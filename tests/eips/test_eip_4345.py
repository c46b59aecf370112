"""EIP-4345: the bomb is put off by 10,700,000 blocks."""

from .support import introduced, parameter


def test_came_with_arrow_glacier():
    assert introduced(4345) == "ArrowGlacier"
    assert parameter("bomb_delay_blocks")["ArrowGlacier"] == 10_700_000
