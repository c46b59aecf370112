"""EIP-1559: a base fee that is burned, and the envelope of type 2."""

from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter


def test_came_with_london():
    assert introduced(1559) == "London"
    assert parameter("has_base_fee") == {"Frontier": False, "London": True}


def test_type_2_is_accepted_from_london_on():
    assert schedule_for("berlin").parameters["max_tx_type"] == 1
    assert schedule_for("london").parameters["max_tx_type"] == 2


def test_the_numbers_of_the_fee_market():
    assert parameter("elasticity_multiplier") == {"Frontier": 0, "London": 2}
    assert parameter("base_fee_change_denominator") == {"Frontier": 0, "London": 8}
    assert parameter("initial_base_fee") == {"Frontier": 0, "London": 10**9}
