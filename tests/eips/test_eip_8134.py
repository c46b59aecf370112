"""EIP-8134: Hardfork Meta: BPO1.

A block has at most 15 blobs instead of 9, and a target of 10 instead of 6.
"""

import pytest

from fastevm.errors import InvalidBlock

from .support import (
    BLOB_GAS,
    before_and_after,
    blob_payments,
    build,
    chain_across,
    child_header,
    grow,
    header_with_blobs,
)

BEFORE, AFTER = before_and_after(8134)


def test_a_block_holds_more_blobs():
    chain = chain_across(8134)
    nonce = 0
    for most in (9, 15):
        with pytest.raises(InvalidBlock, match="too many blobs"):
            build(chain, transactions=blob_payments(most + 1, nonce))
        full = blob_payments(most, nonce)
        assert grow(chain, transactions=full).header.blob_gas_used == most * BLOB_GAS
        nonce += len(full)


def test_the_target_rises():
    """Blobs cost more than execution here, so EIP-7918 does not bound the blob fee."""
    for used, before, after in ((6, 100, 96), (10, 104, 100)):
        parent = header_with_blobs(100, used, base_fee=1)
        found = [child_header(fork, parent).excess_blob_gas / BLOB_GAS for fork in (BEFORE, AFTER)]
        assert found == [before, after]
