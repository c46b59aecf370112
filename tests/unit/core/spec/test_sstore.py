"""Tests the SSTORE rows against the EIPs, for every way a slot can change."""

from itertools import product

import pytest

from fastevm.core.spec.schedule import schedule_for
from fastevm.core.spec.sstore import SstoreTransition as Row

VALUES = list(product(range(3), repeat=3))
NET_METERING = {
    # fork: (gas of a no-op or dirty write, gas of the first change of a nonzero slot, refund of
    # clearing)
    "Constantinople": (200, 5000, 15000),  # EIP-1283
    "Istanbul": (800, 5000, 15000),  # EIP-2200
    "MuirGlacier": (800, 5000, 15000),
    "Berlin": (100, 5000 - 2100, 15000),  # EIP-2929
    "London": (100, 5000 - 2100, 4800),  # EIP-3529
    "Paris": (100, 5000 - 2100, 4800),
    "Osaka": (100, 5000 - 2100, 4800),
    "BPO2": (100, 5000 - 2100, 4800),
}
GROSS_METERING = [
    "Frontier",
    "Homestead",
    "TangerineWhistle",
    "SpuriousDragon",
    "Byzantium",
    "Petersburg",
]


def transition(original, current, new):
    """Returns the row of the SSTORE table that applies to a write."""
    if new == current:
        return Row.NOOP
    if current == original:
        return Row.CREATE if original == 0 else Row.UPDATE if new != 0 else Row.DELETE
    if original == 0:
        return Row.RESTORE_ZERO if new == 0 else Row.DIRTY
    if new == original:
        return Row.RESTORE if current != 0 else Row.UNDELETE_RESTORE
    if current == 0:
        return Row.DIRTY_UNDELETE
    return Row.DIRTY_DELETE if new == 0 else Row.DIRTY


def specified_net(original, current, new, prices):
    """Returns (gas, refund) by the conditions of EIP-1283. Later EIPs keep these conditions."""
    unchanged_or_dirty, reset, clear = prices
    if current == new:
        return unchanged_or_dirty, 0
    if original == current:
        if original == 0:
            return 20000, 0
        return reset, clear if new == 0 else 0
    refund = 0
    if original != 0:
        if current == 0:
            refund -= clear
        if new == 0:
            refund += clear
    if original == new:
        refund += (20000 if original == 0 else reset) - unchanged_or_dirty
    return unchanged_or_dirty, refund


def specified_gross(current, new):
    """Returns (gas, refund) by the Yellow Paper, appendices G and H."""
    gas = 20000 if current == 0 and new != 0 else 5000
    return gas, 15000 if current != 0 and new == 0 else 0


@pytest.mark.parametrize("fork", NET_METERING)
def test_net_metering_prices_by_original_current_and_new(fork):
    packed = schedule_for(fork).packed()
    for values in VALUES:
        row = transition(*values)
        found = packed["sstore_cost"][row], packed["sstore_refund"][row]
        assert found == specified_net(*values, NET_METERING[fork]), values


@pytest.mark.parametrize("fork", GROSS_METERING)
def test_gross_metering_prices_by_current_and_new_alone(fork):
    packed = schedule_for(fork).packed()
    for original, current, new in VALUES:
        # Without net metering, the row must not depend on the original value.
        for row in (transition(original, current, new), transition(current, current, new)):
            found = packed["sstore_cost"][row], packed["sstore_refund"][row]
            assert found == specified_gross(current, new), (original, current, new)


def test_every_row_is_reached():
    assert {transition(*values) for values in VALUES} == set(Row)


def test_the_rows_are_numbered_as_declared():
    assert [row.value for row in Row] == list(range(10))


@pytest.mark.parametrize("fork", ["Istanbul", "Berlin", "London", "Osaka"])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_refunds_of_a_transaction_never_end_below_zero(fork, length):
    packed = schedule_for(fork).packed()
    for original, *writes in product(range(3), repeat=length):
        current, refund = original, 0
        for new in writes:
            refund += packed["sstore_refund"][transition(original, current, new)]
            current = new
        assert refund >= 0
