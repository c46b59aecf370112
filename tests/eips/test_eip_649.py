"""EIP-649: the bomb is put off by 3,000,000 blocks and the reward falls to 3 ether."""

from fastevm.spec.schedule import schedule_for

from .support import introduced


def test_came_with_byzantium():
    assert introduced(649) == "Byzantium"
    before, after = schedule_for("eip158").parameters, schedule_for("byzantium").parameters
    assert (before["bomb_delay_blocks"], after["bomb_delay_blocks"]) == (0, 3_000_000)
    assert (before["block_reward_gwei"], after["block_reward_gwei"]) == (5 * 10**9, 3 * 10**9)
