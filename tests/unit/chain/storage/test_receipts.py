"""Tests that every member of a receipt survives storage, in every fork and with large prices."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fastevm.chain.storage import StorageError
from fastevm.chain.storage.receipts import pack_receipts, unpack_receipts
from fastevm.core.execution.types import EMPTY_BLOOM, Log, Receipt

NUMBER = some.integers(0, 2**64 - 1)
WORD = some.integers(0, 2**256 - 1)
LOGS = some.lists(
    some.builds(
        Log,
        address=some.binary(min_size=20, max_size=20),
        topics=some.lists(some.binary(min_size=32, max_size=32), max_size=4).map(tuple),
        data=some.binary(max_size=100),
    ),
    max_size=3,
).map(tuple)


@some.composite
def receipts(draw: some.DrawFn) -> Receipt:
    logs = draw(LOGS)
    status = draw(some.sampled_from((None, 0, 1)))
    has_blobs = draw(some.booleans())
    return Receipt(
        tx_type=draw(some.integers(0, 4)),
        status=status,
        post_state=draw(some.binary(min_size=32, max_size=32)) if status is None else None,
        cumulative_gas_used=draw(NUMBER),
        logs=logs,
        bloom=draw(some.binary(min_size=256, max_size=256)) if logs else EMPTY_BLOOM,
        gas_used=draw(NUMBER),
        effective_gas_price=draw(WORD),
        contract_address=draw(some.none() | some.binary(min_size=20, max_size=20)),
        blob_gas_used=draw(NUMBER) if has_blobs else None,
        blob_gas_price=draw(WORD) if has_blobs else None,
    )


@given(some.lists(receipts(), max_size=3).map(tuple))
def test_receipts_come_back_as_they_were(block: tuple[Receipt, ...]) -> None:
    assert unpack_receipts(pack_receipts(block)) == block


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x91\x90", pack_receipts(())[:-1]])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(StorageError, match="receipts"):
        unpack_receipts(data)
