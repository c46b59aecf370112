"""EIP-7883: ModExp Gas Cost Increase.

Modular exponentiation costs at least 500 gas, and three times as much as before. The cost doubles
for operands or exponents of more than 32 bytes.
"""

import pytest

from .support import before_and_after, call_precompile, modexp_operands

BEFORE, AFTER = before_and_after(7883)
MODEXP = 5


def operands(exponent, size):
    """Returns an input: 3 to the power of ``exponent`` modulo a modulus of ``size`` bytes of
    0xff.
    """
    return modexp_operands((3).to_bytes(size, "big"), exponent, b"\xff" * size)


@pytest.mark.parametrize(
    ("exponent", "size", "before", "after"),
    [
        (b"\x03", 32, 200, 500),
        (b"\xff" * 32, 32, 4**2 * 255 // 3, 4**2 * 255),
        (b"\x01\x00\x01", 8, 200, 500),
        (b"\x01\x00\x01", 64, 8**2 * 16 // 3, 2 * 8**2 * 16),
        (b"\x01\x00\x01", 256, 32**2 * 16 // 3, 2 * 32**2 * 16),
        (b"\xff" * 40, 32, 4**2 * (8 * 8 + 255) // 3, 4**2 * (16 * 8 + 255)),
        (b"\xff" * 32, 8, 1**2 * 255 // 3 + 115, 16 * 255),
    ],
)
def test_the_same_result_at_another_price(exponent, size, before, after):
    results = [call_precompile(fork, MODEXP, operands(exponent, size)) for fork in (BEFORE, AFTER)]
    assert [result.gas_used for result in results] == [before, after]
    assert results[0].output == results[1].output != b""
