"""EIP-2930: a transaction may say in advance what it touches."""

from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter


def test_came_with_berlin():
    assert introduced(2930) == "Berlin"
    assert parameter("max_tx_type")["Berlin"] == 1


def test_an_entry_is_cheaper_than_the_surcharge_that_it_saves():
    berlin = schedule_for("berlin").parameters
    assert berlin["tx_access_address_cost"] == 2_400 < berlin["cold_account_surcharge"]
    assert berlin["tx_access_slot_cost"] == 1_900 < berlin["cold_slot_surcharge"]
