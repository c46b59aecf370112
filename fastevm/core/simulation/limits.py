"""Limits of simulations that callers cannot change."""

from typing import Final

# blocks in a payload, and maximum distance from the base block to the last block
MAX_BLOCKS: Final = 256
MAX_CALLS_PER_BLOCK: Final = 5_000
MAX_CALLS: Final = 10_000
MAX_MOVED_PRECOMPILES: Final = 64  # moved precompiles per block
MAX_TRACE_BYTES: Final = 16_000_000  # total size of the records of one call tree
