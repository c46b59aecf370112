"""Saves the state of a development chain as bytes that fastevm or anvil can load."""

from __future__ import annotations

import json
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.chain.genesis import with_amendments
from fastevm.core.execution.types import Block, Header
from fastevm.core.primitives.decompression import PIECE, decompressed
from fastevm.core.state.layer import Layer
from fastevm.rpc_client.large_json import decode
from fastevm.rpc_types.anvil_state import BlockAndReceipts, SavedChain, chain_json, read_chain

MAX_SAVED_BLOCKS: Final = 100_000  # newest blocks that are saved, with their transactions
MAX_SAVED_STATES: Final = 1_000  # older states that are saved
MAX_STATE_BYTES: Final = 1 << 30  # most bytes of decompressed JSON text
# Bytes of text for each JSON value, at least, if a limit is given: an empty list takes two bytes of
# text and 64 bytes of memory. Dumps have 40 and more.
VALUE_BYTES: Final = 16
GZIP_MAGIC: Final = b"\x1f\x8b"
COMPRESSION: Final = 6


def dumped_state(chain: Chain, *, historical: bool = False) -> bytes:
    """Returns the canonical chain and the state of its head as JSON text.

    ``historical``: include the older states that the chain keeps, each of them completely.
    """
    head = chain.head
    first = max(chain.genesis.number, head.number + 1 - MAX_SAVED_BLOCKS)
    blocks: list[BlockAndReceipts] = []
    for number in range(first, head.number + 1):
        block = chain.block_by_number(number)
        assert block is not None
        blocks.append((block, tuple(chain.receipts_of(block.hash))))
    states = None
    if historical:
        older = [block for block, _ in blocks[-1 - MAX_SAVED_STATES : -1]]
        states = [(item, chain.layer_of(item.hash)) for item in older if chain.has_state(item.hash)]
    return json.dumps(chain_json(chain.layer_of(head.hash), blocks, states)).encode()


def read_state(data: bytes, limit: int | None = None) -> SavedChain:
    """Reads a saved chain: JSON text, optionally gzipped. Raises ValueError with the reason.

    ``limit``: maximum size of the decompressed text in bytes; the default is `MAX_STATE_BYTES`.
    """
    return read_chain(_parsed(data, MAX_STATE_BYTES if limit is None else limit))


def saved_blocks(saved: SavedChain, layer: Layer) -> tuple[BlockAndReceipts, ...]:
    """Returns the blocks of a saved chain, whose head has the state ``layer``.

    If the dump has no blocks, returns one block made from the saved header fields. Returns no
    blocks if these fields are missing too.
    """
    if saved.blocks or not saved.environment:
        return tuple(saved.blocks)
    header = Header(**saved.environment, state_root=layer.state_root())
    return ((Block(header), ()),)


def saved_states(saved: SavedChain, below: Layer) -> dict[bytes, Layer]:
    """Returns the states after older blocks by block hash. Consecutive states share memory.

    Accounts that are not in the dump have the values of ``below``. Raises ValueError for an invalid
    account.
    """
    states: dict[bytes, Layer] = {}
    before: dict[str, Any] = {}
    layer = below
    for block, _ in saved.blocks:
        accounts = saved.states.get(block.hash)
        if accounts is not None:
            layer = with_amendments(layer, _changes(before, accounts))
            states[block.hash], before = layer, accounts
    return states


def _changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Returns the changes from accounts ``before`` to ``after``; null removes an account."""
    changes: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for name, account in after.items():
        known = before.get(name)
        if known != account:
            zeroed = dict.fromkeys(() if known is None else known["storage"], "0x0")
            changes[name] = {**account, "storage": zeroed | account["storage"]}
    return changes


def packed_state(data: bytes) -> bytes:
    """Returns gzipped JSON text."""
    import gzip  # only needed here

    return gzip.compress(data, COMPRESSION)


def _values_in(data: bytes) -> int:
    """Returns an upper bound of the number of JSON values in a text.

    Other threads can run between the pieces of the text.
    """
    pieces = (data[at : at + PIECE] for at in range(0, len(data), PIECE))
    return sum(sum(map(piece.count, (b",", b"[", b"{"))) for piece in pieces)


def _parsed(data: bytes, limit: int) -> Any:
    try:
        if data[:2] == GZIP_MAGIC:
            data = decompressed(data, limit)
        if limit < MAX_STATE_BYTES and _values_in(data) > limit // VALUE_BYTES:
            raise ValueError(f"more than {limit // VALUE_BYTES} JSON values")
        return decode(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a state: {error}") from None
