"""EIP-196: Addition and multiplication on the curve alt_bn128.

Precompiles at addresses 6 and 7 add two points and multiply a point by a number.
"""

import pytest
from py_ecc import optimized_bn128 as bn

from .support import before_and_after, call_precompile

BEFORE, AFTER = before_and_after(196)
ADD, MUL = 6, 7


def point(multiple):
    """Returns a multiple of the generator, as the precompiles encode it."""
    x, y = bn.normalize(bn.multiply(bn.G1, multiple))
    return int(x).to_bytes(32, "big") + int(y).to_bytes(32, "big")


@pytest.mark.parametrize(
    ("address", "data", "expected", "gas"),
    [
        (ADD, point(2) + point(3), point(5), 500),
        (ADD, point(1), point(1), 500),
        (MUL, point(3) + (7).to_bytes(32, "big"), point(21), 40_000),
    ],
)
def test_an_empty_account_becomes_a_precompile(address, data, expected, gas):
    before, after = (call_precompile(fork, address, data) for fork in (BEFORE, AFTER))
    assert (before.success, before.output, before.gas_used) == (True, b"", 0)
    assert (after.success, after.output, after.gas_used) == (True, expected, gas)


def test_what_is_no_point_fails_and_takes_all_gas():
    failed = call_precompile(AFTER, ADD, (1).to_bytes(64, "big"), gas=10_000)
    assert (failed.success, failed.gas_used) == (False, 10_000)
