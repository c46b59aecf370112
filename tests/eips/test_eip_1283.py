"""EIP-1283: Net gas metering for SSTORE without dirty maps.

The price of SSTORE depends on the transaction's net change of the slot. Only Constantinople has
this EIP.
"""

import pytest

from .support import before_and_after, run, sstores

BEFORE, AFTER = before_and_after(1283)


@pytest.mark.parametrize(
    ("values", "gas", "refund"),
    [
        # The EIP's table of test cases: values of a slot (the first is the original value), gas of
        # the SSTOREs, refund.
        ((0, 0, 0), 400, 0),
        ((0, 0, 1), 20_200, 0),
        ((0, 1, 0), 20_200, 19_800),
        ((0, 1, 2), 20_200, 0),
        ((0, 1, 1), 20_200, 0),
        ((1, 0, 0), 5_200, 15_000),
        ((1, 0, 1), 5_200, 4_800),
        ((1, 0, 2), 5_200, 0),
        ((1, 2, 0), 5_200, 15_000),
        ((1, 2, 3), 5_200, 0),
        ((1, 2, 1), 5_200, 4_800),
        ((1, 2, 2), 5_200, 0),
        ((1, 1, 0), 5_200, 15_000),
        ((1, 1, 2), 5_200, 0),
        ((1, 1, 1), 400, 0),
        ((0, 1, 0, 1), 40_200, 19_800),
        ((1, 0, 1, 0), 10_200, 19_800),
    ],
)
def test_the_cases_of_the_eip(values, gas, refund):
    assert sstores(AFTER, values) == (gas, refund)
    assert sstores(BEFORE, values)[0] > gas


@pytest.mark.parametrize(
    ("values", "gas", "refund"),
    [((0, 1, 0), 25_000, 15_000), ((1, 0, 1), 25_000, 15_000), ((1, 1, 1), 10_000, 0)],
)
def test_before_and_again_in_petersburg_each_write_counts_for_itself(values, gas, refund):
    assert sstores(BEFORE, values) == (gas, refund)
    assert sstores("Petersburg", values) == (gas, refund)


def test_a_stipend_is_enough_to_write():
    """Petersburg removed the EIP because 2,300 gas suffice for a write to a dirty slot."""
    source, storage = "0 0 SSTORE", {0: 0}
    assert run(BEFORE, source, gas=2_300, storage=storage).error == "out of gas"
    assert run(AFTER, source, gas=2_300, storage=storage).success
    assert run("Petersburg", source, gas=2_300, storage=storage).error == "out of gas"
