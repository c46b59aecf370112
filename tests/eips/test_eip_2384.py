"""EIP-2384: the bomb is put off by 9,000,000 blocks."""

from .support import introduced, parameter


def test_came_with_muir_glacier():
    assert introduced(2384) == "MuirGlacier"
    assert parameter("bomb_delay_blocks")["MuirGlacier"] == 9_000_000
