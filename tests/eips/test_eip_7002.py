"""EIP-7002: Execution layer triggerable withdrawals.

A contract queues withdrawal requests of validators. Each block removes up to 16.
"""

from fastevm.chain.system_contracts import WITHDRAWAL_REQUESTS, WITHDRAWAL_REQUESTS_CODE

from .support import SENDER, build, chain_across, payment

DEPLOYED = {WITHDRAWAL_REQUESTS: {"code": WITHDRAWAL_REQUESTS_CODE}}
KEY_OF_VALIDATOR = b"\x07" * 48
# Per the EIP: the caller's address, the key, and the amount in gwei as little-endian.
REQUESTED = SENDER + KEY_OF_VALIDATOR + (32).to_bytes(8, "little")


def requests(chain, nonce, withdrawals=1, fee=10):
    """Makes ``withdrawals`` withdrawal requests in a new block. Returns the block's requests."""
    data = KEY_OF_VALIDATOR + (32).to_bytes(8, "big")
    to = {"to": WITHDRAWAL_REQUESTS, "value": fee, "gas_limit": 300_000}
    calls = [payment(nonce + index, data=data, **to) for index in range(withdrawals)]
    block, result = build(chain, transactions=calls)
    chain.add(block)
    return result.requests


def test_what_waits_is_taken_by_the_first_block_of_the_fork():
    chain = chain_across(7002, DEPLOYED)
    assert not requests(chain, 0)
    assert requests(chain, 1) == (b"\x01" + REQUESTED * 2,)
    assert requests(chain, 2, withdrawals=0) == ()


def test_a_block_takes_16_and_leaves_the_rest_to_the_next():
    chain = chain_across(7002, DEPLOYED)
    requests(chain, 0, withdrawals=0)
    assert requests(chain, 0, withdrawals=20) == (b"\x01" + REQUESTED * 16,)
    assert requests(chain, 20, withdrawals=0) == (b"\x01" + REQUESTED * 4,)


def test_who_does_not_pay_the_fee_is_not_heard():
    chain = chain_across(7002, DEPLOYED)
    requests(chain, 0, withdrawals=0)
    assert requests(chain, 0, fee=0) == ()
    assert requests(chain, 1, fee=1) == (b"\x01" + REQUESTED,)
