"""Tests that the packed receipts of an executed block equal the receipts of its builder."""

import pickle

import pytest

from fastevm.core.execution.block.block import execute_block
from fastevm.core.execution.block.packed_receipts import PackedReceipts
from fastevm.core.spec.schedule import schedule_for

from .test_block import builder, call, state


@pytest.fixture
def both():
    """Builds and executes a block. Returns the builder's receipts and the packed receipts."""
    made = builder()
    made.begin()
    given = tuple(made.add(call(nonce, data=bytes(nonce))) for nonce in range(4))
    block, _ = made.seal()
    result = execute_block(
        state(), block, schedule_for("Osaka"), chain_id=1, deposit_contract=b"\x0d" * 20,
        ancestors=[block.header.parent_hash],
    )  # fmt: skip
    return given, result.receipts


def test_they_equal_the_tuple_of_the_same_receipts(both):
    given, packed = both
    assert isinstance(packed, PackedReceipts)
    assert len(packed) == 4
    assert packed == given
    assert given == packed
    assert packed != given[:3]
    assert packed != given[::-1]
    assert packed != list(given)
    assert (hash(packed), repr(packed)) == (hash(given), repr(given))


def test_they_are_read_at_any_place_and_in_any_order(both):
    given, packed = both
    assert packed[2] is packed[-2]
    assert (packed[3], packed[0], packed[1:3], packed[::-1]) == (
        given[3], given[0], given[1:3], given[::-1],
    )  # fmt: skip
    assert list(packed) == list(given)
    assert (packed.index(given[2]), packed.count(given[1]), given[3] in packed) == (2, 1, True)
    for index in (4, -5, 1 << 70):
        with pytest.raises(IndexError):
            packed[index]
    with pytest.raises(TypeError):
        packed["0"]
    with pytest.raises(TypeError):
        packed[0] = given[0]


def test_they_outlive_what_made_them(both):
    given, packed = both
    logs = [log for receipt in packed for log in receipt.logs]
    assert logs == [log for receipt in given for log in receipt.logs]
    assert pickle.loads(pickle.dumps(packed)) == given


def test_none_are_an_empty_sequence():
    empty = PackedReceipts()
    assert (len(empty), empty[:], list(empty)) == (0, (), [])
    assert empty == ()
