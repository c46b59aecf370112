"""The state of a development chain as bytes that this node or anvil can load."""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.core.execution.types import Block, Header
from fastevm.core.state.layer import Layer
from fastevm.rpc_types.anvil_state import BlockAndReceipts, SavedChain, chain_json, read_chain

MAX_SAVED_BLOCKS: Final = 100_000  # the newest blocks, with their transactions
MAX_STATE_BYTES: Final = 1 << 30  # of decompressed JSON text
GZIP_MAGIC: Final = b"\x1f\x8b"
GZIP_WINDOW: Final = zlib.MAX_WBITS | 16  # zlib's value for gzip
COMPRESSION: Final = 6


def dumped_state(chain: Chain) -> bytes:
    """Returns the canonical chain and the state of its head, as JSON text."""
    head = chain.head
    first = max(chain.genesis.number, head.number + 1 - MAX_SAVED_BLOCKS)
    blocks: list[BlockAndReceipts] = []
    for number in range(first, head.number + 1):
        block = chain.block_by_number(number)
        assert block is not None
        blocks.append((block, tuple(chain.receipts_of(block.hash))))
    return json.dumps(chain_json(chain.layer_of(head.hash), blocks)).encode()


def read_state(data: bytes) -> SavedChain:
    """Reads a saved chain: JSON text, optionally compressed with gzip. Raises ValueError with the
    reason.
    """
    return read_chain(_parsed(data))


def saved_blocks(saved: SavedChain, layer: Layer) -> tuple[BlockAndReceipts, ...]:
    """Returns the blocks of a saved chain, whose head has the state ``layer``.

    A state saved without its blocks gets one with the saved header fields. Returns no blocks if
    these are missing too.
    """
    if saved.blocks or not saved.environment:
        return tuple(saved.blocks)
    header = Header(**saved.environment, state_root=layer.state_root())
    return ((Block(header), ()),)


def packed_state(data: bytes) -> bytes:
    """Returns JSON text as gzip."""
    import gzip  # only needed here

    return gzip.compress(data, COMPRESSION)


def _parsed(data: bytes) -> Any:
    if data[:2] == GZIP_MAGIC:
        unpacking = zlib.decompressobj(GZIP_WINDOW)
        try:
            data = unpacking.decompress(data, MAX_STATE_BYTES)
        except zlib.error as error:
            raise ValueError(f"not a state: {error}") from None
        if unpacking.unconsumed_tail:
            raise ValueError(f"a state of more than {MAX_STATE_BYTES} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a state: {error}") from None
