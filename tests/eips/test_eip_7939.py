"""EIP-7939: Count leading zeros (CLZ) opcode.

CLZ counts the zero bits before the first one bit of a word.
"""

import pytest

from .support import INVALID_OPCODE, assemble, before_and_after, cost, run, top

BEFORE, AFTER = before_and_after(7939)


@pytest.mark.parametrize(
    ("value", "zeros"),
    [(0, 256), (1, 255), (2**254, 1), (2**255 - 1, 1), (2**255, 0), (2**256 - 1, 0), (0xFF, 248)],
)
def test_leading_zeros_are_counted(value, zeros):
    assert run(BEFORE, f"{value} CLZ").error == INVALID_OPCODE
    assert top(AFTER, f"{value} CLZ") == zeros


def test_it_costs_what_a_multiplication_costs():
    assert assemble("CLZ") == b"\x1e"
    assert cost(AFTER, "1", "CLZ") == cost(AFTER, "1 1", "MUL") == 5
