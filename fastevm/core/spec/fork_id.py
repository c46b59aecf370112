"""The fork identifier, by which nodes compare their genesis and forks (EIP-2124)."""

from typing import NamedTuple
from zlib import crc32

from .activation import Activations


class ForkId(NamedTuple):
    """The identifier that a node announces.

    ``checksum``: 4 bytes over the genesis hash and the forks passed; ``next``: block number or
    timestamp of the fork to come, 0 when none is known.
    """

    checksum: bytes
    next: int


def fork_id(
    activations: Activations,
    genesis_hash: bytes,
    *,
    number: int,
    timestamp: int,
    genesis_timestamp: int = 0,
) -> ForkId:
    """The fork identifier (EIP-2124, EIP-6122) at a head with this number and timestamp.

    Forks with a timestamp up to the genesis block's are not counted.
    """
    times = [time for time in activations.fork_times if time > genesis_timestamp]
    checksum = crc32(genesis_hash)
    for points, head in ((activations.fork_blocks, number), (times, timestamp)):
        for point in points:
            if point > head:
                return ForkId(checksum.to_bytes(4, "big"), point)
            checksum = crc32(point.to_bytes(8, "big"), checksum)
    return ForkId(checksum.to_bytes(4, "big"), 0)
