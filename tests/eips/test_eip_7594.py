"""EIP-7594: PeerDAS - Peer Data Availability Sampling.

A transaction has at most six blobs, although a block may have more.
"""

from .support import BLOB_GAS, before_and_after, blob_payment, chain_across, grow, refusal

BEFORE, AFTER = before_and_after(7594)


def test_a_transaction_with_more_than_six_blobs_is_refused():
    assert [refusal(BEFORE, blob_payment(count)) for count in (6, 7, 9)] == [None] * 3
    found = [refusal(AFTER, blob_payment(count)) for count in (6, 7, 9)]
    assert found == [None, "too_many_blobs", "too_many_blobs"]


def test_a_block_holds_as_many_as_before():
    chain = chain_across(7594)
    before = grow(chain, transactions=[blob_payment(9)])
    after = grow(chain, transactions=[blob_payment(6, nonce=1), blob_payment(3, nonce=2)])
    assert before.header.blob_gas_used == after.header.blob_gas_used == 9 * BLOB_GAS
