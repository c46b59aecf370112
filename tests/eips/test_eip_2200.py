"""EIP-2200: net metering of SSTORE, with a sentry against reentrancy on the stipend."""

import pytest

from .support import introduced, parameter, sstore_totals


def test_came_with_istanbul():
    assert introduced(2200) == "Istanbul"


def test_the_sentry_is_the_call_stipend():
    assert parameter("sstore_sentry") == {"Frontier": 0, "Istanbul": 2_300}
    assert parameter("call_stipend") == {"Frontier": 2_300}


@pytest.mark.parametrize(
    ("writes", "gas", "refund"),
    [
        # The table of test cases of the EIP without its pushes.
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
def test_the_cases_of_the_eip(writes, gas, refund):
    assert sstore_totals("istanbul", writes) == (gas, refund)
