"""EIP-1559: Fee market change for ETH 1.0 chain.

Each block has a base fee. It depends on the parent's gas used, and it is burned. A transaction of
type 2 has a fee cap and a tip for the miner.
"""

import pytest

from fastevm import Transaction

from .support import (
    CONTRACT,
    ETHER,
    KEY,
    MINER,
    OTHER,
    before_and_after,
    chain_across,
    grow,
    payment,
    refusal,
)

BEFORE, AFTER = before_and_after(1559)
GWEI = 10**9


def dynamic(**fields):
    return Transaction.build(type=2, chain_id=1, to=OTHER, gas_limit=21_000, **fields).sign(KEY)


def test_the_first_base_fee_is_one_gwei_and_the_gas_limit_doubles():
    chain = chain_across(1559)
    before, after = grow(chain).header, grow(chain).header
    assert (before.base_fee_per_gas, after.base_fee_per_gas) == (None, GWEI)
    assert (before.gas_limit, after.gas_limit) == (30_000_000, 60_000_000)


@pytest.mark.parametrize(
    ("gas", "fee"),
    [(0, 875_000_000), (15_000_000, 937_500_000), (30_000_000, GWEI), (60_000_000, 1_125_000_000)],
)
def test_the_base_fee_follows_the_gas_that_the_parent_used(gas, fee):
    chain = chain_across(1559, {CONTRACT: {"code": "INVALID"}})
    grow(chain)
    burning = [payment(0, to=CONTRACT, gas_limit=gas, value=0)] if gas else []
    parent = grow(chain, transactions=burning)
    assert parent.header.gas_used == gas
    assert grow(chain).header.base_fee_per_gas == fee


def test_the_base_fee_is_burned_and_the_miner_gets_the_rest():
    chain = chain_across(1559)
    earned = []
    for nonce in (0, 1):
        had = chain.layer_of(chain.head.hash).balance(MINER)
        grow(chain, coinbase=MINER, transactions=[payment(nonce, gas_price=3 * GWEI)])
        earned.append(chain.layer_of(chain.head.hash).balance(MINER) - had - 2 * ETHER)
    assert earned == [21_000 * 3 * GWEI, 21_000 * (3 - 1) * GWEI]


def test_a_transaction_of_type_2_pays_the_base_fee_and_its_tip_up_to_its_cap():
    transaction = dynamic(max_fee_per_gas=10, max_priority_fee_per_gas=3)
    assert refusal(BEFORE, transaction) == "type_not_supported"
    assert refusal(AFTER, transaction, base_fee=10) is None
    assert [transaction.effective_gas_price(fee) for fee in (0, 5, 8, 10)] == [3, 8, 10, 10]


def test_a_cap_below_the_base_fee_is_refused():
    transaction = dynamic(max_fee_per_gas=10, max_priority_fee_per_gas=3)
    assert refusal(AFTER, transaction, base_fee=11) == "fee_cap_too_low"
    legacy = payment(0, gas_price=10)
    assert refusal(BEFORE, legacy, base_fee=11) is None
    assert refusal(AFTER, legacy, base_fee=11) == "fee_cap_too_low"
