"""EIP-7685: General purpose execution layer requests.

A block has requests to the consensus layer, each with a type byte. The header has their hash.
"""

from hashlib import sha256

import pytest

from fastevm.chain.system_contracts import CONSOLIDATION_REQUESTS, WITHDRAWAL_REQUESTS
from fastevm.errors import InvalidBlock

from .support import build, chain_across, refused_block, with_header

RETURNS_3_BYTES = {"code": "0xaabbcc 0 MSTORE 3 29 RETURN"}


def two_blocks(alloc):
    """Returns the last block before the fork and the first with it, each with its result."""
    chain = chain_across(7685, alloc)
    before = build(chain)
    chain.add(before[0])
    after = build(chain)
    chain.add(after[0])
    return before, after


def test_the_header_holds_a_hash_from_then_on():
    before, after = two_blocks({})
    assert before[0].header.requests_hash is None
    assert after[0].header.requests_hash == sha256().digest()


def test_requests_come_in_the_order_of_their_types_and_empty_ones_are_left_out():
    contracts = {WITHDRAWAL_REQUESTS: RETURNS_3_BYTES, CONSOLIDATION_REQUESTS: RETURNS_3_BYTES}
    before, after = two_blocks(contracts)
    assert not before[1].requests
    assert after[1].requests == (b"\x01\xaa\xbb\xcc", b"\x02\xaa\xbb\xcc")
    _, after = two_blocks({CONSOLIDATION_REQUESTS: RETURNS_3_BYTES})
    assert after[1].requests == (b"\x02\xaa\xbb\xcc",)


def test_the_hash_is_over_the_hashes_of_the_requests():
    _, (block, result) = two_blocks({WITHDRAWAL_REQUESTS: RETURNS_3_BYTES})
    assert block.header.requests_hash == sha256(sha256(result.requests[0]).digest()).digest()


def test_a_header_with_another_hash_is_refused():
    chain = chain_across(7685)
    block = build(chain)[0]
    chain.add(block)
    block = build(chain)[0]
    for wrong in (bytes(32), None):
        assert refused_block(chain, with_header(block, requests_hash=wrong)) == "requests_hash"


def test_no_block_is_built_where_a_request_contract_fails():
    chain = chain_across(7685, {WITHDRAWAL_REQUESTS: {"code": "INVALID"}})
    chain.add(build(chain)[0])
    with pytest.raises(InvalidBlock, match="system call to 0x00000961"):
        build(chain)
