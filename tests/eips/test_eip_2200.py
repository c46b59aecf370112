"""EIP-2200: Structured definitions for net gas metering.

The price of SSTORE depends on the transaction's net change of the slot. SSTORE fails with 2,300 gas
or less.
"""

import pytest

from .support import before_and_after, run, sstores

BEFORE, AFTER = before_and_after(2200)


@pytest.mark.parametrize(
    ("values", "gas", "refund"),
    [
        # The EIP's table of test cases without its pushes: values of a slot (the first is the
        # original value), gas of the SSTOREs, refund.
        ((0, 0, 0), 1_600, 0),
        ((0, 0, 1), 20_800, 0),
        ((0, 1, 0), 20_800, 19_200),
        ((0, 1, 2), 20_800, 0),
        ((0, 1, 1), 20_800, 0),
        ((1, 0, 0), 5_800, 15_000),
        ((1, 0, 1), 5_800, 4_200),
        ((1, 0, 2), 5_800, 0),
        ((1, 2, 0), 5_800, 15_000),
        ((1, 2, 3), 5_800, 0),
        ((1, 2, 1), 5_800, 4_200),
        ((1, 2, 2), 5_800, 0),
        ((1, 1, 0), 5_800, 15_000),
        ((1, 1, 2), 5_800, 0),
        ((1, 1, 1), 1_600, 0),
        ((0, 1, 0, 1), 40_800, 19_200),
        ((1, 0, 1, 0), 10_800, 19_200),
    ],
)
def test_the_cases_of_the_eip(values, gas, refund):
    assert sstores(AFTER, values) == (gas, refund)
    assert sstores(BEFORE, values)[0] > gas


def test_a_stipend_is_not_enough_to_write_at_any_price():
    """An SSTORE that changes nothing costs only 800 gas, but also fails with 2,300 gas left."""
    source = "0 0 SSTORE"
    assert run(AFTER, source, gas=6 + 2_300).error == "out of gas"
    assert run(AFTER, source, gas=6 + 2_301).gas_used == 6 + 800
    assert run("Constantinople", source, gas=6 + 2_300).gas_used == 6 + 200
    assert run(BEFORE, source, gas=6 + 5_000).gas_used == 6 + 5_000
