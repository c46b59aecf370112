"""EIP-1234: Constantinople difficulty bomb delay and block reward adjustment.

The difficulty bomb is delayed by 5,000,000 blocks in total, and a miner gets 2 ether instead of 3.
"""

from .support import ETHER, before_and_after, bomb, chain_across, rewards

BEFORE, AFTER = before_and_after(1234)
FORK_BLOCK = 7_280_000


def test_the_bomb_is_put_off():
    assert bomb(BEFORE, FORK_BLOCK) == 2**40
    assert bomb(AFTER, FORK_BLOCK) == bomb(BEFORE, FORK_BLOCK - 2_000_000) == 2**20


def test_the_reward_falls():
    assert rewards(chain_across(1234), 3) == [3 * ETHER, 2 * ETHER, 2 * ETHER]
