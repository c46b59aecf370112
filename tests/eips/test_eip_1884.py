"""EIP-1884: what reads the state trie becomes dearer, and SELFBALANCE stays cheap."""

import pytest

from fastevm.spec.schedule import schedule_for

from .support import introduced, price


@pytest.mark.parametrize(
    ("mnemonic", "before", "after"),
    [("SLOAD", 200, 800), ("BALANCE", 400, 700), ("EXTCODEHASH", 400, 700)],
)
def test_prices_rise_with_istanbul(mnemonic, before, after):
    assert introduced(1884) == "Istanbul"
    assert schedule_for("petersburg").gas(mnemonic) == before
    assert schedule_for("istanbul").gas(mnemonic) == after


def test_ones_own_balance_costs_5():
    assert price("SELFBALANCE") == {"Frontier": None, "Istanbul": 5}
