"""EIP-7976: Increase calldata floor cost.

A transaction pays at least 64 gas for each byte of its data, zero or not.
"""

import pytest

from fastevm import Transaction
from fastevm.core.execution.transaction.transaction_rules import intrinsic_gas_of
from fastevm.core.spec.schedule import schedule_for

from .support import OTHER, SENDER, before_and_after

BEFORE, AFTER = before_and_after(7976)


def floor(fork: str, data: bytes) -> int:
    fields = {"sender": SENDER, "to": OTHER, "nonce": 0, "gas_limit": 10**7}
    return intrinsic_gas_of(Transaction.build(data=data, **fields), schedule_for(fork))[1]


@pytest.mark.parametrize("byte", [0, 1, 255])
def test_the_floor_does_not_depend_on_the_value_of_a_byte(byte):
    for fork in (AFTER, "amsterdam-2026-04"):
        assert floor(fork, bytes([byte] * 100)) - floor(fork, b"") == 6_400


def test_the_fork_before_counts_zeros_as_a_fourth():
    assert floor(BEFORE, bytes(100)) - floor(BEFORE, b"") == 1_000
    assert floor(BEFORE, b"\1" * 100) - floor(BEFORE, b"") == 4_000
