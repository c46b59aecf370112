"""EIP-658: Transaction status in receipts.

A receipt has the status 1 for success or 0 for failure instead of a state root.
"""

from .support import CONTRACT, chain_across, grow, payment


def receipts(chain, nonce):
    """Makes a block with a payment and a failing transaction. Returns its receipts."""
    failing = payment(nonce + 1, to=CONTRACT, gas_limit=50_000)
    block = grow(chain, transactions=[payment(nonce), failing])
    return chain.receipts_of(block.hash)


def test_the_status_takes_the_place_of_the_state_root():
    chain = chain_across(658, {CONTRACT: {"code": "INVALID"}})
    before = receipts(chain, 0)
    assert [receipt.status for receipt in before] == [None, None]
    assert [len(receipt.post_state) for receipt in before] == [32, 32]
    assert before[0].post_state != before[1].post_state
    after = receipts(chain, 2)
    assert [receipt.status for receipt in after] == [1, 0]
    assert [receipt.post_state for receipt in after] == [None, None]
    sizes = [len(found[0].rlp()) for found in (before, after)]
    assert sizes[0] - sizes[1] == 32
