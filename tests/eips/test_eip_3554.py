"""EIP-3554: Difficulty bomb delay to December 2021.

The difficulty bomb is delayed by 9,700,000 blocks in total instead of 9,000,000.
"""

from .support import before_and_after, bomb

BEFORE, AFTER = before_and_after(3554)
FORK_BLOCK = 12_965_000


def test_the_bomb_is_put_off():
    assert bomb(BEFORE, FORK_BLOCK) == 2**37
    assert bomb(AFTER, FORK_BLOCK) == bomb(BEFORE, FORK_BLOCK - 700_000) == 2**30
