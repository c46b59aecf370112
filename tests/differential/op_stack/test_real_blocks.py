"""Tests the transcription on two real OP Sepolia blocks and the headers of one Unichain block.

`python -m tests.differential.op_stack --real-blocks` executes all eight OP Sepolia blocks, which
takes minutes. The Unichain messages are from tests of op-alloy
(rust/op-alloy/crates/rpc-types-engine/src/envelope.rs), in `op-stack/flashblocks-real.json`.
"""

import json
from collections.abc import Callable

import pytest

from tests.differential.peers import Peer

from .real_blocks import FOLDER, differences_in
from .specification.encoding import from_hex, ordered_root, to_hex
from .specification.forks import Fork
from .specification.headers import Header, completed


@pytest.mark.parametrize("number", [26207960, 26207963])
def test_a_block_of_op_sepolia(peer: Callable[[str], Peer], number: int) -> None:
    assert differences_in(number, peer("op-stack")) == []


def test_headers_of_a_block_of_unichain() -> None:
    """Each of the five Flashblocks messages contains the hash of the block so far."""
    messages = json.loads((FOLDER / "flashblocks-real.json").read_text())
    block = messages["unichain-sepolia-35535698"]
    base = block[0]["base"]
    transactions: list[bytes] = []
    for message in block:
        diff = message["diff"]
        transactions += map(from_hex, diff["transactions"])
        header = Header(
            parent_hash=from_hex(base["parent_hash"]),
            coinbase=from_hex(base["fee_recipient"]),
            state_root=from_hex(diff["state_root"]),
            transactions_root=ordered_root(transactions),
            receipts_root=from_hex(diff["receipts_root"]),
            bloom=from_hex(diff["logs_bloom"]),
            number=int(base["block_number"], 16),
            gas_limit=int(base["gas_limit"], 16),
            gas_used=int(diff["gas_used"], 16),
            timestamp=int(base["timestamp"], 16),
            extra_data=from_hex(base["extra_data"]),
            prev_randao=from_hex(base["prev_randao"]),
            base_fee=int(base["base_fee_per_gas"], 16),
        )
        passer_root = from_hex(diff["withdrawals_root"])
        beacon = from_hex(base["parent_beacon_block_root"])
        header = completed(header, Fork.ISTHMUS, passer_root, 0, beacon)
        assert to_hex(header.hash()) == diff["block_hash"]
    assert len(block) == 5
