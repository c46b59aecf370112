"""EIP-7623: Increase calldata cost.

A transaction pays at least 10 gas per zero byte and 40 per other byte of its data.
"""

import pytest

from .support import CONTRACT, OTHER, SENDER, before_and_after, machine, payment, refusal

BEFORE, AFTER = before_and_after(7623)


def used(fork, data, source="STOP"):
    evm = machine(fork, {CONTRACT: {"code": source}})
    return evm.transact(CONTRACT, data, sender=SENDER).gas_used - 21_000


@pytest.mark.parametrize(
    ("data", "before", "after"),
    [(b"", 0, 0), (b"\x01", 16, 40), (bytes(100), 400, 1_000), (b"\x01" * 100, 1_600, 4_000)],
)
def test_data_without_execution_pays_the_floor(data, before, after):
    assert used(BEFORE, data) == before
    assert used(AFTER, data) == after


def test_execution_counts_up_to_the_floor_and_then_beyond_it():
    data = b"\x01" * 100
    for reads, gas in ((1, 4_000), (2, 1_600 + 2 * 2_105)):
        source = " ".join(f"{slot} SLOAD POP" for slot in range(reads))
        assert used(BEFORE, data, source) == 1_600 + reads * 2_105
        assert used(AFTER, data, source) == gas


def test_a_gas_limit_below_the_floor_is_refused():
    for gas_limit, code in ((21_000 + 3_999, "floor_gas"), (21_000 + 4_000, None)):
        transaction = payment(0, to=OTHER, data=b"\x01" * 100, gas_limit=gas_limit)
        assert refusal(BEFORE, transaction) is None
        assert refusal(AFTER, transaction) == code


def test_refunds_do_not_go_below_the_floor():
    cleared = {CONTRACT: {"code": "0 0 SSTORE", "storage": {0: 1}}}
    data = b"\x01" * 200
    found = [
        machine(fork, cleared).transact(CONTRACT, data, sender=SENDER).gas_used
        for fork in (BEFORE, AFTER)
    ]
    assert found == [21_000 + 3_200 + 5_006 - 4_800, 21_000 + 8_000]
