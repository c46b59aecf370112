"""Tests feed messages: round trip, messages of every format, invalid messages."""

import json
from pathlib import Path
from typing import Any

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.execution.block.requests import requests_hash
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.types import Header
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.node.from_genesis import dev_node
from fastevm.node.node import Mining
from fastevm.rpc_types.feed import FeedError, compress, decode, encode, slice_of

# Two messages of a block with an attributes deposit of an OP-stack chain and a transfer.
MESSAGES = json.loads((Path(__file__).parent / "feed_messages.json").read_text())
HASHES = [
    "678dfc8d4b7659c22c11f201faa850962330b532e6a3264540e689027849a157",
    "ae5c926be8e4f257c940197b3b36e1ad59ebe368dca92b61660d69e748bdda04",
]
TRANSACTIONS_ROOT = "ef096b4fd8eab109466b6a1f68d1b5ff25320a384e6240bd118b68618d47da9e"


def text(number: int = 0, **changes: Any) -> str:
    message = MESSAGES[number]
    for name, value in changes.items():
        message = {**message, name: value}
    return json.dumps(message)


@pytest.mark.parametrize(
    "packed",
    [
        lambda text: text,
        lambda text: text.encode(),
        lambda text: ("\n " + text).encode(),
        lambda text: brotli.compress(text.encode(), quality=5),
        compress,
    ],
)
def test_text_binary_and_brotli_frames_say_the_same(packed: Any) -> None:
    for number in range(2):
        assert decode(packed(text(number))) == decode(text(number))


def test_the_hashes_and_roots_of_a_recorded_block_follow_from_its_messages() -> None:
    first, second = (decode(text(number)) for number in range(2))
    raws = [*first.transactions, *second.transactions]
    assert [keccak256(raw).hex() for raw in raws] == HASHES
    assert ordered_root(raws).hex() == TRANSACTIONS_ROOT
    deposit = b"\x7e" + rlp.encode([1, 0xB48A, bytes(256), [], 48_000_000, 1])
    transfer = b"\x02" + rlp.encode([1, 0x10692, bytes(256), []])
    assert ordered_root([deposit]) == first.receipts_root
    assert ordered_root([deposit, transfer]) == second.receipts_root
    base = first.base
    assert base is not None
    for message, count in ((first, 1), (second, 2)):
        header = Header(
            parent_hash=base.parent_hash,
            coinbase=base.fee_recipient,
            state_root=message.state_root,
            transactions_root=ordered_root(raws[:count]),
            receipts_root=message.receipts_root,
            logs_bloom=message.logs_bloom,
            number=base.block_number,
            gas_limit=base.gas_limit,
            gas_used=message.gas_used,
            timestamp=base.timestamp,
            extra_data=base.extra_data,
            mix_hash=base.prev_randao,
            base_fee_per_gas=base.base_fee_per_gas,
            withdrawals_root=message.withdrawals_root,
            blob_gas_used=message.blob_gas_used,
            excess_blob_gas=0,
            parent_beacon_block_root=base.parent_beacon_block_root,
            requests_hash=requests_hash(()),
        )
        assert header.hash == message.block_hash


def test_what_is_decoded_encodes_to_the_same_message() -> None:
    for number in range(2):
        assert json.loads(encode(decode(text(number)))) == MESSAGES[number]


@given(
    st.integers(0, 2**64 - 1),
    st.integers(1, 20),
    st.lists(st.binary(max_size=40), max_size=3),
    st.one_of(st.none(), st.integers(0, 2**64 - 1)),
    st.one_of(st.none(), st.binary(max_size=40)),
)
def test_any_message_survives_the_wire(number, index, transactions, blob_gas, last) -> None:
    message = replace(
        decode(text(1)),
        block_number=number,
        index=index,
        transactions=tuple(transactions),
        blob_gas_used=blob_gas,
        post_exec_tx=last,
    )
    assert decode(encode(message)) == message
    assert decode(compress(encode(message))) == message


