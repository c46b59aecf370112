"""EIP-7825: Transaction Gas Limit Cap.

A transaction with a gas limit above 16,777,216 is refused.
"""

from fastevm import EVM

from .support import before_and_after, build, chain_across, payment, refusal

BEFORE, AFTER = before_and_after(7825)
CAP = 16_777_216


def test_a_higher_gas_limit_is_refused():
    found = [refusal(BEFORE, payment(0, gas_limit=gas)) for gas in (CAP, CAP + 1, 30_000_000)]
    assert found == [None, None, None]
    found = [refusal(AFTER, payment(0, gas_limit=gas)) for gas in (CAP, CAP + 1, 30_000_000)]
    assert found == [None, "gas_limit_too_high", "gas_limit_too_high"]


def test_a_block_with_such_a_transaction_is_refused():
    chain = chain_across(7825)
    generous = build(chain, transactions=[payment(0, gas_limit=CAP + 1)])[0]
    chain.add(generous)
    chain.add(build(chain, transactions=[payment(1, gas_limit=CAP)])[0])
    assert chain.head.number == 2


def test_a_machine_offers_no_more_by_itself():
    assert [EVM(fork).most_gas() for fork in (BEFORE, AFTER)] == [30_000_000, CAP]
