"""The limits of a simulation that its caller cannot choose."""

from typing import Final

MAX_BLOCKS: Final = 256  # entries, and the distance from the base to the last block
MAX_CALLS_PER_BLOCK: Final = 5_000
MAX_CALLS: Final = 10_000
MAX_MOVED_PRECOMPILES: Final = 64  # of one block
MAX_TRACE_BYTES: Final = 16_000_000  # of the records of one call tree