def test_the_predecessor_is_unknown_when_it_says_so_or_nothing() -> None:
    metadata = MESSAGES[1]["metadata"]
    assert decode(text(1)).previous_id == "48000000-0"
    for previous in ("0-0", None, 7):
        changed = {**metadata, "prev_flashblock_id": previous}
        assert decode(text(1, metadata=changed)).previous_id is None
    assert decode(text(1, metadata={"block_number": 5})).previous_id is None


@pytest.mark.parametrize(
    "receipt",
    [
        {"Eip1559": {"status": "0x1", "cumulativeGasUsed": "0x10692", "logs": []}},
        {"type": "0x2", "status": True, "cumulativeGasUsed": "0x10692", "logs": []},
    ],
)
def test_metadata_of_every_era_is_accepted(receipt: dict) -> None:
    metadata = {
        "block_number": 48_000_000,
        "access_list": None,
        "new_account_balances": {"0x" + "11" * 20: "0x1"},
        "receipts": {"0x" + HASHES[1]: receipt},
    }
    assert decode(text(1, metadata=metadata, something_new=[1])).block_number == 48_000_000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metadata": {"block_number": "0x1"}}, "metadata.block_number"),
        ({"metadata": {"block_number": 47_999_999}}, "metadata.block_number: expected 48000000"),
        ({"diff": {**MESSAGES[0]["diff"], "withdrawals": [{}]}}, "withdrawals"),
        ({"diff": {**MESSAGES[0]["diff"], "post_exec_tx": 7}}, "post_exec_tx"),
        ({"index": True}, "index"),
        ({"index": -1}, "index"),
        ({"index": 3}, "base"),
        ({"base": None}, "base"),
        ({"payload_id": "0x12"}, "payload_id"),
        ({"base": {**MESSAGES[0]["base"], "slot_number": 7}}, "slot_number"),
        ({"base": {**MESSAGES[0]["base"], "slot_number": "0x10000000000000000"}}, "slot_number"),
        ({"diff": []}, "diff"),
    ],
)
def test_a_bad_member_is_named(changes: dict, words: str) -> None:
    with pytest.raises(FeedError, match=words):
        decode(text(0, **changes))


@pytest.mark.parametrize("metadata", [None, {}, {"block_number": None, "access_list": "0xc0"}])
def test_the_base_has_the_number_where_the_metadata_does_not(metadata: Any) -> None:
    assert decode(text(0, metadata=metadata)).block_number == 48_000_000
    with pytest.raises(FeedError, match=r"metadata\.block_number"):
        decode(text(1, metadata=metadata))


@pytest.mark.parametrize("frame", ["", "[]", "{", b"\xff\xfe", b"", "null", b"\x1b\x00", "{}"])
def test_what_is_no_message_is_refused(frame: Any) -> None:
    with pytest.raises(FeedError):
        decode(frame)


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = brotli.compress(b"{" + b" " * (64 * 1024 * 1024), quality=1)
    assert len(bomb) < 100_000
    with pytest.raises(FeedError, match="payload too large"):
        decode(bomb)
    with pytest.raises(FeedError, match="payload too large"):
        decode(text(), limit=100)


def test_a_published_slice_says_what_is_new_and_what_holds_so_far() -> None:
    node = dev_node(accounts=1, mining=Mining.MANUAL)
    first = node.producer.begin(0)
    message = slice_of(first, "7-3")
    assert message.base is not None
    assert message.base.parent_hash == node.chain.head.hash
    assert (message.index, message.transactions, message.gas_used) == (0, (), 0)
    assert decode(encode(message)) == message
    assert message.previous_id == "7-3"
    assert message.state_root == bytes(32)


def test_the_base_tells_the_slot_where_the_header_has_one() -> None:
    bases = []
    for fork in ("osaka", "amsterdam"):
        node = dev_node(accounts=1, mining=Mining.MANUAL, hardfork=fork)
        message = slice_of(node.producer.begin(0))
        assert decode(encode(message)) == message
        bases.append(json.loads(encode(message))["base"])
    assert "slot_number" not in bases[0]
    assert bases[1]["slot_number"] == "0x1"
