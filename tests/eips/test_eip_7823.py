"""EIP-7823: Set upper bounds for MODEXP.

Modular exponentiation fails for an operand of more than 1,024 bytes.
"""

import pytest

from .support import before_and_after, call_precompile, modexp_operands

BEFORE, AFTER = before_and_after(7823)
MODEXP = 5
LIMIT = 1_024


def operands(*sizes):
    """Returns an input of MODEXP with these sizes. Base, exponent and modulus are 2."""
    return modexp_operands(*((2).to_bytes(size, "big") for size in sizes))


@pytest.mark.parametrize("longest", [0, 1, 2])
def test_a_longer_operand_fails(longest):
    for size, allowed in ((LIMIT, True), (LIMIT + 1, False)):
        sizes = [1, 1, 1]
        sizes[longest] = size
        data = operands(*sizes)
        assert call_precompile(BEFORE, MODEXP, data).success
        assert call_precompile(AFTER, MODEXP, data).success == allowed


def test_a_failure_takes_all_gas():
    failed = call_precompile(AFTER, MODEXP, operands(1, 1, LIMIT + 1), gas=100_000)
    assert (failed.gas_used, failed.output) == (100_000, b"")
