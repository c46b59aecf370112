"""EIP-2565: ModExp gas cost.

The price of modular exponentiation is closer to its work: words squared, divided by 3, at least 200
gas.
"""

import pytest

from .support import before_and_after, call_precompile, modexp_operands

BEFORE, AFTER = before_and_after(2565)
MODEXP = 5


def operands(exponent, size):
    """Returns an input: 3 to the power of ``exponent`` modulo a modulus of ``size`` bytes of
    0xff.
    """
    return modexp_operands((3).to_bytes(size, "big"), exponent, b"\xff" * size)


@pytest.mark.parametrize(
    ("exponent", "size", "before", "after"),
    [
        (b"\x03", 32, 32**2 * 1 // 20, 200),
        (b"\xff" * 32, 32, 32**2 * 255 // 20, 4**2 * 255 // 3),
        (b"\x01\x00\x01", 64, 64**2 * 16 // 20, 8**2 * 16 // 3),
        (b"\x01\x00\x01", 256, (256**2 // 4 + 96 * 256 - 3072) * 16 // 20, 32**2 * 16 // 3),
    ],
)
def test_the_same_result_at_another_price(exponent, size, before, after):
    results = [call_precompile(fork, MODEXP, operands(exponent, size)) for fork in (BEFORE, AFTER)]
    assert [result.gas_used for result in results] == [before, after]
    assert results[0].output == results[1].output != b""
