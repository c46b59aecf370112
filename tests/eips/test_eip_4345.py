"""EIP-4345: Difficulty bomb delay to June 2022.

The difficulty bomb is delayed by 10,700,000 blocks in total instead of 9,700,000.
"""

from .support import before_and_after, bomb

BEFORE, AFTER = before_and_after(4345)
FORK_BLOCK = 13_773_000


def test_the_bomb_is_put_off():
    assert bomb(BEFORE, FORK_BLOCK) == 2**38
    assert bomb(AFTER, FORK_BLOCK) == bomb(BEFORE, FORK_BLOCK - 1_000_000) == 2**28
