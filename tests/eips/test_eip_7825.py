"""EIP-7825: Transaction Gas Limit Cap.

A transaction with a gas limit above 16,777,216 is rejected.
"""

from fastevm import EVM
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.primitives.replace import replace

from .support import (
    before_and_after,
    build,
    chain_across,
    payment,
    refusal,
    refused_block,
    with_header,
)

BEFORE, AFTER = before_and_after(7825)
CAP = 16_777_216


def test_a_higher_gas_limit_is_refused():
    found = [refusal(BEFORE, payment(0, gas_limit=gas)) for gas in (CAP, CAP + 1, 30_000_000)]
    assert found == [None, None, None]
    found = [refusal(AFTER, payment(0, gas_limit=gas)) for gas in (CAP, CAP + 1, 30_000_000)]
    assert found == [None, "gas_limit_too_high", "gas_limit_too_high"]


def test_a_block_with_such_a_transaction_is_refused():
    chain = chain_across(7825)
    chain.add(build(chain, transactions=[payment(0, gas_limit=CAP + 1)])[0])
    block = build(chain, transactions=[payment(1, gas_limit=CAP)])[0]
    generous = replace(block, transactions=(payment(1, gas_limit=CAP + 1),))
    root = ordered_root([transaction.raw for transaction in generous.transactions])
    assert refused_block(chain, with_header(generous, transactions_root=root)) == "transactions[0]"
    chain.add(block)
    assert chain.head.number == 2


def test_a_machine_offers_no_more_by_itself():
    assert [EVM(fork).most_gas() for fork in (BEFORE, AFTER)] == [30_000_000, CAP]
