"""EIP-3529: less is given back."""

import pytest

from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter, sstore_totals


def test_came_with_london():
    assert introduced(3529) == "London"


def test_selfdestruct_gives_nothing_back():
    assert parameter("selfdestruct_refund") == {"Frontier": 24_000, "London": 0}


def test_at_most_a_fifth_is_given_back():
    assert parameter("refund_quotient") == {"Frontier": 2, "London": 5}


def test_clearing_gives_back_a_reset_and_an_entry_of_the_access_list():
    london = schedule_for("london").parameters
    expected = london["sstore_reset_cost"] + london["tx_access_slot_cost"]
    assert london["sstore_clear_refund"] == expected == 4_800


@pytest.mark.parametrize(
    ("writes", "gas", "refund"),
    [
        # The table of test cases of the EIP without its pushes.
        ((0, 0, 0), 200, 0),
        ((0, 0, 1), 20_100, 0),
        ((0, 1, 0), 20_100, 19_900),
        ((0, 1, 2), 20_100, 0),
        ((0, 1, 1), 20_100, 0),
        ((1, 0, 0), 3_000, 4_800),
        ((1, 0, 1), 3_000, 2_800),
        ((1, 0, 2), 3_000, 0),
        ((1, 2, 0), 3_000, 4_800),
        ((1, 2, 3), 3_000, 0),
        ((1, 2, 1), 3_000, 2_800),
        ((1, 2, 2), 3_000, 0),
        ((1, 1, 0), 3_000, 4_800),
        ((1, 1, 2), 3_000, 0),
        ((1, 1, 1), 200, 0),
        ((0, 1, 0, 1), 40_100, 19_900),
        ((1, 0, 1, 0), 5_900, 7_600),
    ],
)
def test_the_cases_of_the_eip(writes, gas, refund):
    assert sstore_totals("london", writes) == (gas, refund)


@pytest.mark.parametrize("original", [0, 1])
def test_flipping_a_slot_back_and_forth_earns_nothing(original):
    writes = (original, *(1 - original, original) * 20)
    gas, refund = sstore_totals("london", writes)
    assert refund < gas
