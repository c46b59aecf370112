"""EIP-145: Bitwise shifting instructions.

SHL, SHR and SAR shift a word for the price of an addition.
"""

import pytest

from .support import INVALID_OPCODE, before_and_after, cost, run, top

BEFORE, AFTER = before_and_after(145)
ALL_ONES = 2**256 - 1
HIGH_BIT = 2**255


@pytest.mark.parametrize(
    ("value", "shift", "mnemonic", "shifted"),
    [
        # From the tables of the EIP.
        (1, 1, "SHL", 2),
        (1, 255, "SHL", HIGH_BIT),
        (1, 256, "SHL", 0),
        (ALL_ONES, 1, "SHL", ALL_ONES - 1),
        (1, 1, "SHR", 0),
        (HIGH_BIT, 255, "SHR", 1),
        (HIGH_BIT, 256, "SHR", 0),
        (1, 1, "SAR", 0),
        (HIGH_BIT, 1, "SAR", HIGH_BIT | HIGH_BIT >> 1),
        (HIGH_BIT, 255, "SAR", ALL_ONES),
        (ALL_ONES, 256, "SAR", ALL_ONES),
        (HIGH_BIT - 1, 256, "SAR", 0),
    ],
)
def test_a_word_is_shifted(value, shift, mnemonic, shifted):
    source = f"{value} {shift} {mnemonic}"
    assert run(BEFORE, source).error == INVALID_OPCODE
    assert top(AFTER, source) == shifted


@pytest.mark.parametrize("mnemonic", ["SHL", "SHR", "SAR"])
def test_a_shift_costs_as_much_as_an_addition(mnemonic):
    assert cost(AFTER, "1 1", mnemonic) == cost(AFTER, "1 1", "ADD") == 3
