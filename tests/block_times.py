"""Block times of nodes that tests start."""

from typing import Final

# 11 days. Blocks end at multiples of their time by the wall clock, so a block of a minute may
# end between two requests of a test.
UNHURRIED_MS: Final = 10**9
