"""The state of a development chain as bytes, to go on with it later or in anvil."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any, Final, Protocol

from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import with_amendments
from fastevm.core.execution.types import Block, Header
from fastevm.core.state.layer import Layer
from fastevm.rpc_types.anvil_state import BlockAndReceipts, SavedChain, chain_json, read_chain

MAX_SAVED_BLOCKS: Final = 100_000  # the newest ones, with their transactions
MAX_STATE_BYTES: Final = 1 << 30  # of JSON text, unpacked
GZIP_MAGIC: Final = b"\x1f\x8b"
GZIP_WINDOW: Final = zlib.MAX_WBITS | 16  # zlib's way to say gzip
COMPRESSION: Final = 6


class Continuable(Protocol):
    """The node whose chain is saved, and goes on with a saved one."""

    @property
    def chain(self) -> Chain: ...
    @property
    def fork(self) -> Any: ...
    def resume_at(
        self, config: ChainConfig, blocks: Sequence[BlockAndReceipts], layer: Layer
    ) -> None: ...


def dumped_state(node: Continuable) -> bytes:
    """The canonical chain of a node and the state of its head, as JSON text."""
    chain = node.chain
    head = chain.head
    first = max(chain.genesis.number, head.number + 1 - MAX_SAVED_BLOCKS)
    blocks: list[BlockAndReceipts] = []
    for number in range(first, head.number + 1):
        block = chain.block_by_number(number)
        assert block is not None
        blocks.append((block, tuple(chain.receipts_of(block.hash))))
    return json.dumps(chain_json(chain.layer_of(head.hash), blocks)).encode()


def load_state(node: Continuable, data: bytes) -> None:
    """Go on with the chain in ``data``: JSON text, or gzip of it.

    Accounts that it does not name stay as they are, as in anvil; so does the chain id. A forked
    chain takes the accounts alone. ValueError says what is wrong; nothing has changed then.
    """
    if node.chain.journal is not None:
        raise ValueError("a chain in a data directory cannot go on with another one")
    saved = read_chain(_parsed(data))
    chain = node.chain
    layer = with_amendments(chain.layer_of(chain.head.hash), saved.accounts)
    if node.fork is not None or not (saved.blocks or saved.environment):
        chain.replace_state(chain.head.hash, layer)
        return
    node.resume_at(chain.config, saved.blocks or ((_first_block(saved, layer), ()),), layer)


def packed_state(data: bytes) -> bytes:
    """JSON text as gzip."""
    import gzip  # which no other part of a node needs

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


def _first_block(saved: SavedChain, layer: Layer) -> Block:
    """A block for a state that was saved without its blocks."""
    header = Header(**saved.environment, state_root=layer.state_root())
    return Block(header)
