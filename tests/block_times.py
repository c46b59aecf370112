"""Defines the block times of nodes that tests start."""

from typing import Final

# 11 days. Block times are aligned with the wall clock, so with a block time of a minute a block may
# end between two requests of a test.
UNHURRIED_MS: Final = 10**9
