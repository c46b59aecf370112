"""EIP-5133: the bomb is put off by 11,400,000 blocks."""

from .support import introduced, parameter


def test_came_with_gray_glacier():
    assert introduced(5133) == "GrayGlacier"
    assert parameter("bomb_delay_blocks")["GrayGlacier"] == 11_400_000
