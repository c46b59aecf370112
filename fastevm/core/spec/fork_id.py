"""The fork identifier. Nodes exchange it to compare their genesis and forks (EIP-2124)."""

from typing import NamedTuple
from zlib import crc32

from .activation import Activations


class ForkId(NamedTuple):
    """The fork identifier that a node announces to its peers.

    ``checksum``: 4 bytes over the genesis hash and the past forks. ``next``: block number or
    timestamp of the next fork, 0 if none is known.
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
    """Returns the fork identifier (EIP-2124, EIP-6122) at a head with this number and timestamp.

    Ignores forks whose timestamp is not after that of the genesis block.
    """
    times = [time for time in activations.fork_times if time > genesis_timestamp]
    checksum = crc32(genesis_hash)
    for points, head in ((activations.fork_blocks, number), (times, timestamp)):
        for point in points:
            if point > head:
                return ForkId(checksum.to_bytes(4, "big"), point)
            checksum = crc32(point.to_bytes(8, "big"), checksum)
    return ForkId(checksum.to_bytes(4, "big"), 0)
