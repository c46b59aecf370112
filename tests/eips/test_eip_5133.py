"""EIP-5133: Difficulty bomb delay to mid-September 2022.

The difficulty bomb is delayed by 11,400,000 blocks in total instead of 10,700,000.
"""

from .support import before_and_after, bomb

BEFORE, AFTER = before_and_after(5133)
FORK_BLOCK = 15_050_000


def test_the_bomb_is_put_off():
    assert bomb(BEFORE, FORK_BLOCK) == 2**41
    assert bomb(AFTER, FORK_BLOCK) == bomb(BEFORE, FORK_BLOCK - 700_000) == 2**34
