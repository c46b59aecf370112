"""EIP-198: Big integer modular exponentiation.

A precompile at address 5 computes modular powers of numbers of any length.
"""

import pytest

from .support import before_and_after, call_precompile, modexp_operands

BEFORE, AFTER = before_and_after(198)
MODEXP = 5


def operands(base, exponent, modulus, size):
    return modexp_operands(*(n.to_bytes(size, "big") for n in (base, exponent, modulus)))


@pytest.mark.parametrize(
    ("base", "exponent", "modulus", "size", "gas"),
    [
        # The EIP's example, Fermat's little theorem. Gas: 32 * 32 * 255 / 20.
        (3, 2**256 - 2**32 - 978, 2**256 - 2**32 - 977, 32, 13_056),
        (3, 5, 100, 1, 0),
        # The operands have more than 64 bytes, and the exponent is 2**767.
        (3, 2**767, 2**768 - 1, 96, (96 * 96 // 4 + 96 * 96 - 3072) * (255 + 8 * 64) // 20),
    ],
)
def test_an_empty_account_becomes_a_precompile(base, exponent, modulus, size, gas):
    data = operands(base, exponent, modulus, size)
    before, after = (call_precompile(fork, MODEXP, data) for fork in (BEFORE, AFTER))
    assert (before.success, before.output, before.gas_used) == (True, b"", 0)
    assert int.from_bytes(after.output, "big") == pow(base, exponent, modulus)
    assert len(after.output) == size
    assert after.gas_used == gas
