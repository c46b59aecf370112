"""EIP-197: Pairing check on the curve alt_bn128.

A precompile at address 8 checks whether a product of pairings is 1.
"""

import pytest
from py_ecc import optimized_bn128 as bn

from .support import before_and_after, call_precompile

BEFORE, AFTER = before_and_after(197)
PAIRING = 8


def word(number):
    return int(number).to_bytes(32, "big")


def pair(first, second):
    """Returns a pair of multiples of both generators, with the imaginary parts first."""
    x, y = bn.normalize(bn.multiply(bn.G1, first % bn.curve_order))
    twisted = bn.normalize(bn.multiply(bn.G2, second))
    imaginary_first = b"".join(word(c.coeffs[1]) + word(c.coeffs[0]) for c in twisted)
    return word(x) + word(y) + imaginary_first


@pytest.mark.parametrize(
    ("data", "answer", "pairs"),
    [(b"", 1, 0), (pair(2, 3) + pair(-6, 1), 1, 2), (pair(2, 3) + pair(-5, 1), 0, 2)],
)
def test_an_empty_account_becomes_a_precompile(data, answer, pairs):
    before, after = (call_precompile(fork, PAIRING, data) for fork in (BEFORE, AFTER))
    assert (before.success, before.output, before.gas_used) == (True, b"", 0)
    assert (after.success, after.output) == (True, word(answer))
    assert after.gas_used == 100_000 + 80_000 * pairs
