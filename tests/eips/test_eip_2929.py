"""EIP-2929: the first access in a transaction is dear, later ones are cheap."""

import pytest

from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter

COLD_ACCOUNT_ACCESS_COST = 2_600
COLD_SLOAD_COST = 2_100
WARM_STORAGE_READ_COST = 100
ACCOUNT_READERS = ["BALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH"]
CALLS = ["CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"]


def test_came_with_berlin():
    assert introduced(2929) == "Berlin"
    assert parameter("has_access_lists") == {"Frontier": False, "Berlin": True}


@pytest.mark.parametrize("mnemonic", ACCOUNT_READERS + CALLS)
def test_an_account_is_cold_once(mnemonic):
    berlin = schedule_for("berlin")
    assert berlin.gas(mnemonic) == WARM_STORAGE_READ_COST
    cold = berlin.gas(mnemonic) + berlin.parameters["cold_account_surcharge"]
    assert cold == COLD_ACCOUNT_ACCESS_COST


def test_a_slot_is_cold_once():
    berlin = schedule_for("berlin")
    assert berlin.gas("SLOAD") == WARM_STORAGE_READ_COST
    assert berlin.gas("SLOAD") + berlin.parameters["cold_slot_surcharge"] == COLD_SLOAD_COST


def test_sstore_pays_the_cold_slot_on_top_and_less_for_its_rows():
    berlin = schedule_for("berlin").parameters
    assert berlin["cold_sstore_surcharge"] == COLD_SLOAD_COST
    assert berlin["sstore_reset_cost"] == 5_000 - COLD_SLOAD_COST
    assert berlin["sstore_dirty_cost"] == WARM_STORAGE_READ_COST
    assert berlin["sstore_set_cost"] == 20_000


def test_selfdestruct_pays_the_cold_account_on_top_and_nothing_for_a_warm_one():
    berlin = schedule_for("berlin")
    assert berlin.gas("SELFDESTRUCT") == 5_000
    assert berlin.parameters["cold_selfdestruct_surcharge"] == COLD_ACCOUNT_ACCESS_COST
