"""EIP-2780: Resource-based intrinsic transaction gas.

A transaction pays for the accounts that it accesses: 12,000 gas for the sender, 3,000 for another
recipient, 6,000 for value, 12,000 for a creation. Costs that depend on the state are charged before
the first frame.
"""

import pytest

from fastevm import Transaction
from fastevm.core.execution.transaction.transaction_rules import intrinsic_gas_of
from fastevm.core.spec.schedule import schedule_for

from .support import OTHER, SENDER, before_and_after, machine

BEFORE, AFTER = before_and_after(2780)


def intrinsic(fork, **fields):
    values = {"sender": SENDER, "to": OTHER, "nonce": 0, "gas_limit": 10**7} | fields
    return intrinsic_gas_of(Transaction.build(**values), schedule_for(fork))


@pytest.mark.parametrize(
    ("fields", "gas"),
    [
        ({"to": SENDER}, 12_000),
        ({"to": SENDER, "value": 1}, 12_000),
        ({}, 15_000),
        ({"value": 1}, 21_000),
        ({"to": None}, 24_000),
        ({"to": None, "value": 1}, 24_000),
    ],
)
def test_what_a_transaction_touches_makes_its_price(fields, gas):
    assert intrinsic(AFTER, **fields) == (gas, gas)
    before = 53_000 if fields.get("to", OTHER) is None else 21_000
    assert intrinsic(BEFORE, **fields)[0] == before


def test_a_recipient_that_cannot_be_paid_keeps_the_nonce_and_the_fee_only():
    fresh = b"\xf0" * 20
    for gas, success in ((21_000 + 183_599, False), (21_000 + 183_600, True)):
        evm = machine(AFTER)
        transaction = Transaction.build(sender=SENDER, to=fresh, value=1, nonce=0, gas_limit=gas)
        result = evm.execute(transaction)
        assert (result.success, result.gas_used) == (success, gas)
        assert evm.balance(fresh) == int(success)
        assert evm.nonce(SENDER) == 1
