"""Limits of simulations that callers cannot change."""

from typing import Final

MAX_BLOCKS: Final = 256  # blocks of a payload, and the distance from the base to the last block
MAX_CALLS_PER_BLOCK: Final = 5_000
MAX_CALLS: Final = 10_000
MAX_MOVED_PRECOMPILES: Final = 64  # per block
MAX_TRACE_BYTES: Final = 16_000_000  # records of one call tree
