"""EIP-7251: Increase the MAX_EFFECTIVE_BALANCE.

A contract queues consolidation requests of validators. Each block removes up to two.
"""

from fastevm.chain.system_contracts import CONSOLIDATION_REQUESTS, CONSOLIDATION_REQUESTS_CODE

from .support import SENDER, build, chain_across, payment

DEPLOYED = {CONSOLIDATION_REQUESTS: {"code": CONSOLIDATION_REQUESTS_CODE}}
SOURCE, TARGET = b"\x07" * 48, b"\x08" * 48
REQUESTED = SENDER + SOURCE + TARGET


def requests(chain, nonce, consolidations=1, fee=10):
    """Makes ``consolidations`` consolidation requests in a new block. Returns its requests."""
    to = {"to": CONSOLIDATION_REQUESTS, "value": fee, "gas_limit": 300_000}
    calls = [payment(nonce + index, data=SOURCE + TARGET, **to) for index in range(consolidations)]
    block, result = build(chain, transactions=calls)
    chain.add(block)
    return result.requests


def test_what_waits_is_taken_by_the_first_block_of_the_fork():
    chain = chain_across(7251, DEPLOYED)
    assert not requests(chain, 0)
    assert requests(chain, 1) == (b"\x02" + REQUESTED * 2,)
    assert requests(chain, 2, consolidations=0) == ()


def test_a_block_takes_two_and_leaves_the_rest_to_the_next():
    chain = chain_across(7251, DEPLOYED)
    requests(chain, 0, consolidations=0)
    assert requests(chain, 0, consolidations=3) == (b"\x02" + REQUESTED * 2,)
    assert requests(chain, 3, consolidations=0) == (b"\x02" + REQUESTED,)


def test_who_does_not_pay_the_fee_is_not_heard():
    chain = chain_across(7251, DEPLOYED)
    requests(chain, 0, consolidations=0)
    assert requests(chain, 0, fee=0) == ()
    assert requests(chain, 1, fee=1) == (b"\x02" + REQUESTED,)
