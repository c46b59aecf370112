"""EIP-160: EXP cost increase.

Each byte of the exponent of EXP costs 50 gas instead of 10.
"""

import pytest

from .support import before_and_after, cost, top

BEFORE, AFTER = before_and_after(160)


@pytest.mark.parametrize(
    ("exponent", "size"), [("0", 0), ("255", 1), ("256", 2), (hex(2**255), 32)]
)
def test_each_byte_of_the_exponent_costs_more(exponent, size):
    assert cost(BEFORE, f"{exponent} 3", "EXP") == 10 + 10 * size
    assert cost(AFTER, f"{exponent} 3", "EXP") == 10 + 50 * size


def test_the_result_is_the_same():
    assert top(BEFORE, "5 3 EXP") == top(AFTER, "5 3 EXP") == 243
