"""EIP-649: Metropolis difficulty bomb delay and block reward reduction.

The difficulty bomb is delayed by 3,000,000 blocks, and a miner gets 3 ether instead of 5.
"""

from .support import ETHER, before_and_after, bomb, chain_across, rewards

BEFORE, AFTER = before_and_after(649)
FORK_BLOCK = 4_370_000


def test_the_bomb_is_put_off():
    assert bomb(BEFORE, FORK_BLOCK) == 2**41
    assert bomb(AFTER, FORK_BLOCK) == bomb(BEFORE, FORK_BLOCK - 3_000_000) == 2**11


def test_the_reward_falls():
    assert rewards(chain_across(649), 3) == [5 * ETHER, 3 * ETHER, 3 * ETHER]
