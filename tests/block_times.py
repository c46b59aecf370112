"""Block times of the nodes that tests start."""

from typing import Final

# 11 days. Blocks end at multiples of the block time on the wall clock. So even with a block time of
# a minute, a block may end between two requests of a test.
UNHURRIED_MS: Final = 10**9
