"""EIP-1234: the bomb is put off by 5,000,000 blocks and the reward falls to 2 ether."""

from .support import introduced, parameter


def test_came_with_constantinople():
    assert introduced(1234) == "Constantinople"
    assert parameter("bomb_delay_blocks")["Constantinople"] == 5_000_000
    assert parameter("block_reward_gwei")["Constantinople"] == 2 * 10**9
