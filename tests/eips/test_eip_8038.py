"""EIP-8038: State-access gas cost update.

An access to a cold account costs 3,000 gas, a write to an account 9,000 and a write to a slot
10,000. Refunds change accordingly.
"""

import pytest

from .support import OTHER, before_and_after, calling, cost, gas, sstores

BEFORE, AFTER = before_and_after(8038)


@pytest.mark.parametrize(
    ("mnemonic", "cold", "warm"),
    [("BALANCE", 3_000, 100), ("EXTCODEHASH", 3_000, 100), ("EXTCODESIZE", 3_100, 200)],
)
def test_accounts_have_new_prices(mnemonic, cold, warm):
    access = f"0x{OTHER.hex()} {mnemonic}"
    assert cost(AFTER, "", access) == 3 + cold
    assert cost(AFTER, access, access) == 3 + warm
    assert cost(BEFORE, "", access) == 3 + 2_600


def test_copying_code_costs_another_look():
    copy = f"0 0 0 0x{OTHER.hex()} EXTCODECOPY"
    assert cost(AFTER, "", copy) == 12 + 3_100


def test_calls_have_new_prices():
    accounts = {OTHER: {"balance": 1}}
    assert gas(AFTER, calling("STATICCALL", OTHER), accounts=accounts) == 5 * 3 + 2 + 3_000
    with_value = gas(AFTER, calling("CALL", OTHER, value=1), accounts=accounts, balance=1)
    assert with_value == 6 * 3 + 2 + 3_000 + 11_300 - 2_300


@pytest.mark.parametrize(
    ("values", "spent", "refund"),
    [
        ((1, 2), 10_100, 0),
        ((1, 2, 3), 10_200, 0),
        ((1, 1), 100, 0),
        ((1, 2, 1), 10_200, 10_000),
    ],
)
def test_slots_have_new_prices(values, spent, refund):
    assert sstores(AFTER, values) == (spent, min(refund, refund))


def test_selfdestruct_pays_for_a_cold_beneficiary_and_its_account():
    accounts = {OTHER: {"balance": 1}}
    destroy = f"0x{OTHER.hex()} SELFDESTRUCT"
    assert gas(AFTER, destroy, accounts=accounts) == 3 + 5_000 + 3_000
    fresh = gas(AFTER, destroy, balance=1)
    assert fresh == 3 + 5_000 + 3_000 + 9_000 + 183_600
