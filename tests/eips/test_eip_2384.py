"""EIP-2384: Muir Glacier difficulty bomb delay.

The difficulty bomb is delayed by 9,000,000 blocks in total instead of 5,000,000.
"""

from .support import before_and_after, bomb

BEFORE, AFTER = before_and_after(2384)
FORK_BLOCK = 9_200_000


def test_the_bomb_is_put_off():
    assert bomb(BEFORE, FORK_BLOCK) == 2**40
    assert bomb(AFTER, FORK_BLOCK) == bomb(BEFORE, FORK_BLOCK - 4_000_000) == 1


def test_it_doubles_every_100000_blocks_as_before():
    assert bomb(BEFORE, FORK_BLOCK + 100_000) == 2**41
    assert bomb(AFTER, FORK_BLOCK + 100_000) == 2
