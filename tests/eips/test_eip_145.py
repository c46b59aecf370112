"""EIP-145: bitwise shifting instructions."""

import pytest

from .support import introduced, price


def test_came_with_constantinople():
    assert introduced(145) == "Constantinople"


@pytest.mark.parametrize("mnemonic", ["SHL", "SHR", "SAR"])
def test_a_shift_costs_as_much_as_an_addition(mnemonic):
    assert price(mnemonic) == {"Frontier": None, "Constantinople": 3}
    assert price("ADD") == {"Frontier": 3}
