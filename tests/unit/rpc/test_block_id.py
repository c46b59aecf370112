"""Tests every form of the block parameter."""

from typing import Any

import pytest

from fastevm.rpc.block_id import BlockId, decode_block, decode_number_or_tag
from fastevm.rpc_types.quantity import DecodeError

HASH = "0x" + "ab" * 32


@pytest.mark.parametrize("tag", ["latest", "pending", "earliest", "safe", "finalized"])
def test_a_tag_is_a_tag_everywhere(tag: str) -> None:
    assert decode_block(tag) == decode_number_or_tag(tag) == BlockId(tag=tag)


def test_only_pending_is_pending() -> None:
    assert decode_block("pending").is_pending
    assert not decode_block("latest").is_pending


@pytest.mark.parametrize(
    ("value", "selector"),
    [
        ("0x0", BlockId(number=0)),
        ("0x36", BlockId(number=54)),
        (HASH, BlockId(hash=b"\xab" * 32)),
        ({"blockNumber": "0x1"}, BlockId(number=1)),
        ({"blockNumber": "latest"}, BlockId(tag="latest")),
        ({"blockHash": HASH}, BlockId(hash=b"\xab" * 32)),
        (
            {"blockHash": HASH, "requireCanonical": True},
            BlockId(hash=b"\xab" * 32, require_canonical=True),
        ),
    ],
)
def test_numbers_hashes_and_objects_are_read(value: Any, selector: BlockId) -> None:
    assert decode_block(value) == selector


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (
            {"blockNumber": "0x1", "blockHash": HASH},
            "cannot specify both BlockHash and BlockNumber, choose one or the other",
        ),
        ("2", "hex string without 0x prefix"),
        ("0x02", "hex number with leading zero digits"),
        ("", "empty hex string"),
        ("0x8000000000000000", "blocknumber too high"),
        ("newest", "hex string without 0x prefix"),
        (5, "json: cannot unmarshal number into Go value of type string"),
        ([], "json: cannot unmarshal array into Go value of type string"),
        ({}, "neither block number nor block hash specified"),
    ],
)
def test_other_values_have_their_reason(value: Any, why: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_block(value)
    assert str(caught.value) == why


@pytest.mark.parametrize("value", [HASH, {"blockHash": HASH}, 5, None, "0x8000000000000000"])
def test_where_no_hash_is_allowed_it_is_refused(value: Any) -> None:
    with pytest.raises(DecodeError):
        decode_number_or_tag(value)
