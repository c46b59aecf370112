"""Tests that a stored block is restored completely, with and without an access list."""

import pytest

from fastevm.chain.storage.block_record import block_of, hashes_of, pack_body, receipts_of
from tests.unit.chain.blocks import build, new_chain, payment


@pytest.mark.parametrize("fork", ["Osaka", "Amsterdam"])
def test_block_list_and_receipts_come_back(fork: str) -> None:
    block, result = build(new_chain(fork), transactions=[payment(0)])
    packed = pack_body(block, result.receipts)
    found = block_of(packed)
    assert (found, found.access_list) == (block, block.access_list)
    assert (block.access_list is None) == (fork == "Osaka")
    assert receipts_of(packed) == tuple(result.receipts)
    assert hashes_of(packed) == (block.hash, block.header.parent_hash)


def test_a_record_without_the_list_gives_the_block_without_it() -> None:
    block, result = build(new_chain("Amsterdam"))
    found = block_of(pack_body(block.with_access_list(None), result.receipts))
    assert (found.hash, found.access_list) == (block.hash, None)
